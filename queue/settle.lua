-- settle: jobs that a worker has finished leave its leases, each by its verb. A lease that is no longer the worker's
-- (it was reaped, or settled before) changes nothing and is counted. Where a key holds something else, nothing is settled.
--
-- KEYS[1] prefix
-- ARGV: now, worker, then any number of
--         "done"  type n token * n
--         "retry" token delay_us ""        one more attempt used; runs again after the delay
--         "throttled" token delay_us ""    no attempt used; runs again after the delay
--         "back"  token "0" ""             handed back to the head of its lane as it is
--         "dead"  token "0" reason
-- reply: the number of stale leases
-- uses: core/base.lua queue/check.lua queue/settle_done.lua core/now.lua core/bell.lua queue/lease.lua queue/lane.lua

local verbs = {}
local done, ends = {}, {}

local function read_arguments()
    local i = 3
    while i <= #ARGV do
        local verb, n = ARGV[i], tonumber(ARGV[i + 2])
        if verb == 'done' then
            local last = done_end(i)
            if not last then return 'settle: done needs a type, a number, that many tokens' end
            done[#done + 1] = {type = ARGV[i + 1], first = i + 3, last = last}
            i = last + 1
        else
            if not verbs[verb] then return 'settle: unknown verb ' .. tostring(verb) end
            if i + 3 > #ARGV or not is_whole(n) or not lane_of(ARGV[i + 1]) then
                return 'settle: ' .. verb .. ' needs a token, a delay, a reason'
            end
            ends[#ends + 1] = {verb = verb, token = ARGV[i + 1], lane = lane_of(ARGV[i + 1]), delay_us = n, reason = ARGV[i + 3]}
            i = i + 4
        end
    end
end

local function tag(e) return worker .. ':' .. e.token:match('^[^/]+') end

local function put_later(e, entry)
    local record = 'l ' .. tag(e) .. ' ' .. e.lane .. '\n' .. entry
    call('ZADD', P .. 'later', us(now + e.delay_us), record)
    count(e.type, 'scheduled', 1)
    if call('ZRANGE', P .. 'later', 0, 0)[1] == record then bell_ring(e.queue) end
end

function verbs.retry(e)
    local attempts, interrupted, throttled, body = entry_read(e.entry)
    put_later(e, entry_write(attempts + 1, interrupted, throttled, body))
    count(e.type, 'retried', 1)
end

function verbs.throttled(e)
    local attempts, interrupted, throttled, body = entry_read(e.entry)
    put_later(e, entry_write(attempts, interrupted, throttled + 1, body))
    count(e.type, 'back', 1)
end

function verbs.dead(e)
    bury(tag(e), e.lane, e.reason, e.entry)
    count(e.type, 'dead', 1)
end

local given_back = {}
function verbs.back(e)
    given_back[#given_back + 1] = e
    count(e.type, 'back', 1)
end

local wrong = read_arguments()
if wrong then return refuse('%s', wrong) end

local stale, leaving, tokens = 0, {}, {}
local function read_leases()
    for _, e in ipairs(ends) do
        e.entry = not tokens[e.token] and call('HGET', active, e.token)
        if e.entry then
            e.queue, e.type = lane_parts(e.lane)
            leaving[#leaving + 1], tokens[#tokens + 1] = e, e.token
            tokens[e.token] = true
        else
            stale = stale + 1
        end
    end
end

local function wrong_keys()
    local wrong
    for _, e in ipairs(leaving) do
        if e.verb == 'back' then
            wrong = wrong or wrong_lane(e.lane)
        else
            wrong = wrong or wrong_kind(e.verb == 'dead' and 'dead' or 'later', 'zset')
        end
    end
    return wrong
end

read_leases()
wrong = wrong_kind('active:' .. worker, 'hash') or wrong_keys()
if wrong then return refuse_key(wrong) end

for _, e in ipairs(leaving) do verbs[e.verb](e) end
lanes_return(given_back)
if #tokens > 0 then push('HDEL', active, tokens) end
for _, d in ipairs(done) do stale = stale + end_done(d.type, d.first, d.last) end
return stale

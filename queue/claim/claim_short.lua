-- claim_short: the claim that comes for a job which came alone. When a worker on duty has executors to spare, nothing waits in lanes, is
-- held, halted or to run alone, and the one or two jobs in the queue are its own and have no limit, the phases of a claim come to nothing but
-- this: those jobs start. Between two such claims the processor forgets, so what counts is how much a call touches: few commands,
-- functions and tables.
--
-- Likewise a worker off duty that polls finds nothing, mostly: then that is all that it is answered.
--
-- A claim that stands behind a peek (stand.lua) is mostly the same as the one before, and nothing has changed since but that jobs came, started and
-- were done. Then it starts what came, and asks nothing else.
--
-- It is no second set of rules: it only knows when nothing else can matter. What it does not know for sure, the long way looks at.
--
-- uses: body claim_call claim_commit claim_crowd claim_duty claim_start data_loss duty gate later_records partition types
local claim_short = {}

local TYPE, STAMPED_TYPE, NEAR = body.TYPE, body.STAMPED_TYPE, gate.AHEAD

local FEW = 2                 -- jobs that are started; one more is read, no more than a claim reads at first
local PREFETCH_MOST = 16      -- a worker that prefetches more finds long queues
local BODY_MOST = body.MOST

-- ---- What a claim finds before it reads the queue; it is kept for those that stand

local args, worker, queue, prefetch, duty_until -- of the claim that has looked last
local later                                     -- when the first job of `later` is due; -1: there is none
local free                                      -- set of types whose jobs need no gate, as far as they were asked for
local words, words_changes, looked_us           -- if that claim stood: what it said, how much had changed then, and when that was; else nil

-- True when the arguments (see claim.lua) ask for nothing special. Wrong ones fail, or take the long way.
local function asks_little()
    return args[13] == '1' and is_name(queue) and not find(args[11], '[^abdem]')
        and tonumber(args[5]) > FEW and prefetch <= PREFETCH_MOST and tonumber(args[7]) > FEW
        and (tonumber(args[10]) > 0 or tonumber(args[9]) <= NEAR)
end

local keys, keys_of, keys_queue -- keys of that prefix and queue that must not be there: joining their names anew would cost as much as asking for them

local function list_keys()
    keys_of, keys_queue = P, queue
    keys = {P .. 'alone', P .. 'halted', P .. 'cancelled', P .. 'format:' .. FORMAT_NEWEST + 1, P .. 'wake:' .. queue, P .. 'held:' .. queue,
            P .. 'later'}
end

-- True when the worker is registered, nothing is to run alone, paused, cancelled or of a newer format, and no type of the queue waits at a gate or
-- is held: then no lane has jobs. A key that is named n times counts n times: from eight on the worker is there, and nine may be `later` too.
local function is_quiet()
    if keys_of ~= P or keys_queue ~= queue then list_keys() end
    local active = P .. 'active:' .. worker
    local found = call('EXISTS', active, active, active, active, active, active, active, active, unpack(keys))
    local first = found == 9 and later_records.first()
    later = first and max(first, 1) or -1
    return found == 8 or first
end

local function look(ARGV)
    words = nil
    args, worker, queue, prefetch, duty_until, free = ARGV, ARGV[2], ARGV[14], tonumber(ARGV[6]), tonumber(ARGV[8]), {}
    return asks_little() and is_quiet()
end

-- True when this claim says what the last one said that has looked just now, and nothing has changed since.
local function is_known(said) return said == words and changes == words_changes and is_recent(looked_us) end

-- ---- What it starts

-- True when so many jobs may start with nothing else to be done: the worker is on duty and marks no rates; or none starts, and the duty is others'.
local function may_start(count)
    if count > 0 then return duty_until > 0 and not find(args[11], 'm', 1, true) end
    return duty_until > 0 or duty.is_of_others(args[3], worker)
end

-- True when a type is one of this worker, of this partition, and without limits.
local function is_free(name)
    if not free[name] then
        free[name] = claim_call.names(args, 15, name) and not types.is_limited(name) and not partition.elsewhere(name)
    end
    return free[name]
end

-- Returns the type of a job that needs no gate; nil: its head says more than when it was enqueued, it was not written by Weir's producers, is too
-- large, or its type may not start here and now.
local function free_type(entry)
    local name = #entry <= BODY_MOST and (match(entry, STAMPED_TYPE) or match(entry, TYPE))
    return name and is_free(name) and name or nil
end

-- Starts jobs and returns the reply; nil: nothing was changed, and the long way is needed.
local function start(turn)
    local jobs = call('LRANGE', P .. 'queue:' .. queue, '0', digits(FEW))
    if #jobs > FEW or not may_start(#jobs) or find(turn, '%D') then return nil end
    local names, leases, crowd = {}, {}, claim_crowd.count(worker, prefetch)
    for i = 1, #jobs do
        names[i] = free_type(jobs[i])
        if not names[i] then return nil end
        leases[2 * i - 1], leases[2 * i] = claim_start.token(turn, i) .. '/' .. queue .. '/' .. names[i] .. '/', jobs[i]
    end
    if #jobs > 0 then
        claim_commit.write_leases(worker, leases)
        call('LTRIM', P .. 'queue:' .. queue, digits(#jobs), '-1')
        for i = 1, #jobs do claim_commit.count_new(names[i], 'pulled', 1) end
        data_loss.mark(true)
    end
    has_changed_nothing()
    local reply = {now, #jobs > 0 and leases or '', 'j', 1, 'd', duty_until}
    if later > 0 then reply[7], reply[8] = 'l', later end
    if crowd > 0 then reply[#reply + 1], reply[#reply + 2] = 'g', crowd end
    return reply
end

-- ----

-- Returns the reply of a claim; nil: nothing was changed, and the long way is needed. It fails before it has changed anything.
function claim_short.reply(ARGV)
    return look(ARGV) and (duty_until == 0 or claim_duty.stays(duty_until)) and start(ARGV[4]) or nil
end

local function arguments(turn, said)
    local ARGV = {''}
    for word in said:gmatch('([^ ]*) ') do ARGV[#ARGV + 1] = word end
    ARGV[4] = turn
    return ARGV
end

-- Serves a claim that stands: see stand.lua. It leaves the duty to turns, as it may be older than the one that has renewed it.
function claim_short.stand(turn, said)
    if not is_known(said) then
        if not look(arguments(turn, said)) then return nil end
        words, words_changes, looked_us = said, changes, not VIRTUAL and now
    end
    return (duty_until == 0 or claim_duty.is_held(duty_until)) and start(turn) or nil
end

return claim_short

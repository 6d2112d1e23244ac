-- clock: Redis's clock was set back. What waits for a time is to wait no longer than before: pauses of limits and types and retries move back, gates
-- are looked at, as each moves with the clock when it is loaded. Scheduled jobs and schedules mean a time of day, and stay.
--
--   clock   list of what is still to be gone through: "<what> <back_us> <since> <place>"; what: limits, types, queues, later, runs, holds,
--           wake:<queue>, sleep:<queue>; back_us: by how much; since: when that was noticed; place: where the next page begins
--
-- That may be a million keys, so each call does a page. Of a sorted set the soonest come first, and what moves goes before the place where
-- the next page begins: so it moves once. A retry that others put behind that place meanwhile moves too.
--
-- uses: bell gate holds key_rules rules slices
local clock = {}

local PAGE = 500        -- members that one call goes through, 2 to 3 us each
local SET = 3           -- members that going to another set counts as
local GATE = 5          -- members that the gate of a key counts as, which is read and written
local BYTES = 64 * 1024 -- of records of `later` in one call, or one that is larger

local function entry_of(what, e, place) return format('%s %d %d %s', what, e.back, e.since, place) end

local function entry_read(text)
    if type(text) ~= 'string' then return nil end
    local what, queue, back, since, place = match(text, '^(%a+):?(%S*) ([1-9]%d*) (%d+) (%S+)$')
    return what and {what = what, queue = queue, back = tonumber(back), since = tonumber(since), place = place}
end

-- ---- Each goes through a page of at most `most` members, and returns of how many, and where the next page begins; nil: that is all.

local through = {}

-- Moves back the pauses, among fields and their texts, that were set at a time which has not come yet. Returns what is to be written.
local function pauses_moved(e, found)
    local changes = {}
    for i = 1, #found, 2 do
        local head, till, set_at, tail = match(found[i + 1], '^(.*pause[:=])(%d+)/(%d+)(.*)$')
        if head and tonumber(set_at) > e.since then
            till, set_at = max(0, tonumber(till) - e.back), max(0, tonumber(set_at) - e.back)
            changes[#changes + 1], changes[#changes + 2] = found[i], head .. us(till) .. '/' .. us(set_at) .. tail
        end
    end
    return changes
end

function through.limits(e, most)
    local page = call_safe('HSCAN', P .. 'limits', e.place, 'COUNT', digits(most))
    if page.err then return 0 end
    push('HSET', P .. 'limits', pauses_moved(e, page[2]))
    return #page[2] / 2, page[1] ~= '0' and page[1] or nil
end

function through.types(e, most)
    local page = call_safe('HSCAN', P .. 'types', e.place, 'COUNT', digits(most))
    if page.err then return 0 end
    push('HSET', P .. 'types', pauses_moved(e, page[2]))
    return #page[2] / 2, page[1] ~= '0' and page[1] or nil
end

-- Goes through queues: the types that wait in these come next, then the other queues; lanes that sleep come last.
function through.queues(e, most)
    local page = call_safe('SSCAN', P .. 'queues', e.place, 'COUNT', digits(ceil(most / SET)))
    if page.err then return 0 end
    local first, last = {page[1] ~= '0' and entry_of('queues', e, page[1]) or nil}, {}
    for i, queue in ipairs(page[2]) do
        first[#first + 1], last[i] = entry_of('wake:' .. queue, e, '-'), entry_of('sleep:' .. queue, e, us(e.since) .. ',0')
    end
    push('LPUSH', P .. 'clock', first)
    push('RPUSH', P .. 'clock', last)
    return #page[2]
end

function through.wake(e, most)
    local key, changes = P .. 'wake:' .. e.queue, {}
    local names = call_safe('ZRANGEBYSCORE', key, '(' .. us(e.since), '(+inf', 'LIMIT', '0', digits(most))
    for i, name in ipairs(names) do changes[2 * i - 1], changes[2 * i] = us(e.since), name end
    push('ZADD', key, changes)
    return #names, #names == most and '-' or nil
end

-- Finds where a page of a sorted set begins. A place is a time, and how many members of that time were gone through, as some may stay there. nil:
-- the key holds something else.
local function rank_of(key, place)
    local time, passed = match(place, '^(%S+),(%d+)$')
    local before = call_safe('ZCOUNT', key, '-inf', '(' .. (time or ''))
    return type(before) == 'number' and before + passed or nil
end

local function place_of(key, rank, time) return time .. ',' .. us(rank - call('ZCOUNT', key, '-inf', '(' .. time)) end

-- Moves a page of n members to the times that time_of says. Returns what was written, and the next place.
local function move(e, key, n, time_of)
    local rank, changes = rank_of(key, e.place), {}
    local page = rank and call('ZRANGE', key, us(rank), us(rank + n - 1), 'WITHSCORES') or {}
    for i = 1, #page, 2 do
        local at = tonumber(page[i + 1])
        if at == huge then break end -- no time opens it
        changes[i], changes[i + 1] = us(time_of(e, page[i], at)), page[i]
    end
    push('ZADD', key, changes)
    return changes, #changes == 2 * n and place_of(key, rank + n, page[2 * n]) or nil
end

-- Finds the rule of a gate, and its limit; nil: it is gone. And until when it holds; huge: no time ends that.
local function rule_of(name)
    local limit, index, key = match(name, '^([%w_.-]+)#(%d)/(.+)$')
    local text = limit and call_safe('HGET', P .. 'limits', limit)
    local set = type(text) == 'string' and rules.read(text)
    if not set or not set.path then return nil end
    local rule, till = key_rules.at(limit, set, tonumber(index), key)
    return rule, set, till
end

-- Returns when the gate of a key opens now that was to open at `at`. Loading it puts its own times right, too.
local function opening(e, name, at)
    local rule, set, till = rule_of(name)
    local g = rule and gate.load_safe(name, rule)
    if not g then return max(0, at - e.back) end
    return min(at, max(min(gate.start(g, 1), till), rules.paused(set)))
end

function through.sleep(e, most)
    local changes, place = move(e, P .. 'sleep:' .. e.queue, ceil(most / GATE), opening)
    gate.save()
    local first = huge
    for i = 1, #changes, 2 do first = min(first, tonumber(changes[i])) end
    if first < huge then call_safe('ZADD', P .. 'wake:' .. e.queue, 'LT', us(first), '*') end
    return GATE * #changes / 2, place
end

-- Returns until when a worker's type is known. Those that are named meanwhile may move too: they are known at least until now, and are named again.
local function known_until(e, _, at) return max(e.since, at - e.back) end

-- Goes through the types that workers run.
function through.runs(e, most)
    local changes, place = move(e, P .. 'runs', most, known_until)
    return #changes / 2, place
end

-- Returns when a hold ends: nobody who lives has more of it left than its whole time.
local function held_until(e, token, at) return min(at, now + (holds.ttl(token) or 0)) end

function through.holds(e, most)
    local changes, place = move(e, P .. 'holds', ceil(most / SET), held_until)
    return SET * #changes / 2, place
end

-- Goes through the retries.
function through.later(e, most)
    local key, load = P .. 'later', slices.load(BYTES)
    local rank = rank_of(key, e.place)
    if not rank then return 0 end
    local records, all = slices.read('ZRANGE', key, rank, most, load)
    local time = not all and #records > 0 and call('ZSCORE', key, records[#records])
    for _, record in ipairs(records) do
        if sub(record, 1, 2) == 'l ' then call('ZINCRBY', key, us(-e.back), record) end
    end
    return slices.is_full(load) and most or #records, time and place_of(key, rank + #records, time) or nil
end

-- ----

-- Notes that the clock was set back by so much.
function clock.set_back(back_us)
    local unfinished = entry_read(call_safe('LINDEX', P .. 'clock', '0'))
    local e = {back = back_us + (unfinished and unfinished.back or 0), since = now}
    call('DEL', P .. 'clock')
    call('RPUSH', P .. 'clock', entry_of('limits', e, '0'), entry_of('types', e, '0'), entry_of('queues', e, '0'), entry_of('later', e, '0,0'),
         entry_of('runs', e, us(now) .. ',0'), entry_of('holds', e, us(now) .. ',0'))
    bell.ring()
end

-- Goes through a page of what is left.
function clock.follow()
    local left = PAGE
    while left > 0 do
        local e = entry_read(call_safe('LPOP', P .. 'clock'))
        if not e then return end
        local n, place = 0, nil
        if through[e.what] then n, place = through[e.what](e, left) end
        left = left - n - SET
        if place then
            local what = e.queue ~= '' and e.what .. ':' .. e.queue or e.what
            call('RPUSH', P .. 'clock', entry_of(what, e, place))
        end
    end
end

-- True when something is left.
function clock.is_behind()
    local n = call_safe('LLEN', P .. 'clock')
    return type(n) == 'number' and n > 0
end

return clock

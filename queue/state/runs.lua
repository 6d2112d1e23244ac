-- runs: the types that workers run. A type that no worker has run for a while is unknown: only then are its jobs buried by a worker
-- that was started with --unknown dead. Until then they are left to the others.
--
--   runs  sorted set: type, or pattern of types -> until when a worker that runs it is registered, us; of a type that no worker ever named: when a
--         claim first met a job of it. `*` -> until when a worker may run any type, as it has a pattern for all, or is still naming its
--         types; `**`: the same of the pattern alone, behind which there is a grace
--
-- A worker names its types as it begins, and again with its heartbeats, so each worker that lives keeps them there.
--
-- uses: check
local runs = {}

local GRACE_US = 60 * 1000000 -- a worker may be away for so long, as in a restart
local KEPT_US = 86400 * 1000000 -- after that the time of a type is forgotten
local FORGET_MOST = 100       -- types that one heartbeat forgets
local PAGE = 1000             -- types that one call names: less than 1.5 ms

local NAMING, ALL = '*', '**'

local function add(names, first, last, score)
    local members, text = {}, us(score)
    for i = first, last do
        members[#members + 1] = text
        members[#members + 1] = names[i]
        if names[i] == NAMING then members[#members + 1], members[#members + 2] = text, ALL end
    end
    for i = 1, #members, 4000 do call('ZADD', P .. 'runs', 'GT', unpack(members, i, min(i + 3999, #members))) end
end

-- Returns until when types count that are named now: one lease. Heartbeats, four in a lease, name very many types a page at a time: then until all
-- pages were named twice.
local function till(names, lease_us) return now + lease_us * (1 + floor(#names / PAGE / 2)) end

-- Begins with a worker that runs types of these names. Of very many it names a page; its heartbeats name the others.
function runs.begin(names, lease_us)
    if check.wrong_kind('runs', 'zset') then return end
    local last_us = till(names, lease_us)
    add(names, 1, min(PAGE, #names), last_us)
    if #names > PAGE then call('ZADD', P .. 'runs', 'GT', us(last_us), NAMING) end
end

-- Follows a heartbeat of a worker. Which page it names goes by the time. forgets: types that nobody runs any more leave.
function runs.follow(names, lease_us, forgets)
    if check.wrong_kind('runs', 'zset') then return end
    local first = floor(now * 4 / lease_us) % max(1, ceil(#names / PAGE)) * PAGE
    add(names, first + 1, min(first + PAGE, #names), till(names, lease_us))
    if not forgets then return end
    push('ZREM', P .. 'runs', call_safe('ZRANGEBYSCORE', P .. 'runs', '-inf', us(now - KEPT_US), 'LIMIT', '0', us(FORGET_MOST)))
end

-- Returns until when a worker is registered that runs this type by its name or by a pattern; 0: none ever was.
local function last_us(name)
    local last, words = 0, {name, ALL}
    for i = 1, #name do words[#words + 1] = sub(name, 1, i) .. '*' end
    for _, till in ipairs(call('ZMSCORE', P .. 'runs', unpack(words))) do last = max(last, tonumber(till or 0)) end
    return last
end

local function is_alive(member) return tonumber(call('ZSCORE', P .. 'runs', member) or 0) > now end

-- True when a worker that lives names this type.
function runs.is_named(name) return is_alive(name) end

-- True when a worker that lives runs this type.
function runs.is_run(name)
    return check.wrong_kind('runs', 'zset') ~= nil or is_alive(name) or is_alive(NAMING) or last_us(name) > now
end

-- True when no worker has run this type for the grace. For a type that nobody has named that time begins now.
function runs.is_unknown(name)
    if check.wrong_kind('runs', 'zset') then return false end
    if not call('ZSCORE', P .. 'runs', name) then call('ZADD', P .. 'runs', us(now), name) end
    return last_us(name) + GRACE_US <= now and not is_alive(NAMING)
end

return runs

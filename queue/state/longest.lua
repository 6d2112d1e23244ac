-- longest: the longest lanes of each type that has keys. So its keys can be listed by their backlog, though there may be a million.
--
--   longest:<type>   sorted set: <queue>/<key> -> how many jobs the lane had when that was last counted; 100 lanes at most
--
-- RPUSH says how long a lane is by then. Where that passes a power of two, 16 at least, the lane is noted: so a million keys with a few jobs each cost
-- nothing, and a lane of a million jobs has cost 17 notes. Where the set is full a lane must be longer than the shortest in it. How many lanes the set
-- has and how long the shortest is are known from the call before, so a note is one ZADD, and two calls more where another leaves for it. Lanes shrink and
-- nobody says so: lengths are counted anew before a lane is noted, every 10 s at most. Those that are short by then leave and keep no longer one
-- out. Who reads the set asks for the lengths of now.
--
-- A lane that was too short for the set, and has not doubled since, is not in it, though others have shrunk meanwhile. Jobs that stand in queues
-- are in no lane yet.
local longest = {}

longest.LEAST = 16
longest.MOST = 100
local AGAIN_US = 10000000
local KEPT_MS = 30 * 86400000 -- a set is kept so long behind its last count
local KNOWN_MOST = 1000       -- types whose shortest lane is known between calls

-- key -> {count =, least =, at =}: how many lanes the set has; the length of the shortest, 0 where there is room; when they were counted
local known, known_count = {}, 0

local function keep(name, count, least)
    if not known[name] then
        if known_count >= KNOWN_MOST then known, known_count = {}, 0 end
        known_count = known_count + 1
        known[name] = {}
    end
    local k = known[name]
    k.count, k.least, k.at = count, least, now
    return k
end

-- Returns the name of a lane, of a member of the set of its type.
function longest.lane_of(kind, member)
    local queue, key = match(member, '^([^/]+)/(.+)$')
    return queue and queue .. '/' .. kind .. '/' .. key, queue, key
end

-- Counts the jobs of all noted lanes again; those that are short leave.
local function count_again(name, kind)
    local members, scores, short = call('ZRANGE', name, '0', '-1'), {}, {}
    for _, member in ipairs(members) do
        local lane = longest.lane_of(kind, member)
        local n = lane and call_safe('LLEN', P .. 'lane:' .. lane)
        if type(n) == 'number' and n >= longest.LEAST then
            scores[#scores + 1], scores[#scores + 2] = us(n), member
        else
            short[#short + 1] = member
        end
    end
    if #scores > 0 then call('ZADD', name, unpack(scores)) end
    if #short > 0 then call('ZREM', name, unpack(short)) end
end

-- Returns the length of the shortest of so many where the set is full, else 0.
local function least_of(name, count)
    if count < longest.MOST then return 0 end
    return tonumber(call('ZRANGE', name, '0', '0', 'WITHSCORES')[2] or 0)
end

-- Enters a lane that is longer than the shortest, or for which there is room. A set of a wrong kind stops nothing.
local function enter(name, k, member, n)
    local added = call_safe('ZADD', name, us(n), member)
    if type(added) ~= 'number' then return end
    if not VIRTUAL and k.at == now then call('PEXPIRE', name, us(KEPT_MS)) end
    if added == 0 then return end -- the shortest may have been this one: what is known is too low then, and lets one more in
    k.count = k.count + added
    if k.count > longest.MOST then
        call('ZREMRANGEBYRANK', name, '0', us(-longest.MOST - 1))
        k.count = longest.MOST
    end
    k.least = least_of(name, k.count)
end

-- Returns what is known of the set, counted again where that was too long ago; nil: it is of a wrong kind.
local function look(name, kind)
    local k = known[name]
    if k and k.at <= now and now - k.at < AGAIN_US then return k end
    if type(call_safe('ZCARD', name)) ~= 'number' then return nil end
    count_again(name, kind)
    local count = call('ZCARD', name)
    return keep(name, count, least_of(name, count))
end

-- Notes a lane that has n jobs, LEAST at least, of which so many have just come.
function longest.note(queue, kind, key, n, came)
    local mark = longest.LEAST
    while 2 * mark <= n do mark = 2 * mark end
    if n - came >= mark then return end
    local name = P .. 'longest:' .. kind
    local k = look(name, kind)
    if k and n > k.least then enter(name, k, queue .. '/' .. key, n) end
end

return longest

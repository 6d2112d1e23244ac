-- registry: the set `queues`: each queue that has something, is paused, or is served by a worker. One that nobody needs any more
-- leaves it: heartbeats look at some by chance, once a second at most. While the set is small, a pattern of a worker keeps its queues there too: a foreign
-- client may push into one, and nobody else would know of it.
--
-- Who puts something into a queue, or into a lane of it, registers it in the same call.
--
-- uses: large pattern
local registry = {}

local LOOKS = 20        -- queues at which one heartbeat looks
local MORE_LOOKS = 200  -- more of them where half of these are empty: less than 1 ms
local WORKERS_MOST = 64 -- whose queues are read for that, by chance: with more of them a queue may leave until its worker's next heartbeat

local KEPT_MOST = 1000  -- queues that are kept for a pattern: with more of them, those that are empty leave

local added -- the queue that this call added last

local function forget() added = nil end

function registry.add(queue)
    if added == queue then return end
    if not added then at_next_call(forget) end
    added = queue
    call_safe('SADD', P .. 'queues', queue)
end

-- Returns what a worker says of itself, JSON: queues, types and more; '': nothing. It may name thousands of types: they are not read for what else
-- it says.
function registry.info(worker)
    local info = call_safe('HGET', P .. 'active:' .. worker, '@')
    return type(info) == 'string' and info or ''
end

-- Returns the names and patterns of the queues that a worker serves, a JSON array; nil: it does not say.
local function words_text(info) return match(info, '"queues":%s*(%b[])') end

-- Returns the words of `queues` as a list.
function registry.words_in(info)
    local ok, said = pcall(json_read, words_text(info) or '[]')
    local words = {}
    for _, word in ipairs(ok and type(said) == 'table' and said or {}) do
        words[#words + 1] = type(word) == 'string' and word or nil
    end
    return words
end

function registry.words_text(worker) return words_text(registry.info(worker)) end

function registry.words(worker) return registry.words_in(registry.info(worker)) end

-- Returns the types that a worker runs, a JSON array.
function registry.types_text(info) return match(info, '"types":%s*(%b[])') or '[]' end

-- Returns the types, as JSON, whose handlers run in the worker's own process and so can end it; nil: it does not say, and any may.
function registry.inside_text(info) return match(info, '"inside":%s*(%b[])') end

function registry.instance(info) return match(info, '"instance":"([^"]*)"') end

local function is_empty(queue)
    return call('EXISTS', P .. 'queue:' .. queue, P .. 'wake:' .. queue, P .. 'sleep:' .. queue, P .. 'held:' .. queue) == 0
        and call_safe('HEXISTS', P .. 'halted', 'q/' .. queue) == 0
end

-- Takes the queues that a word stands for out of a set. A pattern is noted.
local function keep(queues, word, patterns)
    if queues[word] then queues[word] = nil end
    if type(word) == 'string' and pattern.is(word) then patterns[word] = true end
end

local function keep_all(queues, words, patterns)
    for _, word in ipairs(words) do keep(queues, word, patterns) end
end

-- Keeps the queues that a group served within the last day.
local function keep_of_groups(queues, patterns)
    local duty = call_safe('HVALS', P .. 'duty')
    for i = 1, #duty do
        for word in (match(duty[i], '^%S+ %d+ (%S+)$') or ''):gmatch('[^,]+') do keep(queues, word, patterns) end
    end
end

-- Keeps the queues that a worker serves.
local function keep_of_workers(queues, patterns)
    local workers = call_safe('ZRANDMEMBER', P .. 'workers', WORKERS_MOST)
    for i = 1, #workers do keep_all(queues, registry.words(workers[i]), patterns) end
end

-- Keeps the queues that one of these patterns stands for, while there are few queues in all.
local function keep_of_patterns(queues, patterns)
    local few
    for word in pairs(patterns) do
        if few == nil then few = #call('SRANDMEMBER', P .. 'queues', digits(KEPT_MOST + 1)) <= KEPT_MOST end
        for queue in pairs(few and queues or {}) do
            if pattern.matches(word, queue) then queues[queue] = nil end
        end
    end
end

-- Notes which of some queues, by chance, are empty; returns how many.
local function look(empty, most)
    local some, found = call_safe('SRANDMEMBER', P .. 'queues', digits(most)), 0
    for i = 1, #some do
        if is_empty(some[i]) then empty[some[i]], found = true, found + 1 end
    end
    return found
end

local function is_any(set)
    for _ in pairs(set) do return true end
    return false
end

-- Takes out of a set what somebody serves: this worker, a group, any worker, a pattern. Each is read only where those before it leave some.
local function keep_served(queues, words)
    local patterns = {}
    keep_all(queues, words, patterns)
    if is_any(queues) then keep_of_groups(queues, patterns) end
    if is_any(queues) then keep_of_workers(queues, patterns) end
    if is_any(queues) then keep_of_patterns(queues, patterns) end
end

local function forget_some(words)
    local empty = {}
    local found = look(empty, LOOKS)
    if 2 * found >= LOOKS then look(empty, MORE_LOOKS) end
    if found > 0 then
        keep_served(empty, words)
        for queue in pairs(empty) do
            call('SREM', P .. 'queues', queue)
            large.forget(queue)
            large.forget_lanes(queue)
        end
    end
end

-- Registers the queues of a worker that is heard of and serves these words. With `forgets`, some queues that nobody needs leave.
function registry.follow(words, forgets)
    if forgets then forget_some(words) end
    for _, queue in ipairs(words) do
        if is_name(queue) then call_safe('SADD', P .. 'queues', queue) end
    end
end

return registry

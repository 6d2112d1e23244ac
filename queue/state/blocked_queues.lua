-- blocked_queues: queues whose claims a key of another kind stops, as claims have found since the library was loaded.
--
--   blocked_queues.note(queue, key)  claims of the queue fail at that key
--   blocked_queues.by(queue)         what is wrong with the key that stops the queue; nil: none does
--   blocked_queues.wrong(queue)      what is wrong with the first of its keys that are not of a type or gate; nil: nothing is
--   blocked_queues.is_any()          whether any queue may be stopped
--
-- uses: check
local blocked_queues = {}

-- The kinds of a queue's keys, by their first word. Those of "<queue>!", where its suspects wait, are the queue's too.
blocked_queues.KINDS = {queue = 'list', lane = 'list', ring = 'zset', wait = 'zset', wake = 'zset', sleep = 'zset', held = 'zset'}

local KNOWN_MOST = 256

local known, known_count = {}, 0 -- P .. queue -> its key

function blocked_queues.note(queue, key)
    if known_count == KNOWN_MOST then known, known_count = {}, 0 end
    known[P .. queue], known_count = key, known_count + 1
end

function blocked_queues.by(queue)
    local key = known[P .. queue]
    local wrong = key and check.wrong_kind(key, blocked_queues.KINDS[match(key, '^%l+')]) or nil
    if key and not wrong then known[P .. queue], known_count = nil, known_count - 1 end
    return wrong
end

function blocked_queues.wrong(queue)
    for _, family in ipairs{'queue', 'wake', 'sleep', 'held'} do
        local wrong = check.wrong_kind(family .. ':' .. queue, blocked_queues.KINDS[family])
        if wrong then return wrong end
    end
end

function blocked_queues.is_any() return known_count > 0 end

return blocked_queues

-- type_remove: forgets a type of which nothing is left, as one whose name was mistyped: its counters and what was recorded of it.
--
-- ARGV: now, type, what, by (for the log)
-- role: operator
-- reply: JSON: {"missing": type} when there is none here; {"left": {what is left of it: how many, ...}} when it stays; {"uses": its attributes}
--        the same; else {"removed": true}
-- uses: check counters rates reasons types

local COUNTERS = {'enqueued', 'pulled', 'parked', 'returned', 'served', 'done', 'retried', 'dead', 'back', 'dropped', 'scheduled', 'set_aside',
                  'revived', 'removed', 'forgotten'}

-- Counts the jobs of a type by where they are.
local function count(name)
    local s = {}
    for i, value in ipairs(call('HMGET', P .. 'stats:' .. name, unpack(COUNTERS))) do s[COUNTERS[i]] = counters.number(value) end
    return {
        waiting = s.enqueued - s.pulled - s.parked - s.dropped,
        parked = s.parked + s.returned - s.served,
        running = s.pulled + s.served - s.done - s.retried - s.dead - s.back,
        dead = s.dead - s.revived - s.removed - s.forgotten,
        scheduled = s.scheduled,
        aside = s.set_aside,
    }
end

local function left_of(name)
    local left, any = {}, false
    for what, n in pairs(count(name)) do
        if n > 0 then left[what], any = n, true end
    end
    return any and left or nil
end

local function type_remove(ARGV)
    local name = ARGV[2]
    if #ARGV ~= 4 or not is_name(name) then return refuse('type_remove: wants now, type, what, by') end
    local wrong = rates.wrong_keys() or reasons.wrong() or check.wrong_kind('stats:' .. name, 'hash')
    if wrong then return check.refuse_key(wrong) end
    if call('HEXISTS', P .. 'types', name) == 0 then return answer{missing = name} end
    local left, uses = left_of(name), types.attributes(types.read(name))
    if left then return answer{left = left} end
    if uses ~= '' then return answer{uses = uses} end
    call('HDEL', P .. 'types', name)
    call('DEL', P .. 'stats:' .. name, P .. 'longest:' .. name, P .. 'minutes:t/' .. name)
    rates.record(ARGV[3], ARGV[4], 'type', name)
    return answer{removed = true}
end

return type_remove

-- later_records: when the records of `later` are due. None is read for that, where one may be large.
--
--   later_records.put(record, at)  adds one; returns whether it is due before all others
--   later_records.put_all(records, at)  the same of many: their scores and records as ZADD takes them, the first of which is due then
--   later_records.again()          when a job comes again that a key of another kind keeps from its lane
--   later_records.first()          when the first one is due; nil: there is none. A key of another kind holds none
--
-- uses: large
local later_records = {}

local AGAIN_US = 10000000
local EACH_US = 100 -- how much later each record in `later` makes the next question: a million records must not keep Redis busy

local LARGE = 4096 -- from that size on a first record is not read again as long as it is the first

-- Remembers when the large record is due that stood first when it was read last, and in which namespace. Redis is asked whether it still does.
local known_at, known_in

function later_records.put_all(records, at)
    push('ZADD', P .. 'later', records)
    large.note_later(records)
    return call('ZCOUNT', P .. 'later', '-inf', '(' .. us(at)) == 0
end

function later_records.put(record, at) return later_records.put_all({us(at), record}, at) end

function later_records.again() return now + AGAIN_US + EACH_US * call('ZCARD', P .. 'later') end

local function is_known()
    return known_in == P and call_safe('ZCOUNT', P .. 'later', '-inf', '(' .. known_at) == 0
        and call_safe('ZCOUNT', P .. 'later', known_at, known_at) ~= 0
end

function later_records.first()
    if is_known() then return tonumber(known_at) end
    local first = call_safe('ZRANGE', P .. 'later', '0', '0', 'WITHSCORES')
    if #first > 1 and #first[1] >= LARGE then known_in, known_at = P, first[2] end
    return tonumber(first[2])
end

return later_records

-- oldest: since when jobs wait, by their stamps: of the first job of lists that are cheap to find, so it is the oldest only as far as these
-- were looked at; changes nothing. Times are in units of 10 ms, which JSON keeps exact.
--
--   oldest.begin()             a call begins
--   oldest.said_by(entry)      since when a job waits whose entry is read; nil: it does not say
--   oldest.first_of(key)       the first entry of a list; nil: there is none, or this call may read no more. What is no list is none
--   oldest.note(first, name, at)      first[name] becomes the earlier of both; at may be nil
--   oldest.note_queue(first, queue, held, asleep)  where there are many queues: the first lanes that wait in one, each for its type; held:
--                              types that are held there, some; asleep: gates at which lanes sleep there
--   oldest.has_few_queues()    there are few queues
--   oldest.note_type(first, name)     where there are few queues: the first lane of a type in each of them; returns how many commands that took
--
-- uses: heads slices stamp
local oldest = {}

local UNIT_US = 10000
local BYTES = 65536   -- of first jobs that a call reads
local QUEUES_MOST = 4 -- more are many
local PLACES_MOST = 4 -- gates of a queue of each kind whose first lane is read, and held types

local load, few -- in this call: what may still be read; the queues where they are few, false: they are many

function oldest.begin()
    load, few = slices.load(BYTES), nil
end

local function few_queues()
    if few == nil then
        local page = call('SSCAN', P .. 'queues', '0', 'COUNT', '16')
        few = page[1] == '0' and #page[2] <= QUEUES_MOST and page[2]
    end
    return few
end

function oldest.has_few_queues() return few_queues() and true or false end

function oldest.said_by(entry)
    local at = stamp.since((heads.attrs_of(entry)))
    return at and at / UNIT_US
end

function oldest.first_of(key)
    if slices.is_full(load) then return nil end
    local entry = call_safe('LRANGE', P .. key, '0', '0')[1]
    return entry and slices.fits(load, #entry) and entry or nil
end

function oldest.note(first, name, at)
    if at and at < (first[name] or huge) then first[name] = at end
end

local function note_lane(first, name, lane_name)
    local entry = oldest.first_of('lane:' .. lane_name)
    if entry then oldest.note(first, name, oldest.said_by(entry)) end
end

-- The lane of a type that is served next in a queue, of those that wait for no gate of a key.
local function note_ring(first, queue, name)
    local key = call_safe('ZRANGE', P .. 'ring:' .. queue .. '/' .. name, '0', '0')[1]
    if key then note_lane(first, name, queue .. '/' .. name .. '/' .. key) end
end

-- What waits first at the first gates of wake: or sleep:, calls note(first, queue, what).
local function note_gates(first, queue, family, note)
    for _, gate_name in ipairs(call_safe('ZRANGE', P .. family .. queue, '0', us(PLACES_MOST - 1))) do
        local waits = call_safe('ZRANGE', P .. 'wait:' .. queue .. '/' .. gate_name, '0', '0')[1]
        if waits then note(first, queue, waits) end
    end
end

local function note_sleeper(first, queue, node) note_lane(first, match(node, '^[^/]*'), queue .. '/' .. node) end

function oldest.note_queue(first, queue, held, asleep)
    if asleep > 0 then note_gates(first, queue, 'sleep:', note_sleeper) end
    if few_queues() then return end
    note_gates(first, queue, 'wake:', note_ring)
    for i = 1, min(#held, PLACES_MOST) do note_ring(first, queue, held[i]) end
end

function oldest.note_type(first, name)
    local queues = few_queues() or {}
    for _, queue in ipairs(queues) do note_ring(first, queue, name) end
    return 2 * #queues
end

return oldest

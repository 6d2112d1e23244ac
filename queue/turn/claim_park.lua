-- claim_park: the lane of a job, and jobs that go to the tail of theirs.
--
-- uses: claim_call claim_grant claim_wait job_text registry
local claim_park = {}

local claim, grant, wait = claim_call, claim_grant, claim_wait

-- Is that text the key of jobs without one, or what a hash looks like? (throttle/key.c)
local function looks_made(text) return text == '-' or #text == 42 and find(text, '^h%.[0-9a-f]+$') ~= nil end

-- The value of a key path as a name: `-` when there is none, hashed when it is no name or looks like one of these.
local function key_name(value)
    local kind = type(value)
    if kind == 'string' then return is_name(value) and not looks_made(value) and value or 'h.' .. sha1(value) end
    if kind == 'number' and value % 1 == 0 and value < 2 ^ 63 and value > -2 ^ 63 then return format('%.0f', value) end
    if kind == 'boolean' then return tostring(value) end
    return '-'
end

local function key_at(s, entry)
    local key = s.kind.path == 'key' and entry:match('^@?[^;{]*;?{"id":"[^"]*","type":"[^"]*","key":"([^"\\]*)"')
    return key_name(key or job_text.value(entry, s.kind.path))
end

-- The key of a job of type s.
function claim_park.key_of(s, entry)
    return s.keyed and key_at(s, entry) or ''
end

local SHOWN = 128 -- bytes of a key that was hashed

-- What stands at the path of a job with that key, for people.
function claim_park.shown_key(s, entry, key)
    local value = s.keyed and job_text.value(entry, s.kind.path)
    return type(value) == 'string' and key_name(value) == key and sub(value, 1, SHOWN) or key
end

-- A job has come to its lane, or starts as one of it: is it there as it has no key?
function claim_park.count_key(l)
    local s = l.s
    if l.key == '-' and s.keyed then s.keyless = (s.keyless or 0) + 1 end
end

-- Is the first job of a lane in that of its key? Not when it came before its type had keys, or when they were found by another path.
function claim_park.is_sorted(s, l, ahead)
    if not s.keyed then return true end
    if l.key ~= '' and not s.resorts then return true end
    local entry = grant.head(l, ahead)
    return not entry or key_at(s, entry) == l.key
end

-- Is nothing in the lane but what this claim has leased?
function claim_park.is_empty(l)
    if l.empty == nil then
        l.empty = call('LLEN', P .. 'lane:' .. l.name) == 0
        l.whole = l.whole or l.empty
    end
    return l.whole and not l.read[l.read_at] and not l.parked[l.parked_next]
end

local waiting -- lanes that had no job before, to be placed
function claim_park.begin() waiting = {} end

function claim_park.park(l, entry)
    if claim_park.is_empty(l) and not l.placed then
        waiting[#waiting + 1] = l
        l.placed = true
    end
    claim_park.count_key(l)
    if l.s.limited then grant.cost(l.s, entry) end -- it notes who names a cost
    if l.parked == grant.NONE then l.parked = {} end
    l.parked[#l.parked + 1] = entry
end

-- Finds their places for the lanes that were empty, in the order in which their first jobs came.
function claim_park.place()
    local lanes = waiting
    waiting = {}
    for _, l in ipairs(lanes) do
        registry.add(l.s.queue)
        l.placed = false
        wait.place_lane(l.s, l, claim.next_ticket())
    end
end

-- A lane that is not sorted has its turn: its jobs go to the lanes of their keys, a few at a time.
function claim_park.sort_again(s, l)
    for _ = 1, 100 do
        if claim_park.is_sorted(s, l, 100) then break end
        local entry = grant.head(l, 1)
        grant.drop_head(l)
        claim_park.park(grant.lane(s, claim_park.key_of(s, entry)), entry)
        claim.budget = claim.budget - 1
    end
    wait.write_ring(s)
    claim_park.place()
    if grant.is_over(l) then wait.end_lane(s, l) else wait.go_behind(s, l) end
end

return claim_park

-- claim_park: the lane of a job, and jobs that go to the tail of theirs.
--
-- uses: body claim_call claim_meet claim_ring claim_wait registry
local claim_park = {}

local claim, meet, ring, wait = claim_call, claim_meet, claim_ring, claim_wait

-- Returns the key of a job of type s.
function claim_park.key_of(s, entry)
    return s.keyed and body.key(entry, s.type.path) or ''
end

-- Counts a job that has come to its lane, or starts from it, if it has no key.
function claim_park.count_key(l)
    local s = l.s
    if l.key == '-' and s.keyed then claim.count(s, 'keyless') end
end

-- True when the first job of a lane stands in the lane of its key. It does not when it came before its type had keys, or when they were found by
-- another path.
function claim_park.is_sorted(s, l, ahead)
    if not s.keyed then return true end
    if l.key ~= '' and not s.resorts then return true end
    local entry = meet.head(l, ahead)
    return not entry or body.key(entry, s.type.path) == l.key
end

-- True when this claim has leased all that is in the lane.
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
    if l.s.limited then meet.cost(l.s, entry) end -- it notes who names a cost
    if l.parked == claim.NONE then l.parked = {} end
    l.parked[#l.parked + 1] = entry
end

-- Finds places for the lanes that were empty, in the order in which their first jobs came.
function claim_park.place()
    local lanes = waiting
    waiting = {}
    for _, l in ipairs(lanes) do
        registry.add(l.s.queue)
        l.placed = false
        wait.place_lane(l.s, l, claim.next_ticket())
    end
end

-- Moves jobs of a lane that is not sorted, whose turn it is, to the lanes of their keys, a few at a time.
function claim_park.sort_again(s, l)
    for _ = 1, 100 do
        if claim_park.is_sorted(s, l, 100) then break end
        local entry = meet.head(l, 1)
        meet.drop(l, 1)
        claim_park.park(meet.lane(s, claim_park.key_of(s, entry)), entry)
        claim.budget = claim.budget - 1
    end
    ring.write(s)
    claim_park.place()
    if meet.is_over(l) then ring.finish(s, l) else ring.go_behind(s, l) end
end

return claim_park

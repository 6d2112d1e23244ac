-- claim_ring: the lanes of a type whose key gates are open, least recently served first: whose turn is it? A lane among others starts one
-- job in a turn, or as many as the weight of its key says, and goes behind them.
--
--   ring:<queue>/<type>    sorted set: key -> ticket
--   credit:<queue>/<type>  hash: key -> starts that it has had of its weight in this round
--   weights                hash: <limit>/<key> -> weight
--
-- A round reads the first lanes of a ring once. What becomes of each is noted, and written for all at once.
--
-- uses: check claim_call claim_meet
local claim_ring = {}

local claim, meet = claim_call, claim_meet

local ROUND_MOST = 64 -- lanes that are read at once

-- Counts the lanes in the ring of s.
function claim_ring.members(s)
    s.members = s.members or call('ZCARD', s.ring)
    return s.members
end

-- Lets a lane join the ring.
function claim_ring.join(s, l, ticket)
    local others = claim_ring.members(s)
    call('ZADD', s.ring, us(ticket), l.key)
    s.members = others + 1
    if claim.round.of == s then claim.round.staying = claim.round.staying + 1 end
end

-- ---- A round

-- Begins a round over the first lanes of the ring; most: so many may start.
function claim_ring.open(s, most)
    local n = min(most, ROUND_MOST) + 1
    if s.keyed then n = min(n, ceil(max(0, claim.budget) / (claim.LANE + 1)) + 1) end -- lanes to which it would not come are not read
    claim.begin_round(s, call('ZRANGE', s.ring, '0', digits(n - 1)), n)
end

-- Returns the next lane of the round, and whether the ring has others; nil: there is none.
function claim_ring.next_lane(s)
    local round = claim.round
    local i = round.at
    if i > #round.keys then return nil end
    round.at = i + 1
    return meet.lane(s, round.keys[i]), not round.whole or round.staying > 0 or i < #round.keys
end

-- Returns since when a lane is in its ring. Few are asked: Redis writes a score with all its digits, which takes as long as reading a job.
function claim_ring.ticket(s, l) return tonumber(call('ZSCORE', s.ring, l.key)) end

function claim_ring.leave(s, l)
    local leaving = claim.round.leaving
    leaving[#leaving + 1] = l.key
end

function claim_ring.stay(s) claim.round.staying = claim.round.staying + 1 end

function claim_ring.go_behind(s, l)
    local round = claim.round
    local behind = round.behind
    behind[#behind + 1] = us(claim.next_ticket())
    behind[#behind + 1] = l.key
    round.staying = round.staying + 1
end

-- Writes what has become of the lanes so far.
function claim_ring.write(s)
    local round = claim.round
    s.members = nil
    if #round.behind > 0 then
        push('ZADD', s.ring, round.behind)
        round.behind = {}
    end
    if #round.leaving > 0 then
        push('ZREM', s.ring, round.leaving)
        round.leaving = {}
    end
end

-- Ends the round; returns whether the ring is empty now, and whether it has lanes that were not in this round.
function claim_ring.close(s)
    claim_ring.write(s)
    local round = claim.round
    local seen = round.at > #round.keys
    if seen and round.staying == 0 then s.members = round.whole and 0 or call('ZCARD', s.ring) end
    return s.members == 0, seen and not round.whole
end

-- ---- Shares

-- Names the ring, "<queue>/<type>".
local function path_of(s) return s.lane_head:sub(1, -2) end

-- Returns how many starts of its share a key has had in this round.
local function credit(s, key)
    local path = path_of(s)
    local had = call_safe('HGET', P .. 'credit:' .. path, key)
    if type(had) == 'table' then claim.note_fault(check.wrong_kind('credit:' .. path, 'hash')) end
    return type(had) == 'string' and tonumber(had) or 0
end

-- Returns how many starts a key has in a round among others, and how many it has had.
function claim_ring.share(s, key)
    local most, weighted = 1, s.type.weighted
    for i = 1, #weighted do
        local found = call_safe('HGET', P .. 'weights', weighted[i] .. '/' .. key)
        if type(found) == 'table' then claim.note_fault(check.wrong_kind('weights', 'hash')) end
        most = max(most, type(found) == 'string' and tonumber(found) or 1)
    end
    if most == 1 then return 1, 0 end
    return most, min(credit(s, key), most - 1)
end

-- Counts n more starts of a lane among others. Returns whether a part of its share is left: then it keeps its place. Where it has had all, or
-- nothing can be remembered, it goes behind the others.
function claim_ring.use_share(s, l, n, share, had)
    if had + n < share then return type(call_safe('HINCRBY', P .. 'credit:' .. path_of(s), l.key, n)) == 'number' end
    if had > 0 then call_safe('HDEL', P .. 'credit:' .. path_of(s), l.key) end
    return false
end

-- Takes a lane out that has no job left. What its key had of its share is forgotten.
function claim_ring.finish(s, l)
    l.gone = true
    claim_ring.leave(s, l)
    if #s.type.weighted > 0 then call_safe('HDEL', P .. 'credit:' .. path_of(s), l.key) end
end

return claim_ring

-- claim_causes: what the answer says of how jobs came to start: what let them, and which slots nobody had taken before. Workers count it; nothing
-- else depends on it. doc/design-operations.md says what it means.
--
-- What let a job start is a letter:
--   Q  it came from the queue, where it waited for a claim only
--   K  the gate of its key opened, at which its lane slept until this claim
--   C, P, A  the gate opened at which its type waited: of a rule that counts jobs in flight; paused until then; any other
--   E  it waited in a lane, and the gate at which its type waited had lost slots, or there was none: only a claim was missing
--
-- uses: claim_call gate
local claim_causes = {}

local claim = claim_call

local ONE = 1000 -- thousandths of a slot

local cause              -- of what starts now
local run, count, runs   -- the cause of the last leases, how many they are; those before them as text
local at_gate            -- the cause of types at the gate that is visited
local woken              -- lanes that slept until this claim, a set; nil: none did
local held               -- types that were held until this claim, a set; nil: none were

function claim_causes.begin()
    cause, run, count, runs, woken, held = 'Q', 'Q', 0, '', nil, nil
end

-- Notes that the jobs come from the queue.
function claim_causes.from_queue() cause = 'Q' end

local function gate_of(s, name)
    for i = 1, #s.gates do
        if s.gates[i].name == name then return s.gates[i] end
    end
end

local function cause_at(s, name)
    local e = gate_of(s, name)
    if e and e.base then
        if e.base.in_flight then return 'C' end
        if e.was_paused then return 'P' end
        return gate.lost(e) < ONE and 'A' or 'E'
    end
    return find(name, '#pause', 1, true) and 'P' or 'E'
end

-- Notes that the jobs come from type s, which has its turn at the gate that is visited.
function claim_causes.from_gate(s) at_gate = cause_at(s, claim.visit.gate) end

-- Notes that the jobs come from this lane.
function claim_causes.from_lane(l) cause = woken and woken[l] and 'K' or at_gate end

function claim_causes.wake(l)
    woken = woken or {}
    woken[l] = true
end

function claim_causes.take_back(name)
    held = held or {}
    held[name] = true
end

-- Notes that n jobs were leased.
function claim_causes.lease(n)
    if cause ~= run then
        if count > 0 then runs = runs .. run .. digits(count) end
        run, count = cause, 0
    end
    count = count + n
end

-- Notes the first job of s, which has limits, as it is about to be leased.
function claim_causes.first(s, lease)
    s.first, s.cause, s.came_from = lease, cause, cause ~= 'Q' and claim.visit.gate or nil
end

-- Returns the cause of each run of leases and how many they are: 'Q3A10K2'. '': all came from the queue.
function claim_causes.text()
    if runs == '' and (run == 'Q' or count == 0) then return '' end
    return runs .. run .. digits(count)
end

-- ---- Slots that were lost

local function limit_of(gate_name) return match(gate_name, '^[^#]+') end

-- Says why slots of a limit were lost before s took some. q: jobs came from the queue, w: they waited at its gate; h: something else held them; l:
-- jobs in flight did.
local function why(s, limit)
    if held and held[s.name] then return 'h' end
    if s.cause == 'Q' then return 'q' end
    if s.cause == 'C' then return 'l' end
    if s.cause == 'K' or s.cause == 'P' then return 'h' end
    local at = limit_of(s.came_from)
    return (at == limit or at == '-') and 'w' or 'h'
end

local list, seen -- of lost(): what it returns, and a set of the limits in it

-- Adds slots that a limit has lost, unless another type has said so.
local function add(s, limit, lost, since)
    if not seen then list, seen = {}, {} end
    if lost == 0 or seen[limit] then return end
    seen[limit] = true
    list[#list + 1] = format('%s %d %d %s %d', limit, lost, since, why(s, limit), s.first)
end

-- Adds what the limits of s have lost. A limit loses a slot only where all of its gates for all keys lose one.
local function add_least(s)
    local least, since = {}, {}
    for i = 1, #s.gates do
        local e = s.gates[i]
        if e.base and not e.base.in_flight then
            local limit, lost, from = limit_of(e.name), gate.lost(e)
            if lost < (least[limit] or huge) then least[limit], since[limit] = lost, from end
        end
    end
    for limit, lost in pairs(least) do add(s, limit, lost, since[limit]) end
end

local function add_lost(s)
    local e, n, limits = s.gates[1], #s.gates, s.type.limits
    if n == 0 then return end
    if n > 1 or #limits > 1 then return add_least(s) end
    if not e.base or e.base.in_flight then return end
    local lost, since = gate.lost(e)
    if lost > 0 then add(s, limits[1], lost, since) end
end

-- Lists what was lost, 'limit thousandths since why lease' each: how many thousandths of slots, since when, why, and the lease of the first job
-- that took a slot again.
function claim_causes.lost()
    list, seen = claim.NONE, nil
    for i = 1, #claim.order do
        local s = claim.order[i]
        if s.first then add_lost(s) end
    end
    return list
end

return claim_causes

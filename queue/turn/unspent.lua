-- unspent: slots that a leased job has taken and that nobody has spent go back to its gates.
--
--   unspent.taken(job)               what a job has taken, as cost.lua has it; job.entry is needed where a rule of its type counts slots by name
--   unspent.give(job, gates, spent)  gives back to its gates what it has taken above what it cost in truth; spent nil: all of it
--   unspent.give_named(job)          gives back what rules took that count slots by name
--   unspent.give_all(jobs)           gives back all that those took that have not started (unstarted: their slot)
--
-- uses: cost gate lease types wake
local unspent = {}

-- The token says the plain slots; the body and the type say the others: the digest in the token tells whether the type still says the same.
function unspent.taken(job)
    local kind, slots = types.load(job.type), lease.cost_of(job.token)
    return kind.named and cost.over(slots, (types.job_cost(kind, job.entry))) or slots
end

-- Nothing goes back to rules that did not hold it when it was granted, nor of a slot farther ahead
-- than any is granted: the clock was set back since, and the slot counts no more. What waits at the gate of a key is listed only if jobs of its
-- type are known to give back, and other types may wait at the gates of a limit that they share.
function unspent.give(job, gates, spent)
    local kind, slot = types.load(job.type), lease.slot_of(job.token)
    local _, _, owns = types.keyed(kind, job.key)
    if lease.rules_of(job.token) ~= types.digest(kind, owns) or slot > now + gate.AHEAD_MOST then return end
    local took = unspent.taken(job)
    for _, e in ipairs(gates) do
        local slots = gate.needs(e, took) - (spent and gate.needs(e, spent) or 0)
        if slots > 0 then
            gate.give(e, slot, slots)
            local listed = not e.base.by or kind.spends and find(e.name, job.type .. '#', 1, true) == 1
            if not listed then wake.list_at(job.queue, e.name) end
            wake.list_lines_at(e.name)
            wake.opened(e.name)
        end
    end
end

function unspent.give_named(job)
    local named = {}
    for _, e in ipairs(types.load(job.type).named and types.gates(job.type, job.key) or {}) do
        if e.base.of and not e.base.of_jobs then named[#named + 1] = e end
    end
    unspent.give(job, named)
end

local function later_slot_first(a, b) return a.unstarted > b.unstarted end

-- Gives back what leased jobs took that have not started (unstarted: their slot), the last one first: what nobody took after it comes back whole.
-- Where a key holds something else than a gate, the slots of its job stay used.
function unspent.give_all(jobs)
    local unstarted = {}
    for _, job in ipairs(jobs) do
        if job.unstarted and not types.wrong(job.type, job.key) then unstarted[#unstarted + 1] = job end
    end
    sort(unstarted, later_slot_first)
    for _, job in ipairs(unstarted) do unspent.give(job, types.gates(job.type, job.key)) end
end

return unspent

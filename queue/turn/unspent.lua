-- unspent: slots that a leased job has taken and that nobody has spent go back to its gates.
--
-- uses: gate lease types wake
local unspent = {}

-- Gives back to its gates what a job has taken above what it cost in truth (spent; nil: it has not started). Nothing goes back to rules that did not hold it when it was granted, nor of a slot farther ahead
-- than any is granted: the clock was set back since, and the slot counts no more. What waits at the gate of a key is listed only if jobs of its
-- type are known to give back, and other types may wait at the gates of a limit that they share.
function unspent.give(job, gates, spent)
    local kind, slot, cost = types.load(job.type), lease.slot_of(job.token), lease.cost_of(job.token)
    local _, _, owns = types.keyed(kind, job.key)
    if lease.rules_of(job.token) ~= types.digest(kind, owns) or slot > now + gate.AHEAD_MOST then return end
    for _, e in ipairs(gates) do
        local slots = gate.needs(e, cost) - (spent and gate.needs(e, spent) or 0)
        if slots > 0 then
            gate.give(e, slot, slots)
            local listed = not e.base.by or kind.spends and find(e.name, job.type .. '#', 1, true) == 1
            if not listed then wake.list_at(job.queue, e.name) end
            wake.list_lines_at(e.name)
            wake.opened(e.name)
        end
    end
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

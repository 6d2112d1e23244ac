-- claim: the heart of a turn. First every key is read and every decision made, then all is written: a script that fails
-- while it reads has changed nothing.
--
-- For each queue, in order: the types that are due are served from their lanes; then jobs are looked at from the head of
-- the queue and each takes its slot: granted, it is leased to this worker; denied, it is parked in its lane until the
-- gate opens; of a type that this worker cannot run, it is parked and the type held. While a queue holds jobs, its lanes
-- get half of the executors.
--
-- KEYS[1] prefix
-- ARGV: now, worker, group, turn,
--       free         idle executors: a job with a limit is granted against one of them only
--       prefetch     jobs without a limit that may be leased beyond those
--       look         how many jobs of a queue to read at first (the worker knows how large they are)
--       duty_until   until when this worker holds the pacing duty of its group, us; 0: it does not
--       options      letters: h look at held types, d unknown types are dead, m mark the rates of this second
--       n, queue * n, type * the rest (the types that this worker can run)
-- reply: [ now, next, later, duty_until, more (0/1), [token, entry, ...], [type, rule, ...],
--          [type that was set aside, ...], [limit whose rule cannot be read, ...] ]
--        next: when a gate opens for what is parked, later: when a scheduled job is due; -1: never
--        more: there was more than could be taken
--
-- claim_call.lua   the arguments, and what is decided while it runs
-- claim_grant.lua  types and their gates; leasing one job
-- claim_lanes.lua  serving the types that are due
-- claim_queue.lua  looking at the jobs of a queue
-- claim_commit.lua writing it all
-- claim_duty.lua   when the next look is, and whose
--
-- uses: core/base.lua core/now.lua core/bell.lua throttle/gate.lua queue/check.lua queue/lease.lua queue/lane.lua queue/claim_call.lua queue/claim_grant.lua queue/claim_lanes.lua queue/claim_queue.lua queue/claim_commit.lua queue/claim_duty.lua

-- Serves one queue; returns how many jobs leave it and when the first untouched type in wake is due.
local function serve_queue(queue)
    local due, after = due_types(queue)
    local jobs = free + prefetch > 0 and call('LRANGE', P .. 'queue:' .. queue, 0, look - 1) or {}
    if #due > 0 then
        local kept, kept_prefetch = 0, 0 -- for what stands in the queue
        if #jobs > 0 then
            kept = free == 1 and turn % 2 or floor(free / 2)
            kept_prefetch = floor(prefetch / 2)
        end
        free, prefetch = free - kept, prefetch - kept_prefetch
        serve_due(due)
        free, prefetch = free + kept, prefetch + kept_prefetch
    end
    local used = #jobs > 0 and read_queue(queue, jobs) or 0
    if #due > 0 and free + prefetch > 0 then serve_due(due) end
    return used, after
end

if options:find('h', 1, true) then
    for _, queue in ipairs(queues) do take_back(queue) end
end
local used, after = {}, {}
for _, queue in ipairs(queues) do
    states[queue] = {}
    used[queue], after[queue] = serve_queue(queue)
end
wrong = wrong_keys()
if wrong then return refuse_key(wrong) end
commit(used)
local at, later, news = next_times(after)
duty(news)
local function or_never(time) return time < math.huge and time or -1 end
return {now, or_never(at), or_never(later), duty_until, more, leases, rules, aside, broken}

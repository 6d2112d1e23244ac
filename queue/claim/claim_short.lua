-- claim_short: the claim that comes for a job which came alone. When a worker on duty has executors to spare, nothing waits in lanes, is
-- held, halted or to run alone, and the few jobs in the queue are its own and have no limit, the phases of a claim come to nothing but
-- this: those jobs start. So little is asked as shows that, and little is touched: between two such claims the processor forgets, and
-- then what counts is how much there is to remember.
--
-- It is no second set of rules: what a claim does about anything else stands in the long way only, which is taken then.
--
-- uses: body claim_call claim_commit claim_duty claim_faults claim_start later_records partition past types
local claim_short = {}

local claim = claim_call

local TYPE = body.TYPE
local FEW = 2                 -- jobs; one more is read than are started, no more than a claim reads at first
local PREFETCH_MOST = 16      -- a worker that prefetches more finds long queues
local BODY_MOST = 1024 * 1024 -- JOB_BODY_MAX of queue/job/job.h

-- Do the arguments, and what was asked first, leave nothing else to do?
local function is_common()
    return not claim.halts and not claim.suspects and #claim.queues == 1 and claim.prefetch <= PREFETCH_MOST and claim.free > FEW
        and claim.chunk > FEW and not find(claim.options, '[^abde]') and not claim.lacks_far() and claim_duty.stays()
        and not claim_faults.are_known()
end

-- Does no type, and so no lane, of that queue wait at a gate or is held?
local function nothing_waits(queue) return call('EXISTS', P .. 'wake:' .. queue, P .. 'held:' .. queue) == 0 end

-- The type of a job that needs no gate; nil: it has a head, was not written by Weir's producers, is too large, of another worker's type
-- or partition, or limited.
local function free_type(entry)
    local name = #entry <= BODY_MOST and match(entry, TYPE)
    return name and claim.mine[name] and not types.load(name).limited and not partition.elsewhere(name) and name or nil
end

-- Leases those jobs, of these types.
local function start(queue, jobs, names)
    local leases = {}
    for i = 1, #jobs do
        leases[2 * i - 1], leases[2 * i] = claim_start.token(i, '/' .. queue .. '/' .. names[i] .. '/'), jobs[i]
    end
    claim_commit.write_leases(leases)
    call('LTRIM', P .. 'queue:' .. queue, digits(#jobs), '-1')
    for i = 1, #jobs do claim_commit.count_new(names[i], 'pulled', 1) end
    past.mark()
    return leases
end

-- The reply of a claim; nil: nothing was changed, and the long way is needed. It fails before it has changed anything.
function claim_short.reply()
    local queue = claim.queues[1]
    if not is_common() or not nothing_waits(queue) then return nil end
    local jobs, names, none = call('LRANGE', P .. 'queue:' .. queue, '0', digits(FEW)), {}, claim.NONE
    if #jobs > FEW then return nil end
    for i = 1, #jobs do
        names[i] = free_type(jobs[i])
        if not names[i] then return nil end
    end
    local leases = #jobs > 0 and start(queue, jobs, names) or none
    local later = later_records.first()
    return {now, -1, later and max(later, 1) or -1, claim.duty_until, 0, leases, none, none, none, none, none, 0, -1, 0, none}
end

return claim_short

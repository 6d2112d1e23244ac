-- claim_short: the claim that comes for a job which came alone. When a worker on duty has executors to spare, nothing waits in lanes, is
-- held, halted or to run alone, and the one or two jobs in the queue are its own and have no limit, the phases of a claim come to nothing but
-- this: those jobs start. Between two such claims the processor forgets, so what counts is how much a call touches: few commands,
-- functions and tables.
--
-- Likewise a worker off duty that polls finds nothing, mostly: then that is all that it is answered.
--
-- It is no second set of rules: it only knows when nothing else can matter. What it does not know for sure, the long way looks at.
--
-- uses: body claim_call claim_commit claim_crowd claim_duty claim_start gate later_records partition past types
local claim_short = {}

local TYPE, STAMPED_TYPE, NEAR = body.TYPE, body.STAMPED_TYPE, gate.AHEAD

local FEW = 2                 -- jobs; one more is read than are started, no more than a claim reads at first
local PREFETCH_MOST = 16      -- a worker that prefetches more finds long queues
local BODY_MOST = 1024 * 1024 -- JOB_BODY_MAX of queue/job/job.h

-- Is the duty to be left as it is? A claim that stands leaves it to turns: it may be older than the one that has renewed it.
local function leaves_duty(until_us, options)
    if until_us == 0 then return true end
    return find(options, 's', 1, true) and claim_duty.is_held(until_us) or claim_duty.stays(until_us)
end

-- Do the arguments ask for nothing that matters only here and there? See claim.lua for them. What is wrong with them fails, or is looked at
-- by the long way.
local function asks_little(ARGV, prefetch, duty_until)
    return ARGV[13] == '1' and is_name(ARGV[14]) and not find(ARGV[4], '%D') and not find(ARGV[11], '[^abdems]')
        and tonumber(ARGV[5]) > FEW and prefetch <= PREFETCH_MOST and tonumber(ARGV[7]) > FEW
        and (tonumber(ARGV[10]) > 0 or tonumber(ARGV[9]) <= NEAR) and leaves_duty(duty_until, ARGV[11])
end

-- May so many jobs start with nothing else to be done? The worker is on duty and marks no rates; or none starts, and the duty is others'.
local function may_start(count, ARGV, on_duty)
    if count > 0 then return on_duty and not find(ARGV[11], 'm', 1, true) end
    return on_duty or claim_duty.is_of_others(ARGV[3], ARGV[2])
end

local keys, keys_of, keys_queue -- what must not be there, of that prefix and queue: a text that is joined anew costs as much as it is asked for

local function list_keys(queue)
    keys_of, keys_queue = P, queue
    keys = {P .. 'alone', P .. 'halted', P .. 'cancelled', P .. 'format:' .. FORMAT_NEWEST + 1, P .. 'wake:' .. queue, P .. 'held:' .. queue,
            P .. 'later'}
end

-- Is the worker registered, and is nothing to run alone, paused, cancelled, of a newer format, and does no type of the queue wait at a gate or
-- is held? Then no lane has jobs. Returns too when the first job of `later` is due; -1: there is none. A key that is named n times counts n
-- times: from eight on the worker is there, and nine may be `later` too.
local function is_quiet(worker, queue)
    if keys_of ~= P or keys_queue ~= queue then list_keys(queue) end
    local active = P .. 'active:' .. worker
    local found = call('EXISTS', active, active, active, active, active, active, active, active, unpack(keys))
    if found == 8 then return true, -1 end
    local later = found == 9 and later_records.first()
    return later, later and max(later, 1)
end

-- The type of a job that needs no gate; nil: its head says more than when it was enqueued, it was not written by Weir's producers, is too large, of another worker's type
-- or partition, or limited.
local function free_type(entry, ARGV)
    local name = #entry <= BODY_MOST and (match(entry, STAMPED_TYPE) or match(entry, TYPE))
    return name and claim_call.names(ARGV, 15, name) and not types.is_limited(name) and not partition.elsewhere(name) and name or nil
end

-- The reply of a claim; nil: nothing was changed, and the long way is needed. It fails before it has changed anything.
function claim_short.reply(ARGV)
    local worker, queue, prefetch, duty_until = ARGV[2], ARGV[14], tonumber(ARGV[6]), tonumber(ARGV[8])
    if not asks_little(ARGV, prefetch, duty_until) then return nil end
    local quiet, later = is_quiet(worker, queue)
    local jobs = quiet and call('LRANGE', P .. 'queue:' .. queue, '0', digits(FEW))
    if not jobs or #jobs > FEW or not may_start(#jobs, ARGV, duty_until > 0) then return nil end
    local names, leases, reply = {}, {}, {now, later, duty_until, claim_crowd.count(worker, prefetch)}
    for i = 1, #jobs do
        names[i] = free_type(jobs[i], ARGV)
        if not names[i] then return nil end
        local token = claim_start.token(ARGV[4], i) .. '/' .. queue .. '/' .. names[i] .. '/'
        leases[2 * i - 1], leases[2 * i] = token, jobs[i]
        reply[2 * i + 3], reply[2 * i + 4] = token, jobs[i]
    end
    if #jobs > 0 then
        claim_commit.write_leases(worker, leases)
        call('LTRIM', P .. 'queue:' .. queue, digits(#jobs), '-1')
        for i = 1, #jobs do claim_commit.count_new(names[i], 'pulled', 1) end
        past.mark(true)
    end
    return reply
end

return claim_short

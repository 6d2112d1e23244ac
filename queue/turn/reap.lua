-- reap: the heartbeat of a worker, and what every heartbeat does for all: the leases of workers past their deadline (their score in `workers`;
-- leases.lua has the amnesty) go back to the head of their lanes. A job whose handler ran in that worker may have killed it: it is a suspect, whose
-- interruptions ends.worker_died counts until it is dead. It goes to a lane of suspects (claim_alone), to the tail if it was one before. Of the dead
-- jobs some of the oldest are forgotten where they are too many or too old. So are marks of cancelled jobs that are nowhere, and queues
-- that nobody needs; holds whose end has come give back what they took. What is done for all is left out where another heartbeat has just done it.
--
-- ARGV: now, worker, lease_us, interrupted_most, dead_most, dead_age_us (with which the worker was started; 0: with none), group,
--       'quiet' if it takes no more jobs and stays, whoever told it so; else ''
-- role: worker
-- reply: [ now, number of leases taken back, dead jobs that were forgotten,
--          one number of what is left to the next calls (dead jobs to be forgotten, leases, queues to be woken at gates that have
--          opened, what follows a clock that was set back, jobs aside whose batch is paused no more),
--     5    [worker of which none is left, ...], [what is wrong with a key, ...],
--     7    [bounds of the dead jobs: most, age_us, bytes; or none], that Redis went back (see data_loss) or '',
--     9    what an operator orders: "quiet", "resume", "stop" or "",
--    10    how many workers are registered, when any limit or type was changed last ('': nobody can say; see rate_known),
--    12    1 where two others of the group look after its queues (duty), else 0,
--    13    [id ('': unknown), type, attempt, "dead", "interrupted" or "", ... of each job that was taken back] ]
--        The heartbeat counts whatever else fails: leases that a key of another kind keeps stay where they are.
-- format: any
-- uses: bell body cancelled check clock counters data_loss dead_bounds duty ends gate heads holds key_ends lane lane_names lease leases memory orders reasons registry revisions runs slices type_lists wake

local WORKERS_MOST = 8 -- reaped in one call; the next ones at the next heartbeat
local MARKS = 100      -- looked at in one call, about
local SWEEP_US = 1000000 -- so long what was done for all need not be done again; at most an eighth of a lease

local swept_us, swept_of -- when it was done last, and nothing was left; for which prefix

local function is_swept(lease_us)
    return not VIRTUAL and swept_of == P and swept_us <= now and now - swept_us < min(SWEEP_US, lease_us / 8)
end

-- Forgets a page of the marks. Returns where the next page begins, '': anew.
local function forget_marks(from)
    local page = call_safe('HSCAN', P .. 'cancelled', from ~= '' and from or '0', 'COUNT', digits(MARKS))
    if page.err then return '' end
    local old = {}
    for i = 1, #page[2], 2 do
        if cancelled.is_stale(page[2][i + 1]) then old[#old + 1] = page[2][i] end
    end
    push('HDEL', P .. 'cancelled', old)
    return page[1] ~= '0' and page[1] or ''
end

-- Marks the jobs that may have ended a worker: they are suspects, and go back as such.
local function suspect(id, jobs)
    local info = registry.info(id)
    local inside, list = registry.inside_text(info), type_lists.all(info)
    for _, job in ipairs(jobs) do
        job.suspect = not inside or find(inside, '"' .. (type_lists.word(list, job.type) or job.type) .. '"', 1, true) ~= nil
        if job.suspect then job.lane = lane_names.alone(job.lane) end
    end
end

-- Says what is wrong with the keys that jobs need which are to be taken back; nil: nothing.
local function wrong_keys(jobs, unread, interrupted_most)
    local buries = #unread > 0
    for _, job in ipairs(jobs) do buries = buries or job.suspect and ends.is_last(job, interrupted_most) end
    return lane.wrong_back(jobs) or buries and check.wrong_kind('dead', 'zset') or nil
end

-- Notes for the log who took a job back.
local function note(noted, job, word)
    local _, at = heads.attrs_of(job.entry)
    local id, n = body.id(job.entry, at), #noted
    noted[n + 1], noted[n + 2] = is_name(id) and id or '', job.type
    noted[n + 3], noted[n + 4] = us((match(job.entry, '^@(%d+),') or 0) + 1), word
end

-- Takes jobs back. count: so many the worker had, these among them.
local function take_back(id, jobs, unread, interrupted_most, count, noted)
    local back, behind, dead, queues = {}, {}, {}, {}
    for _, job in ipairs(cancelled.end_among(jobs)) do
        local list = back
        if job.suspect then
            list = (job.alone or heads.together(job.entry)) and behind or back -- the others of its last group come first
            job.tag = id .. ':' .. lease.token_head(job.token)
            if not ends.worker_died(job, interrupted_most, count) then list = dead end
        end
        list[#list + 1] = job
        note(noted, job, list == dead and 'dead' or job.suspect and 'interrupted' or '')
    end
    for _, job in ipairs(jobs) do wake.release(job.token) end
    counters.add_all(jobs, 'reaped')
    counters.add_all(back, 'back')
    counters.add_all(behind, 'back')
    ends.bury_all(dead)
    ends.bury_unread(id, unread)
    lane.put_all_back(back, queues)
    lane.put_all_behind(behind, queues)
    bell.ring_all(queues)
end

-- Takes back about most of a worker's leases, as far as their bodies fit. Returns how many, and how many are left to the next call; or what is
-- wrong with a key that keeps them.
local function reap_one(id, most, load, interrupted_most, noted)
    local wrong = check.wrong_kind('active:' .. id, 'hash')
    if wrong then return 0, 0, wrong end
    local jobs, unread, left = leases.read(id, most, load)
    suspect(id, jobs)
    wrong = wrong_keys(jobs, unread, interrupted_most)
    if wrong then return 0, 0, wrong end
    take_back(id, jobs, unread, interrupted_most, #jobs + #unread + left, noted)
    leases.drop(id, left, jobs, unread)
    return #jobs + #unread, left
end

-- Reaps workers that are late. One whose leases are kept goes behind all others: however many such there are, they keep nobody waiting for long.
local function reap_late(interrupted_most, reply)
    local load = slices.load()
    for _, id in ipairs(call('ZRANGEBYSCORE', P .. 'workers', '-inf', us(now), 'LIMIT', 0, WORKERS_MOST)) do
        if reply[2] >= leases.MOST or slices.is_full(load) then
            reply[4] = reply[4] + 1 -- at least
            return
        end
        local ok, taken, left, wrong = pcall(reap_one, id, leases.MOST - reply[2], load, interrupted_most, reply[13])
        if not ok then taken, left, wrong = 0, 0, 'worker ' .. id .. ': ' .. (type(taken) == 'table' and taken.err or taken) end
        reply[2], reply[4] = reply[2] + taken, reply[4] + left
        if wrong then
            call('ZADD', P .. 'workers', us(now), id)
            reply[6][#reply[6] + 1] = wrong
        elseif left == 0 then
            reply[5][#reply[5] + 1] = id
        end
    end
end

-- Beats for the worker. Returns whether workers that are late may be reaped, and what is wrong with the key that says so.
local function beat(worker, lease_us, swept)
    local wrong, till, from = check.wrong_kind('reap', 'string'), nil, nil
    if not wrong then till, from = leases.follow(lease_us) end
    call('ZADD', P .. 'workers', us(now + lease_us), worker)
    if wrong then return false, wrong end
    leases.heard(till, swept and from or forget_marks(from))
    return now >= till
end

-- Bounds the dead jobs, the last thing that is done for all. It is noted where nothing is left.
local function bound_dead(dead_most, dead_age_us, reply)
    local forgotten, excess, bounds = dead_bounds.follow(dead_most, dead_age_us)
    reply[3], reply[4], reply[7] = forgotten, reply[4] + excess, bounds
    if reply[4] == 0 and not reply[6][1] then swept_us, swept_of = now, P end
end

local function reap(ARGV)
    local worker, lease_us, interrupted_most = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
    local dead_most, dead_age_us = tonumber(ARGV[5]), tonumber(ARGV[6])
    if not worker or not is_whole(lease_us, 1) or not is_whole(interrupted_most, 1) or not is_whole(dead_most)
        or not is_whole(dead_age_us) then
        return refuse('reap: wrong arguments')
    end
    if not call('ZSCORE', P .. 'workers', worker) then return refuse('unregistered: worker %s', worker) end

    local swept = is_swept(lease_us)
    local reaps, wrong = beat(worker, lease_us, swept)
    data_loss.mark()
    memory.note()
    local reply = {us(now), 0, 0, 0, {}, {wrong}, {}, [13] = {}}
    if not swept and not newer_format() then
        if reaps then reap_late(interrupted_most, reply) end
        holds.reap()
        key_ends.follow()
        gate.save()
    end
    local info = registry.info(worker)
    registry.follow(registry.words_in(info), not swept)
    runs.follow(type_lists.all(info).names, lease_us, not swept)
    reply[4] = reply[4] + (wake.all(not swept) and 1 or 0) + (clock.is_behind() and 1 or 0)
    if not swept then
        bell.forget()
        reply[4] = reply[4] + reasons.follow()
        bound_dead(dead_most, dead_age_us, reply)
    end
    reply[8] = data_loss.back()
    reply[9] = orders.of(registry.instance(info), ARGV[8] == 'quiet')
    reply[10] = call('ZCARD', P .. 'workers')
    reply[11] = revisions.newest_safe()
    reply[12] = duty.is_of_others(ARGV[7] or '', worker) and 1 or 0
    return reply
end

return reap

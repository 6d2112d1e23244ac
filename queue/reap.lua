-- reap: the heartbeat of a worker, and what every heartbeat does for all: the leases of workers past their deadline go back
-- to the head of their lanes, each counted as interrupted; a job that was interrupted too often is dead. Of the dead jobs
-- some of the oldest are forgotten where they are too many or too old. Marks of jobs that were cancelled while they ran are
-- forgotten after a day.
--
-- KEYS[1] prefix
-- ARGV: now, worker, lease_us, interrupted_most, dead_most, dead_age_us
-- reply: [ now, number of leases taken back, dead jobs that were forgotten, what is left to the next calls: dead jobs to be
--          forgotten and leases, worker of which none is left, ... ]
--        or, when a key holds something else, its name: what needs it stays where it is, all else is done
-- uses: check dead_records ends gate lane lease leases

local WORKERS_MOST = 8 -- reaped in one call; the next ones at the next heartbeat
local MARKS = 100      -- looked at in one call, about
local MARK_US = 86400 * 1000000

-- A page of the marks: those of jobs whose end nobody told. Returns where the next page begins, '': anew.
local function forget_marks(from)
    local page = call_safe('HSCAN', P .. 'cancelled', from ~= '' and from or '0', 'COUNT', digits(MARKS))
    if page.err then return '' end
    local old = {}
    for i = 1, #page[2], 2 do
        local since = tonumber(page[2][i + 1]:match('^running (%d+)$'))
        if since and now - since > MARK_US then old[#old + 1] = page[2][i] end
    end
    push('HDEL', P .. 'cancelled', old)
    return page[1] ~= '0' and page[1] or ''
end

local function wrong_keys(jobs)
    local wrong = check.wrong_kind('dead', 'zset')
    for _, job in ipairs(jobs) do wrong = wrong or lane.wrong(job.lane) end
    return wrong
end

-- Takes back about most of a worker's leases. Returns how many, and how many are left; or nil and what is wrong with the keys that this
-- needs: then nothing was changed.
local function reap_one(id, most, interrupted_most)
    local wrong = check.wrong_kind('active:' .. id, 'hash')
    if wrong then return nil, wrong end
    local jobs, unread, left = leases.read(id, most)
    wrong = wrong_keys(jobs)
    if wrong then return nil, wrong end
    local back = {}
    for _, job in ipairs(jobs) do
        local tag = id .. ':' .. lease.token_head(job.token)
        if ends.interrupted(tag, job, interrupted_most, 'worker', '') then back[#back + 1] = job end
    end
    for _, job in ipairs(jobs) do lane.release(job.token) end
    ends.bury_unread(id, unread)
    lane.give_all_back(back)
    leases.drop(id, left, jobs, unread)
    return #jobs + #unread, left
end

local function reap(ARGV)
    local worker, lease_us, interrupted_most = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
    local dead_most, dead_age_us = tonumber(ARGV[5]), tonumber(ARGV[6])
    if not worker or not is_whole(lease_us, 1) or not is_whole(interrupted_most, 1) or not is_whole(dead_most)
        or not is_whole(dead_age_us) then
        return refuse('reap: wrong arguments')
    end
    if not call('ZSCORE', P .. 'workers', worker) then return refuse('unregistered: worker %s', worker) end

    local till, from = leases.follow(lease_us)
    call('ZADD', P .. 'workers', us(now + lease_us), worker)
    leases.heard(till, forget_marks(from))
    local reply, first_wrong = {us(now), 0, 0, 0}, nil
    local late = now >= till and call('ZRANGEBYSCORE', P .. 'workers', '-inf', us(now), 'LIMIT', 0, WORKERS_MOST) or {}
    for _, id in ipairs(late) do
        if reply[2] >= leases.MOST then
            reply[4] = reply[4] + 1 -- at least
            break
        end
        local taken, left = reap_one(id, leases.MOST - reply[2], interrupted_most)
        if taken then
            reply[2], reply[4] = reply[2] + taken, reply[4] + left
            if left == 0 then reply[#reply + 1] = id end
        else
            first_wrong = first_wrong or left
        end
    end
    gate.save()
    if first_wrong then return check.refuse_key(first_wrong) end
    local forgotten, excess = dead_records.trim(dead_most, dead_age_us)
    reply[3], reply[4] = forgotten, reply[4] + excess
    return reply
end

return reap

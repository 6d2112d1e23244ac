-- adopt: a worker begins under a new id, after each connect, and takes over what it had under its old one: it keeps the jobs
-- that it still runs, the rest goes back to the head of its lanes. Without a new id it leaves: all goes back. About 40 jobs
-- go back in one call, and 500 of its types are read; as long as more are left it is called again with the same ids and without tokens. Where a key of another
-- kind keeps all of them, they stay under the old id, which is reaped when its time is over. Who begins is heard of, as by
-- a heartbeat: a clock that is set back before the first of these is noticed.
--
-- ARGV: now, new id or '', old id or '', group, lease_us, info (JSON about the worker), birth that the worker knows or '',
--       the last mark that it was answered (0: none), n, queue or pattern * n, token * the rest: what it still runs; and '-'
--       where it has called no handler for what it does not name: the answers to its claims were lost. That gives its slots back
-- role: worker
-- reply: [ now, how many are left (types that are left count one), birth, back, how many partitions, digest of its types for claims, how many workers there are, bell key, spare key, told key, n queue keys, token that is no longer its own, ... ]
--        birth and back: what Redis has lost, see data_loss. A number of partitions that it has lost is written again: info has it
-- format: any
-- uses: bell cancelled check counters data_loss ends gate lane lease leases partition pattern protocol runs slices time_budget type_lists unspent wake

local MOST = 40       -- jobs that one call gives back, about: 2 ms where each has a lane of its own
local AT_ONCE = 8     -- jobs that go back between two questions what the time is
local BACK_US = 1700  -- when no more go back

local UNHEARD = '-'

-- Reads all leases of the old id where some are kept, else as many as go back now.
local function read_leases(old, keeps)
    if keeps then return leases.read(old, huge) end
    return leases.read(old, MOST, slices.load())
end

-- Chooses the jobs that were granted last, of more than one call gives back; and how many others there are.
local function first_back(jobs)
    if #jobs <= MOST then return jobs, 0 end
    local tokens, chosen, back = {}, {}, {}
    for i, job in ipairs(jobs) do tokens[i] = job.token end
    for _, token in ipairs(leases.youngest(tokens, MOST)) do chosen[token] = true end
    for _, job in ipairs(jobs) do back[#back + 1] = chosen[job.token] and job or nil end
    return back, #jobs - #back
end

-- Sorts the leases of the old id: kept, back (those that go now), later (how many go by the next call), stay (all but the kept ones do), unread.
-- Those found leave running.
local function sort_out(jobs, unread, left, running)
    local found, able, later = {kept = {}, unread = unread}, {}, 0
    for _, job in ipairs(jobs) do
        if running[job.token] then
            found.kept[#found.kept + 1] = job
            running[job.token] = nil
        else
            able[#able + 1] = job
        end
    end
    found.back, later = first_back(able)
    found.later = left + later
    if lane.wrong_back(found.back) or #unread > 0 and check.wrong_kind('dead', 'zset') then
        found.back, found.unread, found.later, found.stay = {}, {}, 0, true
    end
    return found
end

-- Returns the cancelled jobs, of which the worker may not have heard under its old id.
local function cancelled_of(jobs)
    local tokens = {}
    for _, job in ipairs(jobs) do
        if cancelled.is_marked(job.entry) then tokens[#tokens + 1] = job.token end
    end
    return tokens
end

-- Gives jobs back, those granted last first, as each goes before the others. unheard: none has begun. Returns those that have gone.
local function give_back(jobs, unheard)
    local gone, queues = {}, {}
    lane.sort_by_grant(jobs)
    repeat
        local some, last = {}, #jobs - #gone
        for i = max(1, last - AT_ONCE + 1), last do
            local slot = unheard and lease.slot_of(jobs[i].token) or 0
            jobs[i].unstarted = slot > 0 and slot or nil
            some[#some + 1], gone[#gone + 1] = jobs[i], jobs[i]
        end
        unspent.give_all(some)
        for _, job in ipairs(some) do wake.release(job.token) end
        local back = cancelled.end_among(some)
        lane.put_all_back(back, queues)
        counters.add_all(back, 'back')
    until #gone == #jobs or time_budget.is_late(BACK_US)
    bell.ring_all(queues)
    return gone
end

local function take_over(new, old, found, unheard)
    local moved = {}
    for i, job in ipairs(found.kept) do moved[2 * i - 1], moved[2 * i] = job.token, job.entry end
    push('HSET', P .. 'active:' .. new, moved)
    leases.tell(new, cancelled_of(found.kept))
    ends.bury_unread(old, found.unread)
    local gone = give_back(found.back, unheard)
    found.later = found.later + #found.back - #gone
    leases.drop(old, found.stay and 1 or found.later, found.kept, gone, found.unread)
end

local function pass_duty(group, old)
    local held = call_safe('HGET', P .. 'duty', group)
    if type(held) ~= 'string' or held:match('^%S+') ~= old then return end
    call('HDEL', P .. 'duty', group)
    bell.ring_spare(group)
end

-- Registers the worker. names: of its types, when all are read.
local function register(new, lease_us, info, names)
    leases.heard(leases.follow(lease_us))
    call('HSET', P .. 'active:' .. new, '@', info)
    call('ZADD', P .. 'workers', us(now + lease_us), new)
    if names then runs.begin(names, lease_us) end
end

local function adopt(ARGV)
    local new, old, group, lease_us, info = ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5]), ARGV[6]
    local known, seen, n = ARGV[7], tonumber(ARGV[8]), tonumber(ARGV[9])
    if not (info and is_whole(seen) and is_whole(n, 1)) or #ARGV < 9 + n or new == old
        or not is_whole(lease_us, new ~= '' and 1 or 0) then
        return refuse('adopt: wrong arguments')
    end
    local running = {}
    for i = 10 + n, #ARGV do running[ARGV[i]] = true end
    local unheard = running[UNHEARD]
    running[UNHEARD] = nil

    local wrong = check.wrong_kind('active:' .. old, 'hash') or check.wrong_kind('active:' .. new, 'hash')
        or check.wrong_kind('workers', 'zset') or check.wrong_kind('queues', 'set') or new ~= '' and (check.wrong_kind('reap', 'string') or check.wrong_kind('about', 'hash'))
    if wrong then return check.refuse_key(wrong) end
    wrong = new ~= '' and data_loss.wrong()
    if wrong then return wrong end
    local jobs, unread, left = {}, {}, 0
    if old ~= '' then jobs, unread, left = read_leases(old, #ARGV > 9 + n + (unheard and 1 or 0)) end
    local found = sort_out(jobs, unread, left, new ~= '' and running or {})
    local types_digest, names = '', nil
    if new ~= '' then
        types_digest, names = type_lists.read(info)
        found.later = found.later + (names and 0 or 1)
    end

    local birth, back = '', ''
    if new ~= '' then birth, back = data_loss.begin(new, known, seen, old ~= '' and call('EXISTS', P .. 'active:' .. old) == 1) end
    if old ~= '' then
        take_over(new, old, found, unheard)
        pass_duty(group, old)
    end
    if new ~= '' then
        partition.restore(tonumber(match(info, '"partitions":(%d+)') or nil))
        register(new, lease_us, info, names)
        protocol.write()
    end
    gate.save()
    wake.all()
    local reply = {us(now), found.later, birth, back, partition.count(), types_digest, call('ZCARD', P .. 'workers'), P .. 'bell:' .. group, P .. 'spare:' .. group, P .. 'told:' .. new}
    for i = 10, 9 + n do
        if new ~= '' and not pattern.is(ARGV[i]) then call('SADD', P .. 'queues', ARGV[i]) end
        reply[#reply + 1] = P .. 'queue:' .. ARGV[i]
    end
    for token in pairs(running) do -- a repeated adopt, whose first answer was lost, finds them moved already
        if new == '' or call('HEXISTS', P .. 'active:' .. new, token) == 0 then reply[#reply + 1] = token end
    end
    return reply
end

return adopt

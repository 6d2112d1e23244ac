-- settle: jobs that a worker has finished leave its leases, each by its verb; what they took of concurrency gates is given back.
-- A lease that is no longer the worker's (it was reaped, or settled before) changes nothing and is counted. Where a key holds
-- something else, nothing is settled.
--
-- ARGV: now, worker, then any number of
--         "done"  type batch n token * n   batch: of all of them, '' for none
--         "run"   type batch n token       the same of n jobs whose tokens differ in the index alone: it goes up by one, from that token on
--         "failed" n token * n             behind it stands, for all of these in their order, why jobs have failed whose tokens differ
--                                          before the lane alone:
--             "retry" n reason             one more attempt used; they run again after delays, which follow, of n in all:
--                 n delay_us               of so many, in their order
--             "ran" us                     may stand before each of these three: so long ran those attempts
--             "dead"  n reason             one more attempt used, the last one
--             "wrong" n reason             the same; they were found wrong and have not started, and give their slots back as well
--         "finish" token keep_ms result    done: one with a unique lock, or that is to be remembered so long; one line of JSON, or ''. "ran" us may
--                                          stand before it
--         "throttled" token delay_us ""    the provider said stop: its limits pause that long (-1: it gave no time), for its key
--                                          where they are keyed; back to the head of its lane, no attempt used. Rules that count slots by
--                                          name get theirs back, unless this call says what it cost in truth
--         "back"  token unstarted ""       handed back to the head of its lane as it is; unstarted 1: it has not started, and gives
--                                          its slots back as well; else 0
--         "interrupted" token most reason  its handler died: back to the head of its lane, counted as interrupted and not as an
--                                          attempt; dead when that was so for the most-th time
--         "cancelled" token unstarted ""   ended because it was cancelled: does not run again
--         "cost"  token n ""               ends nothing: the job cost n in truth, as cost.lua writes it; its gates take or give back the
--                                          difference. What is not said was as much as it took
-- role: worker
-- reply: the number of stale leases; if pauses began, that one first in a list: [ stale, token, pause_us, the how manieth in a
--        row, ... ]
-- time: when needed
--
-- format: any
-- uses: bell body cancelled check cost counters ends gate heads lane lane_names later_records lease leases rules settle_done settle_failed stop types unspent wake

local paused -- the reply, if pauses began

-- Lists of jobs for which the verbs of this call have decided. They are written together: one by one they take Redis twice as long. finish,
-- cancelled, dead: they have ended so. kept: some of these are remembered. scheduled, back: they go to `later`, to the heads of their lanes.
-- returned: they are counted so.
local went

local function goes(where, job)
    local list = went[where]
    list[#list + 1] = job
end

local function tag_of(job) return job.worker .. ':' .. lease.token_head(job.token) end

local function entries_of(jobs)
    local entries = {}
    for i, job in ipairs(jobs) do entries[i] = job.entry end
    return entries
end

local function put_later(jobs)
    if #jobs == 0 then return end
    local records, first = {}, jobs[1]
    for i, job in ipairs(jobs) do
        records[2 * i - 1], records[2 * i] = us(now + job.delay_us), 'l ' .. tag_of(job) .. ' ' .. job.lane .. '\n' .. heads.fresh(job.entry)
        if job.delay_us < first.delay_us then first = job end
    end
    if later_records.put_all(records, now + first.delay_us) then bell.ring(first.queue) end
    counters.add_all(jobs, 'scheduled')
end

-- Keeps a done job for who asks what became of it: finished:<id> is "done <us> <worker> <attempts> <lane>[ <result>]\n<entry>". Returns its id;
-- nil: it has none by which it could be found.
local function remember(job)
    local attempts, interrupted, throttled, text, attrs = heads.read(job.entry)
    local id, result = body.id(text), job.reason ~= '' and ' ' .. job.reason or ''
    if not is_name(id) then return nil end
    local kept = format('done %s %s %d %s', us(now), job.worker, attempts + 1, job.lane) .. result .. '\n'
        .. heads.write(attempts + 1, interrupted, throttled, text, heads.started(attrs, job.ran))
    if VIRTUAL then
        call_safe('SET', P .. 'finished:' .. id, kept)
    else
        call_safe('SET', P .. 'finished:' .. id, kept, 'PX', us(job.keep_ms))
    end
    return id
end

local AT_ONCE = 2000 -- words of a command

-- Lists kept jobs of a type by when they ended. Those whose time is over leave, up to twice as many as come; all of the list does when no more come.
local function list_kept(name, added, keep_ms)
    local key = P .. 'kept:' .. name
    for i = 1, #added, AT_ONCE do call_safe('ZADD', key, unpack(added, i, min(i + AT_ONCE - 1, #added))) end
    local over = call_safe('ZRANGE', key, '-inf', us(now - keep_ms * 1000), 'BYSCORE', 'LIMIT', '0', us(min(#added, AT_ONCE)))
    if over[1] then call_safe('ZREM', key, unpack(over)) end
    if not VIRTUAL then call_safe('PEXPIRE', key, us(keep_ms)) end
end

local function remember_all(jobs)
    local added, keep_ms = {}, {}
    for _, job in ipairs(jobs) do
        local id, list = remember(job), added[job.type] or {}
        if id then list[#list + 1], list[#list + 2] = us(now), id end
        added[job.type], keep_ms[job.type] = list, job.keep_ms
    end
    for name, list in pairs(added) do list_kept(name, list, keep_ms[name]) end
end

local verbs = {}

local told -- tokens whose true cost this call says

function verbs.finish(job)
    goes('finish', job)
    if job.keep_ms > 0 then goes('kept', job) end
end

function verbs.cancelled(job) goes('cancelled', job) end

local function push_pause(token, pause_us, times)
    local n = #paused
    paused[n + 1], paused[n + 2], paused[n + 3] = token, us(pause_us), us(times)
end

function verbs.throttled(job)
    local attempts, interrupted, throttled, text, attrs = heads.read(job.entry)
    if not told[job.token] then unspent.give_named(job) end
    local pause_us, attempt_used, times = stop.record(job.type, job.key, job.delay_us)
    if times then push_pause(job.token, pause_us, times) end
    if attempt_used then attempts = attempts + 1 end
    job.entry = heads.write(attempts, interrupted, throttled + 1, text, attrs)
    if attempt_used and attempts >= stop.max_attempts(text) then
        job.reason = 'throttled for a day, and its attempts are used up'
        return goes('dead', job)
    end
    goes('returned', job)
    if stop.pause(job.type, job.key, pause_us) then return goes('back', job) end
    job.delay_us = pause_us
    goes('scheduled', job)
end

function verbs.back(job)
    goes('returned', job)
    goes('back', job)
end

function verbs.interrupted(job)
    if ends.handler_died(job, job.most, job.reason, job.worker) then verbs.back(job) else goes('dead', job) end
end

local function bury(jobs)
    for _, job in ipairs(jobs) do job.tag = tag_of(job) end
    ends.bury_all(jobs)
end

-- Writes what the verbs have decided, but for the leases.
local function write_ends()
    remember_all(went.kept)
    ends.jobs(entries_of(went.finish), 'done')
    counters.add_all(went.finish, 'done')
    cancelled.end_leases(went.cancelled)
    put_later(went.scheduled)
    counters.add_all(went.returned, 'back')
    bury(went.dead)
    if #paused > 1 then leases.recall_all() end
    lane.give_all_back(went.back)
end

-- Notes that the job cost that much in truth.
function verbs.cost(job)
    local took, gates = unspent.taken(job), types.gates(job.type, job.key)
    local spent = cost.over(job.cost, took)
    told[job.token] = true
    unspent.give(job, gates, spent)
    for _, e in ipairs(gates) do
        local slots, under = gate.needs(e, spent) - gate.needs(e, took), e.base.under
        if slots > 0 then gate.charge(e, slots, under and max(0, rules.slots(under, spent) - rules.slots(under, took))) end
    end
end

-- A suspect that ends so stays one. One that ends otherwise does so by the word of its handler, and did not kill its worker.
local STAYS = {back = true, interrupted = true}
local MAY_BE_UNSTARTED = {back = true, cancelled = true}

-- What the number of a verb is; of those that may be unstarted it says only that.
local NUMBER = {finish = 'keep_ms', throttled = 'delay_us', interrupted = 'most', cost = 'cost'}

-- Lanes that this call has read: {queue, type, key, usual =}. Jobs that end together are mostly of few.
local lane_parts = {}

local function read_lane(name)
    local parts = lane_parts[name]
    if not parts then
        parts = {lane_names.parts(name)}
        parts.usual = lane_names.usual(name)
        lane_parts[name] = parts
    end
    return parts
end

-- Reads one verb that is of no group, before which it says how long that ran ('': it does not); returns what is wrong with it.
local function read_end(ARGV, i, ran, leaving, costs)
    local verb, token, n = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2])
    if verb == 'cost' then n = cost.parse(ARGV[i + 2] or '', 0) end
    if not verbs[verb] then return 'settle: unknown verb ' .. tostring(verb) end
    local of_lane = i + 3 <= #ARGV and lease.lane_of(token)
    if not of_lane or not (type(n) == 'table' or is_whole(n, verb == 'throttled' and -1 or 0)) then
        return 'settle: ' .. verb .. ' needs a token, a number, a reason'
    end
    if ran ~= '' and not is_whole(tonumber(ran)) then return 'settle: ran needs a number' end
    local parts = read_lane(of_lane)
    if not STAYS[verb] and parts.usual ~= of_lane then of_lane, parts = parts.usual, read_lane(parts.usual) end
    local list, slot = verb == 'cost' and costs or leaving, MAY_BE_UNSTARTED[verb] and n == 1 and lease.slot_of(token) or 0
    list[#list + 1] = {verb = verb, token = token, worker = ARGV[2], [NUMBER[verb] or 'flag'] = n,
                       lane = of_lane, queue = parts[1], type = parts[2], key = parts[3], reason = ARGV[i + 3], ran = tonumber(ran),
                       unstarted = slot > 0 and slot or nil} -- its slot, which it gives back
end

-- Adds each group of done jobs to `done`, and all others but those that have failed to costs and leaving. Returns what is wrong.
local function read_arguments(ARGV, done, leaving, costs)
    local i = 3
    while i <= #ARGV do
        if settle_done.is_group(ARGV[i]) then
            local group = settle_done.read(ARGV, i)
            if not group then return 'settle: ' .. ARGV[i] .. ' needs a type, a batch or nothing, a number, tokens' end
            done[#done + 1], i = group, group.behind
        elseif ARGV[i] == 'failed' then
            i = settle_failed.read(ARGV, i, #leaving)
            if not i then return 'settle: failed needs a number, tokens, and why they have: numbers, reasons, delays' end
        else
            local at = ARGV[i] == 'ran' and i + 2 or i
            local wrong = read_end(ARGV, at, at > i and ARGV[i + 1] or '', leaving, costs)
            if wrong then return wrong end
            i = at + 4
        end
    end
end

-- Decides whether a suspect stays one, whatever its token says.
local function follow_suspect(job)
    if not STAYS[job.verb] then
        job.entry = heads.cleared(job.entry)
    elseif not lane_names.is_alone(job.lane) then
        job.lane, job.queue = lane_names.alone(job.lane), job.queue .. '!'
    end
end

-- Says what these attrs mean for a job that ends by that verb: {cancelled = (it, or the batch it is of, has been), suspect =}. A throttled job may
-- wait for long. Others come back at once, and a claim ends those of a cancelled batch.
local function meaning_of(attrs, verb)
    local cancels = heads.attr(attrs, 'c') or verb == 'throttled' and cancelled.batch_of(attrs)
    return {cancelled = cancels and verb ~= 'finish', suspect = heads.attr(attrs, 'h')}
end

-- Reads the leases of leaving jobs that are there, with entry and token. What was cancelled and is not done has ended as cancelled. known: tokens
-- that this call has met.
local function read_leases(active, leaving, known)
    local found, tokens, asked, n = {}, {}, {}, 0
    local attrs, verb, is -- those of the job before, which are mostly the same
    for i, job in ipairs(leaving) do asked[i] = job.token end
    for first = 1, #asked, 4000 do
        local entries = call('HMGET', active, unpack(asked, first, min(first + 3999, #asked)))
        for i, entry in ipairs(entries) do
            local job = leaving[first + i - 1]
            if entry and not known[job.token] then
                local its = heads.attrs_of(entry)
                if its ~= attrs or job.verb ~= verb then attrs, verb, is = its, job.verb, meaning_of(its, job.verb) end
                job.entry, known[job.token], n = entry, true, n + 1
                found[n], tokens[n] = job, job.token
                if is.cancelled then job.verb = 'cancelled' end
                if is.suspect then follow_suspect(job) end
            end
        end
    end
    return found, tokens
end

local KEYS_OF = {interrupted = 'dead', throttled = 'later'}
local GOES_BACK = {back = true, interrupted = true, throttled = true}

local function wrong_keys(leaving)
    local wrong, looked, before = nil, {}, {} -- looked: verbs and lanes whose keys were looked at
    for _, job in ipairs(leaving) do
        local is_other = job.lane ~= before.lane or job.verb ~= before.verb
        local place = is_other and job.verb .. ' ' .. job.lane
        before = job
        if is_other and not looked[place] then
            looked[place] = true
            if GOES_BACK[job.verb] then wrong = wrong or lane.wrong(job.lane) end
            if job.verb == 'throttled' then
                wrong = wrong or stop.wrong(job.type, job.key) or check.wrong_kind('dead', 'zset')
            end
            if KEYS_OF[job.verb] then wrong = wrong or check.wrong_kind(KEYS_OF[job.verb], 'zset') end
        end
    end
    return wrong
end

-- Settles ends that are no "done"; returns how many leases were stale, or nil and what is wrong: then nothing was changed.
local function settle_ends(worker, leaving)
    local active = P .. 'active:' .. worker
    local wrong = check.wrong_kind('active:' .. worker, 'hash')
    if wrong then return nil, wrong end
    local found, tokens = read_leases(active, leaving, settle_failed.look(leaving))
    wrong = wrong_keys(found) or settle_failed.wrong()
    if wrong then return nil, wrong end
    unspent.give_all(found)
    went = {finish = {}, cancelled = {}, scheduled = {}, returned = {}, back = {}, dead = {}, kept = {}}
    for _, job in ipairs(found) do verbs[job.verb](job) end
    for _, job in ipairs(found) do wake.release(job.token) end
    for _, job in ipairs(leaving) do
        if not job.entry then counters.add(job.type, 'stale', 1) end
    end
    write_ends()
    push('HDEL', active, tokens)
    return #leaving - #found + settle_failed.write()
end

-- Notes in `types` that jobs of these types say what they cost in truth.
local function note_spends(jobs)
    local noted = {}
    for _, job in ipairs(jobs) do
        if not noted[job.type] and not types.load(job.type).spends then types.note(job.type, 'spends', 'own') end
        noted[job.type] = true
    end
end

-- Settles the true costs of leases that are there; returns what is wrong: then nothing was changed.
local function settle_costs(worker, costs)
    local wrong, found = check.wrong_kind('active:' .. worker, 'hash'), {}
    for _, job in ipairs(wrong and {} or costs) do
        if types.load(job.type).named then job.entry = call('HGET', P .. 'active:' .. worker, job.token) end
        if job.entry or call('HEXISTS', P .. 'active:' .. worker, job.token) == 1 then
            wrong = wrong or types.wrong(job.type, job.key)
            found[#found + 1] = job
        end
    end
    if wrong then return wrong end
    for _, job in ipairs(found) do verbs.cost(job) end
    note_spends(found)
end

-- Settles what most calls say: jobs are done, took nothing of a gate and count in no batch. nil: this call says more.
local function settle_plain(ARGV)
    local groups, i, stale = {}, 3, 0
    while settle_done.is_group(ARGV[i]) do
        local group = settle_done.read(ARGV, i)
        if not group or group.counted or group.batch ~= '' then return nil end
        groups[#groups + 1], i = group, group.behind
    end
    if #groups == 0 or i <= #ARGV then return nil end
    for _, group in ipairs(groups) do stale = stale + settle_done.settle(group, ARGV[2]) end
    has_changed_nothing()
    return stale
end

local function settle_all(ARGV)
    local worker, done, leaving, costs = ARGV[2], {}, {}, {}
    paused, lane_parts, told = {''}, {}, {}
    if not worker then return refuse('settle: no worker') end
    settle_failed.begin(worker)
    local wrong, stale = read_arguments(ARGV, done, leaving, costs), 0
    if wrong then return refuse('%s', wrong) end
    local leaves = #leaving > 0 or settle_failed.is_any()
    if #costs > 0 or leaves then read_clock() end -- most settle says nothing but "done"
    if #costs > 0 then
        wrong = settle_costs(worker, costs)
        if wrong then return check.refuse_key(wrong) end
    end
    if leaves then
        stale, wrong = settle_ends(worker, leaving)
        if wrong then return check.refuse_key(wrong) end
    end
    for _, group in ipairs(done) do stale = stale + settle_done.settle(group, worker) end
    gate.save()
    wake.all()
    if #paused == 1 then return stale end
    paused[1] = us(stale)
    return paused
end

local function settle(ARGV) return settle_plain(ARGV) or settle_all(ARGV) end

return settle

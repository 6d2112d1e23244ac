-- claim_queue: what becomes of the jobs of a queue: they start, are parked, or are dead.
--
-- uses: body claim_cache claim_call claim_causes claim_halt claim_held claim_meet claim_park claim_ring claim_start job_text large sign slices
local claim_queue = {}

local cache, claim, halt, held = claim_cache, claim_call, claim_halt, claim_held
local meet, park, ring, start = claim_meet, claim_park, claim_ring, claim_start

local TYPE = body.TYPE

local BODY_MOST = body.MOST
local KEPT_MOST = 16 * BODY_MOST -- a larger one costs Redis seconds at each touch: of that the beginning is kept
local AT = 64                 -- "@"

local LARGE = 64 * 1024 -- from there on decoding takes longer than to look for what is needed

-- Returns the type of a large job, if it has an id; nil: not sure.
local function large_type(text)
    local name = #text >= LARGE and job_text.value(text, 'type')
    return type(name) == 'string' and is_name(name) and job_text.value(text, 'id') ~= nil and name or nil
end

-- Reads a job whose body begins at `at`: returns its type and its entry, with an id if it had none; or nil and what is wrong with it.
local function read_job(entry, at)
    if #entry - at >= BODY_MOST then return nil, format('larger than %d bytes', BODY_MOST) end
    local name = match(entry, TYPE, at)
    if name and #name <= 128 then return name, entry end
    local head, text = sub(entry, 1, at - 1), sub(entry, at)
    name = large_type(text)
    if name then return name, entry end
    local ok, job = pcall(json_read, text)
    if not ok then return nil, 'no JSON: ' .. tostring(job) end
    if type(job) ~= 'table' or not find(text, '^%s*{') then return nil, 'no JSON object' end
    name = job.type
    if type(name) ~= 'string' or not is_name(name) then return nil, 'its type is missing or no name' end
    if job.id == nil then
        claim.named = claim.named + 1
        text = format('{"id":"%s.%d.%d",', claim.worker, claim.turn, claim.named) .. text:match('^%s*{(.*)$')
    end
    return name, head .. text
end

local function bury(s, entry, reason)
    claim.dead[#claim.dead + 1] = {lane = s.lane_head, reason = reason, entry = entry}
    s.pulled = s.pulled + 1
    claim.count(s, 'unstarted')
    return 1
end

-- True when nothing waits at these gates, in any of the queues. Where something does, that stays so for this claim.
local function nothing_waits(gates, queues)
    for i = 1, #gates do
        local name, keys = gates[i].name, {}
        if claim.crowds[name] then return false end
        for k = 1, #queues do keys[k] = P .. 'wait:' .. queues[k] .. '/' .. name end
        claim.budget = claim.budget - floor(#keys / claim.KEYS)
        if call('EXISTS', unpack(keys)) > 0 then
            claim.crowds[name] = true
            return false
        end
    end
    return true
end

-- True when nothing sleeps at these gates of a key, in all queues of this worker.
local function nothing_sleeps(gates)
    if #gates == 0 then return true end
    local sleepers, crowded = cache.sleepers()
    for i = 1, #gates do
        if (sleepers[gates[i].name] or 0) > 0 then return false end
    end
    return #crowded == 0 or nothing_waits(gates, crowded)
end

-- True when jobs of s may start without waiting their turn: it has no lanes that wait, and no other type waits at its gates.
local function is_clear(s)
    if s.clear == nil then s.clear = ring.members(s) == 0 and nothing_waits(s.gates, claim.open) end
    return s.clear and (not s.keyed or ring.members(s) == 0)
end

-- True when nothing waits before the jobs of a lane; nothing of the lane is parked.
local function lane_is_clear(s, l)
    if l.clear == nil then l.clear = park.is_empty(l) and nothing_sleeps(l.gates) end
    return l.clear and (not s.keyed and s.clear or is_clear(s))
end

-- Matches an entry with a head that counts, whose body Weir's producers wrote: where its id begins and ends, and where its type ends.
local WRITTEN = '^@[^;{]*;?{"id":"()[^"\\]*()","type":"[%w_.-]+"()'

-- Returns the place of the first of jobs[from] to jobs[last] that does not begin as jobs[i] does, but for its id, or may name a cost of its own where
-- that counts; last + 1: there is none. This is done for each job: to find the front of the head and the text behind the id where they must stand takes half as long as
-- reading them, and makes no texts. None of them is larger than a job may be, as slices reads no large one behind another.
local function first_other(jobs, i, from, last, counts_cost)
    local id, id_end, type_end = match(jobs[i], WRITTEN)
    if not id then return from end
    local find, front, kind = find, sub(jobs[i], 1, id - 1), sub(jobs[i], id_end, type_end - 1)
    for k = from, last do
        local entry = jobs[k]
        if find(entry, front, 1, true) ~= 1 or find(entry, kind, id_end, true) ~= id_end or counts_cost and body.names_cost(entry) then
            return k
        end
    end
    return last + 1
end

-- Counts the jobs from jobs[i] on that have its type and cost, at most `most`. Replaces each by its entry. Most jobs of a bulk have the same head,
-- an id of the same length and the same type, which is looked for from the third one on: of types that take turns there is no second one. jobs.same,
-- jobs.same_last: the places of those that have the head of jobs[i].
local function count_equal_behind(s, jobs, i, most)
    most = min(most, claim.budget, #jobs - i + 1)
    if s.limited then most = body.names_cost(jobs[i]) and 1 or min(most, start.likely(s, most)) end
    local n = 1
    jobs.same, jobs.same_last = i + 2, 0
    while n < most do
        if n == 2 then
            n = first_other(jobs, i, i + 2, i + most - 1, s.limited) - i
            jobs.same_last = i + n - 1
            if n >= most then break end
        end
        local entry, at = jobs[i + n], 1
        if byte(entry) == AT then entry, at = sign.read(entry) end
        if match(entry, TYPE, at) ~= s.name then break end
        jobs[i + n] = entry
        if #entry > BODY_MOST or s.limited and body.names_cost(entry) then break end
        n = n + 1
    end
    return n
end

-- Starts jobs[i] and the jobs behind it that are equal; l nil: the type has no limits. Returns how many; claim.stopped is the gate that stopped
-- them.
local function start_with_equal(s, l, jobs, i, cost)
    local most = start.room(s)
    if claim.halts or s.keyed then -- each of them may have been cancelled, or have a lane of its own
        most = most > 0 and 1 or 0
    elseif most > 1 then
        most = count_equal_behind(s, jobs, i, most)
    end
    local n = start.jobs(s, l, jobs, i, most, cost, claim.tick, claim.tick) -- nothing has come later than a job from the queue
    s.pulled = s.pulled + n
    return n
end

-- True when the jobs of s need no lane: it has neither a limit nor lanes that wait.
local function is_direct(s)
    if s.mine then held.take_back(s) end
    return s.mine and not s.limited and ring.members(s) == 0 or false
end

-- Starts a job that is alone in its lane and has nothing before it, or buries it if its gates can never let it start. Returns how many jobs were
-- handled; 0: it stays in the queue until an executor is free, and no job of a queue behind is leased ahead of it; nil: it must wait in its lane.
local function start_or_bury(s, l, jobs, i)
    local cost = meet.cost(s, jobs[i])
    local n = start_with_equal(s, l, jobs, i, cost)
    if n == 0 and claim.stopped.gate then
        local never = meet.unfit(s.gates, cost) or meet.unfit(l.gates, cost)
        if not never then return nil end
        n = bury(s, jobs[i], meet.unfit_reason(never, cost))
    elseif n == 0 then
        claim.starved, claim.prefetch = true, 0
    end
    if n > 0 then park.count_key(l) end
    return n
end

-- Handles jobs[i], of type s, and the jobs behind it that start with it. Returns how many were handled: started, parked or buried; 0: it stays
-- there until an executor is free for it.
local function handle_jobs(s, jobs, i)
    local entry = jobs[i]
    if claim.halts and halt.from_queue(s, entry) then return 1 end
    if s.direct == nil then s.direct = is_direct(s) end
    if s.direct then return start_with_equal(s, nil, jobs, i, 1) end
    local dead = not s.mine and halt.why_dead(s)
    if dead then return bury(s, entry, dead) end
    local l = s.keyed and meet.lane(s, park.key_of(s, entry)) or s.lanes[''] or meet.lane(s, '')
    if s.mine and s.limited and lane_is_clear(s, l) then
        local handled = start_or_bury(s, l, jobs, i)
        if handled then return handled end
        if not claim.stopped.of_lane then s.clear = false end -- a cheaper one of another key does not pass it
    end
    park.park(l, entry)
    l.clear = false
    s.parked = s.parked + 1
    return 1
end

-- Buries what cannot be read as a job, of which only a part may be kept.
local function bury_unreadable(queue, entry, why)
    claim.dead[#claim.dead + 1] = {lane = queue .. '//', reason = 'unreadable: ' .. why, entry = entry}
    return 1
end

-- Buries as much as half a gibibyte, which any client may push; it is not even copied once more.
local function bury_huge(queue, item)
    return bury_unreadable(queue, sub(item, 1, BODY_MOST),
                           format('larger than %d bytes; of its %d the first %d are kept', BODY_MOST, #item, BODY_MOST))
end

-- Handles jobs[i] as it stands in the queue; returns as handle_jobs.
local function handle(queue, jobs, i)
    local item = jobs[i]
    if #item > KEPT_MOST then return bury_huge(queue, item) end
    local entry, at = sign.read(item)
    local s = #entry <= BODY_MOST and claim.states[queue][match(entry, TYPE, at) or '']
    if not s then -- its type was not yet met, or it was not written by Weir's producers
        local name, read = read_job(entry, at)
        if not name then return bury_unreadable(queue, entry, read) end
        s, entry = meet.state(queue, name), read
    end
    jobs[i] = entry
    return handle_jobs(s, jobs, i)
end

-- Handles jobs in their order as far as there is room; returns how many.
local function handle_all(queue, jobs)
    local i = 1
    while i <= #jobs and claim.free + claim.prefetch >= 1 and claim.may_go_on() do
        local handled = handle(queue, jobs, i)
        if handled == 0 then break end
        i, claim.budget = i + handled, claim.budget - handled
    end
    return i - 1
end

local FIRST = 64 -- jobs that are read at most before it is known how much of the budget one takes
local FEW = 3    -- are read without asking how large they may be

-- Handles jobs from the head of the queue, which has so many, while there is room. No more are read than the budget is likely to be enough for:
-- of types that take turns each job takes as much as nine of one type.
function claim_queue.read(queue, length)
    local used, chunk, is_over, at_once, is_large = 0, min(claim.chunk, FIRST), false, nil, false
    if length > FEW then at_once, is_large = large.at_once(queue) end
    claim_causes.from_queue()
    while used < length and not is_over do
        local room, budget = claim.free + claim.prefetch, claim.budget
        local jobs = slices.read('LRANGE', P .. 'queue:' .. queue, used, min(chunk, length - used), claim.load, at_once)
        local handled = handle_all(queue, jobs)
        used = used + handled
        local left = claim.free + claim.prefetch
        is_over = handled < #jobs or left < 1 or claim.budget < 1 or slices.is_full(claim.load)
        local likely = ceil(claim.budget * handled / max(1, budget - claim.budget))
        chunk = min(1000, likely, max(left, left == room and chunk * 2 or 16))
    end
    if is_large and used == length then claim.emptied[#claim.emptied + 1] = queue end
    claim.used[queue], claim.unread[queue], claim.more = used, used < length or nil, claim.more or used < length
end

return claim_queue

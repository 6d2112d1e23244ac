-- claim_queue: looking at the jobs of a queue.
--
-- uses: body claim_call claim_faults claim_grant claim_halt claim_held claim_park claim_ring claim_wait job_text sign slices
local claim_queue = {}

local claim, faults, grant, halt, park = claim_call, claim_faults, claim_grant, claim_halt, claim_park
local held, ring, wait = claim_held, claim_ring, claim_wait

local TYPE = body.TYPE

local BODY_MOST = 1024 * 1024 -- JOB_BODY_MAX of queue/job/job.h
local KEPT_MOST = 16 * BODY_MOST -- a larger one costs Redis seconds at each touch: of that the beginning is kept
local AT = 64                 -- "@"

local LARGE = 64 * 1024 -- from there on decoding takes longer than to look for what is needed

-- The type of a large job, if it has an id; nil: not sure.
local function large_type(text)
    local name = #text >= LARGE and job_text.value(text, 'type')
    return type(name) == 'string' and is_name(name) and job_text.value(text, 'id') ~= nil and name or nil
end

-- The type of a job, whose body begins at `at`, and its entry, with an id if it had none; or nil and what is wrong with it.
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
    return true
end

-- Does nobody wait at these gates, in any of the queues?
local function nobody_waits(gates, queues)
    local keys, asked = {}, 0
    for _, queue in ipairs(#gates > 0 and queues or {}) do
        for i = 1, #gates do keys[i] = P .. 'wait:' .. queue .. '/' .. gates[i].name end
        asked = asked + #gates
        if call('EXISTS', unpack(keys)) > 0 then return false end
    end
    claim.budget = claim.budget - floor(asked / claim.KEYS)
    return true
end

-- The same for gates of a key and all queues of this worker.
local function nobody_sleeps(gates)
    if #gates == 0 then return true end
    local sleepers, crowded = wait.sleepers()
    for i = 1, #gates do
        if (sleepers[gates[i].name] or 0) > 0 then return false end
    end
    return nobody_waits(gates, crowded)
end

-- May jobs of s start without waiting their turn: has it no lanes that wait, and does no other type wait at its gates?
local function is_clear(s)
    if s.clear == nil then s.clear = ring.members(s) == 0 and nobody_waits(s.gates, claim.queues) end
    return s.clear and (not s.keyed or ring.members(s) == 0)
end

-- The same for a lane of it; nothing of the lane is parked.
local function lane_is_clear(s, l)
    if l.clear == nil then l.clear = park.is_empty(l) and nobody_sleeps(l.gates) end
    return l.clear and (not s.keyed and s.clear or is_clear(s))
end

-- A job with limits, of a lane that is empty. True: it was leased or buried; false: it must wait; nil: there is no executor.
local function start_now(s, l, entry)
    local cost = grant.cost(s, entry)
    if grant.lease_now(s, l, entry, cost, claim.tick, claim.tick) then
        s.pulled = s.pulled + 1
        return true
    end
    local at = grant.opens(s.gates, cost, s.name, claim.tick, now)
    at = grant.opens(l.gates, cost, l.node, claim.tick, at)
    if at > claim.till(s) then
        local never = grant.unfit(s.gates, cost) or grant.unfit(l.gates, cost)
        return never and bury(s, entry, grant.unfit_reason(never, cost)) or false
    end
    if claim.free < 1 then return nil end
    grant.lease_slot(s, l, entry, at, cost)
    s.pulled = s.pulled + 1
    return true
end

-- A fault keeps it from its lane: it comes again later.
local function put_off(s, entry)
    claim.put_off[#claim.put_off + 1] = {queue = s.queue, type = s.name, entry = entry}
    claim.count(s, 'dropped')
    claim.count(s, 'scheduled')
    return true
end

-- What becomes of one job at the head of a queue. False: it stays there until an executor is free for it.
local function place_entry(s, entry)
    if claim.halts and halt.from_queue(s, entry) then return true end
    if faults.any and faults.of_type(s) then return put_off(s, entry) end
    if s.direct == nil then
        if s.mine then held.take_back(s) end
        s.direct = s.mine and not s.limited and ring.members(s) == 0 or false
    end
    if s.direct then
        if grant.room(s) < 1 then return false end
        grant.lease_free('/' .. s.lane_head, entry)
        s.pulled = s.pulled + 1
        return true
    end
    if halt.is_unknown(s) then return bury(s, entry, halt.UNKNOWN) end
    local l = s.keyed and grant.lane(s, park.key_of(s, entry)) or s.lanes[''] or grant.lane(s, '')
    if faults.any and faults.of_lane(l) then return put_off(s, entry) end
    if s.mine and s.limited and lane_is_clear(s, l) then
        local done = start_now(s, l, entry)
        if done then park.count_key(l) end
        if done ~= false then return done end
    end
    park.park(l, entry)
    l.clear = false
    s.parked = s.parked + 1
    return true
end

-- A job whose type was not yet met, or that was not written by Weir's producers.
local function place_odd(queue, entry, at)
    local name, read = read_job(entry, at)
    if not name then
        claim.dead[#claim.dead + 1] = {lane = queue .. '//', reason = 'unreadable: ' .. read, entry = entry}
        return true
    end
    return place_entry(grant.state(queue, name), read)
end

-- As much as half a gibibyte, which any client may push; it is not even copied once more.
local function bury_huge(queue, item)
    local reason = format('unreadable: larger than %d bytes; of its %d the first %d are kept', BODY_MOST, #item, BODY_MOST)
    claim.dead[#claim.dead + 1] = {lane = queue .. '//', reason = reason, entry = sub(item, 1, BODY_MOST)}
    return true
end

-- One job of the queue. Was it placed? And its state, where it is of a type that was met before.
local function place(queue, item)
    if #item > KEPT_MOST then return bury_huge(queue, item) end
    local entry, at = sign.read(item)
    local s = #entry <= BODY_MOST and claim.states[queue][match(entry, TYPE, at) or '']
    if s then return place_entry(s, entry), s end
    return place_odd(queue, entry, at)
end

-- jobs[i - 1], of type s, was placed: leases those behind it that may be leased as it was. Returns the index behind them.
local function place_alike(s, jobs, i)
    local l = s.lanes['']
    if not (s.direct or s.clear and l and l.clear) then return i end
    local n, slot = grant.alike(s, l)
    if n < 1 then return i end
    local first, name, limited, tail = i, s.name, s.limited, l and l.tail or '/' .. s.lane_head
    local behind = i + min(n, claim.budget, #jobs - i + 1)
    while i < behind do
        local entry, at = jobs[i], 1
        if byte(entry) == AT then entry, at = sign.read(entry) end
        if #entry > BODY_MOST or match(entry, TYPE, at) ~= name or limited and find(entry, '"cost"', 1, true) then break end
        grant.lease_entry(slot, tail, entry)
        i = i + 1
    end
    grant.count_alike(s, i - first)
    s.pulled, claim.budget = s.pulled + i - first, claim.budget - (i - first)
    return i
end

-- Places jobs in their order as far as there is room; returns how many.
local function place_all(queue, jobs)
    local i = 1
    while i <= #jobs and claim.free + claim.prefetch >= 1 and claim.budget >= 1 do
        local placed, s = place(queue, jobs[i])
        if not placed then break end
        i, claim.budget = i + 1, claim.budget - 1
        if s then i = place_alike(s, jobs, i) end
    end
    grant.take_used()
    return i - 1
end

-- Looks at jobs from the head of the queue, which has so many, while there is room.
function claim_queue.read(queue, length)
    local used, chunk, is_over = 0, claim.chunk, false
    while used < length and not is_over do
        local room = claim.free + claim.prefetch
        local jobs = slices.read('LRANGE', P .. 'queue:' .. queue, used, min(chunk, length - used), claim.load)
        local placed = place_all(queue, jobs)
        used = used + placed
        local left = claim.free + claim.prefetch
        is_over = placed < #jobs or left < 1 or claim.budget < 1 or slices.is_full(claim.load)
        chunk = min(1000, claim.budget, max(left, left == room and chunk * 2 or 16))
    end
    claim.used[queue], claim.more = used, claim.more or used < length
end

return claim_queue

-- claim_halt: what must not run now: queues that are paused, jobs that were cancelled, jobs of batches that are paused or cancelled;
-- jobs of types that live on another partition; and, with option d, jobs of types that no worker runs. The last two are dead.
--
--   halted     hash: "q/<queue>" -> us: paused; "b/<batch>" -> "paused <us>" or "cancelled <us>"
--   cancelled  hash: id -> "waiting <us>" or "running <us>": the job ends when a claim meets it
--   aside:<batch>  list of "<lane>\n<entry>": jobs of a paused batch that a claim met
--
-- A paused queue is not served, nor are its lanes. A job that must not run leaves its queue, or the head of its lane, before it takes
-- a slot. This file decides that; claim_commit writes it.
--
-- uses: body check claim_call claim_meet heads lane_names runs
local claim_halt = {}

local claim, meet = claim_call, claim_meet

local TURN_MOST = 100  -- jobs that leave a lane in one turn, so that other lanes have their turns
local LANES_MOST = 250 -- jobs that leave all lanes in one claim: half of its budget, so that the queues have the rest

local UNKNOWN = 'no handler for its type: no worker has run it for a minute'

local batches  -- batches that were met: name -> 'paused', 'cancelled' or false
local any_jobs -- true when some job is cancelled by its id

local function pause_queues()
    local fields, is_paused = {}, {}
    if #claim.open == 0 then return end
    for i, queue in ipairs(claim.open) do fields[i] = 'q/' .. queue end
    for i, since in ipairs(call('HMGET', P .. 'halted', unpack(fields))) do is_paused[claim.open[i]] = since end
    claim.leave_out(is_paused)
end

-- Reads what is paused; returns the error of a key that holds something else, or of data that this version does not read.
function claim_halt.begin()
    batches = {}
    if not claim.halts then return nil end
    local wrong = check.wrong_kind('halted', 'hash') or check.wrong_kind('cancelled', 'hash')
    wrong = wrong and check.refuse_key(wrong) or newer_format()
    if wrong then return wrong end
    any_jobs = call('EXISTS', P .. 'cancelled') == 1
    pause_queues()
end

local function batch_state(name)
    if batches[name] == nil then
        local state = call('HGET', P .. 'halted', 'b/' .. name)
        batches[name] = state and match(state, '^%a+') or false
    end
    return batches[name]
end

-- Returns whether this job must not run, and the batch for which it is set aside (nil: the job ends).
local function stops(entry)
    local attrs, at = heads.attrs_of(entry)
    local batch = heads.attr(attrs, 'b')
    local state = batch and batch_state(batch)
    if state == 'cancelled' then return true end
    if any_jobs then
        local id = body.id(entry, at)
        if id and call('HEXISTS', P .. 'cancelled', id) == 1 then return true end
    end
    return state == 'paused', batch
end

local function leave(s, entry, name, batch)
    claim.halted[#claim.halted + 1] = {entry = heads.cleared(entry), lane = lane_names.usual(name), batch = batch}
    claim.count(s, batch and 'set_aside' or 'cancelled')
end

-- Says why jobs of that type are dead, as nobody runs them here; false: they are not.
function claim_halt.why_dead(s)
    if s.mine then return false end
    if s.unknown == nil then s.unknown = claim.has_option('d') and runs.is_unknown(s.name) and UNKNOWN end
    return s.unknown
end

-- Looks at a job at the head of a queue, where something is halted. True: it must not run, and leaves.
function claim_halt.from_queue(s, entry)
    local halted, batch = stops(entry)
    if not halted then return false end
    leave(s, entry, s.lane_head, batch)
    claim.count(s, 'dropped')
    return true
end

-- Returns the next job of a lane that may run, as claim_meet.head does; the jobs before it leave. nil: there is none, or too many would leave in
-- this turn.
function claim_halt.head(s, l, ahead)
    local entry = meet.head(l, ahead)
    if not claim.halts and s.mine then return entry end
    for _ = 1, TURN_MOST do
        if not entry then return nil end
        local halted, batch
        if claim.halts then halted, batch = stops(entry) end
        if not halted and s.mine then return entry end
        if claim.budget < 1 or claim.left_lanes >= LANES_MOST then return nil end
        if halted then
            leave(s, entry, l.name, batch)
            claim.count(s, 'back')
        else
            claim.dead[#claim.dead + 1] = {lane = l.name, reason = s.unknown, entry = entry}
        end
        meet.drop(l, 1)
        s.served = s.served + 1
        claim.count(s, 'unstarted')
        claim.budget, claim.left_lanes = claim.budget - 1, claim.left_lanes + 1
        entry = meet.head(l, TURN_MOST)
    end
end

return claim_halt

-- claim: which jobs this worker starts now. It is the heart of a turn, and this comment is the guide to its parts.
--
-- The words. A job waits in a queue, or in a lane: the jobs of one (queue, type, key) that were read and could not start. A gate is one
-- rule's live state: `mail#1` for all keys, `mail#1/k` for the key k. A lane whose key gates are open stands in the ring of its type, else it
-- sleeps at one of them. A type whose ring is not empty waits at one gate for all keys, or is held, where no worker at hand can
-- run it. doc/design.md draws this; queue/state/lane.lua has the keys. In the parts `claim` is the call (`c` in this file), `s` a type in one
-- queue, `l` a lane, `e` a gate.
--
-- The phases, in order:
--
-- 1. Begin. claim_call reads the arguments; it declares every field that the parts share. claim_halt finds paused queues and cancelled jobs,
--    claim_faults keys of a wrong kind. Where nothing of what follows can matter but that a job or two start, claim_short does that.
-- 2. Types that were held and that this worker can run wait again: claim_held.
-- 3. A job that must run alone, if there is one: claim_alone. Then nothing else.
-- 4. For each queue:
--    a. What is due (claim_lanes.due): gates at which types wait. Lanes whose key gates are due go back to their rings, or sleep at another
--       gate (claim_wait.wake_waiters).
--    b. Lanes (claim_lanes.serve), with half of the executors while the queue holds jobs. At each due gate the type that was served least
--       recently has its turn, and in its ring the lane that was (claim_ring). claim_start.jobs starts the jobs at the head of the lane.
--       What stops it is in claim.stopped: the type waits at the gate that opens last (claim_wait.end_visit), or the lane sleeps there
--       (claim_wait.lane_sleeps).
--    c. Jobs from the head of the queue (claim_queue). If a type or lane waits before a job, it is parked unasked. Otherwise claim_start.jobs starts
--       it too, or its gates deny it, and it is parked. Parked is: noted for the tail of its lane (claim_park.park), as are all behind it of
--       that lane; claim_commit writes it.
--    d. Lanes that were empty find their places: in the ring, or asleep (claim_park.place, claim_wait.place_lane).
--    e. Lanes again, with the executors that are left.
-- 5. Write: the leases at the end of serve_queues, where a fault may still undo the claim; then all else that was decided (claim_commit).
-- 6. When the next claim is due, and which worker makes it (claim_duty).
--
-- claim_meet has the types and lanes with their gates, claim_cache what is remembered to be faster, claim_causes what the answer says of how jobs
-- came to start.
--
-- Who waits where is written as it is found, to the new place before it leaves the old one. Jobs, leases and gates are decided first and
-- written at the end, by steps that cannot fail: a claim that fails on the way has moved no job and taken no slot.
--
-- ARGV: now, worker, group, turn,
--       free         idle executors: a job with a limit is granted against one of them only
--       prefetch     jobs without a limit that may be leased beyond those
--       chunk        how many jobs of a queue to read at first, few where the worker knows that they are large
--       duty_until   until when this worker holds the pacing duty of its group, us; 0: it does not
--       ahead        how far ahead slots may be granted, us, so that the next claim of a worker that is far away comes in time;
--                    at least as far as for one that is near
--       far          to how many jobs farther ahead than for one that is near: their executors wait all that time
--       options      letters: h take back held types, d types that no worker runs are dead, m mark the rates of this second,
--                    r none of the idle executors is for jobs without a limit,
--                    a the worker may come to have nothing in flight for one that is to run alone,
--                    b the worker has jobs in flight in other partitions,
--                    w the queues are some of those that the worker serves, or none: it may serve more than one call looks at,
--                    p as far as the worker knows jobs wait at gates: it need not be asked whether none does,
--                    e jobs that are granted farther ahead than to one that is near hold no executor yet, and only save claims,
--                    t it wants to know of each queue when it is due,
--       types        the digest of the types that this worker named as it began, as adopt answered it; '': they are named here
--       n or n/known/t how many queues it is to serve; and what the worker knows to wait in each of m others, in which it only asks for more: a letter
--                      of claim_dues for each, j: it asks for jobs alone; t: no key is known to wake before in those of letter k,
--       queue * n      in the order in which they are served,
--       queue * m      in these only where jobs stand in it, something waits there that the worker does not know of, or when a job is to run alone,
--       type * the rest: those that it can run; behind a digest those of them that rest, which it cannot run now
-- role: worker
-- reply: [ now, [token, entry, ...], letter, value, letter, value ... ]
--        u ['count count ...', token, entry, entry ..., token, entry, entry ...], the first pair, in place of that list: of each run of leases how many
--          they are; the token of the first, from which those of the others differ in the index alone, which goes up by one; and their entries
--        an empty list is an empty text, which costs Redis less. What says nothing is left out, and a reader passes over letters that it does not know:
--        n when the next claim is due for what is parked        l when a scheduled job is due
--        d until when this worker holds the duty                w this worker is the second: when it looks after the duty
--        m 1: there was more than could be taken                s 1: a job with a limit could have started, had there been an executor
--        a 1: it has got a job that is to run alone, or is to get one when nothing else is in flight here
--        j 1: claim_short has answered
--        r [type, its limits, ...]: "name=rules|name=rules"; of a key with rules of its own as <type>/<key>
--                                                               h [type that became held, and that no worker runs, ...]
--        b [limit whose rules cannot be read, ...]              p [queue that is paused, ...]
--        k [what is wrong with a key of another kind, ...]      q ['queue when gate when opens ...', ...]: claim_dues
--        c what let the leases start: claim_causes              o ['limit thousandths since why lease', ...]: slots that nobody had taken
--        g how many workers claim jobs in advance, this one among them where it does
--
-- format: any
-- uses: check claim_alone claim_cache claim_call claim_causes claim_commit claim_crowd claim_dues claim_duty claim_faults claim_halt claim_held claim_lanes claim_park claim_queue claim_short claim_start claim_wait data_loss gate slices

local c = claim_call

-- Returns what the lanes must leave for the queue: executors, and places to prefetch.
local function keep_for_queue()
    local kept = c.free == 1 and c.turn % 2 or floor(c.free / 2)
    return c.reserved and 0 or kept, floor(c.prefetch / 2)
end

-- Serves lanes. While the queue has jobs, they may check half of what the claim may, and read half. Which of the two may read one body that is
-- larger changes from turn to turn.
local function serve_lanes(queue, due, queued)
    if not queued then return claim_lanes.serve(queue, due) end
    local kept, kept_prefetch = keep_for_queue()
    local load, turn_of_queue = c.load, c.turn % 2 == 1
    local of_lanes = slices.load(floor(max(0, load.left) / 2), load.alone and not turn_of_queue, load.step)
    local kept_budget = max(0, floor(c.budget / 2))
    c.free, c.prefetch, c.kept, c.load = c.free - kept, c.prefetch - kept_prefetch, kept, of_lanes
    c.budget = c.budget - kept_budget
    claim_lanes.serve(queue, due)
    c.free, c.prefetch, c.kept, c.load = c.free + kept, c.prefetch + kept_prefetch, 0, load
    c.budget = c.is_late and 0 or c.budget + kept_budget
    load.left = load.left - (of_lanes.all - of_lanes.left)
    load.alone = load.alone and (turn_of_queue or of_lanes.n == 0)
end

local function has_room() return c.free + c.prefetch > 0 and c.budget > 0 end

-- Serves one queue. Half of what may start is for its lanes that are due, then come its jobs, then its lanes have the rest.
local function serve_queue(queue)
    local due = (has_room() or not c.has_option('t')) and claim_lanes.due(queue)
    if not has_room() then
        c.missed[queue], c.more = true, c.more or not due or c.free + c.prefetch > 0
        return
    end
    local length = call('LLEN', P .. 'queue:' .. queue)
    if #due > 0 then serve_lanes(queue, due, length > 0) end
    if length == 0 then return end
    claim_queue.read(queue, length)
    claim_park.place()
    claim_lanes.serve(queue, claim_lanes.due(queue))
end

local function take_back_held()
    for _, queue in ipairs(c.queues) do
        claim_held.take_back_all(queue)
        if c.has_option('d') then claim_held.take_back_unknown(queue) end
    end
end

-- Serves all queues; returns what is wrong with the keys that are to be written.
local function serve_queues()
    if c.has_option('h') then take_back_held() end
    claim_alone.before()
    for _, queue in ipairs(c.queues) do serve_queue(queue) end
    claim_alone.after()
    local wrong = claim_commit.wrong_keys()
    if not wrong then claim_commit.write_leases(c.worker, c.leases) end
    return wrong
end

-- Begins a claim, or begins it anew; returns the reply when it is refused.
local function begin(ARGV)
    local wrong = claim_call.begin(ARGV)
    if wrong then return refuse('%s', wrong) end
    wrong = claim_halt.begin()
    if wrong then return wrong end
    claim_faults.begin()
    claim_duty.begin()
    claim_cache.begin()
    claim_causes.begin()
    claim_start.begin()
    claim_park.begin()
    claim_alone.begin()
end

-- Decides all; returns nil, or the reply when the claim is refused.
local function decide(ARGV)
    local refused
    repeat
        refused = begin(ARGV)
        if refused then return refused end
        local ok, wrong = pcall(serve_queues)
        if ok and not wrong then return nil end
        if ok then refused = check.refuse_key(wrong) else refused = claim_faults.refused(wrong) end
        claim_wait.restore()
        gate.undo()
    until refused
    return refused
end

local function add(reply, letter, value)
    local n = #reply
    reply[n + 1], reply[n + 2] = letter, value
end

local function add_list(reply, letter, list)
    if #list > 0 then add(reply, letter, list) end
end

-- Says of the call what is not as usual.
local function answer_of(more, follows, causes, dues, crowd)
    local packed = claim_start.packed()
    local reply = {now, #c.leases > 0 and not packed and c.leases or ''}
    if packed then add(reply, 'u', packed) end
    if follows.at < huge then add(reply, 'n', follows.at) end
    if follows.later < huge then add(reply, 'l', follows.later) end
    if c.duty_until > 0 then add(reply, 'd', c.duty_until) end
    if c.second_at > 0 then add(reply, 'w', c.second_at) end
    if more then add(reply, 'm', 1) end
    if c.starved then add(reply, 's', 1) end
    if c.alone then add(reply, 'a', 1) end
    add_list(reply, 'r', c.limits)
    add_list(reply, 'h', c.held)
    add_list(reply, 'b', c.broken)
    add_list(reply, 'p', c.paused)
    add_list(reply, 'k', c.faults)
    if dues then add(reply, 'q', dues) end
    if causes ~= '' then add(reply, 'c', causes) end
    add_list(reply, 'o', claim_causes.lost())
    if crowd > 0 then add(reply, 'g', crowd) end
    return reply
end

local function claim(ARGV)
    local ok, reply = pcall(claim_short.reply, ARGV)
    if ok and reply then return reply end
    local refused = decide(ARGV)
    if refused then return refused end
    claim_commit.write()
    if #c.leases > 0 then data_loss.mark(true) end
    collect_behind(#c.leases / 2)
    local follows = claim_duty.next_times()
    local more = claim_duty.decide(c.more or follows.is_due, follows.is_news)
    if c.alone then more = c.serves_alone and claim_alone.is_more() end
    return answer_of(more, follows, claim_causes.text(), claim_dues.list(), claim_crowd.count(c.worker, tonumber(ARGV[6])))
end

return claim

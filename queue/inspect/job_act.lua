-- job_act: the same is done to each of the jobs on one page that a search is for.
--
-- A page is looked at first, and what will be done is decided; then all of that is done, in steps that cannot fail.
--
--   cancel  running: its worker is told; others: gone. One that waits far from both ends of its list is marked, if a worker runs its type:
--           the claim that meets it ends it
--   run     scheduled: to the head of its queue, retry: to the head of its lane; waiting, parked, held: to the head of where it stands
--   retry   dead: to the tail of its queue, with all attempts ahead of it
--   remove  dead: gone
--
-- Jobs in other states are left, and so are those for which there is nothing to do: cancelled already, or the first in their place. Those
-- that were cancelled, alone or with their batch, are neither run nor retried: a claim would end them.
--
-- ARGV: now, action, most (entries of this page, 1 to 1000), jobs (that it is done to at most), seed (random: see sign), n, field, value
--       (n of these, as job_search.lua has them), then what `next` of the page before says: places, as places.lua has them, the next one
--       first
-- role: operator
-- reply: JSON: {"now": "us", "looked_at": jobs of this page, "states": {state: {"jobs": done, "left"}}, "next": [place, from, ...], if there
--        is more; "first": {"list", "of"}: where the job stands that was put first last, and how many are in that list; "marked": how many
--        of those that are cancelled wait for a claim; "batch": one whose jobs are left, as it was cancelled; "elsewhere": as dead.lua has it}
-- uses: bell body cancelled cancelling check counters dead_moves heads job_search lane lane_names large places registry runs sign stamp

local action, seed, most_done -- of one call
local acts, counts             -- what will be done: {act =, ...} each; by state
local first                   -- {list =, of =}: where the job stands that was put first last
local dead                    -- jobs that will leave the dead ones, as dead_moves has them
local leaving                 -- what an act of this call is for: ids, records, places
local put                     -- {list = how many were put first in it}
local rung                    -- queues whose workers will be woken, a set
local ended                   -- entries that were cancelled where they waited
local ends                    -- {"<kind of list> <type>" = how many of these}
local marked                  -- how many were marked instead
local batch                   -- a cancelled one whose jobs are left

local function add(act, job)
    job.act = act
    acts[#acts + 1] = job
    return true
end

local function refuse_wrong(wrong)
    if wrong then error(check.refuse_key(wrong)) end
end

-- ---- Deciding. Each returns whether it is done, how the job will have left its place, and how many entries more that counts for

local decide = {cancel = {}, run = {}, retry = {}, remove = {}}

local function is_first_time(what)
    if leaving[what] then return false end
    leaving[what] = true
    return true
end

local LREM_SHARE = 200 -- entries of a list that are compared while one is looked at
local FAR = 50000      -- entries that LREM would compare, in 2 ms: a job that is farther from both ends leaves its place to the last one
local FAR_COST = 50    -- entries that are looked at in the same time
local NEAR = 5000      -- the same of one that is cancelled: others may be met by a claim sooner

-- How a job will leave its list: from which end LREM looks for it, whether it is too far away for that, and what that costs.
local function way_out(job, far)
    local place, length = tonumber(job.place), tonumber(job.of)
    local compared = min(place, length - place)
    job.count, job.is_far = place * 2 > length and '-1' or '1', compared > far
    return job.is_far and FAR_COST or ceil(compared / LREM_SHARE)
end

local function mark(job, id)
    if call('HEXISTS', P .. 'cancelled', id) == 1 or not is_first_time(id) then return false end
    job.id = id
    return add('mark', job)
end

-- Lets a job leave that waits, in a lane or aside.
local function leave(job)
    local attrs, at = heads.attrs_of(job.entry)
    refuse_wrong(check.wrong_kind('cancelled', 'hash'))
    job.batch, job.lane = heads.attr(attrs, 'b') or '', match(job.list, '^lane:(.*)$')
    if job.lane then refuse_wrong(lane.wrong(job.lane)) end
    local cost = way_out(job, NEAR)
    local id = body.id(job.entry, at)
    if job.is_far and is_name(id) and runs.is_run(job.type) then return mark(job, id) end
    if not is_first_time(job.list .. ' ' .. job.place) then return false end
    return add('leave', job), 'gone', cost
end

local function tell(job)
    refuse_wrong(check.wrong_kind('told:' .. job.worker.name, 'list'))
    return not cancelled.is_marked(job.entry) and add('tell', job)
end

local function take(job) return cancelling.type_of(job.header) and is_first_time(job.item) and add('take', job), 'gone' end

decide.cancel = {waiting = leave, parked = leave, held = leave, aside = leave, running = tell, scheduled = take, retry = take}

-- True when it was cancelled, alone or with its batch.
local function is_over(job)
    local over = cancelled.by(job.entry)
    if over and over ~= '' then batch = over end
    return over ~= nil
end

local function put_first(job)
    if is_over(job) or job.place == '1' and not leaving[job.list] or not is_first_time(job.list .. ' ' .. job.place) then return false end
    leaving[job.list] = true -- the first one comes before those behind it again
    local name = match(job.list, '^lane:(.*)$')
    if name then refuse_wrong(lane.wrong(name)) end
    return add('put_first', job), 'first', way_out(job, FAR)
end

local function to_queue(job)
    local queue, name = match(job.header, '^q %S+ ([%w_.-]+) ([%w_.-]+)$')
    if not queue or is_over(job) or not is_first_time(job.item) then return false end
    refuse_wrong(check.wrong_kind('queue:' .. queue, 'list') or sign.wrong())
    job.queue, job.type = queue, name
    return add('to_queue', job), 'gone'
end

local function to_lane(job)
    local name = match(job.header, '^l %S+ ([%w_.-]+!?/[%w_.-]+/[%w_.-]*)$')
    if not name or is_over(job) or not is_first_time(job.item) then return false end
    refuse_wrong(lane.wrong(name))
    job.lane = name
    return add('to_lane', job), 'gone'
end

decide.run = {waiting = put_first, parked = put_first, held = put_first, scheduled = to_queue, retry = to_lane}

local function leave_dead(job)
    if not is_first_time(job.item) then return false end
    job.record = job.item
    local _, _, _, text, attrs = heads.read(job.entry)
    job.body, job.attrs = text, attrs
    dead[#dead + 1] = job
    return true, 'gone'
end

local function revive(job)
    if not is_name(job.queue) then return false end
    local name = cancelled.batch_ever(heads.attrs_of(job.entry))
    batch = name or batch
    return not name and leave_dead(job), 'gone'
end

decide.retry, decide.remove = {dead = revive}, {dead = leave_dead}

-- ---- Doing

local act = {}

function act.mark(job)
    call('HSETNX', P .. 'cancelled', job.id, cancelled.waiting(us(now), job.queue or '', job.type or '', job.batch))
    marked = marked + 1
end

function act.tell(job) cancelling.tell(job.worker.name, job.token, job.entry) end

function act.take(job) cancelling.take(job.header, job.entry) end

-- The last job of its list takes its place, and no other moves. Returns whether it was there: those of its list that were put first since
-- it was met stand before it.
local function leave_to_last(job)
    local at = us(job.place - 1 + (put[job.list] or 0))
    if call('LINDEX', P .. job.list, at) ~= job.item then return false end
    call('LSET', P .. job.list, at, call('LINDEX', P .. job.list, '-1'))
    call('LTRIM', P .. job.list, '0', '-2')
    return true
end

local function leave_list(job) return job.is_far and leave_to_last(job) or call('LREM', P .. job.list, job.count, job.item) > 0 end

function act.leave(job)
    if not leave_list(job) then return end
    local what = match(job.list, '^%a+') .. ' ' .. job.type
    ended[#ended + 1], ends[what] = job.entry, (ends[what] or 0) + 1
    local queue = job.lane and cancelling.left_lane(job.lane, job.place == '1')
    if queue then rung[queue] = true end
end

-- Puts a job first. It goes and comes in one script, and its list has others: nobody sees it nowhere.
function act.put_first(job)
    local name = match(job.list, '^lane:(.*)$')
    if not leave_list(job) then return end
    put[job.list] = (put[job.list] or 0) + 1
    first = {list = job.list, of = us(call('LPUSH', P .. job.list, job.item))}
    if not name then return end
    local queue, kind, key = lane_names.parts(name)
    lane.gates_are_due(queue, kind, key)
    rung[queue] = true
end

-- A scheduled job waits since it is due: this one is now.
local function due_now(entry)
    local attempts, interrupted, throttled, text, attrs = heads.read(entry)
    if attrs == '' then return entry end
    return heads.write(attempts, interrupted, throttled, text, stamp.due(attrs, now))
end

function act.to_queue(job)
    local length = call('LPUSH', P .. 'queue:' .. job.queue, sign.write(due_now(job.entry), seed))
    large.note(job.queue, job.entry)
    first = {list = 'queue:' .. job.queue, of = us(length)}
    if length == 1 then bell.arrived(job.queue) end
    registry.add(job.queue)
    counters.add(job.type, 'scheduled', -1)
    counters.add(job.type, 'enqueued', 1)
    call('ZREM', P .. 'later', job.item)
end

function act.to_lane(job)
    local queue, kind = lane_names.parts(job.lane)
    lane.give_back(job.lane, {job.entry})
    first = {list = 'lane:' .. job.lane, of = us(call('LLEN', P .. 'lane:' .. job.lane))}
    counters.add(kind, 'scheduled', -1)
    rung[queue] = true
    call('ZREM', P .. 'later', job.item)
end

-- Returns what is to go to other partitions, as dead.lua has it.
local function move_dead()
    if #dead == 0 then return end
    if action == 'remove' then return dead_moves.remove(dead) end
    local able, queues, elsewhere, records = dead_moves.into_queues(dead, '')
    dead_moves.retry(able, queues, seed)
    if #elsewhere > 0 then return elsewhere, records end
end

local function check_dead()
    if action ~= 'retry' or #dead == 0 then return end
    local _, queues = dead_moves.into_queues(dead, '')
    refuse_wrong(dead_moves.wrong(queues))
end

-- Does all. Jobs of a list were met from its tail, those of later from the one that is due first: so each has the earlier ones before it.
local function do_all()
    for _, job in ipairs(acts) do
        if job.list then act[job.act](job) end
    end
    for i = #acts, 1, -1 do
        if not acts[i].list then act[acts[i].act](acts[i]) end
    end
    cancelling.end_waiting(ended, ends)
    bell.ring_all(rung)
end

-- ----

local DEED_COST = 3 -- entries that are looked at while something is done to one

local function meet(state, of_lane, entry, more)
    if not job_search.is_state(state) then return false end
    local queue, name, key = match(of_lane, '^([^/]*)/?([^/]*)/?(.*)$')
    more.queue, more.type, more.key = lane_names.usual_queue(queue), name ~= '' and name or body.type(entry) or '', key
    more.entry = entry
    local decider, done, to, cost = decide[action][state], false, nil, nil
    if decider then done, to, cost = decider(more) end
    local count = counts[state] or {jobs = 0, left = 0}
    counts[state] = count
    if not done then
        count.left = count.left + 1
        return false
    end
    count.jobs = count.jobs + 1
    most_done = most_done - 1
    return most_done == 0, to, DEED_COST + (cost or 0)
end

local function job_act(ARGV)
    local most, count = tonumber(ARGV[3]), tonumber(ARGV[6])
    action, most_done, seed = ARGV[2], tonumber(ARGV[4]), ARGV[5]
    local good = decide[action or ''] and is_whole(most, 1) and is_whole(most_done, 1) and is_name(seed) and is_whole(count)
    local stack = good and job_search.read(ARGV, 7, count) and places.stack(ARGV, 7 + 2 * count)
    if not stack or most > 1000 then
        return refuse('job_act: wants now, cancel, run, retry or remove, most from 1 to 1000, jobs, seed, n, n fields and values, place, from, ...')
    end
    acts, dead, counts, leaving, put, rung, first = {}, {}, {}, {}, {}, {}, nil
    ended, ends, marked, batch = {}, {}, 0, nil
    refuse_wrong(check.wrong_kind('later', 'zset') or check.wrong_kind('dead', 'zset'))
    places.walk(stack, {only = job_search.only(), wants = job_search.wants, meet = meet, moves = true}, most)
    check_dead()
    do_all()
    local elsewhere, records = move_dead()
    return answer({now = us(now), looked_at = us(places.looked()), states = counts, first = first, marked = us(marked), batch = batch,
                   elsewhere = elsewhere, next = places.words(stack) or nil}, records)
end

return job_act

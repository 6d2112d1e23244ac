-- enqueue: one job, once: while its id is remembered, another call with that id changes nothing; nor does one with a unique key
-- that another job holds.
--
-- ARGV: now, queue, type, id,
--       keep_ms    how long the id is remembered
--       tag        random, of this one call: when it is sent twice because its answer was lost, both answers are the same;
--                  also the seed of sign
--       delay_us   run at the earliest that long from now, or ''
--       at_us      run at the earliest at that time, or ''
--       cost       that of its body, as cost.lua writes it, or ''
--       batch      that counts it, or ''
--       unique     key, or ''
--       lock       how long it holds that: 'end' until it has ended, 'start' until a worker has it, or for so many ms
--       (these six may be left out, all of them: most jobs have none)
--       entry      a body in the order of queue/job/job.h: {"id":"<id>","type":"<type>" first; before it perhaps a head that says
--                  when it is enqueued, and nothing else (stamp)
-- role: producer
-- reply: WRONG-PARTITION when its type lives elsewhere and its id is not known here; else
--        1 when the job is new; else [ 0 when its id is known, -1 when another job holds the key; its id, or that one's ]
--
-- unique:<key>: the id of the job that holds it. It is freed by what ends the job (ends.lua), or starts it.
--
-- full: refused
-- time: when needed
-- format: any
-- uses: arrival bell body check cost counters heads large later_records partition sign stamp

local TIME_MOST = 4102444800000000 -- the year 2100: farther away it is a mistake

local PLAIN, ALL = 7, 13 -- arguments: without the six, with them

local NAME_MOST = 128
local DIGITS_MOST = 12 -- of keep_ms: 31 years

local LOCK_MOST_MS = 315360000000 -- ten years
local ATTR = {['end'] = ',u', start = ',w'}

-- Says what is wrong with the arguments that most jobs leave empty.
local function wrong_extras(delay_us, at_us, said, batch, unique, lock)
    if delay_us ~= '' and at_us ~= '' then return 'either a delay or a time' end
    if said ~= '' and not cost.parse(said) then return 'its cost must be a whole number, or numbers by name' end
    if batch ~= '' and not is_name(batch) then return 'its batch is not a valid name' end
    if unique == '' then return lock ~= '' and 'a lock without a unique key' or nil end
    if not is_name(unique) then return 'its unique key is not a valid name' end
    if not ATTR[lock] and not (is_whole(tonumber(lock), 1) and tonumber(lock) <= LOCK_MOST_MS) then
        return 'its lock must be end, start or a number of ms, at most ten years'
    end
end

-- Checks the entry, which names the type and the id too: where all agree, the names of both are valid but for their length.
local function wrong_entry(entry, name, id)
    local its_id, its_type = body.id_and_type(entry)
    if its_id == id and its_type == name and #id <= NAME_MOST and #name <= NAME_MOST then return nil end
    return not is_name(name) and 'its type is not a valid name' or not is_name(id) and 'its id is not a valid name'
        or 'its body is another job\'s'
end

-- Checks the other arguments. keep_ms is a text, as Redis takes it.
local function wrong_arguments(ARGV, keep_ms)
    if #ARGV ~= PLAIN and #ARGV ~= ALL then return 'wants 7 or 13 arguments' end
    if not is_name(ARGV[2]) then return 'its queue is not a valid name' end
    if not is_name(ARGV[6]) then return 'its tag is not a valid name' end
    if #keep_ms > DIGITS_MOST or not find(keep_ms, '^[1-9]%d*$') then return 'keep_ms must be a whole number' end
    return wrong_entry(ARGV[#ARGV], ARGV[3], ARGV[4])
end

-- Returns when the job is due; 0: at once.
local function due_time(delay_us, at_us)
    if delay_us == '' and at_us == '' then return 0 end
    local due = delay_us ~= '' and now + (tonumber(delay_us) or 0 / 0) or tonumber(at_us)
    if not due or not (due >= 0 and due <= TIME_MOST) then return nil, 'its time must lie before the year 2100' end
    return due > now and due or 0
end

local function wrong_keys(queue, name, id, due, said, batch, unique)
    return batch ~= '' and arrival.wrong_batch(batch) or unique ~= '' and check.wrong_kind('unique:' .. unique, 'string')
        or check.wrong_kind('id:' .. id, 'string') or check.wrong_kind('queue:' .. queue, 'list')
        or check.wrong_kind('later', 'zset') or arrival.wrong_registries()
        or batch .. unique ~= '' and sign.wrong() or said ~= '' and check.wrong_kind('limits', 'hash')
        or arrival.wrong_counter(name, due == 0 and 'enqueued' or 'scheduled')
end

-- Makes the entry, which says what is to be done when the job ends, and when it is due.
local function make_entry(batch, unique, lock, entry, due)
    local attrs = batch ~= '' and ',b' .. batch or ''
    if ATTR[lock] then attrs = attrs .. ATTR[lock] .. unique end
    if attrs == '' and due == 0 then return entry end
    local stamped, at = heads.attrs_of(entry)
    if due > 0 then stamped = stamp.due(stamped, due) end
    return heads.write(0, 0, 0, sub(entry, at), attrs .. stamped)
end

local function put(queue, name, due, tag, header, entry)
    if due == 0 then
        if call('RPUSH', P .. 'queue:' .. queue, sign.write(entry, tag)) == 1 then bell.arrived(queue) end
        large.note(queue, entry)
        arrival.count(name, 'enqueued', 1)
    else
        if later_records.put(header .. entry, due) then bell.ring(queue) end
        arrival.count(name, 'scheduled', 1)
    end
    call('SADD', P .. 'queues', queue)
end

local function lock_key(unique, lock, id)
    if ATTR[lock] or VIRTUAL then
        call('SET', P .. 'unique:' .. unique, id)
    else
        call('SET', P .. 'unique:' .. unique, id, 'PX', lock)
    end
end

-- Returns the answer that needs no enqueueing; nil: there is none. A lock that the job itself holds answers as its id does: the job is there, or
-- was within the time of the lock.
local function answer_at_once(name, id, tag, batch, unique)
    local known = call('GET', P .. 'id:' .. id)
    if known then return known == tag and 1 or {0, id} end
    local refusal = partition.refusal(name)
    if refusal then return refusal end
    local holder = unique ~= '' and call('GET', P .. 'unique:' .. unique)
    if holder then return {holder == id and 0 or -1, holder} end
    local closed = batch ~= '' and arrival.closed(batch)
    return closed and refuse('%s', closed)
end

-- Remembers a job; false: it is known.
local function remember(id, tag, keep_ms)
    if VIRTUAL then return call('SET', P .. 'id:' .. id, tag, 'NX') end
    return call('SET', P .. 'id:' .. id, tag, 'NX', 'PX', keep_ms)
end

-- ---- The short way: most jobs ask for nothing but to be in a queue, and nothing stands in the way

-- Takes back what was written before a step that failed; n: what the count has answered. A producer may add, and nothing else, so what would have
-- to be taken out again comes last.
local function take_back(name, id, n)
    if type(n) == 'number' then call('HINCRBY', P .. 'stats:' .. name, 'enqueued', '-1') end
    call('DEL', P .. 'id:' .. id)
end

-- Puts a plain job into its queue, which is known, without a look before: each step says by itself when its key cannot be used. nil: one has, and
-- nothing is changed; the long way answers why.
local function put_at_once(queue, name, id, keep_ms, tag, entry)
    if partition.elsewhere(name) or call_safe('SISMEMBER', P .. 'queues', queue) ~= 1 or not remember(id, tag, keep_ms) then return nil end
    local n, length = counters.add(name, 'enqueued', 1), nil
    if type(n) == 'number' and (n > 1 or not check.wrong_kind('types', 'hash')) then
        length = call_safe('RPUSH', P .. 'queue:' .. queue, entry)
    end
    if type(length) ~= 'number' then return take_back(name, id, n) end
    if n == 1 then call('HSETNX', P .. 'types', name, '') end
    if length == 1 then bell.arrived(queue) end
    large.note(queue, entry)
    has_changed_nothing()
    return 1
end

scripts.put_at_once = put_at_once -- for call_produce, which has checked the rest

-- ----

-- Fills in the arguments that a plain job leaves out: they are empty.
local function fill(ARGV)
    ARGV[ALL] = ARGV[PLAIN]
    for i = PLAIN, ALL - 1 do ARGV[i] = '' end
end

local function enqueue(ARGV)
    local queue, name, id, keep_ms, tag = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
    local wrong, due = wrong_arguments(ARGV, keep_ms), nil
    if not wrong and #ARGV == PLAIN then
        local reply = put_at_once(queue, name, id, keep_ms, tag, ARGV[PLAIN])
        if reply then return reply end
        fill(ARGV)
    end
    read_clock()
    local batch, unique, lock = ARGV[10], ARGV[11], ARGV[12]
    wrong = wrong or wrong_extras(ARGV[7], ARGV[8], ARGV[9], batch, unique, lock)
    if not wrong then due, wrong = due_time(ARGV[7], ARGV[8]) end
    if wrong then return refuse('enqueue: %s', wrong) end
    wrong = wrong_keys(queue, name, id, due, ARGV[9], batch, unique)
    if wrong then return check.refuse_key(wrong) end
    wrong = ARGV[9] ~= '' and arrival.never_fits(name, cost.parse(ARGV[9]))
    if wrong then return refuse('%s', wrong) end

    local answer = answer_at_once(name, id, tag, batch, unique)
    if answer then return answer end
    local header = format('q %s.%s %s %s\n', id, tag, queue, name)
    put(queue, name, due, tag, header, make_entry(batch, unique, lock, ARGV[13], due))
    if batch ~= '' then arrival.join(batch, {{name = name, count = 1}}, 1, max(0, due - now)) end
    if unique ~= '' then lock_key(unique, lock, id) end
    remember(id, tag, keep_ms)
    return 1
end

return enqueue

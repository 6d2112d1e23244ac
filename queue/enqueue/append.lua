-- append: the next chunk of a batch, exactly once. A batch knows how many lines of its input it has and a checksum over
-- them; a chunk that does not begin there changes nothing.
--
-- ARGV: now, batch,
--       keep_ms     how long an unnamed bulk is remembered after this chunk; '': it has a name and counts its jobs
--       first       lines of the input before this chunk
--       lines       lines of this chunk, those without a job included
--       sum_before, sum_after   the checksums at its ends
--       seed        random: see sign
--       stamp       digits of the time at which a batch with a name gets these jobs (stamp); else '', and each entry has them
--       n, (type, count) * n, m, (queue, count) * m: what is in it
--       bodies, or entries that say only when they were enqueued, those of the first queue first
-- role: producer
-- reply: [ "ok", lines of the input that the batch has now ]
--        [ "at", lines of the input that the batch has, checksum ] when the chunk is not the next one
--        WRONG-PARTITION when it is, but one of its types lives elsewhere
--        an error that says so when it is, but the batch is sealed
-- full: refused
-- format: any
-- uses: arrival bell check counters ends large partition sign stamp

local SLICE = 4000 -- unpack fails near 8,000 values

-- Reads "n, (name, count) * n" from ARGV[at] on: the pairs, the sum of their counts, and where they end; or nil.
local function read_counts(ARGV, at)
    local n, list, total = tonumber(ARGV[at]), {}, 0
    if not is_whole(n) or at + 2 * n > #ARGV then return nil end
    for i = at + 1, at + 2 * n, 2 do
        local count = tonumber(ARGV[i + 1])
        if not is_name(ARGV[i]) or not is_whole(count) or count < 1 then return nil end
        list[#list + 1] = {name = ARGV[i], count = count}
        total = total + count
    end
    return list, total, at + 2 * n + 1
end

-- Returns what is wrong with the chunk, which it fills in.
local function read_chunk(ARGV, c)
    if not is_name(c.batch) then return 'its batch is not a valid name' end
    if c.keep_ms ~= '' and not is_whole(tonumber(c.keep_ms)) then return 'keep_ms must be a whole number' end
    if not is_whole(c.first) or not is_whole(c.lines) then return 'first and lines must be whole numbers' end
    if not c.sum_before or not c.sum_after then return 'it has no checksums' end
    if not is_name(c.seed) then return 'its seed is not a valid name' end
    if c.stamp ~= '' and not stamp.is(c.stamp or '') then return 'its stamp is none' end
    local total, jobs, at
    c.types, total, at = read_counts(ARGV, 10)
    if not c.types then return 'the counts of its types are wrong' end
    c.queues, jobs, c.bodies = read_counts(ARGV, at)
    if not c.queues then return 'the counts of its queues are wrong' end
    if jobs ~= total or jobs ~= #ARGV - c.bodies + 1 or jobs > c.lines then return 'its counts and its jobs do not agree' end
end

local function wrong_keys(c)
    local wrong = arrival.wrong_batch(c.batch) or arrival.wrong_registries() or c.keep_ms == '' and sign.wrong()
    for _, q in ipairs(c.queues) do wrong = wrong or check.wrong_kind('queue:' .. q.name, 'list') end
    for _, t in ipairs(c.types) do wrong = wrong or arrival.wrong_counter(t.name, 'enqueued') end
    return wrong
end

-- Gives each body the head which says that the batch counts it.
local function add_heads(ARGV, c)
    local head = sign.write('@0,0,0,b' .. c.batch .. (c.stamp ~= '' and ',t' .. c.stamp or '') .. ';', c.seed)
    for i = c.bodies, #ARGV do ARGV[i] = head .. ARGV[i] end
end

local function put_jobs(ARGV, c)
    local at, were_empty = c.bodies, {}
    for _, q in ipairs(c.queues) do
        local last, length = at + q.count - 1, 0
        for i = at, last, SLICE do length = call('RPUSH', P .. 'queue:' .. q.name, unpack(ARGV, i, min(i + SLICE - 1, last))) end
        call('SADD', P .. 'queues', q.name)
        large.note_some(q.name, ARGV, at, last)
        if length == q.count then were_empty[#were_empty + 1] = q.name end
        at = last + 1
    end
    bell.arrived_all(were_empty)
    for _, t in ipairs(c.types) do arrival.count(t.name, 'enqueued', t.count) end
end

local function elsewhere(types)
    for _, t in ipairs(types) do
        local refusal = partition.refusal(t.name)
        if refusal then return refusal end
    end
end

-- True when the batch, with this next and sum, stands where the chunk begins.
local function is_next(c, state)
    return state[1] and tonumber(state[1]) == c.first and state[2] == c.sum_before or not state[1] and c.first == 0
end

local function take_back(t) call('HINCRBY', P .. 'stats:' .. t.name, 'enqueued', us(-t.count)) end

-- Puts the jobs of a chunk as most are, of one queue and one type that are known, without a look before: each step says by itself when its key cannot
-- be used. A producer may add, and nothing else, so what would have to be taken out again comes last. nil: a key is wrong, or the chunk is another
-- one, and nothing is changed; the long way answers why.
local function put_at_once(ARGV, c)
    local q, t = c.queues[1], c.types[1]
    if c.keep_ms == '' or #c.queues ~= 1 or #c.types ~= 1 or q.count > SLICE or partition.elsewhere(t.name) then return nil end
    local state = call_safe('HMGET', P .. 'batch:' .. c.batch, 'next', 'sum')
    if state.err or not is_next(c, state) or call_safe('SISMEMBER', P .. 'queues', q.name) ~= 1 then return nil end
    local n, length = counters.add(t.name, 'enqueued', t.count), nil
    if type(n) ~= 'number' then return nil end
    if n > t.count then length = call_safe('RPUSH', P .. 'queue:' .. q.name, unpack(ARGV, c.bodies)) end
    if type(length) ~= 'number' then return take_back(t) end
    large.note_some(q.name, ARGV, c.bodies, #ARGV)
    if length == q.count then bell.arrived(q.name) end
    return true
end

-- Puts the jobs of any chunk; returns the reply when nothing is changed.
local function put_looked(ARGV, c)
    local wrong = wrong_keys(c)
    if wrong then return check.refuse_key(wrong) end
    local state = call('HMGET', P .. 'batch:' .. c.batch, 'next', 'sum')
    if not is_next(c, state) then return {'at', state[1] or '0', state[2] or ''} end
    local refusal = elsewhere(c.types)
    if refusal then return refusal end
    wrong = c.keep_ms == '' and arrival.closed(c.batch)
    if wrong then return refuse('%s', wrong) end
    if c.keep_ms == '' then add_heads(ARGV, c) end
    put_jobs(ARGV, c)
end

local function append(ARGV)
    local c = {batch = ARGV[2], keep_ms = ARGV[3], first = tonumber(ARGV[4]), lines = tonumber(ARGV[5]),
               sum_before = ARGV[6], sum_after = ARGV[7], seed = ARGV[8], stamp = ARGV[9]}
    local wrong = read_chunk(ARGV, c)
    if wrong then return refuse('append: %s', wrong) end
    local refused = not put_at_once(ARGV, c) and put_looked(ARGV, c)
    if refused then return refused end
    local after = us(c.first + c.lines)
    call('HSET', P .. 'batch:' .. c.batch, 'next', after, 'sum', c.sum_after)
    if c.keep_ms == '' then
        arrival.join(c.batch, c.types, #ARGV - c.bodies + 1, 0)
    else
        ends.keep(c.batch, tonumber(c.keep_ms), true)
    end
    return {'ok', after}
end

return append

-- append: the next chunk of a batch, exactly once. A batch knows how many lines of its input it has and a checksum over
-- them; a chunk that does not begin there changes nothing.
--
-- KEYS[1] prefix
-- ARGV: now, batch,
--       keep_ms     how long the batch is remembered after this chunk; '' for ever
--       first       lines of the input before this chunk
--       lines       lines of this chunk, those without a job included
--       sum_before, sum_after   the checksums at its ends
--       n, (type, count) * n, m, (queue, count) * m: what is in it
--       bodies, those of the first queue first
-- reply: [ "ok", lines of the input that the batch has now ]
--        [ "at", lines of the input that the batch has, checksum ] when the chunk is not the next one
-- full: refused
-- uses: core/base.lua core/now.lua queue/check.lua queue/arrival.lua

local SLICE = 4000 -- unpack fails near 8,000 values

local batch, keep_ms, first, lines = ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local sum_before, sum_after = ARGV[6], ARGV[7]

-- Reads "n, (name, count) * n" from ARGV[at] on: the pairs, the sum of their counts, and where they end; or nil.
local function read_counts(at)
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

local types, queues, bodies, jobs
local function wrong_arguments()
    if not is_name(batch) then return 'its batch is no name' end
    if keep_ms ~= '' and not is_whole(tonumber(keep_ms)) then return 'keep_ms must be a whole number' end
    if not is_whole(first) or not is_whole(lines) then return 'first and lines must be whole numbers' end
    if not sum_before or not sum_after then return 'it has no checksums' end
    local total
    types, total, bodies = read_counts(8)
    if not types then return 'the counts of its types are wrong' end
    queues, jobs, bodies = read_counts(bodies)
    if not queues then return 'the counts of its queues are wrong' end
    if jobs ~= total or jobs ~= #ARGV - bodies + 1 or jobs > lines then return 'its counts and its jobs do not agree' end
end

local function wrong_keys()
    local wrong = wrong_kind('batch:' .. batch, 'hash') or wrong_registries()
    for _, q in ipairs(queues) do wrong = wrong or wrong_kind('queue:' .. q.name, 'list') end
    for _, t in ipairs(types) do wrong = wrong or wrong_counter(t.name, 'enqueued') end
    return wrong
end

local wrong = wrong_arguments()
if wrong then return refuse('append: %s', wrong) end
wrong = wrong_keys()
if wrong then return refuse_key(wrong) end

local state = call('HMGET', P .. 'batch:' .. batch, 'next', 'sum')
if state[1] and (tonumber(state[1]) ~= first or state[2] ~= sum_before) or not state[1] and first ~= 0 then
    return {'at', state[1] or '0', state[2] or ''}
end

local at = bodies
for _, q in ipairs(queues) do
    local last = at + q.count - 1
    for i = at, last, SLICE do call('RPUSH', P .. 'queue:' .. q.name, unpack(ARGV, i, min(i + SLICE - 1, last))) end
    call('SADD', P .. 'queues', q.name)
    at = last + 1
end
for _, t in ipairs(types) do count_arrivals(t.name, 'enqueued', t.count) end
local next = us(first + lines)
call('HSET', P .. 'batch:' .. batch, 'next', next, 'sum', sum_after)
if keep_ms ~= '' and not VIRTUAL then call('PEXPIRE', P .. 'batch:' .. batch, keep_ms) end
return {'ok', next}

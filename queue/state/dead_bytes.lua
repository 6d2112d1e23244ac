-- dead_bytes: how many bytes the records of `dead` take. Whoever puts records there or takes them out says so, in the same call.
--
--   dead_bytes  hash: bytes and jobs (records), since (when it was begun, us). Records that were there before anybody counted are counted
--               by heartbeats, oldest first, a page at a time. As long as that goes on, score and record are the place up to which
--               records are counted. Where jobs is another number than there are, as workers of an older version or others wrote
--               there, it is begun anew
--
-- uses: check dead_records
local dead_bytes = {}

local PAGE = 500               -- records counted by one heartbeat
local ANEW_US = 600 * 1000000 -- counting is not begun anew sooner: it reads all records

-- What this call knows: {wrong = (the key), bytes =, jobs =, since =, place =, score =, record =}; bytes nil: nobody counts; place: score as text.
local state

local function forget() state = nil end

local function load()
    if state then return end
    at_next_call(forget)
    state = {wrong = check.wrong_kind('dead_bytes', 'hash')}
    if state.wrong then return end
    local f = call('HMGET', P .. 'dead_bytes', 'bytes', 'jobs', 'since', 'score', 'record')
    if not find(f[1] or '', '^%d+$') then return end
    state.bytes, state.jobs, state.since = tonumber(f[1]), tonumber(f[2] or 0), tonumber(f[3] or 0)
    state.place, state.score, state.record = f[4], f[4] and tonumber(f[4]), f[5] or ''
end

-- Begins to count at 0. before: records were there before, and are to be counted.
local function begin(before)
    state = {bytes = 0, jobs = 0, since = now}
    call('DEL', P .. 'dead_bytes')
    call('HSET', P .. 'dead_bytes', 'bytes', '0', 'jobs', '0', 'since', us(now))
    if not before then return end
    state.place, state.score, state.record = '-inf', -huge, ''
    call('HSET', P .. 'dead_bytes', 'score', state.place, 'record', '')
end

local function is_counted(score, record)
    if not state.score or score < state.score then return state.bytes ~= nil end
    return score == state.score and not dead_records.precedes(state.record, record)
end

local function add(bytes, jobs)
    state.bytes = state.bytes + bytes
    call_safe('HINCRBY', P .. 'dead_bytes', 'bytes', us(bytes))
    call_safe('HINCRBY', P .. 'dead_bytes', 'jobs', us(jobs))
end

-- Counts records that were added now, each behind its score.
function dead_bytes.added(records)
    load()
    if state.wrong then return end
    if call('ZCARD', P .. 'dead') == #records / 2 then begin(false) end
    local bytes, jobs, all = 0, 0, not state.score and state.bytes
    for i = 2, #records, 2 do
        if all or is_counted(now, records[i]) then bytes, jobs = bytes + #records[i], jobs + 1 end
    end
    if jobs > 0 then add(bytes, jobs) end
end

-- Counts records that have left.
function dead_bytes.removed(scores, records)
    load()
    if state.wrong or #records == 0 then return end
    if call('EXISTS', P .. 'dead') == 0 then
        state = {}
        call('DEL', P .. 'dead_bytes')
        return
    end
    local bytes, jobs = 0, 0
    for i, record in ipairs(records) do
        if is_counted(tonumber(scores[i]), record) then bytes, jobs = bytes + #record, jobs + 1 end
    end
    if jobs > 0 then add(-bytes, -jobs) end
end

-- Returns how many bytes and records there are; nil: they are not all counted yet.
function dead_bytes.read()
    if call('EXISTS', P .. 'dead') == 0 then return 0 end
    load()
    return not state.score and state.bytes or nil
end

-- True when somebody has written there who does not count.
local function is_off()
    return state.jobs ~= call('ZCARD', P .. 'dead') and (now < state.since or now - state.since >= ANEW_US)
end

-- Counts some records that were there before. Returns true as long as there are more, and how many bytes they are when that has ended.
function dead_bytes.count()
    load()
    if state.wrong or call('EXISTS', P .. 'dead') == 0 or dead_bytes.read() and not is_off() then return false end
    if not state.score then begin(true) end
    local records, scores, ended = dead_records.page(dead_records.rank_behind(state.place, state.record), PAGE, huge)
    local last, bytes, jobs = #records, 0, 0
    if not ended and is_counted(tonumber(scores[last]), records[last]) then
        begin(true) -- its place is gone, and cannot be found
        return true
    end
    for i, record in ipairs(records) do
        if not is_counted(tonumber(scores[i]), record) then bytes, jobs = bytes + #record, jobs + 1 end
    end
    add(bytes, jobs)
    if ended then
        call('HDEL', P .. 'dead_bytes', 'score', 'record')
        state.score = nil
        return false, state.bytes
    end
    call('HSET', P .. 'dead_bytes', 'score', scores[last], 'record', records[last])
    return true
end

return dead_bytes

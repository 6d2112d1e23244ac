-- dead_records: the records of `dead`, oldest first; whoever has put them there, each can be read as something.
--
-- uses: check lease
local dead_records = {}

local BYTES_MOST = 512 * 1024 -- of a page, about
local SLICE_MOST = 4          -- records that are read at once, as large ones may stand behind small ones; the first one is read alone
local STEP_MOST = 500          -- forgotten in one call; about 2 ms

-- {queue =, type =, key =, reason =, entry =}; what is not known is ''.
function dead_records.read(record)
    local lane, reason, at = match(record, '^%S+ (%S+) ([^\n]*)\n()')
    if not lane then return {queue = '', type = '', key = '', reason = 'this record cannot be read', entry = record} end
    local r = {reason = reason, entry = sub(record, at)}
    local queue, name, key = match(lane, '^([^/]*)/([^/]*)/(.*)$')
    r.queue, r.type, r.key = queue or '', name or '', key or ''
    return r
end

-- How people name it: by the id of the job, where there is none by a digest of the record.
function dead_records.handle(record, body)
    local id = lease.id(body)
    return is_name(id) and id or 'raw:' .. sub(sha1(record), 1, 16)
end

-- Up to most records from a rank on, fewer where they are large, and their scores. till: the last score that counts.
-- true: there are no more of them.
function dead_records.page(rank, most, till)
    local records, scores, bytes, slice = {}, {}, 0, 1
    while #records < most and bytes < BYTES_MOST do
        local from = rank + #records
        local got = call('ZRANGE', P .. 'dead', us(from), us(from + slice - 1), 'WITHSCORES')
        for i = 1, #got, 2 do
            if tonumber(got[i + 1]) > till then return records, scores, true end
            if bytes >= BYTES_MOST then return records, scores, false end
            records[#records + 1], scores[#scores + 1] = got[i], got[i + 1]
            bytes = bytes + #got[i]
        end
        if #got < 2 * slice then return records, scores, true end
        slice = max(1, min(SLICE_MOST, most - #records, floor((BYTES_MOST - bytes) * #records / max(bytes, 1))))
    end
    return records, scores, false
end

-- Counts those that left `dead`, each for its type. names: a type each, '' where it is not known.
function dead_records.count(names, what)
    local counts = {}
    for _, name in ipairs(names) do counts[name] = (counts[name] or 0) + 1 end
    for name, n in pairs(counts) do
        if is_name(name) then lease.count(name, what, n) end
    end
end

-- Forgets some of the oldest when there are more than most, or some older than age_us. Returns how many, and how many it leaves
-- that are to go too.
function dead_records.trim(most, age_us)
    if check.wrong_kind('dead', 'zset') then return 0, 0 end
    local excess = max(call('ZCARD', P .. 'dead') - most, call('ZCOUNT', P .. 'dead', '-inf', '(' .. us(now - age_us)))
    if excess <= 0 then return 0, 0 end
    local records, names = dead_records.page(0, min(excess, STEP_MOST), huge), {}
    for i, record in ipairs(records) do names[i] = match(record, '^%S+ [^/%s]*/([^/%s]*)/') or '' end
    call('ZREMRANGEBYRANK', P .. 'dead', '0', us(#records - 1))
    dead_records.count(names, 'forgotten')
    return #records, excess - #records
end

return dead_records

-- dead_records: the records of `dead`, by when they died; whoever has put them there, each can be read as something.
--
-- uses: body counters time_budget
local dead_records = {}

local BYTES_MOST = 512 * 1024 -- of a page or a search, about
local READ_US = 1000          -- from then on no more are read
local AT_ONCE = 32            -- records between two looks at the clock
local FOLDED_MOST = 200       -- bytes of a reason that is folded
local HEAD = 60               -- bytes of its beginning among these: its end matters more
local CODES = {'exit ', 'HTTP ', 'signal ', 'status '} -- a number behind one of these says what went wrong
local SLICE_MOST = 4          -- records that are read at once, as large ones may stand behind small ones; the first one is read alone

-- Returns {queue =, type =, key =, reason =, entry =}; what is not known is ''.
function dead_records.read(record)
    local lane, reason, at = match(record, '^%S+ (%S+) ([^\n]*)\n()')
    if not lane then return {queue = '', type = '', key = '', reason = 'this record cannot be read', entry = record} end
    local r = {reason = reason, entry = sub(record, at)}
    local queue, name, key = match(lane, '^([^/]*)/([^/]*)/(.*)$')
    r.queue, r.type, r.key = queue or '', name or '', key or ''
    return r
end

-- Names a record for people: by the id of the job, where there is none by a digest of the record.
function dead_records.handle(record, text)
    local id = body.id(text)
    return is_name(id) and id or 'raw:' .. sub(sha1(record), 1, 16)
end

-- Finds the first code in a reason. Returns where its word ends, and where what is behind the code begins; 0, 1: there is none.
local function find_code(reason)
    for _, word in ipairs(CODES) do
        local _, at = find(reason, word, 1, true)
        local behind = at and match(reason, '^%d+()', at + 1)
        if behind then return at, behind end
    end
    return 0, 1
end

local function hide(text) return (text:gsub('%f[%w]%a*%d%w*', '#')) end

-- Makes one text of reasons that differ in numbers and ids alone: each word with a digit is "#", each id of such words and dashes too, but for
-- the first code. A long one is cut in the middle, between two characters.
function dead_records.fold(reason)
    local at, behind = find_code(reason)
    local text = (hide(sub(reason, 1, at)) .. sub(reason, at + 1, behind - 1) .. hide(sub(reason, behind))):gsub('#%-[#%x%-]*#', '#')
    if #text <= FOLDED_MOST then return text end
    return sub(text, 1, HEAD):gsub('[\192-\255][\128-\191]*$', '') .. '...' .. sub(text, HEAD + 3 - FOLDED_MOST):gsub('^[\128-\191]+', '')
end

-- True when a text stands in a reason, or in what it is folded to.
function dead_records.has_reason(reason, text)
    if find(reason, text, 1, true) then return true end
    return (find(text, '#', 1, true) or find(text, '...', 1, true)) ~= nil and find(dead_records.fold(reason), text, 1, true) ~= nil
end

-- Returns when a job died; nil: nobody knows, as a foreign client has put it there.
function dead_records.time(score)
    local at = tonumber(score)
    return at > 0 and at < WHOLE_MOST and us(at) or nil
end

-- Compares bytewise, as Redis sorts: `<` on strings asks the server's locale.
function dead_records.precedes(a, b)
    local at = 1
    while at <= #a and sub(a, at, at + 63) == sub(b, at, at + 63) do at = at + 64 end
    for i = at, at + 63 do
        local x, y = byte(a, i) or -1, byte(b, i) or -1
        if x ~= y then return x < y end
    end
    return false
end

-- Returns the rank of the first record behind a place, and how many records stand before it. A record that is gone is searched among those of the
-- same score; where these are too large for one call, some that were met already are met again, whichever way one goes.
function dead_records.rank_behind(score, record)
    local rank = call('ZRANK', P .. 'dead', record)
    if rank and tonumber(call('ZSCORE', P .. 'dead', record)) == tonumber(score) then return rank + 1, rank end
    local low, high = call('ZCOUNT', P .. 'dead', '-inf', '(' .. score), call('ZCOUNT', P .. 'dead', '-inf', score)
    local bytes = 0
    while low < high and bytes < BYTES_MOST do
        local middle = floor((low + high) / 2)
        local found = call('ZRANGE', P .. 'dead', us(middle), us(middle))[1]
        bytes = bytes + #found
        if dead_records.precedes(record, found) then high = middle else low = middle + 1 end
    end
    return low, high
end

-- Reads up to `most` records from a rank on, fewer where they are large or time is up, and their scores. till: the last score that counts. newest:
-- 'REV' counts ranks and reads from the newest record down, nil from the oldest up. true: there are no more.
function dead_records.page(rank, most, till, newest)
    local records, scores, bytes, slice, next_look = {}, {}, 0, 1, AT_ONCE
    while #records < most and bytes < BYTES_MOST do
        if #records >= next_look then
            if time_budget.is_late(READ_US) then return records, scores, false end
            next_look = #records + AT_ONCE
        end
        local from = rank + #records
        local got = call('ZRANGE', P .. 'dead', us(from), us(from + slice - 1), unpack(newest and {newest, 'WITHSCORES'} or {'WITHSCORES'}))
        for i = 1, #got, 2 do
            local score = tonumber(got[i + 1])
            if newest and score < till or not newest and score > till then return records, scores, true end
            if bytes >= BYTES_MOST then return records, scores, false end
            records[#records + 1], scores[#scores + 1] = got[i], got[i + 1]
            bytes = bytes + #got[i]
        end
        if #got < 2 * slice then return records, scores, true end
        slice = max(1, min(SLICE_MOST, most - #records, floor((BYTES_MOST - bytes) * #records / max(bytes, 1))))
    end
    return records, scores, false
end

-- Counts records that left `dead`, each for its type. names: a type each, '' where it is not known.
function dead_records.count(names, what)
    local counts = {}
    for _, name in ipairs(names) do counts[name] = (counts[name] or 0) + 1 end
    for name, n in pairs(counts) do
        if is_name(name) then counters.add(name, what, n) end
    end
end

return dead_records

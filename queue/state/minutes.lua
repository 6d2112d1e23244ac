-- minutes: what has happened, counted in slots: for each type and each limit by minute and by hour, and of each limit its starts and the slots that it lost by second.
--
--   minutes:t/<type>, minutes:l/<limit>  hash: m<minute mod 120>, h<hour mod 72> -> slot; all -> the slot of number 0, with all that was ever
--                                        counted; expires 72 h after its last write
--   ribbon:<limit>                       hash: <second mod 120> -> slot; expires after 2 minutes
--
--   slot   = number { " " code count }   number: of the minute, hour or second since 1970 in UTC; a slot of another number is of another round
--   code   = of a type:   s starts  d done  r retried  x dead  c cancelled  t throttled, and in histograms a letter and a bucket: R run time;
--                         wait from enqueue to start, by what let the job start: A rate  K key  C concurrency  P pause  E executor
--                         R+ A+ K+ ... milliseconds of all that such a histogram counts
--            of a limit:  g slots granted, those wasted: n no_job  e no_executor  h held  l late; ":" reason "=" throttled jobs by their reason
--            of a ribbon: a to j, starts in a tenth of the second; N E H L, slots wasted, as n e h l
--   bucket = a to z, A to F: up to 1, 2, 4 ... 2^31 ms; the last one has all that is longer
--
-- Nothing depends on it: what cannot be read counts as nothing.
local minutes = {}

minutes.MINUTE_US, minutes.HOUR_US, minutes.SECOND_US, minutes.TENTH_US = 60000000, 3600000000, 1000000, 100000
minutes.MINUTES, minutes.HOURS, minutes.SECONDS = 120, 72, 120

local KEPT_MS, STARTS_KEPT_MS = '259200000', '120000'
local REASONS_MOST = 8 -- of a slot; further ones count as "other"
local OTHER = ':other='

-- The counts of a slot of that number: a list of their codes, and the counts by code. Of another number: none.
local function read(text, number)
    local codes, counts = {}, {}
    local rest = match(type(text) == 'string' and text or '', '^' .. us(number) .. '( .*)$') or ''
    for word in rest:gmatch('%S+') do
        local code, count = match(word, '^(.-)(%d+)$')
        if code and not counts[code] then
            codes[#codes + 1] = code
            counts[code] = tonumber(count)
        end
    end
    return codes, counts
end

local function count_reasons(codes)
    local n = 0
    for i = 1, #codes do n = n + (byte(codes[i]) == 58 and 1 or 0) end
    return n
end

-- The slot with more counts: added is a list of code, count, code, count ...
local function add(text, number, added)
    local codes, counts = read(text, number)
    local words, reasons = {us(number)}, count_reasons(codes)
    for i = 1, #added, 2 do
        local code = added[i]
        if byte(code) == 58 and not counts[code] then
            if reasons < REASONS_MOST then reasons = reasons + 1 else code = OTHER end
        end
        if not counts[code] then
            codes[#codes + 1] = code
            counts[code] = 0
        end
        counts[code] = min(2 ^ 53, counts[code] + added[i + 1])
    end
    for i, code in ipairs(codes) do words[i + 1] = code .. us(counts[code]) end
    return concat(words, ' ')
end

-- What HSET takes: the fields with their slots, those that were there with what is added to each.
local function grown(fields, texts, numbers, added)
    local values = {}
    for i = 1, #fields do values[2 * i - 1], values[2 * i] = fields[i], add(texts[i], numbers[i], added[i]) end
    return values
end

local function slot(at, step, count)
    local number = floor(at / step)
    return number, us(number % count)
end

-- Adds counts to this minute and this hour of a ring, "t/<type>" or "l/<limit>". False: the key is of a wrong kind.
function minutes.add(ring, added)
    local minute, m = slot(now, minutes.MINUTE_US, minutes.MINUTES)
    local hour, h = slot(now, minutes.HOUR_US, minutes.HOURS)
    local fields = {'m' .. m, 'h' .. h, 'all'}
    local texts = call_safe('HMGET', P .. 'minutes:' .. ring, unpack(fields))
    if texts.err then return false end
    call('HSET', P .. 'minutes:' .. ring, unpack(grown(fields, texts, {minute, hour, 0}, {added, added, added})))
    if not VIRTUAL then call('PEXPIRE', P .. 'minutes:' .. ring, KEPT_MS) end
    return true
end

-- When it was, and its code in the slot of its second: of a tenth of a second since 1970, or of "N" and a second.
local function second_of(code)
    local why, second = match(code, '^(%u)(%d+)$')
    if why then return tonumber(second) * minutes.SECOND_US, why end
    return tonumber(code) * minutes.TENTH_US, char(97 + tonumber(code) % 10)
end

-- Counts by seconds: their fields, numbers and lists of code, count. what: a list of code, count, code ... as record has it; those of the last
-- minute count.
local function by_second(what)
    local fields, numbers, added, places = {}, {}, {}, {}
    for i = 1, #what, 2 do
        local at, code = second_of(what[i])
        local second, field = slot(at, minutes.SECOND_US, minutes.SECONDS)
        if at > now - minutes.MINUTE_US and at <= now + minutes.SECOND_US then
            local place = places[second]
            if not place then
                place = #fields + 1
                places[second] = place
                fields[place], numbers[place], added[place] = field, second, {}
            end
            local list = added[place]
            list[#list + 1], list[#list + 2] = code, what[i + 1]
        end
    end
    return fields, numbers, added
end

-- Adds starts and lost slots to the ribbon of a limit. False: the key is of a wrong kind.
function minutes.add_seconds(limit, what)
    local fields, numbers, added = by_second(what)
    if #fields == 0 then return true end
    local texts = call_safe('HMGET', P .. 'ribbon:' .. limit, unpack(fields))
    if texts.err then return false end
    call('HSET', P .. 'ribbon:' .. limit, unpack(grown(fields, texts, numbers, added)))
    if not VIRTUAL then call('PEXPIRE', P .. 'ribbon:' .. limit, STARTS_KEPT_MS) end
    return true
end

-- The slots that are there, oldest first: {at =, codes =, counts =} each. nil: the key is of a wrong kind.
local function read_slots(texts, first, step)
    if texts.err then return nil end
    local slots = {}
    for i = 1, #texts do
        local codes, counts = read(texts[i], first + i - 1)
        if #codes > 0 then slots[#slots + 1] = {at = (first + i - 1) * step, codes = codes, counts = counts} end
    end
    return slots
end

local function fields_of(head, last, most, count)
    local fields = {}
    for number = last - most + 1, last do fields[#fields + 1] = head .. us(number % count) end
    return fields
end

-- The slots of a ring as they stand there, oldest first, '' for one that is not there, and the number of the first; nil: the key is of a wrong
-- kind. by_hours: the last hours, else the last minutes; this one is the last.
function minutes.texts(ring, by_hours, most)
    local step, count = by_hours and minutes.HOUR_US or minutes.MINUTE_US, by_hours and minutes.HOURS or minutes.MINUTES
    local last = floor(now / step)
    most = min(most, count)
    local texts = call_safe('HMGET', P .. 'minutes:' .. ring, unpack(fields_of(by_hours and 'h' or 'm', last, most, count)))
    if texts.err then return nil end
    for i = 1, most do texts[i] = texts[i] or '' end
    return texts, last - most + 1
end

-- The slot with all that was counted of a ring; '': there is none, or the key is of a wrong kind.
function minutes.text_of_all(ring)
    local text = call_safe('HGET', P .. 'minutes:' .. ring, 'all')
    return type(text) == 'string' and text or ''
end

-- The last minute of a limit, by seconds.
function minutes.read_seconds(limit)
    local last = floor(now / minutes.SECOND_US)
    local fields = fields_of('', last, 61, minutes.SECONDS)
    return read_slots(call_safe('HMGET', P .. 'ribbon:' .. limit, unpack(fields)), last - 60, minutes.SECOND_US)
end

return minutes

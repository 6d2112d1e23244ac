-- minutes: what has happened, counted in slots: for each type and each limit by minute and by hour, and of each limit its starts and the slots that it lost by second.
--
--   minutes:t/<type>, minutes:l/<limit>  hash: m<minute mod 120>, h<hour mod 72> -> slot; all -> the slot of number 0, with all that was ever
--                                        counted; expires 72 h after the first write of its last hour
--   ribbon:<limit>                       hash: <second mod 120> -> slot; expires after 2 minutes
--
--   slot   = number { " " code count }   number: of the minute, hour or second since 1970 in UTC; a slot of another number is of another round
--   code   = of a type:   s starts  d done  r retried  x dead  c cancelled  t throttled, and in histograms a letter and a bucket: R run time;
--                         wait from enqueue to start, by what let the job start: A rate  K key  C concurrency  P pause  E executor
--                         R+ A+ K+ ... milliseconds of all that such a histogram counts
--            of a limit:  g slots granted, those wasted: n no_job  e no_executor  h held  l late, those given back, as no handler was called:
--                         u not_begun  v late  f no_handler  w wrong_job; ":" reason "=" throttled jobs by their reason
--            of a ribbon: a to j, starts in a tenth of the second; N E H L, slots wasted, as n e h l
--   bucket = a to z, A to F: up to 1, 2, 4 ... 2^31 ms; the last one has all that is longer
--
-- Nothing depends on it: what cannot be read counts as nothing.
local minutes = {}

minutes.MINUTE_US, minutes.HOUR_US, minutes.SECOND_US, minutes.TENTH_US = 60000000, 3600000000, 1000000, 100000
minutes.MINUTES, minutes.HOURS, minutes.SECONDS = 120, 72, 120

local KEPT_MS, STARTS_KEPT_MS = '259200000', '120000'
local REASONS_MOST = 8 -- reasons of a slot; further ones count as "other"
local OTHER = ':other='

local REASON = 58 -- ":", with which the code of a reason begins
local PLAIN_COUNT, REASON_COUNT = ' (%a[%a+]?)(%d+)', ' (:[^=]*=)(%d+)' -- a code and its count

-- Returns what a slot says behind its number; '': it has another number, or there is none.
local function counts_of(text, number)
    local head = us(number) .. ' '
    return text and sub(text, 1, #head) == head and sub(text, #head) or ''
end

-- Remembers the counts that were added last: the text, the codes, the counts by code, and how many of these the slot already had.
local added_text, added_codes, added_counts, added_met

local function note_count(code, count)
    if not added_counts[code] then added_codes[#added_codes + 1] = code end
    added_counts[code] = (added_counts[code] or 0) + count
end

local function read_added(text)
    if text == added_text then return end
    added_text, added_codes, added_counts = text, {}, {}
    for code, count in text:gmatch(PLAIN_COUNT) do note_count(code, count) end
    for code, count in text:gmatch(REASON_COUNT) do note_count(code, count) end
end

local function raise(code, count)
    local n = added_counts[code]
    if not n then return nil end
    added_met = added_met + 1
    return ' ' .. code .. digits(min(2 ^ 53, n + count))
end

local add

-- Appends the counts of codes that the slot does not have. Reasons that are too many count as "other".
local function add_new(text)
    local _, reasons = text:gsub(':', ':')
    local new, others = {text}, 0
    for _, code in ipairs(added_codes) do
        if not find(text, ' ' .. code, 1, true) then
            local is_reason = byte(code) == REASON
            if is_reason and reasons >= REASONS_MOST and code ~= OTHER then
                others = others + added_counts[code]
            else
                new[#new + 1] = ' ' .. code .. digits(added_counts[code])
                if is_reason then reasons = reasons + 1 end
            end
        end
    end
    text = concat(new)
    return others > 0 and add(text, ' ' .. OTHER .. digits(others)) or text
end

-- Adds counts to counts, both as text. A worker keeps no more reasons than a slot does.
function add(text, added)
    if text == '' then return added end
    read_added(added)
    added_met = 0
    text = text:gsub(PLAIN_COUNT, raise)
    if find(added, ':', 1, true) then text = text:gsub(REASON_COUNT, raise) end
    return added_met < #added_codes and add_new(text) or text
end

-- Returns the slot of that number with more counts.
local function grown(text, number, added) return us(number) .. add(counts_of(text, number), added) end

-- Returns the number of a slot, and its field.
local function slot(at, step, count, letter)
    local number = floor(at / step)
    return number, letter .. digits(number % count)
end

-- Adds counts, as a slot has them, to this minute and this hour of a ring, "t/<type>" or "l/<limit>". False: the key is of a wrong kind.
function minutes.add(ring, added)
    local minute, m = slot(now, minutes.MINUTE_US, minutes.MINUTES, 'm')
    local hour, h = slot(now, minutes.HOUR_US, minutes.HOURS, 'h')
    local texts = call_safe('HMGET', P .. 'minutes:' .. ring, m, h, 'all')
    if texts.err then return false end
    call('HSET', P .. 'minutes:' .. ring, m, grown(texts[1], minute, added), h, grown(texts[2], hour, added), 'all', grown(texts[3], 0, added))
    if not VIRTUAL and counts_of(texts[2], hour) == '' then call('PEXPIRE', P .. 'minutes:' .. ring, KEPT_MS) end
    return true
end

local SECOND_COUNT = ' (%u?)(%d+)=(%d+)' -- as record has it

-- Returns when something was, and its code in the slot of its second. `number` counts tenths of a second since 1970, or behind "N" of seconds.
local function second_of(why, number)
    number = tonumber(number)
    if why ~= '' then return number * minutes.SECOND_US, why end
    return number * minutes.TENTH_US, char(97 + number % 10)
end

-- Sorts counts by seconds: their fields, numbers and counts, as a slot has them. what: counts as record has them; those of the last minute count.
local function by_second(what)
    local fields, numbers, added, places = {}, {}, {}, {}
    for why, number, count in what:gmatch(SECOND_COUNT) do
        local at, code = second_of(why, number)
        local second, field = slot(at, minutes.SECOND_US, minutes.SECONDS, '')
        if at > now - minutes.MINUTE_US and at <= now + minutes.SECOND_US then
            local place = places[second]
            if not place then
                place = #fields + 1
                places[second] = place
                fields[place], numbers[place], added[place] = field, second, ''
            end
            added[place] = added[place] .. ' ' .. code .. count
        end
    end
    return fields, numbers, added
end

-- Adds starts and lost slots to the ribbon of a limit. False: the key is of a wrong kind.
function minutes.add_seconds(limit, what)
    local fields, numbers, added = by_second(what)
    if #fields == 0 then return true end
    local texts, values = call_safe('HMGET', P .. 'ribbon:' .. limit, unpack(fields)), {}
    if texts.err then return false end
    for i = 1, #fields do values[2 * i - 1], values[2 * i] = fields[i], grown(texts[i], numbers[i], added[i]) end
    call('HSET', P .. 'ribbon:' .. limit, unpack(values))
    if not VIRTUAL then call('PEXPIRE', P .. 'ribbon:' .. limit, STARTS_KEPT_MS) end
    return true
end

-- Reads the counts of a ribbon: a list of their codes, and the counts by code.
local function read(text)
    local codes, counts = {}, {}
    for code, count in text:gmatch(PLAIN_COUNT) do
        if not counts[code] then
            codes[#codes + 1] = code
            counts[code] = tonumber(count)
        end
    end
    return codes, counts
end

-- Reads the slots that are there, oldest first: {at =, codes =, counts =} each. nil: the key is of a wrong kind.
local function read_slots(texts, first, step)
    if texts.err then return nil end
    local slots = {}
    for i = 1, #texts do
        local codes, counts = read(counts_of(texts[i], first + i - 1))
        if #codes > 0 then slots[#slots + 1] = {at = (first + i - 1) * step, codes = codes, counts = counts} end
    end
    return slots
end

local function fields_of(head, last, most, count)
    local fields = {}
    for number = last - most + 1, last do fields[#fields + 1] = head .. us(number % count) end
    return fields
end

-- Returns the slots of a ring, oldest first, '' for one that is not there, and the number of the first; nil: the key is of a wrong kind. by_hours:
-- the last hours, else the last minutes; this one is the last.
function minutes.texts(ring, by_hours, most)
    local step, count = by_hours and minutes.HOUR_US or minutes.MINUTE_US, by_hours and minutes.HOURS or minutes.MINUTES
    local last = floor(now / step)
    most = min(most, count)
    local texts = call_safe('HMGET', P .. 'minutes:' .. ring, unpack(fields_of(by_hours and 'h' or 'm', last, most, count)))
    if texts.err then return nil end
    for i = 1, most do texts[i] = texts[i] or '' end
    return texts, last - most + 1
end

-- Sums all slots of a ring into one; '': there is none, or the key is of a wrong kind.
function minutes.text_of_all(ring)
    local text = call_safe('HGET', P .. 'minutes:' .. ring, 'all')
    return type(text) == 'string' and text or ''
end

-- Returns the last minute of a limit, by seconds.
function minutes.read_seconds(limit)
    local last = floor(now / minutes.SECOND_US)
    local fields = fields_of('', last, 61, minutes.SECONDS)
    return read_slots(call_safe('HMGET', P .. 'ribbon:' .. limit, unpack(fields)), last - 60, minutes.SECOND_US)
end

return minutes

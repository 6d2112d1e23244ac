-- slot_rows: a slot of queue/state/minutes.lua as JSON has it.
--
--   of a type   {"starts", "done", "retried", "dead", "cancelled", "throttled", "run": histogram,
--               "wait": {"rate", "key", "concurrency", "pause", "executor": histogram},
--               "spent": {"run", "rate", "key", ...: ms of all that these histograms count}}
--   of a limit  {"granted", "wasted": {"no_job", "no_executor", "held", "late"}, "throttled": {reason: n}}
--
-- A histogram is a list of [upper bound in ms, n], smallest first; the last bound, 2^31, has all that is longer. What is 0 is left out.
local slot_rows = {}

local COUNTS = {s = 'starts', d = 'done', r = 'retried', x = 'dead', c = 'cancelled', t = 'throttled', R = 'run', g = 'granted'}
local WAITS = {A = 'rate', K = 'key', C = 'concurrency', P = 'pause', E = 'executor'}
local WASTED = {n = 'no_job', e = 'no_executor', h = 'held', l = 'late'}

-- The place of a bucket: a to z, A to F.
local function place_of(letter)
    local at = byte(letter)
    return at >= 97 and at - 97 or at - 65 + 26
end

-- One count more of a list in an object; both are made when they are needed.
local function put(object, member, value)
    object[member] = object[member] or {}
    local list = object[member]
    list[#list + 1] = value
end

local function put_in(object, member, name, count)
    object[member] = object[member] or {}
    object[member][name] = count
end

local function unescape(text) return (text:gsub('%%(%x%x)', function(hex) return char(tonumber(hex, 16)) end)) end

local function row_of(slot)
    local row = {}
    for _, code in ipairs(slot.codes) do
        local count, letter, bucket = slot.counts[code], sub(code, 1, 1), match(code, '^%u(%a)$')
        local bin = bucket and {2 ^ place_of(bucket), count}
        local spent = match(code, '^%u%+$') and (WAITS[letter] or letter == 'R' and 'run')
        if spent then
            put_in(row, 'spent', spent, count)
        elseif letter == ':' then
            put_in(row, 'throttled', unescape(sub(code, 2, -2)), count)
        elseif bin and WAITS[letter] then
            row.wait = row.wait or {}
            put(row.wait, WAITS[letter], bin)
        elseif bin and COUNTS[letter] then
            put(row, COUNTS[letter], bin)
        elseif WASTED[code] then
            put_in(row, 'wasted', WASTED[code], count)
        elseif COUNTS[code] then
            row[COUNTS[code]] = count
        end
    end
    return row
end

local function by_first(a, b) return a[1] < b[1] end

local function sort_histograms(row)
    if row.run then sort(row.run, by_first) end
    for _, histogram in pairs(row.wait or {}) do sort(histogram, by_first) end
end

function slot_rows.of(slot)
    local row = row_of(slot)
    sort_histograms(row)
    return row
end

return slot_rows

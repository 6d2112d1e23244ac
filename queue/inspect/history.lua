-- history: what has happened to a type or at a limit, by minutes or hours, as workers have recorded it; touches nothing.
--
-- KEYS[1] prefix
-- ARGV: now, what (t: a type, l: a limit), name, step (m: minutes, h: hours), how many slots at most
-- role: viewer
-- reply: JSON: {"now": "us", "name":, "step": us, "slots": [slot, ...], "starts_now": [start, ...]}; slots oldest first, those without
--        counts left out, the last one goes on; start: ["us", n], a tenth of a second of the last minute in which n jobs started, of a limit
--        slot of a type: {"at": "us", "starts", "done", "retried", "dead", "cancelled", "throttled", "run": histogram,
--                        "wait": {"rate", "key", "concurrency", "pause", "executor": histogram}}
--        slot of a limit: {"at": "us", "granted", "wasted": {"no_job", "no_executor", "held", "late"}, "throttled": {reason: n}}
--        histogram: list of [upper bound in ms, n], smallest first; the last bound, 2^31, has all that is longer. What is 0 is left out
-- writes: nothing
-- uses: check minutes partition

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
    local row = {at = us(slot.at)}
    for _, code in ipairs(slot.codes) do
        local count, letter, bucket = slot.counts[code], sub(code, 1, 1), match(code, '^%u(%a)$')
        local bin = bucket and {2 ^ place_of(bucket), count}
        if letter == ':' then
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

local function starts_of(slots)
    local starts = {}
    for _, slot in ipairs(slots) do
        for _, code in ipairs(slot.codes) do
            local at = slot.at + (byte(code) - 97) * minutes.TENTH_US
            if find(code, '^[a-j]$') and at > now - minutes.MINUTE_US then starts[#starts + 1] = {at, slot.counts[code]} end
        end
    end
    sort(starts, by_first)
    for _, start in ipairs(starts) do start[1] = us(start[1]) end
    return starts
end

local function history(ARGV)
    local what, name, step, most = ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
    if #ARGV ~= 5 or not find(what, '^[tl]$') or not is_name(name) or not find(step, '^[mh]$') or not is_whole(most, 1) then
        return refuse('history: wants now, t or l, name, m or h, most')
    end
    local refused = partition.refusal(name)
    if refused then return refused end
    local slots = minutes.read(what .. '/' .. name, step == 'h', most)
    if not slots then return check.refuse_key(check.wrong_kind('minutes:' .. what .. '/' .. name, 'hash')) end
    local reply = {now = us(now), name = name, step = step == 'h' and minutes.HOUR_US or minutes.MINUTE_US, slots = {}}
    for i, slot in ipairs(slots) do
        reply.slots[i] = row_of(slot)
        sort_histograms(reply.slots[i])
    end
    local starts = what == 'l' and minutes.read_starts(name)
    if starts then reply.starts_now = starts_of(starts) end
    return answer(reply)
end

return history

-- sliding_log: never more than count slots in any period, exactly: a log of the starts of the last period.
--
-- Words: "last_us used origin_us LOG": the last start, the slots in LOG, and LOG: entries "delta_us;" or
-- "delta_us*slots;", oldest first, each so long after the one before, the first after origin. That is about 7 bytes a
-- start at 1,000/s, 13 at most; count is at most 10,000, and the log is written at each take: for higher counts there
-- is sliding-window. What is over is only forgotten from the front, what is new only added behind. A log that is torn in
-- the middle is no state, so each is read as a whole, but for those that this Redis has read or written just now. The
-- functions are described in rules.lua.
-- uses: exact

local sliding_log = {}

local MOST_COUNT = 10000

function sliding_log.read(rule, numbers)
    local count, period = numbers:match('^([1-9]%d*)/([1-9]%d*)$')
    if not exact.rate(rule, count, period) or rule.count > MOST_COUNT then return false end
    rule.burst = rule.count
    return true
end

function sliding_log.scale(rule, thousandths)
    rule.count = max(1, floor(rule.count * thousandths / 1000))
    rule.burst = rule.count
end

-- Makes the log anew from pos on, then the texts in `added`; origin: the time before pos.
local function set_log(g, origin, log)
    g.origin, g.log, g.pos, g.added = origin, log, 1, {}
end

function sliding_log.fresh(g)
    g.last, g.used = 0, 0
    set_log(g, 0, '')
end

function sliding_log.back(g, us)
    g.last, g.origin = max(0, g.last - us), max(0, g.origin - us)
end

local function entry_text(delta, slots)
    return slots == 1 and format('%d;', delta) or format('%d*%d;', delta, slots)
end

-- Reads the entry at pos: how long it is after the entry before, its slots, the place of the next; nil at the end.
local function entry(g, pos)
    if pos > #g.log then
        if #g.added == 0 then return nil end
        g.log, g.added = g.log .. concat(g.added), {}
    end
    local _, _, delta, slots, after = find(g.log, '^(%d+)%*?(%d*);()', pos)
    if not delta then return nil end
    return tonumber(delta), slots == '' and 1 or tonumber(slots), after
end

-- Logs that are whole, which were read or written last, and those before them. A few, as one may have 130,000 bytes.
local sound, sound_count, sound_before = {}, 0, {}
local SOUND_MOST = 8

local function note_sound(log)
    if sound[log] then return end
    if sound_count >= SOUND_MOST then sound, sound_count, sound_before = {}, 0, sound end
    sound[log], sound_count = true, sound_count + 1
end

-- True when the log of a state has entries alone, with all the slots that the state says.
local function has_whole_log(g)
    local left, pos = g.used, 1
    if sound[g.log] or sound_before[g.log] then return true end
    while pos <= #g.log do
        local delta, slots, after = entry(g, pos)
        if not is_whole(delta) then return false end
        left, pos = left - slots, after
    end
    if left == 0 then note_sound(g.log) end
    return left == 0
end

function sliding_log.load(g, first, rest)
    local used, origin, log = rest:match('^(%d+) (%d+) (.*)$')
    g.last, g.used = first, tonumber(used)
    if not is_whole(g.used) then return false end
    set_log(g, tonumber(origin), log)
    return has_whole_log(g)
end

function sliding_log.store(g)
    local log = sub(g.log, g.pos) .. concat(g.added)
    note_sound(log)
    return format('%d %d %d ', g.last, g.used, g.origin) .. log
end

-- Forgets the starts that are over by that time: nothing starts before it any more.
local function forget(g, at)
    local over = at - g.rule.period
    while g.used > 0 do
        local delta, slots, after = entry(g, g.pos)
        if not delta then break end
        if g.origin + delta > over then return end
        g.origin, g.used, g.pos = g.origin + delta, g.used - slots, after
    end
    g.used = 0
    set_log(g, g.last, '')
end

local function used_at(g, at)
    local over = at - g.rule.period
    local used, pos, time = g.used, g.pos, g.origin
    while used > 0 do
        local delta, slots, after = entry(g, pos)
        if not delta or time + delta > over then break end
        used, pos, time = used - slots, after, time + delta
    end
    return used
end

function sliding_log.used(g)
    local at = max(now, g.last)
    return used_at(g, at), at
end

function sliding_log.start(g, cost)
    local rule = g.rule
    if cost > rule.count then return huge end
    forget(g, now)
    local s = max(now, g.last)
    local excess, pos, time = g.used + cost - rule.count, g.pos, g.origin
    while excess > 0 do
        local delta, slots, after = entry(g, pos)
        if not delta then break end
        excess, pos, time = excess - slots, after, time + delta
        if excess <= 0 then s = max(s, time + rule.period) end
    end
    return s
end

function sliding_log.count(g, s, most, cost)
    return max(0, min(most, floor((g.rule.count - used_at(g, s)) / cost)))
end

function sliding_log.take(g, s, k, cost)
    if g.used == 0 then set_log(g, s, '') end
    g.added[#g.added + 1] = entry_text(g.used == 0 and 0 or s - g.last, k * cost)
    g.last, g.used = s, g.used + k * cost
end

-- Notes starts. Only the last `count` slots decide when the next may start: older ones make room, and no more slots are kept than before.
function sliding_log.note(g, s, slots)
    s = max(s, g.last)
    forget(g, s)
    local most = max(g.rule.count, g.used)
    sliding_log.take(g, s, 1, min(slots, most))
    while g.used > most do
        local delta, old, after = entry(g, g.pos)
        if not delta then break end
        local over = min(old, g.used - most)
        g.used = g.used - over
        if over < old then
            set_log(g, g.origin, entry_text(delta, old - over) .. sub(g.log, after) .. concat(g.added))
        else
            g.origin, g.pos = g.origin + delta, after
        end
    end
end

-- Charges slots. The debt is at most the count of the rule as it was set, so that the log stays bounded. It is told at the start that is charged:
-- what is over by then may be forgotten already.
function sliding_log.charge(g, cost)
    forget(g, now)
    local at = max(now, g.last)
    cost = min(cost, 2 * g.base.count - used_at(g, at))
    if cost > 0 then sliding_log.take(g, at, 1, cost) end
end

-- Gives slots back by writing the log anew. An entry without slots stays only at the end, where the next one counts from it.
function sliding_log.give(g, s, cost)
    local kept, skipped, pos, time = {}, 0, g.pos, g.origin
    while true do
        local delta, slots, after = entry(g, pos)
        if not delta then break end
        pos, time = after, time + delta
        local back = time == s and min(cost, slots) or 0
        cost, g.used = cost - back, g.used - back
        if slots > back then
            kept[#kept + 1] = entry_text(skipped + delta, slots - back)
            skipped = 0
        else
            skipped = skipped + delta
        end
    end
    if skipped > 0 then kept[#kept + 1] = entry_text(skipped, 0) end
    set_log(g, g.origin, concat(kept))
end

function sliding_log.fill(g, n, at)
    sliding_log.fresh(g)
    if n > 0 then sliding_log.take(g, at, 1, n) else g.last = at end
end

function sliding_log.resets(g)
    return used_at(g, now) > 0 and g.last + g.rule.period or 0
end

return sliding_log

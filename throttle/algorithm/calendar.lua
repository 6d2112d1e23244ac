-- calendar: windows that turn by the clocks of a place: its days, its weeks from Monday, its months; in days of 23 and 25 hours too.
--
--   calendar.read(rule, numbers)             reads what stands behind "COUNT/PERIOD/OFFSET/" of a rule into rule.zone; false: it is wrong
--   local from, till = calendar.window(rule, at)    when the window of that time begins, and when the next one does
--
-- A window begins when local clocks first show its beginning or a later time. calendar.c has the same, and says more.

local calendar = {}

local DAY, WEEK, MONTH = 86400000000, 7 * 86400000000, 30 * 86400000000 -- a month counts as 30 days where only its length matters
local OFFSET_BIAS, TIME_BIAS = 86400, 604800 -- what the stored form adds, so that no number is below 0
local CHANGE_MOST = 86399 -- a window is longer than what clocks leave out

-- month of the year, week of the month, weekday, seconds after midnight: from these numbers of the stored form, first on
local function change_read(n, first)
    local change = {month = n[first], week = n[first + 1], weekday = n[first + 2], at = n[first + 3] - TIME_BIAS}
    local is_day = change.month >= 1 and change.month <= 12 and change.week >= 1 and change.week <= 5 and change.weekday <= 6
    return is_day and change.at < TIME_BIAS and change
end

function calendar.read(rule, numbers)
    local n = {}
    for word in (numbers .. '/'):gmatch('([^/]*)/') do
        if #word > 7 or word ~= '0' and not find(word, '^[1-9]') then return false end
        n[#n + 1] = tonumber(word)
    end
    if rule.period ~= DAY and rule.period ~= WEEK and rule.period ~= MONTH then return false end
    if rule.offset % 1000000 ~= 0 or rule.offset >= min(rule.period, 28 * DAY) then return false end
    if #n ~= 1 and #n ~= 10 or n[1] >= 2 * OFFSET_BIAS then return false end
    rule.zone = {std = n[1] - OFFSET_BIAS}
    if #n == 10 then
        local zone = rule.zone
        zone.dst, zone.to_dst, zone.to_std = n[2] - OFFSET_BIAS, change_read(n, 3), change_read(n, 7)
        local change = max(zone.dst, zone.std) - min(zone.dst, zone.std)
        return zone.dst < OFFSET_BIAS and change > 0 and change <= CHANGE_MOST and zone.to_dst and zone.to_std and true
    end
    return true
end

-- ---- Dates: a month is counted from January of the year 0, a day from 1970-01-01

local function first_day(month)
    local year = floor((month - 2) / 12)
    return 365 * year + floor(year / 4) - floor(year / 100) + floor(year / 400) + floor((153 * ((month - 2) % 12) + 2) / 5) - 719468
end

local function month_of(day)
    local month = floor(day * 4800 / 146097) + 1970 * 12
    while first_day(month) > day do month = month - 1 end
    while first_day(month + 1) <= day do month = month + 1 end
    return month
end

-- ---- Local clocks, in seconds

local function change_at(change, year, offset)
    local month = 12 * year + change.month - 1
    local first = first_day(month)
    local day = first + (change.weekday - (first + 4)) % 7 + 7 * (change.week - 1)
    if day >= first_day(month + 1) then day = day - 7 end
    return day * 86400 + change.at - offset
end

local function to_dst(zone, year) return change_at(zone.to_dst, year, zone.std) end

local function to_std(zone, year) return change_at(zone.to_std, year, zone.dst) end

local function year_of(zone, at) return floor(month_of(floor((at + zone.std) / 86400)) / 12) end

local function offset_at(zone, at)
    if not zone.dst then return zone.std end
    local year = year_of(zone, at)
    local first, last = to_dst(zone, year), to_std(zone, year)
    local is_dst
    if first < last then is_dst = first <= at and at < last else is_dst = first <= at or at < last end
    return is_dst and zone.dst or zone.std
end

-- Returns when clocks first show that local time or a later one.
local function first_at(zone, shown)
    if not zone.dst then return shown - zone.std end
    local ahead, behind = max(zone.std, zone.dst), min(zone.std, zone.dst)
    local earliest = shown - ahead
    if offset_at(zone, earliest) == ahead then return earliest end
    local change = (ahead == zone.dst and to_dst or to_std)(zone, year_of(zone, earliest))
    return change > earliest and min(change, shown - behind) or shown - behind
end

-- ---- Windows, counted in their unit

local function begins(rule, window)
    local day = window
    if rule.period == MONTH then day = first_day(window) elseif rule.period == WEEK then day = 7 * window - 3 end
    return first_at(rule.zone, day * 86400 + rule.offset / 1000000)
end

local function index_of(rule, shown)
    local day = floor((shown - rule.offset / 1000000) / 86400)
    if rule.period == MONTH then return month_of(day) end
    return rule.period == WEEK and floor((day + 3) / 7) or day
end

-- A rule keeps the window that was asked for last.
function calendar.window(rule, at)
    if not rule.from or at < rule.from or at >= rule.till then
        at = floor(at / 1000000)
        local window = index_of(rule, at + offset_at(rule.zone, at))
        local next_one = begins(rule, window + 1)
        if next_one <= at then -- clocks that were set back show the day before once more
            window, next_one = window + 1, begins(rule, window + 2)
        end
        rule.from, rule.till = begins(rule, window) * 1000000, next_one * 1000000
    end
    return rule.from, rule.till
end

return calendar

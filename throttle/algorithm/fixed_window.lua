-- fixed_window: count slots in each window [offset + n period, offset + (n + 1) period) since 1970 in UTC, or in each day, week or month
-- of a place, which begins that long after its midnight (calendar.lua).
--
-- Words: "last_us used": the last start, and the slots that are used in its window. Up to 2 count starts fall
-- into one period around a window's edge, and count at once. The functions are described in rules.lua.
-- uses: calendar exact

local fixed_window = {}

function fixed_window.read(rule, numbers)
    local count, period, offset, zone = numbers:match('^([1-9]%d*)/([1-9]%d*)/(%d+)(.*)$')
    if not exact.rate(rule, count, period) or offset:find('^0.') then return false end
    rule.offset, rule.burst, rule.windows = tonumber(offset), rule.count, numbers:match('/(.*)')
    if zone ~= '' then return calendar.read(rule, sub(zone, 2)) end
    return rule.offset < rule.period
end

function fixed_window.scale(rule, thousandths)
    rule.count = max(1, floor(rule.count * thousandths / 1000))
    rule.burst = rule.count
end

function fixed_window.fresh(g) g.last, g.used, g.loaded_last, g.loaded_used = 0, 0, 0, 0 end

function fixed_window.load(g, first, rest)
    g.last, g.used = first, tonumber(rest)
    g.loaded_last, g.loaded_used = g.last, g.used
    return is_whole(g.used) and g.used <= exact.MOST
end

function fixed_window.store(g) return format('%d %d', g.last, g.used) end

function fixed_window.back(g, us) g.last, g.loaded_last = max(0, g.last - us), max(0, g.loaded_last - us) end

local function window(rule, at)
    if rule.zone then return calendar.window(rule, at) end
    local from = at - (at - rule.offset) % rule.period
    return from, from + rule.period
end

local function next_window(rule, at)
    local _, till = window(rule, at)
    return till
end

local function used_at(g, at)
    return g.last < window(g.rule, at) and 0 or g.used
end

function fixed_window.used(g)
    local at = max(now, g.last)
    return used_at(g, at), at
end

function fixed_window.start(g, cost)
    local rule = g.rule
    if cost > rule.count then return huge end
    local s = max(now, g.last)
    if used_at(g, s) + cost <= rule.count then return s end
    return next_window(rule, s)
end

function fixed_window.count(g, s, most, cost)
    return max(0, min(most, floor((g.rule.count - used_at(g, s)) / cost)))
end

function fixed_window.take(g, s, k, cost)
    g.last, g.used = s, min(exact.MOST, used_at(g, s) + k * cost)
end

function fixed_window.note(g, s, slots)
    s = max(s, g.last)
    local used = used_at(g, s)
    g.last, g.used = s, max(used, min(g.rule.count, used + slots))
end

function fixed_window.charge(g, cost) fixed_window.take(g, max(now, g.last), 1, cost) end

function fixed_window.give(g, s, cost)
    local from, till = window(g.rule, g.last)
    if from <= s and s < till then g.used = max(0, g.used - cost) end
end

function fixed_window.fill(g, n, at) g.last, g.used = at, n end

function fixed_window.resets(g)
    return g.used > 0 and next_window(g.rule, g.last) or 0
end

-- Counts what was lost of the windows that have ended: that of the last start as it was loaded, and those behind it.
function fixed_window.lost(g)
    if g.loaded_last == 0 then return 0, now end
    local rule = g.rule
    local this = window(rule, now)
    local behind = next_window(rule, g.loaded_last)
    local ended = behind > this and 0 or behind == this and 1 or rule.zone and 2 or (this - behind) / rule.period + 1
    if ended < 1 then return 0, now end
    local recent = floor((exact.LOST_US - min(now - this, exact.LOST_US)) / rule.period) + 1
    if recent < ended then return 1000 * recent * rule.count, this end
    return 1000 * max(0, ended * rule.count - g.loaded_used), this
end

return fixed_window

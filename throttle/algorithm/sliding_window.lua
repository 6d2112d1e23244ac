-- sliding_window: the two-bucket estimate of how many slots the last period saw, for counts too high for a log:
--
--   previous * (1 - part of this window that has passed) + current + cost <= count
--
-- Windows begin at n * period since 1970. Words: "last_us current previous": the last start, and the slots that were
-- used in its window and in the one before. The functions are described in rules.lua.
-- uses: exact

local sliding_window = {}

function sliding_window.read(rule, numbers)
    local count, period = numbers:match('^([1-9]%d*)/([1-9]%d*)$')
    if not exact.rate(rule, count, period) then return false end
    rule.burst = rule.count
    return true
end

function sliding_window.scale(rule, thousandths)
    rule.count = max(1, floor(rule.count * thousandths / 1000))
    rule.burst = rule.count
end

function sliding_window.fresh(g) g.last, g.current, g.previous = 0, 0, 0 end

function sliding_window.load(g, first, rest)
    local current, previous = rest:match('^(%d+) (%d+)$')
    g.last, g.current, g.previous = first, tonumber(current), tonumber(previous)
    return g.previous and max(g.current, g.previous) <= exact.MOST
end

function sliding_window.store(g) return format('%d %d %d', g.last, g.current, g.previous) end

function sliding_window.back(g, us) g.last = max(0, g.last - us) end

-- Returns of a time, not before the last start, when its window begins, the slots used in it, and those of the window before.
local function buckets(g, at)
    local period = g.rule.period
    local begin = at - at % period
    local passed = begin - (g.last - g.last % period)
    if passed == 0 then return begin, g.current, g.previous end
    return begin, 0, passed == period and g.current or 0
end

-- Returns the first time in a window at which the slots of the previous window leave room: previous * (period - x) <= room * period.
local function room_at(rule, begin, previous, room)
    if previous <= room then return begin end
    return begin + rule.period - exact.times(exact.span({}, previous, rule.period), room)
end

function sliding_window.start(g, cost)
    local rule = g.rule
    if cost > rule.count then return huge end
    local s = max(now, g.last)
    local begin, current, previous = buckets(g, s)
    local room = rule.count - current - cost
    if room >= 0 then return max(s, (room_at(rule, begin, previous, room))) end
    return (room_at(rule, begin + rule.period, current, rule.count - cost))
end

-- Estimates what is in use, rounded up.
local function used_at(g, at)
    local period = g.rule.period
    at = max(at, g.last)
    local begin, current, previous = buckets(g, at)
    if previous == 0 then return current end
    local left = period - (at - begin)
    return min(exact.MOST, current + exact.slots(exact.span({}, previous, period), left, 0))
end

function sliding_window.used(g)
    local at = max(now, g.last)
    return used_at(g, at), at
end

function sliding_window.count(g, s, most, cost)
    return max(0, min(most, floor((g.rule.count - used_at(g, s)) / cost)))
end

function sliding_window.take(g, s, k, cost)
    local _, current, previous = buckets(g, s)
    g.last, g.current, g.previous = s, min(exact.MOST, current + k * cost), previous
end

function sliding_window.note(g, s, slots)
    s = max(s, g.last)
    local _, current, previous = buckets(g, s)
    g.last, g.current, g.previous = s, max(current, min(g.rule.count, current + slots)), previous
end

function sliding_window.charge(g, cost) sliding_window.take(g, max(now, g.last), 1, cost) end

function sliding_window.give(g, s, cost)
    local period = g.rule.period
    local passed = (g.last - g.last % period) - (s - s % period)
    if passed == 0 then
        g.current = max(0, g.current - cost)
    elseif passed == period then
        g.previous = max(0, g.previous - cost)
    end
end

function sliding_window.fill(g, n, at) g.last, g.current, g.previous = at, n, 0 end

function sliding_window.resets(g)
    local period = g.rule.period
    local begin = g.last - g.last % period
    return g.current > 0 and begin + 2 * period or g.previous > 0 and begin + period or 0
end

return sliding_window

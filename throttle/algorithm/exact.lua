-- exact: multiples of a span T = period / count, which is no whole number of microseconds, in whole numbers.
--
-- A span is any table with count, period, step_us, step_rem: T = step_us + step_rem / count. All rules of rates are
-- one.
--
-- Every number stays below 2^53. A span has count <= 10^9 < 2^30 and period <= ten years < 2^49. times() splits k, so
-- that for k <= 10^9 its products stay below 2^46, and k T is asked for only where it is below 2^52. floor(x / y) is
-- exact for whole x, y with x + y < 2^53.

local exact = {}

-- A slot may be granted so far ahead of now, us: at a small burst every late wake-up would lose a slot for good.
exact.AHEAD = 5000
exact.AHEAD_MOST = 210000 -- the same for a worker that is far away

exact.LOST_US = 60000000 -- how far back it is known which slots nobody took

exact.TEN_YEARS = 3650 * 86400 * 1000000
exact.MOST = 1000000000 -- slots in use: no state counts more
local MOST = exact.MOST

function exact.span(span, count, period)
    local step_us = floor(period / count)
    span.count, span.period, span.step_us, span.step_rem = count, period, step_us, period - step_us * count
    return span
end

-- Makes a rule a span; false when the numbers are out of the bounds of throttle/rule.c. Texts may be nil.
function exact.rate(rule, count, period)
    count, period = tonumber(count), tonumber(period)
    if not count or count > MOST or period < count or period > exact.TEN_YEARS then return false end
    exact.span(rule, count, period)
    return true
end

function exact.burst(burst)
    burst = tonumber(burst)
    return burst and burst <= MOST and burst or nil
end

-- Returns k T: whole microseconds, and the rest in 1/count us.
local function times(span, k)
    if k == 1 then return span.step_us, span.step_rem end
    local count, step_rem = span.count, span.step_rem
    if step_rem == 0 then return k * span.step_us, 0 end
    local high = floor(k / 32768)
    local a = high * step_rem
    local a_us = floor(a / count)
    local b = (a - a_us * count) * 32768 + (k - high * 32768) * step_rem
    local b_us = floor(b / count)
    return k * span.step_us + a_us * 32768 + b_us, b - b_us * count
end

exact.times = times

-- Returns the least n with n T >= left_us + left_rem / count, at most exact.MOST. The estimate is less than 1 off and taken 1 too low.
function exact.slots(span, left_us, left_rem)
    if left_us < 0 or left_us == 0 and left_rem == 0 then return 0 end
    local step_us = span.step_us
    if left_us < step_us then return 1 end
    if span.step_rem == 0 then
        local n = floor(left_us / step_us)
        if left_rem > 0 or n * step_us < left_us then n = n + 1 end
        return n < MOST and n or MOST
    end
    local n = floor((left_us + left_rem / span.count) * span.count / span.period) - 1
    if n >= MOST then return MOST end
    if n < 0 then n = 0 end
    local q, r = times(span, n)
    while q < left_us or q == left_us and r < left_rem do
        n = n + 1
        q, r = times(span, n)
    end
    return n
end

return exact

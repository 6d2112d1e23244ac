-- gate: one rule's live state, and GCRA on it in exact integers: the same arithmetic as throttle/gcra.c.
--
--   local g = gate_load(name, rule)       reads P..'gate:'..name once; nil when rule is no stored rule
--   local s = gate_start(g, cost)         when cost slots may be taken, not before now; math.huge: never
--   local k = gate_count(g, s, most, cost)
--   gate_take(g, s, k, cost)
--   local us, rem = gate_mark(g)          to undo takes: gate_reset(g, us, rem)
--   local s = gate_resets(g)              when all of the burst is there again
--   gate_save(g)                          after every load, taken or not; writes only what changed
--
-- State: "<tat_us> <tat_rem> <wrote_us> <pause_until_us> <rule>": TAT = tat_us + tat_rem / count of that
-- rule. Loading puts three things right: a clock that stepped back (TAT and pause move back with it), a TAT
-- beyond all that the rule can grant (cut), another rule than the state was written under (slots in use
-- stay in use, rounded up, at most the new burst). Each counts from now, so an open time computed by it
-- holds only once it is saved.
--
-- Every number stays below 2^53. A rule has count, burst <= 10^9, count <= period_us <= ten years, (burst -
-- 1) T <= ten years, ten years < 2^49; times() is asked for k <= burst + AHEAD / T + 2 < 2^30 only, so k T
-- < 2^51, and splits k so that its products stay below 2^46. floor(x / y) is exact for whole x, y with x +
-- y < 2^53.

-- How far ahead of now a slot may be granted, us: at a small burst every late wake-up would lose a slot for
-- good.
local AHEAD = 5000

local rule_read, gate_load, gate_start, gate_count, gate_take, gate_mark, gate_reset, gate_resets, gate_save
do
    local TEN_YEARS = 3650 * 86400 * 1000000
    local MOST = 1000000000
    local WHOLE = 2 ^ 53

    -- k * T: whole microseconds, and the rest in 1/count us.
    local function times(g, k)
        if k == 1 then return g.step_us, g.step_rem end
        local high = floor(k / 32768)
        local a = high * g.step_rem
        local a_us = floor(a / g.count)
        local b = (a - a_us * g.count) * 32768 + (k - high * 32768) * g.step_rem
        local b_us = floor(b / g.count)
        return k * g.step_us + a_us * 32768 + b_us, b - b_us * g.count
    end

    -- The rule as a gate that was never used; nil when text is no stored rule. The bounds are those of
    -- throttle/rule.c.
    function rule_read(text)
        local count, period, burst = string.match(text or '', '^([1-9]%d*)/([1-9]%d*)/([1-9]%d*)$')
        count, period, burst = tonumber(count), tonumber(period), tonumber(burst)
        if not count or count > MOST or burst > MOST then return nil end
        if period < count or period > TEN_YEARS then return nil end
        local step_us = floor(period / count)
        local g = {rule = text, count = count, period = period, burst = burst,
                   step_us = step_us, step_rem = period - step_us * count, tau_us = 0, tau_rem = 0,
                   key = '', tat_us = 0, tat_rem = 0, pause = 0, dirty = false, garbage = false}
        g.tau_us, g.tau_rem = times(g, burst - 1)
        if g.tau_us > TEN_YEARS or g.tau_us == TEN_YEARS and g.tau_rem > 0 then return nil end
        return g
    end

    local function tat_rounded_up(g)
        return g.tat_rem > 0 and g.tat_us + 1 or g.tat_us
    end

    -- The slots in use at a time: (TAT - at) / T, rounded up. The estimate is less than 1 off and taken 1
    -- too low.
    local function used(g, at)
        local left_us, left_rem = g.tat_us - at, g.tat_rem
        if left_us < 0 or left_us == 0 and left_rem == 0 then return 0 end
        local n = max(0, floor((left_us + left_rem / g.count) * g.count / g.period) - 1)
        local q, r = times(g, n)
        while q < left_us or q == left_us and r < left_rem do
            n = n + 1
            q, r = times(g, n)
        end
        return n
    end

    -- No grant puts TAT further than this; returns whether it was.
    local function cut(g)
        local q, r = times(g, g.burst)
        local most_us = now + AHEAD + q
        if g.tat_us < most_us or g.tat_us == most_us and g.tat_rem <= r then return false end
        g.tat_us, g.tat_rem = most_us, r
        return true
    end

    -- Puts the state text into g, whose rule may be another; returns false when it is garbage.
    local function state_read(g, text)
        local tat, rem, wrote, pause, rule = string.match(text, '^(-?%d+) (%d+) (%d+) (%d+) (%S+)$')
        local old = rule and (rule == g.rule and g or rule_read(rule))
        if not old then return false end
        tat, rem, wrote, pause = tonumber(tat), tonumber(rem), tonumber(wrote), tonumber(pause)
        if max(tat, -tat, wrote, pause) >= WHOLE or rem >= old.count then return false end
        local back = max(0, wrote - now)
        old.tat_us, old.tat_rem = tat - back, rem
        g.pause = max(0, pause - back)
        g.dirty = cut(old) or back > 0
        if old ~= g then
            g.tat_us, g.tat_rem = times(g, min(used(old, now), g.burst))
            g.tat_us = now + g.tat_us
            g.dirty = true
        end
        return true
    end

    -- g.garbage: the key held something unreadable; the gate then counts as unused.
    function gate_load(name, rule)
        local g = rule_read(rule)
        if not g then return nil end
        g.key = P .. 'gate:' .. name
        local state = call('GET', g.key)
        g.garbage = state and not state_read(g, state)
        return g
    end

    -- TAT + (cost - 1) T - tau = TAT - (burst - cost) T, rounded up to a whole microsecond.
    function gate_start(g, cost)
        if cost > g.burst then return math.huge end
        local q, r = g.tau_us, g.tau_rem
        if cost > 1 then q, r = times(g, g.burst - cost) end
        local opens = g.tat_us - q
        if g.tat_rem > r then opens = opens + 1 end
        return max(now, opens, g.pause)
    end

    -- How many of most jobs may start at s, which is not before now.
    function gate_count(g, s, most, cost)
        if s < g.pause then return 0 end
        return max(0, min(most, floor((g.burst - used(g, s)) / cost)))
    end

    -- Takes the slots of k jobs from s; gate_start and gate_count allowed it. A start at TAT rounded up
    -- counts as a start at TAT itself, so that rounding loses nothing.
    function gate_take(g, s, k, cost)
        if s > tat_rounded_up(g) then g.tat_us, g.tat_rem = s, 0 end
        local q, r = times(g, k * cost)
        r = r + g.tat_rem
        local carry = r >= g.count and 1 or 0
        g.tat_us, g.tat_rem = g.tat_us + q + carry, r - carry * g.count
        g.dirty = true
    end

    function gate_mark(g) return g.tat_us, g.tat_rem end

    -- Undoes all takes since the mark.
    function gate_reset(g, tat_us, tat_rem) g.tat_us, g.tat_rem = tat_us, tat_rem end

    -- When all of the burst is there again, not before now.
    function gate_resets(g)
        return max(now, tat_rounded_up(g), g.pause)
    end

    -- The key outlives TAT and pause: rounded up, and 1 ms more, because at TAT itself its remainder still
    -- counts.
    function gate_save(g)
        if not g.dirty then return end
        g.dirty = false
        local state = string.format('%d %d %d %d %s', g.tat_us, g.tat_rem, now, g.pause, g.rule)
        if VIRTUAL then
            call('SET', g.key, state)
        else
            call('SET', g.key, state, 'PX', us(ceil((gate_resets(g) - now) / 1000) + 1))
        end
    end
end

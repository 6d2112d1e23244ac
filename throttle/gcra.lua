-- gcra: the generic cell rate algorithm in exact integers, the same arithmetic as throttle/gcra.c.
--
-- Words: "tat_us tat_rem[ last_us]": TAT = tat_us + tat_rem / count. A start at s wants s >= TAT - (burst - cost) T; then
-- TAT = max(s, TAT) + cost T. last_us: the last start, where it was granted ahead. The functions are described in rules.lua.
-- uses: exact

local times, slots = exact.times, exact.slots

local gcra = {}

-- How far ahead debt can put TAT, us. All that a rule can grant is half of it at most.
local FAR = 2 * exact.TEN_YEARS

local function derive(rule)
    rule.tau_us, rule.tau_rem = times(rule, rule.burst - 1)
    return rule.tau_us < exact.TEN_YEARS or rule.tau_us == exact.TEN_YEARS and rule.tau_rem == 0
end

function gcra.read(rule, numbers)
    local count, period, burst = numbers:match('^([1-9]%d*)/([1-9]%d*)/([1-9]%d*)$')
    rule.burst = exact.burst(burst)
    return rule.burst and exact.rate(rule, count, period) and derive(rule)
end

-- T grows, count stays: TAT remains what it is.
function gcra.scale(rule, thousandths)
    local period = rule.period
    local whole = floor(period / thousandths)
    period = whole * 1000 + ceil((period - whole * thousandths) * 1000 / thousandths)
    exact.span(rule, rule.count, min(exact.TEN_YEARS, period))
    local most = exact.slots(rule, exact.TEN_YEARS, 0)
    local tau_us, tau_rem = times(rule, most)
    if tau_us == exact.TEN_YEARS and tau_rem == 0 then most = most + 1 end
    rule.burst = min(rule.burst, most)
    derive(rule)
end

function gcra.fresh(g) g.tat_us, g.tat_rem, g.last = 0, 0, 0 end

function gcra.load(g, first, rest)
    local tat_rem, last = tonumber(rest), 0
    if not tat_rem then
        tat_rem, last = rest:match('^(%d+) (%d+)$')
        tat_rem, last = tonumber(tat_rem), tonumber(last)
    end
    if not tat_rem or tat_rem < 0 or tat_rem >= g.rule.count or tat_rem % 1 ~= 0 or last > 2 ^ 53 then return false end
    g.tat_us, g.tat_rem, g.last = first, tat_rem, last
    return true
end

function gcra.store(g)
    if g.last > now then return format('%d %d %d', g.tat_us, g.tat_rem, g.last) end
    return format('%d %d', g.tat_us, g.tat_rem)
end

function gcra.back(g, us)
    g.tat_us, g.last = max(0, g.tat_us - us), max(0, g.last - us)
end

-- TAT + (cost - 1) T - tau = TAT - (burst - cost) T, rounded up to a whole microsecond.
function gcra.start(g, cost)
    local rule = g.rule
    local q, r = rule.tau_us, rule.tau_rem
    if cost > 1 then
        if cost > rule.burst then return huge end
        q, r = times(rule, rule.burst - cost)
    end
    local opens = g.tat_us - q
    if g.tat_rem > r then opens = opens + 1 end
    return opens > now and opens or now
end

function gcra.used(g)
    local at = max(now, g.last)
    return slots(g.rule, g.tat_us - at, g.tat_rem), at
end

function gcra.count(g, s, most, cost)
    local rule = g.rule
    local free = rule.burst - slots(rule, g.tat_us - s, g.tat_rem)
    if cost > 1 then free = floor(free / cost) end
    if free > most then return most end
    return free > 0 and free or 0
end

local function advance(g, n)
    local rule = g.rule
    local q, r = rule.step_us, rule.step_rem
    if n ~= 1 then q, r = times(rule, n) end
    q, r = g.tat_us + q, g.tat_rem + r
    if r >= rule.count then q, r = q + 1, r - rule.count end
    g.tat_us, g.tat_rem = q, r
end

-- A start at TAT rounded up counts as a start at TAT itself, so that rounding loses nothing.
function gcra.take(g, s, k, cost)
    if s > g.tat_us + (g.tat_rem > 0 and 1 or 0) then g.tat_us, g.tat_rem = s, 0 end
    if s > now and s > g.last then g.last = s end
    advance(g, k * cost)
end

local function cut(g)
    if g.tat_us >= now + FAR then g.tat_us, g.tat_rem = now + FAR, 0 end
end

function gcra.charge(g, cost)
    gcra.take(g, now, 1, cost)
    cut(g)
end

-- With a smaller cost at s the gate could have been empty since, until the last start, which may lie ahead of now: that long is not
-- given back.
function gcra.give(g, s, cost)
    local q, r = times(g.rule, cost)
    q = q - max(0, now + exact.AHEAD - s)
    if q < 0 then return end
    r = g.tat_rem - r
    local borrow = r < 0 and 1 or 0
    g.tat_us, g.tat_rem = max(0, g.tat_us - q - borrow), r + borrow * g.rule.count
end

function gcra.fill(g, n, at)
    g.tat_us, g.tat_rem, g.last = at, 0, at
    advance(g, n)
end

-- As many slots, each of which now takes longer to come back.
function gcra.slowed(g, n, at)
    gcra.fill(g, n, at)
    cut(g)
end

function gcra.full(g) return g.tat_us end

-- At TAT itself its remainder still counts.
function gcra.resets(g) return g.tat_rem > 0 and g.tat_us + 1 or g.tat_us end

return gcra

-- gcra: the generic cell rate algorithm in exact integers, the same arithmetic as throttle/algorithm/gcra.c.
--
-- Words: "tat_us tat_rem[ last_us[ LOWS]]": TAT = tat_us + tat_rem / count. A start at s wants s >= TAT - (burst - cost) T; then
-- TAT = max(s, TAT) + cost T. last_us: the last start, where it was granted ahead, else 0. The functions are described in rules.lua.
--
-- Giving back. TAT is the largest of all s + T (cost of that start and of all after it). Had a job at s cost less by d, those terms
-- would be less by d T that begin with it or before it, and no others. So what is given back is d T, but no more than any later start
-- found in use, TAT - s just before it: so much of the difference had drained unused by then. LOWS remembers that: entries "s_us,us,rem;",
-- of each start that found less in use than all starts after it, oldest first. It is kept where jobs are known to give back, from the
-- first start of such a job on, by every start at the gate. When there are too many, two become one that gives back less.
-- Without LOWS, or for a start from before them: no start is later than now, or than last_us, so none found less in use than
-- d T less the time until then. Every start is a T before TAT at least, so when one did not start after all, the last one is no later than that.
-- uses: exact

local times, slots = exact.times, exact.slots

local gcra = {}

-- Debt can put TAT so far ahead, us. All that a rule can grant is half of it at most.
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

-- Slows a rule: T grows and count stays, so TAT remains what it is.
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

-- ---- LOWS: a flat list, s, us, rem, s, us, rem ...

local LOWS_MOST = 16

-- True when us + rem / count is less than the other time.
local function is_less(us, rem, other_us, other_rem)
    return us < other_us or us == other_us and rem < other_rem
end

local function minus(us, rem, q, r, count)
    if rem < r then return us - q - 1, rem - r + count end
    return us - q, rem - r
end

local function lows_text(lows)
    local texts = {}
    for i = 1, #lows, 3 do texts[#texts + 1] = format('%d,%d,%d;', lows[i], lows[i + 1], lows[i + 2]) end
    return concat(texts)
end

-- Reads what starts found in use; nil: it cannot be read.
local function lows_read(text, count)
    local lows, n = {}, 0
    for s, us, rem in text:gmatch('(%d+),(%d+),(%d+);') do
        s, us, rem = tonumber(s), tonumber(us), tonumber(rem)
        if n == 3 * LOWS_MOST or max(s, us) > 2 ^ 53 or rem >= count then return nil end
        lows[n + 1], lows[n + 2], lows[n + 3] = s, us, rem
        n = n + 3
    end
    return text ~= '' and lows_text(lows) == text and lows or nil
end

-- Removes the entry that begins at i.
local function lows_drop(lows, i)
    for k = i, #lows do lows[k] = lows[k + 3] end
end

-- Makes one of the two neighbours that differ least: as late as the later, as low as the lower.
local function lows_merge(lows)
    local best, least = nil, huge
    for i = 1, #lows - 3, 3 do
        local gap = lows[i + 4] - lows[i + 1]
        if gap < least then best, least = i, gap end
    end
    lows[best] = lows[best + 3]
    lows_drop(lows, best + 3)
end

-- Notes that a start at s found so much in use.
local function lows_add(lows, s, us, rem)
    local n = #lows
    if n > 0 and s <= lows[n - 2] then return end -- this start found more in use than that one
    while n > 0 and not is_less(lows[n - 1], lows[n], us, rem) do
        lows[n], lows[n - 1], lows[n - 2] = nil, nil, nil
        n = n - 3
    end
    lows[n + 1], lows[n + 2], lows[n + 3] = s, us, rem
    if n == 3 * LOWS_MOST then lows_merge(lows) end
end

-- Finds the first entry behind s.
local function lows_find(lows, s)
    local i = 1
    while i <= #lows and lows[i] <= s do i = i + 3 end
    return i
end

-- Lets all starts behind s find less in use, by q + r / count.
local function lows_subtract(lows, first, q, r, count)
    for i = first, #lows, 3 do
        local us, rem = minus(lows[i + 1], lows[i + 2], q, r, count)
        if us < 0 then us, rem = 0, 0 end
        lows[i + 1], lows[i + 2] = us, rem
    end
    while first > 1 and first <= #lows and not is_less(lows[first - 2], lows[first - 1], lows[first + 1], lows[first + 2]) do
        first = first - 3
        lows_drop(lows, first)
    end
end

-- Begins to remember what starts find; nobody knows what earlier ones found.
function gcra.remember(g)
    if g.lows then return end
    g.lows = {}
    if g.tat_us >= now then lows_add(g.lows, max(now, g.last), 0, 0) end
end

-- ----

function gcra.fresh(g)
    g.tat_us, g.tat_rem, g.last, g.free_at = 0, 0, 0, 0
    if g.lows then g.lows = nil end
end

function gcra.load(g, first, rest)
    local tat_rem, last, lows = tonumber(rest), 0, nil
    if not tat_rem then
        tat_rem, last, lows = rest:match('^(%d+) (%d+)(.*)$')
        tat_rem, last = tonumber(tat_rem), tonumber(last)
    end
    if not tat_rem or tat_rem < 0 or tat_rem >= g.rule.count or tat_rem % 1 ~= 0 or last > 2 ^ 53 then return false end
    if lows == '' then lows = nil end
    if lows then
        lows = lows_read(lows:match('^ (.*)$') or '', g.rule.count)
        if not lows then return false end
    end
    g.tat_us, g.tat_rem, g.last, g.free_at = first, tat_rem, last, first
    if g.lows ~= lows then g.lows = lows end
    return true
end

function gcra.store(g)
    if g.lows and #g.lows > 0 then
        return format('%d %d %d ', g.tat_us, g.tat_rem, g.last > now and g.last or 0) .. lows_text(g.lows)
    end
    if g.last > now then return format('%d %d %d', g.tat_us, g.tat_rem, g.last) end
    return format('%d %d', g.tat_us, g.tat_rem)
end

function gcra.back(g, us)
    g.tat_us, g.last, g.free_at = max(0, g.tat_us - us), max(0, g.last - us), max(0, g.free_at - us)
    for i = 1, g.lows and #g.lows or 0, 3 do g.lows[i] = max(0, g.lows[i] - us) end
end

-- Returns TAT + (cost - 1) T - tau = TAT - (burst - cost) T, rounded up to a whole microsecond.
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

-- Takes k slots from s on. A start at TAT rounded up counts as a start at TAT itself, so that rounding loses nothing.
function gcra.take(g, s, k, cost)
    if s > g.tat_us + (g.tat_rem > 0 and 1 or 0) then g.tat_us, g.tat_rem = s, 0 end
    if g.lows then
        if s > g.tat_us then lows_add(g.lows, s, 0, 0) else lows_add(g.lows, s, g.tat_us - s, g.tat_rem) end
    end
    if s > now and s > g.last then g.last = s end
    advance(g, k * cost)
end

function gcra.note(g, s, slots)
    local burst = g.rule.burst
    local was_us, was_rem = g.tat_us, g.tat_rem
    local q, full_rem = times(g.rule, burst)
    local full_us = s + q
    gcra.take(g, s, 1, min(slots, burst + 1)) -- a use that was rounded up leaves a little room
    if not is_less(full_us, full_rem, g.tat_us, g.tat_rem) then return end
    if is_less(full_us, full_rem, was_us, was_rem) then full_us, full_rem = was_us, was_rem end
    g.tat_us, g.tat_rem = full_us, full_rem
end

local function cut(g)
    if g.tat_us <= now + FAR then return end
    g.tat_us, g.tat_rem = now + FAR, 0
    if g.lows then g.lows = nil end
end

function gcra.charge(g, cost)
    gcra.take(g, now, 1, cost)
    cut(g)
end

function gcra.give(g, s, cost)
    local count, lows = g.rule.count, g.lows
    local q, r = times(g.rule, cost)
    local most_us, most_rem = q - max(0, max(now, g.last) - s), r
    if most_us < 0 then most_us, most_rem = 0, 0 end
    local first = lows and lows_find(lows, s)
    if lows and not lows[first] then
        most_us, most_rem = q, r
    elseif lows and is_less(most_us, most_rem, lows[first + 1], lows[first + 2]) then
        most_us, most_rem = lows[first + 1], lows[first + 2]
    end
    if is_less(most_us, most_rem, q, r) then q, r = most_us, most_rem end
    g.tat_us, g.tat_rem = minus(g.tat_us, g.tat_rem, q, r, count)
    if g.tat_us < 0 then g.tat_us, g.tat_rem = 0, 0 end
    local last, rem = minus(g.tat_us, g.tat_rem, g.rule.step_us, g.rule.step_rem, count)
    g.last = max(0, min(g.last, rem > 0 and last + 1 or last))
    if lows then lows_subtract(lows, first, q, r, count) end
end

function gcra.fill(g, n, at)
    g.tat_us, g.tat_rem, g.last = at, 0, at
    if g.lows then g.lows = nil end
    advance(g, n)
end

-- Fills the gate with as many slots, each of which now takes longer to come back.
function gcra.slowed(g, n, at)
    gcra.fill(g, n, at)
    cut(g)
end

function gcra.full(g) return g.tat_us end

-- Counts the slots that were lost: from free_at on the bucket was full. That is TAT as it was loaded, 0 where that is not known.
function gcra.lost(g)
    if g.free_at == 0 or g.free_at >= now then return 0, now end
    local since = max(g.free_at, now - exact.LOST_US)
    return floor((now - since) * 1000 * g.rule.count / g.rule.period), since
end

-- Returns when all slots are back. At TAT itself its remainder still counts.
function gcra.resets(g) return g.tat_rem > 0 and g.tat_us + 1 or g.tat_us end

return gcra

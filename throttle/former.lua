-- former: what gates had in use under earlier rules. Each former state is a table as a gate is for an algorithm, with .till; g.former is their list, or
-- false.
--
--   former.load(g, algorithm, words)  puts an algorithm's words into g, a gate or a former state; false when they are wrong
--   former.read(text)                 a list of "|<former>|...|"; nil: it cannot be read
--   former.text(formers)
--   former.of(g)                      makes a former state of the state of a gate
--   former.add(formers, f)            of too many two become one
--   former.keep_under(g)              has one of the rule in whose place that of the gate holds, and of no other one that is to stay
--   former.note(g, s, k, cost)        k jobs of that cost start at s
--   former.charge(g, slots, under)    slots are charged now; under: so many of what the rule counts in whose place that of the gate holds
--   former.back(g, us)                the clock stepped back
--   former.forget(g)                  those that need not be known any more
--   former.ends(g)                    until when anything is known of them
--
-- A former state goes on counting: it drains by its own rule, and each start is noted in it, though it never becomes fuller than full by that. When its
-- rule comes back it is the state again. A rule that is new takes over the most that any of these states has in use. So no change gives back what was
-- used, in whatever order rules change:
--   * What started under one rule keeps to that rule, whatever other rules were in force in between.
--   * A bucket of the largest burst and the highest rate that were in force in a time never overflows by all that started in that time:
--     such a bucket is never fuller than a state is below its burst. A start takes the same from both; where the state is full, the
--     bucket is at most so. A new rule that is not filled to its burst takes over from the state of the largest burst.
-- A former state is forgotten when its .till has come, and its slots are all back, or the rule of now lets as many start at once: then the second
-- holds without it. The .till is when what was used by then is back, and a period after the rule was left at least, so that rules that take turns
-- lose no slots by being filled anew. Of more than MOST two become one that has at least as much in use.
--
-- A rule of a key (key_rules.lua) holds in place of another, rule.under. That one has a former state as long, though nothing was in use: so at the end
-- it is as if it had held all the time, whenever that is found out.
-- uses: cost exact rules

local former = {}

local WHOLE = 2 ^ 53
local MOST = 4
local STAYS = 8e15 -- till_us of a state whose rule will come back

-- Puts an algorithm's words into g; false when they are wrong.
function former.load(g, algorithm, words)
    local first, rest = match(words, '^(%d+) ?(.*)$')
    first = tonumber(first)
    return first and first < WHOLE and algorithm.load(g, first, rest)
end

-- Reads a former state; nil: it cannot be read.
local function read_one(text)
    local name, till, words = match(text, '^(%S+) (%d+) (.*)$')
    local rule = name and rules.one(name)
    if not rule or rule.in_flight then return nil end
    local f = {rule = rule, base = rule, till = tonumber(till)}
    return f.till < WHOLE and former.load(f, rule.algorithm, words) and f or nil
end

-- Reads "|<former>|...|"; nil: it cannot be read.
function former.read(text)
    local formers = {}
    for one in sub(text, 2):gmatch('([^|]*)|') do
        local f = read_one(one)
        if not f or #formers == MOST then return nil end
        formers[#formers + 1] = f
    end
    return formers[1] and formers
end

function former.text(formers)
    local texts = {}
    for i, f in ipairs(formers) do texts[i] = format('%s %d ', f.rule.text, f.till) .. f.rule.algorithm.store(f) end
    return ' |' .. concat(texts, '|') .. '|'
end

-- True when a former state need not be known beyond f.till under that rule.
local function is_covered(f, rule) return rule.in_flight or f.rule.burst <= rule.burst end

function former.forget(g)
    local kept = {}
    for _, f in ipairs(g.former) do
        if now < f.till or not is_covered(f, g.base) and f.rule.algorithm.resets(f) > now then kept[#kept + 1] = f end
    end
    g.former = kept[1] and kept or false
end

-- Returns until when anything is known of the former states.
function former.ends(g)
    local at = 0
    for _, f in ipairs(g.former) do
        local resets = f.rule.algorithm.resets(f)
        at = max(at, is_covered(f, g.base) and min(f.till, resets) or resets)
    end
    return at
end

-- Makes a former state of the state of g; of what its starts found in use nothing is known any more.
function former.of(g)
    local rule, algorithm = rules.one(g.base.text), g.algorithm
    local f = {rule = rule, base = rule, till = max(algorithm.resets(g), now + rule.period)}
    former.load(f, algorithm, algorithm.store(g))
    f.lows = nil
    return f
end

-- Takes the former state that is drained first out of a list, but for one that is to stay.
local function first_drained(formers)
    local first, least = nil, huge
    for i, f in ipairs(formers) do
        local resets = f.rule.algorithm.resets(f)
        if resets < least and f.till < STAYS then first, least = i, resets end
    end
    local f = formers[first]
    for i = first, #formers do formers[i] = formers[i + 1] end
    return f, least
end

-- Finds a rule under which a state has at least as much in use as under a and b, whatever starts: the slower and the larger of both. nil: there is
-- none.
local function merged_rule(a, b)
    if a.tau_us and b.tau_us then
        local slow = a
        if b.step_us > a.step_us or b.step_us == a.step_us and b.step_rem * a.count > a.step_rem * b.count then slow = b end
        return rules.one(format('gcra:%d/%d/%d', slow.count, slow.period, max(a.burst, b.burst)))
    end
    if a.algorithm ~= b.algorithm or a.period ~= b.period or a.windows ~= b.windows then return nil end
    return a.count > b.count and a or b
end

-- Makes one of the two that are drained first. Where no rule says what both have in use it is a window that lasts until neither is needed.
local function merge(formers)
    local a, b, drained = first_drained(formers), nil, nil
    b, drained = first_drained(formers)
    local n = max((a.rule.algorithm.used(a)), (b.rule.algorithm.used(b)))
    local rule, till = merged_rule(a.rule, b.rule), max(a.till, b.till)
    if not rule then
        local count = max(n, a.rule.burst, b.rule.burst)
        local period = max(count, min(exact.TEN_YEARS, max(till, drained) - now))
        rule, till = rules.one(format('fixed-window:%d/%d/%d', count, period, now % period)), now + period
    end
    local f = {rule = rule, base = rule, till = till}
    rule.algorithm.fresh(f)
    rule.algorithm.fill(f, n, now)
    formers[#formers + 1] = f
end

function former.add(formers, f)
    formers[#formers + 1] = f
    if #formers > MOST then merge(formers) end
end

-- Follows a clock that stepped back.
function former.back(g, us)
    for _, f in ipairs(g.former) do
        f.rule.algorithm.back(f, us)
        if f.till < STAYS then f.till = f.till - us end
    end
end

local function slots_of(rule, c) return rule.of_jobs and 1 or cost.part(c, rule.of) end

-- Notes k starts in the former states. That of the rule in whose place this one holds counts by what that counts.
function former.note(g, s, k, c)
    local under = g.base.under
    local slots = k * slots_of(g.base, c)
    for _, f in ipairs(g.former) do
        f.rule.algorithm.note(f, s, under and f.till == STAYS and k * slots_of(under, c) or slots)
    end
end

-- Notes slots that are charged now. A rule of jobs in whose place this one holds has noted its one when the job started.
function former.charge(g, slots, under)
    for _, f in ipairs(g.former) do
        local n = f.till < STAYS and slots or g.base.under.of_jobs and 0 or under
        if n > 0 then f.rule.algorithm.note(f, now, n) end
    end
end

-- Has a former state of the rule in whose place that of the gate holds, and of no other one that is to stay.
function former.keep_under(g)
    local under, formers, there = g.base.under, g.former or {}, false
    local text = under and not under.in_flight and under.text ~= g.base.text and under.text or nil
    for _, f in ipairs(formers) do
        if f.rule.text == text then
            f.till, there = STAYS, true
        elseif f.till == STAYS then
            f.till = max(f.rule.algorithm.resets(f), now + f.rule.period)
        end
    end
    if text and not there then
        local rule = rules.one(text)
        local f, n, at = {rule = rule, base = rule, till = STAYS}, g.algorithm.used(g)
        rule.algorithm.fresh(f)
        if n > 0 then rule.algorithm.fill(f, min(n, rule.burst), at) end
        g.former = formers
        former.add(formers, f)
    end
end

return former

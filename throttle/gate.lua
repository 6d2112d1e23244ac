-- gate: one rule's live state, whatever its algorithm; each is read once and written once in a call.
--
--   local g = gate.load(name, rule)             name: "<limit>#<index>[/<key>]"; rule: of rules.lua
--   gate.load_safe(name, rule)                  nil when the key is of a wrong kind, where load fails
--   gate.start(g, cost[, node, ticket])         when a job of that cost may start, not before now; huge: the cost
--                                               does not fit, or (concurrency) not before another job ends
--   gate.needs(g, cost)                         how many slots such a job takes; of 0 it is not asked
--   gate.fits(g, cost)                          could it ever?
--   gate.misfit(list, n, cost)                  the smallest burst of those that it never fits; nil: it fits all
--   gate.count(g, s, most, cost)                how many of most jobs may start at s
--   gate.take(g, s, k, cost)                    k jobs start at s, which start and count allowed; ends a hold
--   gate.take_next(g, cost, till)               after a take: one more starts as soon as it may, and when; nil: not until then
--   gate.slots(gates, most, cost, node, ticket) how many of most jobs may start now by all of these. 0: when one may, and the gate that opens last
--   gate.use_slots(n)                           so many start of those that gate.slots has just allowed
--   gate.remember(g)                            before a take: jobs may give back what they take from now on
--   gate.give(g, s, slots)                      a job that was granted at s needed so many slots less
--   gate.charge(g, slots[, under])              or more: they are taken though the gate may be full; under: so many of what the rule counts in whose place
--                                               that of the gate holds
--   gate.release(name)                          concurrency, whatever the rule is now: one job in flight fewer
--   gate.recount(name, rule, n)                 the same: so many are, whatever it counted
--   gate.pause(g, until_us), gate.resume(g)     nothing starts until then
--   gate.throttled(g)                           adapt=: the provider said stop. Before gate.pause: once a pause counts
--   gate.hold(g, node, ticket, until_us)        against every other node that was served later (a larger ticket)
--   gate.held_until(g, node, ticket)            when it is held against that node; else 0
--   gate.figures(g[, at])                       the most slots that are ever free at once; how many are free at that time, at which
--                                               slots may start (without it: now); and resets
--   gate.keep(g)                                it is to be known for a minute more what nobody took: for gate.lost
--   gate.lost(g)                                thousandths of slots that nobody took while they were free, as it was loaded, and since when; of the
--                                               last minute, 0 where that is not known
--   gate.opens(name)                            when a gate that this call has seen lets a job of the least cost start
--   gate.check_time(name, opens)                when to check a gate that opens then, by what this call has seen of it
--   gate.resets(g)                              when all is as if never used, not before now
--   gate.undo()                                 nothing was loaded or taken
--   gate.save()                                 writes what has changed. After every load, taken or not: see below
--   gate.close()                                saves, and unloads all gates: a call that asks many, some after others, keeps few
--
-- g.name; g.base: the rule as it is set; g.rule: that at its present rate. What else is in g is gate.lua's and the algorithm's. Among several gates
-- there may be what opens at a fixed time: {name =, fixed =}.
--
-- Jobs that start one by one at the same gates ask them once (gate.slots) and take what they used once. Until then these gates are `pending`: whatever
-- asks, changes or stores one of them takes it first.
--
-- State: "<wrote_us> <pause_until_us> <hold> <adapt> <rule> <the algorithm's words>[ |<former>|...|][ ~<n>]"; hold: "-" or
-- "ticket,until_us,node"; adapt: "-" or "thousandths,since_us"; rule: under which the words were written; former:
-- "<rule> <till_us> <its words>"; n: jobs in flight since the gate was one of concurrency, to be released though it now counts a rate.
-- Loading puts two things right: a clock that stepped back (all times move back with it), and another rule. Both count from now, so an
-- opening time computed by them holds only once it is saved.
--
-- Another rule takes over what is in use, rounded up, at most its burst: so it opens at its own pace. The state under the rule until now stays
-- beside it as a former one (former.lua), so that no change gives back what was used.
--
-- A state that cannot be read, perhaps of a newer version of Weir, closes the gate for a period (of concurrency: a minute) from when it
-- was written, which its first word says in every format. It stays as it is that long, for those who can read it; then all slots
-- count as taken when it was written. One that does not say when is closed from now, and written anew.
--
-- adapt: throttled halves the rate, not below LOW; it grows by a hundredth of the rule's rate every period, though
-- not faster than every second nor slower than every minute, up to HIGH. The factor of a call is that of its
-- beginning.
-- uses: exact former rules

local gate = {}

gate.AHEAD, gate.AHEAD_MOST = exact.AHEAD, exact.AHEAD_MOST

local WHOLE = 2 ^ 53
local GROWTH = 10 -- thousandths
local KEPT_MOST = 64 -- tables of gates, from call to call

-- This call's gates by name, and now as text. A member is set to nil only where it is not nil already: Lua makes room for it, and a full table
-- doubles.
local gates, stamp, will_forget = {}, nil, false

-- Loaded gates, in order. Behind them stand tables of earlier calls, which new() uses again.
local all, loaded = {}, 0

-- What gate.slots has asked: the gates; for which cost; how many slots are left, and how many were used. Where none was free: when one is, and the
-- gate that opens last. ON = false: each question is asked anew, and a claim decides the same. test_throttle runs worlds both ways.
local ON = true
local asked, asked_cost, asked_left, asked_used, asked_at, asked_last

-- Takes what was used of the gates that were asked.
local function settle()
    local list, n = asked, asked_used
    asked, asked_used = nil, 0
    for i = 1, #list do
        local g = list[i]
        if not g.fixed then
            g.pending = false
            if n > 0 then gate.take(g, now, n, asked_cost) end
        end
    end
end

local function unload()
    for i = KEPT_MOST + 1, loaded do all[i] = nil end
    gates, loaded = {}, 0
end

local function forget()
    asked_used = 0
    if asked then settle() end
    unload()
    stamp, will_forget = nil, false
end

gate.undo = forget

-- ---- Rules that change

local function growth_us(rule) return max(1000000, min(60000000, rule.period)) end

-- Brings g.rule to its present rate; g.factor: nil when that is HIGH.
local function adapt(g)
    local whole = g.base
    if not whole.adapt_low then
        g.rule = whole
        if g.factor then g.factor = nil end
        return
    end
    local rate = whole.adapt_high
    if g.factor then
        rate = max(whole.adapt_low, g.factor + GROWTH * floor(max(0, now - g.since) / growth_us(whole)))
        if rate >= whole.adapt_high then rate, g.factor = whole.adapt_high, nil end
    end
    g.rule, g.rate = rules.scaled(whole, rate), rate
end

-- Changes the rule of a gate. Slots are granted ahead: no slot in use may count as earlier than it starts, or it is forgotten too early.
local function change(g, whole)
    local n, at = g.algorithm.used(g)
    local formers, same = {}, nil
    for _, f in ipairs(g.former or formers) do
        if f.rule.text == whole.text then same = f else formers[#formers + 1] = f end
    end
    if not g.base.in_flight and n > 0 then former.add(formers, former.of(g)) end
    g.base, g.algorithm = whole, whole.algorithm
    adapt(g) -- first: slots of a lower rate take longer to come back
    if g.hold_ticket then g.hold_ticket = nil end -- its time was that of the old rule
    g.algorithm.fresh(g)
    if same then
        former.load(g, g.algorithm, g.algorithm.store(same))
    else
        for _, f in ipairs(formers) do
            local used, last = f.rule.algorithm.used(f)
            n, at = max(n, used), max(at, last)
        end
        g.algorithm.fill(g, min(n, whole.burst), at)
    end
    g.former = formers[1] and formers or false
    g.changed = true
end

local function set_base(g, whole)
    if whole.text ~= g.base.text then
        change(g, whole)
    else
        g.algorithm, g.base = whole.algorithm, whole
        adapt(g)
    end
    if whole.under or g.former then former.keep_under(g) end
end

-- ---- Loading

-- Reads "<words>[ |<former>|...|][ ~<n>]".
local function words_read(g, text)
    local words, flight, formers = text, nil, nil
    if find(words, '~', 1, true) then
        words, flight = match(words, '^(.-) ?~(%d+)$')
        if not words then return false end
    end
    if find(words, '|', 1, true) then
        words, formers = match(words, '^(.-) ?(|.*|)$')
        formers = formers and former.read(formers)
        if not formers then return false end
    end
    if not former.load(g, g.algorithm, words) then return false end
    if flight then g.flight = tonumber(flight) end
    if formers then g.former = formers end
    return true
end

-- Reads a plain state, which nearly all have: of this rule, neither paused, held nor slowed, by a clock that did not step back.
local function state_read_plain(g, whole, state)
    local wrote, first, rest = match(state, whole.pattern)
    wrote, first = tonumber(wrote), tonumber(first)
    return wrote and wrote <= now and first < WHOLE and whole.algorithm.load(g, first, rest)
end

-- Puts the state into g, whose rule may be another; returns false when it cannot be read.
local function state_read(g, state)
    local wrote, pause, hold, adapted, text, words = state:match('^(%d+) (%d+) (%S+) (%S+) (%S+) (%d.*)$')
    if not words then return false end
    wrote, pause = tonumber(wrote), tonumber(pause)
    if wrote >= WHOLE or pause >= WHOLE then return false end
    local ticket, until_us, node = match(hold, '^(%d+),(%d+),(.+)$')
    local factor, since = match(adapted, '^(%d+),(%d+)$')
    if hold ~= '-' and not node or adapted ~= '-' and not factor then return false end
    local whole = g.base
    if text ~= whole.text then
        local old = rules.one(text)
        if not old then return false end
        g.base, g.rule, g.algorithm = old, old, old.algorithm
    end
    if not words_read(g, words) then return false end
    local back = wrote - now
    if back > 0 then
        g.algorithm.back(g, back)
        if g.former then former.back(g, back) end
        pause = max(0, pause - back)
        g.changed = true
    else
        back = 0
    end
    if pause > now then g.pause = pause elseif pause > 0 then g.was_paused = true end
    if node then g.hold_ticket, g.hold_until, g.holder = tonumber(ticket), tonumber(until_us) - back, node end
    if factor then g.factor, g.since = tonumber(factor), tonumber(since) - back end
    if g.former then former.forget(g) end
    if whole ~= g.base then set_base(g, whole) elseif whole.adapt_low or g.factor then adapt(g) end
    return true
end

local function unused(g, whole)
    g.base, g.algorithm = whole, whole.algorithm
    if g.flight then g.flight = nil end
    if g.former then g.former = false end
    adapt(g)
    g.algorithm.fresh(g)
end

-- Makes a gate of which nothing is known; g: the table of an earlier call, or nil. Twelve fields make room for sixteen at once: Lua need not grow the
-- table field by field.
local function new(g, name, key, whole)
    if not g then
        return {name = name, key = key, base = whole, rule = whole, algorithm = whole.algorithm, changed = false, pause = false,
                hold_ticket = false, factor = false, flight = false, former = false, kept = false}
    end
    g.name, g.key, g.base, g.rule, g.algorithm, g.changed = name, key, whole, whole, whole.algorithm, false
    g.pause, g.hold_ticket, g.factor, g.flight, g.former, g.kept = false, false, false, false, false, false
    if g.stays or g.was_paused then g.stays, g.was_paused = false, false end
    return g
end

local MINUTE_US = 60000000

-- Closes a gate whose state cannot be read, as if never used but for that.
local function close(g, whole, state)
    local wrote = tonumber(match(state, '^(%d+) '))
    local is_dated = wrote and wrote <= now
    if not is_dated then wrote = now end
    local till = wrote + (whole.period or MINUTE_US)
    unused(g, whole)
    g.algorithm.fill(g, g.rule.burst, wrote)
    if till > now then g.pause, g.stays = till, is_dated end
    g.changed = not is_dated
end

local function make(name, key, whole, state)
    loaded = loaded + 1
    local g = new(all[loaded], name, key, whole)
    all[loaded], gates[name] = g, g
    if not will_forget then
        will_forget = true
        at_next_call(forget)
    end
    if not state then
        if whole.adapt_low then adapt(g) end
        g.algorithm.fresh(g)
    elseif whole.adapt_low or not state_read_plain(g, whole, state) then
        if not state_read(g, state) then close(g, whole, state) end
    end
    if whole.under then former.keep_under(g) end
    return g
end

function gate.load(name, rule)
    local g = gates[name]
    if not g then
        local key = P .. 'gate:' .. name
        return make(name, key, rule, call('GET', key))
    end
    if g.base ~= rule and g.base ~= rule.mixed then
        if g.pending then settle() end
        set_base(g, rule)
    end
    return g
end

function gate.load_safe(name, rule)
    if gates[name] then return gate.load(name, rule) end
    local key = P .. 'gate:' .. name
    local state = call_safe('GET', key)
    if state and type(state) ~= 'string' then return nil end
    return make(name, key, rule, state)
end

-- ---- Starting

function gate.needs(g, c) return rules.slots(g.base, c) end

function gate.fits(g, c) return rules.fits(g.base, c) end

-- Returns when a rate that was halved has grown again.
local function grown(g)
    local step = growth_us(g.base)
    return now + step - (now - g.since) % step
end

function gate.held_until(g, node, ticket)
    if g.pending then settle() end
    if not g.hold_ticket or g.hold_until <= now or node == g.holder then return 0 end
    return ticket and ticket <= g.hold_ticket and 0 or g.hold_until
end

function gate.start(g, cost, node, ticket)
    if g.pending then settle() end
    local s = g.algorithm.start(g, cost)
    if s == huge and g.factor and gate.fits(g, cost) then s = max(grown(g), now + gate.AHEAD_MOST + 1) end
    if g.pause and g.pause > s then s = g.pause end
    if g.hold_ticket and gate.needs(g, cost) > 0 then s = max(s, gate.held_until(g, node, ticket)) end
    return s
end

function gate.count(g, s, most, cost)
    if g.pending then settle() end
    return g.pause and s < g.pause and 0 or g.algorithm.count(g, s, most, cost)
end

-- Takes k slots from s on. A gate whose state could not be read is written from now on, so that what is granted is saved.
function gate.take(g, s, k, c)
    if g.pending then settle() end
    if g.base.of and gate.needs(g, c) == 0 then return end
    g.algorithm.take(g, s, k, c)
    if g.former then former.note(g, s, k, c) end
    if g.stays then g.stays = false end
    if g.hold_ticket then g.hold_ticket = nil end
    g.changed = true
end

function gate.take_next(g, c, till)
    if g.pending then settle() end
    local s = g.algorithm.start(g, c)
    if g.pause and g.pause > s then s = g.pause end
    if s > till then return nil end
    g.algorithm.take(g, s, 1, c)
    if g.former then former.note(g, s, 1, c) end
    return s
end

-- Asks how many of most jobs may start now; when one may at all of the gates, and which of these opens last.
local function ask(list, most, cost, node, ticket)
    local n, at, last = most, now, nil
    for i = 1, #list do
        local e = list[i]
        local t = e.fixed or gate.start(e, cost, node, ticket)
        if t > at then
            n, at, last = 0, t, e
        elseif n > 0 and not e.fixed then
            n = gate.count(e, now, n, cost)
        end
    end
    return n, at, last
end

function gate.slots(list, most, cost, node, ticket)
    if asked ~= list or asked_cost ~= cost or asked_left < 1 and asked_used > 0 or not ON then
        if asked then settle() end
        asked_left, asked_at, asked_last = ask(list, most, cost, node, ticket)
        asked, asked_cost, asked_used = list, cost, 0
        for i = 1, #list do
            if not list[i].fixed then list[i].pending = true end
        end
    end
    return asked_left, asked_at, asked_last
end

function gate.use_slots(n) asked_left, asked_used = asked_left - n, asked_used + n end

function gate.remember(g)
    if g.pending then settle() end
    if g.algorithm.remember then g.algorithm.remember(g) end
end

function gate.keep(g) g.kept = true end

function gate.lost(g)
    if not g.algorithm.lost then return 0, now end
    return g.algorithm.lost(g)
end

function gate.give(g, s, slots)
    if g.pending then settle() end
    g.algorithm.give(g, s, slots)
    g.changed = true
end

function gate.charge(g, slots, under)
    if g.pending then settle() end
    g.algorithm.charge(g, slots)
    if g.former then former.charge(g, slots, under or slots) end
    g.changed = true
end

function gate.release(name)
    local g = gates[name]
    if not g then
        local key = P .. 'gate:' .. name
        local state = call('GET', key)
        local rule = state and rules.one(state:match('^%d+ %d+ %S+ %S+ (%S+) ') or '')
        if not rule then return end
        g = make(name, key, rule, state)
    end
    if g.flight and g.flight > 0 then
        g.flight = g.flight - 1
        g.changed = true
    end
end

-- Sets how many jobs were found in flight; rule: under which the state is written.
function gate.recount(name, rule, n)
    local g = gate.load(name, rule)
    if g.stays then g.pause, g.stays = false, false end
    g.flight = n
    g.changed = true
end

-- ---- Stopping

-- Pauses a gate; the later of two pauses holds.
function gate.pause(g, until_us)
    if until_us > (g.pause or now) then g.pause = until_us end
    g.changed = true
end

function gate.resume(g)
    g.pause = nil
    g.changed = true
end

function gate.throttled(g)
    if g.pending then settle() end
    local whole = g.base
    if not whole.adapt_low or g.pause then return end
    local n, at = g.algorithm.used(g)
    g.factor, g.since = max(whole.adapt_low, floor(g.rate / 2)), now
    adapt(g)
    if g.algorithm.slowed then g.algorithm.slowed(g, n, at) end
    g.changed = true
end

-- Holds a gate for a node that waits since ticket, a whole number. False: an older hold stands. A node that waits in several queues holds as the
-- oldest.
function gate.hold(g, node, ticket, until_us)
    if gate.held_until(g, node, ticket) > 0 then return false end
    if node == g.holder and g.hold_ticket and g.hold_until > now then ticket = min(ticket, g.hold_ticket) end
    g.hold_ticket, g.hold_until, g.holder = ticket, until_us, node
    g.changed = true
    return true
end

-- ---- Looking

function gate.resets(g)
    if g.pending then settle() end
    local at = g.algorithm.resets(g)
    if g.pause and g.pause > at then at = g.pause end
    return at > now and at or now
end

function gate.figures(g, at)
    local most, resets, free = g.rule.burst, gate.resets(g), 0
    if not at and gate.start(g, 1) <= now then at = now end
    if at and not (g.pause and at < g.pause) then free = g.algorithm.count(g, at, most, 1) end
    return most, free, resets
end

-- Returns the smallest burst of those of these gates that such a cost never fits; nil: it fits all.
function gate.misfit(list, n, cost)
    local least
    for i = 1, n do
        local burst = list[i].rule.burst
        if not gate.fits(list[i], cost) and (not least or burst < least) then least = burst end
    end
    return least
end

-- Returns when a gate lets a job of the least cost start; nil: this call has not seen the gate.
function gate.opens(name)
    local g = gates[name]
    return g and gate.start(g, 1)
end

-- A look comes early by half of what is granted ahead; half is left for being late. So no slot is lost, and a job starts at its very time. Where a
-- later look serves more slots at once, it comes only as early as the burst does not make up for being late.
local LEAD_US = gate.AHEAD / 2

function gate.check_time(name, opens)
    local g = gates[name]
    if g and g.pending then settle() end
    if not g or not g.algorithm.full or g.rule.period > gate.AHEAD * g.rule.count then return opens - LEAD_US end
    return min(opens, max(opens, g.algorithm.full(g)) - LEAD_US)
end

-- ---- Saving

-- Returns what stands before the algorithm's words of a gate that is paused, held or slowed, and when that is over.
local function head(g)
    local hold, adapted, at = '-', '-', gate.resets(g)
    if g.hold_ticket and g.hold_until > now then
        hold = format('%d,%d,%s', g.hold_ticket, g.hold_until, g.holder)
        at = max(at, g.hold_until)
    end
    if g.factor then
        adapted = format('%d,%d', g.factor, g.since)
        if g.base.adapt_high then -- else released by its name, under a state's rule
            at = max(at, g.since + ceil((g.base.adapt_high - g.factor) / GROWTH) * growth_us(g.base))
        end
    end
    return format(' %d %s %s %s ', g.pause or 0, hold, adapted, g.rule.text), at
end

-- Writes a state. The key outlives what it says: rounded up, and 1 ms more.
local function put(key, head_text, words, at)
    if not stamp then stamp = us(now) end
    local state = stamp .. head_text .. words
    if VIRTUAL or at == huge then
        call('SET', key, state)
    else
        call('SET', key, state, 'PX', digits(at > now and ceil((at - now) / 1000) + 1 or 1))
    end
end

local function write(g)
    local rule, algorithm = g.rule, g.algorithm
    local head_text, words, at = rule.head, algorithm.store(g), nil
    if g.pause or g.hold_ticket or g.factor then head_text, at = head(g) else at = algorithm.resets(g) end
    if g.kept then at = at + exact.LOST_US end
    if g.former then words, at = words .. former.text(g.former), max(at, former.ends(g)) end
    if g.flight and g.flight > 0 then
        at = huge
        if not g.base.in_flight then words = words .. ' ~' .. us(g.flight) end
    end
    put(g.key, head_text, words, at)
    g.changed = false
end

function gate.save()
    if asked then settle() end
    for i = 1, loaded do
        if all[i].changed and not all[i].stays then write(all[i]) end
    end
end

function gate.close()
    gate.save()
    unload()
end

return gate

-- line: callers of take_wait for the same limit and key stand in line, in the order in which they came; each sleeps until the time at which
-- it was told that its slot comes.
--
--   line.open(name, key, limit, holds, most) the line of this call; limit, holds: of takes.lua; most: how long a caller waits yet. A word
--                                       that says what is wrong; nil: nothing
--   line.asks(came)                     its caller came then, and hears no bell
--   line.gates()                        its gates, and how many
--   line.last_start(came)               the ticket of one who came then
--   line.opens(cost, ticket)            when its gates open for who has it to itself; huge: never
--   line.start_now(cost, came, ticket)  when they do behind those who came before, and are here
--   line.start_then(cost, came, ticket, hears) the same behind those who will come; hears: it is told when that is too late
--   line.take(place, at, cost)          it starts then, and leaves
--   line.figures([at])                  the burst, how many slots are left at that time, and when all are free
--   line.misfit(cost)                   the burst that such a cost never fits; nil: it fits
--   line.forget_gone()                  those who are late by much too much, before anything else is asked
--   line.came(place)                    when it came; '': it comes now
--   line.join(place, came, at, cost)    it sleeps, as its slot comes then
--   line.leave(place)                   it does not wait any more
--   line.look(place)                    it was to start now, and cannot: what those before it have been told may be wrong
--   line.wake(member)                   the gates may open sooner than they were to: who sleeps is told. How many were looked at, and
--                                       whether more sleep on
--   line.at(gate_name)                  the lines at a gate, named as in lane.lua: "!<limit>[/<key>]" each
--
--   line:<limit>[/<key>]   who waits: place -> when it came. A place is <came>.<cost, as cost.lua writes it>.<tag>
--   due:<limit>[/<key>]    place -> when its slot comes, as it was told; * -> the last start; ~ -> when the first in line last found
--                          that others (jobs) had taken its slot: for a while each place is reckoned two slots then
--   turn:<place>           the bell: times at which the slot comes, sooner than was told
--   lines                  !<limit>[/<key>] of all lines, each at 0: found by their beginnings
--
-- Whoever is late is passed over, and keeps its place for GONE: so one that died wastes its own slot at most. The gates are held for
-- the first in line against those served later than the line, as for types: jobs and callers take turns.
--
-- Nobody knows when a gate of concurrency opens that is full. So its line stands at at:<gate> as queues do, and is told as something ends;
-- and each caller asks again as the next hold ends, whose holder may be dead, and at least every LOOK. One that hears no bell asks the sooner the
-- fewer stand before it, and a gate that opens is held until the first comes.
-- uses: gate rules takes

local line = {}

local LEAD = gate.AHEAD   -- a caller that asks so long before its slot, or later, has come for it
local LATE = 20000        -- us; a caller that is late by more may be gone, and keeps nobody from a slot that is open
local COMING = 1000000    -- us; until then a late caller is likely to come, and others are told times behind it
local GONE = 10000000     -- us; then a late caller has left the line
local BEFORE_MOST = 500   -- places that one call walks: 1 ms. Callers behind them are told the time of the last
local LOOK_MOST = 20      -- places at which one call looks for a caller that is not late
local LOOK = 10000000     -- us; so often callers at a gate of concurrency that is full ask again
local LOOK_LEAST = 100000 -- and no sooner
local SOON = 200000       -- us; a caller that asks by then anyway is not told of a gate of concurrency
local CLOSED = 8e15       -- us; when what nothing opens does
local LIVES_MS = 60000    -- keys stay so long after what they say is over

-- The line of this call.
local node, list, due -- node: its name, as in lines
local limit, key
local gates = {}
local count -- how many gates there are
local from  -- when the first caller may start: now, or at the end of the limit's pause
local its_rules, till -- the rules that hold its key, and until when
local patience -- how long the caller of this call waits yet; < 0: as long as it takes
local again -- when to ask again at a gate of concurrency that is full; nil: not looked for yet
local deaf -- when the caller of this call came, if it hears no bell
local counts -- whether a gate is one of concurrency

local function load_gates()
    count, counts = #its_rules, false
    for i = 1, count do
        gates[i] = takes.load(limit, its_rules[i], key)
        if not gates[i] then return false end
        counts = counts or its_rules[i].in_flight
    end
    return true
end

local function is_foreign(at)
    local kind = call('TYPE', at).ok
    return kind ~= 'none' and kind ~= 'zset'
end

function line.open(name, its_key, its_limit, holds, most)
    local path = its_key == '' and name or name .. '/' .. its_key
    limit, key, list, due, node = its_limit, its_key, P .. 'line:' .. path, P .. 'due:' .. path, '!' .. path
    patience, again, deaf = most or -1, nil, nil
    local wrong, closed = takes.wrong(limit, key, holds), nil
    if wrong then return wrong end
    its_rules, till, closed, wrong = takes.rules(limit, key, holds)
    wrong = wrong or (is_foreign(list) or is_foreign(due) or not load_gates()) and 'foreign'
    if wrong then return wrong end
    from = closed and CLOSED or limit.set.pause_until and max(now, rules.paused(limit.set)) or now
end

function line.asks(came) deaf = came end

function line.gates() return gates, count end

-- ---- Starts

-- Returns when to ask again at a gate of concurrency that is full; more than is granted ahead, as it is not open.
local function ask_again()
    if not again then
        local ends = tonumber(call_safe('ZRANGE', P .. 'holds', '0', '0', 'WITHSCORES')[2] or huge)
        again = max(now + LOOK_LEAST, min(now + LOOK, ends))
        if deaf and patience ~= 0 then again = min(again, now + LOOK_LEAST * (1 + call('ZCOUNT', list, '-inf', '(' .. us(deaf)))) end
        if patience > 0 then again = min(again, now + max(patience, gate.AHEAD + 1)) end
    end
    return again
end

local function opens(cost, at, ticket)
    for i = 1, count do
        local s = gate.start(gates[i], cost, node, ticket)
        if s == huge and gates[i].base.in_flight then s = ask_again() end
        if s > at then at = s end
    end
    return at > till and max(till, now + gate.AHEAD + 1) or at
end

local function start_at(at, cost)
    for i = 1, count do gate.take(gates[i], at, 1, cost) end
end

local function cost_of(place) return takes.whole(limit, takes.cost(match(place, '^%d+%.([^.]+)%.'))) end

local function ticket_of(came) return tonumber(call('ZSCORE', due, '*') or came) end

line.last_start = ticket_of

function line.opens(cost, ticket) return opens(cost, from, ticket) end

function line.misfit(cost) return gate.misfit(gates, count, cost) end

function line.figures(at)
    local burst, remaining, resets = huge, huge, from
    for i = 1, count do
        local most, left, full = gate.figures(gates[i], at)
        burst, remaining = min(burst, most), min(remaining, left)
        if full < huge then resets = max(resets, full) end
    end
    return burst, remaining, resets
end

-- True when others take about every second slot.
local function is_shared()
    local at = call('ZSCORE', due, '~')
    if not at then return false end
    local slot = 0
    for i = 1, count do slot = max(slot, (gates[i].base.period or 0) / gates[i].base.count) end
    return at + 1000000 + 4 * slot >= now
end

-- Tells a caller that sleeps when its slot comes.
local function tell(place, at, told)
    call('ZADD', due, us(at), place)
    local bell = P .. 'turn:' .. place
    if type(call_safe('RPUSH', bell, us(at))) == 'number' and not VIRTUAL then
        call('PEXPIRE', bell, us(ceil((told - now) / 1000) + LIVES_MS))
    end
end

-- True for a caller that is to be told, as its slot comes sooner than it was told.
local function is_sooner(at, told) return at + gate.AHEAD < told and not (counts and told <= now + SOON) end

-- Takes the slots of these places from the gates, each so many times, but for those who are late by more. Returns when the last of them
-- starts. tells: those who sleep past their slots are told.
local function walk(places, ticket, late, times, tells)
    local dues, at = #places > 0 and call('ZMSCORE', due, unpack(places)), from
    for i = 1, #places do
        local told = tonumber(dues[i] or 0)
        if told + late >= now then
            local cost = cost_of(places[i])
            for n = 1, times do
                local s = opens(cost, at, ticket)
                local comes = s == huge and now or s -- a caller that can never start asks, and is answered so
                if tells and n == 1 and is_sooner(comes, told) then tell(places[i], comes, told) end
                if s == huge then break end
                start_at(s, cost)
                at = s
            end
        end
    end
    return at
end

-- Computes when a caller starts behind those in line that came before it.
local function nth_start(cost, came, ticket, late, times)
    local before = call('ZRANGEBYSCORE', list, '-inf', '(' .. us(came), 'LIMIT', '0', us(BEFORE_MOST))
    local at = opens(cost, walk(before, ticket, late, times), ticket)
    gate.undo()
    load_gates()
    return at
end

function line.start_now(cost, came, ticket) return nth_start(cost, came, ticket, LATE, 1) end

function line.start_then(cost, came, ticket, hears) return nth_start(cost, came, ticket, COMING, hears and is_shared() and 2 or 1) end

-- ---- Places

local function outlive(at_key, at)
    local lives_ms = max(0, ceil((at - now) / 1000)) + LIVES_MS
    if not VIRTUAL and call('PTTL', at_key) < lives_ms then call('PEXPIRE', at_key, us(lives_ms)) end
end

-- Callers who died leave lines that expire: who comes into a new one looks after two of them.
local function enlist()
    call_safe('ZADD', P .. 'lines', '0', node)
    for _, other in ipairs(call_safe('ZRANDMEMBER', P .. 'lines', '2')) do
        if call('EXISTS', P .. 'line:' .. sub(other, 2)) == 0 then call('ZREM', P .. 'lines', other) end
    end
end

-- Takes a place out of the line. Returns whether it was there.
local function remove(place)
    call('ZREM', due, place)
    if call('ZREM', list, place) == 0 then return false end
    if call('EXISTS', list) == 0 then call_safe('ZREM', P .. 'lines', node) end
    return true
end

-- Forgets a line whose times are of a clock that was set back since: it forms anew as callers ask.
function line.forget_gone()
    local last = call('ZRANGE', list, '-1', '-1', 'WITHSCORES')
    if last[2] and tonumber(last[2]) > now + COMING then return call('DEL', list, due) end
    for _, place in ipairs(call('ZRANGEBYSCORE', due, '-inf', us(now - GONE), 'LIMIT', '0', us(LOOK_MOST))) do
        if #place > 1 then remove(place) end
    end
end

-- Finds the first in line that is not late: its place, when it came, and when it is due.
local function first()
    local places = call('ZRANGE', list, '0', us(LOOK_MOST - 1), 'WITHSCORES')
    for i = 1, #places, 2 do
        local at = tonumber(call('ZSCORE', due, places[i]) or 0)
        if at + LATE >= now then return places[i], tonumber(places[i + 1]), at end
    end
end

-- Holds gates for the first in line until a moment after its slot: those that would be idle for less than one slot of theirs; one of concurrency
-- as it is told to come now, or comes soon: then.
local function hold(cost, at, ticket, comes)
    for i = 1, count do
        local g = gates[i]
        if g.base.in_flight then
            call_safe('SADD', P .. 'at:' .. g.name, node)
            if at <= now + gate.AHEAD then gate.hold(g, node, ticket, max(now, comes) + LATE) end
        elseif gate.needs(g, cost) > 0 and gate.start(g, cost, node, ticket) + ceil(g.base.period / g.base.count) >= at then
            gate.hold(g, node, ticket, at + gate.AHEAD)
        end
    end
    gate.save()
end

local function end_hold()
    for i = 1, count do
        if gates[i].hold_ticket and gates[i].holder == node then gate.hold(gates[i], node, now, now) end
    end
    gate.save()
end

-- Tells the first in line where it may come sooner than it was told.
local function call_first()
    local place, came, told = first()
    if not place then return end_hold() end
    local cost, ticket = cost_of(place), ticket_of(came)
    local at = opens(cost, from, ticket)
    if at == huge then return end
    local sooner = is_sooner(at, told)
    if sooner then tell(place, at, told) end
    hold(cost, at, ticket, sooner and at or told)
end

-- Lets a caller start at that time. Who is first in line then may sleep.
function line.take(place, at, cost)
    start_at(at, cost)
    gate.save()
    remove(place)
    if call('EXISTS', list) == 0 then return call('DEL', due) end
    call('ZADD', due, us(at), '*')
    outlive(due, at)
    call_first()
end

function line.leave(place)
    if remove(place) then call_first() end
end

-- Returns a time of coming that is later than those of all who came before.
local function now_come()
    local last = call('ZRANGE', list, '-1', '-1', 'WITHSCORES')
    return last[2] and max(now, tonumber(last[2]) + 1) or now
end

-- Returns when a caller came, by its place. One that was forgotten has its place again, unless it was of a clock that was set back since.
function line.came(place)
    if place == '' then return now_come() end
    return tonumber(call('ZSCORE', list, place) or min(tonumber(match(place, '^%d+')), now_come()))
end

function line.join(place, came, at, cost)
    if call('ZADD', list, us(came), place) == 1 and call('ZCARD', list) == 1 then enlist() end
    if deaf and counts then at = at + LOOK_LEAST end -- it may ask late
    call('ZADD', due, us(at), place)
    outlive(list, at)
    outlive(due, at)
    if first() == place then hold(cost, at, ticket_of(came), at) end
end

-- ---- Waking

-- Tells those who sleep past that time, which is when the last that was walked starts. Returns how many, and whether more may do.
local function tell_behind(at)
    local sleepers = call('ZRANGEBYSCORE', due, '(' .. us(at + gate.AHEAD), '+inf', 'WITHSCORES', 'LIMIT', '0', us(BEFORE_MOST))
    for i = 1, #sleepers, 2 do
        if #sleepers[i] > 1 then tell(sleepers[i], at, tonumber(sleepers[i + 1])) end
    end
    return #sleepers / 2, #sleepers == 2 * BEFORE_MOST
end

-- Tells all when their slots come, by the gates as they are now. Returns what tell_behind() returns.
local function reckon()
    local places = call('ZRANGE', list, '0', us(BEFORE_MOST - 1), 'WITHSCORES')
    if #places == 0 then return 0, false end
    local ticket = ticket_of(tonumber(places[2]))
    for i = 1, #places / 2 do places[i] = places[2 * i - 1] end
    for i = #places, #places / 2 + 1, -1 do places[i] = nil end
    local at = walk(places, ticket, COMING, is_shared() and 2 or 1, true)
    gate.undo()
    load_gates()
    call_first()
    if #places < BEFORE_MOST then return #places, false end
    local told, more = tell_behind(at)
    return #places + told, more
end

-- Looks whether the first in line may start sooner and nobody has said so: by another program's rules, or a job that gave slots back.
function line.look(place)
    local head, came, told = first()
    if not head then return end
    if head == place then
        if told - LEAD <= now then call('ZADD', due, us(now), '~') end
    elseif is_sooner(opens(cost_of(head), from, ticket_of(came)), told) then
        reckon()
    end
end

function line.wake(member)
    local name, its_key = match(member, '^!([^/]+)/?(.*)$')
    if not name then return 1, false end
    gate.save()
    local wrong = line.open(name, its_key, takes.limit_of(name, ''), true)
    if is_foreign(list) or is_foreign(due) then return 1, false end
    if call('EXISTS', list) == 0 then
        call_safe('ZREM', P .. 'lines', member)
        return 1, false
    end
    call('ZREM', due, '~') -- whether others take slots is found out anew
    local looked_at, more
    if wrong then looked_at, more = tell_behind(now) else looked_at, more = reckon() end -- each caller is told what is wrong as it asks
    return looked_at + 1, more
end

function line.at(gate_name)
    local lines = P .. 'lines'
    if gate_name == '*' then return call_safe('ZRANGE', lines, '0', '-1') end
    local name, its_key = match(gate_name, '^([^#]+)#[^/]*/?(.*)$')
    local one = '!' .. name .. (its_key ~= '' and '/' .. its_key or '')
    local found = its_key == '' and call_safe('ZRANGEBYLEX', lines, '[' .. one .. '/', '(' .. one .. '0') or {}
    if call_safe('ZSCORE', lines, one) then found[#found + 1] = one end
    return found
end

return line

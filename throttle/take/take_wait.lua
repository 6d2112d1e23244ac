-- take_wait: a slot for a caller who waits for it. Callers who wait for the same limit and key stand in line, in the order of coming.
-- Each is told when its slot comes, sleeps until then, and asks once more: two calls for a start.
--
-- KEYS[1] prefix
-- ARGV: now, "wait" or "leave" (it does not wait any more), rules (as in take), limit, key ('' for none), cost, place ('' at first,
--       then as it was answered), tag (letters and digits, of the caller's own), most (how long it may wait yet, us; -1: as long as it takes)
-- role: taker
-- reply: leave: [ 1 ]; wait: the five elements of take, but that of one who is allowed retry_after_us is when its slot starts, then
--        now, place ('': denied, and not in line: the slot comes later than it may wait), bell (a list to which a time is pushed
--        when its slot comes sooner than it was told)
--
--   line:<limit>[/<key>]   who waits: place -> when it came. A place is <came>.<cost>.<tag>
--   due:<limit>[/<key>]    place -> when its slot comes, as it was told; * -> the last start; ~ -> when the first in line last found
--                          that others (jobs) had taken its slot: for a while each place is reckoned two slots then
--   turn:<place>           the bell
--
-- Whoever is late is passed over, and keeps its place for GONE: so one that died wastes its own slot at most. The gates are held for
-- the first in line against those served later than the line, as for types: jobs and callers take turns.
--
-- Errors: WEIR take_wait: wants ..., wrong name of a limit or key, wrong cost, wrong rule, wrong place.
-- format: any
-- uses: gate partition rules takes

local LATE = 20000        -- us; a process that is late by more may be gone: it keeps nobody from a slot that is open
local LEAD = gate.AHEAD   -- who asks so long before its slot, or later, has come for it
local COMING = 1000000    -- until then it is likely to come: others are told times behind it
local GONE = 10000000     -- us
local BEFORE_MOST = 500   -- in line, walked by one call: 1 ms. Who comes behind them is told the time of the last
local LOOK_MOST = 20      -- places looked at for one that is not late
local LIVES_MS = 60000    -- keys, after what they say is over

-- Of this call.
local line, due, node
local gates = {}
local count -- of gates
local from  -- nothing starts before: now, or the end of the limit's pause

local function load_gates(limit, key)
    count = #limit.set
    for i = 1, count do
        gates[i] = gate.load_safe(takes.gate_name(limit, i, key), limit.set[i])
        if not gates[i] then return false end
    end
    return true
end

-- ---- Starts

local function opens(cost, at, ticket)
    for i = 1, count do
        local s = gate.start(gates[i], cost, node, ticket)
        if s > at then at = s end
    end
    return at
end

local function start_at(at, cost)
    for i = 1, count do gate.take(gates[i], at, 1, cost) end
end

local function cost_of(place) return tonumber(match(place, '^%d+%.(%d+)%.')) end

local function ticket_of(came) return tonumber(call('ZSCORE', due, '*') or came) end

-- Do others take about every second slot?
local function is_shared()
    local at = call('ZSCORE', due, '~')
    if not at then return false end
    local slot = 0
    for i = 1, count do slot = max(slot, gates[i].base.period / gates[i].base.count) end
    return at + 1000000 + 4 * slot >= now
end

-- When a job of that cost starts behind those in line that came before, but for those who are late by more; each of them takes its slot
-- so many times. The gates are as if never loaded then.
local function nth_start(limit, key, cost, came, ticket, late, times)
    load_gates(limit, key)
    local before = call('ZRANGEBYSCORE', line, '-inf', '(' .. us(came), 'LIMIT', '0', us(BEFORE_MOST))
    local dues, at = #before > 0 and call('ZMSCORE', due, unpack(before)), from
    for i = 1, #before do
        if tonumber(dues[i] or 0) + late >= now then
            local other = cost_of(before[i])
            for _ = 1, times do
                local s = opens(other, at, ticket)
                if s == huge then break end
                start_at(s, other)
                at = s
            end
        end
    end
    at = opens(cost, at, ticket)
    gate.undo()
    return at
end

-- ---- The line

local function outlive(key, at)
    local lives_ms = max(0, ceil((at - now) / 1000)) + LIVES_MS
    if not VIRTUAL and call('PTTL', key) < lives_ms then call('PEXPIRE', key, us(lives_ms)) end
end

local function join(place, came, at)
    call('ZADD', line, us(came), place)
    call('ZADD', due, us(at), place)
    outlive(line, at)
    outlive(due, at)
end

local function leave(place)
    call('ZREM', due, place)
    return call('ZREM', line, place) == 1
end

-- Times of a clock that was set back since say nothing: the line forms anew as callers ask.
local function forget_gone()
    local last = call('ZRANGE', line, '-1', '-1', 'WITHSCORES')
    if last[2] and tonumber(last[2]) > now + COMING then return call('DEL', line, due) end
    for _, place in ipairs(call('ZRANGEBYSCORE', due, '-inf', us(now - GONE), 'LIMIT', '0', us(LOOK_MOST))) do
        if #place > 1 then leave(place) end
    end
end

-- The first in line that is not late: its place, when it came, and when it is due.
local function first()
    local places = call('ZRANGE', line, '0', us(LOOK_MOST - 1), 'WITHSCORES')
    for i = 1, #places, 2 do
        local at = tonumber(call('ZSCORE', due, places[i]) or 0)
        if at + LATE >= now then return places[i], tonumber(places[i + 1]), at end
    end
end

-- Keeps the gates for the first in line until a moment after its slot: those that would be idle for less than one slot of theirs.
local function hold(cost, at, ticket)
    for i = 1, count do
        local g = gates[i]
        if gate.start(g, cost, node, ticket) + ceil(g.base.period / g.base.count) >= at then
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

-- Somebody has left the line. The first in it may come sooner than it was told.
local function call_first()
    local place, came, told = first()
    if not place then return end_hold() end
    local cost, ticket = cost_of(place), ticket_of(came)
    local at = opens(cost, from, ticket)
    if at == huge then return end
    if at + gate.AHEAD < told then
        call('ZADD', due, us(at), place)
        local bell = P .. 'turn:' .. place
        if type(call_safe('RPUSH', bell, us(at))) == 'number' and not VIRTUAL then
            call('PEXPIRE', bell, us(ceil((told - now) / 1000) + LIVES_MS))
        end
    end
    hold(cost, at, ticket)
end

-- ---- The answer

local function numbers(at)
    local burst, remaining, resets = huge, huge, from
    for i = 1, count do
        local most, left, full = gate.figures(gates[i], at)
        burst, remaining, resets = min(burst, most), min(remaining, left), max(resets, full)
    end
    return burst, remaining, resets - now
end

local function answer(status, burst, remaining, wait_us, resets_us, place)
    return {status, burst, remaining, wait_us, resets_us, us(now), place, place ~= '' and P .. 'turn:' .. place or ''}
end

local function grant(limit, key, cost, place, ticket)
    load_gates(limit, key)
    local at = opens(cost, from, ticket)
    start_at(at, cost)
    gate.save()
    local burst, remaining, resets = numbers(at)
    leave(place)
    if call('EXISTS', line) == 1 then
        call('ZADD', due, us(at), '*')
        outlive(due, at)
        call_first()
    else
        call('DEL', due)
    end
    return answer(1, burst, remaining, at - now, resets, '')
end

local function deny(limit, key, cost, place, came, at, most)
    load_gates(limit, key)
    local burst, remaining, resets = numbers()
    if at == huge or most >= 0 and at - now > most then
        if leave(place) then call_first() end
        return answer(at == huge and 2 or 0, burst, remaining, at == huge and -1 or at - now, resets, '')
    end
    join(place, came, at)
    if first() == place then hold(cost, at, ticket_of(came)) end
    return answer(0, burst, remaining, at - now, resets, place)
end

local function wait(limit, key, cost, place, came, most)
    local ticket = ticket_of(came)
    gate.save() -- what loading has put right counts from now
    local till = now + gate.AHEAD
    if opens(cost, from, ticket) <= till and nth_start(limit, key, cost, came, ticket, LATE, 1) <= till then
        return grant(limit, key, cost, place, ticket)
    end
    if first() == place and call('ZSCORE', due, place) - LEAD <= now then call('ZADD', due, us(now), '~') end
    local at = nth_start(limit, key, cost, came, ticket, COMING, is_shared() and 2 or 1)
    return deny(limit, key, cost, place, came, at, most)
end

-- ---- The call

local function wrong_arguments(ARGV, cost, most)
    if #ARGV ~= 9 or ARGV[2] ~= 'wait' and ARGV[2] ~= 'leave' or not is_whole(most, -1) or not find(ARGV[8], '^%w+$') then
        return 'wants now, wait or leave, rules, limit, key, cost, place, tag, most'
    end
    if takes.wrong_rules(ARGV[3]) then return 'wrong rule' end
    if not is_name(ARGV[4]) or ARGV[5] ~= '' and not is_name(ARGV[5]) then return 'wrong name of a limit or key' end
    if not is_whole(cost, 1) then return 'wrong cost' end
    local came, own, tag = match(ARGV[7], '^(%d+)%.(%d+)%.(%w+)$')
    if ARGV[7] ~= '' and (not is_whole(tonumber(came)) or tonumber(own) ~= cost or tag ~= ARGV[8]) then return 'wrong place' end
end

local function is_foreign(key)
    local kind = call('TYPE', key).ok
    return kind ~= 'none' and kind ~= 'zset'
end

-- Later than all who came before.
local function now_come()
    local last = call('ZRANGE', line, '-1', '-1', 'WITHSCORES')
    return last[2] and max(now, tonumber(last[2]) + 1) or now
end

-- One that was forgotten has its place again, unless it was of a clock that is set back since.
local function when_it_came(place)
    if place == '' then return now_come() end
    return tonumber(call('ZSCORE', line, place) or min(tonumber(match(place, '^%d+')), now_come()))
end

local function take_wait(ARGV)
    local cost, most, place = tonumber(ARGV[6]), tonumber(ARGV[9]), ARGV[7]
    local wrong = wrong_arguments(ARGV, cost, most)
    if wrong then return refuse('take_wait: %s', wrong) end
    local refusal = ARGV[2] == 'wait' and partition.refusal(ARGV[4])
    if refusal then return refusal end
    local name, key = ARGV[4], ARGV[5]
    local path, limit = key == '' and name or name .. '/' .. key, takes.limit_of(name, ARGV[3])
    wrong = limit.wrong or takes.wrong_key(limit, key)
    line, due, node = P .. 'line:' .. path, P .. 'due:' .. path, '!' .. path
    wrong = wrong or (is_foreign(line) or is_foreign(due) or not load_gates(limit, key)) and 'foreign'
    if wrong then return answer(wrong, 0, 0, 0, 0, '') end
    from = limit.set.pause_until and max(now, rules.paused(limit.set)) or now
    forget_gone()
    if ARGV[2] == 'leave' then
        if leave(place) then call_first() end
        return {1}
    end
    local came = when_it_came(place)
    if place == '' then place = format('%d.%d.%s', came, cost, ARGV[8]) end
    return wait(limit, key, cost, place, came, most)
end

return take_wait

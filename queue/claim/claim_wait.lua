-- claim_wait: where types and lanes wait: at the gate that opens last.
--
-- Who wakes them: the next claim that comes when their gate is due. The worker on duty sends it by its timer (claim_duty.next_times). Who makes
-- room or changes a limit before that makes the gate due and rings for a worker (wake.all; of
-- keys also rate_apply).
--
-- These functions write at once, to the new place before they remove the old one. So a script that fails on the way leaves a waiter at two
-- places, never at none. restore() puts back lanes and types that such a script had emptied.
--
-- uses: check claim_cache claim_call claim_causes claim_held claim_meet claim_ring gate lane wake
local claim_wait = {}

local cache, claim, meet, held, ring = claim_cache, claim_call, claim_meet, claim_held, claim_ring

local function score(at) return at == huge and '+inf' or us(at) end

-- Notes that something begins to wait in a queue at a gate. Who serves the queue asks by itself whether keys sleep.
local function note_new(queue, name, added)
    if added == 1 and name ~= '*' then claim.new_gates[queue] = true end
end

local function set_wake(queue, name, at)
    claim.wakes[queue][name] = at
    claim.note_near(name, at)
    note_new(queue, name, call('ZADD', P .. 'wake:' .. queue, score(at), name))
end

local function set_sooner(queue, name, at)
    local known = claim.wakes[queue][name]
    if known and known <= at then return end
    claim.wakes[queue][name] = at
    claim.note_near(name, at)
    note_new(queue, name, call('ZADD', P .. 'wake:' .. queue, 'LT', score(at), name))
end

local function drop_wake(queue, name)
    claim.wakes[queue][name] = nil
    call('ZREM', P .. 'wake:' .. queue, name)
end

-- Returns the gates of a queue that are due, at most `most`, soonest first; and whether lanes that sleep are due.
function claim_wait.due_gates(queue, most)
    local list, wakes, due = call('ZRANGE', P .. 'wake:' .. queue, '0', digits(most - 1), 'WITHSCORES'), {}, {}
    for i = 1, #list, 2 do
        local name, at = list[i], tonumber(list[i + 1])
        wakes[name] = at
        if at <= now + claim.ahead and name ~= '*' then due[#due + 1] = name end
    end
    claim.wakes[queue] = wakes
    return due, wakes['*'] and wakes['*'] <= now + claim.ahead
end

local function wait_key(queue, gate_name) return P .. 'wait:' .. queue .. '/' .. gate_name end

local KEEP_US = 1500000 -- by then the worker has claimed again

-- Keeps gates for a job, as an idle worker waits until they open: no waiter that was served later comes before it.
local function keep(gates, node, ticket)
    for _, e in ipairs(gates) do
        if e.base then gate.hold(e, node .. '!', floor(ticket), now + KEEP_US) end
    end
end

-- Holds open gates. A job takes slots of all its gates or of none, and must not starve. So a waiter that finds one of its gates closed holds the
-- open ones against waiters that were served later, as long as that wastes less than one slot of each. A gate that counts what is in flight is not
-- held.
local function hold_open(gates, cost, node, ticket, till)
    if claim.keeps and (till == huge or till <= now + KEEP_US) then return keep(gates, node, ticket) end
    for _, e in ipairs(gates) do
        if e.base and not e.base.in_flight and gate.needs(e, cost) > 0 and gate.start(e, cost, node, ticket) <= now + claim.ahead then
            local one_slot = now + e.base.period / e.base.count
            if till == huge or till <= one_slot then gate.hold(e, node, ticket, floor(min(till, one_slot))) end
        end
    end
end

-- Returns when a waiter is due: a job that its gates can never let start is due at once, and buried then.
local function due_time(gates, cost, at) return at == huge and meet.unfit(gates, cost) and now or at end

-- True when a wait at the gate e can end because a job or a command makes room there. At a gate that opens by time only if jobs of s are known to
-- give back what they did not spend, or if it is not the gate of a key.
local function may_be_woken(s, e, at)
    local rule = e.base
    if not rule then return false end -- fixed
    if rule.in_flight then return at == huge end
    return s.type.spends or not rule.by
end

-- Lets a type or lane of s wait at the gate e, which opens for it at that time. Where a job or a command may make room before, the queue is listed
-- there for wake.all. Returns when the waiter is due if nobody wakes it.
local function wait_at(s, e, at)
    if not may_be_woken(s, e, at) or wake.list_queue(s.queue, e.name, not e.base.in_flight) then return at end
    claim.note_fault(check.wrong_kind('at:' .. e.name, 'set'))
    return min(at, now + claim.AGAIN_US)
end

local NO_GATE = {name = '-'}

-- Returns the first gate that a job of that cost asks: at another it would wait behind those that ask it.
local function first_asked(gates, cost)
    for _, e in ipairs(gates) do
        if e.fixed or gate.needs(e, cost) > 0 then return e end
    end
    return gates[1] or NO_GATE
end

-- Lets s join the types that wait at its gate e (nil: none is closed), which opens for it at that time.
local function wait_type(s, e, at, cost, ticket)
    local name = (e or first_asked(s.gates, cost or 1)).name
    call('ZADD', wait_key(s.queue, name), us(ticket), s.name)
    s.gone = false
    set_sooner(s.queue, name, e and due_time(s.gates, cost, wait_at(s, e, at)) or now)
end

-- Places s, as its first lane joins its ring: s must wait somewhere.
local function place_type(s, l, ticket)
    if not s.mine then return held.add(s, ticket) end
    local entry = meet.head(l, 1)
    local cost = entry and meet.cost(s, entry) or 1
    local at, last = meet.opens(s.gates, cost, s.name, ticket, now)
    if at > now + claim.ahead then hold_open(s.gates, cost, s.name, ticket, at) end
    wait_type(s, last, at, cost, ticket)
    claim.soonest = min(claim.soonest, at)
end

-- Places the type first, then the lane: a type that waits without lanes is found, lanes whose type waits nowhere are not.
local function join_ring(s, l, ticket)
    if ring.members(s) == 0 then place_type(s, l, ticket) end
    ring.join(s, l, ticket)
end

-- ---- Gates at which lanes sleep

local function drop_sleep(queue, name) cache.count_sleepers(queue, name, -call('ZREM', P .. 'sleep:' .. queue, name)) end

-- Returns when a lane is due: other rules hold its key from l.till on.
local function by_change(l, at) return l.till and l.till < at and max(l.till, now + claim.ahead + 1) or at end

local function sleep(s, l, cost, e, at, ticket)
    hold_open(l.gates, cost, l.node, ticket, at)
    call('ZADD', wait_key(s.queue, e.name), us(ticket), l.node)
    at = by_change(l, due_time(l.gates, cost, wait_at(s, e, at)))
    cache.count_sleepers(s.queue, e.name, call('ZADD', P .. 'sleep:' .. s.queue, 'LT', score(at), e.name))
    set_sooner(s.queue, '*', at)
    claim.soonest = min(claim.soonest, at)
end

-- Places a lane that has a job and no place yet.
function claim_wait.place_lane(s, l, ticket)
    l.gone = false
    local cost = meet.cost(s, meet.head(l, 1))
    local at, last = meet.opens(l.gates, cost, l.node, ticket, now)
    if at > now + claim.ahead then sleep(s, l, cost, last, at, ticket) else join_ring(s, l, ticket) end
end

-- Lets a lane of the ring sleep that has its turn, as one of its key gates is closed.
function claim_wait.lane_sleeps(s, l, ticket)
    local stopped = claim.stopped
    sleep(s, l, stopped.cost, stopped.gate, stopped.at, ticket)
    ring.leave(s, l)
end

-- ---- Types at a gate

local function has_gate(gates, name)
    if name == '-' then return #gates == 0 end
    for _, e in ipairs(gates) do
        if e.name == name then return true end
    end
end

local function first_opening(e) return e.fixed or gate.start(e, 1) end

-- Takes s off the gate at which it has its turn: it waits elsewhere by now, or its ring is empty.
local function leave(s)
    local visit = claim.visit
    call('ZREM', wait_key(s.queue, visit.gate), s.name)
    if visit.alone then drop_wake(s.queue, visit.gate) end
end

-- Holds a type that this worker cannot run, until a worker comes that can.
function claim_wait.hold_type(s)
    held.add(s, claim.visit.ticket)
    leave(s)
end

-- Looks whether a gate is closed for the next job of a type that has started jobs, and could start more but for executors.
local function stop_at_gates(s)
    local cost = claim.stopped.cost or 1
    local opens, last = meet.opens(s.gates, cost, s.name, claim.visit.ticket, now)
    claim.stopped.cost = cost
    if opens > now + claim.ahead then claim.stopped.gate, claim.stopped.at = last, opens end
end

-- Lets a type stay at its gate, which is closed for it.
local function stay(s)
    local visit, stopped = claim.visit, claim.stopped
    local at = due_time(s.gates, stopped.cost, wait_at(s, stopped.gate, stopped.at))
    if visit.started > 0 and not visit.alone then at = min(at, first_opening(stopped.gate)) end -- it goes behind others, whose jobs may cost less
    set_wake(s.queue, visit.gate, at)
end

-- Ends the turn of a type at a gate: its ring is empty (gone), or one of its gates is closed (claim.stopped), or it could start more with more
-- executors. Returns whether that gate is now done.
function claim_wait.end_visit(s, gone)
    local visit, stopped = claim.visit, claim.stopped
    if gone then
        s.gone = true
        leave(s)
        return visit.alone
    end
    if visit.started > 0 then
        visit.ticket = claim.next_ticket()
        if not stopped.gate then stop_at_gates(s) end
    elseif stopped.gate then
        hold_open(s.gates, stopped.cost, s.name, visit.ticket, stopped.at)
    end
    local closed = stopped.gate
    if closed and closed.name ~= visit.gate or not closed and not has_gate(s.gates, visit.gate) then
        wait_type(s, closed, stopped.at, stopped.cost, visit.ticket)
        leave(s)
        return visit.alone
    end
    if visit.started > 0 then call('ZADD', wait_key(s.queue, visit.gate), us(visit.ticket), s.name) end
    if closed then
        stay(s)
        return true
    end
    set_wake(s.queue, visit.gate, min(claim.next_ticket(), now + 1000)) -- still open: behind the other due gates
    return false
end

local function restore_type(s)
    local restored = false
    for key, l in pairs(s.lanes) do
        if l.gone and call('LLEN', P .. 'lane:' .. l.name) > 0 then
            call('ZADD', s.ring, us(now), key)
            restored = true
        end
    end
    if restored and s.gone then lane.type_is_due(s.queue, s.name, now) end
end

-- Makes lanes and types due again that a claim had emptied which has failed and moves no job.
function claim_wait.restore()
    for _, s in ipairs(claim.order) do pcall(restore_type, s) end
end

-- True when this claim has found the gate closed for any job until some time, in another queue: what waits there in this one need not be looked at.
function claim_wait.is_closed(queue, name)
    local opens = #claim.open > 1 and not claim.keeps and gate.opens(name) or huge
    if opens == huge or opens <= now + claim.ahead or not wake.list_queue(queue, name, true) then return false end
    claim.wakes[queue][name] = opens
    return true
end

-- Forgets a gate at which no type waits any more.
claim_wait.forget_gate = drop_wake

-- ---- Lanes at a gate

-- Returns the gates of keys that are due, at most `most`, soonest first.
function claim_wait.due_keys(queue, most)
    return call('ZRANGEBYSCORE', P .. 'sleep:' .. queue, '-inf', us(now + claim.ahead), 'LIMIT', 0, us(most))
end

-- Sets when the next sleeper is due, as all that were due have been checked.
function claim_wait.sleep_on(queue)
    local first = call('ZRANGE', P .. 'sleep:' .. queue, 0, 0, 'WITHSCORES')
    if first[2] then set_wake(queue, '*', tonumber(first[2])) else drop_wake(queue, '*') end
end

-- Wakes a lane that waits at a due gate of a key; closed: the gate was closed for a lane before it. Returns whether it has left, and whether the
-- gate is closed for the lanes behind it. Where jobs may have another key than their lane, the gate says nothing about them: they are sorted in the
-- ring.
local function wake_lane(queue, name, node, ticket, closed)
    local type_name, key = node:match('^([^/]+)/(.*)$')
    if not type_name then -- not Weir's
        call('ZREM', wait_key(queue, name), node)
        return true, closed
    end
    local s = meet.state(queue, type_name)
    local l = meet.lane(s, key)
    if closed and not s.resorts and has_gate(l.gates, name) then return false, true end
    local at, last = now, nil
    -- at a cost of 1: its job may cost more, and is checked in its turn
    if not s.resorts then at, last = meet.opens(l.gates, 1, l.node, ticket, now) end
    if at > now + claim.ahead and last.name == name then
        call('ZADD', P .. 'sleep:' .. queue, score(by_change(l, wait_at(s, last, at))), name)
        return false, true
    end
    claim_wait.place_woken(s, l, ticket, at, last)
    call('ZREM', wait_key(queue, name), node)
    return true, closed
end

-- Wakes the first lanes at a due gate of a key: they go back to the rings of their types, or wait at the gate that opens last. Returns how many.
function claim_wait.wake_waiters(queue, name)
    local W = wait_key(queue, name)
    local waiters = call('ZRANGE', W, 0, 15, 'WITHSCORES')
    local woken, closed, left = 0, false, nil
    for i = 1, #waiters, 2 do
        left, closed = wake_lane(queue, name, waiters[i], tonumber(waiters[i + 1]), closed)
        if left then woken = woken + 1 end
    end
    if 2 * woken == #waiters and (woken < 16 or call('EXISTS', W) == 0) then drop_sleep(queue, name) end
    return woken
end

function claim_wait.place_woken(s, l, ticket, at, last)
    if at > now + claim.ahead then return sleep(s, l, 1, last, at, ticket) end
    claim_causes.wake(l)
    join_ring(s, l, ticket)
end

return claim_wait

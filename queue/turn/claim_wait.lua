-- claim_wait: where types and lanes wait: at the gate that opens last. What is written here is written at once, to the new place
-- before it leaves the old one: a script that fails on the way leaves somebody at two places, never at none; whom it thought
-- to have emptied, restore() puts back.
--
-- uses: check claim_call claim_faults claim_grant gate bell lane runs
local claim_wait = {}

local claim, faults, grant = claim_call, claim_faults, claim_grant

local function score(at) return at == huge and '+inf' or us(at) end

local function set_wake(queue, name, at)
    claim.wakes[queue][name] = at
    claim.note_near(name, at)
    call('ZADD', P .. 'wake:' .. queue, score(at), name)
end

local function set_sooner(queue, name, at)
    local known = claim.wakes[queue][name]
    if known and known <= at then return end
    claim.wakes[queue][name] = at
    claim.note_near(name, at)
    call('ZADD', P .. 'wake:' .. queue, 'LT', score(at), name)
end

local function drop_wake(queue, name)
    claim.wakes[queue][name] = nil
    call('ZREM', P .. 'wake:' .. queue, name)
end

-- The gates of a queue that are due, at most `most`, soonest first; and are lanes that sleep due?
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

local KEPT_US = 1500000 -- by then the worker has asked again

-- A worker that has nothing else in flight waits until they open: nobody who was served later than that job comes before it.
local function keep(gates, node, ticket)
    for _, e in ipairs(gates) do
        if e.base then gate.hold(e, node .. '!', floor(ticket), now + KEPT_US) end
    end
end

-- All or none must not starve: a waiter that finds one of its gates closed holds the open ones against those served later than
-- itself, as long as that wastes less than one slot of theirs. A gate that counts what is in flight is not held.
local function hold_open(gates, cost, node, ticket, till)
    if claim.keeps then return keep(gates, node, ticket) end
    for _, e in ipairs(gates) do
        if e.base and not e.base.in_flight and gate.start(e, cost, node, ticket) <= now + claim.ahead then
            local one_slot = now + e.base.period / e.base.count
            if till == huge or till <= one_slot then gate.hold(e, node, ticket, floor(min(till, one_slot))) end
        end
    end
end

-- When to look at a waiter again: a job that its gates can never let start is buried by the next look.
local function look_time(gates, cost, at) return at == huge and grant.unfit(gates, cost) and now or at end

-- Does a wait at the gate e end when somebody makes room there? Of what opens by time only where the jobs of s are known to give back
-- what they did not spend, or where it is no gate of a key.
local function may_be_woken(s, e, at)
    local rule = e.base
    if not rule then return false end -- fixed
    if rule.in_flight then return at == huge end
    return s.kind.spends or not rule.by
end

-- Somebody of the queue waits at the gate e until then: who makes room there before that, wakes it. Returns when to look again, where
-- nobody can.
local function wait_at(s, e, at)
    if not may_be_woken(s, e, at) or lane.wait_at(s.queue, e.name, not e.base.in_flight) then return at end
    claim.note_fault(check.wrong_kind('at:' .. e.name, 'set'))
    return min(at, now + claim.AGAIN_US)
end

-- s joins those who wait at its gate e (nil: none is closed), which opens for it at that time.
local function wait_type(s, e, at, cost, ticket)
    local name = e and e.name or s.gates[1] and s.gates[1].name or '-'
    call('ZADD', wait_key(s.queue, name), us(ticket), s.name)
    s.gone = false
    set_sooner(s.queue, name, e and look_time(s.gates, cost, wait_at(s, e, at)) or now)
end

-- A type that this worker cannot run waits in held.
local function set_aside(s, ticket)
    s.gone = false
    claim.aside[#claim.aside + 1] = s.name
    if call('ZADD', P .. 'held:' .. s.queue, us(ticket), s.name) == 1 then bell.ring(s.queue) end
end

-- How many lanes are in the ring of s.
function claim_wait.members(s)
    s.members = s.members or call('ZCARD', s.ring)
    return s.members
end

-- The first lane of s joins its ring: s is to stand somewhere.
local function place_type(s, l, ticket)
    if not s.mine then return set_aside(s, ticket) end
    local entry = grant.head(l, 1)
    local cost = entry and grant.cost(s, entry) or 1
    local at, last = grant.opens(s.gates, cost, s.name, ticket, now)
    if at > now + claim.ahead then hold_open(s.gates, cost, s.name, ticket, at) end
    wait_type(s, last, at, cost, ticket)
    claim.soonest = min(claim.soonest, at)
end

-- The type first: one that stands somewhere without lanes is found, lanes whose type stands nowhere are not.
local function join_ring(s, l, ticket)
    local others = claim_wait.members(s)
    if others == 0 then place_type(s, l, ticket) end
    call('ZADD', s.ring, us(ticket), l.key)
    s.members = others + 1
    s.staying = (s.staying or 0) + 1 -- where this is in the middle of a round
end

-- ---- Gates at which lanes sleep

local CROWD = 50 -- more of them in a queue are not read, but asked for one by one

-- How many queues of this worker have lanes that sleep at a gate, by its name; and the queues that have too many of them for that.
function claim_wait.sleepers()
    if claim.sleepers then return claim.sleepers, claim.crowded end
    local sleepers, crowded = {}, {}
    for _, queue in ipairs(claim.queues) do
        local n = call_safe('ZCARD', P .. 'sleep:' .. queue)
        if type(n) ~= 'number' or n > CROWD then
            crowded[#crowded + 1], crowded[queue] = queue, true
        elseif n > 0 then
            for _, name in ipairs(call('ZRANGE', P .. 'sleep:' .. queue, '0', '-1')) do sleepers[name] = (sleepers[name] or 0) + 1 end
        end
    end
    claim.sleepers, claim.crowded = sleepers, crowded
    return sleepers, crowded
end

local function count_sleepers(queue, name, n)
    local sleepers = claim.sleepers
    if sleepers and not claim.crowded[queue] then sleepers[name] = (sleepers[name] or 0) + n end
end

local function drop_sleep(queue, name) count_sleepers(queue, name, -call('ZREM', P .. 'sleep:' .. queue, name)) end

local function sleep(s, l, cost, e, at, ticket)
    hold_open(l.gates, cost, l.node, ticket, at)
    call('ZADD', wait_key(s.queue, e.name), us(ticket), l.node)
    at = look_time(l.gates, cost, wait_at(s, e, at))
    count_sleepers(s.queue, e.name, call('ZADD', P .. 'sleep:' .. s.queue, 'LT', score(at), e.name))
    set_sooner(s.queue, '*', at)
    claim.soonest = min(claim.soonest, at)
end

-- A lane that has a job and stands nowhere.
function claim_wait.place_lane(s, l, ticket)
    l.gone = false
    local cost = grant.cost(s, grant.head(l, 1))
    local at, last = grant.opens(l.gates, cost, l.node, ticket, now)
    if at > now + claim.ahead then sleep(s, l, cost, last, at, ticket) else join_ring(s, l, ticket) end
end

-- ---- Lanes of a ring, least recently served first. What becomes of them is written for all at once, by close_ring.

local ROUND_MOST = 64 -- lanes read at once

-- Begins a round over the first lanes of the ring; most: so many may start.
function claim_wait.open_ring(s, most)
    local n = min(most, ROUND_MOST) + 1
    if s.keyed then n = min(n, ceil(max(0, claim.budget) / (claim.LANE + 1)) + 1) end -- what it would not come to is not read
    s.front, s.front_at = call('ZRANGE', s.ring, '0', digits(n - 1)), 1
    s.whole, s.staying, s.leaving, s.behind = #s.front < n, 0, {}, {}
end

-- The next lane of the round, and whether the ring has others; nil: there is none.
function claim_wait.next_lane(s)
    local i = s.front_at
    if i > #s.front then return nil end
    s.front_at = i + 1
    return grant.lane(s, s.front[i]), not s.whole or s.staying > 0 or i < #s.front
end

-- Since when it is there. Few are asked: Redis writes a score with all its digits, which takes as long as reading a job.
function claim_wait.lane_ticket(s, l) return tonumber(call('ZSCORE', s.ring, l.key)) end

function claim_wait.leave_ring(s, l) s.leaving[#s.leaving + 1] = l.key end

-- The same for one that has no job left.
function claim_wait.end_lane(s, l)
    l.gone = true
    claim_wait.leave_ring(s, l)
end

-- Stays where it is.
function claim_wait.stay(s) s.staying = s.staying + 1 end

-- Goes behind the others.
function claim_wait.go_behind(s, l)
    s.behind[#s.behind + 1] = us(claim.next_ticket())
    s.behind[#s.behind + 1] = l.key
    s.staying = s.staying + 1
end

-- One of its key gates is closed.
function claim_wait.lane_sleeps(s, l, cost, e, at, ticket)
    sleep(s, l, cost, e, at, ticket)
    claim_wait.leave_ring(s, l)
end

-- Writes what has become of the lanes so far.
function claim_wait.write_ring(s)
    s.members = nil
    if #s.behind > 0 then
        push('ZADD', s.ring, s.behind)
        s.behind = {}
    end
    if #s.leaving > 0 then
        push('ZREM', s.ring, s.leaving)
        s.leaving = {}
    end
end

-- Ends the round; returns whether the ring is empty now, and whether it has lanes that were not in this round.
function claim_wait.close_ring(s)
    claim_wait.write_ring(s)
    local seen = s.front_at > #s.front
    if seen and s.staying == 0 then s.members = s.whole and 0 or call('ZCARD', s.ring) end
    return s.members == 0, seen and not s.whole
end

-- ---- Types at a gate

local function leave(s, at_name, alone)
    call('ZREM', wait_key(s.queue, at_name), s.name)
    if alone then drop_wake(s.queue, at_name) end
end

local function has_gate(gates, name)
    if name == '-' then return #gates == 0 end
    for _, e in ipairs(gates) do
        if e.name == name then return true end
    end
end

local function first_opening(e) return e.fixed or gate.start(e, 1) end

-- A type was looked at, first of those who wait at the gate `name` since ticket; started: jobs of it. Its ring is empty (gone), or its
-- gate e is closed until `at`, or (e nil) it could start more, but for executors. Returns whether the gate is now done with.
function claim_wait.after_turn(s, name, ticket, alone, started, gone, cost, e, at)
    if gone then
        s.gone = true
        leave(s, name, alone)
        return alone
    end
    if started > 0 then
        ticket = claim.next_ticket()
        if not e then
            cost = cost or 1
            local opens, last = grant.opens(s.gates, cost, s.name, ticket, now)
            if opens > now + claim.ahead then e, at = last, opens end
        end
    elseif e then
        hold_open(s.gates, cost, s.name, ticket, at)
    end
    if e and e.name ~= name or not e and not has_gate(s.gates, name) then
        wait_type(s, e, at, cost, ticket)
        leave(s, name, alone)
        return alone
    end
    if started > 0 then call('ZADD', wait_key(s.queue, name), us(ticket), s.name) end
    if not e then
        set_wake(s.queue, name, min(claim.next_ticket(), now + 1000)) -- open still: behind the other due gates
        return false
    end
    at = look_time(s.gates, cost, wait_at(s, e, at))
    if started > 0 and not alone then at = min(at, first_opening(e)) end -- it goes behind others, whose jobs may cost less
    set_wake(s.queue, name, at)
    return true
end

-- Not for this worker: aside, until one comes that can run it.
function claim_wait.hold_aside(s, name, ticket, alone)
    set_aside(s, ticket)
    leave(s, name, alone)
end

-- Takes a type that was set aside back, now that this worker can run it.
local function take_back(queue, name, ticket)
    lane.look_at(queue, name, ticket)
    call('ZREM', P .. 'held:' .. queue, name)
end

local HELD_ASKED = 10000 -- names of held types that are asked for in one claim: 3 ms
local HELD_TAKEN = 500   -- types that are taken back: 2 ms
local HELD_PAGE = 1000   -- names in one question

-- Names among which all types of a queue are that are held and this worker's, from where to ask for them, and for how many: where they
-- are too many, others at each time.
local function held_names(key)
    local most, count = floor(HELD_ASKED / #claim.all_queues), call('ZCARD', key)
    local names, n = claim.types, #claim.types
    if count < n then
        local first = count > most and now % (count - most) or 0
        names, n = call('ZRANGE', key, us(first), us(first + most - 1)), count
    elseif n > most then
        return names, now % n, most, false
    end
    return names, 0, #names, #names == n
end

-- The types of a queue that are held and this worker's, and their tickets, at most `most`; and whether these are all.
local function mine_held(queue, most)
    local key, mine, tickets = P .. 'held:' .. queue, {}, {}
    local names, first, n, all = held_names(key)
    for i = 0, n - 1, HELD_PAGE do
        local page = {}
        for k = i, min(i + HELD_PAGE, n) - 1 do page[#page + 1] = names[(first + k) % #names + 1] end
        for k, ticket in ipairs(call('ZMSCORE', key, unpack(page))) do
            if ticket and claim.mine[page[k]] then
                if #mine >= most then return mine, tickets, false end
                mine[#mine + 1], tickets[#tickets + 1] = page[k], tonumber(ticket)
            end
        end
    end
    return mine, tickets, all
end

-- Is there one?
function claim_wait.is_mine_held(queue) return #mine_held(queue, 1) > 0 end

-- Takes all of them back; returns whether there was one. What is too much for one claim is left to the next one that looks at held types.
function claim_wait.take_back_all(queue)
    local mine, tickets, all = mine_held(queue, HELD_TAKEN - claim.held_taken)
    for i, name in ipairs(mine) do take_back(queue, name, tickets[i]) end
    claim.held_taken = claim.held_taken + #mine
    if not all and claim.held_taken > 0 then bell.ring(queue) end
    return #mine > 0
end

local UNKNOWN_MOST = 64 -- of those that are held, looked at in one claim, by chance

-- Takes back types that no worker runs, so that their jobs end.
function claim_wait.take_back_unknown(queue)
    for _, name in ipairs(call('ZRANDMEMBER', P .. 'held:' .. queue, digits(ceil(UNKNOWN_MOST / #claim.all_queues)))) do
        if not claim.mine[name] and runs.is_unknown(name) then
            take_back(queue, name, tonumber(call('ZSCORE', P .. 'held:' .. queue, name)))
        end
    end
end

-- Takes back the type of a job that has come.
function claim_wait.take_back(s)
    local ticket = claim_wait.members(s) > 0 and call('ZSCORE', P .. 'held:' .. s.queue, s.name)
    if ticket then take_back(s.queue, s.name, tonumber(ticket)) end
end

local function restore_type(s)
    local restored = false
    for key, l in pairs(s.lanes) do
        if l.gone and call('LLEN', P .. 'lane:' .. l.name) > 0 then
            call('ZADD', s.ring, us(now), key)
            restored = true
        end
    end
    if restored and s.gone then lane.look_at(s.queue, s.name, now) end
end

-- The claim has failed and moves no job: lanes and types that it had emptied are to be looked at again.
function claim_wait.restore()
    for _, s in ipairs(grant.order) do pcall(restore_type, s) end
end

-- A fault keeps a lane of a ring from being served: it sleeps for a while where it can, so that the others of its type need not.
function claim_wait.put_off_lane(s, l)
    for _, e in ipairs(l.gates) do
        if not faults.of_wait(s.queue, e.name) then
            call('ZADD', wait_key(s.queue, e.name), us(claim.next_ticket()), l.node)
            count_sleepers(s.queue, e.name, call('ZADD', P .. 'sleep:' .. s.queue, 'LT', us(now + claim.AGAIN_US), e.name))
            set_sooner(s.queue, '*', now + claim.AGAIN_US)
            return claim_wait.leave_ring(s, l)
        end
    end
    claim_wait.go_behind(s, l)
    s.has_faults = true
end

-- Nobody waits at that gate any more.
claim_wait.forget_gate = drop_wake

-- A fault keeps those who wait at a gate from being served: it is looked at again after a while.
function claim_wait.put_off_gate(queue, name)
    if not find(name, '/', 1, true) then return set_wake(queue, name, now + claim.AGAIN_US) end
    call('ZADD', P .. 'sleep:' .. queue, us(now + claim.AGAIN_US), name)
end

-- The first of those who wait at a gate cannot be served, and lets the others pass. False: none of them has started a job since the
-- last time.
function claim_wait.pass_over(s, name, alone)
    local room = claim.free + claim.prefetch
    if alone or s.passed_over == room then
        claim_wait.put_off_gate(s.queue, name)
        return false
    end
    s.passed_over = room
    call('ZADD', wait_key(s.queue, name), us(claim.next_ticket()), s.name)
    return true
end

-- ---- Lanes at a gate

-- The gates of keys that are due, at most `most`, soonest first.
function claim_wait.due_keys(queue, most)
    return call('ZRANGEBYSCORE', P .. 'sleep:' .. queue, '-inf', us(now + claim.ahead), 'LIMIT', 0, us(most))
end

-- Those that were due have been looked at: when to look again.
function claim_wait.sleep_on(queue)
    local first = call('ZRANGE', P .. 'sleep:' .. queue, 0, 0, 'WITHSCORES')
    if first[2] then set_wake(queue, '*', tonumber(first[2])) else drop_wake(queue, '*') end
end

-- One who waits at a gate of a key that is due; closed: the gate has kept another. Returns whether it has left, and whether the gate is
-- closed for those behind. Where jobs may have another key than their lane, the gate says nothing of them: the ring is where they are
-- sorted.
local function wake_lane(queue, name, node, ticket, closed)
    local kind, key = node:match('^([^/]+)/(.*)$')
    if not kind then -- not of ours
        call('ZREM', wait_key(queue, name), node)
        return true, closed
    end
    local s = grant.state(queue, kind)
    local l = grant.lane(s, key)
    if closed and not s.resorts and has_gate(l.gates, name) then return false, true end
    if faults.any and (faults.of_type(s) or faults.of_lane(l)) then
        claim_wait.put_off_gate(queue, name)
        return false, closed
    end
    local at, last = now, nil
    -- 1: its job may need more, and is looked at then
    if not s.resorts then at, last = grant.opens(l.gates, 1, l.node, ticket, now) end
    if at > now + claim.ahead and last.name == name then
        call('ZADD', P .. 'sleep:' .. queue, score(wait_at(s, last, at)), name)
        return false, true
    end
    claim_wait.place_woken(s, l, ticket, at, last)
    call('ZREM', wait_key(queue, name), node)
    return true, closed
end

-- A gate of a key is due: its first waiters go back to the rings of their types, or wait where it opens last. Returns how many.
function claim_wait.wake_lanes(queue, name)
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
    if at > now + claim.ahead then sleep(s, l, 1, last, at, ticket) else join_ring(s, l, ticket) end
end

return claim_wait

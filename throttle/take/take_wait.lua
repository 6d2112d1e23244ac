-- take_wait: a slot for a caller who waits for it. Callers who wait for the same limit and key stand in line, in the order of coming.
-- Each is told when its slot comes, sleeps until then, and asks once more: two calls for a start.
--
-- KEYS[1] prefix
-- ARGV: now, what it does: "wait", "ask" (it waits, and does not listen to its bell: it is told the soonest time) or "leave" (it does not
--       wait any more), rules (as in take), limit, key ('' for none), cost, place ('' at first, then as it was answered), tag (letters and
--       digits, of the caller's own), most (how long it may wait yet, us; -1: as long as it takes)
-- role: taker
-- reply: leave: [ 1 ]; wait: the five elements of take, but that of one who is allowed retry_after_us is when its slot starts, then
--        now, place ('': denied, and not in line: the slot comes later than it may wait), bell (a list to which a time is pushed
--        when its slot comes sooner than it was told)
--
-- Errors: WEIR take_wait: wants ..., wrong name of a limit or key, wrong cost, wrong rule, wrong place.
-- format: any
-- uses: gate line partition takes

-- ---- The answer

local function answer(status, burst, remaining, wait_us, resets_us, place)
    return {status, burst, remaining, wait_us, resets_us, us(now), place, place ~= '' and P .. 'turn:' .. place or ''}
end

local function grant(place, cost, ticket)
    local at = line.opens(cost, ticket)
    line.take(place, at, cost)
    local burst, remaining, resets = line.figures(at)
    return answer(1, burst, remaining, at - now, resets - now, '')
end

local function deny(place, cost, came, at, most)
    local burst, remaining, resets = line.figures()
    if at == huge or most >= 0 and at - now > most then
        line.leave(place)
        return answer(at == huge and 2 or 0, burst, remaining, at == huge and -1 or at - now, resets - now, '')
    end
    line.join(place, came, at, cost)
    return answer(0, burst, remaining, at - now, resets - now, place)
end

local function wait(place, cost, came, most, hears)
    local ticket = line.last_start(came)
    gate.save() -- what loading has put right counts from now
    local till = now + gate.AHEAD
    if line.opens(cost, ticket) <= till and line.start_now(cost, came, ticket) <= till then
        return grant(place, cost, ticket)
    end
    line.look(place)
    return deny(place, cost, came, line.start_then(cost, came, ticket, hears), most)
end

-- ---- The call

local function wrong_arguments(ARGV, cost, most)
    if #ARGV ~= 9 or ARGV[2] ~= 'wait' and ARGV[2] ~= 'ask' and ARGV[2] ~= 'leave' or not is_whole(most, -1) or not find(ARGV[8], '^%w+$') then
        return 'wants now, wait, ask or leave, rules, limit, key, cost, place, tag, most'
    end
    if takes.wrong_rules(ARGV[3]) then return 'wrong rule' end
    if not is_name(ARGV[4]) or ARGV[5] ~= '' and not is_name(ARGV[5]) then return 'wrong name of a limit or key' end
    if not is_whole(cost, 1) then return 'wrong cost' end
    local came, own, tag = match(ARGV[7], '^(%d+)%.(%d+)%.(%w+)$')
    if ARGV[7] ~= '' and (not is_whole(tonumber(came)) or tonumber(own) ~= cost or tag ~= ARGV[8]) then return 'wrong place' end
end

local function take_wait(ARGV)
    local cost, most, place = tonumber(ARGV[6]), tonumber(ARGV[9]), ARGV[7]
    local wrong = wrong_arguments(ARGV, cost, most)
    if wrong then return refuse('take_wait: %s', wrong) end
    local refusal = ARGV[2] ~= 'leave' and partition.refusal(ARGV[4])
    if refusal then return refusal end
    wrong = line.open(ARGV[4], ARGV[5], takes.limit_of(ARGV[4], ARGV[3]))
    if wrong then return answer(wrong, 0, 0, 0, 0, '') end
    line.forget_gone()
    if ARGV[2] == 'leave' then
        line.leave(place)
        return {1}
    end
    local came = line.came(place)
    if place == '' then place = format('%d.%d.%s', came, cost, ARGV[8]) end
    return wait(place, cost, came, most, ARGV[2] == 'wait')
end

return take_wait

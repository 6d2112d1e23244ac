-- caller: a call of one who waits for its slot in a line (line.lua), for take_wait and hold. Each is told when its slot comes, sleeps until then, and
-- asks once more: two calls for a start.
--
--   caller.ask(verb, ARGV[, holds, on_start])   the reply. ARGV: the nine arguments of take_wait, and what the verb adds; holds: it gives
--                                               back what it takes; on_start(at): called before it starts, and its gates are loaded
-- uses: cost gate line partition rules takes

local caller = {}

-- ---- The answer

local function answer(status, burst, remaining, wait_us, resets_us, place)
    return {status, burst, remaining, wait_us, resets_us, us(now), place, place ~= '' and P .. 'turn:' .. place or ''}
end

local function grant(place, cost, ticket, on_start)
    local at = line.opens(cost, ticket)
    if on_start then on_start(at) end
    line.take(place, at, cost)
    local burst, remaining, resets = line.figures(at)
    return answer(1, burst, remaining, at - now, resets - now, '')
end

local function deny(place, cost, came, at, most)
    local burst, remaining, resets = line.figures()
    if at == huge or most >= 0 and at - now > most then
        line.leave(place)
        return answer(at == huge and 2 or 0, at == huge and line.misfit(cost) or burst, remaining, at == huge and -1 or at - now, resets - now, '')
    end
    line.join(place, came, at, cost)
    return answer(0, burst, remaining, at - now, resets - now, place)
end

local function wait(place, cost, came, most, hears, on_start)
    local ticket = line.last_start(came)
    if not hears then line.asks(came) end
    gate.save() -- what loading has put right counts from now
    local till = now + gate.AHEAD
    if line.opens(cost, ticket) <= till and line.start_now(cost, came, ticket) <= till then
        return grant(place, cost, ticket, on_start)
    end
    line.look(place)
    return deny(place, cost, came, line.start_then(cost, came, ticket, hears), most)
end

-- ---- The call

-- Says what is wrong with the nine arguments; nil: nothing.
local function wrong_arguments(ARGV, said, most)
    if ARGV[2] ~= 'wait' and ARGV[2] ~= 'ask' and ARGV[2] ~= 'leave' or not is_whole(most, -1) or not find(ARGV[8], '^%w+$') then
        return 'wants now, wait, ask or leave, rules, limit, key, cost, place, tag, most'
    end
    if takes.wrong_rules(ARGV[3]) then return 'wrong rule' end
    if not is_name(ARGV[4]) or ARGV[5] ~= '' and not rules.is_key(ARGV[5]) then return 'wrong name of a limit or key' end
    if not said then return 'wrong cost' end
    local came, own, tag = match(ARGV[7], '^(%d+)%.([^.]+)%.(%w+)$')
    if ARGV[7] ~= '' and (not is_whole(tonumber(came)) or cost.part(takes.cost(own) or 0) ~= cost.part(said) or tag ~= ARGV[8]) then return 'wrong place' end
end

function caller.ask(verb, ARGV, holds, on_start)
    local said, most, place = takes.cost(ARGV[6]), tonumber(ARGV[9]), ARGV[7]
    local wrong = wrong_arguments(ARGV, said, most)
    if wrong then return refuse('%s: %s', verb, wrong) end
    local refusal = ARGV[2] ~= 'leave' and partition.refusal(ARGV[4])
    if refusal then return refusal end
    local limit = takes.limit_of(ARGV[4], ARGV[3])
    if limit.set then ARGV[5] = rules.key(limit.set, ARGV[5]) end
    wrong = line.open(ARGV[4], ARGV[5], limit, holds, most)
    if wrong then return answer(wrong, 0, 0, 0, 0, '') end
    line.forget_gone()
    if ARGV[2] == 'leave' then
        line.leave(place)
        return {1}
    end
    local came = line.came(place)
    local c = takes.whole(limit, said)
    if place == '' then place = format('%d.%s.%s', came, cost.text(c), ARGV[8]) end
    return wait(place, c, came, most, ARGV[2] == 'wait', on_start)
end

return caller

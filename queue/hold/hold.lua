-- hold: slots on lease, of all rules of a limit, concurrency too. A caller may wait for them, in the line of take_wait.
--
-- ARGV: the nine arguments of take_wait; ttl (how long it is held unless renewed, us), who (any text)
-- role: taker
-- reply: as take_wait. Allowed: limit ~ tag is the token, and is held from when its slot starts. The same tag again: the hold is renewed.
--
-- Who are dead by then make room first.
--
-- Errors: WEIR hold: wants ..., as those of take_wait.
-- format: any
-- uses: caller check cost gate holds line partition rules takes wake

local TTL_MOST = 86400000000 -- us
local WHO_MOST = 200         -- bytes

-- Returns what is to be done as it starts.
local function start(ARGV, ttl)
    return function(at)
        local gates, count = line.gates()
        local limit, counted = takes.limit_of(ARGV[4], ''), {}
        for i = 1, count do
            gate.remember(gates[i])
            if gates[i].base.in_flight then counted[#counted + 1] = gates[i].name end
        end
        holds.begin(ARGV[4], ARGV[8], {slot = at, ttl = ttl, cost = cost.text(takes.whole(limit, takes.cost(ARGV[6]))), key = ARGV[5],
                    rules = holds.digest(limit, ARGV[5]), gates = concat(counted, ','), who = ARGV[11]})
    end
end

-- Answers a caller that asks for what it holds: it is allowed, and how the gates are.
local function again(ARGV)
    local limit = takes.limit_of(ARGV[4], '')
    local key = limit.set and rules.key(limit.set, ARGV[5]) or ARGV[5]
    if line.open(ARGV[4], key, limit, true) then return {1, 0, 0, 0, 0, us(now), '', ''} end
    local burst, remaining, resets = line.figures(now)
    return {1, burst, remaining, 0, resets - now, us(now), '', ''}
end

local function hold(ARGV)
    local ttl, name, who = tonumber(ARGV[10]), ARGV[4], ARGV[11]
    if #ARGV ~= 11 or ARGV[3] ~= '' or not is_whole(ttl, 1) or ttl > TTL_MOST or #who > WHO_MOST or find(who, '%c') then
        return refuse('hold: wants now, wait, ask or leave, no rules, limit, key, cost, place, tag, most, ttl of at most a day, who')
    end
    if not is_name(name) then return refuse('hold: wrong name of a limit or key') end
    local refusal = partition.refusal(name)
    if refusal then return refusal end
    local wrong = holds.wrong_keys(name)
    if wrong then return check.refuse_key(wrong) end
    holds.reap()
    local token = name .. '~' .. ARGV[8]
    if ARGV[2] ~= 'leave' and holds.till(token) then
        holds.renew(token)
        gate.save()
        wake.all(false)
        return again(ARGV)
    end
    wake.all(false)
    return caller.ask('hold', ARGV, true, start(ARGV, ttl))
end

return hold

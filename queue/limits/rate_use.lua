-- rate_use: holds a type by further limits, or no longer by some, and says what a job of it costs.
--
-- ARGV: now, type, verb ("use" or "unuse"), cost, as cost.lua writes it (what it does not say stays; '': nothing), what, by (for the log), limit, ...
-- role: operator
-- reply: JSON: {"asleep", "rest": as rate_wake has them}, where something may start earlier now
--        {"missing": limit}: there is no such limit; the type does not use it
-- uses: check cost partition rates types

local verbs = {}

-- Returns a limit that is not there.
function verbs.use(t, limit)
    if call('HEXISTS', P .. 'limits', limit) == 0 then return limit end
    if not rates.has(t.use, limit) then t.use[#t.use + 1] = limit end
end

function verbs.unuse(t, limit)
    for i, used in ipairs(t.use) do
        if used == limit then
            for j = i, #t.use do t.use[j] = t.use[j + 1] end
            return nil
        end
    end
    return limit
end

local function wrong_arguments(ARGV, said)
    local name, verb = ARGV[2], ARGV[3]
    if #ARGV < 6 or not verbs[verb] then return 'rate_use: wants now, type, use or unuse, cost, what, by, limits' end
    if not is_name(name) then return 'rate_use: wrong name of a type' end
    if ARGV[4] ~= '' and not said then return 'cost: must be 1 to 1000000000' end
    for i = 7, #ARGV do
        if not is_name(ARGV[i]) then return 'rate_use: wrong name of a limit' end
        if ARGV[i] == name then
            return format('type %s: always held by the limit of its own name; leave it out', name)
        end
    end
end

local function rate_use(ARGV)
    local name, verb, said = ARGV[2], ARGV[3], cost.parse(ARGV[4] or '')
    local wrong = wrong_arguments(ARGV, said)
    if wrong then return refuse('%s', wrong) end
    local refusal = partition.refusal(name)
    if refusal then return refusal end
    for i = 7, verb == 'use' and #ARGV or 0 do
        wrong = partition.apart(name, ARGV[i])
        if wrong then return refuse('%s', wrong) end
    end
    wrong = rates.wrong_keys()
    if wrong then return check.refuse_key(wrong) end

    local t, looked_at = types.read(name), {}
    local path = rates.path_of(t, {})
    for i = 7, #ARGV do
        local missing = verbs[verb](t, ARGV[i])
        if missing then return answer{missing = missing} end
        if verb == 'unuse' then looked_at[#looked_at + 1] = ARGV[i] end
    end
    local usual = t.costs or t.cost
    if said and cost.over(said, usual) ~= usual then
        types.set_cost(t, cost.over(said, usual))
        for _, limit in ipairs(t.limits) do looked_at[#looked_at + 1] = limit end
    end
    wrong = types.misfit(t, {})
    if wrong then return refuse('%s', wrong) end

    types.write(t)
    if rates.path_of(t, {}) ~= path then rates.count_keys_anew(name) end
    rates.record(ARGV[5], ARGV[6], 'type', name)
    if #looked_at == 0 then return answer{asleep = {}} end
    rates.wake(looked_at)
    local leaves = verb == 'unuse'
    local asleep, rest = rates.look_on('0', leaves and name or '', leaves and looked_at or {})
    return answer{asleep = asleep, rest = rest}
end

return rate_use

-- rate_set: sets or removes a limit and has all that waits at its gates looked at again. What a gate has counted stays
-- counted: a rule keeps its place, and so its gates, whatever place it is given in.
--
-- KEYS[1] prefix
-- ARGV: now, name, rules ('' removes the limit), dry (1: change nothing), what, by (for the log)
-- role: operator
-- reply: JSON: {"was": was there a limit of that name, "kept": its rules as they are kept, "from": [for each of these the place of the rule
--        whose gate it goes on with, or 0, ...], "asleep": [queue with sleeping lanes, ...]}
-- uses: check gate partition rates rules types

-- Which old rule a new one goes on with: the first of these that any fits.
local alike = {
    function(new, old) return new.text == old.text and new.by == old.by end,
    function(new, old) return new.algorithm == old.algorithm and new.period == old.period and new.by == old.by end,
    function(new, old) return new.algorithm == old.algorithm and new.by == old.by end,
}

-- new rule -> place of the old rule that it goes on with
local function origins(new, old)
    local from, taken = {}, {}
    for _, is_alike in ipairs(alike) do
        for i, rule in ipairs(new) do
            for j, before in ipairs(old) do
                if not from[i] and not taken[j] and is_alike(rule, before) then from[i], taken[j] = j, true end
            end
        end
    end
    return from
end

-- place -> new rule: where it was, if there are so many places, else at the first free one.
local function places(new, from)
    local at, free = {}, 1
    for i in pairs(from) do
        if from[i] <= #new then at[from[i]] = i end
    end
    for i = 1, #new do
        if not from[i] or from[i] > #new then
            while at[free] do free = free + 1 end
            at[free] = i
        end
    end
    return at
end

-- How many jobs in flight a gate's state counts (throttle/gate.lua).
local function in_flight(state)
    return tonumber(state:match(' concurrency:%d+ (%d+)$') or state:match(' ~(%d+)$') or 0)
end

-- The state of a gate goes where its rule went, but not its jobs in flight: their leases name the place. Keyed gates are too
-- many for this.
local function move_gate(name, from, to)
    local old, new = P .. 'gate:' .. name .. '#' .. from - 1, P .. 'gate:' .. name .. '#' .. to - 1
    local state, staying = call('GET', old), in_flight(call('GET', new) or '')
    if not state then
        if staying == 0 then call('DEL', new) end
        return
    end
    local lives_ms, moved = call('PTTL', old), state:gsub(' ~%d+$', '')
    call('SET', new, staying > 0 and moved .. ' ~' .. staying or moved)
    if staying == 0 and lives_ms > 0 then call('PEXPIRE', new, lives_ms) end
    if in_flight(state) == 0 then call('DEL', old) end
end

-- The new rules in their places: their words, and for each place where its rule was before.
local function arrange(old, parts, new)
    local from, words, was_at = origins(new, old), {}, {}
    for place, i in ipairs(places(new, from)) do words[place], was_at[place] = parts.rules[i], from[i] end
    return words, was_at
end

-- For each new place the old one whose gate it goes on with, 0: none. A rule that is like none before goes on with the gate of its place,
-- which does not move: only a rule moves whose place is no longer there.
local function heirs(words, was_at, old)
    local from = {}
    for place in ipairs(words) do from[place] = was_at[place] or old[place] and place or 0 end
    return from
end

local function set(name, before, words, was_at)
    local new = rules.read(concat(words, ' '))
    for place, rule in ipairs(new) do
        local was = was_at[place]
        if was and was ~= place and not rule.by and not rule.in_flight then move_gate(name, was, place) end
    end
    local marks = rates.split(before or '')
    marks.rules = words
    rates.write(name, marks)
    for _, rule in ipairs(new.global) do gate.load(rates.gate_name(name, rule), rule) end
    gate.save()
end

-- users: rates.users, here and below.
local function remove(name, before, users)
    if rates.split(before).weighted then
        rates.forget_weights(name)
        for _, t in ipairs(users) do rates.forget_shares(t.name) end
    end
    call('HDEL', P .. 'limits', name)
end

-- What keeps the limit from being removed: types that were told to use it.
local function still_used(name, users)
    local names = {}
    for _, t in ipairs(users) do
        if rates.has(t.use, name) and #names < 10 then names[#names + 1] = t.name end
    end
    if #names == 0 then return nil end
    return format('limit %s: used by %s; end that first: weir rate unuse %s %s', name, concat(names, ', '), names[1], name)
end

local PAGE = 1000 -- types in one question

-- The types of a limit by what its rules are to them: {one =, names = {...}} for all of the same further limits, cost and own limit.
local function kinds_of(limit, users)
    local kinds, known = {}, {}
    for first = 1, #users, PAGE do
        local names = {}
        for i = first, min(first + PAGE - 1, #users) do names[#names + 1] = users[i].name end
        for i, own in ipairs(call('HMGET', P .. 'limits', unpack(names))) do
            local t, text = users[first + i - 1], own or ''
            known[t.use] = known[t.use] or {}
            local kind = t.name ~= limit and known[t.use][text]
            if not kind then
                kind = {one = t, names = {}}
                kinds[#kinds + 1], known[t.use][text] = kind, t.name ~= limit and kind or nil
            end
            kind.names[#kind.names + 1] = t.name
        end
    end
    return kinds
end

local function wrong_for_types(name, text, kinds)
    for _, kind in ipairs(kinds) do
        local wrong = types.misfit(kind.one, {[name] = text})
        if wrong then return wrong end
    end
end

-- The types whose jobs are told apart by another path under these rules.
local function keyed_anew(name, text, kinds)
    local names = {}
    for _, kind in ipairs(kinds) do
        if rates.path_of(kind.one, {}) ~= rates.path_of(kind.one, {[name] = text}) then
            for _, other in ipairs(kind.names) do names[#names + 1] = other end
        end
    end
    return names
end

local function rate_set(ARGV)
    local name, text, dry, what, by = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
    if #ARGV ~= 6 or dry ~= '0' and dry ~= '1' then return refuse('rate_set: wants now, name, rules, dry, what, by') end
    if not is_name(name) then return refuse('rate_set: wrong name of a limit') end
    local parts, new = rates.split(text), rules.read(text)
    if text ~= '' and (not new or parts.pause or parts.weighted) then return refuse('rate_set: wrong rules of limit %s', name) end
    local refusal = partition.refusal(name)
    if refusal then return refusal end
    local wrong = rates.wrong_keys() or rates.wrong_gates(name)
    if wrong then return check.refuse_key(wrong) end
    local before, users = call('HGET', P .. 'limits', name), rates.users(name)
    local kinds = kinds_of(name, users)
    if text == '' then wrong = still_used(name, users) else wrong = wrong_for_types(name, text, kinds) end
    if wrong then return refuse('%s', wrong) end
    if text == '' and not before then return answer{was = false} end

    local old = rules.read(before or '') or {}
    local words, was_at = arrange(old, parts, new or {})
    if dry == '0' then
        local anew = keyed_anew(name, text, kinds)
        if text == '' then remove(name, before, users) else set(name, before, words, was_at) end
        for _, user in ipairs(anew) do rates.count_keys_anew(user) end
        rates.record(what, by, 'limit', name)
    end
    return answer{was = before and true or false, kept = concat(words, ' '), from = heirs(words, was_at, old),
                  asleep = dry == '0' and rates.wake({name}) or {}}
end

return rate_set

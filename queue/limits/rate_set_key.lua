-- rate_set_key: gives one key of a limit rules of its own, for a time or until they are removed, or removes them. What waits for that key is looked at
-- again. Where the same rules are only to last longer nothing has changed for who waits, and nobody looks.
--
-- ARGV: now, limit, key, the key as jobs have it ('': the same), rules ('' removes them), for_us ('': no end), then ("own": at the end the limit's own
--       rules hold, "closed": nothing starts), revision (nothing is done unless the key's is that; '': any), dry (1: change nothing), what, by (for the
--       log)
-- role: operator
-- reply: JSON: {"was": row, the rules before; not there: none, "is": row, those of now; not there: none, "by": the path of the limit's keys, "jobs": its
--        jobs in lanes, "too_dear": those of them that cost more than the new rules can ever let start, "whole": false: not all were looked at (these
--        three: dry alone), "rest": as rate_wake has it}
--        row: as key_rules.row has it
--        {"conflict": the revision of now, 0: it has none}, nothing was changed
--        {"missing": limit}
-- uses: check gate key_pauses key_rules partition rates rules slices types

local KEY_MOST = 1000  -- lanes of the key that dry looks at
local READ_MOST = 1000 -- jobs of it that it reads
local TYPES_MOST = 200

-- ---- Places

local function counts(rule) return rule.in_flight and 'flight' or rule.of or 'cost' end

local function same_kind(a, b) return a.algorithm == b.algorithm and counts(a) == counts(b) end

-- Whether a rule goes on with what stands at a place: the key's rule before, and that of the limit. The first of these that any fits.
local fits = {
    function(new, own) return own and own.text == new.text and same_kind(own, new) end,
    function(new, _, under) return under and same_kind(under, new) and under.period == new.period end,
    function(new, own) return own and same_kind(own, new) and own.period == new.period end,
    function(new, _, under) return under and same_kind(under, new) end,
    function(new, own) return own and counts(own) == counts(new) end,
    function(new, _, under) return under and counts(under) == counts(new) end,
    function(_, _, under, is_global) return not under and not is_global end,
    function(_, _, _, is_global) return not is_global end,
}

-- Puts the words of the new rules in their places; nil: with the rules for all keys they are too many.
local function arrange(words, new, before, set)
    local own, placed, done, last = rules.read(before and before.rules or '') or {}, {}, {}, 0
    for _, is_fit in ipairs(fits) do
        for i, rule in ipairs(new) do
            for place = 0, rates.PLACES - 1 do
                local there = rules.at(set, place)
                local under = there and there.by and there or nil
                if not done[i] and not placed[place] and is_fit(rule, rules.at(own, place), under, there and not there.by) then
                    placed[place], done[i], last = words[i], true, max(last, place)
                end
            end
        end
    end
    for i = 1, #new do
        if not done[i] then return nil end
    end
    for place = 0, last do placed[place] = placed[place] or rules.NONE end
    return concat(placed, ' ', 0, last)
end

-- ---- What would become of its jobs

local function lanes_of(limit, key)
    local kinds, next_page = rates.users_from(limit, '0', TYPES_MOST)
    local lanes, left = {}, KEY_MOST
    for _, queue in ipairs(call('SRANDMEMBER', P .. 'queues', us(KEY_MOST))) do
        for _, kind in ipairs(kinds) do
            for _, name in ipairs(left > 0 and kind.names or {}) do
                left = left - 1
                local n = call_safe('LLEN', P .. 'lane:' .. queue .. '/' .. name .. '/' .. key)
                if type(n) == 'number' and n > 0 then lanes[#lanes + 1] = {name = queue .. '/' .. name .. '/' .. key, type = types.load(name), jobs = n} end
            end
        end
    end
    return lanes, next_page == '0' and left > 0
end

-- True when rules never let a job of that cost start.
local function is_dear(new, c)
    for _, rule in ipairs(new or {}) do
        if not rule.in_flight and not rules.fits(rule, c) then return true end
    end
    return false
end

local function count_dear(limit, key, new)
    local lanes, whole = lanes_of(limit, key)
    local jobs, dear, left, load = 0, 0, READ_MOST, slices.load()
    for _, l in ipairs(lanes) do
        jobs = jobs + l.jobs
        local entries = l.type.own_costs and slices.read('LRANGE', P .. 'lane:' .. l.name, 0, left, load) or {}
        for _, entry in ipairs(entries) do
            if is_dear(new, types.job_cost(l.type, entry)) then dear = dear + 1 end
        end
        left = left - #entries
        if not l.type.own_costs then
            dear = dear + (is_dear(new, l.type.usual) and l.jobs or 0)
        elseif #entries < l.jobs then
            whole = false
        end
    end
    return jobs, dear, whole
end

-- ---- Changing it

-- Lets the gates of a key count by its rules from now on, and charges those that are new what the others have in use.
local function turn_over(limit, set, key, names)
    local used, was = 0, {}
    for _, name in ipairs(names) do was[name] = true end
    local list = key_rules.list(limit, set, key)
    for _, rule in ipairs(list) do
        local name = rates.gate_name(limit, rule) .. '/' .. key
        local g = was[name] and gate.load_safe(name, rule)
        if g and not rule.in_flight then used = max(used, (g.algorithm.used(g))) end
    end
    for _, rule in ipairs(list) do
        local name = rates.gate_name(limit, rule) .. '/' .. key
        local g = used > 0 and not was[name] and not rule.in_flight and gate.load_safe(name, rule)
        local lacks = g and min(used, rule.burst) - g.algorithm.used(g) or 0
        if lacks > 0 then gate.charge(g, lacks) end
    end
end

local function write(limit, set, key, before, r)
    local names = key_rules.gates(limit, set, key)
    for _, rule in ipairs((key_rules.list(limit, set, key))) do gate.load_safe(rates.gate_name(limit, rule) .. '/' .. key, rule) end
    if r then key_rules.write(limit, key, r) else key_rules.forget(limit, key) end
    turn_over(limit, set, key, names)
    key_pauses.again(limit, set, key)
    gate.save()
    return names
end

-- True when for who waits nothing has changed but that the rules last longer.
local function is_renewal(before, r)
    return before and not before.is_over and r and r.rules == before.rules and r.closes == before.closes and (r.till == 0) == (before.till == 0) and r.till >= before.till
end

-- ----

local function wrong_arguments(ARGV)
    local for_us, revision = tonumber(ARGV[6]), tonumber(ARGV[8])
    return #ARGV ~= 11 or not is_name(ARGV[2]) or not rules.is_key(ARGV[3]) or #ARGV[4] > key_rules.TEXT_MOST or find(ARGV[4], '%c')
        or ARGV[6] ~= '' and not is_whole(for_us, 1) or ARGV[7] ~= 'own' and ARGV[7] ~= 'closed' or ARGV[7] == 'closed' and ARGV[6] == ''
        or ARGV[8] ~= '' and not is_whole(revision) or ARGV[9] ~= '0' and ARGV[9] ~= '1'
end

local function rate_set_key(ARGV)
    local name, key, text, dry = ARGV[2], ARGV[3], ARGV[5], ARGV[9] == '1'
    if wrong_arguments(ARGV) then
        return refuse('rate_set_key: wants now, limit, key, text, rules, for_us, own or closed, revision, dry, what, by')
    end
    local parts, new = rates.split(text), rules.read(text)
    if text ~= '' and (not new or new.text ~= text or new.path) then return refuse('rate_set_key: wrong rules of limit %s', name) end
    local refusal = partition.refusal(name)
    if refusal then return refusal end
    local wrong = rates.wrong_keys() or check.wrong_kind('keys:' .. name, 'hash')
    if wrong then return check.refuse_key(wrong) end
    local limit = call('HGET', P .. 'limits', name)
    if not limit then return answer{missing = name} end
    local set = rules.read(limit)
    if not set or not set.path then
        return refuse('limit %s: has no keys; set a rule with ,by=PATH, as in 10/s,by=args.customer', name)
    end
    key = rules.key(set, key)
    local before = key_rules.read(name, key)
    local revision = before and (before.closes or not before.is_over) and before.set_at or 0
    if ARGV[8] ~= '' and tonumber(ARGV[8]) ~= revision then return answer{conflict = us(revision)} end
    if text == '' and not before then return answer{by = set.path} end

    local words = new and arrange(parts.rules, new, before, set)
    if new and not words then
        return refuse('limit %s: it has %d rules for all keys, so a key has at most %d of its own', name, #set.global, rates.PLACES - #set.global)
    end
    local r = new and {till = ARGV[6] ~= '' and now + tonumber(ARGV[6]) or 0, set_at = max(now, revision + 1), closes = ARGV[7] == 'closed',
                       rules = words, shown = ARGV[4]}
    local reply = {was = key_rules.row(before), is = key_rules.row(r), by = set.path}
    if dry then
        reply.jobs, reply.too_dear, reply.whole = count_dear(name, key, new)
        reply.jobs, reply.too_dear = us(reply.jobs), us(reply.too_dear)
        return answer(reply)
    end
    if is_renewal(before, r) then
        key_rules.write(name, key, r)
        return answer(reply)
    end
    rates.wake_at(write(name, set, key, before, r))
    rates.log(ARGV[10], ARGV[11])
    reply.rest = rates.rest()
    return answer(reply)
end

return rate_set_key

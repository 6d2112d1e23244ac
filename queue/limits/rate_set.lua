-- rate_set: sets or removes a limit and has all that waits at its gates looked at again. What a gate has counted stays
-- counted: a rule keeps its place, and so its gates, whatever place it is given in and whichever other rules go, and finds it when it comes back.
--
-- ARGV: now, name, rules ('' removes the limit), dry (1: change nothing; 2: where its keys have another path, those with rules of their own lose
--       them, else it is refused; 3: both), what, by (for the log) [, the place where the last call ended: cursor, revision]
-- role: operator
-- reply: JSON: {"was": was there a limit of that name, "kept": its rules as they are kept, "asleep", "rest": as rate_wake has them,
--        "dropped": the path by which it told jobs apart until now, where the new rules have none,
--        "recount": the text of the limit before, where it told jobs apart by another path: its types are for rate_recount}
--        {"next": [cursor, revision]}: only some of its types were checked, and nothing was changed: to be called again with this place. When a limit or
--        a type was changed meanwhile, the check begins anew
-- uses: check gate key_pauses key_rules partition rates revisions rules types

-- Which known rule a new one goes on with: the first of these that any fits.
local alike = {
    function(new, old) return new.text == old.text and new.of == old.of and new.by == old.by end,
    function(new, old) return new.algorithm == old.algorithm and new.period == old.period and new.by == old.by end,
    function(new, old) return new.algorithm == old.algorithm and new.by == old.by end,
    function(new, old) return new.kind == old.kind and new.by == old.by end,
}

-- Lists the rules by which the gates of a limit last counted, {word =, rule =, place =, gone =}: those of its text first, then those that left it.
-- What left takes no new rule's place while others are there; of a limit that was removed any place will do.
local function known_rules(name, before)
    local known, there = {}, {}
    for _, text in ipairs({before or '', call('HGET', P .. 'revisions', 'places/' .. name) or ''}) do
        for place, word in ipairs(rates.split(text).rules) do
            local set = not there[place] and rules.read(word)
            if set then
                there[place] = true
                known[#known + 1] = {word = word, rule = set[1], place = place, gone = before and text ~= before}
            end
        end
    end
    return known
end

-- new rule -> the known rule that it goes on with
local function origins(new, known)
    local from, taken = {}, {}
    for _, is_alike in ipairs(alike) do
        for i, rule in ipairs(new) do
            for _, one in ipairs(known) do
                if not from[i] and not taken[one] and is_alike(rule, one.rule) then from[i], taken[one] = one, true end
            end
        end
    end
    return from
end

-- The first place that is free, rather none of a rule that may come back. A rule for all keys takes none where a key has a rule of its own.
local function free_place(placed, known, used)
    local gone, first = {}, nil
    for _, one in ipairs(known) do gone[one.place] = one.gone end
    for place = 1, rates.PLACES do
        if not placed[place] and not used[place] then
            if not gone[place] then return place end
            first = first or place
        end
    end
    return first
end

-- Puts the words of the new rules in their places: each in that of the known rule that it goes on with, else in a free one. What stands there has
-- the gates of that place. nil: with the rules that a key has for itself they are too many;
-- and the key.
local function arrange(words, new, known, used)
    local from, placed, last = origins(new, known), {}, 0
    for i, one in pairs(from) do
        if one.gone and not new[i].by and used[one.place] then from[i] = nil else placed[one.place] = words[i] end
    end
    for i, rule in ipairs(new) do
        local place = from[i] and from[i].place or free_place(placed, known, rule.by and {} or used)
        if not place then return nil, used[rates.PLACES] or used[rates.PLACES - 1] end
        placed[place] = words[i]
    end
    for place in pairs(placed) do last = max(last, place) end
    for place = 1, last do placed[place] = placed[place] or rules.NONE end
    return placed
end

-- Remembers by which rule the gates of each place last counted.
local function remember(name, words, known)
    local places = {}
    for place = 1, rates.PLACES do places[place] = words[place] or rules.NONE end
    for _, one in ipairs(known) do
        if places[one.place] == rules.NONE then places[one.place] = one.word end
    end
    call('HSET', P .. 'revisions', 'places/' .. name, concat(places, ' '))
end

-- True when what was granted ahead is counted by all of the new rules, as each goes on with the gate of one that held it. Its jobs start at their
-- slots: they have been taken by the old rules, and given back they would be lost, as the gates know no more what had taken them.
local function holds_ahead(before, words)
    local old = rates.split(before).rules
    for place, word in ipairs(words) do
        local new, was = rules.read(word), rules.read(old[place] or rules.NONE)
        if new and not (was and was[1].by == new[1].by and not was.in_flight and not new.in_flight) then return false end
    end
    return true
end

local function set(name, before, words)
    local new = rules.read(concat(words, ' '))
    key_pauses.move(name, rules.read(before or ''), new)
    local marks = rates.split(before or '')
    marks.rules = words
    if marks.weighted and not new.path then
        rates.forget_weights(name)
        marks.weighted = false
    end
    rates.write(name, marks)
    for _, rule in ipairs(new.global) do gate.load(rates.gate_name(name, rule), rule) end
    gate.save()
end

-- Types were not told to use it: it holds the one of its own name, at most.
local function remove(name, before)
    if rates.split(before).weighted then rates.forget_weights(name) end
    key_pauses.forget_all(name, rules.read(before))
    gate.save()
    call('HDEL', P .. 'limits', name)
end

-- Returns what keeps the limit from being removed: types that were told to use it. kinds: of rates.users_from, here and below.
local function still_used(name, kinds)
    local names = {}
    for _, kind in ipairs(kinds) do
        if rates.has(kind.one.use, name) then
            for _, user in ipairs(kind.names) do names[#names + 1] = user end
        end
    end
    if #names == 0 then return nil end
    sort(names)
    for i = 11, #names do names[i] = nil end
    return format('limit %s: used by %s; end that first: weir rate unuse %s %s', name, concat(names, ', '), names[1], name)
end

-- What keeps the first of the types that cannot be held by it.
local function wrong_for_types(name, text, kinds)
    local first, wrong
    for _, kind in ipairs(kinds) do
        if not first or kind.one.name < first then
            local misfit = types.misfit(kind.one, {[name] = text})
            if misfit then first, wrong = kind.one.name, misfit end
        end
    end
    return wrong
end

local TYPES_MOST = 200 -- that one call checks, about: 10 us each, where no two are alike

-- Checks a page of the types. Returns what is wrong, and where the next page begins: its cursor and what the newest revision was before the first one;
-- nil: all were checked, and no limit or type was changed meanwhile.
local function check_types(name, text, cursor, revision)
    local newest = us(revisions.newest())
    if revision ~= newest then cursor = '0' end
    local kinds, behind = rates.users_from(name, cursor, TYPES_MOST)
    local wrong
    if text == '' then wrong = still_used(name, kinds) else wrong = wrong_for_types(name, text, kinds) end
    return wrong, behind ~= '0' and {behind, newest} or nil
end

local function wrong_arguments(ARGV)
    if #ARGV ~= 6 and #ARGV ~= 8 or not find(ARGV[4], '^[0-3]$') or ARGV[7] and not find(ARGV[7], '^%d+$') then
        return 'wants now, name, rules, dry, what, by, and a place or none'
    end
    if not is_name(ARGV[2]) then return 'wrong name of a limit' end
end

local function rate_set(ARGV)
    local name, text, mode, what, by = unpack(ARGV, 2, 6)
    local dry, drop = mode == '1' or mode == '3', mode == '2' or mode == '3'
    local wrong = wrong_arguments(ARGV)
    if wrong then return refuse('rate_set: %s', wrong) end
    local parts, new = rates.split(text), rules.read(text)
    if text ~= '' and (not new or new.text ~= text) then return refuse('rate_set: wrong rules of limit %s', name) end
    local refusal = partition.refusal(name)
    if refusal then return refusal end
    wrong = rates.wrong_tables()
    if wrong then return check.refuse_key(wrong) end
    local more
    wrong, more = check_types(name, text, ARGV[7] or '0', ARGV[8])
    if wrong then return refuse('%s', wrong) end
    if more then return answer{next = more} end
    wrong = rates.wrong_keys() or rates.wrong_gates(name)
    if wrong then return check.refuse_key(wrong) end
    local before = call('HGET', P .. 'limits', name)
    if text == '' and not before then return answer{was = false} end

    local old = rules.read(before or '') or {}
    local own = text ~= '' and new.path ~= old.path and key_rules.count(name) or 0
    if own > 0 and not drop then
        return refuse('limit %s: %d keys have rules of their own, by %s; drop them with --drop-keys, or leave the path as it is', name, own, old.path or '?')
    end
    local known = known_rules(name, before)
    local words, key = arrange(parts.rules, new or {}, known, new and own == 0 and key_rules.used(name) or {})
    if not words then
        return refuse('limit %s: key %s has rules of its own, and with those for all keys they are more than %d; give it fewer', name, key or '?', rates.PLACES)
    end
    local asleep, rest = {}, nil
    if not dry then
        if text == '' or own > 0 then key_rules.forget_all(name) end
        if text == '' then remove(name, before) else set(name, before, words) end
        remember(name, words, known)
        rates.record(what, by, 'limit', name)
        rates.wake({name}, holds_ahead(before or '', words))
        asleep, rest = rates.look_on('0', text == '' and name or '', {})
    end
    return answer{was = before and true or false, lost = own > 0 and us(own) or nil, kept = concat(words, ' '), asleep = asleep, rest = rest,
                  dropped = not (new or {}).path and old.path or nil,
                  recount = not dry and old.path ~= (new or {}).path and (before or '') or nil}
end

return rate_set

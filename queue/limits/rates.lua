-- rates: what the scripts that change limits share: the text of a limit, waking what waits at its gates, the log of changes.
--
--   limits: hash name -> its rules joined by a blank (throttle/rules.lua), then marks: pause:<until_us>/<set_at_us> weights:1
--   changes: list, the newest first: {"at": seconds, "by": "user@host", "what": "set mail 100/1m"}
--   acts: the same of what concerns no limit and no type: however much that is, the changes stay
-- uses: bell check counters key_pauses lane leases revisions rules types wake

local rates = {}

local CHANGES_MOST = 1000 -- remembered, and as many acts
rates.PLACES = 8          -- rules of one limit: gates <limit>#0 to #7

function rates.wrong_tables()
    return check.wrong_kind('limits', 'hash') or check.wrong_kind('types', 'hash') or check.wrong_kind('revisions', 'hash')
end

function rates.wrong_keys()
    return check.wrong_kind('queues', 'set') or rates.wrong_tables() or check.wrong_kind('weights', 'hash') or check.wrong_kind('key_rules', 'set') or key_pauses.wrong()
        or check.wrong_kind('changes', 'list') or check.wrong_kind('acts', 'list')
end

-- Of the gates that are not keyed.
function rates.wrong_gates(limit)
    local wrong
    for i = 0, rates.PLACES - 1 do wrong = wrong or check.wrong_kind('gate:' .. limit .. '#' .. i, 'string') end
    return wrong
end

-- Splits a limit's text into its parts: {rules = {text, ...}, pause = '<until_us>/<set_at_us>' or nil, weighted = bool}.
function rates.split(text)
    local parts = {rules = {}, weighted = false}
    for word in text:gmatch('%S+') do
        local mark, value = word:match('^(%a+):(%S+)$')
        if mark == 'pause' then
            parts.pause = value
        elseif mark == 'weights' then
            parts.weighted = true
        else
            parts.rules[#parts.rules + 1] = word
        end
    end
    return parts
end

function rates.write(name, parts)
    local text = concat(parts.rules, ' ')
    if parts.pause then text = text .. ' pause:' .. parts.pause end
    if parts.weighted then text = text .. ' weights:1' end
    call('HSET', P .. 'limits', name, text)
end

function rates.gate_name(limit, rule) return limit .. '#' .. rule.index end

-- True when word is in list.
function rates.has(list, word)
    for _, other in ipairs(list) do
        if other == word then return true end
    end
    return false
end

-- ---- The types that a limit holds

local ASKED = '100'      -- of a scan
local LOOKS_MOST = 1000 -- types that one call looks at: 1 ms

-- Returns the types among `found` (names and texts in turn) that use the limit, or have its name, and their texts. uses: text -> the type that it
-- says, false where the limit is not among its limits; very many types have few texts.
local function users_among(found, limit, uses)
    local names, texts = {}, {}
    for i = 1, #found, 2 do
        local name, text = found[i], found[i + 1]
        if uses[text] == nil then
            local t = find(text, limit, 1, true) and types.parse('', text)
            uses[text] = t and rates.has(t.use, limit) and t or false
        end
        if uses[text] or name == limit then names[#names + 1], texts[#texts + 1] = name, text end
    end
    return names, texts
end

local function new_kind(name, text)
    local t = types.parse(name, text)
    return {one = {name = name, use = t.use, cost = t.cost}, names = {}}
end

-- Adds these types to the kinds.
local function sort_in(kinds, known, limit, names, texts)
    local own = #names > 0 and call('HMGET', P .. 'limits', unpack(names)) or {}
    for i, name in ipairs(names) do
        local mark = name == limit and '' or texts[i] .. '\n' .. (own[i] or '')
        local kind = known[mark]
        if not kind then
            kind = new_kind(name, texts[i])
            kinds[#kinds + 1], known[mark] = kind, kind
        end
        if name < kind.one.name then kind.one.name = name end
        kind.names[#kind.names + 1] = name
    end
end

-- Returns a page of the types that a limit holds, about `most` of them: {one = {name = the first of the names, use =, cost =}, names = {...}} for
-- all that use the same limits at the same cost, and whose own limits have the same text. The type of the limit's name is one of these, alone. And
-- the cursor of the next page, '0': that was all. A type may be on two pages.
function rates.users_from(limit, cursor, most)
    local kinds, known, uses, found, looked_at = {}, {}, {}, 0, 0
    repeat
        local page = call('HSCAN', P .. 'types', cursor, 'COUNT', ASKED)
        local names, texts = users_among(page[2], limit, uses)
        sort_in(kinds, known, limit, names, texts)
        cursor, found, looked_at = page[1], found + #names, looked_at + #page[2] / 2
    until cursor == '0' or found >= most or looked_at >= LOOKS_MOST
    return kinds, cursor
end

-- The types that are held in any of these queues, as a set. Each queue is asked once: a question for each type in each of
-- them would stop a Redis that has thousands of both.
function rates.held(queues)
    local held = {}
    for _, queue in ipairs(queues) do
        for _, name in ipairs(call('ZRANGE', P .. 'held:' .. queue, '0', '-1')) do held[name] = true end
    end
    return held
end

-- ---- Jobs without a key

-- The path by which the jobs of a type are told apart; nil: none of its limits is keyed. instead: as above.
function rates.path_of(t, instead)
    for i = 0, #t.use do
        local limit = t.use[i] or t.name
        local set = rules.read(instead[limit] or call('HGET', P .. 'limits', limit) or '')
        if set and set.path then return set.path end
    end
end

local function met(name)
    local s = call_safe('HMGET', P .. 'stats:' .. name, 'pulled', 'parked', 'keyless', 'keyed_from')
    for i = 1, 4 do s[i] = counters.number(s[i] or nil) end
    return s[1] + s[2], s[3], s[4]
end

-- From now on its jobs are told apart by another path: those without a key are counted anew.
function rates.count_keys_anew(name)
    local all = met(name)
    if all > 0 then call_safe('HSET', P .. 'stats:' .. name, 'keyless', '0', 'keyed_from', us(all)) end
end

-- Returns {jobs =, of =, path =, limit =}: so many jobs had nothing at the path, of those that claims have met since it is that one. nil: none.
function rates.keyless(name)
    local all, jobs, from = met(name)
    if jobs <= 0 then return nil end
    local t = types.load(name)
    if not t.path then return nil end
    return {jobs = jobs, of = max(jobs, all - from), path = t.path, limit = match(t.keyed[1].name, '^[^#]+')}
end

-- ---- Changes

-- A type that waits at a gate which is no longer its own would stand behind others that this gate closes: it is due instead. Returns whether it was
-- there.
local function leave_gates(queue, name, limits)
    local left = false
    for _, limit in ipairs(limits) do
        for i = 0, rates.PLACES do
            local gate_name = limit .. '#' .. (i < rates.PLACES and i or 'pause')
            local wait = P .. 'wait:' .. queue .. '/' .. gate_name
            local ticket = call_safe('ZSCORE', wait, name)
            if type(ticket) == 'string' then
                lane.type_is_due(queue, name, tonumber(ticket))
                call('ZREM', wait, name)
                if call('EXISTS', wait) == 0 then call('ZREM', P .. 'wake:' .. queue, gate_name) end
                left = true
            end
        end
    end
    return left
end

local QUEUES_ASKED, LEAST_ASKED = 120, 20 -- of a scan: fewer where the gates of more limits are left

local recalled = '' -- where the next page of the workers begins that are to give back what was granted far ahead; '': all were told

local function forget_recalled() recalled = '' end

-- A page of these, from a cursor that begins at '0'; the others are told as rates.rest says.
function rates.recall(cursor)
    if cursor == '' then return end
    at_next_call(forget_recalled)
    recalled = leases.recall(cursor)
end

-- Words for rate_wake, where gates have opened that are left to wake others, or workers are left to be told; nil: none.
function rates.rest() return (recalled ~= '' or call('EXISTS', P .. 'opened') == 1) and {'', recalled, ''} or nil end

-- A page of the queues, from a cursor that begins at '0'. In each the type of that name ('': none) lets go of these limits: it does not wait at
-- their gates, and what its keys had of their shares is forgotten. Returns the queues of this page in which lanes sleep, which are for rate_apply, and
-- where the next page begins, for rate_wake: words of it; nil: that was the last one, and nothing is left of what rates.rest has.
function rates.look_on(cursor, name, limits)
    local asleep, due, is_due = {}, {}, false
    if cursor ~= '' then
        local page = call('SSCAN', P .. 'queues', cursor, 'COUNT', us(max(LEAST_ASKED, floor(QUEUES_ASKED / (1 + #limits)))))
        cursor = page[1] ~= '0' and page[1] or ''
        for _, queue in ipairs(page[2]) do
            local waits = name ~= '' and #limits > 0 and call('EXISTS', P .. 'ring:' .. queue .. '/' .. name) == 1
            if waits and not lane.wrong_due(queue) and leave_gates(queue, name, limits) then due[queue], is_due = true, true end
            if name ~= '' then call('DEL', P .. 'credit:' .. queue .. '/' .. name) end
            if call('EXISTS', P .. 'sleep:' .. queue) == 1 then asleep[#asleep + 1] = queue end
        end
    end
    if is_due then bell.ring_all(due) end
    return asleep, cursor ~= '' and {cursor, recalled, name, unpack(limits)} or rates.rest()
end

local FEW = 3 -- limits: each has all queues listed once

-- Has who waits at these gates, named as in lane, looked at again: in this call as far as that is short, then as rates.rest says, or by heartbeats if
-- nobody does that. And what was granted far ahead is given back; holds: it need not be.
function rates.wake_at(gates, holds)
    for _, name in ipairs(gates) do wake.opened_everywhere(name) end
    wake.all(true)
    if not holds then rates.recall('0') end
end

local function gates_of(limits)
    local gates = #limits > FEW and {'*'} or {}
    for i = 1, #limits <= FEW and #limits or 0 do gates[i] = limits[i] .. '#*' end
    return gates
end

-- Wakes the types that wait at gates of these limits, or for the end of a pause.
function rates.wake(limits, holds) rates.wake_at(gates_of(limits), holds) end

function rates.forget_weights(limit)
    for _, field in ipairs(call('HKEYS', P .. 'weights')) do
        if sub(field, 1, #limit + 1) == limit .. '/' then call('HDEL', P .. 'weights', field) end
    end
end

local weights -- limit -> {key, weight, ...}, as this call has read them

local function forget_read() weights = nil end

local function read_weights()
    at_next_call(forget_read)
    weights = {}
    local all = call('HGETALL', P .. 'weights')
    for i = 1, #all, 2 do
        local limit, key = match(all[i], '^([^/]*)/(.*)$')
        if limit then
            local list = weights[limit]
            if not list then
                list = {}
                weights[limit] = list
            end
            list[#list + 1], list[#list + 2] = key, all[i + 1]
        end
    end
end

-- The keys of a limit that have weights, and these, in turn: for a script that asks for several limits, and before it changes any.
function rates.weights(limit)
    if not weights then read_weights() end
    return weights[limit] or {}
end

local function has_attributes(name)
    local t = types.parse(name, call('HGET', P .. 'types', name) or '')
    return #t.use > 0 or t.cost ~= 1
end

-- Returns the revision of a "limit" or a "type"; 1: it is there, from before revisions were kept; 0: it was never changed.
function rates.revision(kind, name)
    local at = tonumber(call('HGET', P .. 'revisions', kind .. '/' .. name) or nil)
    if at then return at end
    local there = kind == 'type' and has_attributes(name) or kind == 'limit' and call('HEXISTS', P .. 'limits', name) == 1
    return there and 1 or 0
end

local function entry_of(what, by)
    return format('{"at":%d.%06d,"by":%s,"what":%s}', floor(now / 1000000), now % 1000000, json_write(by), json_write(what))
end

-- Remembers what was done, and by whom.
function rates.log(what, by)
    call('LPUSH', P .. 'changes', entry_of(what, by))
    call('LTRIM', P .. 'changes', 0, CHANGES_MOST - 1)
end

-- The same of a "limit" or a "type"; kind nil: their revisions are not new.
function rates.record(what, by, kind, name)
    rates.log(what, by)
    revisions.renew(kind, name)
end

-- The same of what concerns no limit and no type.
function rates.note(what, by)
    call('LPUSH', P .. 'acts', entry_of(what, by))
    call('LTRIM', P .. 'acts', 0, CHANGES_MOST - 1)
end

return rates

-- rates: what the scripts that change limits share: the text of a limit, waking what waits at its gates, the log of changes.
--
--   limits: hash name -> its rules joined by a blank (throttle/rules.lua), then marks: pause:<until_us>/<set_at_us> weights:1
--   changes: list, the newest first: {"at": seconds, "by": "user@host", "what": "set mail 100/1m"}
--   revisions: hash limit/<name>, type/<name> -> when somebody changed it last, us; * -> when anything was. They only grow, and stay when
--              a limit is removed: a worker that knows of a later one has seen what Redis has lost
-- uses: bell check lease leases rules types

local rates = {}

local CHANGES_MOST = 1000 -- remembered
local PLACES = 8          -- rules of one limit: gates <limit>#0 to #7

local waiting -- queues in which something waits at gates, as rates.wrong_keys has found them

function rates.wrong_keys()
    local wrong = check.wrong_kind('queues', 'set')
    if wrong then return wrong end
    waiting = {}
    for _, queue in ipairs(call('SMEMBERS', P .. 'queues')) do
        if call('EXISTS', P .. 'wake:' .. queue, P .. 'sleep:' .. queue) > 0 then
            waiting[#waiting + 1] = queue
            wrong = wrong or check.wrong_kind('wake:' .. queue, 'zset') or check.wrong_kind('sleep:' .. queue, 'zset')
        end
    end
    return wrong or check.wrong_kind('limits', 'hash') or check.wrong_kind('types', 'hash')
        or check.wrong_kind('weights', 'hash') or check.wrong_kind('changes', 'list') or check.wrong_kind('revisions', 'hash')
end

-- Of the gates that are not keyed.
function rates.wrong_gates(limit)
    local wrong
    for i = 0, PLACES - 1 do wrong = wrong or check.wrong_kind('gate:' .. limit .. '#' .. i, 'string') end
    return wrong
end

-- A limit's text in its parts: {rules = {text, ...}, pause = '<until_us>/<set_at_us>' or nil, weighted = bool}.
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

-- Is word in list?
function rates.has(list, word)
    for _, other in ipairs(list) do
        if other == word then return true end
    end
    return false
end

-- The names and texts of types that may use a limit. Most have only the limit of their own name: then no names are read.
local function may_use(limit)
    local texts, found, names = call('HVALS', P .. 'types'), {}, nil
    for i = 1, #texts do
        if texts[i] ~= '' and find(texts[i], limit, 1, true) then
            names = names or call('HKEYS', P .. 'types') -- in the same order, as nobody writes meanwhile
            found[#found + 1], found[#found + 2] = names[i], texts[i]
        end
    end
    return found
end

local SORTED_MOST = 100 -- of more nobody reads all

local function by_name(a, b) return a.name < b.name end

-- The types that a limit holds, {name =, use =, cost =} as types.parse reads them; those of one text have one `use`.
function rates.users(limit)
    local found, parsed, users = may_use(limit), {}, {}
    local own = call('HGET', P .. 'types', limit)
    if own and not find(own, limit, 1, true) then found[#found + 1], found[#found + 2] = limit, own end
    for i = 1, #found, 2 do
        local name, text = found[i], found[i + 1]
        local t = parsed[text] or types.parse(name, text)
        parsed[text] = t
        if name == limit or rates.has(t.use, limit) then users[#users + 1] = {name = name, use = t.use, cost = t.cost} end
    end
    if #users <= SORTED_MOST then sort(users, by_name) end
    return users
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
    for i = 1, 4 do s[i] = lease.counted(s[i] or nil) end
    return s[1] + s[2], s[3], s[4]
end

-- From now on its jobs are told apart by another path: those without a key are counted anew.
function rates.count_keys_anew(name)
    local all = met(name)
    if all > 0 then call_safe('HSET', P .. 'stats:' .. name, 'keyless', '0', 'keyed_from', us(all)) end
end

-- {jobs =, of =, path =, limit =}: so many jobs had nothing at the path, of those that claims have met since it is that one.
-- nil: none.
function rates.keyless(name)
    local all, jobs, from = met(name)
    if jobs <= 0 then return nil end
    local t = types.load(name)
    if not t.path then return nil end
    return {jobs = jobs, of = max(jobs, all - from), path = t.path, limit = match(t.keyed[1].name, '^[^#]+')}
end

-- ---- Changes

-- A type's keys have no weights any more: what they had of their shares is forgotten.
function rates.forget_shares(name)
    for _, queue in ipairs(call('SMEMBERS', P .. 'queues')) do call('DEL', P .. 'credit:' .. queue .. '/' .. name) end
end

-- The names of all gates for all keys that limits may have.
function rates.gates(limits)
    local names = {}
    for _, limit in ipairs(limits) do
        for i = 0, PLACES do names[#names + 1] = limit .. '#' .. (i < PLACES and i or 'pause') end
    end
    return names
end

-- Has the types that wait at the gates of these limits, or for the end of a pause, looked at again, and what was granted far ahead given
-- back, after rates.wrong_keys. Returns the queues in which lanes sleep, which may be too many for one script: they are for rate_apply.
function rates.wake(limits)
    local gates, asleep = {}, {}
    for _, name in ipairs(rates.gates(limits)) do
        gates[#gates + 1] = us(now)
        gates[#gates + 1] = name
    end
    for _, queue in ipairs(waiting) do
        if call('ZADD', P .. 'wake:' .. queue, 'XX', 'CH', 'LT', unpack(gates)) > 0 then bell.ring(queue) end
        if call('EXISTS', P .. 'sleep:' .. queue) == 1 then asleep[#asleep + 1] = queue end
    end
    leases.recall()
    return asleep
end

function rates.forget_weights(limit)
    for _, field in ipairs(call('HKEYS', P .. 'weights')) do
        if sub(field, 1, #limit + 1) == limit .. '/' then call('HDEL', P .. 'weights', field) end
    end
end

local function has_attributes(name)
    local t = types.parse(name, call('HGET', P .. 'types', name) or '')
    return #t.use > 0 or t.cost ~= 1
end

-- Of a "limit" or a "type"; 1: it is there, from before revisions were kept; 0: it was never changed.
function rates.revision(kind, name)
    local at = tonumber(call('HGET', P .. 'revisions', kind .. '/' .. name) or nil)
    if at then return at end
    local there = kind == 'type' and has_attributes(name) or kind == 'limit' and call('HEXISTS', P .. 'limits', name) == 1
    return there and 1 or 0
end

function rates.newest() return tonumber(call('HGET', P .. 'revisions', '*') or nil) or 0 end

-- Remembers a change: what was done and by whom, and of which "limit" or "type"; kind nil: their revisions are not new.
function rates.record(what, by, kind, name)
    local at, revision = format('%d.%06d', floor(now / 1000000), now % 1000000), us(max(now, rates.newest() + 1))
    call('LPUSH', P .. 'changes', format('{"at":%s,"by":%s,"what":%s}', at, json_write(by), json_write(what)))
    call('LTRIM', P .. 'changes', 0, CHANGES_MOST - 1)
    call('HSET', P .. 'revisions', '*', revision)
    if kind then call('HSET', P .. 'revisions', kind .. '/' .. name, revision) end
end

return rates

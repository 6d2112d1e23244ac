-- takes: the limits of callers that are no jobs, for take and take_wait. What follows from a name and the texts of rules is kept from
-- call to call; nothing else is.
--
--   takes.limit_of(name, given)     given: rules of the caller's own, or ''. Its .set, or the word that says what is wrong with it in
--                                   .wrong
--   takes.wrong(limit, key, holds)  the word that says what is wrong with the limit or the key ('': none); nil or false: nothing. holds: the
--                                   caller gives back what it takes
--   takes.rules(limit, key, holds)  the rules that hold the key; until when (huge: no end); is it closed? And the word that says what is wrong with
--                                   them; nil: nothing
--   takes.gate_name(limit, rule, key)
--   takes.load(limit, rule, key)    its gate; nil: the key is of a wrong kind
--   takes.cost(text[, least])       what that text says; a number, or by name; nil: it is no cost
--   takes.whole(limit, said)        what a caller costs at a limit, as its gates take it: plain slots, where no rule counts others
--   takes.wrong_rules(given)        are they no rules in the stored form?
-- uses: cost gate key_rules rules

local takes = {}

local MOST_KEPT = 1000
local PLACES = 8 -- rules of one limit

local known, known_count = {}, 0 -- name -> its limit as it was read last

-- Makes a limit; its member `wrong` is the word that says what is wrong with it.
local function limit_make(name, own, given)
    local limit = {name = name, own = own, given = given, names = {}}
    local set = rules.read(own or given)
    limit.set = set
    if not set then
        limit.wrong = 'unreadable'
    elseif own and given ~= '' and set.text ~= given then
        limit.wrong = 'differs' -- callers by one rule would take what callers by the other wait for
    else
        for index = 0, PLACES - 1 do limit.names[index] = name .. '#' .. index end
    end
    return limit
end

function takes.limit_of(name, given)
    local own = call('HGET', P .. 'limits', name)
    local limit = known[name]
    if limit and limit.own == own and limit.given == given then return limit end
    if not own and given == '' then return {wrong = 'missing'} end
    if known_count >= MOST_KEPT then known, known_count = {}, 0 end
    if not known[name] then known_count = known_count + 1 end
    limit = limit_make(name, own, given)
    known[name] = limit
    return limit
end

function takes.wrong(limit, key, holds)
    if limit.wrong then return limit.wrong end
    if limit.set.in_flight and not holds then return 'concurrency' end
    if key == '' then return limit.set.path and 'keyless' end
    return not limit.set.path and limit.own and 'unkeyed'
end

function takes.rules(limit, key, holds)
    local set = limit.set
    local own = key ~= '' and limit.own and key_rules.of(limit.name, set, key)
    if not own then return set, huge, false end
    local list, in_flight = {unpack(set.global)}, false
    for _, rule in ipairs(own.rules) do list[#list + 1], in_flight = rule, in_flight or rule.in_flight end
    return list, own.till, own.closed, in_flight and not holds and 'concurrency' or nil
end

function takes.gate_name(limit, rule, key)
    local name = limit.names[rule.index]
    return key ~= '' and (rule.by or not limit.set.path) and name .. '/' .. key or name
end

function takes.load(limit, rule, key)
    return gate.load_safe(takes.gate_name(limit, rule, key), limit.set.named and rules.mixed(rule) or rule)
end

function takes.cost(text, least)
    local n = tonumber(text)
    if n then return is_whole(n, least or 1) and n or nil end
    return cost.parse(text, least)
end

function takes.whole(limit, said) return limit.set and limit.set.named and cost.over(said, 1) or cost.part(said) end

function takes.wrong_rules(given)
    if given == '' then return false end
    local set = rules.read(given)
    return not set or set.text ~= given
end

return takes

-- takes: the limits of callers that are no jobs, for take and take_wait. What follows from a name and the texts of rules is kept from
-- call to call; nothing else is.
--
--   takes.limit_of(name, given)     given: rules of the caller's own, or ''. Its .set, or the word that says what is wrong with it in
--                                   .wrong
--   takes.wrong(limit, key, holds)  the word that says what is wrong with the limit or the key ('': none); nil or false: nothing. holds: the
--                                   caller gives back what it takes
--   takes.gate_name(limit, i, key)  of its i-th rule
--   takes.wrong_rules(given)        are they no rules in the stored form?
-- uses: rules

local takes = {}

local MOST_KEPT = 1000

local known, known_count = {}, 0 -- name -> its limit as it was read last

-- Makes a limit; its member `wrong` is the word that says what is wrong with it.
local function limit_make(name, own, given)
    local limit = {own = own, given = given, names = {}, keyed = {}}
    local set = rules.read(own or given)
    limit.set = set
    if not set then
        limit.wrong = 'unreadable'
    elseif own and given ~= '' and set.text ~= given then
        limit.wrong = 'differs' -- callers by one rule would take what callers by the other wait for
    else
        for i, rule in ipairs(set) do
            limit.names[i] = name .. '#' .. rule.index
            limit.keyed[i] = (rule.by or not set.path) and limit.names[i] .. '/'
        end
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

function takes.gate_name(limit, i, key)
    return key ~= '' and limit.keyed[i] and limit.keyed[i] .. key or limit.names[i]
end

function takes.wrong_rules(given)
    if given == '' then return false end
    local set = rules.read(given)
    return not set or set.text ~= given
end

return takes

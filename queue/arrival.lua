-- arrival: what enqueue and append share: new jobs in a queue, counted, their type and queue registered. The checks come
-- first, all of them, and name the key that is wrong; what follows cannot fail.
-- uses: check rates types

local arrival = {}

function arrival.wrong_registries() return check.wrong_kind('queues', 'set') or check.wrong_kind('types', 'hash') end

function arrival.wrong_counter(name, what)
    local stats = 'stats:' .. name
    local wrong = check.wrong_kind(stats, 'hash')
    if wrong then return wrong end
    local n = call('HGET', P .. stats, what)
    if n and not find(n, '^-?%d+$') then return P .. stats .. ': its ' .. what .. ' is no number' end
end

-- What a job of that cost can never fit; nil: nothing. A type's own cost was looked at when it was set.
function arrival.never_fits(name, cost)
    if not cost or cost == 1 then return nil end
    local t = types.read(name)
    t.cost = cost
    return rates.wrong_type(t, {})
end

-- Counts n jobs; the first ones register their type.
function arrival.count(name, what, n)
    if call('HINCRBY', P .. 'stats:' .. name, what, n) == n then call('HSETNX', P .. 'types', name, '') end
end

return arrival

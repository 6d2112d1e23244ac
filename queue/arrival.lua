-- arrival: what enqueue and append share: new jobs in a queue, counted, their type and queue registered. The checks come
-- first, all of them, and name the key that is wrong; what follows cannot fail.

local function wrong_registries() return wrong_kind('queues', 'set') or wrong_kind('types', 'hash') end

local function wrong_counter(type, what)
    local wrong = wrong_kind('stats:' .. type, 'hash')
    if wrong then return wrong end
    local n = call('HGET', P .. 'stats:' .. type, what)
    if n and not n:find('^-?%d+$') then return P .. 'stats:' .. type .. ': its ' .. what .. ' is no number' end
end

-- Counts n jobs; the first ones register their type.
local function count_arrivals(type, what, n)
    if call('HINCRBY', P .. 'stats:' .. type, what, n) == n then call('HSETNX', P .. 'types', type, '') end
end

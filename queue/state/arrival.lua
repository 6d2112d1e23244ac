-- arrival: what enqueue and append share: new jobs in a queue, counted, their type, queue and batch registered. The checks
-- come first, all of them, and name the key that is wrong; what follows cannot fail.
-- uses: check cost ends types

local arrival = {}

function arrival.wrong_registries() return check.wrong_kind('queues', 'set') or check.wrong_kind('types', 'hash') end

local function wrong_number(key, field, n)
    if n and not find(n, '^-?%d+$') then return P .. key .. ': its ' .. field .. ' is not a number' end
end

function arrival.wrong_counter(name, what)
    return check.wrong_kind('stats:' .. name, 'hash') or wrong_number('stats:' .. name, what, call('HGET', P .. 'stats:' .. name, what))
end

-- Returns what a job can never fit that says such a cost; nil: nothing. A type's own cost was looked at when it was set.
function arrival.never_fits(name, said)
    if not said or said == 1 then return nil end
    local t = types.read(name)
    types.set_cost(t, cost.over(said, t.costs or t.cost))
    return types.misfit(t, {})
end

-- Counts n jobs; the first ones register their type.
function arrival.count(name, what, n)
    if call('HINCRBY', P .. 'stats:' .. name, what, n) == n then call('HSETNX', P .. 'types', name, '') end
end

-- ---- Batches

function arrival.wrong_batch(name)
    return check.wrong_kind('batch:' .. name, 'hash') or wrong_number('batch:' .. name, 'total', call('HGET', P .. 'batch:' .. name, 'total'))
        or check.wrong_kind('batches', 'zset')
end

-- Says why a batch takes no more jobs; nil: it does.
function arrival.closed(name)
    local b = call('HMGET', P .. 'batch:' .. name, 'sealed', 'cancel')
    if b[2] then return 'batch ' .. name .. ' was cancelled: it takes no more jobs; use another name' end
    if b[1] then return 'batch ' .. name .. ' is sealed: it takes no more jobs; use another name' end
end

local TYPES_MOST = 8 -- that a batch counts apart
local OTHERS = '*'

-- Adds {name =, count =} to a text that says how many jobs of which type a batch was given, "mail 300 news 20 * 5"; *: of all others.
local function add_types(text, types)
    local names, counts = {}, {}
    local function add(name, n)
        if not counts[name] and #names == TYPES_MOST then name = OTHERS end
        if not counts[name] and name ~= OTHERS then names[#names + 1] = name end
        counts[name] = (counts[name] or 0) + n
    end
    for name, n in text:gmatch('(%S+) (%d+)') do add(name, tonumber(n)) end
    for _, t in ipairs(types) do add(t.name, t.count) end
    if counts[OTHERS] then names[#names + 1] = OTHERS end
    for i, name in ipairs(names) do names[i] = name .. ' ' .. us(counts[name]) end
    return concat(names, ' ')
end

-- Counts more jobs of a batch, {name =, count =} of each type, n in all; the first ones begin the batch. It is remembered for delay_us more.
function arrival.join(name, types, n, delay_us)
    local batch, keep_ms = P .. 'batch:' .. name, ends.KEPT_MS + ceil(delay_us / 1000)
    local total = call('HINCRBY', batch, 'total', n)
    local begun = total == n and call('HSETNX', batch, 'created', us(now)) == 1
    local known = call('HGET', batch, 'types')
    -- a batch that was begun by a version that did not count types stays without
    if n > 0 and (known or total == n) then call('HSET', batch, 'types', add_types(known or '', types)) end
    if begun then call('ZADD', P .. 'batches', us(now), name) end
    ends.keep(name, keep_ms, begun)
end

return arrival

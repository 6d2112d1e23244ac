-- arrival: what enqueue and append share: new jobs in a queue, counted, their type, queue and batch registered. The checks
-- come first, all of them, and name the key that is wrong; what follows cannot fail.
-- uses: check ends rates types

local arrival = {}

function arrival.wrong_registries() return check.wrong_kind('queues', 'set') or check.wrong_kind('types', 'hash') end

local function wrong_number(key, field)
    local wrong = check.wrong_kind(key, 'hash')
    if wrong then return wrong end
    local n = call('HGET', P .. key, field)
    if n and not find(n, '^-?%d+$') then return P .. key .. ': its ' .. field .. ' is no number' end
end

function arrival.wrong_counter(name, what) return wrong_number('stats:' .. name, what) end

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

-- ---- Batches

function arrival.wrong_batch(name)
    return wrong_number('batch:' .. name, 'total') or check.wrong_kind('batches', 'zset')
end

-- Why a batch takes no more jobs; nil: it does.
function arrival.closed(name)
    local b = call('HMGET', P .. 'batch:' .. name, 'sealed', 'cancel')
    if b[2] then return 'batch ' .. name .. ' was cancelled: it takes no more jobs; use another name' end
    if b[1] then return 'batch ' .. name .. ' is sealed: it takes no more jobs; use another name' end
end

local LOOKS = 4

-- Names of batches that are no longer remembered leave the list when others come, found by chance: they are never many more than
-- a quarter of it.
local function forget_names()
    for _, name in ipairs(call('ZRANDMEMBER', P .. 'batches', LOOKS)) do
        if call('EXISTS', P .. 'batch:' .. name) == 0 then call('ZREM', P .. 'batches', name) end
    end
end

-- n more jobs of a batch, which the first ones begin. It is remembered for delay_us more.
function arrival.join(name, n, delay_us)
    local batch, keep_ms = P .. 'batch:' .. name, ends.KEPT_MS + ceil(delay_us / 1000)
    local begun = call('HINCRBY', batch, 'total', n) == n and call('HSETNX', batch, 'created', us(now)) == 1
    if begun then
        call('ZADD', P .. 'batches', us(now), name)
        forget_names()
    end
    ends.keep(name, keep_ms, begun)
end

return arrival

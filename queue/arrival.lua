-- arrival: what enqueue and append share: new jobs in a queue, counted, their type and queue registered. The checks come
-- first, all of them, and name the key that is wrong; what follows cannot fail.

local function is_name(s) return s and #s <= 128 and s:find('^[%w_.-]+$') end

-- What is wrong when key holds something else than kind; nil when it is right or not there.
local function wrong_kind(key, kind)
    local found = call('TYPE', P .. key).ok
    if found ~= kind and found ~= 'none' then return P .. key .. ' is a ' .. found .. ', not a ' .. kind end
end

local function refuse_key(wrong) return redis.error_reply('WRONGTYPE ' .. wrong) end

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

-- rate_set: sets or removes a limit and has the waiting jobs of the type looked at again. Gates change over
-- when they are next loaded.
--
-- KEYS[1] prefix
-- ARGV: now, name, rule ('' removes the limit)
-- reply: [ whether there was a limit of that name, 0 or 1 ]
-- uses: core/base.lua core/now.lua core/bell.lua throttle/gate.lua

local name, rule = ARGV[2], ARGV[3]
if not rule or #ARGV > 3 then return refuse('rate_set: wants now, name, rule') end
if #name > 128 or not name:find('^[%w_.-]+$') then return refuse('rate_set: wrong name of a limit') end
if rule ~= '' and not rule_read(rule) then return refuse('rate_set: wrong rule of limit %s', name) end

local before = call('HEXISTS', P .. 'limits', name)
local waits = {}
for _, queue in ipairs(call('SMEMBERS', P .. 'queues')) do
    if call('ZSCORE', P .. 'wake:' .. queue, name) then waits[#waits + 1] = queue end
end

if rule ~= '' then call('HSET', P .. 'limits', name, rule) end
for _, queue in ipairs(waits) do call('ZADD', P .. 'wake:' .. queue, 'XX', us(now), name) end
if rule == '' then call('HDEL', P .. 'limits', name) end
if #waits > 0 then bell_ring() end
return {before}

-- base: what every script starts with: the prefix of all keys, exact numbers as text, and the time.
-- KEYS[1]: the prefix, "weir:{0}:"; ARGV[1]: now in microseconds, or '' for Redis TIME.

local P, call = KEYS[1], redis.call
local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min

-- tostring() and .. keep 14 digits only; a time in microseconds has 16.
local function us(x) return string.format('%.0f', x) end

-- A virtual clock is a test's own: nothing then expires by Redis's clock.
local VIRTUAL = ARGV[1] ~= ''
local now
if VIRTUAL then
    now = tonumber(ARGV[1])
else
    local t = call('TIME') -- once: it moves within a script on Redis 7.0
    now = t[1] * 1000000 + t[2]
end

local function refuse(...) return redis.error_reply('WEIR ' .. string.format(...)) end

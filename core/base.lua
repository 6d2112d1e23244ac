-- base: what every script starts with: the prefix of all keys, exact numbers as text.
-- KEYS[1]: the prefix, "weir:{0}:".

local P, call = KEYS[1], redis.call
local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min

-- tostring() and .. keep 14 digits only; a time in microseconds has 16. %d is exact to 2^53 and four times as fast as %.0f.
local function us(x) return string.format('%d', x) end

local function refuse(...) return redis.error_reply('WEIR ' .. string.format(...)) end

-- check: what is looked at before anything is written, since Redis does not roll back: the commit part must not fail, and a
-- key that holds something else is named.

local function is_name(s) return s and #s <= 128 and s:find('^[%w_.-]+$') end

-- A whole number, at least 0 or `least`? NaN is not.
local function is_whole(n, least) return n and n >= (least or 0) and n <= 2 ^ 53 and n % 1 == 0 end

-- What is wrong when key holds something else than kind; nil when it is right or not there.
local kinds = {}
local function wrong_kind(key, kind)
    local found = kinds[key] or call('TYPE', P .. key).ok
    kinds[key] = found
    if found ~= kind and found ~= 'none' then return P .. key .. ' is a ' .. found .. ', not a ' .. kind end
end

local function refuse_key(wrong) return redis.error_reply('WRONGTYPE ' .. wrong) end

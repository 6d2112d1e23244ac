-- check: what the keys hold, looked at before anything is written: Redis does not roll back, so the commit part must not
-- fail, and a key that holds something else is named.

local check = {}

local kinds -- kinds of keys, as this call has found them

local function forget() kinds = nil end

-- Says what is wrong when key holds something else than kind; nil: it is right, or not there.
function check.wrong_kind(key, kind)
    if not kinds then
        kinds = {}
        at_next_call(forget)
    end
    local found = kinds[key] or call('TYPE', P .. key).ok
    kinds[key] = found
    if found ~= kind and found ~= 'none' then return P .. key .. ' is a ' .. found .. ', not a ' .. kind end
end

function check.refuse_key(wrong) return error_reply('WRONGTYPE ' .. wrong) end

return check

-- key_ends: keys whose own rules are over (key_rules.lua). Who waits by these wakes by itself then; the fields go as heartbeats come to them.
--
-- uses: key_rules
local key_ends = {}

local PAGE = '100' -- keys that one heartbeat looks at

local limit, cursor, prefix = '', '0', nil -- where the next page begins

-- Goes through a page of the keys of a limit, and forgets those whose rules are over.
function key_ends.follow()
    if prefix ~= P or cursor == '0' then
        local one = call_safe('SRANDMEMBER', P .. 'key_rules')
        limit, cursor, prefix = type(one) == 'string' and one or '', '0', P
    end
    if limit == '' then return end
    local page = call_safe('HSCAN', P .. 'keys:' .. limit, cursor, 'COUNT', PAGE)
    cursor = page.err and '0' or page[1]
    for i = 1, page.err and 0 or #page[2], 2 do
        local r = key_rules.parse(page[2][i + 1])
        if r and r.is_over and not r.closes then key_rules.forget(limit, page[2][i]) end
    end
end

return key_ends

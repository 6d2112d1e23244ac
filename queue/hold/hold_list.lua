-- hold_list: who holds slots of a limit, a page of them; changes nothing.
--
-- ARGV: now, limit [, cursor, the place where the last call ended]
-- role: viewer
-- reply: JSON: {"now": us, "holds": [{"token", "key" ('': none), "cost": a number, or text as cost.lua writes it, "since": us, "until": us, "who"}, ...],
--        "next": [cursor], absent: that was all}
-- writes: nothing
-- uses: holds partition

local COUNT = '200'

local function hold_list(ARGV)
    local name, cursor = ARGV[2], ARGV[3] or '0'
    if #ARGV < 2 or #ARGV > 3 or not is_name(name) or not find(cursor, '^%d+$') then
        return refuse('hold_list: wants now, limit, and a place or none')
    end
    local refusal = partition.refusal(name)
    if refusal then return refusal end
    local page = call('HSCAN', P .. 'hold:' .. name, cursor, 'COUNT', COUNT)
    local rows = {}
    for i = 1, #page[2], 2 do
        local token = name .. '~' .. page[2][i]
        local till = holds.till(token)
        local since, cost, key, who = match(page[2][i + 1], '^(%d+) %d+ %d+ (%S+) (%S+) %x+ %S+ (.*)$')
        if till and since then
            rows[#rows + 1] = {token = token, key = key ~= '*' and key or '', cost = tonumber(cost) or cost, since = since, ['until'] = us(till), who = who}
        end
    end
    return answer{now = us(now), holds = rows, next = page[1] ~= '0' and {page[1]} or nil}
end

return hold_list

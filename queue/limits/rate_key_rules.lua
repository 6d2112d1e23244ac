-- rate_key_rules: the keys of a limit that have rules of their own, a page of them, or one of them; changes nothing.
--
-- ARGV: now, limit, key ('': all) [, the place where the last call ended]
-- role: viewer
-- reply: JSON: {"now": "us", "by": path of its keys, "count": how many have some, "keys": [{"key", "shown": as its jobs have it, where that is known and
--        another text, and what key_rules.row has}, ...],
--        "next": [place], unless that was all}; a key may come twice
--        {"missing": limit}
-- writes: nothing
-- uses: key_rules partition rules

local PAGE = '500'

local function add(rows, key, r)
    local row = key_rules.row(r)
    if not row then return end
    row.key, row.shown = key, r.shown ~= '' and r.shown or nil
    rows[#rows + 1] = row
end

local function rate_key_rules(ARGV)
    local limit, key, cursor, rows = ARGV[2], ARGV[3], ARGV[4] or '0', {}
    if #ARGV < 3 or #ARGV > 4 or not is_name(limit) or key ~= '' and not rules.is_key(key) or not find(cursor, '^%d+$') then
        return refuse('rate_key_rules: wants now, limit, key, and a place or none')
    end
    local refusal = partition.refusal(limit)
    if refusal then return refusal end
    local text = call('HGET', P .. 'limits', limit)
    if not text then return answer{missing = limit} end
    local set = rules.read(text)
    if key ~= '' then
        key = set and rules.key(set, key) or key
        add(rows, key, key_rules.read(limit, key))
        cursor = '0'
    else
        local page = call('HSCAN', P .. 'keys:' .. limit, cursor, 'COUNT', PAGE)
        for i = 1, #page[2], 2 do add(rows, page[2][i], key_rules.parse(page[2][i + 1])) end
        cursor = page[1]
    end
    return answer{now = us(now), by = set and set.path or '', count = us(key_rules.count(limit)), keys = rows, next = cursor ~= '0' and {cursor} or nil}
end

return rate_key_rules

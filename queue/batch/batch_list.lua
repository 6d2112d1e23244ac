-- batch_list: the batches with a name, the oldest first, one page; or some of those of which jobs are set aside. Those that are no longer remembered
-- are passed over.
--
-- ARGV: now, "all" or "aside", from (of all: where the last page ended; none at first)
-- role: viewer
-- reply: JSON: {"now": us, "next": [from], unless that was the last page, "batches": [as batch.row has them, ...]}
-- writes: nothing
-- uses: batch check

local PAGE = 100

local function rows_aside()
    local rows = {}
    for _, field in ipairs(call('HKEYS', P .. 'halted')) do
        local name = match(field, '^b/(.+)$')
        if name and call('EXISTS', P .. 'aside:' .. name) == 1 then rows[#rows + 1] = batch.row(name) end
        if #rows == PAGE then break end
    end
    return rows
end

local function batch_list(ARGV)
    local from = tonumber(ARGV[3] or 0)
    if #ARGV < 2 or #ARGV > 3 or ARGV[2] ~= 'all' and ARGV[2] ~= 'aside' or not is_whole(from) then
        return refuse('batch_list: wants all or aside, from, or nothing')
    end
    local wrong = check.wrong_kind('batches', 'zset') or check.wrong_kind('halted', 'hash')
    if wrong then return check.refuse_key(wrong) end
    if ARGV[2] == 'aside' then return answer{now = us(now), batches = rows_aside()} end
    local names, rows = call('ZRANGE', P .. 'batches', us(from), us(from + PAGE - 1)), {}
    for _, name in ipairs(names) do rows[#rows + 1] = batch.row(name) end
    return answer{now = us(now), next = #names == PAGE and {us(from + PAGE)} or nil, batches = rows}
end

return batch_list

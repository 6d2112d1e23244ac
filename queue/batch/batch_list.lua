-- batch_list: the batches with a name, the oldest first, one page. Those that are no longer remembered are passed over.
--
-- KEYS[1] prefix
-- ARGV: now, from (where the last page ended; none at first)
-- role: viewer
-- reply: JSON: {"now": us, "next": [from], unless that was the last page, "batches": [as batch.row has them, ...]}
-- writes: nothing
-- uses: batch check

local PAGE = 100

local function batch_list(ARGV)
    local from = tonumber(ARGV[2] or 0)
    if #ARGV > 2 or not is_whole(from) then return refuse('batch_list: wants from, or nothing') end
    local wrong = check.wrong_kind('batches', 'zset')
    if wrong then return check.refuse_key(wrong) end
    local names, rows = call('ZRANGE', P .. 'batches', us(from), us(from + PAGE - 1)), {}
    for _, name in ipairs(names) do rows[#rows + 1] = batch.row(name) end
    return answer{now = us(now), next = #names == PAGE and {us(from + PAGE)} or nil, batches = rows}
end

return batch_list

-- batch_list: the batches with a name, the oldest first, one page. Those that are no longer remembered are passed over.
--
-- KEYS[1] prefix
-- ARGV: now, from (0 at first), most (1 to 500)
-- role: viewer
-- reply: JSON: {"now": us, "next": from of the next page, -1 at the end, "batches": [as batch.row has them, ...]}
-- writes: nothing
-- uses: batch check

local function batch_list(ARGV)
    local from, most = tonumber(ARGV[2]), tonumber(ARGV[3])
    if #ARGV ~= 3 or not (is_whole(from) and is_whole(most, 1)) or most > 500 then
        return refuse('batch_list: wants from, most from 1 to 500')
    end
    local wrong = check.wrong_kind('batches', 'zset')
    if wrong then return check.refuse_key(wrong) end
    local names, rows = call('ZRANGE', P .. 'batches', us(from), us(from + most - 1)), {}
    for _, name in ipairs(names) do rows[#rows + 1] = batch.row(name) end
    return answer{now = us(now), next = #names == most and from + most or -1, batches = rows}
end

return batch_list

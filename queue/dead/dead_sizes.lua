-- dead_sizes: how many bytes the dead jobs have, oldest first, a page at a time.
--
-- ARGV: now, score, record (where the last page ended; neither to begin)
-- role: viewer
-- reply: JSON: {"sizes": [bytes of a record, ...], "next": its place if there are more, the record beside the JSON}
-- writes: nothing
-- uses: check dead_records

local PAGE = 200

local function dead_sizes(ARGV)
    local score, record = ARGV[2], ARGV[3]
    if #ARGV ~= 1 and (#ARGV ~= 3 or not tonumber(score)) then return refuse('dead_sizes: wants now, and a place or none') end
    local wrong = check.wrong_kind('dead', 'zset')
    if wrong then return check.refuse_key(wrong) end
    local rank = score and dead_records.rank_behind(score, record) or 0
    local records, scores, ended = dead_records.page(rank, PAGE, huge)
    local sizes, last = {}, #records
    for i = 1, last do sizes[i] = #records[i] end
    if ended then return answer{sizes = sizes} end
    return answer({sizes = sizes, next = {scores[last], 0}}, {records[last]})
end

return dead_sizes

-- dead_sizes: how many bytes the dead jobs have, oldest first, a page at a time.
--
-- KEYS[1] prefix
-- ARGV: now, score, record (where the last page ended, '' each to begin)
-- reply: [ now, dead jobs, bytes of them as they are counted (-1: not all are), score, record (where this page ends, '' each: there are
--          no more), bytes of a record, ... ]
-- writes: nothing
-- uses: check dead_bytes dead_records

local PAGE = 200

local function dead_sizes(ARGV)
    local score, record = ARGV[2], ARGV[3]
    if #ARGV ~= 3 or score ~= '' and not tonumber(score) then return refuse('dead_sizes: wants now and a place') end
    local wrong = check.wrong_kind('dead', 'zset') or check.wrong_kind('dead_bytes', 'hash')
    if wrong then return check.refuse_key(wrong) end
    local rank = score ~= '' and dead_records.rank_behind(score, record) or 0
    local records, scores, ended = dead_records.page(rank, PAGE, huge)
    local last = not ended and #records
    local reply = {us(now), us(call('ZCARD', P .. 'dead')), us(dead_bytes.read() or -1), last and scores[last] or '',
                   last and records[last] or ''}
    for i = 1, #records do reply[i + 5] = #records[i] end
    return reply
end

return dead_sizes

-- queue_match: a page of the queues that some words stand for, names or patterns; changes nothing.
--
-- KEYS[1] prefix
-- ARGV: now, cursor ('0': from the beginning), most (names to look at, 1 to 1,000), word, ...
-- role: worker viewer
-- reply: [ next cursor ('0': that was all), queue, ... ]
-- writes: nothing
-- format: any
-- uses: pattern

local MOST = 1000

local function queue_match(ARGV)
    local cursor, most, words = ARGV[2], tonumber(ARGV[3]), {unpack(ARGV, 4)}
    if not is_whole(tonumber(cursor)) or not is_whole(most, 1) or most > MOST or #words == 0 then
        return refuse('queue_match: wants now, cursor, most from 1 to %d, words', MOST)
    end
    local page = call('SSCAN', P .. 'queues', cursor, 'COUNT', digits(most))
    local reply = {page[1]}
    for _, queue in ipairs(page[2]) do
        if is_name(queue) and pattern.serves(words, queue) then reply[#reply + 1] = queue end
    end
    return reply
end

return queue_match

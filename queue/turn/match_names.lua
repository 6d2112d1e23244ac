-- match_names: a page of the queues or types that some words stand for, names or patterns; changes nothing.
--
-- ARGV: now, what ('queues' or 'types'), cursor ('0': from the beginning), most (names to look at, 1 to 1,000), word, ...
-- role: worker viewer
-- reply: [ next cursor ('0': that was all), name, ... ]
-- writes: nothing
-- format: any
-- uses: pattern

local MOST = 1000

-- Returns a page of names and how far apart they stand in it. Redis compares a single word at half the cost, and no name has another character that
-- means something to it.
local function scan(what, cursor, most, words)
    local word = #words == 1 and words[1] or '*'
    if what == 'types' then return call('HSCAN', P .. 'types', cursor, 'MATCH', word, 'COUNT', most), 2 end
    return call('SSCAN', P .. 'queues', cursor, 'MATCH', word, 'COUNT', most), 1
end

local function match_names(ARGV)
    local what, cursor, most, words = ARGV[2], ARGV[3], tonumber(ARGV[4]), {unpack(ARGV, 5)}
    if what ~= 'queues' and what ~= 'types' or not is_whole(tonumber(cursor)) or not is_whole(most, 1) or most > MOST or #words == 0 then
        return refuse('match_names: wants now, queues or types, cursor, most from 1 to %d, words', MOST)
    end
    local page, step = scan(what, cursor, digits(most), words)
    local reply = {page[1]}
    for i = 1, #page[2], step do
        local name = page[2][i]
        if is_name(name) and (#words == 1 or pattern.serves(words, name)) then reply[#reply + 1] = name end
    end
    return reply
end

return match_names

-- match_names: a page of the queues or types that some words stand for, names or patterns; changes nothing.
--
-- KEYS[1] prefix
-- ARGV: now, what ('queues' or 'types'), cursor ('0': from the beginning), most (names to look at, 1 to 1,000), word, ...
-- role: worker viewer
-- reply: [ next cursor ('0': that was all), name, ... ]
-- writes: nothing
-- format: any
-- uses: pattern

local MOST = 1000

-- Returns a page of names and how far apart they stand in it.
local function scan(what, cursor, most)
    if what == 'types' then return call('HSCAN', P .. 'types', cursor, 'COUNT', most), 2 end
    return call('SSCAN', P .. 'queues', cursor, 'COUNT', most), 1
end

local function match_names(ARGV)
    local what, cursor, most, words = ARGV[2], ARGV[3], tonumber(ARGV[4]), {unpack(ARGV, 5)}
    if what ~= 'queues' and what ~= 'types' or not is_whole(tonumber(cursor)) or not is_whole(most, 1) or most > MOST or #words == 0 then
        return refuse('match_names: wants now, queues or types, cursor, most from 1 to %d, words', MOST)
    end
    local page, step = scan(what, cursor, digits(most))
    local reply = {page[1]}
    for i = 1, #page[2], step do
        local name = page[2][i]
        if is_name(name) and pattern.serves(words, name) then reply[#reply + 1] = name end
    end
    return reply
end

return match_names

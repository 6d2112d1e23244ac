-- settle_done: a settle that says nothing but "done", as most do, needs none of the parts behind this one.

local worker, active = ARGV[2], P .. 'active:' .. (ARGV[2] or '')
if not worker then return refuse('settle: no worker') end

-- The end of the group of done jobs that begins at ARGV[i]; nil when it is none.
local function done_end(i)
    local n = tonumber(ARGV[i + 2])
    if ARGV[i] == 'done' and is_whole(n, 1) and n <= 4000 and i + 2 + n <= #ARGV and is_name(ARGV[i + 1]) then
        return i + 2 + n
    end
end

-- Ends the leases ARGV[first] to ARGV[last] of a type; returns how many of them were stale.
local function end_done(name, first, last)
    local ended = call('HDEL', active, unpack(ARGV, first, last))
    if ended > 0 then redis.pcall('HINCRBY', P .. 'stats:' .. name, 'done', ended) end
    return last - first + 1 - ended
end

local i = 3
while i and i <= #ARGV do
    i = done_end(i)
    i = i and i + 1
end
if i then
    local stale, first = 0, 3
    while first <= #ARGV do
        local last = done_end(first)
        stale = stale + end_done(ARGV[first + 1], first + 3, last)
        first = last + 1
    end
    return stale
end

-- partition: the home of a type or a limit, where the namespace has partitions: the rule of core/client/partition.h.
--
--   about: hash: partitions -> how many there are, from 2 to 64; absent: one
--
-- A script that is asked for a type or a limit asks partition.refusal(name) before it writes. A namespace of one partition pays one
-- HGET for that, and when it was asked just now, nothing: a namespace is parted while it is empty (divide).
local partition = {}

partition.MOST = 64

local seen, own -- the prefix that was asked last, and its partition

-- Returns the partition that this call sees.
function partition.own()
    if seen ~= P then seen, own = P, tonumber(match(P, '{(%d+)}:$') or 0) end
    return own
end

local count -- how many partitions there are, as this call has found
local known, known_of, known_us -- how many there were as Redis was asked last; for which prefix, and when

local function forget() count = nil end

local function read_count()
    local n = call_safe('HGET', P .. 'about', 'partitions') -- most namespaces say nothing
    n = n and tonumber(n)
    read_clock()
    known_of, known_us = P, not VIRTUAL and now
    return n and is_whole(n, 1) and n <= partition.MOST and n or 1
end

function partition.count()
    if not count then
        at_next_call(forget)
        if known_of ~= P or not is_recent(known_us) then known = read_count() end
        count = known
    end
    return count
end

function partition.write_count(n)
    call('HSET', P .. 'about', 'partitions', us(n))
    count, known_of = nil, nil
end

-- Writes again that there are n partitions, as a worker knows: Redis has lost that, maybe since it was asked last.
function partition.restore(n)
    if not is_whole(n, 2) or n > partition.MOST then return end
    known_of, count = nil, nil
    if partition.count() == 1 then partition.write_count(n) end
end

-- The table of CRC16 (XMODEM), which says what a byte adds. It is built once.
local adds

local function build_adds()
    adds = {}
    for i = 0, 255 do
        local crc = i * 256
        for _ = 1, 8 do crc = crc >= 32768 and xor(crc * 2 - 65536, 0x1021) or crc * 2 end
        adds[i] = crc
    end
end

local function crc16(name)
    if not adds then build_adds() end
    local crc = 0
    for i = 1, #name do crc = xor(crc % 256 * 256, adds[xor(floor(crc / 256), byte(name, i))]) end
    return crc
end

-- Returns the home of a name: the hash of what stands before its first dot.
function partition.home(name)
    local n = partition.count()
    return n == 1 and 0 or crc16(match(name, '^[^.]*')) % n
end

-- Returns the partition of a name that does not live here; nil: it does.
function partition.elsewhere(name)
    local home = partition.home(name)
    if home ~= partition.own() then return home end
end

-- Returns the reason with which a job of this type is buried here; nil: the type lives here.
function partition.misplaced(name)
    local home = partition.elsewhere(name)
    return home and format('wrong partition: its type lives on partition %d; weir dead retry moves it there', home) or nil
end

-- Returns why a type that lives here cannot be held by a limit; nil: the limit lives here too.
function partition.apart(name, limit)
    local home = partition.elsewhere(limit)
    return home and format('type %s: lives on partition %d and limit %s on %d, and a job can ask only one; use names that are the same up to '
                               .. 'their first dot, such as type %s.%s', name, partition.own(), limit, home, match(limit, '^[^.]*'), name)
end

-- The reply to who asks for a name that does not live here; nil: it does.
function partition.refusal(name)
    local home = partition.elsewhere(name)
    if home then return error_reply(format('WRONG-PARTITION %d %d %s', home, partition.count(), name)) end
end

return partition

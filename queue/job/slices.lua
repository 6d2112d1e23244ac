-- slices: entries of a list or a sorted set, a few at a time. A body may be 1 MiB, which takes Redis 2 ms to hand to a script, and how
-- large an entry is shows only when it has been read. So few are read at once, as large ones may stand behind small ones, and a call
-- stops when it has its load.
--
--   slices.load(bytes, alone, step)  what a call may still read: so many bytes (nil: BYTES), and one entry that is larger if it is the
--                                    first and alone is not false; step: how many to read at first (nil: one)
--   slices.deep_load()               the same for places in the middle of a list, which take Redis long to find: more at once
--   slices.is_full(load)             nothing fits any more
--   slices.fits(load, size)          does one more entry fit? Then it is loaded; else nothing fits any more
--   slices.read(command, key, first, most, load, at_once)
--                                    up to most entries from a place on, as LRANGE or ZRANGE counts, as far as they fit; and whether
--                                    there are no more of them. at_once: how many may be read at once where their sizes are known
--   slices.last(key, most, load, passed, command, at_once)
--                                    the same from the end, the last one first, behind those that were passed; LRANGE unless said
--   slices.scan(command, key, cursor, most, load)
--                                    what HSCAN or ZSCAN finds from a cursor on, about so many, and the next cursor
local slices = {}

slices.BYTES = 512 * 1024 -- of bodies that one call moves: 4 ms
local AT_ONCE, DEEP_AT_ONCE = 3, 8 -- entries of unknown size that are read at once

function slices.load(bytes, alone, step)
    local left = bytes or slices.BYTES
    return {all = left, left = left, n = 0, alone = alone ~= false, step = min(step or 1, AT_ONCE), at_once = AT_ONCE}
end

function slices.deep_load()
    local load = slices.load()
    load.at_once = DEEP_AT_ONCE
    return load
end

function slices.is_full(load) return load.left <= 0 and not load.alone end

function slices.fits(load, size)
    if size > load.left and not load.alone then
        load.left = 0
        return false
    end
    load.left, load.n, load.alone = load.left - size, load.n + 1, false
    return true
end

-- Returns as many as are likely to fit.
local function next_step(load, at_once)
    local used = load.all - load.left + 1
    if load.left * load.n >= at_once * used then return at_once end -- mostly: no function is called
    return max(1, floor(load.left * load.n / used))
end

local function get(command, key, first, last, backwards)
    if backwards then return call(command, key, us(-last - 1), us(-first - 1)) end
    return call(command, key, digits(first), digits(last))
end

-- Appends what was got to the n entries of a list, as far as it fits; from the end of what was got where backwards. Returns how many that were. It is
-- called for each job there is.
local function append_fitting(entries, n, got, load, backwards)
    local count, left, added = #got, load.left, 0
    for i = backwards and count or 1, backwards and 1 or count, backwards and -1 or 1 do
        local entry = got[i]
        local rest = left - #entry
        if rest < 0 and not (load.alone and added == 0) then
            left = 0
            break
        end
        left, added = rest, added + 1
        entries[n + added] = entry
    end
    load.left, load.alone, load.n = left, load.alone and added == 0, load.n + added
    return added
end

local function read(command, key, first, most, load, backwards, at_once)
    local entries, n, size = {}, 0, at_once or load.step
    at_once = at_once or load.at_once
    while n < most and not slices.is_full(load) do
        local step = min(size, most - n)
        local got = get(command, key, first + n, first + n + step - 1, backwards)
        local count = append_fitting(entries, n, got, load, backwards)
        n = n + count
        if #got < step or count < #got then return entries, count == #got end
        size = next_step(load, at_once)
        load.step = min(size, load.at_once)
    end
    return entries, false
end

function slices.read(command, key, first, most, load, at_once) return read(command, key, first, most, load, false, at_once) end

function slices.last(key, most, load, passed, command, at_once) return read(command or 'LRANGE', key, passed or 0, most, load, true, at_once) end

function slices.scan(command, key, cursor, most, load)
    local found, first = {}, load.n
    repeat
        local page = call(command, key, cursor, 'COUNT', digits(min(load.step, most)))
        cursor = page[1]
        for i = 1, #page[2], 2 do
            load.left, load.n, load.alone = load.left - #page[2][i] - #page[2][i + 1], load.n + 1, false
            found[#found + 1], found[#found + 2] = page[2][i], page[2][i + 1]
        end
        load.step = next_step(load, load.at_once)
    until cursor == '0' or load.left <= 0 or load.n - first >= most
    return found, cursor
end

return slices

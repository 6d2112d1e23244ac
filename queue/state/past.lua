-- past: what shows that Redis has lost data: their birth, and a mark that only grows. All of it is in `about`:
--
--   format of the data, a number; who reads an older one only must not begin
--   birth  made by the first worker that begins; another one than a worker knows: Redis began empty, or was flushed
--   lost   when a worker found that
--   mark   the time of the last step of a worker (it began, sent a heartbeat, leased something, took the duty), us. When the clock is set
--          back, it waits for the clock
--   gaps   "<from>-<to> ...": two marks with none between them, the second of a worker that began. A worker that was answered
--          a mark from between them knows what Redis does not: Redis went back
--   back   "<from> <to> <at>": that was found at that time; what was written from one mark to the other is lost, at least
--
local past = {}

local FORMAT = 1 -- a version of Weir that keeps data as this one cannot read them has the next number
local GAPS_MOST = 32 -- the longest of a day
local DAY_US = 86400 * 1000000
local CLOCK_US = 1000000 -- a mark that is so far ahead is of a clock that was set back

-- What keeps a worker from beginning; nil: nothing.
function past.wrong()
    local format_there = call('HGET', P .. 'about', 'format')
    if not format_there or tonumber(format_there) == FORMAT then return nil end
    return format('format: the data of this namespace have format %s, and this version of Weir reads %d; run the version that wrote them',
                  format_there, FORMAT)
end

-- A step of a worker that is about to be answered `now`. Nothing may fail here: leases are written by then.
function past.mark()
    local mark = tonumber(call_safe('HGET', P .. 'about', 'mark')) or 0
    if now > mark then
        call_safe('HSET', P .. 'about', 'mark', us(now))
    elseif mark - now > CLOCK_US then
        call_safe('HDEL', P .. 'about', 'gaps') -- times come again
    end
end

local function gaps_read(text)
    local gaps = {}
    for from, to in text:gmatch('(%d+)-(%d+)') do
        from, to = tonumber(from), tonumber(to)
        if now - to < DAY_US then gaps[#gaps + 1] = {from = from, to = to} end
    end
    return gaps
end

local function by_length(a, b) return a.to - a.from > b.to - b.from end

local function gaps_write(gaps)
    local texts = {}
    sort(gaps, by_length)
    for i = 1, min(#gaps, GAPS_MOST) do texts[i] = us(gaps[i].from) .. '-' .. us(gaps[i].to) end
    if #texts > 0 then call('HSET', P .. 'about', 'gaps', concat(texts, ' ')) end
end

-- The gap that a worker begins behind; it has been answered `seen`.
local function gap_before(mark, seen)
    local to = max(now, seen + 1, mark)
    call('HSET', P .. 'about', 'mark', us(to))
    return to > mark and {from = mark, to = to} or nil
end

-- What a worker that was answered `seen` finds; others may have found the same, and known less.
local function judge(gaps, seen, back)
    for _, gap in ipairs(gaps) do
        if gap.from < seen and seen < gap.to then
            local from, to, at = match(back, '^(%d+) (%d+) (%d+)$')
            local known = tonumber(from) == gap.from
            back = format('%s %s %s', us(gap.from), us(known and max(seen, tonumber(to)) or seen), known and at or us(now))
            call('HSET', P .. 'about', 'back', back)
            return back
        end
    end
    return back
end

-- A worker begins that knows that birth ('': none) and was answered the mark `seen` last. lives: Redis knows it. Returns the birth, and
-- back or ''.
function past.begin(worker, known, seen, lives)
    local f = call('HMGET', P .. 'about', 'birth', 'mark', 'gaps', 'back')
    local birth, mark = f[1] or lives and known ~= '' and known or us(now) .. '.' .. worker, tonumber(f[2] or nil)
    if not f[1] then call('HSET', P .. 'about', 'birth', birth, 'format', digits(FORMAT)) end
    if known ~= '' and known ~= birth then
        call('HSET', P .. 'about', 'lost', us(now))
        seen = 0
    end
    local gaps = gaps_read(f[3] or '')
    gaps[#gaps + 1] = mark and gap_before(mark, seen) or nil
    gaps_write(gaps)
    past.mark()
    return birth, judge(gaps, seen, f[4] or '')
end

-- That Redis went back, '': it did not.
function past.back()
    local back = call_safe('HGET', P .. 'about', 'back')
    return type(back) == 'string' and back or ''
end

return past

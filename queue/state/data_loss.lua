-- data_loss: what shows that Redis has lost data: their birth, and a mark that only grows. All of it is in `about`:
--
--   format the newest that is written here, and oldest, that a worker still writes: a version that does not read both must not begin
--   birth  made by the first worker that begins; another one than a worker knows: Redis began empty, or was flushed
--   lost   when a worker found that
--   mark   the time of the last step of a worker (it began, sent a heartbeat, leased something, took the duty), us. When the clock is set
--          back, it waits for the clock
--   claimed  the mark of the last claim that leased something or took the duty: only to be shown
--   gaps   "<from>-<to> ...": two marks with none between them, the second of a worker that began. A worker that was answered
--          a mark from between them knows what Redis does not: Redis went back
--   back   "<from> <to> <at>": that was found at that time; what was written from one mark to the other is lost, at least
--
local data_loss = {}

local GAPS_MOST = 32 -- the longest of a day
local DAY_US = 86400 * 1000000
local CLOCK_US = 1000000 -- a mark that is so far ahead is of a clock that was set back

-- Returns the error that keeps a worker from beginning; nil: nothing does.
function data_loss.wrong()
    local f = call('HMGET', P .. 'about', 'format', 'oldest')
    local newest, oldest = tonumber(f[1] or 0), tonumber(f[2] or f[1] or FORMAT_OLDEST)
    if not newest or newest > FORMAT_NEWEST then return format_error(f[1]) end
    if not oldest or oldest < FORMAT_OLDEST then
        return refuse('format: a worker here still writes format %s, and this version of Weir reads %d and newer; first run the version before it alone',
                      f[2], FORMAT_OLDEST)
    end
    return newer_format()
end

local WORKERS_MOST = 1000

-- Returns the oldest format that a worker writes.
local function oldest_written()
    local oldest = FORMAT_WRITTEN
    for _, id in ipairs(call('ZRANGE', P .. 'workers', 0, WORKERS_MOST - 1)) do
        local info = call_safe('HGET', P .. 'active:' .. id, '@')
        oldest = min(oldest, tonumber(match(type(info) == 'string' and info or '', '"format":(%d+)') or 1))
    end
    return oldest
end

-- Says which format a worker that begins writes, also to those who read only older ones.
local function note_format()
    local f = call('HMGET', P .. 'about', 'format', 'oldest')
    local newest, oldest = tonumber(f[1] or 0), tonumber(f[2] or nil)
    if newest == FORMAT_WRITTEN and oldest == FORMAT_WRITTEN then return end
    for n = max(2, newest + 1), FORMAT_WRITTEN do call('SET', P .. 'format:' .. n, us(now)) end
    call('HSET', P .. 'about', 'format', digits(max(newest, FORMAT_WRITTEN)), 'oldest', digits(oldest_written()))
end

local marked_us, marked_of -- the mark that was written last, and the prefix

-- Marks a step of a worker that is about to be answered `now`; claims: a claim made it. Nothing may fail here: leases are written by then.
function data_loss.mark(claims)
    local mark = marked_of == P and is_recent(marked_us) and marked_us or tonumber(call_safe('HGET', P .. 'about', 'mark')) or 0
    if now > mark then
        local at = us(now)
        if claims then
            call_safe('HSET', P .. 'about', 'mark', at, 'claimed', at)
        else
            call_safe('HSET', P .. 'about', 'mark', at)
        end
        marked_us, marked_of = now, not VIRTUAL and P
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

-- Finds the gap that a worker begins behind; it has been answered `seen`.
local function gap_before(mark, seen)
    local to = max(now, seen + 1, mark)
    marked_of = nil -- it may be ahead of the clock
    call('HSET', P .. 'about', 'mark', us(to))
    return to > mark and {from = mark, to = to} or nil
end

-- Judges what a worker finds that was answered `seen`; others may have found the same, and known less.
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

-- Begins a worker that knows that birth ('': none) and was answered the mark `seen` last. lives: Redis knows the worker. Returns the birth, and
-- back or ''.
function data_loss.begin(worker, known, seen, lives)
    local f = call('HMGET', P .. 'about', 'birth', 'mark', 'gaps', 'back')
    local birth, mark = f[1] or lives and known ~= '' and known or us(now) .. '.' .. worker, tonumber(f[2] or nil)
    if not f[1] then call('HSET', P .. 'about', 'birth', birth) end
    note_format()
    if known ~= '' and known ~= birth then
        call('HSET', P .. 'about', 'lost', us(now))
        seen = 0
    end
    local gaps = gaps_read(f[3] or '')
    gaps[#gaps + 1] = mark and gap_before(mark, seen) or nil
    gaps_write(gaps)
    data_loss.mark()
    return birth, judge(gaps, seen, f[4] or '')
end

local function text_of(field)
    local text = call_safe('HGET', P .. 'about', field)
    return type(text) == 'string' and text or ''
end

-- Says that Redis went back; '': it did not.
function data_loss.back() return text_of('back') end

-- Returns when a claim last leased something or took the duty; '': never.
function data_loss.claimed() return text_of('claimed') end

return data_loss

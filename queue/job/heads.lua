-- heads: an entry is a job on its way, in a lane or a lease: its body, behind a head once there is something to remember.
--
--   entry  = body | "@" attempts "," interrupted "," throttled attrs ";" body
--          | "@" stamp body    of a job that is new: what most entries are, at half the length. No digit of a stamp is a comma
--   attrs  = any of: ",s" secret, first (see sign)  ",b" batch, that counts it
--            ",u" key, locked until it ends    ",w" key, locked until it starts
--            ",e" us "@" worker ":" reason, escaped, of each failed attempt, one behind the other, the last one first; no worker: not known. Behind it
--            ",r" us, how long it ran, where that is known
--            ",c" us, of a lease: it was cancelled
--            ",t" when it was enqueued, ",d" since when it waits: see stamp
--            ",a" us, of a dead job, and a done one that is kept: when its last attempt started
--            ",g" slot "." index, of the token under which it was taken from its lane last, and came back
--            ",h" number, of a suspect: so many run together

local heads = {}

heads.STAMP = '^@' .. ('[%w_-]'):rep(7) .. '{' -- an entry whose head is a stamp

local STAMP = heads.STAMP
local AT = 64 -- "@"

-- What ends, or comes back, together mostly has the same head and reason: what was read or written last is kept.

local head, body_at = ' ', 0 -- the head, of a stamp with the bracket behind it, and where the body begins
local head_attempts, head_interrupted, head_throttled, head_attrs = 0, 0, 0, ''

-- Reads a head that is a stamp as the one that says the same at length.
local function read_stamp(entry)
    if not find(entry, STAMP) then return nil end
    head, body_at = sub(entry, 1, 9), 9
    head_attempts, head_interrupted, head_throttled, head_attrs = 0, 0, 0, ',t' .. sub(entry, 2, 8)
    return 9
end

-- Reads the head of an entry; returns where its body begins; nil: it has no head.
local function read_head(entry)
    if byte(entry) ~= AT then return nil end
    if sub(entry, 1, #head) == head then return body_at end -- find would go on through all of a body
    local attempts, interrupted, throttled, attrs, at = match(entry, '^@(%d+),(%d+),(%d+)([^;]*);()')
    if not at then return read_stamp(entry) end
    head, head_attempts, head_interrupted, head_throttled = sub(entry, 1, at - 1), tonumber(attempts), tonumber(interrupted), tonumber(throttled)
    head_attrs, body_at = attrs, at
    return at
end

function heads.read(entry)
    local at = read_head(entry)
    if not at then return 0, 0, 0, entry, '' end
    return head_attempts, head_interrupted, head_throttled, sub(entry, at), head_attrs
end

-- Returns the attrs of an entry, and where its body begins: a body may be large, and is not copied.
function heads.attrs_of(entry)
    local at = read_head(entry)
    return at and head_attrs or '', at or 1
end

local counts, counts_attempts, counts_interrupted, counts_throttled

function heads.write(attempts, interrupted, throttled, body, attrs)
    if attempts ~= counts_attempts or interrupted ~= counts_interrupted or throttled ~= counts_throttled then
        counts = format('@%d,%d,%d', attempts, interrupted, throttled)
        counts_attempts, counts_interrupted, counts_throttled = attempts, interrupted, throttled
    end
    return counts .. (attrs or '') .. ';' .. body
end

-- Returns one of the attrs, by its letter; nil: it is not there.
function heads.attr(attrs, letter)
    local mark = ',' .. letter
    return find(attrs, mark, 1, true) and match(attrs, mark .. '([^,]*)')
end

-- Of a long reason the beginning is kept, which says how it ended, and the end: the last line of a traceback says what was wrong.
local REASON_HEAD, REASON_TAIL = 100, 200

local function ends_of(reason)
    if #reason <= REASON_HEAD + REASON_TAIL then return reason end
    return sub(reason, 1, REASON_HEAD):gsub('[\192-\255]?[\128-\191]*$', '') .. ' ... '
        .. sub(reason, -REASON_TAIL):gsub('^[\128-\191]+', '')
end

local last_reason, last_escaped -- jobs that end together mostly have the same one

local FAILURES_MOST, FAILURES_BYTES = 10, 1500 -- that are kept, and that a head has at most before one more

-- Takes off the oldest failures, which stand last, so that there is room for one more.
local function make_room(attrs)
    local _, kept = attrs:gsub(',e', '')
    while kept > 0 and (kept >= FAILURES_MOST or #attrs > FAILURES_BYTES) do
        local newer, other = match(attrs, '^(.*),e[^,]*(.*)$')
        attrs, kept = newer .. other:gsub('^,r%d+', ''), kept - 1
    end
    return attrs
end

-- Returns attrs with a failure of this moment as the last one, cut in its middle; '': nothing is known of it but when and where. ran: how long that
-- attempt ran, us; nil: not known.
function heads.failed(attrs, reason, worker, ran)
    local at = find(attrs, ',e', 1, true)
    if reason ~= last_reason then
        last_reason, last_escaped = reason, ends_of(reason):gsub('[%c,;%%]', function(c) return format('%%%02X', byte(c)) end)
    end
    local failure = ',e' .. us(now) .. '@' .. worker .. ':' .. last_escaped .. (ran and ',r' .. us(ran) or '')
    if not at then return attrs .. failure end
    attrs = make_room(attrs)
    return sub(attrs, 1, at - 1) .. failure .. sub(attrs, at)
end

-- Returns the head of an entry after one attempt more, which ran so long (us; nil: not known) and failed for that reason; nil: it was the last one,
-- and attrs say no more than when it started.
function heads.attempted(entry, reason, worker, ran)
    local attempts, interrupted, throttled, _, attrs = heads.read(entry)
    attrs = reason and heads.failed(attrs, reason, worker, ran) or heads.started(attrs, ran)
    return heads.write(attempts + 1, interrupted, throttled, '', attrs)
end

-- Returns attrs that say when an attempt started which ran so long until now, us; nil: that is not known.
function heads.started(attrs, ran) return ran and attrs .. ',a' .. us(now - ran) or attrs end

local function plain(hex) return char(tonumber(hex, 16)) end

-- Lists the failed attempts that are kept, the last one first: {at = us, worker =, reason =, ran = us} each; nil: not known.
function heads.failures(attrs)
    local list = {}
    for at, worker, reason, behind in attrs:gmatch(',e(%d+)@?([%w_.-]*):([^,]*)()') do
        reason = reason ~= '' and reason:gsub('%%(%x%x)', plain) or nil
        list[#list + 1] = {at = tonumber(at), worker = worker ~= '' and worker or nil, reason = reason, ran = tonumber(match(attrs, '^,r(%d+)', behind))}
    end
    return list
end

-- Returns when the job failed last, us, and why; nil: it has not.
function heads.failure(attrs)
    local last = heads.failures(match(attrs, ',e[^,]*') or '')[1]
    if last then return last.at, last.reason end
end

-- ---- Jobs that come back to their lanes

-- Returns the entry of a job that comes back to its lane; it says when the job was taken from there. Without a limit nothing says that.
function heads.came_back(entry, token)
    local index, slot = match(token, '^%d+%.([%w_-]+)@(%d+)')
    if not slot then return heads.fresh(entry) end
    local attempts, interrupted, throttled, body, attrs = heads.read(entry)
    if find(attrs, ',g', 1, true) then attrs = attrs:gsub(',g[^,]*', '') end
    return heads.write(attempts, interrupted, throttled, body, attrs .. ',g' .. slot .. '.' .. index)
end

local LARGE = 2048 -- bytes: of such an entry it takes less to read the head than to look through all of it

-- Returns the entry of a job that leaves its lanes: it will be taken anew.
function heads.fresh(entry)
    if #entry < LARGE and not find(entry, ',g', 1, true) or not find(entry, '^@%d+,') then return entry end
    local at = find(entry, ';', 1, true) or 1
    local its = sub(entry, 1, at - 1)
    return find(its, ',g', 1, true) and its:gsub(',g[^,]*', '') .. sub(entry, at) or entry
end

-- Returns when a job that came back was taken: its slot, and which lease of a turn it was; nil: it did not come back. The job of a lane that was
-- taken first has the earlier slot, and of one slot the smaller lease.
function heads.taken(entry)
    local slot, index = match(entry, '^@%d+,%d+,%d+[^;]*,g(%d+)%.([%w_-]+)')
    return tonumber(slot), index and heads.index_number(index)
end

-- Turns an index into a number: `<` on strings asks the server's locale.
function heads.index_number(index)
    local number = 0
    for i = 1, #index do number = number * 128 + byte(index, i) end
    return number
end

-- ---- Suspects: jobs whose worker died while they ran, until they end in some way

-- Returns how many suspects may run together with this one; nil: it is none, or one that an older version left, which runs alone.
function heads.together(entry) return read_head(entry) and tonumber(heads.attr(head_attrs, 'h')) or nil end

-- Returns the attrs of a job whose worker died with so many: the next time half of them run together. deaths: there were so many, which is more than
-- what counts as interruptions; nil: it is not.
function heads.suspected(attrs, count, deaths)
    local most = min(count, tonumber(heads.attr(attrs, 'h')) or count)
    return attrs:gsub(',[hk]%d+', '') .. ',h' .. us(ceil(most / 2)) .. (deaths and ',k' .. us(deaths) or '')
end

-- Returns the entry of a job that is a suspect no more.
function heads.cleared(entry)
    if not heads.together(entry) then return entry end
    return (entry:gsub('^@[^;]*', function(head) return (head:gsub(',[hk]%d+', '')) end))
end

return heads

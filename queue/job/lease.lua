-- lease: what a job looks like on its way: entries in lanes and leases, tokens of leases, records in later and dead.
--
--   entry  = body | "@" attempts "," interrupted "," throttled attrs ";" body      once there is something to remember
--   attrs  = any of: ",s" secret, first (see sign)  ",b" batch, that counts it
--            ",u" key, locked until it ends    ",w" key, locked until it starts
--            ",e" us ":" reason, its last failure, escaped    ",c" us, of a lease: it was cancelled
--            ",t" when it was enqueued, ",d" since when it waits: see stamp
--            ",g" slot "." index, of the token under which it was taken from its lane last, and came back
--            ",h" number, of a suspect: so many run together
--   lane   = queue "/" type "/" key                                          key is empty for a type without keys
--            queue "!/" type "/" key                                         where suspects wait: see claim_alone
--   token  = turn "." index [ "@" slot ] [ "*" cost ] [ "+" rules ] "/" lane [ "~" gates ]   unique for one worker instance;
--            slot: when its gates let it start, us; cost: 1 when not there; rules: a digest of those that held it;
--            gates: "," between, the concurrency gates that it took
--   record = header "\n" entry                                               the header makes equal entries differ
--            later: "q " tag " " queue " " type  a scheduled job, for its queue
--                   "l " tag " " lane          a retried job, for the head of its lane
--            dead:  tag " " lane " " reason

local lease = {}

local AT = 64 -- "@"

-- ---- Entries. What ends, or comes back, together mostly has the same head, lane and reason: what was read or written last is kept.

local head, head_attempts, head_interrupted, head_throttled, head_attrs = ' ', 0, 0, 0, ''

-- Reads the head of an entry; returns where its body begins; nil: it has no head.
local function read_head(entry)
    if byte(entry) ~= AT then return nil end
    if sub(entry, 1, #head) == head then return #head + 1 end
    local attempts, interrupted, throttled, attrs, at = match(entry, '^@(%d+),(%d+),(%d+)([^;]*);()')
    if not at then return nil end
    head, head_attempts, head_interrupted, head_throttled = sub(entry, 1, at - 1), tonumber(attempts), tonumber(interrupted), tonumber(throttled)
    head_attrs = attrs
    return at
end

function lease.entry_read(entry)
    local at = read_head(entry)
    if not at then return 0, 0, 0, entry, '' end
    return head_attempts, head_interrupted, head_throttled, sub(entry, at), head_attrs
end

-- Returns the attrs of an entry, and where its body begins: a body may be large, and is not copied.
function lease.head_read(entry)
    local at = read_head(entry)
    return at and head_attrs or '', at or 1
end

local counts, counts_attempts, counts_interrupted, counts_throttled

function lease.entry_write(attempts, interrupted, throttled, body, attrs)
    if attempts ~= counts_attempts or interrupted ~= counts_interrupted or throttled ~= counts_throttled then
        counts = format('@%d,%d,%d', attempts, interrupted, throttled)
        counts_attempts, counts_interrupted, counts_throttled = attempts, interrupted, throttled
    end
    return counts .. (attrs or '') .. ';' .. body
end

-- Returns one of the attrs, by its letter; nil: it is not there.
function lease.attr(attrs, letter)
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
local failed_attrs, failed_us, failed

-- Returns attrs with a failure of this moment as the last one, cut in its middle; '': nothing is known of it.
function lease.failed(attrs, reason)
    if attrs == failed_attrs and reason == last_reason and now == failed_us then return failed end
    local before = attrs
    if find(attrs, ',e', 1, true) then attrs = attrs:gsub(',e[^,]*', '') end
    if reason == '' then return attrs end
    if reason ~= last_reason then
        last_reason, last_escaped = reason, ends_of(reason):gsub('[%c,;%%]', function(c) return format('%%%02X', byte(c)) end)
    end
    failed_attrs, failed_us, failed = before, now, attrs .. ',e' .. us(now) .. ':' .. last_escaped
    return failed
end

-- Returns when the job failed last, us, and why; nil: it has not.
function lease.failure(attrs)
    local at, reason = (lease.attr(attrs, 'e') or ''):match('^(%d+):(.*)$')
    if not at then return nil end
    return tonumber(at), (reason:gsub('%%(%x%x)', function(hex) return char(tonumber(hex, 16)) end))
end

local behind, behind_lane -- what stands behind the head of the token that was read last; its lane, nil: it is none

-- Returns the lane of a token. Each pattern takes all of its text at the first try: one that must try again takes ten times as long.
function lease.lane_of(token)
    local at = match(token, '^%d+%.[%w_-]+@?%d*%*?%d*%+?%x*/()')
    local text = at and sub(token, at)
    if text ~= behind then
        local lane, gates = match(text or '', '^([%w_.-]+!?/[%w_.-]+/[%w_.-]*)(.*)$')
        behind, behind_lane = text, lane and (gates == '' or find(gates, '^~[%w_.#/,-]+$')) and lane or nil
    end
    return text and behind_lane
end

function lease.slot_of(token) return tonumber(token:match('^[^/]-@(%d+)')) or 0 end
function lease.rules_of(token) return token:match('^[^/]-(%+%x+)') or '' end
function lease.cost_of(token) return tonumber(token:match('^[^/]-%*(%d+)')) or 1 end

-- Returns the entry of a job that comes back to its lane; it says when the job was taken from there. Without a limit nothing says that.
function lease.came_back(entry, token)
    local index, slot = match(token, '^%d+%.([%w_-]+)@(%d+)')
    if not slot then return entry end
    local attempts, interrupted, throttled, body, attrs = lease.entry_read(entry)
    if find(attrs, ',g', 1, true) then attrs = attrs:gsub(',g[^,]*', '') end
    return lease.entry_write(attempts, interrupted, throttled, body, attrs .. ',g' .. slot .. '.' .. index)
end

-- Returns the entry of a job that leaves its lanes: it will be taken anew.
function lease.fresh(entry)
    local head = match(entry, '^@%d+,%d+,%d+[^;]*,g%d')
    if not head then return entry end
    local at = find(entry, ';', 1, true)
    return sub(entry, 1, at - 1):gsub(',g[^,]*', '') .. sub(entry, at)
end

-- Returns when a job that came back was taken: its slot, and which lease of a turn it was; nil: it did not come back. The job of a lane that was
-- taken first has the earlier slot, and of one slot the smaller lease.
function lease.taken(entry)
    local slot, index = match(entry, '^@%d+,%d+,%d+[^;]*,g(%d+)%.([%w_-]+)')
    return tonumber(slot), index and lease.index_number(index)
end

-- Turns an index into a number: `<` on strings asks the server's locale.
function lease.index_number(index)
    local number = 0
    for i = 1, #index do number = number * 128 + byte(index, i) end
    return number
end

-- Iterates over the names of the concurrency gates that a token took.
function lease.gates_of(token) return (token:match('~(.*)$') or ''):gmatch('[^,]+') end

-- Returns the queue, type and key of a lane.
function lease.lane_parts(lane) return lane:match('^([^/]+)/([^/]+)/(.*)$') end

-- True for a lane of suspects. The other functions name a lane as one of suspects, and give a lane or a token its usual name.
function lease.is_alone(lane) return find(lane, '!/', 1, true) ~= nil end
function lease.alone(lane) return (lane:gsub('^([^/!]+)!?/', '%1!/')) end
function lease.usual(lane) return find(lane, '!', 1, true) and lane:gsub('^([^/!]+)!/', '%1/') or lane end
function lease.usual_token(token) return (token:gsub('^([^/]+/[^/!]+)!/', '%1/')) end

-- ---- Suspects: jobs whose worker died while they ran, until they end in some way

-- Returns how many suspects may run together with this one; nil: it is none, or one that an older version left, which runs alone.
function lease.together(entry) return read_head(entry) and tonumber(lease.attr(head_attrs, 'h')) or nil end

-- Returns the attrs of a job whose worker died with so many: the next time half of them run together. deaths: there were so many, which is more than
-- what counts as interruptions; nil: it is not.
function lease.suspected(attrs, count, deaths)
    local most = min(count, tonumber(lease.attr(attrs, 'h')) or count)
    return attrs:gsub(',[hk]%d+', '') .. ',h' .. us(ceil(most / 2)) .. (deaths and ',k' .. us(deaths) or '')
end

-- Returns the entry of a job that is a suspect no more.
function lease.cleared(entry)
    if not lease.together(entry) then return entry end
    return (entry:gsub('^@[^;]*', function(head) return (head:gsub(',[hk]%d+', '')) end))
end

-- True for the name of a queue, and of its lanes of suspects.
function lease.is_queue(name) return is_name(name) or name ~= nil and is_name(match(name, '^(.*)!$')) end
function lease.usual_queue(name) return match(name, '^[^!]*') end

-- Returns what stands before the lane in a token.
function lease.token_head(token) return sub(token, 1, (find(token, '/', 1, true) or 0) - 1) end

-- Lists what active:<worker> holds: {token =, entry =, alone = (it ran so), lane = (to which it goes back), queue =, type =} each, and the {token
-- =, entry =} pairs whose token cannot be read.
function lease.list(fields)
    local jobs, unread = {}, {}
    for i = 1, #fields, 2 do
        local job = {token = fields[i], entry = fields[i + 1], lane = lease.lane_of(fields[i])}
        if job.lane then
            job.alone = lease.is_alone(job.lane)
            if lease.together(job.entry) then job.lane = lease.alone(job.lane) end
            job.queue, job.type, job.key = lease.lane_parts(job.lane)
            jobs[#jobs + 1] = job
        elseif job.token ~= '@' then
            unread[#unread + 1] = job
        end
    end
    return jobs, unread
end

-- Counts. It must not fail a script that moves jobs: where the counters are something else, nothing is counted.
function lease.count(name, what, n) return call_safe('HINCRBY', P .. 'stats:' .. name, what, n == 1 and '1' or digits(n)) end

-- Counts each of a list of {type =}, where it has one.
function lease.count_all(jobs, what)
    local counts = {}
    for _, job in ipairs(jobs) do
        if job.type then counts[job.type] = (counts[job.type] or 0) + 1 end
    end
    for name, n in pairs(counts) do lease.count(name, what, n) end
end

-- Returns a counter as a number; 0 where it is no whole number.
function lease.counted(text)
    local n = text and find(text, '^-?[1-9]%d*$') and tonumber(text)
    return n and n > -2 ^ 53 and n < 2 ^ 53 and n or 0
end

return lease

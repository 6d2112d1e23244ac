-- leases: what a worker holds, a part at a time: it may be 65,536 jobs, and Redis serves nobody else meanwhile; and until when
-- nobody loses it.
--
-- The key `reap` keeps when a worker was last heard of and until when nobody is reaped. If the last time is more than half a lease ago, or
-- in the future, there was an outage or the clock was set: every deadline is then late through no fault of its worker, so nobody is
-- reaped for the longest lease of those workers who may have lost theirs by it. With a clock that was set back deadlines move back; see
-- clock for what waits. Behind these two times stands how far reap went through the marks, when that takes more than one call.
--
-- uses: check clock lane lease slices
local leases = {}

leases.MOST = 100      -- leases of dead workers that one heartbeat takes back, about: 5 ms where each has a lane of its own
local SORTED_MOST = 1000 -- tokens of which one call finds the youngest: 1 ms

-- Returns how late a lease was granted, as a number.
local function grant_of(token)
    local turn, index = match(token, '^(%d+)%.([%w_-]+)')
    local at = tonumber(turn or 0)
    for i = 1, 2 do at = at * 128 + (byte(index or '', i) or 0) end
    return at
end

-- Returns the `most` tokens that were granted last.
function leases.youngest(tokens, most)
    local grants, order, found = {}, {}, {}
    for i, token in ipairs(tokens) do grants[i] = grant_of(token) end
    for i, at in ipairs(grants) do order[i] = at end
    sort(order)
    for i, token in ipairs(tokens) do
        if grants[i] >= order[#order - most + 1] then found[#found + 1] = token end
    end
    return found
end

-- Returns about `most` tokens, those that were granted last, so that all go back in the order of their grants. Of a worker that has very many they
-- come by chance, as HSCAN from its beginning finds nothing where much has been taken already.
local function tokens_of(active, count, most)
    if count <= most + 1 then return call('HKEYS', active) end -- "@"
    if count > SORTED_MOST + 1 then return call('HRANDFIELD', active, us(most)) end
    return leases.youngest(call('HKEYS', active), most)
end

-- Sorts tokens, {token =} each, in the order in which they go back: the last ones granted are put before the others.
local function youngest_first(tokens)
    local fields, order = {}, {}
    for i, token in ipairs(tokens) do fields[2 * i - 1], fields[2 * i] = token, '' end
    local jobs, unread = lease.list(fields)
    lane.sort_by_grant(jobs)
    for i = #jobs, 1, -1 do order[#order + 1] = jobs[i] end
    for _, job in ipairs(unread) do order[#order + 1] = job end
    return order
end

-- Returns the tokens whose entries fit.
local function fitting(active, tokens, load)
    local sizes, bytes, fit = {}, 0, {}
    for _, token in ipairs(tokens) do
        sizes[token] = call('HSTRLEN', active, token)
        bytes = bytes + sizes[token]
    end
    if bytes <= load.left then
        slices.fits(load, bytes)
        return tokens
    end
    for _, job in ipairs(youngest_first(tokens)) do
        if not slices.fits(load, sizes[job.token]) then break end
        fit[#fit + 1] = job.token
    end
    return fit
end

-- Reads about `most` of what active:<id> holds, as lease.list does, as far as the load goes (nil: all), and how many more there are.
function leases.read(id, most, load)
    local active = P .. 'active:' .. id
    local count, fields = call('HLEN', active), {}
    local tokens = tokens_of(active, count, most)
    if load then tokens = fitting(active, tokens, load) end
    for first = 1, #tokens, 4000 do
        local last = min(first + 3999, #tokens)
        local entries = call('HMGET', active, unpack(tokens, first, last))
        for i = first, last do fields[2 * i - 1], fields[2 * i] = tokens[i], entries[i - first + 1] end
    end
    local jobs, unread = lease.list(fields)
    return jobs, unread, count - call('HEXISTS', active, '@') - #jobs - #unread
end

-- Drops leases, lists as lease.list has them; a worker that has none left is forgotten.
function leases.drop(id, left, ...)
    local active = P .. 'active:' .. id
    if left == 0 then
        call('ZREM', P .. 'workers', id)
        call('DEL', active)
        if not check.wrong_kind('told:' .. id, 'list') then call('DEL', P .. 'told:' .. id) end
        call_safe('ZREM', P .. 'alone', id)
        return
    end
    for _, jobs in ipairs({...}) do
        local tokens = {}
        for i, job in ipairs(jobs) do tokens[i] = job.token end
        push('HDEL', active, tokens)
    end
end

local TOLD_MS = 3600000 -- a worker that has not heard of it by then is not there any more

-- Tells a worker that these jobs of its were cancelled.
function leases.tell(id, tokens)
    if #tokens == 0 or check.wrong_kind('told:' .. id, 'list') then return end
    push('RPUSH', P .. 'told:' .. id, tokens)
    if not VIRTUAL then call('PEXPIRE', P .. 'told:' .. id, TOLD_MS) end
end

local RECALL_MS = 100 -- by then all that was granted far ahead has started

local function tell_to_give_back(id)
    local told = P .. 'told:' .. id
    local length = call_safe('RPUSH', told, '*')
    if type(length) ~= 'number' then return end
    if length > 1 then -- perhaps it has not heard of the last one yet
        call('LREM', told, '0', '*')
        length = call('RPUSH', told, '*')
    end
    if length == 1 and not VIRTUAL then call('PEXPIRE', told, RECALL_MS) end
end

local GROUPS_ASKED = '200' -- groups on a page: 4 us each

-- Tells the workers on duty that run something that what they were granted far ahead may not hold any more: they give it back. It tells a page,
-- from a cursor that begins at '0'; returns where the next page begins, '': that was the last. Who is not told as somebody died half way has
-- started it when RECALL_MS are over.
function leases.recall(cursor)
    local page = call_safe('HSCAN', P .. 'duty', cursor, 'COUNT', GROUPS_ASKED)
    for i = 2, page.err and 0 or #page[2], 2 do
        local id, till = match(page[2][i], '^(%S+) (%d+)')
        local held = till and tonumber(till) > now and call_safe('HLEN', P .. 'active:' .. id)
        if type(held) == 'number' and held > 1 then tell_to_give_back(id) end -- "@" is always there
    end
    return (page.err or page[1] == '0') and '' or page[1]
end

function leases.recall_all()
    local cursor = '0'
    repeat cursor = leases.recall(cursor) until cursor == ''
end

-- ---- The clock

local function follow_clock(back_us)
    for _, id in ipairs(call('ZRANGE', P .. 'workers', 0, -1)) do call('ZINCRBY', P .. 'workers', us(-back_us), id) end
    clock.set_back(back_us)
end

local WORKERS_MOST = 1000 -- workers whose leases are looked at, those of the earliest deadlines: 2 ms

-- Returns the lease that a worker says it has; 0: it says none.
local function lease_of(id)
    local info = call_safe('HGET', P .. 'active:' .. id, '@')
    local seconds = type(info) == 'string' and tonumber(match(info, '"lease":([%d.]+)')) or 0
    return floor(seconds * 1000000)
end

-- Returns the longest lease of a worker that may be late after such a silence.
local function longest_lease(silence_us, own_us)
    local longest = own_us
    for _, id in ipairs(call('ZRANGE', P .. 'workers', 0, WORKERS_MOST - 1)) do
        local of_worker = lease_of(id)
        if of_worker / 2 < silence_us then longest = max(longest, of_worker) end
    end
    return longest
end

-- Notes that a worker is heard of. Returns until when nobody is reaped, and how far the marks were gone through, which leases.heard keeps; and
-- whether the clock was set back.
function leases.follow(lease_us)
    local last, till, from = (call('GET', P .. 'reap') or ''):match('^(%d+) (%d+) ?(%d*)$')
    last, till = tonumber(last or 0), tonumber(till or 0)
    if now < last then follow_clock(last - now) end
    clock.follow()
    local silence_us = now < last and huge or now - last
    if silence_us > lease_us / 2 then
        till = now + longest_lease(silence_us, lease_us)
    elseif till > now + lease_us then
        till = min(till, now + longest_lease(huge, lease_us)) -- no lease is longer, whatever stands in the key
    end
    return till, from or '', now < last
end

function leases.heard(till, from)
    call('SET', P .. 'reap', us(now) .. ' ' .. us(till) .. (from ~= '' and ' ' .. from or ''))
end

-- Notes that a worker is heard of by a claim that takes or renews the duty, so that a clock that was set back is noticed in time. Returns whether
-- it was set back.
function leases.claimed(worker)
    local lease_us = lease_of(worker)
    if lease_us < 1 then return false end
    local till, from, is_back = leases.follow(lease_us)
    leases.heard(till, from)
    return is_back
end

return leases

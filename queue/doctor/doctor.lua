-- doctor: looks at one page of all that a namespace has, and says what is not as it must be.
--
-- Who looks begins with the place '' and goes through each place from '0' until its cursor is '0' again; a page names further
-- places: keys with too many members for one page. Each page is judged within this call, so workers may go on meanwhile;
-- what seems wrong is to be looked at again (doctor_again).
--
-- KEYS[1] prefix
-- ARGV: now, place ('': all keys; else a key that was named), cursor, most (keys or members of the page, 1 to 1000)
-- reply: [ cursor, bytes that were read, keys of ours, [place, ...], [family, name, kind, in words, ...], [type, what, n, ...],
--          [gate with jobs in flight, ...], [limit that gates are named after and that is not there, ...] ]
--        what: lanes (jobs in lanes), leased, queue (scheduled for their queue), lane (for their lane), seen (0)
-- writes: nothing
-- uses: doctor_judge lease rates slices

local INLINE = 8      -- members that are looked at with their key
local TOKENS = 1000   -- the same for leases, of which only the tokens are read

local judge, key_parts = doctor_judge.look, doctor_judge.key_parts

local places, findings, sums, gates, gone, limits_known, bytes, ours

local function look_at(family, name)
    local kind, text = judge(family, name)
    if kind then
        local n = #findings
        findings[n + 1], findings[n + 2], findings[n + 3], findings[n + 4] = family, name, kind, text
    end
    return kind
end

-- What need not be looked at again.
local function note(kind, ...)
    local n = #findings
    findings[n + 1], findings[n + 2], findings[n + 3], findings[n + 4] = 'note', '', kind, format(...)
end

local function sum(kind, what, n)
    local of_kind = sums[kind] or {}
    sums[kind] = of_kind
    of_kind[what] = (of_kind[what] or 0) + n
end

local function note_limit(gate_name)
    local limit = match(gate_name, '^([^#]+)#')
    if not limit or limits_known[limit] then return end
    limits_known[limit] = true
    if call('HEXISTS', P .. 'limits', limit) == 0 then gone[#gone + 1] = limit end
end

-- ---- Members of keys: member(rest of the key's name, member)

local member = {}

function member.ring(name, key) look_at('ringed', name .. '/' .. key) end
function member.wait(name, node) look_at('waiter', name .. ' ' .. node) end
function member.credit(name, key) look_at('credit', name .. '/' .. key) end
function member.held(queue, kind)
    if look_at('held', queue .. '/' .. kind) then return end
    note('held', 'type %s of queue %s is held: no worker that looked can run it', kind, queue)
end
function member.wake(queue, gate_name)
    if gate_name ~= '*' then look_at('wake', queue .. ' ' .. gate_name) end
end
function member.sleep(queue, gate_name) look_at('sleep', queue .. ' ' .. gate_name) end
function member.workers(_, id) look_at('worker', id) end
function member.limits(_, name) look_at('limit', name) end
function member.schedules(_, name) look_at('schedule', name) end
function member.batches(_, name) look_at('batches', name) end
function member.about(_, field) look_at('about', field) end
function member.duty(_, group) look_at('duty', group) end

function member.types(_, name)
    sum(name, 'seen', 0)
    look_at('use', name)
    local ok, keyless = pcall(rates.keyless, name)
    if ok and keyless and 2 * keyless.jobs >= keyless.of then
        note('keyless', 'type %s: %d of %d jobs had nothing at %s, by which limit %s tells them apart: they share one gate', name,
             keyless.jobs, keyless.of, keyless.path, keyless.limit)
    end
end

function member.later(_, record)
    local header = match(record, '^[^\n]*')
    if look_at('record', header) then return end
    local kind, of_lane = match(header, '^q %S+ %S+ (%S+)$'), match(header, '^l %S+ (.*)$')
    if kind then sum(kind, 'queue', 1) end
    if of_lane then
        local _, name = lease.lane_parts(of_lane)
        sum(name, 'lane', 1)
    end
    if sub(header, 1, 2) == 's ' then look_at('occurrence', sub(header, 3)) end
end

function member.active(_, token)
    if token == '@' then return end
    local of_lane = lease.lane_of(token)
    if not of_lane then return note('token', 'a lease cannot be read: %s', sub(token, 1, 200)) end
    local _, kind = lease.lane_parts(of_lane)
    sum(kind, 'leased', 1)
    for name in lease.gates_of(token) do gates[#gates + 1] = name end
end

-- What goes through a kind of key.
local scan = {zset = 'ZSCAN', hash = 'HSCAN'}
-- How many are in it.
local size = {zset = function(key) return call('ZCARD', key) end, hash = function(key) return call('HLEN', key) end}

-- One page of the members of a key; returns the next cursor.
local function look_at_members(key, cursor, most)
    local family, rest, kind = key_parts(key)
    local load = slices.load()
    local page, next_cursor = slices.scan(scan[kind], P .. key, cursor, most, load)
    for i = 1, #page, 2 do member[family](rest, page[i]) end
    bytes = bytes + load.all - load.left
    return next_cursor
end

local function look_at_tokens(key)
    for _, token in ipairs(call('HKEYS', P .. key)) do
        bytes = bytes + #token
        member.active('', token)
    end
end

-- Members now, where they are few; else they are named as a place. Of types, who looks asks first.
local function look_into(key, family, kind)
    if family == 'types' then return end
    local count = size[kind](P .. key)
    if family == 'active' and count <= TOKENS then return look_at_tokens(key) end
    if count > INLINE or family == 'later' and count > 0 then -- its members may be large
        places[#places + 1] = key
        return
    end
    local cursor = '0'
    repeat cursor = look_at_members(key, cursor, 100) until cursor == '0'
end

-- ---- Keys

local of_key = {}

function of_key.queue(name) look_at('queue', name) end
function of_key.stats(name)
    sum(name, 'seen', 0)
    look_at('type', name)
end
function of_key.lane(name)
    local _, kind = lease.lane_parts(name)
    sum(kind, 'lanes', call('LLEN', P .. 'lane:' .. name))
    look_at('lane', name)
end
function of_key.ring(name) look_at('ring', name) end
function of_key.wake(name)
    look_at('queue', name)
    look_at('star', name)
end
function of_key.held(name) look_at('queue', name) end
function of_key.sleep(name) look_at('star', name) end
function of_key.active(id) look_at('active', id) end
function of_key.batch(name) look_at('batch', name) end
function of_key.aside(name) look_at('aside', name) end
function of_key.changes()
    for limit, last in pairs(doctor_judge.last_changes()) do
        if last.what == 'set' and call('HEXISTS', P .. 'limits', limit) == 0 then look_at('change', limit) end
    end
end

function of_key.dead() note('dead', '%d jobs are dead', call('ZCARD', P .. 'dead')) end

function of_key.wait(name)
    look_at('wait', name)
    note_limit(match(name, '/(.*)$'))
end

-- Jobs in flight: a concurrency gate's word, or "~n" behind those of one that was one before. States may be long.
function of_key.gate(name)
    local rule, first = match(call('GETRANGE', P .. 'gate:' .. name, '0', '199'), '^%d+ %d+ %S+ %S+ (%S+) (%d+)')
    local flight
    if rule and find(rule, 'concurrency:', 1, true) == 1 then
        flight = first
    else
        flight = match(call('GETRANGE', P .. 'gate:' .. name, '-20', '-1'), '~(%d+)$')
    end
    if flight and flight ~= '0' then gates[#gates + 1] = name end
end

local function look_at_key(key)
    ours = ours + 1
    if look_at('key', key) then return end
    local family, rest, kind = key_parts(key)
    if not family then return end -- it has gone meanwhile
    if of_key[family] then
        local ok, raised = pcall(of_key[family], rest)
        if not ok and not doctor_judge.is_wrong_kind(raised) then note('error', '%s: %s', key, tostring(raised.err or raised)) end
    end
    if member[family] then look_into(key, family, kind) end
end

-- Of the namespace's prefix what SCAN would read as a pattern.
local function pattern() return P:gsub('[%[%]*?\\]', '\\%0') .. '*' end

local function look_at_keys(cursor, most)
    local page = call('SCAN', cursor, 'MATCH', pattern(), 'COUNT', us(most))
    for _, key in ipairs(page[2]) do look_at_key(sub(key, #P + 1)) end
    return page[1]
end

local function flat_sums()
    local list = {}
    for kind, of_kind in pairs(sums) do
        for what, n in pairs(of_kind) do
            list[#list + 1], list[#list + 2], list[#list + 3] = kind, what, n
        end
    end
    return list
end

local function doctor(ARGV)
    local place, cursor, most = ARGV[2], ARGV[3], tonumber(ARGV[4])
    if not (cursor and find(cursor, '^%d+$') and is_whole(most, 1)) or most > 1000 then
        return refuse('doctor: wants now, place, cursor, most from 1 to 1000')
    end
    local family, _, kind = key_parts(place)
    if place ~= '' and not member[family or ''] then return refuse('doctor: %s is no place', place) end
    places, findings, sums, gates, gone, limits_known, bytes, ours = {}, {}, {}, {}, {}, {}, 0, 0
    local next_cursor = '0'
    if place == '' then
        next_cursor = look_at_keys(cursor, most)
    elseif call('TYPE', P .. place).ok == kind then
        next_cursor = look_at_members(place, cursor, most)
    end
    return {next_cursor, bytes, ours, places, findings, flat_sums(), gates, gone}
end

return doctor

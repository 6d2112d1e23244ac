-- doctor: looks at one page of all that a namespace has, and says what is not as it must be.
--
-- The caller goes through the place '', which is all keys, and through each place that a page names: a key with too many members for
-- one page. Each page is judged within this call, so workers may go on meanwhile. What seems wrong is looked at again (doctor_again).
--
-- ARGV: now, place ('': all keys; else a key that was named), most (keys or members of the page, 1 to 1000), cursor (that the last
--       page said; none to begin)
-- role: viewer
-- reply: JSON: next: the cursor, unless this was the last page; bytes that were read; keys of ours; places; suspects: things to look
--        at again; gates: the same of those that count jobs in flight; strangers: the same, and the gate of others at
--        which each waits; found: what needs no second look, as doctor_faults.find says it; sums: by type lanes, leased, later (jobs in
--        lanes, leased, and in later), before (its counters, where place is types)
-- writes: nothing
-- uses: doctor_faults doctor_judge lane_names lease rates slices

local INLINE = 8      -- members that are looked at with their key
local TOKENS = 1000   -- the same for leases, of which only the tokens are read

local key_parts, count, note = doctor_judge.key_parts, doctor_judge.count, doctor_faults.note

local page, listed -- of this call

local function keep(list, what) page[list][#page[list] + 1] = what end

local function keep_once(list, what)
    if not listed[what] then keep(list, what) end
    listed[what] = true
end

local function suspect(thing) keep_once('suspects', thing) end
local function keep_gate(name) keep_once('gates', 'slots ' .. name) end

-- Looks whether that thing seems wrong.
local function look_at(family, name)
    if not doctor_judge.look(family, name) then return false end
    suspect(family .. ' ' .. name)
    return true
end

-- Where a key holds something else than it should, that key is a finding, and what needs it is not looked at.
local function try(about, f, ...)
    local fault, text = doctor_judge.try(f, ...)
    if fault == 'error' then keep('found', note('error', about .. ': ' .. text)) end
end

local function sum(kind, what, n)
    local of_kind = page.sums[kind] or {lanes = 0, leased = 0, later = 0}
    page.sums[kind] = of_kind
    of_kind[what] = of_kind[what] + n
end

-- ---- Members of keys: member(rest of the key's name, member)

local member = {}

local function listed_in(family) return function(rest, name) look_at('listed', family .. ':' .. rest .. ' ' .. name) end end
local function as_thing(family) return function(_, name) look_at(family, name) end end

member.ring, member.credit, member.sleep = listed_in 'ring', listed_in 'credit', listed_in 'sleep'
member.workers, member.limits, member.schedules, member.about = as_thing 'worker', as_thing 'limit', as_thing 'schedule', as_thing 'about'

function member.batches(_, name) look_at('listed', 'batches ' .. name) end

function member.wake(queue, gate_name)
    if gate_name ~= '*' then look_at('listed', 'wake:' .. queue .. ' ' .. gate_name) end
end

function member.wait(place, waiter)
    if look_at('listed', 'wait:' .. place .. ' ' .. waiter) then return end
    local thing, gate_name = doctor_judge.stranger(place, waiter)
    if thing then page.strangers[thing] = gate_name end
end

function member.held(queue, kind)
    if not look_at('listed', 'held:' .. queue .. ' ' .. kind) then keep('found', note('held', kind, queue)) end
end

function member.types(_, name)
    if not is_name(name) then return end
    page.sums[name] = {lanes = 0, leased = 0, later = 0, before = doctor_judge.counters(name)}
    look_at('use', name)
    local ok, keyless = pcall(rates.keyless, name)
    if ok and keyless and 2 * keyless.jobs >= keyless.of then
        keep('found', note('keyless', name, keyless.jobs, count(keyless.of, 'job'), keyless.path, keyless.limit))
    end
end

function member.later(_, record)
    local header = match(record, '^[^\n]*')
    local queued = match(header, '^q %S+ [%w_.-]+ ([%w_.-]+)$')
    local retried = match(header, '^l %S+ [%w_.-]+!?/([%w_.-]+)/[%w_.-]*$')
    local schedule = match(header, '^s ([%w_.-]+)$')
    if schedule then return look_at('occurrence', schedule) end
    if not queued and not retried then return keep('found', note('record', sub(header, 1, 100))) end
    sum(queued or retried, 'later', 1)
end

function member.active(_, token)
    if token == '@' then return end
    local of_lane = lease.lane_of(token)
    if not of_lane then return keep('found', note('token', sub(token, 1, 200))) end
    local _, kind = lane_names.parts(of_lane)
    sum(kind, 'leased', 1)
    for name in lease.gates_of(token) do keep_gate(name) end
end

-- Looks at a page of the members of a key; returns the next cursor.
local function look_at_members(key, cursor, most)
    local family, rest, kind = key_parts(key)
    local load = slices.load()
    local found, next_cursor = slices.scan(kind == 'zset' and 'ZSCAN' or 'HSCAN', P .. key, cursor, most, load)
    for i = 1, #found, 2 do try(key, member[family], rest, found[i]) end
    page.bytes = page.bytes + load.all - load.left
    return next_cursor
end

local function look_at_tokens(key)
    for _, token in ipairs(call('HKEYS', P .. key)) do
        page.bytes = page.bytes + #token
        member.active('', token)
    end
end

-- Members now, where they are few; else they are named as a place. Of types, who looks asks first.
local function look_into(key, family, kind)
    if family == 'types' then return end
    local members = call(kind == 'zset' and 'ZCARD' or 'HLEN', P .. key)
    if family == 'active' and members <= TOKENS then return look_at_tokens(key) end
    if members > INLINE or family == 'later' and members > 0 then -- its members may be large
        keep('places', key)
        return
    end
    local cursor = '0'
    repeat cursor = look_at_members(key, cursor, 100) until cursor == '0'
end

-- ---- Keys

-- What a key of that family is looked at as, by what stands behind the family.
local as = {
    queue = {'queue'}, held = {'queue'}, wake = {'queue', 'star'}, sleep = {'star'}, stats = {'type'}, lane = {'lane'}, ring = {'ring'},
    wait = {'gate'}, active = {'active'}, batch = {'batch'}, aside = {'aside'}, keys = {'keys'}, types = {'queued'},
}

-- Other things that are to be judged when one of a family is seen.
local also = {}

function also.lane(name)
    local _, kind = lane_names.parts(name)
    sum(kind, 'lanes', call('LLEN', P .. 'lane:' .. name))
end

function also.dead() keep('found', note('dead', count(call('ZCARD', P .. 'dead'), 'dead job'))) end

-- Limits that were set and not removed.
function also.changes()
    local known = {}
    for _, change in ipairs(call('LRANGE', P .. 'changes', '0', '999')) do
        local what, limit, rest = match(change, '"what":"(%a+) ([%w_.-]+) ?(.-)"}$')
        if (what == 'set' or what == 'remove') and not known[limit] then
            known[limit] = true
            local is_gone = what == 'set' and call('HEXISTS', P .. 'limits', limit) == 0
            if is_gone then keep('found', note('limit-lost', limit, (rest:gsub('\\/', '/')))) end
        end
    end
end

-- Does it count jobs in flight: is it one of concurrency, or was one before (~n)? States may be long.
function also.gate(name)
    local rule, first = match(call('GETRANGE', P .. 'gate:' .. name, '0', '199'), '^%d+ %d+ %S+ %S+ (%S+) (%d+)')
    local counts = rule and find(rule, 'concurrency:', 1, true) == 1
    local flight = counts and first or match(call('GETRANGE', P .. 'gate:' .. name, '-20', '-1'), '~(%d+)$')
    if flight and flight ~= '0' then keep_gate(name) end
end

local function look_at_parts(key, family, rest, kind)
    for _, thing in ipairs(as[family] or {}) do look_at(thing, rest) end
    if member[family] then look_into(key, family, kind) end
    if also[family] then also[family](rest) end
end

local function look_at_key(key)
    page.keys = page.keys + 1
    if look_at('key', key) then return end
    local family, rest, kind = key_parts(key)
    if family then try(key, look_at_parts, key, family, rest, kind) end
end

-- Of the namespace's prefix what SCAN would read as a pattern.
local function pattern() return P:gsub('[%[%]*?\\]', '\\%0') .. '*' end

local function look_at_keys(cursor, most)
    local keys = call('SCAN', cursor, 'MATCH', pattern(), 'COUNT', us(most))
    for _, key in ipairs(keys[2]) do look_at_key(sub(key, #P + 1)) end
    return keys[1]
end

local function doctor(ARGV)
    local place, most, cursor = ARGV[2] or '', tonumber(ARGV[3]), ARGV[4] or '0'
    if #ARGV < 3 or not is_whole(most, 1) or most > 1000 or not find(cursor, '^%d+$') then
        return refuse('doctor: wants now, place, most from 1 to 1000, cursor')
    end
    local family, _, kind = key_parts(place)
    if place ~= '' and not member[family or ''] then return refuse('doctor: %s is not a place', place) end
    page, listed = {bytes = 0, keys = 0, places = {}, suspects = {}, gates = {}, strangers = {}, found = {}, sums = {}}, {}
    local last = '0'
    if place == '' then
        last = look_at_keys(cursor, most)
    elseif call('TYPE', P .. place).ok == kind then
        last = look_at_members(place, cursor, most)
    end
    if last ~= '0' then page.next = {last} end
    return answer(page)
end

return doctor

-- batch: what its scripts share: a batch as a row, and the jobs of a paused one that claims set aside.
--
--   batches        zset: name -> created, us
--   halted         hash: "b/<batch>" -> "paused <us>" or "cancelled <us>": claim sets its jobs aside, or drops them
--   aside:<batch>  list of "<lane>\n<entry>": what claim met while it was paused, in that order
--
-- uses: check counters ends lane_names rates slices time_budget types
local batch = {}

local FIELDS = {'total', 'done', 'dead', 'cancelled', 'failed', 'created', 'sealed', 'ended', 'then', 'fired', 'cancel',
                'mark_us', 'mark', 'last_us', 'last', 'types'}

-- Returns "paused", "cancelled" or '', and since when.
function batch.halted(name)
    local halted = call_safe('HGET', P .. 'halted', 'b/' .. name)
    return match(type(halted) == 'string' and halted or '', '^(%a*) ?(%d*)')
end

-- What is known of it, {name =, halted =, since =, aside =, and its fields as they stand there}; nil: there is no such batch.
function batch.row(name)
    local f = call_safe('HMGET', P .. 'batch:' .. name, unpack(FIELDS))
    if not f[1] then return nil end
    local aside = call_safe('LLEN', P .. 'aside:' .. name)
    local row = {name = name, aside = type(aside) == 'number' and aside or 0}
    row.halted, row.since = batch.halted(name)
    for i, field in ipairs(FIELDS) do row[field] = f[i] or nil end
    return row
end

-- What is wrong with the keys that halting and what follows write; nil: nothing.
function batch.wrong(name)
    return check.wrong_kind('batch:' .. name, 'hash') or check.wrong_kind('halted', 'hash')
        or check.wrong_kind('aside:' .. name, 'list')
end

-- Returns {total =, left = (not ended), sealed =, cancelled =}; nil: there is no such batch.
function batch.read(name)
    local f = call('HMGET', P .. 'batch:' .. name, 'total', 'done', 'dead', 'cancelled', 'sealed', 'cancel')
    if not f[1] then return nil end
    local n = {}
    for i = 1, 4 do n[i] = tonumber(f[i] or 0) or 0 end
    return {total = n[1], left = max(0, n[1] - n[2] - n[3] - n[4]), sealed = f[5], cancelled = f[6]}
end

local function read_record(record)
    local ends_at = find(record, '\n', 1, true)
    local queue, kind = lane_names.parts(ends_at and match(sub(record, 1, ends_at - 1), '^(%S+) ?$') or '')
    if is_name(queue) then return {queue = queue, type = kind, entry = sub(record, ends_at + 1)} end
end

local NAMES_MOST = 50 -- queues and types of one page, about: 5 us each, 15 on a slow machine
local READ_US = 700   -- when no more are read: what is done with them takes twice as long
local AT_ONCE = 25    -- records between two looks at that

-- Reads up to `most` of the jobs aside, fewer where they are of many queues and types, the last one first, {queue =, type =, entry =} each, and the
-- records that cannot be read.
function batch.aside(name, most)
    local jobs, unread, known, count, load, passed, all = {}, {}, {}, 0, slices.load(), 0, false
    local function meet(word)
        if not known[word] then known[word], count = true, count + 1 end
    end
    while not all and passed < most and count < NAMES_MOST and not slices.is_full(load) do
        local records
        records, all = slices.last(P .. 'aside:' .. name, min(most - passed, AT_ONCE), load, passed)
        passed = passed + #records
        all = all or time_budget.is_late(READ_US)
        for _, record in ipairs(records) do
            local job = read_record(record)
            if job then jobs[#jobs + 1] = job else unread[#unread + 1] = record end
            if job then
                meet(job.queue .. '/')
                meet(job.type)
            end
        end
    end
    return jobs, unread
end

-- Takes these jobs off the list.
function batch.trim(name, jobs, unread) call('LTRIM', P .. 'aside:' .. name, '0', us(-#jobs - #unread - 1)) end

-- True when jobs of one of its types may differ in what they cost.
local function costs_differ(name)
    local f = call_safe('HMGET', P .. 'batch:' .. name, 'total', 'types')
    if f.err or f[1] == '0' then return false end -- it was begun by a pause
    for kind in (f[2] or '* 1'):gmatch('(%S+) %d+') do
        if kind == '*' or types.read(kind).own_costs then return true end
    end
end

-- Jobs of a batch are not to run now: those for whom gates are closed until later than for those behind them. Has the types that
-- wait looked at, here or as rates.wake has it. Returns what rates.look_on returns: lanes sleep that may be concerned.
function batch.look_again(name)
    rates.wake_at{'*'}
    if not costs_differ(name) then return {}, rates.rest() end
    return rates.look_on('0', '', {})
end

function batch.bury(name, unread)
    for i, record in ipairs(unread) do
        ends.bury('aside:' .. us(now) .. '.' .. i, '//', 'its record in aside:' .. name .. ' cannot be read', record)
    end
end

-- Counts jobs by type, n for each, in that counter.
function batch.count(jobs, what, n)
    local counts = {}
    for _, job in ipairs(jobs) do counts[job.type] = (counts[job.type] or 0) + n end
    for name, all in pairs(counts) do
        if is_name(name) then counters.add(name, what, all) end
    end
end

return batch

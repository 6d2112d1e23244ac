-- settle_failed: jobs whose attempt has failed leave the leases of their worker, for `later` or for `dead`: those together that failed alike. What
-- these have in common is worked out once, as it takes longer than all the rest.
--
--   settle_failed.begin(worker)     a call begins
--   settle_failed.read(ARGV, i, n)  reads what begins with "failed" at ARGV[i], behind n other ends; returns where the next verb stands; nil: it
--                                   is wrong
--   settle_failed.is_any()          has it read any?
--   settle_failed.look(others)      reads their leases, but for those that one of the other ends before them has; returns their tokens, a set
--   settle_failed.wrong()           what is wrong with the keys that are written
--   settle_failed.write()           writes where they go, and ends their leases; returns how many were stale
--
-- uses: bell cancelled check counters ends heads lane_names later_records lease unspent wake
local settle_failed = {}

local MOST = 4000 -- jobs that are announced at once

-- What the verb of a group says.
local VERBS = {retry = {retries = true, counts = 'retry'}, dead = {counts = 'dead'}, wrong = {unstarted = true, counts = 'dead'}}

-- What this call was told: all that it says, and parts: {first, last: where the tokens stand, behind = (so many other ends), groups =}. A group:
-- {first, last, is = (of VERBS), reason =, ran = (how long, us; nil: not known), waits = (how many, and their delay, in turns), least = (delay), is_counted = (by a gate), head_end = (of a token), lane =, queue =, type =,
-- key =}.
local worker, active, words, parts

-- What becomes of them. known: tokens; true: it ends here, false: by another end of this call. later, dead: words of ZADD. Jobs that were cancelled,
-- that give slots back, and {lock, entry, at} of those that hold one; tokens that gates count; how many ends of each kind a type and a batch have.
local known, later, dead, ended, unstarted, locks, counted, type_ends, batch_ends

function settle_failed.begin(of_worker)
    worker, active, parts = of_worker, P .. 'active:' .. of_worker, {}
end

function settle_failed.is_any() return #parts > 0 end

-- Reads the delays of n jobs from ARGV[at] on, and returns the place behind them, the least of them, and how many jobs have which. nil: these are
-- none.
local function read_delays(ARGV, at, n)
    local waits, least, behind = {}, huge, 0
    while behind < n do
        local many, delay = tonumber(ARGV[at]), tonumber(ARGV[at + 1])
        if not (is_whole(many, 1) and is_whole(delay)) then return nil end
        waits[#waits + 1], waits[#waits + 2] = many, delay
        least, behind, at = min(least, delay), behind + many, at + 2
    end
    if behind == n then return at, least, waits end
end

-- Reads the group of which the first token stands at `first`, and what is said of it at ARGV[at]; nil: it is none. Who has failed was no accident of
-- its worker: a suspect is none any more.
local function read_group(ARGV, at, first, last)
    local ran = ARGV[at] == 'ran' and tonumber(ARGV[at + 1]) or nil
    if ran and not is_whole(ran) then return nil end
    at = ran and at + 2 or at
    local is, n, reason, lane = VERBS[ARGV[at]], tonumber(ARGV[at + 1]), ARGV[at + 2], lease.lane_of(ARGV[first])
    if not (is and is_whole(n, 1) and first + n - 1 <= last and reason and lane) then return nil end
    local at_lane = find(ARGV[first], '/', 1, true)
    local head_end, behind = at_lane - #ARGV[first] - 2, sub(ARGV[first], at_lane)
    for i = first + 1, first + n - 1 do
        if not find(ARGV[i], behind, head_end + 1, true) then return nil end
    end
    local group = {first = first, last = first + n - 1, is = is, reason = reason, ran = ran, is_counted = find(behind, '~', 1, true), head_end = head_end,
                   lane = lane_names.usual(lane)}
    group.queue, group.type, group.key = lane_names.parts(group.lane)
    group.waits = {n, 0}
    at = at + 3
    if is.retries then at, group.least, group.waits = read_delays(ARGV, at, n) end
    return at and group, at
end

function settle_failed.read(ARGV, i, behind)
    local n = tonumber(ARGV[i + 1])
    if not is_whole(n, 1) or n > MOST or i + 1 + n > #ARGV then return nil end
    local part, groups = {first = i + 2, last = i + 1 + n, behind = behind}, {}
    local first, at, group = part.first, part.last + 1, nil
    while first <= part.last do
        group, at = read_group(ARGV, at, first, part.last)
        if not group then return nil end
        groups[#groups + 1], first = group, group.last + 1
    end
    words, part.groups, parts[#parts + 1] = ARGV, groups, part
    return at
end

local function ends_of(all, name)
    if not all[name] then all[name] = {retry = 0, dead = 0, stale = 0} end
    return all[name]
end

-- Says what those of a group have in common whose entries begin as this one does. is_odd: there is more to do than to write a record.
local function meaning_of(entry, group)
    local attrs, at = heads.attrs_of(entry)
    local retries, line = group.is.retries, '\n'
    if not retries then line = ' ' .. group.reason:gsub('%c', ' ') .. line end
    local is = {at = at, before = (at > 1 or byte(entry) ~= 64) and sub(entry, 1, at), -- "@": a head that cannot be read, of this entry alone
                head = ' ' .. group.lane .. line .. heads.attempted(heads.fresh(heads.cleared(entry)), retries and group.reason or nil, worker, group.ran),
                cancelled = heads.attr(attrs, 'c') or retries and cancelled.batch_of(attrs),
                batch = heads.attr(attrs, 'b'), lock = not retries and ends.lock_of(attrs)}
    is.is_odd = is.cancelled or is.batch or is.lock or group.is.unstarted or group.is_counted
    return is
end

-- Does what is more than to write a record. Returns whether that is to be done.
local function sort_out(group, is, token, entry)
    if group.is_counted then counted[#counted + 1] = token end
    if group.is.unstarted then
        local slot = lease.slot_of(token)
        unstarted[#unstarted + 1] = {token = token, queue = group.queue, type = group.type, key = group.key, unstarted = slot > 0 and slot or nil}
    end
    if is.cancelled then
        ended[#ended + 1] = {type = group.type, entry = entry}
        return false
    end
    if is.lock then locks[#locks + 1] = {is.lock, entry, is.at} end
    if is.batch then
        local of_batch = ends_of(batch_ends, is.batch)
        of_batch[group.is.counts] = of_batch[group.is.counts] + 1
    end
    return true
end

-- Goes through the leases of a group, whose entries stand in a list from the `shift`-th word on.
local function look_at(group, entries, shift)
    local list, met, records, first = words, known, group.is.retries and later or dead, group.first
    local prefix, head_end, n, missing = (group.is.retries and 'l ' or '') .. worker .. ':', group.head_end, #records, 0
    local n_before, waits, is, before, head, at = n, group.waits, nil, nil, nil, nil
    for k = 1, #waits, 2 do
        local last, score = first + waits[k] - 1, us(now + waits[k + 1])
        for i = first, last do
            local token, entry = list[i], entries[i - shift]
            if not entry or met[token] ~= nil then
                missing = missing + 1
            else
                met[token] = true
                if not before or find(entry, before, 1, true) ~= 1 then
                    is = meaning_of(entry, group)
                    before, head, at = is.before, is.head, is.at
                end
                if not is.is_odd or sort_out(group, is, token, entry) then
                    records[n + 1] = score
                    n = n + 2
                    records[n] = prefix .. sub(token, 1, head_end) .. head .. sub(entry, at)
                end
            end
        end
        first = last + 1
    end
    local of_type = ends_of(type_ends, group.type)
    of_type[group.is.counts] = of_type[group.is.counts] + (n - n_before) / 2
    of_type.stale = of_type.stale + missing
end

function settle_failed.look(others)
    local n = 0
    known, later, dead, ended, unstarted, locks, counted, type_ends, batch_ends = {}, {}, {}, {}, {}, {}, {}, {}, {}
    for _, part in ipairs(parts) do
        for i = n + 1, part.behind do known[others[i].token] = known[others[i].token] or false end
        n = part.behind
        local entries = call('HMGET', active, unpack(words, part.first, part.last))
        for _, group in ipairs(part.groups) do look_at(group, entries, part.first - 1) end
    end
    return known
end

function settle_failed.wrong()
    return #later > 0 and check.wrong_kind('later', 'zset') or #dead > 0 and check.wrong_kind('dead', 'zset') or nil
end

-- Counts ends; returns how many were stale.
local function count_ends()
    local stale = 0
    for name, n in pairs(type_ends) do
        if n.retry > 0 then
            counters.add(name, 'scheduled', n.retry)
            counters.add(name, 'retried', n.retry)
        end
        if n.dead > 0 then counters.add(name, 'dead', n.dead) end
        if n.stale > 0 then counters.add(name, 'stale', n.stale) end
        stale = stale + n.stale
    end
    for name, n in pairs(batch_ends) do
        ends.batch(name, 'failed', n.retry + n.dead)
        if n.dead > 0 then ends.batch(name, 'dead', n.dead) end
    end
    return stale
end

local function put_later()
    local first = {least = huge}
    for _, part in ipairs(parts) do
        for _, group in ipairs(part.groups) do
            if group.least and group.least < first.least then first = group end
        end
    end
    if later_records.put_all(later, now + first.least) then bell.ring(first.queue) end
end

function settle_failed.write()
    unspent.give_all(unstarted)
    for _, token in ipairs(counted) do wake.release(token) end
    if #ended > 0 then cancelled.end_leases(ended) end
    if #later > 0 then put_later() end
    if #dead > 0 then ends.bury_records(dead) end
    for _, lock in ipairs(locks) do ends.unlock(unpack(lock)) end
    for _, part in ipairs(parts) do call('HDEL', active, unpack(words, part.first, part.last)) end
    return count_ends()
end

return settle_failed

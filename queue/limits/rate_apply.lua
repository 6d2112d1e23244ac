-- rate_apply: after a change of limits, or when a batch was halted, when the keyed gates at which lanes sleep open now: one
-- page of sleep:<queue>, from a cursor that begins at 0. A change may concern a million gates, which is too much for
-- the script that made it; what is not done because somebody died half way is only woken late, and mended by doing it again.
--
-- Where keys are found by another path now, the lanes that sleep are sorted here: were that left to claims, the rings would be full of
-- them, and nothing would start before the last one is sorted.
--
-- ARGV: now, queue, cursor, type (its limits or its cost changed: its lanes are looked at; '': the limits themselves did),
--       resume (1: ends the pauses of these gates that nobody has set by hand, 0), limit, ... (no type and no limit: all limits)
-- role: operator
-- reply: JSON: {"cursor": the next one; the same one where the page has more jobs to sort than one call may; '' at the end,
--        "wrong": a key of another kind, which keeps who stands there from being looked at}
-- uses: bell body check counters gate key_pauses key_rules lane lane_names rules slices types

local PAGE = 25   -- gates, some 20 us each: read, and put at its time; 60 more where the lane that waits there is sorted
local SORTED = 50 -- jobs that go to other lanes in one call, some 10 us each

local function read_set(limit) return rules.read(call('HGET', P .. 'limits', limit) or '') or {} end

-- Reads the sets of the limits that are named; nil: all are meant.
local function read_sets(ARGV)
    if #ARGV == 5 then return nil end
    local sets = {}
    for i = 6, #ARGV do sets[ARGV[i]] = read_set(ARGV[i]) end
    return sets
end

-- This call notes what it may still read, how many jobs it has sorted, of each type how many of them have no key, and the first key of another kind.
local load, sorted, keyless, wrong

-- Notes a key that is of another kind than that; false: it is not.
local function is_wrong(key, kind)
    local one = check.wrong_kind(key, kind)
    wrong = wrong or one
    return one ~= nil
end

local function is_full() return sorted >= SORTED or slices.is_full(load) end

-- A job goes to the tail of the lane of its key; false: something else stands there.
local function put(queue, kind, key, entry)
    local another = lane.wrong(queue .. '/' .. kind .. '/' .. key)
    wrong = wrong or another
    if another then return false end
    lane.append(queue, kind, key, entry)
    if key == '-' then keyless[kind] = (keyless[kind] or 0) + 1 end
    sorted = sorted + 1
    return true
end

-- The first jobs of a lane that have another key, as their path is another, go to the lanes of their keys. Returns whether there may be
-- more of them.
local function sort_lane(queue, gate_name, node)
    local kind, key = node:match('^([^/]+)/(.*)$')
    local t = types.load(kind)
    if not t.path or not t.lanes or t.lanes == t.path or is_wrong('lane:' .. queue .. '/' .. node, 'list') then return false end
    local path, moved, astray, ended = P .. 'lane:' .. queue .. '/' .. node, 0, true, false
    while astray and not ended and not is_full() do
        local entries
        entries, ended = slices.read('LRANGE', path, moved, SORTED - sorted, load)
        for i = 1, #entries do
            local other = body.key(entries[i], t.path)
            astray = other ~= key
            if not astray or not put(queue, kind, other, entries[i]) then
                ended = true
                break
            end
            moved = moved + 1
        end
        astray = astray and #entries > 0
    end
    if moved == 0 then return astray end
    if t.lanes ~= '*' then types.note(kind, 'lanes', '*') end
    call('LTRIM', path, digits(moved), '-1')
    if call('EXISTS', path) == 1 then return true end -- its gate is to be asked for another job
    lane.leave_gate(queue, gate_name, node)
    return false
end

-- The lanes that wait at a gate, of a type or of all, are sorted: they do not wait for the gate of their old key. Returns whether some
-- may not be.
local function sort_waiting(queue, name, kind)
    local astray = false
    for _, node in ipairs(call('ZRANGE', P .. 'wait:' .. queue .. '/' .. name, '0', '-1')) do
        if kind == '' or node:match('^[^/]+') == kind then astray = sort_lane(queue, name, node) or astray end
    end
    return astray
end

-- Ends the pause of a gate; one that somebody has set by hand stays.
local function end_pause(g, name, set, rule)
    if not g.pause then return end
    gate.resume(g)
    local limit, key = match(name, '^([^#]+)#%d/(.+)$')
    if rule.index == set.keyed[1].index then key_pauses.again(limit, set, key) end
end

-- Returns when a sleeping gate opens under the rules of now, at least now; huge: not by time.
local function opening(name, set, resume)
    local limit, index, key = match(name, '^([^#]+)#(%d)/(.+)$')
    local rule, till, closed = nil, huge, false
    if set.path then rule, till, closed = key_rules.at(limit, set, tonumber(index), key) end
    if not rule or is_wrong('gate:' .. name, 'string') then return now end
    local g = gate.load(name, rule)
    if resume then end_pause(g, name, set, rule) end
    return closed and huge or max(min(gate.start(g, 1), till), rules.paused(set))
end

-- Returns when a sleeping gate is to be looked at; nil when it is not concerned. Too soon does no harm: who waits there may be there no more by a
-- change before.
local function looked_at(name, sets, queue, kind, resume)
    local limit, _, key = name:match('^([%w_.-]+)#(%d)/(.+)$')
    local waits = 'wait:' .. queue .. '/' .. name
    if kind ~= '' then
        if not key or is_wrong(waits, 'zset') or not call('ZSCORE', P .. waits, kind .. '/' .. key) then return nil end
        sort_waiting(queue, name, kind)
        return now
    end
    local set
    if sets then set = sets[limit] elseif limit then set = read_set(limit) end
    if not set or is_wrong(waits, 'zset') then return nil end
    local before = sorted
    local astray = sort_waiting(queue, name, kind)
    -- A pause that was asked for at the key of another path ends when its lanes have left.
    local left = sorted > before and call('EXISTS', P .. waits) == 0
    local opens = opening(name, set, resume or left)
    return astray and now or opens
end

local function rate_apply(ARGV)
    local queue, cursor, kind, resume = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
    if #ARGV < 5 or not lane_names.is_queue(queue) or not find(cursor, '^%d+$') or kind ~= '' and not is_name(kind) then
        return refuse('rate_apply: wants now, queue, cursor, type, resume, limits')
    end
    local sleep = P .. 'sleep:' .. queue
    wrong = check.wrong_kind('sleep:' .. queue, 'zset') or check.wrong_kind('wake:' .. queue, 'zset')
        or check.wrong_kind('limits', 'hash') or check.wrong_kind('types', 'hash')
    if wrong then return answer{cursor = '', wrong = wrong} end

    local sets, changes, first, again = read_sets(ARGV), {}, huge, false
    load, sorted, keyless = slices.load(), 0, {}
    local page = call('ZSCAN', sleep, cursor, 'COUNT', PAGE)
    for i = 1, #page[2], 2 do
        local name = page[2][i]
        local at = looked_at(name, sets, queue, kind, resume == '1')
        if at and at < huge then
            changes[#changes + 1] = us(at)
            changes[#changes + 1] = name
            first = min(first, at)
        end
        again = sorted > 0 and is_full()
        if again then break end
    end
    gate.save()
    for name, count in pairs(keyless) do counters.add(name, 'keyless', count) end
    for i = 1, #changes, 4000 do
        call('ZADD', sleep, 'XX', 'LT', unpack(changes, i, min(i + 3999, #changes)))
    end
    if first < huge then call('ZADD', P .. 'wake:' .. queue, 'XX', 'LT', us(first), '*') end
    if #changes > 0 then bell.ring(queue) end
    return answer{cursor = again and cursor or page[1] ~= '0' and page[1] or '', wrong = wrong}
end

return rate_apply

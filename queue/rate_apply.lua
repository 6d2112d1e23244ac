-- rate_apply: after a change of limits, or when a batch was halted, when the keyed gates at which lanes sleep open now: one
-- page of sleep:<queue>, from a cursor that begins and ends at 0. A change may concern a million gates, which is too much for
-- the script that made it; what is not done because somebody died half way is only woken late, and mended by doing it again.
--
-- KEYS[1] prefix
-- ARGV: now, queue, cursor, type (its limits or its cost changed: its lanes are looked at; '': the limits themselves did),
--       resume (1: ends the pauses of these gates, 0), limit, ... (no type and no limit: all limits)
-- reply: [ next cursor ]
-- uses: bell check claim_park gate lease rules slices types

local PAGE = 100 -- gates, some 20 us each: read, perhaps written, and put at its time

local function read_set(limit) return rules.read(call('HGET', P .. 'limits', limit) or '') or {} end

-- Those of the limits that are named; nil: all are meant.
local function read_sets(ARGV)
    if #ARGV == 5 then return nil end
    local sets = {}
    for i = 6, #ARGV do sets[ARGV[i]] = read_set(ARGV[i]) end
    return sets
end

local load -- of jobs read in this call

-- Has the first job of that lane another key now, as its path is another? Maybe not, where too much would have to be read.
local function is_astray(queue, node)
    local kind, key = node:match('^([^/]+)/(.*)$')
    local t = types.load(kind)
    if not t.path or not t.lanes or t.lanes == t.path then return false end
    local first = slices.read('LRANGE', P .. 'lane:' .. queue .. '/' .. node, 0, 1, load)[1]
    return not first or claim_park.key_of({kind = t, keyed = true}, first) ~= key
end

-- Such a lane is sorted anew: it does not wait for the gate of its old key.
local function has_astray(queue, name)
    for _, node in ipairs(call_safe('ZRANGE', P .. 'wait:' .. queue .. '/' .. name, '0', '-1')) do
        if is_astray(queue, node) then return true end
    end
end

-- When a sleeping gate opens under the rules of now, at least now.
local function opening(queue, name, set, rule, resume)
    if not rule or not rule.by or check.wrong_kind('gate:' .. name, 'string') then return now end
    local g = gate.load(name, rule)
    if resume then gate.resume(g) end
    return has_astray(queue, name) and now or max(gate.start(g, 1), rules.paused(set))
end

-- When a sleeping gate is to be looked at; nil when it is not concerned. Too soon does no harm: who waits there may be there no
-- more by a change before.
local function looked_at(name, sets, queue, kind, resume)
    local limit, index, key = name:match('^([%w_.-]+)#(%d)/(.+)$')
    if kind ~= '' then return key and call('ZSCORE', P .. 'wait:' .. queue .. '/' .. name, kind .. '/' .. key) and now end
    local set
    if sets then set = sets[limit] elseif limit then set = read_set(limit) end
    return set and opening(queue, name, set, set[tonumber(index) + 1], resume)
end

local function rate_apply(ARGV)
    local queue, cursor, kind, resume = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
    if #ARGV < 5 or not lease.is_queue(queue) or not find(cursor, '^%d+$') or kind ~= '' and not is_name(kind) then
        return refuse('rate_apply: wants now, queue, cursor, type, resume, limits')
    end
    local sleep = P .. 'sleep:' .. queue
    local wrong = check.wrong_kind('sleep:' .. queue, 'zset') or check.wrong_kind('wake:' .. queue, 'zset')
        or check.wrong_kind('limits', 'hash') or check.wrong_kind('types', 'hash')
    if wrong then return check.refuse_key(wrong) end

    local sets, changes, first = read_sets(ARGV), {}, huge
    load = slices.load()
    local page = call('ZSCAN', sleep, cursor, 'COUNT', PAGE)
    for i = 1, #page[2], 2 do
        local name = page[2][i]
        local at = looked_at(name, sets, queue, kind, resume == '1')
        if at and at < huge then
            changes[#changes + 1] = us(at)
            changes[#changes + 1] = name
            first = min(first, at)
        end
    end
    gate.save()
    for i = 1, #changes, 4000 do
        call('ZADD', sleep, 'XX', 'LT', unpack(changes, i, min(i + 3999, #changes)))
    end
    if first < huge then call('ZADD', P .. 'wake:' .. queue, 'XX', 'LT', us(first), '*') end
    if #changes > 0 then bell.ring(queue) end
    return {page[1]}
end

return rate_apply

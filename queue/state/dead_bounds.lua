-- dead_bounds: how many dead jobs are kept, how long, and how many bytes of them: a setting of the namespace. `weir dead keep` changes it.
--
--   settings  hash: dead_most, dead_age_us, dead_bytes; one that is not there is as below
--
-- uses: check dead_bytes dead_records
local dead_bounds = {}

local FIELDS = {'dead_most', 'dead_age_us', 'dead_bytes'}
local USUAL = {100000, 180 * 86400 * 1000000, 256 * 1024 * 1024}
local BYTES = 3
local STEP_MOST = 500 -- records that one call forgets: about 2 ms

-- Returns {most, age in us, bytes}. A number that cannot be read bounds nothing.
function dead_bounds.read()
    local set, bounds = call('HMGET', P .. 'settings', unpack(FIELDS)), {}
    for i, usual in ipairs(USUAL) do
        local n = tonumber(set[i] or nil)
        bounds[i] = not set[i] and usual or is_whole(n, 1) and n or 2 ^ 53
    end
    return bounds
end

function dead_bounds.write(bounds)
    for i = 1, #FIELDS do
        if bounds[i] then call('HSET', P .. 'settings', FIELDS[i], us(bounds[i])) end
    end
end

-- Widens a bound to what a worker was started with, where nothing is set and that keeps more than usual: so nothing is forgotten by it.
local function widen(i, wanted)
    if wanted > USUAL[i] then call('HSETNX', P .. 'settings', FIELDS[i], us(wanted)) end
end

-- Counts records that nobody has counted; returns whether that goes on. Where they are more than usual and no bound is set, they are kept.
local function count()
    local more, bytes = dead_bytes.count()
    if bytes then widen(BYTES, bytes) end
    return more
end

-- Returns how many of the oldest are beyond the bounds by number or age.
function dead_bounds.excess(bounds)
    return max(0, call('ZCARD', P .. 'dead') - bounds[1], call('ZCOUNT', P .. 'dead', '-inf', '(' .. us(now - bounds[2])))
end

-- Returns up to STEP_MOST of the oldest records, with their scores: as many as `excess`, and as many as take `over` bytes.
local function oldest(excess, over)
    local jobs, bytes = call('ZCARD', P .. 'dead'), dead_bytes.read()
    local most = over > 0 and max(excess, ceil(over * jobs / bytes)) or excess
    local records, scores = dead_records.page(0, min(most, STEP_MOST), huge)
    for i = 1, #records do
        if i > excess and over <= 0 then records[i] = nil else over = over - #records[i] end
    end
    return records, scores, over
end

-- Forgets some of the oldest that are beyond the bounds. Returns how many, and how many it leaves, at least.
local function trim(bounds)
    local excess, bytes = dead_bounds.excess(bounds), dead_bytes.read()
    local over = bytes and bytes - bounds[BYTES] or 0
    if excess <= 0 and over <= 0 then return 0, 0 end
    local records, scores, names = nil, nil, {}
    records, scores, over = oldest(excess, over)
    for i, record in ipairs(records) do names[i] = match(record, '^%S+ [^/%s]*/([^/%s]*)/') or '' end
    call('ZREMRANGEBYRANK', P .. 'dead', '0', us(#records - 1))
    dead_records.count(names, 'forgotten')
    dead_bytes.removed(scores, records)
    return #records, max(excess - #records, over > 0 and 1 or 0)
end

-- Follows a heartbeat of a worker that was started with these bounds, 0: none. Returns how many dead jobs were forgotten, how many at least are
-- left to the next heartbeats, and the bounds. No bounds: their key is of a wrong kind, and nothing is forgotten.
function dead_bounds.follow(most, age_us)
    if check.wrong_kind('dead', 'zset') or check.wrong_kind('settings', 'hash') then return 0, 0, {} end
    widen(1, most)
    widen(2, age_us)
    local forgotten, left, counts = 0, 1, count()
    local bounds = dead_bounds.read()
    if not counts then forgotten, left = trim(bounds) end
    return forgotten, left, {us(bounds[1]), us(bounds[2]), us(bounds[3])}
end

return dead_bounds

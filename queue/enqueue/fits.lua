-- fits: could a job of that type and cost ever start, what tells its jobs apart, and is its name known? For a bulk, which asks before it adds the first
-- one; the cost of a single job is looked at by enqueue, and the rest is asked behind it.
--
-- ARGV: now, type, cost, as cost.lua writes it
-- role: producer viewer
-- reply: when it could [ the path by which keys are found, a limit that has it, or twice '' where its limits are not keyed ], and behind them, where no
--        worker names it and at most one job of it has ever come, types that workers take; else an error that names the limit
-- writes: nothing
-- format: any
-- uses: arrival check cost partition pattern runs types

local NAMES_MOST = 500

-- True when two names differ in digits or in their last letter alone, as those of customers do.
local function are_siblings(a, b) return a:gsub('%d', '') == b:gsub('%d', '') or sub(a, 1, -2) == sub(b, 1, -2) end

local function matches_any(patterns, name)
    for _, word in ipairs(patterns) do
        if pattern.matches(word, name) then return true end
    end
    return false
end

-- Adds types that have been known, some of very many, and that a worker takes by a pattern: what is behind a pattern no worker names.
local function add_known(names, patterns, name)
    local page = call_safe('HSCAN', P .. 'types', '0', 'COUNT', us(NAMES_MOST))[2] or {}
    for i = 1, min(#page, 2 * NAMES_MOST), 2 do
        local known = page[i]
        if known ~= name and matches_any(patterns, known) and not are_siblings(known, name) then names[#names + 1] = known end
    end
end

-- Returns types that workers take, some of very many, where no worker names that one and nobody has known it so far.
local function others(name)
    if check.wrong_kind('runs', 'zset') or runs.is_named(name) then return {} end
    if (tonumber(call_safe('HGET', P .. 'stats:' .. name, 'enqueued') or 0) or 0) > 1 then return {} end
    local names, patterns = {}, {}
    for _, word in ipairs(call('ZRANGEBYSCORE', P .. 'runs', us(now), '+inf', 'LIMIT', '0', us(NAMES_MOST))) do
        local list = pattern.is(word) and patterns or names
        list[#list + 1] = word
    end
    if #patterns > 0 then add_known(names, patterns, name) end
    return names
end

local function fits(ARGV)
    local name, said = ARGV[2], cost.parse(ARGV[3] or '')
    if #ARGV ~= 3 or not is_name(name) or not said then return refuse('fits: wants a type and a cost') end
    local refusal = partition.refusal(name)
    if refusal then return refusal end
    local wrong = check.wrong_kind('types', 'hash') or check.wrong_kind('limits', 'hash')
    if wrong then return check.refuse_key(wrong) end
    wrong = arrival.never_fits(name, said)
    if wrong then return refuse('%s', wrong) end
    local t = types.load(name)
    return {t.path or '', t.path and match(t.keyed[1].name, '^[^#]+') or '', unpack(others(name))}
end

return fits

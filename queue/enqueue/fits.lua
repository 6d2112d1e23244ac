-- fits: could a job of that type and cost ever start, what tells its jobs apart, and is its name known? For a bulk, which asks before it adds the first
-- one; the cost of a single job is looked at by enqueue, and the rest is asked behind it.
--
-- KEYS[1] prefix
-- ARGV: now, type, cost
-- role: producer viewer
-- reply: when it could [ the path by which keys are found, a limit that has it, or twice '' where its limits are not keyed ], and behind them, where no
--        worker takes it and at most one job of it has ever come, types that workers take; else an error that names the limit
-- writes: nothing
-- format: any
-- uses: arrival check partition runs types

local NAMES_MOST = 500

-- Returns the types that workers take, some of very many, where nobody has known that one so far.
local function others(name)
    if runs.is_run(name) or (tonumber(call_safe('HGET', P .. 'stats:' .. name, 'enqueued') or 0) or 0) > 1 then return {} end
    return call('ZRANGEBYSCORE', P .. 'runs', us(now), '+inf', 'LIMIT', '0', us(NAMES_MOST))
end

local function fits(ARGV)
    local name, cost = ARGV[2], tonumber(ARGV[3])
    if #ARGV ~= 3 or not is_name(name) or not is_whole(cost, 1) then return refuse('fits: wants a type and a cost') end
    local refusal = partition.refusal(name)
    if refusal then return refusal end
    local wrong = check.wrong_kind('types', 'hash') or check.wrong_kind('limits', 'hash')
    if wrong then return check.refuse_key(wrong) end
    wrong = arrival.never_fits(name, cost)
    if wrong then return refuse('%s', wrong) end
    local t = types.load(name)
    return {t.path or '', t.path and match(t.keyed[1].name, '^[^#]+') or '', unpack(others(name))}
end

return fits

-- fits: could a job of that type and cost ever start, and what tells its jobs apart? For a bulk, which asks before it adds the first
-- one; the cost of a single job is looked at by enqueue.
--
-- KEYS[1] prefix
-- ARGV: now, type, cost
-- role: producer viewer
-- reply: [] when it could; where its limits are keyed [ the path by which keys are found, a limit that has it ]; else an error that
--        names the limit
-- writes: nothing
-- format: any
-- uses: arrival check partition types

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
    return t.path and {t.path, match(t.keyed[1].name, '^[^#]+')} or {}
end

return fits

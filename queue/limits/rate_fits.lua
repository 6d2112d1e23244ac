-- rate_fits: could a type be held so? Changes nothing.
--
-- ARGV: now, type, cost, then limit, rules * n: those that hold it besides that of its own name, which may be among them; rules '': as they are now
-- role: viewer
-- reply: JSON: {}; refused: why it could not
-- writes: nothing
-- uses: check cost partition rates rules types

local function rate_fits(ARGV)
    local t, instead, said = {name = ARGV[2], use = {}}, {}, cost.parse(ARGV[3] or '')
    if #ARGV < 3 or #ARGV % 2 == 0 or not is_name(t.name) or not said then
        return refuse('rate_fits: wants now, type, cost, limits and their rules')
    end
    types.set_cost(t, said)
    local wrong = rates.wrong_tables()
    if wrong then return check.refuse_key(wrong) end
    for i = 4, #ARGV, 2 do
        local limit, text = ARGV[i], ARGV[i + 1]
        if not is_name(limit) or text ~= '' and not rules.read(text) then return refuse('rate_fits: wrong limit') end
        if limit ~= t.name then
            wrong = partition.apart(t.name, limit)
            if wrong then return refuse('%s', wrong) end
            t.use[#t.use + 1] = limit
        end
        instead[limit] = text ~= '' and text or nil
    end
    wrong = types.misfit(t, instead)
    if wrong then return refuse('%s', wrong) end
    return answer{}
end

return rate_fits

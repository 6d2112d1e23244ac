-- hold_end: a hold ends: what it took of concurrency goes back, and the rates are settled by what it cost in truth. Its end comes by its token
-- alone, and once.
--
-- ARGV: now, token, spent, as cost.lua writes it ('': as much as it took)
-- role: taker
-- reply: [ 1: it has ended; 0: it was not held (any more) ]
-- format: any
-- uses: check cost gate holds partition wake

local function hold_end(ARGV)
    local name, spent = holds.parts(ARGV[2]), cost.parse(ARGV[3] or '', 0)
    if #ARGV ~= 3 or not name or ARGV[3] ~= '' and not spent then
        return refuse('hold_end: wants now, token, and what was spent, 0 to 10^9 or by name, or nothing')
    end
    local refusal = partition.refusal(name)
    if refusal then return refusal end
    local wrong = holds.wrong_keys(name)
    if wrong then return check.refuse_key(wrong) end
    local held = holds.till(ARGV[2])
    holds.finish(ARGV[2], held and spent)
    gate.save()
    wake.all(false)
    return {held and 1 or 0}
end

return hold_end

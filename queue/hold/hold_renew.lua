-- hold_renew: a hold lasts on, for its ttl from now, while it is held.
--
-- ARGV: now, token
-- role: taker
-- reply: [ 1: it does; 0: it is not held (any more) ]
-- format: any
-- uses: check holds partition

local function hold_renew(ARGV)
    local name = holds.parts(ARGV[2])
    if #ARGV ~= 2 or not name then return refuse('hold_renew: wants now, token') end
    local refusal = partition.refusal(name)
    if refusal then return refusal end
    local wrong = holds.wrong_keys(name)
    if wrong then return check.refuse_key(wrong) end
    if not holds.till(ARGV[2]) then return {0} end
    holds.renew(ARGV[2])
    return {1}
end

return hold_renew

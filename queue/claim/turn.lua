-- turn: a few jobs that are done, and the claim that was due, in one call: where jobs come one by one, most turns are no more than that,
-- and two calls cost Redis nearly twice as much as one.
--
-- ARGV: those of claim, then type, token * n, n
--         type, token   jobs that are done, as settle has them: they count in no batch, and no gate counts them in flight
--         n             how many, at least 1
-- role: worker
-- reply: that of claim, and behind it e and that of settle; [ that of settle, the error ] when the claim is refused
--
-- format: any
-- uses: claim settle_done

local claim = scripts.claim

local CLAIM_LEAST = 13 -- arguments of a claim that names no queue

local function turn(ARGV)
    local last = #ARGV - 1
    local n = tonumber(ARGV[last + 1])
    local first = is_whole(n, 1) and last - n + 1 or 0
    if first < CLAIM_LEAST + 2 or not is_name(ARGV[first - 1]) then return refuse('turn: wants a type, tokens, and how many') end
    local stale = settle_done.plain(ARGV, ARGV[2], ARGV[first - 1], first, last)
    if not stale then return refuse('turn: a gate counts them in flight') end
    for i = last + 1, first - 1, -1 do ARGV[i] = nil end
    local reply = claim(ARGV)
    if reply.err then return {stale, reply} end
    local n = #reply
    reply[n + 1], reply[n + 2] = 'e', stale
    return reply
end

return turn

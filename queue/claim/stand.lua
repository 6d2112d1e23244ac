-- stand: a claim that was sent ahead of time and stands behind a peek at the queue: only what claim_short may do. All that seldom changes is one
-- text, which Redis compares as a whole.
--
-- ARGV: now,
--       turn    of the claim
--       words   its arguments from the worker on, each with a blank behind it; in place of the turn any number
-- role: worker
-- reply: as claim, where it is short; nil, or an error: there is more to do, and nothing was changed
--
-- format: any
-- uses: claim_short

local function stand(ARGV) return claim_short.stand(ARGV[2], ARGV[3]) end

return stand

-- claim_faults: keys of another kind that stand in the place of a queue's own. Such a key stops the claims of its queue, which then counts as
-- paused, and the answer says what is wrong with it, until `weir doctor --repair` has put it aside or somebody has removed it. Other queues go on.
--
-- Redis does not say which key a command failed at. So a claim that has failed begins again and notes the key of each command. When it fails
-- once more it knows the key, and begins again without that queue. Later claims of the queue look at that key first, and do not fail.
--
-- uses: blocked_queues check claim_call
local claim_faults = {}

local claim = claim_call

-- Keys of all queues. If one of them is wrong no queue can be served: the claim is refused.
local OF_ALL = {types = 'hash', limits = 'hash', workers = 'zset', active = 'hash'}

local FOUND_MOST = 8 -- faults that one claim finds, as it begins anew for each

local found -- faults that this claim has found; nil: it has not failed

local function forget() found = nil end

-- Begins a claim: it leaves out the queues that are stopped.
function claim_faults.begin()
    if not blocked_queues.is_any() then return end
    local out, any = {}, false
    for _, queue in ipairs(claim.open) do
        out[queue] = blocked_queues.by(queue)
        claim.note_fault(out[queue])
        any = any or out[queue]
    end
    if any then claim.leave_out(out) end
end

-- Judges why a claim has failed. Returns nil where it is to begin anew, else the reply.
function claim_faults.refused(failure)
    if not find(failure, '^WRONGTYPE ') then return refuse('claim: %s', failure) end -- Redis's pcall makes text of errors
    if find(failure, 'WRONGTYPE ' .. P, 1, true) then return error_reply(failure) end -- a check has found it, and names the key
    if not found then
        found = 0
        at_next_call(forget)
        note_keys()
        return nil
    end
    local key = sub(noted_key(), #P + 1)
    local family, queue = match(key, '^(%l+):?([%w_.-]*)')
    local kind = blocked_queues.KINDS[family]
    local wrong = check.wrong_kind(key, kind or OF_ALL[family] or 'key of Weir') or noted_key() .. ' cannot be used'
    if not kind or blocked_queues.by(queue) or found == FOUND_MOST then return check.refuse_key(wrong) end
    blocked_queues.note(queue, key)
    found = found + 1
end

return claim_faults

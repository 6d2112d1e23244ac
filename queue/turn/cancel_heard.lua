-- cancel_heard: a worker has heard that a job of its was cancelled; what tells it so, goes.
--
-- ARGV: now, worker, token
-- role: worker
-- reply: 1; 0: it is not told so, or no more
-- format: any
-- uses: check

local function cancel_heard(ARGV)
    local worker, token = ARGV[2], ARGV[3]
    if #ARGV ~= 3 then return refuse('cancel_heard: wants now, worker, token') end
    local wrong = check.wrong_kind('told:' .. worker, 'list')
    if wrong then return check.refuse_key(wrong) end
    return call('LREM', P .. 'told:' .. worker, 1, token)
end

return cancel_heard

-- call_cancel: the verb of the protocol that ends a job.
--
-- ARGV: now, verb ("cancel"), document (doc/protocol.md)
-- role: operator
-- reply: JSON, as doc/protocol.md has it
-- uses: document one_job

local MOST = '500' -- entries of one call

local ENDED = {dead = 'is dead already and will not run', finished = 'has finished already; there is nothing to cancel'}

local function result_of(page, id)
    for state, n in pairs(page.states) do
        if n.jobs > 0 then return state == 'running' and 'told' or page.marked ~= '0' and 'marked' or 'removed' end
        if ENDED[state] then return nil, document.refused('closed', 'job ' .. id .. ': ' .. ENDED[state]) end
        return 'already'
    end
end

local function call_cancel(ARGV)
    if #ARGV ~= 3 or ARGV[2] ~= 'cancel' then return refuse('call_cancel: wants now, cancel and a document') end
    local given, refusal = one_job.read(ARGV[3], 'cancel')
    if not given then return refusal end
    local reply = scripts.job_act{'', 'cancel', MOST, '1', document.made(), '1', 'id', given.id, unpack(given.cursor or {})}
    if type(reply) == 'table' then return document.fault(reply.err) end
    local page, result = json_read(reply), nil
    result, refusal = result_of(page, given.id)
    if result then return '{"id":"' .. given.id .. '","cancelled":"' .. result .. '"}' end
    return refusal or one_job.not_here(given.id, page.next)
end

return call_cancel

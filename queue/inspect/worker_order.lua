-- worker_order: an operator orders a worker to take no more jobs, to take some again, or to stop. It hears of it with its next heartbeat.
--
-- ARGV: now, instance, "quiet", "resume" or "stop"
-- role: operator
-- reply: JSON: {"before": the order that it had; not there: none}
-- uses: check orders

local function worker_order(ARGV)
    local instance, order = ARGV[2], ARGV[3]
    if #ARGV ~= 3 or not is_name(instance) or order ~= 'quiet' and order ~= 'resume' and order ~= 'stop' then
        return refuse('worker_order: wants now, instance, quiet, resume or stop')
    end
    local before = orders.read(instance)
    local wrong = orders.give(instance, order)
    if wrong then return check.refuse_key(wrong) end
    return answer{before = before ~= '' and before or nil}
end

return worker_order

-- rate_wake: after a change of limits, or when a batch was halted: what one call did not come to of the queues in which something waits. It is called as long
-- as "rest" says. What is not done because somebody died half way is done by heartbeats, but for lanes that sleep: these are woken late, and by
-- doing it again, and for workers that were to give jobs back: these start theirs.
--
-- ARGV: now, cursor among the queues ('': all were seen), cursor among the workers on duty ('': all were told), type that lets go of limits
--       ('': none), limit, ...
-- role: operator
-- reply: JSON: {"asleep": [queue with sleeping lanes, ...], for rate_apply, "rest": [the arguments of the next call], unless this was the last one}
-- uses: check rates time_budget wake

local function rate_wake(ARGV)
    local cursor, told, name, limits = ARGV[2], ARGV[3], ARGV[4], {}
    local good = #ARGV >= 4 and find(cursor, '^%d*$') and find(told, '^%d*$') and (name == '' or is_name(name))
    for i = 5, #ARGV do good, limits[i - 4] = good and is_name(ARGV[i]), ARGV[i] end
    if not good then return refuse('rate_wake: wants now, two cursors, type, limits') end
    local wrong = check.wrong_kind('queues', 'set')
    if wrong then return check.refuse_key(wrong) end
    if wake.all(true) and time_budget.is_late() then return answer{asleep = {}, rest = {unpack(ARGV, 2)}} end
    rates.recall(told)
    local asleep, rest = rates.look_on(cursor, name, limits)
    return answer{asleep = asleep, rest = rest}
end

return rate_wake

-- schedule_remove: a schedule ends; the jobs that it has enqueued stay.
--
-- ARGV: now, name
-- role: operator
-- reply: JSON: {"known": was there one?}
-- uses: check fired reasons

local function schedule_remove(ARGV)
    if #ARGV ~= 2 or not is_name(ARGV[2]) then return refuse('schedule_remove: wants a name') end
    local wrong = check.wrong_kind('schedules', 'hash') or check.wrong_kind('later', 'zset') or reasons.wrong() or fired.wrong()
    if wrong then return check.refuse_key(wrong) end

    reasons.set('schedule', ARGV[2], '', nil)
    fired.forget(ARGV[2])
    call('ZREM', P .. 'later', 's ' .. ARGV[2] .. '\n')
    return answer{known = call('HDEL', P .. 'schedules', ARGV[2]) == 1}
end

return schedule_remove

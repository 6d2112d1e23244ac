-- schedule_ran: somebody has enqueued one of a schedule's jobs beside its occurrences.
--
-- ARGV: now, name, queue, type, id
-- role: operator
-- reply: JSON: {"known": is there such a schedule?}
-- full: refused
-- uses: check fired

local function schedule_ran(ARGV)
    for i = 2, 5 do
        if #ARGV ~= 5 or not is_name(ARGV[i]) then return refuse('schedule_ran: wants now, name, queue, type, id') end
    end
    local wrong = check.wrong_kind('schedules', 'hash') or fired.wrong()
    if wrong then return check.refuse_key(wrong) end
    local known = call('HEXISTS', P .. 'schedules', ARGV[2]) == 1
    if known then fired.note(ARGV[2], ARGV[3], ARGV[4], {{at = now, id = ARGV[5]}}) end
    return answer{known = known}
end

return schedule_ran

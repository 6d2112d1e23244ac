-- schedule_pause: pauses a schedule: its occurrences pass without jobs until that time, or until it is resumed. Or ends that.
--
-- ARGV: now, name, for_us ('': until it is resumed; 0: resume), reason, create (not looked at), what, by (for the log)
-- role: operator
-- reply: JSON: {"before", "pause": as reasons.pause has them, of the pause before and of the one that is there now}
--        {"missing": true}: there is no such schedule here
-- uses: check rates reasons

local function schedule_pause(ARGV)
    local name = ARGV[2]
    if #ARGV ~= 7 or not is_name(name) then return refuse('schedule_pause: wants now, name, for_us, reason, create, what, by') end
    local wrong = check.wrong_kind('schedules', 'hash') or reasons.wrong() or rates.wrong_keys()
    if wrong then return check.refuse_key(wrong) end
    local till, refusal = reasons.read(ARGV[3], ARGV[4])
    if refusal then return refusal end
    if call('HEXISTS', P .. 'schedules', name) == 0 then return answer{missing = true} end

    local before = reasons.noted('schedule', name)
    if till or before then
        reasons.set('schedule', name, ARGV[4], till)
        rates.record(ARGV[6], ARGV[7])
    end
    return answer{before = before, pause = reasons.noted('schedule', name)}
end

return schedule_pause

-- schedule_pause: pauses a schedule: its occurrences pass without jobs until that time, or until it is resumed. Or ends that.
--
-- KEYS[1] prefix
-- ARGV: now, name, for_us ('': until it is resumed; 0: resume), reason, create (not looked at), what, by (for the log)
-- role: operator
-- reply: JSON: {"before", "pause": as reasons.pause has them, of the pause before and of the one that is there now}
--        {"missing": true}: there is no such schedule here
-- uses: check key_pauses rates reasons

local LONGEST = 3650 * 86400 * 1000000

local function schedule_pause(ARGV)
    local name, for_us = ARGV[2], tonumber(ARGV[3])
    if #ARGV ~= 7 or not is_name(name) then return refuse('schedule_pause: wants now, name, for_us, reason, create, what, by') end
    if ARGV[3] ~= '' and (not is_whole(for_us) or for_us > LONGEST) then return refuse('pause: must be at most ten years (3650d)') end
    local wrong = check.wrong_kind('schedules', 'hash') or reasons.wrong() or rates.wrong_keys()
    if wrong then return check.refuse_key(wrong) end
    local refusal = reasons.refusal(ARGV[4])
    if refusal then return refusal end
    if call('HEXISTS', P .. 'schedules', name) == 0 then return answer{missing = true} end

    local before = reasons.noted('schedule', name)
    if for_us ~= 0 or before then
        reasons.set('schedule', name, ARGV[4], for_us ~= 0 and (for_us and now + for_us or key_pauses.ENDLESS) or nil)
        rates.record(ARGV[6], ARGV[7])
    end
    return answer{before = before, pause = reasons.noted('schedule', name)}
end

return schedule_pause

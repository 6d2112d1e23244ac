-- type_pause: pauses a type, whether a limit holds it or not: none of its jobs starts until that time, or until it is resumed. Or ends that, and
-- what waits is looked at again.
--
-- ARGV: now, type, for_us ('': until it is resumed; 0: resume), reason, create (1: though there is no such type yet), what, by (for the log)
-- role: operator
-- reply: JSON: {"before", "pause": as reasons.pause has them, of the pause before and of the one that is there now; "rest": as rate_wake has it}
--        {"missing": type}: no job, worker or limit has that name
-- uses: check partition rates reasons runs types

local function is_known(name)
    return call('HEXISTS', P .. 'types', name) == 1 or call('HEXISTS', P .. 'limits', name) == 1 or runs.is_named(name)
end

local function type_pause(ARGV)
    local name = ARGV[2]
    if #ARGV ~= 7 or not is_name(name) or ARGV[5] ~= '0' and ARGV[5] ~= '1' then
        return refuse('type_pause: wants now, type, for_us, reason, create, what, by')
    end
    local wrong = rates.wrong_keys() or reasons.wrong() or check.wrong_kind('runs', 'zset')
    if wrong then return check.refuse_key(wrong) end
    local till, refusal = reasons.read(ARGV[3], ARGV[4])
    refusal = partition.refusal(name) or refusal
    if refusal then return refusal end
    if ARGV[5] == '0' and not is_known(name) then return answer{missing = name} end

    local t = types.read(name)
    local was = reasons.pause('type', name, t.pause)
    t.pause = till and {pause_until = till, paused_at = now}
    if t.pause or was then
        types.write(t)
        reasons.set('type', name, ARGV[4], till)
        rates.record(ARGV[6], ARGV[7], 'type', name)
        rates.wake_at({types.pause_gate(name)})
    end
    return answer{before = was, pause = reasons.pause('type', name, t.pause), rest = rates.rest()}
end

return type_pause

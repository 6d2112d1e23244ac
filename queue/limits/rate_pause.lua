-- rate_pause: pauses a limit for a time or until it is resumed, or ends its pause and those that providers asked for; what waits is looked at
-- again.
--
-- ARGV: now, limit, for_us ('': until it is resumed; 0: resume), reason, what, by (for the log)
-- role: operator
-- reply: JSON: {"was": was it paused, by somebody or for a provider, "before", "pause": as reasons.pause has what somebody has set, "asleep", "rest":
--        as rate_wake has them}
--        {"missing": limit}
-- uses: check gate key_pauses key_rules line partition rates reasons rules

-- Ends the pauses of the global gates; those of keys are for rate_apply. Returns whether there was one.
local function resume_gates(name, set)
    local paused = false
    for _, rule in ipairs(set.global) do
        local g = gate.load(rates.gate_name(name, rule), rule)
        paused = paused or g.pause and true
        gate.resume(g)
    end
    gate.save()
    return paused
end

local LINES_MOST = 1000

-- Resumes keys for which callers wait, where rate_apply finds no lane; a pause that somebody has set by hand stays.
local function resume_waiting(name, set)
    for i, member in ipairs(line.at(name .. '#*')) do
        local key = i <= LINES_MOST and match(member, '/(.+)$')
        for _, rule in ipairs(key and key_rules.list(name, set, key) or {}) do
            local g = gate.load_safe(rates.gate_name(name, rule) .. '/' .. key, rule)
            if g and g.pause then gate.resume(g) end
        end
        if key then key_pauses.again(name, set, key) end
        gate.close()
    end
end

local function rate_pause(ARGV)
    local name = ARGV[2]
    if #ARGV ~= 6 or not is_name(name) then return refuse('rate_pause: wants now, limit, for_us, reason, what, by') end
    local refusal = partition.refusal(name)
    if refusal then return refusal end
    local wrong = reasons.wrong() or rates.wrong_keys() or rates.wrong_gates(name)
    if wrong then return check.refuse_key(wrong) end
    local till
    till, refusal = reasons.read(ARGV[3], ARGV[4])
    if refusal then return refusal end
    local text = call('HGET', P .. 'limits', name)
    if not text then return answer{missing = name} end
    local set = rules.read(text)
    if not set then return refuse('limit %s: its rules cannot be read; set it again with weir rate set', name) end

    local paused = rules.paused(set) > now
    local before = paused and reasons.pause('limit', name, set) or nil
    if not till and resume_gates(name, set) then paused = true end
    local parts = rates.split(text)
    parts.pause = till and us(till) .. '/' .. us(now)
    rates.write(name, parts)
    if not till then resume_waiting(name, set) end
    reasons.set('limit', name, ARGV[4], till)
    rates.record(ARGV[5], ARGV[6], 'limit', name)
    rates.wake({name})
    local asleep, rest = rates.look_on('0', '', {})
    return answer{was = paused, before = before, pause = reasons.pause('limit', name, till and {pause_until = till, paused_at = now}), asleep = asleep, rest = rest}
end

return rate_pause

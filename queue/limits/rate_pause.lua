-- rate_pause: pauses a limit for a time, or ends its pause and those that providers asked for; what waits is looked at
-- again.
--
-- KEYS[1] prefix
-- ARGV: now, limit, for_us (0: resume; '': not given, which only a key's pause may leave out), what, by (for the log)
-- role: operator
-- reply: JSON: {"was": was it paused, "asleep", "rest": as rate_wake has them}
--        {"missing": limit}
-- uses: check gate key_pauses line partition rates rules

local LONGEST = 3650 * 86400 * 1000000

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
        for _, rule in ipairs(key and set.keyed or {}) do
            local g = gate.load_safe(rates.gate_name(name, rule) .. '/' .. key, rule)
            if g and g.pause then gate.resume(g) end
        end
        if key then key_pauses.again(name, set, key) end
        gate.close()
    end
end

local function rate_pause(ARGV)
    local name, for_us = ARGV[2], ARGV[3] ~= '' and tonumber(ARGV[3])
    if #ARGV ~= 5 or not is_name(name) then return refuse('rate_pause: wants now, limit, for_us, what, by') end
    if ARGV[3] ~= '' and not is_whole(for_us) or for_us and for_us > LONGEST then return refuse('pause: must be at most ten years (3650d)') end
    local refusal = partition.refusal(name)
    if refusal then return refusal end
    local wrong = rates.wrong_keys() or rates.wrong_gates(name)
    if wrong then return check.refuse_key(wrong) end
    local text = call('HGET', P .. 'limits', name)
    if not text then return answer{missing = name} end
    if not for_us then return refuse('pause %s: for how long? give a time such as 10m; without one only a key is paused: %s/KEY', name, name) end
    local set = rules.read(text)
    if not set then return refuse('limit %s: its rules cannot be read; set it again with weir rate set', name) end

    local paused = rules.paused(set) > now
    if for_us == 0 and resume_gates(name, set) then paused = true end
    local parts = rates.split(text)
    parts.pause = for_us > 0 and us(now + for_us) .. '/' .. us(now) or nil
    rates.write(name, parts)
    if for_us == 0 then resume_waiting(name, set) end
    rates.record(ARGV[4], ARGV[5], 'limit', name)
    rates.wake({name})
    local asleep, rest = rates.look_on('0', '', {})
    return answer{was = paused, asleep = asleep, rest = rest}
end

return rate_pause

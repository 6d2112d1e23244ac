-- rate_pause_key: pauses one key of a limit, for a time or until it is resumed; or ends its pause, and those that providers asked for. What waits is
-- looked at again.
--
-- KEYS[1] prefix
-- ARGV: now, limit, key, the key as jobs have it ('': the same), for_us ('': until it is resumed; 0: resume), reason, what, by (for the log)
-- role: operator
-- reply: JSON: {"was": was it paused, "before", "pause": as rate_pause has them, "rest": as rate_wake has it}
--        {"missing": limit}
-- uses: check gate key_pauses partition rates reasons rules

local LONGEST = 3650 * 86400 * 1000000

-- Returns the gates of a key, and their names. nil: the first of their keys that is of a wrong kind.
local function gates_of(name, set, key)
    local gates, names = {}, {}
    for i, rule in ipairs(set.keyed) do
        names[i] = rates.gate_name(name, rule) .. '/' .. key
        gates[i] = gate.load_safe(names[i], rule)
        if not gates[i] then return nil, check.wrong_kind('gate:' .. names[i], 'string') end
    end
    return gates, names
end

-- Returns whether a gate was paused.
local function resume(name, key, gates)
    local was = false
    for _, g in ipairs(gates) do
        was = was or g.pause and true
        gate.resume(g)
    end
    key_pauses.forget(name, key)
    return was
end

-- What is wrong with the words of the call; nil: nothing.
local function wrong_words(ARGV, for_us)
    if #ARGV ~= 8 or not is_name(ARGV[2]) or not is_name(ARGV[3]) or #ARGV[4] > key_pauses.TEXT_MOST
        or find(ARGV[4], '%c') then
        return 'rate_pause_key: wants now, limit, key, text, for_us, reason, what, by'
    end
    if ARGV[5] ~= '' and (not is_whole(for_us) or for_us > LONGEST) then return 'pause: must be at most ten years (3650d)' end
end

local function rate_pause_key(ARGV)
    local name, key, shown, for_us = ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
    local wrong = wrong_words(ARGV, for_us)
    if wrong then return refuse('%s', wrong) end
    local refusal = partition.refusal(name) or reasons.refusal(ARGV[6])
    if refusal then return refusal end
    wrong = reasons.wrong() or rates.wrong_keys()
    if wrong then return check.refuse_key(wrong) end
    local text = call('HGET', P .. 'limits', name)
    if not text then return answer{missing = name} end
    local set = rules.read(text)
    if not set or not set.path then
        return refuse('limit %s: has no keys to pause; set a rule with ,by=PATH, as in 10/s,by=args.customer', name)
    end
    local gates, names = gates_of(name, set, key)
    if not gates then return check.refuse_key(names) end
    local before = reasons.pause('key', name .. '/' .. key, key_pauses.pause(name, key))
    local was = before and true or false
    if for_us ~= 0 and not was and not key_pauses.has_room() then
        return refuse('limit %s: %d keys of all limits are paused, and that is the most; resume some (weir status)', name, key_pauses.MOST)
    end

    if for_us == 0 then
        was = resume(name, key, gates) or was
    else
        key_pauses.write(name, set, key, key_pauses.text(for_us and now + for_us or key_pauses.ENDLESS, shown))
    end
    gate.save()
    local pause = key_pauses.pause(name, key)
    reasons.set('key', name .. '/' .. key, ARGV[6], pause and pause.pause_until)
    rates.record(ARGV[7], ARGV[8], 'limit', name)
    rates.wake_at(names)
    return answer{was = was, before = before, pause = reasons.pause('key', name .. '/' .. key, pause), rest = rates.rest()}
end

return rate_pause_key

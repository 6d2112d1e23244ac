-- rate_pause_key: pauses one key of a limit, for a time or until it is resumed; or ends its pause, and those that providers asked for. What waits is
-- looked at again.
--
-- ARGV: now, limit, key, the key as jobs have it ('': the same), for_us ('': until it is resumed; 0: resume), reason, what, by (for the log)
-- role: operator
-- reply: JSON: {"was": was it paused, "before", "pause": as rate_pause has them, "rest": as rate_wake has it}
--        {"missing": limit}
-- uses: check gate key_pauses key_rules partition rates reasons rules

-- Returns the gates of a key, and their names. nil: the first of their keys that is of a wrong kind.
local function gates_of(name, set, key)
    local gates, names = {}, {}
    for i, rule in ipairs((key_rules.list(name, set, key))) do
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

local function rate_pause_key(ARGV)
    local name, key, shown = ARGV[2], ARGV[3], ARGV[4]
    if #ARGV ~= 8 or not is_name(name) or not rules.is_key(key) or #shown > key_pauses.TEXT_MOST or find(shown, '%c') then
        return refuse('rate_pause_key: wants now, limit, key, text, for_us, reason, what, by')
    end
    local refusal = partition.refusal(name)
    if refusal then return refusal end
    local wrong, till = reasons.wrong() or rates.wrong_keys(), nil
    if wrong then return check.refuse_key(wrong) end
    till, refusal = reasons.read(ARGV[5], ARGV[6])
    if refusal then return refusal end
    local text = call('HGET', P .. 'limits', name)
    if not text then return answer{missing = name} end
    local set = rules.read(text)
    if not set or not set.path then
        return refuse('limit %s: has no keys to pause; set a rule with ,by=PATH, as in 10/s,by=args.customer', name)
    end
    key = rules.key(set, key)
    local gates, names = gates_of(name, set, key)
    if not gates then return check.refuse_key(names) end
    local before = reasons.pause('key', name .. '/' .. key, key_pauses.pause(name, key))
    local was = before and true or false
    if till and not was and not key_pauses.has_room() then
        return refuse('limit %s: %d keys of all limits are paused, and that is the most; resume some (weir status)', name, key_pauses.MOST)
    end

    if till then
        key_pauses.write(name, set, key, key_pauses.text(till, shown))
    else
        was = resume(name, key, gates) or was
    end
    gate.save()
    local pause = key_pauses.pause(name, key)
    reasons.set('key', name .. '/' .. key, ARGV[6], pause and pause.pause_until)
    rates.record(ARGV[7], ARGV[8], 'limit', name)
    rates.wake_at(names)
    return answer{was = was, before = before, pause = reasons.pause('key', name .. '/' .. key, pause), rest = rates.rest()}
end

return rate_pause_key

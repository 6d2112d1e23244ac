-- schedule_get: one schedule; changes nothing.
--
-- KEYS[1] prefix
-- ARGV: now, name
-- reply: [ now, its definition, its next occurrence ]; each is '' where there is none
-- writes: nothing
-- uses: check

local function schedule_get(ARGV)
    if #ARGV ~= 2 or not is_name(ARGV[2]) then return refuse('schedule_get: wants a name') end
    local wrong = check.wrong_kind('schedules', 'hash') or check.wrong_kind('later', 'zset')
    if wrong then return check.refuse_key(wrong) end

    local due = call('ZSCORE', P .. 'later', 's ' .. ARGV[2] .. '\n')
    return {us(now), call('HGET', P .. 'schedules', ARGV[2]) or '', due and us(tonumber(due)) or ''}
end

return schedule_get

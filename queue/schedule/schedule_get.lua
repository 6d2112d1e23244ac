-- schedule_get: one schedule; changes nothing.
--
-- KEYS[1] prefix
-- ARGV: now, name
-- reply: JSON, as schedule_list answers it: with that schedule alone, or none
-- writes: nothing
-- uses: check schedule_row

local function schedule_get(ARGV)
    if #ARGV ~= 2 or not is_name(ARGV[2]) then return refuse('schedule_get: wants a name') end
    local wrong = check.wrong_kind('schedules', 'hash') or check.wrong_kind('later', 'zset')
    if wrong then return check.refuse_key(wrong) end

    local definition = call('HGET', P .. 'schedules', ARGV[2])
    return answer{now = us(now), schedules = {definition and schedule_row(ARGV[2], definition) or nil}}
end

return schedule_get

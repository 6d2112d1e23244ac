-- schedule_add: a schedule, new or instead of the one of that name.
--
-- ARGV: now, name,
--       definition   JSON (queue/schedule/schedule.h); no script looks into it
--       next         its next occurrence, us
--       keep         1: the occurrence that the one of that name waits for stays the next one, so that none is lost; 0
--       type, cost   of its jobs; cost: as cost.lua writes it, or '': none of their own
-- role: operator
-- reply: JSON: {"known": was there one?}
-- full: refused
-- uses: arrival bell check cost later_records partition

local NAME_MOST = 100 -- with the time of an occurrence it is a job's id

local function wrong_arguments(ARGV, next_us)
    if #ARGV ~= 7 then return 'wants 7 arguments' end
    if not is_name(ARGV[2]) or #ARGV[2] > NAME_MOST then return 'its name is not a valid name, or too long' end
    if ARGV[3] == '' then return 'its definition is missing' end
    if not is_whole(next_us, 1) then return 'next must be a time' end
    if ARGV[5] ~= '0' and ARGV[5] ~= '1' then return 'keep must be 0 or 1' end
    if not is_name(ARGV[6]) then return 'its type is not a valid name' end
    if ARGV[7] ~= '' and not cost.parse(ARGV[7]) then return 'its cost must be a whole number, or numbers by name' end
end

local function schedule_add(ARGV)
    local name, next_us = ARGV[2], tonumber(ARGV[4])
    local wrong = wrong_arguments(ARGV, next_us)
    if wrong then return refuse('schedule_add: %s', wrong) end
    local refusal = partition.refusal(ARGV[6])
    if refusal then return refusal end
    wrong = check.wrong_kind('schedules', 'hash') or check.wrong_kind('later', 'zset')
        or ARGV[7] ~= '' and (check.wrong_kind('limits', 'hash') or check.wrong_kind('types', 'hash'))
    if wrong then return check.refuse_key(wrong) end
    wrong = arrival.never_fits(ARGV[6], cost.parse(ARGV[7]))
    if wrong then return refuse('%s', wrong) end

    local record = 's ' .. name .. '\n'
    local known = call('HEXISTS', P .. 'schedules', name)
    local kept = ARGV[5] == '1' and known == 1 and call('ZSCORE', P .. 'later', record)
    next_us = kept and tonumber(kept) or next_us
    call('HSET', P .. 'schedules', name, ARGV[3])
    if later_records.put(record, next_us) then bell.ring() end
    return answer{known = known == 1}
end

return schedule_add

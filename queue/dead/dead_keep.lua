-- dead_keep: the bounds of the dead jobs, and what there is; or other bounds.
--
-- ARGV: now, most, age_us, bytes (the new bounds; '' each: as it is), write (1; 0: they are only looked at)
-- role: operator
-- reply: JSON: {"keep_jobs", "keep_age", "keep_bytes": the bounds, the new ones; "jobs": dead jobs, "bytes": of them, if all are counted;
--        "beyond": how many are beyond these bounds by number or age, "oldest_at": when the oldest died, us, if there is one}
-- uses: check dead_bounds dead_bytes dead_records

local function read_bounds(ARGV)
    local bounds = {}
    for i = 1, 3 do
        local text = ARGV[i + 1]
        bounds[i] = text ~= '' and tonumber(text)
        if text ~= '' and not is_whole(bounds[i], 1) then return nil end
    end
    return bounds
end

local function dead_keep(ARGV)
    local wanted = #ARGV == 5 and find(ARGV[5], '^[01]$') and read_bounds(ARGV)
    if not wanted then return refuse('dead_keep: wants now, three bounds or empty words, and 0 or 1') end
    local wrong = check.wrong_kind('dead', 'zset') or check.wrong_kind('settings', 'hash') or check.wrong_kind('dead_bytes', 'hash')
    if wrong then return check.refuse_key(wrong) end
    local bounds = dead_bounds.read()
    for i = 1, 3 do bounds[i] = wanted[i] or bounds[i] end
    if ARGV[5] == '1' then dead_bounds.write(wanted) end
    local oldest = call('ZRANGE', P .. 'dead', '0', '0', 'WITHSCORES')[2]
    return answer{keep_jobs = us(bounds[1]), keep_age = us(bounds[2]), keep_bytes = us(bounds[3]), jobs = call('ZCARD', P .. 'dead'),
                  bytes = dead_bytes.read(), beyond = dead_bounds.excess(bounds), oldest_at = oldest and dead_records.time(oldest)}
end

return dead_keep

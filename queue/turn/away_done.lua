-- away_done: jobs that have arrived on another partition leave this one.
--
-- KEYS[1] prefix
-- ARGV: now, the partition, the number of the last one that has arrived there (away_arrive)
-- role: worker
-- reply: how many are left for that partition
-- format: any
-- uses: away check lease

local MOST = 1000

local function away_done(ARGV)
    local to, last = ARGV[2], tonumber(ARGV[3])
    if #ARGV ~= 3 or not is_whole(tonumber(to)) or not is_whole(last) then return refuse('away_done: wants a partition and a number') end
    local wrong = check.wrong_kind('away:' .. to, 'list')
    if wrong then return check.refuse_key(wrong) end
    local key, left = P .. 'away:' .. to, {}
    for _ = 1, MOST do
        local number, _, name = away.read(call('LINDEX', key, '0') or '')
        if not number or number > last then break end
        call('LPOP', key)
        left[name] = (left[name] or 0) + 1
    end
    for name, n in pairs(left) do lease.count(name, 'set_aside', -n) end
    return call('LLEN', key)
end

return away_done

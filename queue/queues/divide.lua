-- divide: this partition is one of so many from now on. Nothing may be here before: what is, would be looked for elsewhere.
--
-- ARGV: now, how many partitions, 2 to 64, or '' to look
-- role: operator
-- reply: JSON: {"count": how many there are, absent: that was never set, "used": there is something here}
-- uses: check partition

local function is_used()
    return call('EXISTS', P .. 'queues', P .. 'types', P .. 'limits', P .. 'workers', P .. 'later', P .. 'dead', P .. 'schedules', P .. 'batches',
                P .. 'duty', P .. 'about') > 0
end

local function divide(ARGV)
    local count = tonumber(ARGV[2])
    if #ARGV ~= 2 or ARGV[2] ~= '' and not (is_whole(count, 2) and count <= partition.MOST) then
        return refuse('divide: wants 2 to %d partitions', partition.MOST)
    end
    local wrong = check.wrong_kind('about', 'hash')
    if wrong then return check.refuse_key(wrong) end
    local was = call('HGET', P .. 'about', 'partitions') or nil
    local used = not was and is_used()
    if count and not used and (not was or partition.own() > 0) then
        partition.write_count(count)
        was = us(count)
    end
    return answer{count = was, used = used}
end

return divide

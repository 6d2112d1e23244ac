-- doctor_counts: the counters of some types, and how many jobs all queues hold.
--
-- KEYS[1] prefix
-- ARGV: now, type, ...
-- reply: [ jobs in queues, counters * types ]: counters as doctor_judge.counters tells them
-- writes: nothing
-- uses: doctor_judge

local function doctor_counts(ARGV)
    local queued = 0
    for _, name in ipairs(call_safe('SMEMBERS', P .. 'queues')) do
        local length = call_safe('LLEN', P .. 'queue:' .. name)
        if type(length) == 'number' then queued = queued + length end
    end
    local reply = {queued}
    for i = 2, #ARGV do reply[i] = doctor_judge.counters(ARGV[i]) end
    return reply
end

return doctor_counts

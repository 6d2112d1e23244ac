-- dead_leave: dead jobs that have come to the partition of their type (dead_arrive) leave this one.
--
-- ARGV: now, record, ...
-- role: operator
-- reply: JSON: {"jobs": how many have left now}
-- uses: check dead_moves dead_records

local function dead_leave(ARGV)
    if #ARGV < 2 then return refuse('dead_leave: wants records') end
    local wrong = check.wrong_kind('dead', 'zset')
    if wrong then return check.refuse_key(wrong) end
    local jobs = {}
    for i = 2, #ARGV do
        local score = call('ZSCORE', P .. 'dead', ARGV[i])
        if score then jobs[#jobs + 1] = {record = ARGV[i], score = score, type = dead_records.read(ARGV[i]).type} end
    end
    if #jobs > 0 then dead_moves.leave(jobs) end
    return answer{jobs = #jobs}
end

return dead_leave

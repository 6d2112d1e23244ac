-- doctor_flight: gates that count jobs in flight, and whether leases agree; all of it is read in this one call.
--
-- KEYS[1] prefix
-- ARGV: now, n, worker * n (beside those that are registered), gate, ...
-- reply: [ leases in all, 1 when they were counted and 0 when they are too many, [gate, what it says, leases, ...] ]: gates
--        that are wrong
-- writes: nothing
-- uses: doctor_judge doctor_slots

local function compare(names, workers)
    local counts, total = doctor_slots.count(names, workers)
    local wrong = {}
    for _, name in ipairs(counts and names or {}) do
        local says = doctor_slots.says(name)
        if says and says ~= counts[name] then
            wrong[#wrong + 1], wrong[#wrong + 2], wrong[#wrong + 3] = name, says, counts[name]
        end
    end
    return {total, counts and 1 or 0, wrong}
end

local function doctor_flight(ARGV)
    local n, workers, names = tonumber(ARGV[2]), {}, {}
    if not is_whole(n) or #ARGV < 2 + n then return refuse('doctor_flight: wants now, n, n workers, gates') end
    for i = 3, 2 + n do workers[#workers + 1] = ARGV[i] end
    for i = 3 + n, #ARGV do names[#names + 1] = ARGV[i] end
    local ok, reply = pcall(compare, names, workers)
    if ok or not doctor_judge.is_wrong_kind(reply) then return reply end
    return {0, 1, {}} -- a key that this needs holds something else, and is found for that
end

return doctor_flight

-- duty: who has the pacing duty of a group of workers, and who is the second: it claims when the duty ends, unless it was renewed, and takes
-- it over. The hash `duty` is drawn in bell; claim_duty gives and takes it.
local duty = {}

duty.US = 800000         -- it passes to another when its holder is silent for that long
duty.SECOND_US = 2000000 -- so does the part of the second

-- Returns the field of the second worker.
function duty.second(group) return group .. '/second' end

-- Returns which worker has that field, for at most so long, and until when; nil: none. A key of a wrong kind counts as none.
function duty.holder(field, most_us)
    local text = call_safe('HGET', P .. 'duty', field)
    local holder, till = match(type(text) == 'string' and text or '', '^(%S+) (%d+)')
    till = tonumber(till)
    if holder and till > now and till <= now + most_us then return holder, till end
end

-- True when one other worker has the duty and another is the second. Then this one need not claim to see whether anybody does.
function duty.is_of_others(group, worker)
    local holder = duty.holder(group, duty.US)
    local second = holder and holder ~= worker and duty.holder(duty.second(group), duty.SECOND_US)
    return second and second ~= worker
end

return duty

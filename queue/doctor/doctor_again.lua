-- doctor_again: looks once more, and at all places, at things that seemed wrong.
--
-- ARGV: now, thing, ... (as of doctor_faults.each)
-- role: viewer
-- reply: JSON: found, a list of doctor_faults.find
-- writes: nothing
-- uses: doctor_faults

local function doctor_again(ARGV) return doctor_faults.each(ARGV, doctor_faults.find) end

return doctor_again

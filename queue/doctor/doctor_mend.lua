-- doctor_mend: repairs things that are wrong still, judged at all places within this call.
--
-- ARGV: now, thing, ... (as of doctor_faults.each)
-- role: operator
-- reply: JSON: found, a list of doctor_faults.repair
-- uses: doctor_faults

local function doctor_mend(ARGV) return doctor_faults.each(ARGV, doctor_faults.repair) end

return doctor_mend

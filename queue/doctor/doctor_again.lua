-- doctor_again: looks once more, and at all places, at things that seemed wrong.
--
-- KEYS[1] prefix
-- ARGV: now, n, limit * n (that gates are named after and that are not there), then family, name of each thing
-- reply: [family, name, kind, in words, ...]: those that are wrong still
-- writes: nothing
-- uses: doctor_judge

local function doctor_again(ARGV)
    local n = tonumber(ARGV[2])
    if not is_whole(n) or #ARGV < 2 + n or (#ARGV - 2 - n) % 2 ~= 0 then
        return refuse('doctor_again: wants now, n, n limits, families and names')
    end
    doctor_judge.gone = {}
    for i = 3, 2 + n do doctor_judge.gone[i - 2] = ARGV[i] end
    local found = {}
    for i = 3 + n, #ARGV, 2 do
        if not doctor_judge.is_family(ARGV[i]) then return refuse('doctor_again: %s is no family', ARGV[i]) end
        local kind, text = doctor_judge.look(ARGV[i], ARGV[i + 1], true)
        if kind then
            local at = #found
            found[at + 1], found[at + 2], found[at + 3], found[at + 4] = ARGV[i], ARGV[i + 1], kind, text
        end
    end
    return found
end

return doctor_again

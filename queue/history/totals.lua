-- totals: all that workers have recorded of some types or limits, since they were first recorded, or again after 72 hours without anything. Touches
-- nothing.
--
-- ARGV: now, what (t: types, l: limits), name, ...
-- role: viewer
-- reply: JSON: {}, raw: a slot of number 0 for each name, as it stands there (slot.c reads it); of what was never recorded, lives
--        elsewhere or cannot be read ''
-- writes: nothing
-- uses: minutes

local NAMES_MOST = 200 -- of one call: half a millisecond

local function totals(ARGV)
    local what = ARGV[2]
    if #ARGV < 3 or #ARGV > NAMES_MOST + 2 or not find(what, '^[tl]$') then return refuse('totals: wants now, t or l, up to 200 names') end
    local slots = {}
    for i = 3, #ARGV do
        if not is_name(ARGV[i]) then return refuse('totals: %s', 'a name is not valid') end
        slots[i - 2] = minutes.text_of_all(what .. '/' .. ARGV[i])
    end
    return answer({}, slots)
end

return totals

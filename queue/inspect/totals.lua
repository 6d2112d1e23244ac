-- totals: all that workers have recorded of some types or limits, since they were first recorded, or again after 72 hours without anything. Touches
-- nothing.
--
-- KEYS[1] prefix
-- ARGV: now, what (t: types, l: limits), name, ...
-- role: viewer
-- reply: JSON: {"rows": [as slot_rows says, ...]}, one for each name; of what was never recorded, lives elsewhere or cannot be read an empty one
-- writes: nothing
-- uses: minutes slot_rows

local NAMES_MOST = 200 -- of one call: 3 ms

local function totals(ARGV)
    local what = ARGV[2]
    if #ARGV < 3 or #ARGV > NAMES_MOST + 2 or not find(what, '^[tl]$') then return refuse('totals: wants now, t or l, up to 200 names') end
    local rows = {}
    for i = 3, #ARGV do
        if not is_name(ARGV[i]) then return refuse('totals: %s', 'a name is not valid') end
        rows[i - 2] = slot_rows.of(minutes.read_all(what .. '/' .. ARGV[i]))
    end
    return answer{rows = rows}
end

return totals

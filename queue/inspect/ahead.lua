-- ahead: how many jobs of a type stand in a stretch of a queue or lane, and what they cost; changes nothing.
--
-- ARGV: now, place (queue:<queue> or lane:<lane>), first, last (indexes, at most 1000), type
-- role: viewer
-- reply: JSON: {"jobs", "slots", "least", "most": slots of the cheapest and the dearest, "looked_at": entries, fewer where they are large},
--        numbers as text
--
-- writes: nothing
-- uses: body slices types

local function ahead(ARGV)
    local place, first, last, name = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
    if not (is_name(name) and is_whole(first) and is_whole(last)) or last - first >= 1000 or not place:match('^%a+:') then
        return refuse('ahead: wants now, place, first, last, type')
    end
    local t, in_lane = types.load(name), find(place, 'lane:', 1, true) == 1
    local jobs, slots, least, most = 0, 0, 0, 0
    local entries = slices.read('LRANGE', P .. place, first, last - first + 1, slices.deep_load())
    for _, entry in ipairs(entries) do
        if in_lane or body.type(entry) == name then
            local cost = body.cost(entry) or t.cost
            least, most = jobs == 0 and cost or min(least, cost), max(most, cost)
            jobs, slots = jobs + 1, slots + cost
        end
    end
    return answer{jobs = us(jobs), slots = us(slots), least = us(least), most = us(most), looked_at = us(#entries)}
end

return ahead

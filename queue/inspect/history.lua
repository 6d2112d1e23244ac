-- history: what has happened to a type or at a limit, by minutes or hours, as workers have recorded it; touches nothing.
--
-- KEYS[1] prefix
-- ARGV: now, what (t: a type, l: a limit), name, step (m: minutes, h: hours), how many slots at most
-- role: viewer
-- reply: JSON: {"now": "us", "name":, "step": us, "slots": [slot, ...], "starts_now": [start, ...]}; slots oldest first, those without
--        counts left out, the last one goes on; start: ["us", n], a tenth of a second of the last minute in which n jobs started, of a limit
--        slot: {"at": "us", and what slot_rows says}
-- writes: nothing
-- uses: check minutes partition slot_rows

local function by_first(a, b) return a[1] < b[1] end

local function starts_of(slots)
    local starts = {}
    for _, slot in ipairs(slots) do
        for _, code in ipairs(slot.codes) do
            local at = slot.at + (byte(code) - 97) * minutes.TENTH_US
            if find(code, '^[a-j]$') and at > now - minutes.MINUTE_US then starts[#starts + 1] = {at, slot.counts[code]} end
        end
    end
    sort(starts, by_first)
    for _, start in ipairs(starts) do start[1] = us(start[1]) end
    return starts
end

local function history(ARGV)
    local what, name, step, most = ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
    if #ARGV ~= 5 or not find(what, '^[tl]$') or not is_name(name) or not find(step, '^[mh]$') or not is_whole(most, 1) then
        return refuse('history: wants now, t or l, name, m or h, most')
    end
    local refused = partition.refusal(name)
    if refused then return refused end
    local slots = minutes.read(what .. '/' .. name, step == 'h', most)
    if not slots then return check.refuse_key(check.wrong_kind('minutes:' .. what .. '/' .. name, 'hash')) end
    local reply = {now = us(now), name = name, step = step == 'h' and minutes.HOUR_US or minutes.MINUTE_US, slots = {}}
    for i, slot in ipairs(slots) do
        reply.slots[i] = slot_rows.of(slot)
        reply.slots[i].at = us(slot.at)
    end
    local starts = what == 'l' and minutes.read_starts(name)
    if starts then reply.starts_now = starts_of(starts) end
    return answer(reply)
end

return history

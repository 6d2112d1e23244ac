-- history: what has happened to a type or at a limit, by minutes or hours, as workers have recorded it; touches nothing.
--
-- ARGV: now, what (t: a type, l: a limit), name, step (m: minutes, h: hours), how many slots at most
-- role: viewer
-- reply: JSON: {"now": "us", "name":, "step": us, "first": number of the first slot, "starts_now": [start, ...], "wasted_now": [loss, ...]},
--        raw: the slots as they stand there, oldest first, '' for one that is not there; the last one goes on. Of a limit alone, and of the
--        last minute: start: ["us", n], a tenth of a second in which n jobs started; loss: ["us", reason, n], a second in which n slots were lost
--        Who asks reads the slots (slot.c): here that would take 5 ms for two hours
-- writes: nothing
-- uses: check minutes partition

local WASTED = {N = 'no_job', E = 'no_executor', H = 'held', L = 'late'}

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

local function losses_of(slots)
    local losses = {}
    for _, slot in ipairs(slots) do
        for _, code in ipairs(slot.codes) do
            local reason = WASTED[code]
            if reason then losses[#losses + 1] = {us(slot.at), reason, slot.counts[code]} end
        end
    end
    return losses
end

local function history(ARGV)
    local what, name, step, most = ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
    if #ARGV ~= 5 or not find(what, '^[tl]$') or not is_name(name) or not find(step, '^[mh]$') or not is_whole(most, 1) then
        return refuse('history: wants now, t or l, name, m or h, most')
    end
    local refused = partition.refusal(name)
    if refused then return refused end
    local texts, first = minutes.texts(what .. '/' .. name, step == 'h', most)
    if not texts then return check.refuse_key(check.wrong_kind('minutes:' .. what .. '/' .. name, 'hash')) end
    local reply = {now = us(now), name = name, step = step == 'h' and minutes.HOUR_US or minutes.MINUTE_US, first = first}
    local seconds = what == 'l' and minutes.read_seconds(name)
    if seconds then reply.starts_now, reply.wasted_now = starts_of(seconds), losses_of(seconds) end
    return answer(reply, texts)
end

return history

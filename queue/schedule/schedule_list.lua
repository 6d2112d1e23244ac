-- schedule_list: a page of the schedules, or one of them; changes nothing.
--
-- ARGV: now, name ('': all), cursor (where the last page ended; none at first)
-- role: viewer
-- reply: JSON: {"now": us, "next": [cursor], unless that was the last page, "schedules": [{"name":, "definition": JSON text, "due": us of
--        its next occurrence, if it has one, "pause": as reasons.noted has it, "fired": of one, as
--        fired.read has it}, ...]}; one may be on two pages
-- writes: nothing
-- uses: check fired reasons

local PAGE = 100

-- Returns HSCAN's cursor, and names and definitions in turn.
local function read(name, cursor)
    if name == '' then return unpack(call('HSCAN', P .. 'schedules', cursor, 'COUNT', PAGE)) end
    local definition = call('HGET', P .. 'schedules', name)
    return '0', definition and {name, definition} or {}
end

local function schedule_list(ARGV)
    local name, cursor = ARGV[2], ARGV[3] or '0'
    if #ARGV < 2 or #ARGV > 3 or name ~= '' and not is_name(name) or not find(cursor, '^%d+$') then
        return refuse('schedule_list: wants a name or an empty word, and a cursor or none')
    end
    local wrong = check.wrong_kind('schedules', 'hash') or check.wrong_kind('later', 'zset') or reasons.wrong() or fired.wrong()
    if wrong then return check.refuse_key(wrong) end

    local next_cursor, found = read(name, cursor)
    local rows = {}
    for i = 1, #found, 2 do
        local due = call('ZSCORE', P .. 'later', 's ' .. found[i] .. '\n')
        rows[#rows + 1] = {name = found[i], definition = found[i + 1], due = due and us(tonumber(due)) or nil,
                            pause = reasons.noted('schedule', found[i]), fired = name ~= '' and fired.read(name) or nil}
    end
    return answer{now = us(now), next = next_cursor ~= '0' and {next_cursor} or nil, schedules = rows}
end

return schedule_list

-- schedule_list: a page of the schedules; changes nothing.
--
-- KEYS[1] prefix
-- ARGV: now, cursor ('0' at first; the last page answers '0')
-- reply: JSON: {"now": us, "cursor": text, "schedules": [{"name":, "definition": JSON text, "due": us of its next occurrence, if it has
--        one}, ...]}; one may be on two pages
-- writes: nothing
-- uses: check schedule_row

local PAGE = 100

local function schedule_list(ARGV)
    if #ARGV ~= 2 or not find(ARGV[2], '^%d+$') then return refuse('schedule_list: wants a cursor') end
    local wrong = check.wrong_kind('schedules', 'hash') or check.wrong_kind('later', 'zset')
    if wrong then return check.refuse_key(wrong) end

    local page, rows = call('HSCAN', P .. 'schedules', ARGV[2], 'COUNT', PAGE), {}
    for i = 1, #page[2], 2 do rows[#rows + 1] = schedule_row(page[2][i], page[2][i + 1]) end
    return answer{now = us(now), cursor = page[1], schedules = rows}
end

return schedule_list

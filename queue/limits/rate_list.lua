-- rate_list: the limits and the states of their gates, or the names of all types, a page of them; changes nothing.
--
-- ARGV: now, what ("limits" or "types") [, cursor: the place where the last call ended, values that a scan has found and that were not taken, ...]
-- role: viewer
-- reply: JSON: {"now": us, "next": [cursor, ...], the place to go on from; absent: that was all,
--        "own_keys": {limit: how many keys of it have rules of their own, where some have}},
--        raw: of each limit its lines: name, rules, state of gate #0, of gate #1, ...; a state is '' where there is none or the rule is keyed,
--        '?' where it is no line. Who reads it would need three times as long for JSON. Of each type its name. One may come twice
-- writes: nothing
-- uses: key_rules rates rules time_budget

local COUNT = '100' -- asked of a scan, which may find some more

local function line(text) return find(text, '%c') and '?' or text end

local row, own_keys = {}, nil

function row.limits(name, text)
    local lines, set = {line(name), line(text)}, rules.read(text)
    local count = set and set.path and key_rules.count(name) or 0
    if count > 0 then own_keys[name] = us(count) end
    for i, rule in ipairs(set or {}) do
        time_budget.spend(1)
        lines[i + 2] = not rule.by and line(call('GET', P .. 'gate:' .. rates.gate_name(name, rule)) or '') or ''
    end
    return concat(lines, '\n')
end

function row.types(name) return line(name) end

local function take(name, text, raw, row_of)
    time_budget.spend(1)
    raw[#raw + 1] = row_of(name, text)
end

local function rate_list(ARGV)
    local what, cursor, found, raw = ARGV[2], ARGV[3] or '0', time_budget.rest({}, ARGV, 4), {}
    if not row[what] or not find(cursor, '^%d+$') or #found % 2 ~= 0 then
        return refuse('rate_list: wants now, limits or types, perhaps a cursor and what was found')
    end
    local left
    time_budget.begin()
    own_keys = {}
    repeat
        if #found == 0 then cursor, found = unpack(call('HSCAN', P .. what, cursor, 'COUNT', COUNT)) end
        left = time_budget.take(found, 2, take, raw, row[what])
        if not left then found = {} end
    until left or cursor == '0' or time_budget.is_spent()
    return answer({now = us(now), own_keys = own_keys, next = (left or cursor ~= '0') and time_budget.rest({cursor}, found, left or 1) or nil}, raw)
end

return rate_list

-- rate_export: what somebody has set: limits with the weights and pauses of their keys, types, pauses of queues; a page of it, changes nothing.
--
-- ARGV: now [, what ("limits" or "types"), cursor: the place where the last call ended]
-- role: viewer
-- reply: JSON: {"now": us, "rows": [row, ...], "next": [what, cursor], unless that was all}; a row may come twice
--        {"kind": "limit", "name":, "rules": as they are stored, "weights": [key, weight, ...], "keys": [key, until in us, reason, ...], "own": keys have rules of their own, "pause": as reasons.pause
--        has it}
--        {"kind": "type", "name":, "use": [limit, ...], "cost": as cost.lua writes it, "pause":}
--        {"kind": "queue", "name":, "pause":}
-- writes: nothing
-- uses: cost key_pauses key_rules rates reasons rules types

local COUNT = '200' -- asked of a scan

local take = {}

local function paused_keys(name)
    local keys, lines = {}, key_pauses.lines(name)
    local why = lines[1] and reasons.all('key')
    for _, line in ipairs(lines) do
        local key, till, shown = match(line, '^(%S+) (%d+)/%d+ ?(.*)$')
        keys[#keys + 1], keys[#keys + 2], keys[#keys + 3] = shown ~= '' and shown or key, till, why[name .. '/' .. key] or ''
    end
    return keys
end

function take.limits(name, text)
    local set = rules.read(text)
    return {kind = 'limit', name = name, rules = concat(rates.split(text).rules, ' '), weights = rates.weights(name),
            keys = set and set.path and paused_keys(name) or nil,
            own = key_rules.count(name) > 0 or nil,
            pause = set and rules.paused(set) > 0 and reasons.pause('limit', name, set) or nil}
end

function take.types(name, text)
    local t = types.parse(name, text)
    if types.attributes(t) == '' then return nil end
    return {kind = 'type', name = name, use = t.use, cost = cost.text(t.costs or t.cost), pause = reasons.pause('type', name, t.pause)}
end

local function add_queues(rows)
    for _, name in ipairs(reasons.names('queue')) do
        rows[#rows + 1] = {kind = 'queue', name = name, pause = reasons.noted('queue', name)}
    end
end

local function rate_export(ARGV)
    local what, cursor, rows = ARGV[2] or 'limits', ARGV[3] or '0', {}
    if #ARGV == 2 or #ARGV > 3 or not take[what] or not find(cursor, '^%d+$') then
        return refuse('rate_export: wants now, and a place or none')
    end
    local found = call('HSCAN', P .. what, cursor, 'COUNT', COUNT)
    for i = 1, #found[2], 2 do rows[#rows + 1] = take[what](found[2][i], found[2][i + 1]) end
    cursor = found[1]
    if cursor == '0' then
        if what == 'types' then
            add_queues(rows)
            what = nil
        else
            what = 'types'
        end
    end
    return answer{now = us(now), rows = rows, next = what and {what, cursor} or nil}
end

return rate_export

-- why: what holds a job that waits in a queue or lane; changes nothing.
--
-- ARGV: now, place (queue:<queue> or lane:<lane>), type, body
-- role: viewer
-- reply: JSON: {"now": "us", "key": what stands for its key, "lane": its lane (lane:<lane>), "length": jobs there, "cost": "slots", "costs": all of it, as cost.lua writes it, where rules count slots by name,
--        "served": a worker takes its type, from that queue; else "resting": those that would, and were told to take no more jobs, the last one at "resting_since" (0: unknown); "elsewhere": other queues have jobs that may be of the type, "turns":
--        lanes that have their turn before its own, when that is in the ring, "before": the same as if it were in the ring by now,
--        "gates": [{"limit_name", "index": of the rule, "state", "never": true: the first of the lane can never start here, "opens_at":
--        for the first of the lane, now when it is open, not there: when a job ends; "throttled_until", "held_until": for another; 0: not at
--        all; "paused": of its limit or key, as reasons.pause has it; "own_rule": the stored form of a rule that the key has for itself, until "own_until"
--        (0: no end); "closed": true: it is closed until such rules are renewed; "holders", "lease_ends": who hold slots of it on lease, and
--        the first end}, ...], "pause": of the type, likewise}; or only "now", "cost" and
--        "misplaced": its type does not live here, and a worker that meets it buries it for that reason. Times are "us". Without index: "rule": false: its rules cannot be read, else the limit is paused as a whole
--
-- writes: nothing
-- uses: blocked_queues body check cost gate holds lane_names orders partition pattern reasons registry rules type_lists types

-- Since when somebody waits there; now: not yet.
local function ticket_of(queue, gates, node)
    local names = {'-'}
    for i, spec in ipairs(gates) do names[i + 1] = spec.name end
    for _, name in ipairs(names) do
        local ticket = call('ZSCORE', P .. 'wait:' .. queue .. '/' .. name, node)
        if ticket then return tonumber(ticket) end
    end
    return now
end

local function gate_row(spec, name, cost, node, ticket)
    local limit, own = spec.name:match('^[^#]+'), spec.own
    if own and own.closed then return {limit_name = limit, index = spec.rule.index, state = '', throttled_until = '0', held_until = '0', closed = true} end
    if spec.fixed then return {limit_name = limit, rule = false} end
    local g = gate.load(name, spec.rule)
    local fits = gate.fits(g, cost)
    local at = fits and gate.start(g, cost, node, ticket) or huge
    local holders, ends = 0, nil
    if fits and at == huge then holders, ends = holds.at(name) end
    return {limit_name = limit, own_rule = own and spec.rule.word, own_until = own and us(own.till < huge and own.till or 0), index = spec.rule.index, state = call('GET', P .. 'gate:' .. name) or '',
            never = not fits or nil, opens_at = at < huge and us(at) or nil, throttled_until = us(g.pause or 0),
            held_until = us(gate.held_until(g, node, ticket)), holders = holders > 0 and holders or nil, lease_ends = holders > 0 and us(ends) or nil}
end

local function gate_rows(t, queue, key, cost)
    local rows, keyed = {}, {}
    local ticket = ticket_of(queue, t.global, t.name)
    for _, spec in ipairs(t.global) do rows[#rows + 1] = gate_row(spec, spec.name, cost, t.name, ticket) end
    for _, pause in ipairs(t.paused) do
        local till = pause.set == t.pause and 0 or rules.paused(pause.set)
        local name = pause.name:match('^[^#]+')
        if till > now then rows[#rows + 1] = {limit_name = name, opens_at = us(till), paused = reasons.pause('limit', name, pause.set)} end
    end
    local specs = types.keyed(t, key)
    for i, spec in ipairs(specs) do keyed[i] = {name = spec.name .. '/' .. key} end
    local node = t.name .. '/' .. key
    ticket = ticket_of(queue, keyed, node)
    for i, spec in ipairs(specs) do
        local row = gate_row(spec, keyed[i].name, cost, node, ticket)
        row.paused = row.throttled_until ~= '0' and reasons.key(row.limit_name, key) or nil
        if row.paused then row.throttled_until = '0' end
        rows[#rows + 1] = row
    end
    return rows
end

-- Says whether a worker that is alive takes jobs of that type from that queue; how many would had they not been told to take no more; and since when
-- the last of them has been.
local function served(queue, name)
    local resting, latest = 0, nil
    for _, worker in ipairs(call('ZRANGEBYSCORE', P .. 'workers', us(now), '+inf')) do
        if pattern.serves(registry.words(worker), lane_names.usual_queue(queue)) and type_lists.word(type_lists.all(registry.info(worker)), name) then
            local rests, since = orders.rests(registry.instance(registry.info(worker)))
            if not rests then return true end
            resting, latest = resting + 1, max(latest or 0, since or 0)
        end
    end
    return false, resting, latest
end

local function elsewhere(queue, name)
    for _, other in ipairs(call('SMEMBERS', P .. 'queues')) do
        if other ~= queue and call('EXISTS', P .. 'queue:' .. other, P .. 'ring:' .. other .. '/' .. name) > 0 then return true end
    end
    return false
end

-- How many lanes of a ring have their turn before a lane that is to join it: those that were served longer ago.
local function before_it(queue, t, ring, lane_key)
    local keyed = {}
    for i, spec in ipairs((types.keyed(t, lane_key))) do keyed[i] = {name = spec.name .. '/' .. lane_key} end
    return call('ZCOUNT', ring, '-inf', '(' .. us(ticket_of(queue, keyed, t.name .. '/' .. lane_key)))
end

local function why(ARGV)
    local place, name, text = ARGV[2] or '', ARGV[3], ARGV[4]
    local kind, path = place:match('^(%a+):(.*)$')
    if not (is_name(name) and text) or kind ~= 'queue' and not (kind == 'lane' and lane_names.parts(path)) then
        return refuse('why: wants now, place, type, body')
    end
    local t, queue, _, key = types.load(name), lane_names.parts(path)
    if kind == 'queue' then queue, key = path, '' end
    local wrong = blocked_queues.by(lane_names.usual_queue(queue))
    if wrong then return check.refuse_key(wrong) end
    local its_cost, of_lane = types.job_cost(t, text), kind == 'lane' and place
    local misplaced = partition.misplaced(name)
    if misplaced then return answer{now = us(now), cost = us(cost.part(its_cost)), misplaced = misplaced} end
    if key == '' and t.path then key = body.key(text, t.path) end
    of_lane = of_lane or 'lane:' .. queue .. '/' .. name .. '/' .. key
    local _, _, lane_key = lane_names.parts(sub(of_lane, 6))
    local ring = P .. 'ring:' .. queue .. '/' .. name
    local is_served, resting, resting_since = served(queue, name)
    local first, rank = call('LINDEX', P .. of_lane, '0'), call('ZRANK', ring, lane_key)
    return answer{
        now = us(now), key = t.path and body.shown_key(text, t.path, key) or key, lane = of_lane, length = us(call('LLEN', P .. of_lane)),
        cost = us(cost.part(its_cost)), costs = t.named and cost.text(its_cost) or nil, served = is_served, resting = resting,
        resting_since = resting_since and us(resting_since), elsewhere = elsewhere(queue, name), turns = rank or nil,
        before = us(rank or before_it(queue, t, ring, lane_key)),
        pause = reasons.pause('type', name, t.pause),
        gates = gate_rows(t, queue, key, first and types.job_cost(t, first) or its_cost)}
end

return why

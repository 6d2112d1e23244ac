-- why: what holds a job that waits in a queue or lane; changes nothing.
--
-- KEYS[1] prefix
-- ARGV: now, place (queue:<queue> or lane:<lane>), type, body
-- role: viewer
-- reply: [ now, what stands for its key, its lane (lane:<lane>), jobs there, its cost, held (0/1), served (0/1), elsewhere (0/1), lanes that have
--          their turn before its own (-1: it is not in the ring), the same as if it were in the ring by now, [gate, ...] ]
--        held: no worker that looked can run its type; served: a worker does run it, from that queue; elsewhere: other queues
--        have jobs that may be of the type
--        gate: [ limit, index of the rule, its state, opens, paused until, held for another until ]: times in us, 0: not at all;
--        opens for the first of the lane: now when it is open, -1: when a job ends, -2: never. Index -1: the limit is paused as a
--        whole, -2: its rules cannot be read
--
-- writes: nothing
-- uses: body gate lease pattern rules types

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

local function opens(g, cost, node, ticket)
    if not gate.fits(g, cost) then return -2 end
    local at = gate.start(g, cost, node, ticket)
    return at < huge and at or -1
end

local function gate_row(spec, name, cost, node, ticket)
    if spec.fixed then return {spec.name:match('^[^#]+'), -2, '', -2, 0, 0} end
    local g = gate.load(name, spec.rule)
    return {spec.name:match('^[^#]+'), spec.rule.index, call('GET', P .. 'gate:' .. name) or '',
            us(opens(g, cost, node, ticket)), us(g.pause or 0), us(gate.held_until(g, node, ticket))}
end

local function gate_rows(t, queue, key, cost)
    local rows, keyed = {}, {}
    local ticket = ticket_of(queue, t.global, t.name)
    for _, spec in ipairs(t.global) do rows[#rows + 1] = gate_row(spec, spec.name, cost, t.name, ticket) end
    for _, pause in ipairs(t.paused) do
        local till = rules.paused(pause.set)
        if till > now then rows[#rows + 1] = {pause.name:match('^[^#]+'), -1, '', us(till), us(till), 0} end
    end
    for i, spec in ipairs(t.keyed) do keyed[i] = {name = spec.name .. '/' .. key} end
    local node = t.name .. '/' .. key
    ticket = ticket_of(queue, keyed, node)
    for i, spec in ipairs(t.keyed) do rows[#rows + 1] = gate_row(spec, keyed[i].name, cost, node, ticket) end
    return rows
end

local function has(list, word)
    for _, other in ipairs(type(list) == 'table' and list or {}) do
        if other == word then return 1 end
    end
    return 0
end

-- Does a worker that is alive take jobs of that type from that queue?
local function served(queue, name)
    for _, worker in ipairs(call('ZRANGEBYSCORE', P .. 'workers', us(now), '+inf')) do
        local ok, info = pcall(json_read, call('HGET', P .. 'active:' .. worker, '@') or '')
        if ok and type(info) == 'table' and pattern.serves(info.queues, lease.usual_queue(queue)) and has(info.types, name) == 1 then return 1 end
    end
    return 0
end

local function elsewhere(queue, name)
    for _, other in ipairs(call('SMEMBERS', P .. 'queues')) do
        if other ~= queue and call('EXISTS', P .. 'queue:' .. other, P .. 'ring:' .. other .. '/' .. name) > 0 then return 1 end
    end
    return 0
end

-- How many lanes of a ring have their turn before a lane that is to join it: those that were served longer ago.
local function before_it(queue, t, ring, lane_key)
    local keyed = {}
    for i, spec in ipairs(t.keyed) do keyed[i] = {name = spec.name .. '/' .. lane_key} end
    return call('ZCOUNT', ring, '-inf', '(' .. us(ticket_of(queue, keyed, t.name .. '/' .. lane_key)))
end

local function why(ARGV)
    local place, name, text = ARGV[2] or '', ARGV[3], ARGV[4]
    local kind, path = place:match('^(%a+):(.*)$')
    if not (is_name(name) and text) or kind ~= 'queue' and not (kind == 'lane' and lease.lane_parts(path)) then
        return refuse('why: wants now, place, type, body')
    end
    local t, queue, _, key = types.load(name), lease.lane_parts(path)
    if kind == 'queue' then queue, key = path, '' end
    local cost, of_lane = body.cost(text) or t.cost, kind == 'lane' and place
    if key == '' and t.path then key = body.key(text, t.path) end
    of_lane = of_lane or 'lane:' .. queue .. '/' .. name .. '/' .. key
    local _, _, lane_key = lease.lane_parts(sub(of_lane, 6))
    local ring = P .. 'ring:' .. queue .. '/' .. name
    local first, rank = call('LINDEX', P .. of_lane, '0'), call('ZRANK', ring, lane_key)
    return {us(now), t.path and body.shown_key(text, t.path, key) or key, of_lane, call('LLEN', P .. of_lane), us(cost),
            call('ZSCORE', P .. 'held:' .. queue, name) and 1 or 0, served(queue, name), elsewhere(queue, name),
            rank or -1, rank or before_it(queue, t, ring, lane_key),
            gate_rows(t, queue, key, first and (body.cost(first) or t.cost) or cost)}
end

return why

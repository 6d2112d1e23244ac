-- rate_list: the limits, the state of their gates and how many jobs wait for them; changes nothing.
--
-- KEYS[1] prefix
-- ARGV: now, name ('' for all)
-- reply: [ now, then for each limit, by name: name, rule, tat_us, tat_rem, pause_until_us, parked ]
--        tat_us is '' when the rule cannot be read; TAT is counted in that rule
-- uses: core/base.lua core/now.lua throttle/gate.lua

local only = ARGV[2]
if not only or #ARGV > 2 then return refuse('rate_list: wants now, name') end

local names = only ~= '' and {only} or call('HKEYS', P .. 'limits')
local queues = call('SMEMBERS', P .. 'queues')
table.sort(names)

local function parked(name)
    local n = 0
    for _, queue in ipairs(queues) do n = n + call('LLEN', P .. 'lane:' .. queue .. '/' .. name .. '/') end
    return n
end

local reply = {us(now)}
local function add(...)
    for _, value in ipairs({...}) do reply[#reply + 1] = value end
end

for _, name in ipairs(names) do
    local rule = call('HGET', P .. 'limits', name)
    if rule then
        local g = gate_load(name .. '#0', rule)
        add(name, rule)
        if g then add(us(g.tat_us), us(g.tat_rem), us(g.pause)) else add('', '', '') end
        add(parked(name))
    end
end
return reply

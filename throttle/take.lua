-- take: slots for a caller of any kind, now or not at all.
--
-- KEYS[1] prefix
-- ARGV: now, limit, key ('' for none), rule ('' for the limit's own), cost, peek (1: take nothing, 0)
-- reply: [ allowed (0/1), burst, remaining, retry_after_us (-1: allowed, or never), reset_after_us,
--          never (0/1) ]
--        or what is wrong with the limit: missing, unkeyed, differs (from the rule given), unreadable
-- uses: core/base.lua core/now.lua throttle/gate.lua

local name, key, rule, cost, peek = ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5]), ARGV[6]

local function is_name(text) return #text <= 128 and text:find('^[%w_.-]+$') end

local function read_arguments()
    if #ARGV ~= 6 or peek ~= '0' and peek ~= '1' then return 'wants now, limit, key, rule, cost, peek' end
    if not is_name(name) or key ~= '' and not is_name(key) then return 'wrong name of a limit or key' end
    if not cost or cost < 1 or cost ~= floor(cost) then return 'wrong cost' end
end

local wrong = read_arguments()
if wrong then return refuse('take: %s', wrong) end

local own = call('HGET', P .. 'limits', name)
if rule == '' then
    if not own then return 'missing' end
    if key ~= '' then return 'unkeyed' end
elseif own and own ~= rule then
    return 'differs' -- two rules that take turns on one gate would round its slots up without end
end
local g = gate_load(name .. '#0' .. (key ~= '' and '/' .. key or ''), rule ~= '' and rule or own)
if not g then
    if rule == '' then return 'unreadable' end
    return refuse('take: wrong rule')
end

local start = gate_start(g, cost)
local free = start == now
if free and peek == '0' then gate_take(g, now, 1, cost) end
gate_save(g)

local never = start == math.huge
return {
    free and 1 or 0,
    g.burst,
    gate_count(g, now, g.burst, 1),
    (free or never) and -1 or start - now,
    gate_resets(g) - now,
    never and 1 or 0,
}

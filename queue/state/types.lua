-- types: what Redis keeps of each type: the limits that hold it besides the one of its own name, and what a job costs.
--
--   types: hash name -> '' or attributes separated by a blank: use=<limit>,<limit>,... cost=<as cost.text> pause=<until_us>/<set_at_us>, as somebody has
--          paused it (one that is over says nothing, and leaves with the next change), and what claims noted:
--          lanes=<path>: the path by which keys of lanes were found, * for several; costs=own: jobs of it named their cost;
--          spends=own: jobs of it said what they cost in truth
--
--   types.parse(name, text) -> {name =, use = {limit, ...}, cost = (plain slots of a job), costs = (as cost.lua has it, where it names others), pause =,
--                              lanes =, own_costs =, spends =}; its own name in use= says nothing; pause: as rules.paused takes it
--   types.held_by(t)        -> t, with limits = {limit, ...}: those that exist, the one of its own name first
--   types.read(name)        -> both of what Redis keeps
--   types.text(t)           use, cost and pause put back as Redis keeps them; what else stood there stays
--   types.write(t)          writes that
--   types.attributes(t)     use, cost and pause as text
--   types.note(name, attribute, value)  sets another one
--   types.load(name)        -> what holds it
--   types.job_cost(t, entry) -> what a job costs, as its gates take it; what it says itself, nil: nothing. t: of types.load
--   types.set_cost(t, c)    what a job of it costs from now on: what c says
--   types.is_limited(name)  -> does anything?
--   types.keyed(t, key)     -> those of t.keyed as they hold one key; until when they do (huge: no end); limit -> what the key has of its own, nil:
--                              nothing. A key that is closed for a limit has {name =, rule =, fixed = huge} of it. own: what it has of its own (key_rules.lua)
--   types.specs(name, key)  -> the gates of one key, {name =, rule =} each
--   types.gates(name, key)  -> the same, loaded
--   types.wrong(name, key)  -> what is wrong with the keys that this reads; nil: nothing
--   types.misfit(t, instead) -> why its limits cannot hold it together; nil: they can
--
-- uses: body check cost gate key_rules rules
local types = {}

local RULES_MOST = 16 -- rules of all limits of a type: each is a gate that every claim asks

-- Reads a pause that lasts; nil: it is over.
local function pause_read(value)
    local pause_until, set_at = match(value, '^(%d+)/(%d+)$')
    local pause = {pause_until = tonumber(pause_until), paused_at = tonumber(set_at)}
    return rules.paused(pause) > 0 and pause or nil
end

function types.set_cost(t, c)
    t.cost, t.costs = cost.part(c), type(c) == 'table' and c or nil
end

function types.parse(name, text)
    local t = {name = name, use = {}, cost = 1, others = {}}
    for word in text:gmatch('%S+') do
        local attribute, value = word:match('^(%w+)=(.*)$')
        if attribute == 'use' then
            for limit in value:gmatch('[^,]+') do
                if limit ~= name then t.use[#t.use + 1] = limit end
            end
        elseif attribute == 'cost' and cost.parse(value) then
            types.set_cost(t, cost.parse(value))
        elseif attribute == 'pause' then
            t.pause = pause_read(value)
        else
            if attribute == 'lanes' then t.lanes = value end
            if word == 'costs=own' then t.own_costs = true end
            if word == 'spends=own' then t.spends = true end
            t.others[#t.others + 1] = word
        end
    end
    return t
end

function types.held_by(t)
    t.limits = {}
    for i = 0, #t.use do
        local limit = t.use[i] or t.name
        if call('HEXISTS', P .. 'limits', limit) == 1 then t.limits[#t.limits + 1] = limit end
    end
    return t
end

function types.read(name) return types.held_by(types.parse(name, call('HGET', P .. 'types', name) or '')) end

local function attributes(t)
    local words = {}
    if #t.use > 0 then words[1] = 'use=' .. concat(t.use, ',') end
    if t.costs or t.cost ~= 1 then words[#words + 1] = 'cost=' .. cost.text(t.costs or t.cost) end
    if t.pause then words[#words + 1] = 'pause=' .. us(t.pause.pause_until) .. '/' .. us(t.pause.paused_at) end
    return words
end

function types.attributes(t) return concat(attributes(t), ' ') end

function types.text(t)
    local words = attributes(t)
    for _, word in ipairs(t.others) do words[#words + 1] = word end
    return concat(words, ' ')
end

function types.write(t) call('HSET', P .. 'types', t.name, types.text(t)) end

function types.note(name, attribute, value)
    local t = types.parse(name, call('HGET', P .. 'types', name) or '')
    local others = {attribute .. '=' .. value}
    for _, word in ipairs(t.others) do
        if sub(word, 1, #attribute + 1) ~= attribute .. '=' then others[#others + 1] = word end
    end
    t.others = others
    types.write(t)
end

-- ---- What holds the jobs of a type: its limits with all their rules, and so its gates. All keyed rules go by one path.

local loaded -- types that this call has loaded, by name

local function forget() loaded = nil end

local NONE = {} -- the lists of types that have nothing in them; not to be written

local function new_type(name, options)
    return {name = name, cost = options.cost or 1, usual = options.cost or 1, named = false, lanes = options.lanes, own_costs = options.own_costs, spends = options.spends,
            limited = false, text = '', digest = '',
            limits = NONE, global = NONE, keyed = NONE, sets = NONE, paused = NONE, weighted = NONE, broken = NONE}
end

local function add(t, list, value)
    if t[list] == NONE then t[list] = {value} else t[list][#t[list] + 1] = value end
end

-- Names the gate where a type waits that is paused itself. For the end of the pause of a limit it waits at <limit>#pause.
function types.pause_gate(name) return name .. '#paused' end

-- Returns a rule as it holds jobs of a type: where these cost slots by name it takes such costs.
local function of_type(t, rule) return t.named and rules.mixed(rule) or rule end

-- Lets the jobs of a type cost slots by name, if a rule counts such.
local function name_costs(t, options, texts)
    for _, text in ipairs(texts) do
        local set = text and rules.read(text)
        if set and set.named then t.named, t.usual = true, options.costs or t.usual end
    end
end

-- Adds the gates of a limit to a type, {name =, rule =} each; to the name of a keyed one the key is still to be added. {name =, fixed =} is no
-- gate but opens at that time: a pause, or a limit whose rules cannot be read.
local function add_limit(t, name, text)
    local set, between = rules.read(text), t.limited and '|' or ''
    t.limited = true
    add(t, 'limits', name)
    t.text = t.text .. between .. name .. '=' .. text
    t.digest = t.digest .. between .. name .. '=' .. (set and set.places or text)
    if not set then
        add(t, 'broken', name)
        return add(t, 'global', {name = name .. '#0', fixed = huge})
    end
    for _, rule in ipairs(set) do add(t, rule.by and 'keyed' or 'global', {name = name .. '#' .. rule.index, rule = of_type(t, rule)}) end
    t.path = t.path or set.path
    if set.path then add(t, 'sets', {name = name, set = set}) end
    t.in_flight = t.in_flight or set.in_flight
    if set.weighted then add(t, 'weighted', name) end
    if set.pause_until then add(t, 'paused', {name = name .. '#pause', set = set}) end
end

local function build(name, options, names, texts)
    local t = new_type(name, options)
    name_costs(t, options, texts)
    for i, text in ipairs(texts) do
        if text then add_limit(t, names[i], text) end
    end
    if t.named then t.digest = t.digest .. ' ' .. cost.text(t.usual) end
    if t.limited then t.digest = '+' .. sub(sha1(t.digest), 1, 4) end
    if options.pause then
        t.limited, t.pause = true, options.pause
        add(t, 'paused', {name = types.pause_gate(name), set = options.pause})
    end
    return t
end

-- Types with attributes are kept as they were built, with their texts, which change seldom. Very many are cheaper to build again than to keep, as
-- the processor forgets them meanwhile, and Lua goes over all of them again and again.
local MOST_KEPT = 256
local kept, kept_count = {}, 0 -- name -> {text =, own =, shared =, type =}, as it was last

local function keep(name, text, own, shared, t)
    if not kept[name] then
        if kept_count >= MOST_KEPT then kept, kept_count = {}, 0 end
        kept_count = kept_count + 1
    end
    kept[name] = {text = text, own = own, shared = shared, type = t}
    return t
end

-- Loads a type that only the limit of its own name can hold. Most are, and this is asked in each call.
local function load_own(name)
    local own, known = call('HGET', P .. 'limits', name), kept[name]
    if not own then return new_type(name, NONE) end
    if known and known.text == '' and known.own == own then return known.type end
    return keep(name, '', own, '', build(name, NONE, {name}, {own}))
end

-- Loads a type with attributes: further limits, a cost.
local function load_shared(name, text)
    local options, known = types.parse(name, text), kept[name]
    local names = {name, unpack(options.use)}
    local texts = call('HMGET', P .. 'limits', unpack(names))
    local shared = {}
    for i = 2, #names do shared[i - 1] = texts[i] or '' end
    shared = concat(shared, '\n')
    local is_same = known and known.text == text and known.own == texts[1] and known.shared == shared
    if is_same and not known.type.pause == not options.pause then return known.type end
    return keep(name, text, texts[1], shared, build(name, options, names, texts))
end

-- Loads a type as it is held now: {name, cost, usual (what a job costs that says nothing, as gates take it), named (a rule counts slots by name), lanes, own_costs, spends, path (nil: no keyed rule), in_flight (a rule counts jobs in flight), limited
-- (it has limits, or is paused), pause (nil: it is not), limits = {name...}, sets = {{name, set}...} (those with keys), text (the limits with their rules), digest (of these, as tokens say it), global = {{name, rule | fixed}...}, keyed = {...},
-- paused = {{name, set}...}, weighted = {limit...}, broken = {limit...}}. Not to be changed: it is shared by calls.
function types.load(name)
    if not loaded then
        loaded = {}
        at_next_call(forget)
    end
    local t = loaded[name]
    if t then return t end
    local text = call('HGET', P .. 'types', name) or ''
    t = text == '' and load_own(name) or load_shared(name, text)
    loaded[name] = t
    return t
end

function types.job_cost(t, entry)
    local said
    if t.named then said = body.costs(entry) else said = body.cost(entry) end
    return cost.over(said, t.usual), said
end

-- True when a limit holds the type. Most have no attributes, and then the limit of their own name says it.
function types.is_limited(name)
    local text = call('HGET', P .. 'types', name)
    if text and text ~= '' then return types.load(name).limited end
    return call('HGET', P .. 'limits', name) and true or false
end

-- Adds the gates of a limit to a list, as they hold a key that has rules of its own for it.
local function add_own(list, t, limit, own)
    if own.closed then
        local rule = of_type(t, limit.set.keyed[1])
        list[#list + 1] = {name = limit.name .. '#' .. rule.index, rule = rule, fixed = huge, own = own}
    end
    for _, rule in ipairs(own.closed and {} or own.rules) do
        list[#list + 1] = {name = limit.name .. '#' .. rule.index, rule = of_type(t, rule), own = own}
    end
end

function types.keyed(t, key)
    local list, till, owns = {}, huge, nil
    for _, limit in ipairs(key ~= '' and t.sets or {}) do
        local own = key_rules.of(limit.name, limit.set, key)
        if own then
            owns = owns or {}
            till, owns[limit.name] = min(till, own.till), own
            add_own(list, t, limit, own)
        else
            for _, rule in ipairs(limit.set.keyed) do list[#list + 1] = {name = limit.name .. '#' .. rule.index, rule = of_type(t, rule)} end
        end
    end
    if not owns then return t.keyed, huge end
    return list, till, owns
end

-- Returns the digest of what holds a key, as tokens say it; owns: of types.keyed.
function types.digest(t, owns)
    if not owns then return t.digest end
    local text = t.digest
    for _, limit in ipairs(t.sets) do text = text .. ' ' .. (owns[limit.name] and owns[limit.name].text or '') end
    return '+' .. sub(sha1(text), 1, 4)
end

-- Returns the limits of a type with their rules, as t.text has them, for a key.
function types.text_for(t, owns)
    local parts = {}
    for part in t.text:gmatch('[^|]+') do
        local name = match(part, '^[^=]+')
        parts[#parts + 1] = owns[name] and owns[name].places and name .. '=' .. owns[name].places or part
    end
    return concat(parts, '|')
end

-- Lists the gates that hold a job of that type and key; a limit whose rules cannot be read has none.
function types.specs(name, key)
    local t, specs = types.load(name), {}
    for _, spec in ipairs(t.global) do
        if spec.rule then specs[#specs + 1] = spec end
    end
    for _, spec in ipairs(key ~= '' and types.keyed(t, key) or {}) do
        specs[#specs + 1] = {name = spec.name .. '/' .. key, rule = spec.rule}
    end
    return specs
end

function types.wrong(name, key)
    local wrong = check.wrong_kind('types', 'hash') or check.wrong_kind('limits', 'hash')
    for _, spec in ipairs(wrong and {} or types.specs(name, key)) do
        wrong = wrong or check.wrong_kind('gate:' .. spec.name, 'string')
    end
    return wrong
end

function types.gates(name, key)
    local gates = types.specs(name, key)
    for i, spec in ipairs(gates) do gates[i] = gate.load(spec.name, spec.rule) end
    return gates
end

-- Says what is wrong with a rule of a limit for the jobs of a type.
local function wrong_cost(t, limit, rule)
    local c = t.costs or t.cost
    if rule.in_flight or rules.fits(rule, c) then return nil end
    local most = (rule.adapt_high and rules.scaled(rule, rule.adapt_high) or rule).burst
    return format('type %s: a job costs %s and limit %s never lets more than %d start at once; raise its burst or lower the cost',
                  t.name, cost.say(c, rule.of), limit, most)
end

-- Says what keeps a type from being held by its limits; nil: nothing. instead: limit -> rules that it is about to have.
function types.misfit(t, instead)
    local count, path, path_of = 0, nil, nil
    for i = 0, #t.use do
        local limit = t.use[i] or t.name
        local text = instead[limit] or call('HGET', P .. 'limits', limit)
        local set = text and rules.read(text)
        if set then
            count = count + #set
            if path and set.path and path ~= set.path then
                return format('type %s: limit %s goes by %s and limit %s by %s; the keyed rules of a type have one path',
                              t.name, path_of, path, limit, set.path)
            end
            if set.path then path, path_of = set.path, limit end
            for _, rule in ipairs(set) do
                local wrong = wrong_cost(t, limit, rule)
                if wrong then return wrong end
            end
        end
    end
    if count <= RULES_MOST then return nil end
    return format('type %s: %d rules over all its limits; at most %d, so leave a limit or a rule out', t.name, count, RULES_MOST)
end

return types

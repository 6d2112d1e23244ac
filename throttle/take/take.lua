-- take: slots for callers of any kind, now or not at all.
--
-- ARGV: now, peek (1: takes nothing, 0), rules ('' for the limits' own; else a set of rules in the stored form, without
--       marks, for all items), then for each of 1 to 1,000 items: limit, key ('' for none), cost, as cost.lua writes it
-- role: taker
-- reply: for each item, in order, five elements:
--        status                1 allowed, 0 denied, 2 never (the cost is more than a gate can ever hold),
--                              or a word, and then four zeros: missing (no such limit), unkeyed (a key, but no rule of
--                              the limit has by=), keyless (a rule has by=, and no key), differs (rules were given and
--                              the limit has others), unreadable (the limit's rules), concurrency (a rule that takes
--                              have nothing to give back to), foreign (the key of a gate holds something else),
--                              elsewhere (the limit lives on another partition; the first zero is how many there are)
--        limit                 the burst of the gate that has the smallest
--        remaining             slots that are left, the least of the gates; after the take
--        retry_after_us        denied: from now (Redis TIME of the call); -1: allowed, or never
--        reset_after_us        until all gates are as if never used
--
-- Items are served one after the other, at one time; an item takes its cost from all gates of its limit or from none.
-- Gates: a rule with by= has one for each key, others have one. Given rules without by= are all of them kept for each
-- key when there is a key.
--
-- A denial stands until its retry_after_us, counted by the caller from before the call, unless somebody changes the
-- rules, resumes the limit, or a job gives back what it did not spend, or a hold ends early: who remembers denials is
-- late by so much then.
--
-- Errors (of the whole call; nothing is taken then): WEIR take: wants ..., wrong name of a limit or key, wrong cost,
-- wrong rule.
-- format: any
-- uses: gate partition rules takes

local MOST_ITEMS = 1000
local SLICE = 64 -- items whose gates are loaded at once
local CLOSED = 8e15 -- when what nothing opens does

local peek -- true when this call only looks

-- ---- Items

local limit_of = takes.limit_of
local gates, count = {}, 0 -- those of the item
local closed -- is its key, for good or until somebody renews its rules?
local open_limit, open_key -- whose gates are loaded: the next item of the same limit and key finds them

-- Loads the gates of a limit and a key. Returns the word that says what is wrong with the limit, the key or a gate, or nil.
local function open_gates(limit, key)
    open_limit = nil
    local wrong = takes.wrong(limit, key)
    if wrong then return wrong end
    local list, _
    list, _, closed, wrong = takes.rules(limit, key)
    if wrong then return wrong end
    count = #list
    for i = 1, count do
        gates[i] = takes.load(limit, list[i], key)
        if not gates[i] then return 'foreign' end
    end
    open_limit, open_key = limit, key
end

-- Makes the five elements of the reply.
local function item(limit, key, said)
    local c = said == 1 and 1 or takes.whole(limit, said)
    if limit.set and find(key, '|', 1, true) then key = rules.key(limit.set, key) end
    if limit ~= open_limit or key ~= open_key then
        local wrong = open_gates(limit, key)
        if wrong then return wrong, limit.partitions or 0, 0, 0, 0 end
    end
    local set = limit.set
    local paused = closed and CLOSED or set.pause_until and max(now, rules.paused(set)) or now
    local start = paused
    for i = 1, count do
        local s = gate.start(gates[i], c)
        if s > start then start = s end
    end
    local allowed, burst, remaining, resets = start == now, huge, huge, paused
    for i = 1, count do
        local g = gates[i]
        if allowed and not peek then gate.take(g, now, 1, c) end
        local most, left, full = gate.figures(g, allowed and now)
        if most < burst then burst = most end
        if left < remaining then remaining = left end
        if full > resets then resets = full end
    end
    if paused > now then remaining = 0 end
    if allowed then return 1, burst, remaining, -1, resets - now end
    if start == huge then return 2, gate.misfit(gates, count, c) or burst, remaining, -1, resets - now end
    return 0, burst, remaining, start - now, resets - now
end

-- ---- The call

-- Reads the costs in ARGV.
local function wrong_arguments(ARGV, given)
    local items = (#ARGV - 3) / 3
    if items < 1 or items > MOST_ITEMS or items % 1 ~= 0 or ARGV[2] ~= '0' and ARGV[2] ~= '1' then
        return format('wants now, peek, rules, then limit, key, cost of 1 to %d', MOST_ITEMS)
    end
    if takes.wrong_rules(given) then return 'wrong rule' end
    for i = 4, #ARGV, 3 do
        local key, said = ARGV[i + 1], ARGV[i + 2] == '1' and 1 or takes.cost(ARGV[i + 2])
        if i == 4 or ARGV[i] ~= ARGV[i - 3] then
            if not is_name(ARGV[i]) then return 'wrong name of a limit or key' end
        end
        if key ~= '' and not rules.is_key(key) then return 'wrong name of a limit or key' end
        if not said then return 'wrong cost' end
        ARGV[i + 2] = said
    end
end

-- Finds the limit of that name.
local function find_limit(name, given)
    return partition.elsewhere(name) and {wrong = 'elsewhere', partitions = partition.count()} or limit_of(name, given)
end

local function take(ARGV)
    local given = ARGV[3]
    local wrong = wrong_arguments(ARGV, given)
    if wrong then return refuse('take: %s', wrong) end
    peek, open_limit = ARGV[2] == '1', nil

    local name, limit = ARGV[4], find_limit(ARGV[4], given)
    local reply = {item(limit, ARGV[5], ARGV[6])}
    local at = 6
    for i = 7, #ARGV, 3 do
        if i % (3 * SLICE) == 1 then
            if peek then gate.undo() else gate.close() end
            open_limit = nil
        end
        if ARGV[i] ~= name then
            name = ARGV[i]
            limit = find_limit(name, given)
        end
        reply[at], reply[at + 1], reply[at + 2], reply[at + 3], reply[at + 4] =
            item(limit, ARGV[i + 1], ARGV[i + 2])
        at = at + 5
    end
    if not peek then gate.save() end
    return reply
end

return take

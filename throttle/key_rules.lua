-- key_rules: keys of limits that have rules of their own, for a time or until somebody removes them. These hold in place of the keyed rules of the
-- limit.
--
--   keys:<limit>  hash: key -> "<end><set at><then><rules>[\n<the key as jobs have it, where it stands here as a hash>]"
--                 end, set at: nine digits of base 64, us; no end: zero. then: "-" the limit's own rules hold at the end; "x" nothing starts
--                 rules: in their stored form, without by=, each in its place, as those of a limit
--   key_rules     set: these limits
--
--   key_rules.of(limit, set, key)    set: the limit's rules. What holds the key: {rules = {rule, ...}, till =, text =, places =, closed =}; nil: those. Not to
--                                    be changed. rules: as rules.read has them, keyed, with `under`, the rule of the limit in whose place each
--                                    holds (gate.lua), and `word`, its stored form; till: until when, huge: no end; text: theirs; places: of all rules that hold it; closed: nothing starts
--   key_rules.list(limit, set, key)  the keyed rules that hold it, whosever they are; till; closed
--   key_rules.at(limit, set, index, key)  the one at that place, nil: there is none; till; closed
--   key_rules.gates(limit, set, key) the names of their gates
--   key_rules.seen(any)              does any limit have such keys? A claim knows it, and need not ask
--   key_rules.read(limit, key)       {till = (0: no end), set_at =, closes =, rules =, shown =, is_over =}; nil: it has none
--   key_rules.row(r)                 r for JSON: {"rules", "until": "us" (0: no end), "closes": nothing starts then, "is_over": that time has come,
--                                    "revision": "us"}; nil: none, or the limit's rules hold again
--   key_rules.parse(text)            the same of what stands in the hash; nil: it is none of these
--   key_rules.write(limit, key, r)   r: as read, but for is_over
--   key_rules.forget(limit, key), key_rules.forget_all(limit)
--   key_rules.count(limit)           how many keys of it have some
--   key_rules.used(limit)            place, from 1 -> a key of it that has a rule there; asks for all of them
--
-- A key of another kind says nothing.
--
-- Each place of a keyed rule of the limit has a gate of the key in either case: what is used stays used, and a pause of its first gate is one of the
-- key. Where the key has no rule for the place, its first rule holds there too; jobs in flight are counted on.
-- uses: rules

local key_rules = {}

local any -- does any limit have such keys, by what this call knows? nil: it has not asked
local limits = {} -- limit -> whether it has, likewise

local function ask_again() any, limits = nil, {} end

key_rules.TEXT_MOST = 1024 -- bytes of a key as jobs have it: KEY_MOST of queue/call/call_take.lua

local COUNTING = 'concurrency:1000000000'
local MOST_KEPT = 1000

-- ---- The text

local DIGITS = '-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz'
local WIDTH = 9 -- digits: 2^54 us

local function time_write(at)
    local text = ''
    for _ = 1, WIDTH do
        local digit = at % 64 + 1
        text, at = sub(DIGITS, digit, digit) .. text, floor(at / 64)
    end
    return text
end

local function time_read(text)
    local at = 0
    for i = 1, WIDTH do at = at * 64 + find(DIGITS, sub(text, i, i), 1, true) - 1 end
    return at
end

-- A time that was written by a clock which was set back since moves back with it.
function key_rules.parse(text)
    local closes, words, shown = match(text, '^([-x])([%l-][^\n]*)\n?(.*)$', 2 * WIDTH + 1)
    if not closes or find(sub(text, 1, 2 * WIDTH), '[^%w_-]') then return nil end
    local till, set_at = time_read(text), time_read(sub(text, WIDTH + 1))
    if till > 0 then till = max(1, till - max(0, set_at - now)) end
    return {till = till, set_at = set_at, closes = closes == 'x', rules = words, shown = shown, is_over = till > 0 and till <= now}
end

local function write(r)
    return time_write(r.till) .. time_write(r.set_at) .. (r.closes and 'x' or '-') .. r.rules .. (r.shown ~= '' and '\n' .. r.shown or '')
end

function key_rules.read(limit, key)
    local text = call_safe('HGET', P .. 'keys:' .. limit, key)
    return type(text) == 'string' and key_rules.parse(text) or nil
end

function key_rules.row(r)
    if not r or r.is_over and not r.closes then return nil end
    return {rules = r.rules, ['until'] = us(r.till), closes = r.closes, is_over = r.is_over, revision = us(r.set_at)}
end

function key_rules.write(limit, key, r)
    call('SADD', P .. 'key_rules', limit)
    call('HSET', P .. 'keys:' .. limit, key, write(r))
    ask_again()
end

function key_rules.forget(limit, key)
    call('HDEL', P .. 'keys:' .. limit, key)
    if call('EXISTS', P .. 'keys:' .. limit) == 0 then call('SREM', P .. 'key_rules', limit) end
    ask_again()
end

function key_rules.forget_all(limit)
    if key_rules.count(limit) == 0 then return end
    call('UNLINK', P .. 'keys:' .. limit)
    call('SREM', P .. 'key_rules', limit)
    ask_again()
end

function key_rules.count(limit)
    local n = call_safe('HLEN', P .. 'keys:' .. limit)
    return type(n) == 'number' and n or 0
end

function key_rules.used(limit)
    local used, all = {}, key_rules.count(limit) > 0 and call('HGETALL', P .. 'keys:' .. limit) or {}
    for i = 1, #all, 2 do
        local place = 0
        for word in match(sub(all[i + 1], 2 * WIDTH + 2), '^[^\n]*'):gmatch('[^ ]+') do
            place = place + 1
            if word ~= rules.NONE then used[place] = all[i] end
        end
    end
    return used
end

-- ---- The rules

local function with_path(word, path)
    local head, adapt = match(word, '^(.-)(,adapt=.*)$')
    return (head or word) .. ',by=' .. path .. (adapt or '')
end

-- Lists the words of a key's rules in their places, with those of places that only the limit has.
local function words_of(set, text)
    local words, first = {}, nil
    for word in text:gmatch('[^ ]+') do
        words[#words + 1] = word
        if word ~= rules.NONE then first = first or word end
    end
    for _, rule in ipairs(set.keyed) do
        while #words <= rule.index do words[#words + 1] = rules.NONE end
        if words[rule.index + 1] == rules.NONE then words[rule.index + 1] = rule.in_flight and COUNTING or first or '' end
    end
    for i, word in ipairs(words) do words[i] = word ~= rules.NONE and with_path(word, set.path) or word end
    return words
end

-- Makes the text of a limit as it holds the key: in each place the rule of the key, else that for all keys.
local function text_of(set, words)
    local all, place = {unpack(words)}, 0
    for word in set.places:gmatch('[^ ]+') do
        place = place + 1
        if not all[place] or all[place] == rules.NONE then
            local rule = rules.at(set, place - 1)
            all[place] = rule and not rule.by and word or rules.NONE
        end
    end
    return concat(all, ' ')
end

-- Makes the rules of a key of those of its limit and its own; nil: they cannot be read.
local function build(set, text)
    local words, made = words_of(set, text), {}
    local read = rules.read(concat(words, ' '))
    made.places = text_of(set, words)
    for i, rule in ipairs(read or {}) do
        local one, under = {}, rules.at(set, rule.index)
        for name, value in pairs(rule) do one[name] = value end
        if rule.adapt_low then one.scaled = {} end
        one.under = under and under.by and under or nil
        one.word = words[rule.index + 1]
        made[i] = one
    end
    return read and made
end

local known, known_count = {}, 0 -- what follows from the texts of a limit and a key, kept from call to call

local function rules_of(set, text)
    local both = set.places .. '\n' .. text
    if known[both] == nil then
        if known_count >= MOST_KEPT then known, known_count = {}, 0 end
        known[both], known_count = build(set, text) or false, known_count + 1
    end
    return known[both]
end

-- ---- What holds a key

function key_rules.seen(is_any)
    at_next_call(ask_again)
    any = is_any
end

local function has_keys(limit)
    if any == nil then key_rules.seen(call('EXISTS', P .. 'key_rules') == 1) end
    if not any then return false end
    if limits[limit] == nil then limits[limit] = call('EXISTS', P .. 'keys:' .. limit) == 1 end
    return limits[limit]
end

function key_rules.of(limit, set, key)
    local r = set.path and has_keys(limit) and key_rules.read(limit, key)
    if not r or r.is_over and not r.closes then return nil end
    local own = not r.is_over and rules_of(set, r.rules)
    return {rules = own or set.keyed, till = own and r.till > 0 and r.till or huge, text = r.rules, places = own and own.places, closed = not own}
end

function key_rules.list(limit, set, key)
    local own = key_rules.of(limit, set, key)
    if own then return own.rules, own.till, own.closed end
    return set.keyed, huge, false
end

function key_rules.at(limit, set, index, key)
    local list, till, closed = key_rules.list(limit, set, key)
    for _, rule in ipairs(list) do
        if rule.index == index then return rule, till, closed end
    end
    return nil, till, closed
end

function key_rules.gates(limit, set, key)
    local names = {}
    for i, rule in ipairs((key_rules.list(limit, set, key))) do names[i] = limit .. '#' .. rule.index .. '/' .. key end
    return names
end

return key_rules

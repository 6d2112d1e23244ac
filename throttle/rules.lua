-- rules: a limit's rules in their stored form (throttle/rule.h), and the algorithms behind them.
--
--   local set = rules.read(text)          {rule, ..., text =, places =, path =, keyed = {rule, ...}, global = {rule, ...},
--                                         weighted =, in_flight =, named = (a rule counts slots by name)}; nil when text is none. Kept from call to call:
--                                         not to be changed
--   local rule = rules.at(set, index)     the rule at that place of the limit; nil: there is none
--   local key = rules.key(set, named)     the key of a limit that a person names: of "<key of the text>|<key of the value>" (throttle/key.h) the one
--                                         that jobs with that at its path have
--   rules.is_key(named)                   is it one?
--   local us = rules.paused(set)          until when the limit as a whole is paused; 0: it is not
--   local rule = rules.one(text)          one rule without of=, by= and adapt=, as states of gates name it; nil
--   local rule = rules.scaled(rule, f)    the rule at so many thousandths of its rate
--   rules.slots(rule, c)                  how many slots a job of that cost takes of it
--   rules.fits(rule, c)                   may such a job ever start?
--   local rule = rules.mixed(rule)        the rule for jobs that may cost slots by name
--
-- A rule: {text =, kind =, algorithm =, index =, of =, of_jobs =, by =, adapt_low =, adapt_high =, count =, burst =, ...}: text without
-- of=, by= and adapt=; kind: the algorithm's name; of: what it counts of the cost, nil: plain slots; of_jobs: that is jobs; index: its place in the limit, from 0;
-- head, pattern: how the state of a gate goes on that is neither paused, held nor slowed, and what reads it; burst: the most slots that are ever
-- free at once; in_flight: it counts jobs, whatever they cost (of a set: one of its rules does); what else its algorithm derives.
--
-- An algorithm is a table of functions; g is a gate (gate.lua), g.rule its rule, and all that the algorithm keeps is
-- in g:
--   read(rule, numbers)     checks the numbers of the stored form and puts them into rule; false when they are wrong
--   scale(rule, f)          rate rules: makes it f thousandths of its rate, under which its words mean the same
--   fresh(g)                never used
--   load(g, first, rest)    reads its words: a number, and what follows it; false when they are wrong
--   store(g)                its words
--   back(g, us)             the clock has stepped back
--   start(g, cost)          the earliest time from now on, and not before that of the last take; huge: never, or not
--                           before something else happens
--   count(g, s, most, cost) how many of most jobs may start at s
--   take(g, s, k, cost)     k jobs start at s, which start() and count() allowed
--   note(g, s, slots)       slots were taken at s while another rule was in force: they count, but make it no fuller than full
--   charge(g, cost)         slots are taken now though none may be free
--   give(g, s, cost)        slots that were taken at s were not needed
--   remember(g)             where giving back needs it: from now on what is taken may be given back
--   used(g)                 slots in use, rounded up; and when the last of them starts, not before now
--   fill(g, n, at)          of a fresh g: n slots are in use, taken at that time
--   slowed(g, n, at)        where words are times: n slots were in use at that time when the rate fell
--   lost(g)                 where it is known: thousandths of slots that came and went unused until now, as it was loaded, and since
--                           when; of about the last exact.LOST_US
--   full(g)                 where a burst keeps slots that nobody takes: until when
--   resets(g)               when all is as if never used; may have passed; huge: not by time
-- uses: concurrency cost fixed_window gcra sliding_log sliding_window token_bucket

local rules = {}

local counting = {} -- algorithms of rules with of=, by what they count and by name; of rules.mixed, by name

local algorithms = {
    ['gcra'] = gcra,
    ['token-bucket'] = token_bucket,
    ['fixed-window'] = fixed_window,
    ['sliding-log'] = sliding_log,
    ['sliding-window'] = sliding_window,
    ['concurrency'] = concurrency,
}

rules.NONE = '-' -- in the place of a rule that was removed, before one that keeps its own
local MOST_RULES = 8
local MOST_KEPT = 1000

-- Returns a read() that keeps what it made of a text from call to call: that depends on the text alone.
local function kept(read)
    local known, count = {}, 0
    return function(text)
        local value = known[text]
        if value == nil then
            if count >= MOST_KEPT then known, count = {}, 0 end
            value = read(text) or false
            known[text], count = value, count + 1
        end
        return value or nil
    end
end

local function rule_read(stored)
    local name, numbers, options = stored:match('^([%a-]+):([%d/]+)(.*)$')
    local algorithm = algorithms[name]
    if not algorithm then return nil end
    local text = name .. ':' .. numbers
    local head = ' 0 - - ' .. text .. ' '
    local pattern = '^(%d+)' .. head:gsub('%-', '%%-') .. '(%d+) ?(.*)$'
    local rule = {text = text, kind = name, head = head, pattern = pattern, algorithm = algorithm}
    if not algorithm.read(rule, numbers) then return nil end
    return rule, options
end

rules.one = kept(function(text)
    local rule, options = rule_read(text)
    return options == '' and rule
end)

local function is_path(path)
    return #path <= 128 and not find(path, '^%.') and not find(path, '%.%.') and not find(path, '%.$')
end

-- Returns an algorithm for which a job takes one slot, whatever it costs; all else is as in the other.
local function one_each(algorithm)
    local one = {}
    for name, f in pairs(algorithm) do one[name] = f end
    one.start = function(g) return algorithm.start(g, 1) end
    one.count = function(g, s, most) return algorithm.count(g, s, most, 1) end
    one.take = function(g, s, k) algorithm.take(g, s, k, 1) end
    return one
end

-- Returns an algorithm that takes the part of that name from what a job costs (nil: the plain one). A part of 0 does not ask.
local function part_of(algorithm, name)
    local of = {}
    for verb, f in pairs(algorithm) do of[verb] = f end
    of.start = function(g, c)
        local slots = cost.part(c, name)
        return slots > 0 and algorithm.start(g, slots) or now
    end
    of.count = function(g, s, most, c)
        local slots = cost.part(c, name)
        return slots > 0 and algorithm.count(g, s, most, slots) or most
    end
    of.take = function(g, s, k, c)
        local slots = cost.part(c, name)
        if slots > 0 then algorithm.take(g, s, k, slots) end
    end
    return of
end

-- Lets a rule count jobs, or what they cost of that name; false: it counts jobs already.
local function count_of(rule, name)
    local key = name .. ' ' .. rule.kind
    counting[key] = counting[key] or (name == 'jobs' and one_each(rule.algorithm) or part_of(rule.algorithm, name))
    rule.algorithm, rule.of, rule.of_jobs = counting[key], name, name == 'jobs' or nil
    return not rule.in_flight
end

-- Returns a rule of plain cost for a type that is also held by rules of other names: what its jobs cost is a table. Both are the same rule to
-- gates: gate.load() takes either.
function rules.mixed(rule)
    if rule.of or rule.in_flight or rule.is_mixed then return rule end
    if not rule.mixed then
        local mixed = {}
        for name, value in pairs(rule) do mixed[name] = value end
        counting[rule.kind] = counting[rule.kind] or part_of(rule.algorithm, nil)
        mixed.algorithm, mixed.is_mixed, rule.mixed = counting[rule.kind], true, mixed
    end
    return rule.mixed
end

-- Reads ",zone=NAME", ",of=jobs", ",by=PATH" and ",adapt=LOW..HIGH" of a rule.
local function options_read(rule, options)
    local name, rest = options:match('^,zone=([%w_/+-]+)(.*)$')
    if name and (#name > 64 or not rule.zone) then return false end
    options = rest or options
    name, rest = options:match('^,of=([a-z][a-z0-9_]*)(.*)$')
    if rest and (#name > 32 or name == 'plain' or not count_of(rule, name)) then return false end
    options = rest or options
    local by, behind = options:match('^,by=([%w_.-]+)(.*)$')
    local low, high = (behind or options):match('^,adapt=([1-9]%d*)%.%.([1-9]%d*)$')
    if by and not is_path(by) then return false end
    rule.by = by
    if not low then return (behind or options) == '' end
    rule.adapt_low, rule.adapt_high, rule.scaled = tonumber(low), tonumber(high), {}
    return rule.algorithm.scale and rule.adapt_low < rule.adapt_high and rule.adapt_high <= 1000
end

-- Reads "pause:UNTIL_US/SET_AT_US" and "weights:1", which stand behind the rules.
local function mark_read(set, word)
    local pause_until, set_at = word:match('^pause:(%d+)/(%d+)$')
    if pause_until then
        set.pause_until, set.paused_at = tonumber(pause_until), tonumber(set_at)
        return max(set.pause_until, set.paused_at) <= 2 ^ 53
    elseif word == 'weights:1' then
        set.weighted = true
    else
        return false
    end
    return true
end

local function add(set, rule, index)
    rule.index = index
    set[#set + 1] = rule
    set.in_flight = set.in_flight or rule.in_flight
    set.named = set.named or rule.of and not rule.of_jobs
    if not rule.by then
        set.global[#set.global + 1] = rule
        return true
    end
    set.keyed[#set.keyed + 1] = rule
    set.path = set.path or rule.by
    return set.path == rule.by
end

rules.read = kept(function(text)
    local set, words, places, marks = {keyed = {}, global = {}, weighted = false}, {}, {}, false
    for word in text:gmatch('[^ ]+') do
        local rule, options = rule_read(word)
        if rule and not marks then
            if not options_read(rule, options) or not add(set, rule, #places) then return nil end
            words[#words + 1], places[#places + 1] = word, word
        elseif word == rules.NONE and not marks then
            places[#places + 1] = word
        else
            marks = true
            if rule or not mark_read(set, word) then return nil end
        end
    end
    if #set == 0 or #places > MOST_RULES then return nil end
    set.text, set.places = concat(words, ' '), concat(places, ' ')
    return set
end)

function rules.at(set, index)
    for _, rule in ipairs(set) do
        if rule.index == index then return rule end
    end
end

function rules.key(set, named)
    local text, value = match(named, '^([^|]+)|([^|]+)$')
    if not text then return named end
    return (not set.path or set.path == 'key') and text or value
end

function rules.is_key(named)
    if is_name(named) then return true end
    local text, value = match(named, '^([^|]+)|([^|]+)$')
    return is_name(text) and is_name(value)
end

-- Returns until when a limit is paused. A pause that was set at a time which has not come yet moves back with the clock.
function rules.paused(set)
    if not set.pause_until then return 0 end
    local pause_until = set.pause_until - max(0, set.paused_at - now)
    return pause_until > now and pause_until or 0
end

function rules.scaled(rule, thousandths)
    if thousandths == 1000 then return rule end
    local scaled = rule.scaled[thousandths]
    if not scaled then
        scaled = {}
        for name, value in pairs(rule) do scaled[name] = value end
        rule.algorithm.scale(scaled, thousandths)
        rule.scaled[thousandths] = scaled
    end
    return scaled
end

function rules.slots(rule, c) return (rule.of_jobs or rule.in_flight) and 1 or cost.part(c, rule.of) end

function rules.fits(rule, c)
    return rules.slots(rule, c) <= (rule.adapt_high and rules.scaled(rule, rule.adapt_high) or rule).burst
end

return rules

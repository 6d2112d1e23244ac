-- key_pauses: the keys of limits that somebody has paused, each for a time or until it is resumed.
--
--   key_pauses   hash: <limit>/<key> -> "<until_us>/<set_at_us>[ <the key as jobs have it, where it stands here as a hash>]"
--
-- What holds the jobs is a pause of the key's gate, of the first keyed rule of the limit, as where a provider asks for one (stop.lua). So a claim
-- asks for nothing more, and keys that are not paused cost nothing. This hash says which of these pauses somebody has set: they stay when the
-- limit is resumed, go along when another keyed rule is the first, and come back after Redis has lost them.
--
-- uses: check gate key_rules rules
local key_pauses = {}

key_pauses.MOST = 1000    -- paused keys of all limits
key_pauses.TEXT_MOST = 100 -- bytes of a key as jobs have it
key_pauses.ENDLESS = 8e15 -- until when a pause without a time is, in 2223: view/format.h

function key_pauses.wrong() return check.wrong_kind('key_pauses', 'hash') end

-- Reads a pause: when it ends, when it was set, and the key as jobs have it (''); nil: it is over. A pause that was set at a time which has not
-- come yet moves back with the clock.
local function read(text)
    local till, set_at, shown = match(text or '', '^(%d+)/(%d+) ?(.*)$')
    till, set_at = tonumber(till), tonumber(set_at)
    if not till then return nil end
    till = till - max(0, set_at - now)
    if till <= now then return nil end
    return till, min(set_at, now), shown
end

-- Loads the gate that is paused for a key; nil: the limit has no keyed rule, or the gate's key is of a wrong kind.
local function gate_of(limit, set, key)
    local first = set and set.keyed[1]
    local rule = first and key_rules.at(limit, set, first.index, key)
    return rule and gate.load_safe(limit .. '#' .. rule.index .. '/' .. key, rule)
end

local function resume(limit, set, key)
    local g = gate_of(limit, set, key)
    if g and g.pause then gate.resume(g) end
end

local function all_of(limit)
    local all, found = call('HGETALL', P .. 'key_pauses'), {}
    for i = 1, #all, 2 do
        local name, key = match(all[i], '^([^/]*)/(.+)$')
        if name and (limit == '' or name == limit) then found[#found + 1] = {limit = name, key = key, field = all[i], text = all[i + 1]} end
    end
    return found
end

-- Returns until when somebody has paused a key; nil: nobody has.
function key_pauses.till(limit, key) return (read(call('HGET', P .. 'key_pauses', limit .. '/' .. key))) end

-- Returns the pause of a key, as rules.paused takes it; nil: nobody has paused it.
function key_pauses.pause(limit, key)
    local till, since = read(call('HGET', P .. 'key_pauses', limit .. '/' .. key))
    return till and {pause_until = till, paused_at = since} or nil
end

-- Lists the gates of the keys that are paused until somebody resumes them: {count =, gates = {name = true}}.
function key_pauses.endless()
    local found, sets = {count = 0, gates = {}}, {}
    for _, pause in ipairs(all_of('')) do
        if tonumber(match(pause.text, '^%d+')) == key_pauses.ENDLESS then
            if sets[pause.limit] == nil then sets[pause.limit] = rules.read(call('HGET', P .. 'limits', pause.limit) or '') or false end
            local rule = sets[pause.limit] and sets[pause.limit].keyed[1]
            if rule then
                found.count = found.count + 1
                found.gates[pause.limit .. '#' .. rule.index .. '/' .. pause.key] = true
            end
        end
    end
    return found
end

-- Writes a pause, as text in the form of the hash, and closes the gate. A pause that somebody set before ends, however long it was.
function key_pauses.write(limit, set, key, text)
    if key_pauses.till(limit, key) then resume(limit, set, key) end
    call('HSET', P .. 'key_pauses', limit .. '/' .. key, text)
    key_pauses.again(limit, set, key)
end

function key_pauses.text(till, shown) return us(till) .. '/' .. us(now) .. (shown ~= '' and ' ' .. shown or '') end

-- Closes the gate of a key again, if somebody has paused it.
function key_pauses.again(limit, set, key)
    local till = key_pauses.till(limit, key)
    local g = till and gate_of(limit, set, key)
    if g then gate.pause(g, till) end
end

-- True when there is room for one more. Pauses that are over leave when there is none.
function key_pauses.has_room()
    if call('HLEN', P .. 'key_pauses') < key_pauses.MOST then return true end
    local over = {}
    for _, pause in ipairs(all_of('')) do
        if not read(pause.text) then over[#over + 1] = pause.field end
    end
    if #over > 0 then push('HDEL', P .. 'key_pauses', over) end
    return #over > 0
end

-- Ends the pause of one key.
function key_pauses.forget(limit, key) call('HDEL', P .. 'key_pauses', limit .. '/' .. key) end

-- Ends the pauses of all keys of a limit. set: its rules; nil: they cannot be read.
function key_pauses.forget_all(limit, set)
    for _, pause in ipairs(all_of(limit)) do
        resume(limit, set, pause.key)
        call('HDEL', P .. 'key_pauses', pause.field)
    end
end

-- Keeps keys paused as their limit gets other rules, where these go by the same path.
function key_pauses.move(limit, old, new)
    local from, to = old and old.keyed[1], new.keyed[1]
    if not from then return end
    if new.path ~= old.path then return key_pauses.forget_all(limit, old) end
    if from.index == to.index then return end
    for _, pause in ipairs(all_of(limit)) do
        resume(limit, old, pause.key)
        key_pauses.again(limit, new, pause.key)
    end
end

local lines -- limit -> the lines of its keys, as this call has read them

local function forget_lines() lines = nil end

local function read_lines()
    at_next_call(forget_lines)
    lines = {}
    for _, pause in ipairs(all_of('')) do
        if read(pause.text) then
            local list = lines[pause.limit] or {}
            list[#list + 1] = pause.key .. ' ' .. pause.text
            lines[pause.limit] = list
        end
    end
end

-- Returns "<key> <text>" of each paused key of a limit.
function key_pauses.lines(limit)
    if not lines then read_lines() end
    return lines[limit] or {}
end

-- Reads such a line: the key and the text; nil: it is none.
function key_pauses.line_read(line)
    local key, text = match(line, '^([%w_.-]+) (%d+/%d+ ?.*)$')
    return key, text
end

-- Returns the paused keys of a limit ('': of all), at most so many: {<limit>/<key> = {limit_name, key, by, paused = as describe has it}},
-- and how many there are. describe: reasons.key.
function key_pauses.rows(limit, most, describe)
    local rows, count = {}, 0
    for _, pause in ipairs(all_of(limit)) do
        local till, _, shown = read(pause.text)
        if till then
            count = count + 1
            local set = count <= most and rules.read(call('HGET', P .. 'limits', pause.limit) or '')
            if set then
                rows[pause.field] = {limit_name = pause.limit, key = shown ~= '' and shown or pause.key, by = set.path,
                                     paused = describe(pause.limit, pause.key)}
            end
        end
    end
    return rows, count
end

return key_pauses

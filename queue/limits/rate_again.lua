-- rate_again: limits and types as a worker knew them are written again, where Redis has an older revision of them or none. Somebody
-- who has set one since then has set a newer one, which stays. All of a call are written, or none; who knows more of them than one call should
-- write makes several. A type whose limits come with a later call is not held by them until then.
--
-- ARGV: now, by (for the log), cursor, revision (the place where the last call ended: '0' and '' at first), record of rate_known, ...
-- role: worker
-- reply: [ cursor, revision, "limit <name>" or "type <name>" that was written, ... ]; a cursor other than '0': only some types were checked and
--        nothing was written: to be called again with this place
-- uses: check gate key_pauses key_rules rates revisions rules types

local NAMES_MOST = 50 -- in the line of the log

-- Lists of keys and weights, and of keys and pauses; nil: a line is neither.
local function lines_read(lines)
    local weights, pauses = {}, {}
    for line in lines:gmatch('[^\n]+') do
        local list, key, value = weights, match(line, '^([%w_.-]+) (%d+)$')
        if not key then
            list, key, value = pauses, key_pauses.line_read(line)
        end
        if not key then return nil end
        list[#list + 1], list[#list + 2] = key, value
    end
    return weights, pauses
end

local function record_read(text)
    local kind, name, revision, words, lines = match(text, '^(%a+) ([%w_.-]+) (%d+) ([^\n]*)(.*)$')
    local r = {kind = kind, name = name, revision = tonumber(revision), words = words}
    r.weights, r.pauses = lines_read(lines or '')
    if not is_name(name) or not is_whole(r.revision, 1) or not r.weights then return nil end
    if kind == 'type' then
        r.type = types.parse(name, words)
    elseif kind ~= 'limit' or not rules.read(words) then
        return nil
    end
    return r
end

-- Returns the records of which Redis has an older revision; nil: one cannot be read.
local function newer(ARGV)
    local found = {}
    for i = 5, #ARGV do
        local r = record_read(ARGV[i])
        if not r then return nil end
        if r.revision > rates.revision(r.kind, r.name) then found[#found + 1] = r end
    end
    return found
end

-- True when a type of that text is held by one of these limits, besides that of its own name.
local function is_held_by(text, limits)
    for _, limit in ipairs(find(text, 'use=', 1, true) and types.parse('', text).use or {}) do
        if limits[limit] then return true end
    end
    return false
end

local PAGE = 1000 -- types in one scan, and so in one call: 1 ms

-- Sorts out what is to be written: limit -> its text, type -> what is to hold it; and whether there is a limit among them.
local function sort_out(records)
    local limits, kinds, any = {}, {}, false
    for _, r in ipairs(records) do
        if r.kind == 'limit' then limits[r.name], any = r.words, true end
        if r.kind == 'type' then kinds[r.name] = r.type end
    end
    return limits, kinds, any
end

-- What keeps a page of the types, from a cursor on, from being held as they are about to be, nil: nothing; and the cursor of the next page, '0':
-- that was the last. Of types that use the same limits at the same cost, and whose own limits have the same text, one is asked.
local function wrong_for_types(records, cursor)
    local limits, kinds, any = sort_out(records)
    local held, asked, wrong = {}, {}, nil
    for _, t in pairs(cursor == '0' and kinds or {}) do wrong = wrong or types.misfit(t, limits) end
    if any then
        local page, names, texts = call('HSCAN', P .. 'types', cursor, 'COUNT', PAGE), {}, {}
        for i = 1, #page[2], 2 do
            local name, text = page[2][i], page[2][i + 1]
            if held[text] == nil then held[text] = is_held_by(text, limits) end
            if not kinds[name] and (held[text] or limits[name]) then names[#names + 1], texts[#texts + 1] = name, text end
        end
        for first = 1, #names, PAGE do
            local last = min(first + PAGE - 1, #names)
            local own = call('HMGET', P .. 'limits', unpack(names, first, last))
            for i = first, last do
                local kind = texts[i] .. '\n' .. (limits[names[i]] or own[i - first + 1] or '')
                if not asked[kind] then wrong = wrong or types.misfit(types.parse(names[i], texts[i]), limits) end
                asked[kind] = true
            end
        end
        cursor = page[1]
    end
    return wrong, cursor
end

local function wrong_gates(records)
    local wrong
    for _, r in ipairs(records) do wrong = wrong or r.kind == 'limit' and rates.wrong_gates(r.name) or nil end
    return wrong
end

local write = {}

function write.type(r)
    local t = types.parse(r.name, call('HGET', P .. 'types', r.name) or '')
    t.use, t.cost, t.pause = r.type.use, r.type.cost, r.type.pause
    types.write(t)
end

function write.limit(r)
    local before, set = call('HGET', P .. 'limits', r.name) or '', rules.read(r.words)
    if rates.split(before).weighted then rates.forget_weights(r.name) end
    if before ~= '' then key_pauses.forget_all(r.name, rules.read(before)) end
    if (rules.read(before) or {}).path ~= set.path then key_rules.forget_all(r.name) end
    call('HSET', P .. 'limits', r.name, r.words)
    for i = 1, #r.weights, 2 do call('HSET', P .. 'weights', r.name .. '/' .. r.weights[i], r.weights[i + 1]) end
    for i = 1, #r.pauses, 2 do key_pauses.write(r.name, set, r.pauses[i], r.pauses[i + 1]) end
    for _, rule in ipairs(set.global) do gate.load(rates.gate_name(r.name, rule), rule) end
end

local function line(names)
    local more = #names - NAMES_MOST
    local shown = concat(names, ', ', 1, min(#names, NAMES_MOST))
    return 'written again, after Redis lost them: ' .. shown .. (more > 0 and format(' and %d more', more) or '')
end

local function rate_again(ARGV)
    local wrong = rates.wrong_keys()
    if wrong then return check.refuse_key(wrong) end
    local records = #ARGV >= 4 and find(ARGV[3], '^%d+$') and newer(ARGV)
    if not records then return refuse('rate_again: wants now, by, cursor, revision, records of rate_known') end
    if #records == 0 then return {'0', ''} end
    wrong = wrong_gates(records)
    if wrong then return check.refuse_key(wrong) end
    local newest, cursor = revisions.newest(), nil
    wrong, cursor = wrong_for_types(records, ARGV[4] == us(newest) and ARGV[3] or '0')
    if wrong then return refuse('%s', wrong) end
    if cursor ~= '0' then return {cursor, us(newest)} end

    local names, limits = {}, {}
    for i, r in ipairs(records) do
        write[r.kind](r)
        newest = max(newest, r.revision)
        call('HSET', P .. 'revisions', r.kind .. '/' .. r.name, us(r.revision))
        names[i] = r.kind .. ' ' .. r.name
        if r.kind == 'limit' then limits[#limits + 1] = r.name end
    end
    gate.save()
    -- The clock may stand before it, and what is set next is newer. rates.record() makes a change of it, however old these records are.
    call('HSET', P .. 'revisions', '*', us(newest))
    rates.record(line(names), ARGV[2])
    rates.wake(limits)
    return {'0', '', unpack(names)}
end

return rate_again

-- rate_known: what a worker keeps of the limits of its types, so that rate_again can write them when Redis has lost them. A page of it, as a worker may
-- have very many types.
--
-- ARGV: now, the newest revision that it knows ('': none), the birth of the data that it knows (past; '': none), how many more records it keeps,
--       bytes of them, how many types come behind these, type, ...
-- role: worker viewer
-- reply: [ the revision that it knows ] when there is nothing to learn: it is the newest, or Redis has lost data since
--        [ newest revision, how many limits and types do not fit, how many of these types are done, more, record, ... ]
--   more: 0 when that was all. Else it is asked again, for the types behind those that are done. It knows the revision of the first page then: what
--         has changed since that is newer, and the next question learns it
--   record: "limit <name> <revision> <rules and marks>[\n<key> <weight>...][\n<key> <pause of key_pauses>...]"
--           "type <name> <revision> <its further limits and its cost>"
-- writes: nothing
-- format: any
-- uses: check key_pauses rates revisions rules time_budget types

local WEIGHTS_MOST = 1000 -- of all limits

local reply, bytes, records_most, bytes_most, seen -- of this call. seen: types and limits that it has looked at

local function forget() reply, seen = nil, nil end

local HEAD = 4 -- elements of the reply before the records

local function begin_reply(newest, ARGV)
    at_next_call(forget)
    reply, bytes, seen = {us(newest), 0, 0, 0}, 0, {}
    records_most, bytes_most = tonumber(ARGV[4]), tonumber(ARGV[5])
end

local function is_full() return #reply - HEAD >= records_most end

local function leave_out(n) reply[2] = reply[2] + n end

local function add(record)
    if not record then return end
    if is_full() or bytes + #record > bytes_most then return leave_out(1) end
    reply[#reply + 1] = record
    bytes = bytes + #record
end

-- A revision as it is stored; nil: from before these were kept.
local function revision(text)
    local at = tonumber(text or nil)
    return at and us(at)
end

local function weights_of(limit)
    local list, lines = rates.weights(limit), {}
    for i = 1, #list, 2 do lines[#lines + 1] = '\n' .. list[i] .. ' ' .. list[i + 1] end
    return concat(lines)
end

local function pauses_of(limit)
    local lines = key_pauses.lines(limit)
    return #lines > 0 and '\n' .. concat(lines, '\n') or ''
end

-- text, changed: the limit and its revision as they are stored. One that cannot be read counts as none.
local function add_limit(name, text, changed)
    local set = text and rules.read(text)
    if not set then return end
    time_budget.spend(1)
    local record = format('limit %s %s %s', name, revision(changed) or '1', text)
    if set.path then record = record .. pauses_of(name) end
    if not set.weighted then return add(record) end
    if call('HLEN', P .. 'weights') > WEIGHTS_MOST then return leave_out(1) end
    add(record .. weights_of(name))
end

local function add_type(t, changed)
    local attributes = types.attributes(t)
    changed = revision(changed) or attributes ~= '' and '1'
    if changed then add(format('type %s %s %s', t.name, changed, attributes)) end
end

local FIRST = 7        -- of the arguments that are types
local TYPES_MOST = 1000 -- in one call
local PAGE = 100       -- types in one question

-- What Redis has of the types from ARGV[first] to ARGV[last] and of the limits of their names, a list each.
local function read_page(ARGV, first, last)
    local names = {unpack(ARGV, first, last)}
    local function changed(kind)
        local fields = {}
        for i, name in ipairs(names) do fields[i] = kind .. name end
        return call('HMGET', P .. 'revisions', unpack(fields))
    end
    return {types = call('HMGET', P .. 'types', unpack(names)), limits = call('HMGET', P .. 'limits', unpack(names)),
            types_changed = changed('type/'), limits_changed = changed('limit/')}
end

-- A limit that holds a type besides that of its own name.
local function add_used(limit)
    time_budget.spend(1)
    add_limit(limit, call('HGET', P .. 'limits', limit), call('HGET', P .. 'revisions', 'limit/' .. limit))
end

-- A type, the k-th of a page, with all limits that hold it and are not seen yet in this call.
local function add_all_of(name, page, k)
    local t = types.parse(name, page.types[k] or '')
    add_type(t, page.types_changed[k])
    if not seen[name] then add_limit(name, page.limits[k], page.limits_changed[k]) end
    seen[name] = true
    for _, limit in ipairs(t.use) do
        if not seen[limit] then add_used(limit) end
        seen[limit] = true
    end
end

-- About how many limits and types there are from ARGV[first] on, and of as many more types: these do not fit, and a page of them is read.
local function count_rest(ARGV, first, behind)
    local last, count = min(first + PAGE - 1, #ARGV), 0
    if last < first then return 0 end
    local limits, texts = call('HMGET', P .. 'limits', unpack(ARGV, first, last)), call('HMGET', P .. 'types', unpack(ARGV, first, last))
    for k = 1, last - first + 1 do
        local text = texts[k] or ''
        if limits[k] then count = count + 1 end
        if text ~= '' and (find(text, 'use=', 1, true) or find(text, 'cost=', 1, true) or find(text, 'pause=', 1, true)) then count = count + 1 end
    end
    return ceil(count * (#ARGV - first + 1 + behind) / (last - first + 1))
end

-- As many of the types as one call reads, or as there is room for.
local function add_types(ARGV)
    local page
    for i = FIRST, #ARGV do
        if is_full() or time_budget.is_spent() then return end
        local k = (i - FIRST) % PAGE + 1
        if k == 1 then page = read_page(ARGV, i, min(i + PAGE - 1, #ARGV)) end
        time_budget.spend(1)
        add_all_of(ARGV[i], page, k)
        reply[3] = reply[3] + 1
    end
end

-- What is there now is not what that worker is to remember.
local function was_lost(birth) return birth ~= '' and call('HGET', P .. 'about', 'birth') ~= birth end

local function wrong_arguments(ARGV)
    return #ARGV < FIRST - 1 or not (is_whole(tonumber(ARGV[4])) and is_whole(tonumber(ARGV[5])) and is_whole(tonumber(ARGV[6])))
        or #ARGV - FIRST + 1 > TYPES_MOST
end

local function wrong_keys()
    return check.wrong_kind('limits', 'hash') or check.wrong_kind('types', 'hash') or check.wrong_kind('weights', 'hash') or key_pauses.wrong()
        or check.wrong_kind('revisions', 'hash') or check.wrong_kind('about', 'hash')
end

local function rate_known(ARGV)
    if wrong_arguments(ARGV) then return refuse('rate_known: wants now, revision, birth, records, bytes, how many types come, types') end
    local wrong = wrong_keys()
    if wrong then return check.refuse_key(wrong) end
    local newest, behind = revisions.newest(), tonumber(ARGV[6])
    if newest <= (tonumber(ARGV[2]) or -1) or was_lost(ARGV[3]) then return {ARGV[2]} end
    time_budget.begin()
    begin_reply(newest, ARGV)
    add_types(ARGV)
    local rest = FIRST + reply[3]
    if is_full() then
        leave_out(count_rest(ARGV, rest, behind))
    elseif rest <= #ARGV or behind > 0 then
        reply[4] = 1
    end
    return reply
end

return rate_known

-- rate_known: what a worker keeps of the limits of its types, so that rate_again can write them when Redis has lost them.
--
-- KEYS[1] prefix
-- ARGV: now, the newest revision that it knows ('': none), the birth of the data that it knows (past; '': none), type, ...
-- role: worker viewer
-- reply: [ the revision that it knows ] when there is nothing to learn: it is the newest, or Redis has lost data since
--        [ newest revision, how many limits and types do not fit, record, ... ]
--   record: "limit <name> <revision> <rules and marks>[\n<key> <weight>...][\n<key> <pause of key_pauses>...]"
--           "type <name> <revision> <its further limits and its cost>"
--           "home <name> <revision> <partition>", of each type or limit whose home is noted
-- writes: nothing
-- format: any
-- uses: check key_pauses partition revisions rules types

local RECORDS_MOST = 1000
local BYTES_MOST = 256 * 1024
local WEIGHTS_MOST = 1000 -- of all limits

local weights -- limit -> the lines of its keys, as this call has read them

local function forget() weights = nil end

local function read_weights()
    local all = call('HGETALL', P .. 'weights')
    weights = {}
    for i = 1, #all, 2 do
        local limit, key = match(all[i], '^([^/]*)/(.*)$')
        if limit then weights[limit] = (weights[limit] or '') .. '\n' .. key .. ' ' .. all[i + 1] end
    end
    at_next_call(forget)
end

local function weights_of(limit)
    if not weights then read_weights() end
    return weights[limit] or ''
end

local function pauses_of(limit)
    local lines = key_pauses.lines(limit)
    return #lines > 0 and '\n' .. concat(lines, '\n') or ''
end

-- A revision as it is stored; nil: from before these were kept.
local function revision(text)
    local at = tonumber(text or nil)
    return at and us(at)
end

-- text, changed: the limit and its revision as they are stored. nil: there is none that can be read. And whether it has weights that are too many
-- to be kept.
local function limit_record(name, text, changed)
    local set = rules.read(text or '')
    if not set then return nil end
    local record = format('limit %s %s %s', name, revision(changed) or '1', text)
    if set.path then record = record .. pauses_of(name) end
    if not set.weighted then return record end
    if call('HLEN', P .. 'weights') > WEIGHTS_MOST then return nil, true end
    return record .. weights_of(name)
end

local function type_record(t, changed)
    local attributes = types.attributes(t)
    changed = revision(changed) or attributes ~= '' and '1'
    return changed and format('type %s %s %s', t.name, changed, attributes) or nil
end

local function home_record(name)
    local home = partition.count() > 1 and tonumber(call('HGET', P .. 'homes', name) or nil)
    if not is_whole(home) then return nil end
    return format('home %s %s %s', name, revision(call('HGET', P .. 'revisions', 'home/' .. name)) or '1', us(home))
end

local function add(reply, bytes, record, dropped)
    if dropped or record and (#reply >= RECORDS_MOST or bytes + #record > BYTES_MOST) then
        reply[2] = reply[2] + 1
    elseif record then
        reply[#reply + 1] = record
        return bytes + #record
    end
    return bytes
end

local PAGE = 250 -- types in one question

-- What Redis has of the types from ARGV[first] to ARGV[last] and of the limits of their names, a list each.
local function read_page(ARGV, first, last)
    local of_types, of_limits = {}, {}
    for i = first, last do of_types[i - first + 1], of_limits[i - first + 1] = 'type/' .. ARGV[i], 'limit/' .. ARGV[i] end
    return {types = call('HMGET', P .. 'types', unpack(ARGV, first, last)), limits = call('HMGET', P .. 'limits', unpack(ARGV, first, last)),
            types_changed = call('HMGET', P .. 'revisions', unpack(of_types)),
            limits_changed = call('HMGET', P .. 'revisions', unpack(of_limits))}
end

-- About how many limits and types there are from a type on: these do not fit, and a page of them is read.
local function count_rest(ARGV, first)
    local last, count = min(first + PAGE - 1, #ARGV), 0
    local limits, texts = call('HMGET', P .. 'limits', unpack(ARGV, first, last)), call('HMGET', P .. 'types', unpack(ARGV, first, last))
    for k = 1, last - first + 1 do
        local text = texts[k] or ''
        if limits[k] then count = count + 1 end
        if text ~= '' and (find(text, 'use=', 1, true) or find(text, 'cost=', 1, true)) then count = count + 1 end
    end
    return ceil(count * (#ARGV - first + 1) / (last - first + 1))
end

-- A type, the k-th of a page, with all limits that hold it and are not seen yet.
local function add_type(reply, bytes, seen, name, page, k)
    local t = types.parse(name, page.types[k] or '')
    bytes = add(reply, bytes, home_record(name))
    bytes = add(reply, bytes, type_record(t, page.types_changed[k]))
    if not seen[name] then bytes = add(reply, bytes, limit_record(name, page.limits[k], page.limits_changed[k])) end
    seen[name] = true
    for _, limit in ipairs(t.use) do
        if not seen[limit] then
            local text, changed = call('HGET', P .. 'limits', limit), call('HGET', P .. 'revisions', 'limit/' .. limit)
            bytes = add(reply, bytes, home_record(limit))
            bytes = add(reply, bytes, limit_record(limit, text, changed))
        end
        seen[limit] = true
    end
    return bytes
end

local HOMES = '1000' -- looked at, about

-- Names that no type here tells of: what is asked first for a name knows where it lives.
local function add_homes(reply, bytes, seen)
    if partition.count() == 1 then return end
    local page = call('HSCAN', P .. 'homes', '0', 'COUNT', HOMES)[2]
    for i = 1, #page, 2 do
        if not seen[page[i]] then bytes = add(reply, bytes, home_record(page[i])) end
    end
    reply[2] = reply[2] + max(0, call('HLEN', P .. 'homes') - #page / 2)
end

-- What is there now is not what that worker is to remember.
local function was_lost(birth) return birth ~= '' and call('HGET', P .. 'about', 'birth') ~= birth end

local function rate_known(ARGV)
    if #ARGV < 3 then return refuse('rate_known: wants now, revision, birth, types') end
    local wrong = check.wrong_kind('limits', 'hash') or check.wrong_kind('types', 'hash') or check.wrong_kind('weights', 'hash') or key_pauses.wrong()
        or check.wrong_kind('revisions', 'hash') or check.wrong_kind('about', 'hash') or check.wrong_kind('homes', 'hash')
    if wrong then return check.refuse_key(wrong) end
    local newest = revisions.newest()
    if newest <= (tonumber(ARGV[2]) or -1) or was_lost(ARGV[3]) then return {ARGV[2]} end
    local reply, bytes, seen, page = {us(newest), 0}, 0, {}, nil
    for i = 4, #ARGV do
        if #reply >= RECORDS_MOST then
            reply[2] = reply[2] + count_rest(ARGV, i)
            break
        end
        local k = (i - 4) % PAGE + 1
        if k == 1 then page = read_page(ARGV, i, min(i + PAGE - 1, #ARGV)) end
        bytes = add_type(reply, bytes, seen, ARGV[i], page, k)
    end
    add_homes(reply, bytes, seen)
    return reply
end

return rate_known

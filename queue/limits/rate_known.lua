-- rate_known: what a worker keeps of the limits of its types, so that rate_again can write them when Redis has lost them.
--
-- KEYS[1] prefix
-- ARGV: now, the newest revision that it knows ('': none), the birth of the data that it knows (past; '': none), type, ...
-- role: worker viewer
-- reply: [ the revision that it knows ] when there is nothing to learn: it is the newest, or Redis has lost data since
--        [ newest revision, how many limits and types do not fit, record, ... ]
--   record: "limit <name> <revision> <rules and marks>[\n<key> <weight>\n<key> <weight>...]"
--           "type <name> <revision> <its further limits and its cost>"
-- writes: nothing
-- format: any
-- uses: check rates rules types

local RECORDS_MOST = 1000
local BYTES_MOST = 256 * 1024
local WEIGHTS_MOST = 1000 -- of all limits

local function weights_of(limit)
    local all, lines = call('HGETALL', P .. 'weights'), {}
    for i = 1, #all, 2 do
        if sub(all[i], 1, #limit + 1) == limit .. '/' then lines[#lines + 1] = '\n' .. sub(all[i], #limit + 2) .. ' ' .. all[i + 1] end
    end
    return concat(lines)
end

-- nil: it is not there, or cannot be read. And whether it has weights that are too many to be kept.
local function limit_record(name)
    local text = call('HGET', P .. 'limits', name)
    local set = rules.read(text or '')
    if not set then return nil end
    local record = format('limit %s %s %s', name, us(rates.revision('limit', name)), text)
    if not set.weighted then return record end
    if call('HLEN', P .. 'weights') > WEIGHTS_MOST then return nil, true end
    return record .. weights_of(name)
end

local function type_record(t)
    local revision = rates.revision('type', t.name)
    return revision > 0 and format('type %s %s %s', t.name, us(revision), types.attributes(t)) or nil
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

local PAGE = 1000 -- types in one question

-- About how many limits and types there are from a type on: these do not fit, and are not read.
local function count_rest(ARGV, first)
    local count = 0
    for i = first, #ARGV, PAGE do
        local last = min(i + PAGE - 1, #ARGV)
        local limits, texts = call('HMGET', P .. 'limits', unpack(ARGV, i, last)), call('HMGET', P .. 'types', unpack(ARGV, i, last))
        for k = 1, last - i + 1 do
            local text = texts[k] or ''
            if limits[k] then count = count + 1 end
            if text ~= '' and (find(text, 'use=', 1, true) or find(text, 'cost=', 1, true)) then count = count + 1 end
        end
    end
    return count
end

-- What is there now is not what that worker is to remember.
local function was_lost(birth) return birth ~= '' and call('HGET', P .. 'about', 'birth') ~= birth end

local function rate_known(ARGV)
    if #ARGV < 3 then return refuse('rate_known: wants now, revision, birth, types') end
    local wrong = check.wrong_kind('limits', 'hash') or check.wrong_kind('types', 'hash') or check.wrong_kind('weights', 'hash')
        or check.wrong_kind('revisions', 'hash') or check.wrong_kind('about', 'hash')
    if wrong then return check.refuse_key(wrong) end
    local newest = rates.newest()
    if newest <= (tonumber(ARGV[2]) or -1) or was_lost(ARGV[3]) then return {ARGV[2]} end
    local reply, bytes, seen = {us(newest), 0}, 0, {}
    for i = 4, #ARGV do
        if #reply >= RECORDS_MOST then
            reply[2] = reply[2] + count_rest(ARGV, i)
            break
        end
        local t = types.parse(ARGV[i], call('HGET', P .. 'types', ARGV[i]) or '')
        bytes = add(reply, bytes, type_record(t))
        for j = 0, #t.use do
            local limit = t.use[j] or t.name
            if not seen[limit] then bytes = add(reply, bytes, limit_record(limit)) end
            seen[limit] = true
        end
    end
    return reply
end

return rate_known

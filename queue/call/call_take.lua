-- call_take: the verbs of the protocol for callers that are no jobs: take, rate; hold, renew, end.
--
-- ARGV: now, verb, document (doc/protocol.md)
-- role: taker
-- reply: JSON, as doc/protocol.md has it
-- format: any
-- uses: body cost document holds partition

local SPAN_MOST = 86400     -- s
local TTL = 30              -- s
local KEY_MOST = 1024       -- bytes
local ASK_MOST_US = 5000000 -- a slot may come sooner than was told: who waits asks so often

local LIMIT = {
    limit = {is = document.is_name, must_be = 'a string of 1 to 128 of A-Z a-z 0-9 _ . -'},
    key = {is = function(value) return type(value) == 'string' and #value >= 1 and #value <= KEY_MOST end, must_be = 'a string of 1 to 1024 bytes'},
    cost = document.cost(1),
}
local TAKE = {
    limit = LIMIT.limit,
    key = LIMIT.key,
    cost = LIMIT.cost,
    wait = {is = function(value) return type(value) == 'number' and value >= 0 and value <= SPAN_MOST end, must_be = 'a number of seconds from 0 to 86400'},
    place = {is = function(value) return type(value) == 'string' and find(value, '^%d+%.[%w_:,]+%.%w+$') end, must_be = 'as it was answered'},
    leave = {is = function(value) return value == true end, must_be = 'true'},
}
local HOLD = {
    limit = LIMIT.limit,
    key = LIMIT.key,
    cost = LIMIT.cost,
    wait = TAKE.wait,
    place = TAKE.place,
    leave = TAKE.leave,
    ttl = {is = function(value) return type(value) == 'number' and value >= 0.1 and value <= SPAN_MOST end, must_be = 'a number of seconds from 0.1 to 86400'},
    tag = {is = function(value) return type(value) == 'string' and #value <= 40 and find(value, '^%w+$') end, must_be = 'a string of 1 to 40 letters and digits'},
    who = {is = function(value) return type(value) == 'string' and #value <= 200 and not find(value, '%c') end, must_be = 'a line of at most 200 bytes'},
}
local RENEW = {
    token = {is = function(value) return type(value) == 'string' and holds.parts(value) end, must_be = 'as it was answered'},
}
local END = {
    token = RENEW.token,
    spent = document.cost(0),
}
local KNOWN = {take = TAKE, rate = LIMIT, hold = HOLD, renew = RENEW, ['end'] = END}

-- What take says instead of an answer, in the words of throttle/take/take.c.
local REFUSED = {
    missing = {'missing', 'there is no such limit; set it with weir rate set, or give a rule', 'limit'},
    unkeyed = {'invalid', 'the limit has no keys; leave the key out, or set a rule with ,by=', 'key'},
    keyless = {'invalid', 'the limit is kept for each key; give one', 'key'},
    concurrency = {'invalid', 'its concurrency rule counts jobs in flight, which a take cannot give back; take from a limit without one', 'limit'},
    unreadable = {'unavailable', 'the limit\'s rules cannot be read; set them again with weir rate set', 'limit'},
    foreign = {'unavailable', 'its key in Redis, gate:LIMIT#..., holds something that is not Weir\'s; move it away', 'limit'},
}

local function answered(reply, more)
    local refused = REFUSED[reply[1]]
    if refused then return document.refused(refused[1], refused[2], refused[3]) end
    local word = reply[1] == 1 and 'true' or reply[1] == 2 and 'false,"never":true' or 'false,"retry_after":' .. document.seconds(reply[4])
    return format('{"allowed":%s,"limit":%d,"remaining":%d,"reset_after":%s%s}', word, reply[2], reply[3], document.seconds(max(0, reply[5])), more or '')
end

local function ask(verb, given, key, said, place, tag)
    local most = us(floor((given.wait or 0) * 1000000))
    local ARGV = {'', given.leave and 'leave' or 'ask', '', given.limit, key, said, place, tag, most}
    if verb == 'take' then return scripts.take_wait(ARGV) end
    ARGV[10], ARGV[11] = us(floor((given.ttl or TTL) * 1000000)), given.who or ''
    return scripts.hold(ARGV)
end

local function wait(verb, given, key, said)
    local place = given.place or ''
    local tag = match(place, '%w+$') or given.tag or document.made()
    local reply = ask(verb, given, key, said, place, tag)
    if reply.err then return document.fault(reply.err) end
    if given.leave and reply[2] == nil then return '{"left":true}' end
    if reply[1] == 1 then
        return answered(reply, (reply[4] > 0 and ',"start_after":' .. document.seconds(reply[4]) or '')
                               .. (verb == 'hold' and ',"token":"' .. given.limit .. '~' .. tag .. '"' or ''))
    end
    if reply[7] == '' then return answered(reply) end
    return answered(reply, ',"place":"' .. reply[7] .. '","ask_after":' .. document.seconds(min(max(0, reply[4]), ASK_MOST_US)))
end

-- Writes what is asked for as scripts take it.
local function word_of(said) return said and cost.text(cost.read(said)) or '1' end

local function wrong_wait(verb, given)
    if not given.limit then return document.missing(verb, 'limit') end
    local wrong, why
    local came, own, tag = match(given.place or '', '^(%d+)%.([^.]+)%.(%w+)')
    if given.place and not given.wait and not given.leave then
        wrong, why = 'place', '"place" without "wait" or "leave"'
    elseif came and (tonumber(came) >= 2 ^ 53 or own ~= word_of(given.cost)) then
        wrong, why = 'place', '"place" is of another cost'
    elseif came and given.tag and given.tag ~= tag then
        wrong, why = 'tag', '"tag" is not that of "place"'
    elseif given.leave and not given.place then
        wrong, why = 'leave', '"leave" without "place"'
    end
    return wrong and document.refused('invalid', 'wrong ' .. verb .. ': ' .. why, wrong)
end

-- Renews or ends a hold.
local function about_hold(verb, given)
    if not given.token then return document.missing(verb, 'token') end
    local reply = verb == 'renew' and scripts.hold_renew{'', given.token}
        or scripts.hold_end{'', given.token, given.spent and cost.text(cost.read(given.spent, 0)) or ''}
    if reply.err then return document.fault(reply.err) end
    if reply[1] == 0 then return document.refused('missing', 'it is not held any more; it has ended, or was not renewed in time', 'token') end
    return verb == 'renew' and '{"held":true}' or '{"ended":true}'
end

-- Reads a document that most callers write, without a look at each member; nil: it is another one.
local function read_fast(text)
    local name, at = match(text, '^{"limit":"([%w_.-]+)"()')
    if not name or #name > 128 then return nil end
    local key, behind = match(text, '^,"key":"([%w_.-]+)"()', at)
    at = behind or at
    local slots
    slots, behind = match(text, '^,"cost":([1-9]%d*)()', at)
    at = behind or at
    if byte(text, at) ~= 125 or at ~= #text or slots and #slots > 9 or key and #key > KEY_MOST then return nil end
    return name, key and body.key_of(key) or '', slots or '1'
end

local function take(verb, name, key, said)
    local reply = scripts.take{'', verb == 'rate' and '1' or '0', '', name, key, said}
    if reply.err then return document.fault(reply.err) end
    if reply[1] == 'elsewhere' then return document.elsewhere(partition.elsewhere(name)) end
    return answered(reply)
end

local function call_take(ARGV)
    local verb = ARGV[2]
    if #ARGV ~= 3 or not KNOWN[verb] then return refuse('call_take: wants now, take, rate, hold, renew or end, and a document') end
    local name, key, said
    if KNOWN[verb].cost and verb ~= 'hold' then name, key, said = read_fast(ARGV[3]) end
    if name then return take(verb, name, key, said) end
    local given, refusal = document.read(ARGV[3], KNOWN[verb], verb)
    if not refusal and KNOWN[verb].token then return about_hold(verb, given) end
    refusal = refusal or wrong_wait(verb, given)
    if refusal then return refusal end
    key, said = given.key and body.key_of(given.key) or '', word_of(given.cost)
    if verb == 'hold' or given.wait or given.leave then return wait(verb, given, key, said) end
    return take(verb, given.limit, key, said)
end

return call_take

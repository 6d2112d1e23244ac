-- holds: slots on lease, for what is not a job. A hold is a token and an end by Redis's clock: who has the token renews it while it lasts and ends it;
-- what nobody has renewed is over as that end comes.
--
--   token    "<limit>~<tag>"; tag: letters and digits, of the holder's own
--   holds    zset: token -> its end
--   hold:<limit>   hash: tag -> "<since> <slot> <ttl> <cost, as cost.lua writes it> <key, or *> <rules> <gates, or -> <who>"; slot: when it started, us; rules: a digest of
--            those that held it; gates: "," between, those of concurrency that it took; who: any text
--
--   holds.parts(token)              limit, tag; nil: it is no token
--   holds.wrong_keys(limit)         says what is wrong with the keys; nil: nothing
--   holds.till(token)               its end; nil: it is not held, or that has come
--   holds.gates(token)              those of concurrency that it took, as they stand in the token of a lease (lease.lua)
--   holds.begin(limit, tag, one)    one: {slot =, ttl =, cost = (text), key =, rules =, gates =, who =}
--   holds.renew(token)              it lasts for its ttl from now on
--   holds.ttl(token)                how long, us; nil: it is not held
--   holds.finish(token, spent)      what it took goes back; spent: what it cost in truth, as cost.lua reads it; nil: as much as it took
--   holds.at(gate)                  how many hold a slot of it, and when the first lease ends; 0: none, or too many to look at
--   holds.reap()                    ends those whose end has come, a number of them
--
-- Gates of concurrency count leases: of jobs, and these. Of rates a slot that was taken is used, but for what `spent` gives back.
-- uses: check cost gate key_rules rules takes wake

local holds = {}

local REAPED_MOST = 100 -- in one call, about 20 us each
local LOOKED_MOST = 500

function holds.parts(token)
    local limit, tag = match(token or '', '^([%w_.-]+)~(%w+)$')
    if limit and is_name(limit) then return limit, tag end
end

function holds.wrong_keys(limit) return check.wrong_kind('holds', 'zset') or check.wrong_kind('hold:' .. limit, 'hash') end

function holds.till(token)
    local till = tonumber(call('ZSCORE', P .. 'holds', token) or nil)
    return till and till > now and till or nil
end

-- Returns the digest of the rules by which a limit holds a key now.
function holds.digest(limit, key)
    local own = key ~= '' and key_rules.of(limit.name, limit.set, key)
    return sub(sha1(limit.set.text .. (own and own.text or '')), 1, 8)
end

function holds.begin(limit, tag, one)
    call('HSET', P .. 'hold:' .. limit, tag, format('%d %d %d %s %s %s %s %s', now, one.slot, one.ttl, one.cost,
         one.key ~= '' and one.key or '*', one.rules, one.gates ~= '' and one.gates or '-', one.who))
    call('ZADD', P .. 'holds', us(one.slot + one.ttl), limit .. '~' .. tag)
end

function holds.ttl(token)
    local limit, tag = holds.parts(token)
    local record = limit and call_safe('HGET', P .. 'hold:' .. limit, tag)
    return type(record) == 'string' and tonumber(match(record, '^%d+ %d+ (%d+) ')) or nil
end

function holds.gates(token)
    local limit, tag = holds.parts(token)
    local record = limit and call('HGET', P .. 'hold:' .. limit, tag)
    local gates = match(record or '', '^%d+ %d+ %d+ %S+ %S+ %x+ (%S+) ')
    return gates and gates ~= '-' and '~' .. gates or ''
end

function holds.renew(token) call('ZADD', P .. 'holds', 'XX', us(now + (holds.ttl(token) or 0)), token) end

-- Charges a limit's rates the difference between what a hold took and what it cost, or gives that back. Nothing goes back to rules that did not hold it,
-- nor of a slot that has yet to come: the clock was set back since.
local function settle(name, slot, took, key, digest, said)
    local limit, spent = takes.limit_of(name, ''), cost.over(said, took)
    key = key ~= '*' and key or ''
    if takes.wrong(limit, key, true) then return end
    local gives = holds.digest(limit, key) == digest and slot <= now + gate.AHEAD_MOST
    for _, rule in ipairs((takes.rules(limit, key, true))) do
        local slots = rules.slots(rule, spent) - rules.slots(rule, took)
        local g = (slots > 0 or slots < 0 and gives) and takes.load(limit, rule, key)
        if g and slots > 0 then
            gate.charge(g, slots)
        elseif g then
            gate.give(g, slot, -slots)
            wake.list_at(nil, g.name)
            wake.list_lines_at(g.name)
            wake.opened(g.name)
        end
    end
end

function holds.finish(token, spent)
    local name, tag = holds.parts(token)
    call('ZREM', P .. 'holds', token)
    local record = name and not check.wrong_kind('hold:' .. name, 'hash') and call('HGET', P .. 'hold:' .. name, tag)
    local slot, cost, key, rules_digest = match(record or '', '^%d+ (%d+) %d+ (%S+) (%S+) (%x+) ')
    if not slot then return end
    wake.release(holds.gates(token))
    call('HDEL', P .. 'hold:' .. name, tag)
    if spent then settle(name, tonumber(slot), takes.cost(cost), key, rules_digest, spent) end
end

function holds.at(name)
    local limit, count, first = match(name, '^[^#]+'), 0, huge
    if holds.wrong_keys(limit) or call('HLEN', P .. 'hold:' .. limit) > LOOKED_MOST then return 0 end
    local rows = call('HGETALL', P .. 'hold:' .. limit)
    for i = 1, #rows, 2 do
        local gates = match(rows[i + 1], '^%d+ %d+ %d+ %S+ %S+ %x+ (%S+) ')
        local till = gates and find(',' .. gates .. ',', ',' .. name .. ',', 1, true) and holds.till(limit .. '~' .. rows[i])
        if till then count, first = count + 1, min(first, till) end
    end
    return count, first
end

function holds.reap()
    local tokens = call_safe('ZRANGEBYSCORE', P .. 'holds', '-inf', us(now), 'LIMIT', '0', digits(REAPED_MOST))
    for i = 1, #tokens do holds.finish(tokens[i]) end
end

return holds

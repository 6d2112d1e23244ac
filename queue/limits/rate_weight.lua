-- rate_weight: the share of a key where a limit's keys take turns: a key of weight 3 has three starts for one of others.
--
-- ARGV: now, limit, key, weight (1 is that of all keys), what, by (for the log)
-- role: operator
-- reply: JSON: {}
--        {"missing": limit}
-- uses: check partition rates rules

local WEIGHT_MOST = 1000

local function rate_weight(ARGV)
    local name, key, weight = ARGV[2], ARGV[3], tonumber(ARGV[4])
    if #ARGV ~= 6 or not is_name(name) or not rules.is_key(key) then
        return refuse('rate_weight: wants now, limit, key, weight, what, by')
    end
    if not is_whole(weight, 1) or weight > WEIGHT_MOST then return refuse('weight: must be 1 to %d', WEIGHT_MOST) end
    local refusal = partition.refusal(name)
    if refusal then return refusal end
    local wrong = rates.wrong_keys()
    if wrong then return check.refuse_key(wrong) end
    local text = call('HGET', P .. 'limits', name)
    if not text then return answer{missing = name} end
    local set = rules.read(text)
    if not set or not set.path then
        return refuse('limit %s: has no keys to weigh; set a rule with ,by=PATH, as in 10/s,by=args.customer', name)
    end

    local field = name .. '/' .. rules.key(set, key)
    if weight == 1 then call('HDEL', P .. 'weights', field) else call('HSET', P .. 'weights', field, ARGV[4]) end
    local parts = rates.split(text)
    parts.weighted = weight > 1 or #rates.weights(name) > 0 -- reading all weights takes 4 ms where 10,000 keys have some
    rates.write(name, parts)
    rates.record(ARGV[5], ARGV[6], 'limit', name)
    return answer{}
end

return rate_weight

-- settle_done: jobs that are simply done leave the leases of their worker, those of one type together.
--
--   settle_done.plain(ARGV, worker, name, first, last)     those whose tokens are ARGV[first] to ARGV[last], of no batch: how many were stale;
--                                                          nil: a gate counts some of them in flight, and nothing was changed
--   settle_done.is_group(verb)       is it one of settle that reports such jobs?
--   settle_done.read(ARGV, i)        the group of them that begins with that verb at ARGV[i]: {name =, batch = ('': none), counted = (a gate counts
--                                    some in flight), behind = (where the next verb stands), tokens =, first =, last =}; nil: it is none
--   settle_done.settle(group, worker)  how many were stale
--
-- uses: counters ends stamp wake
local settle_done = {}

local DIGITS, VALUES = stamp.DIGITS, stamp.VALUES

local function counts_in_flight(tokens, first, last)
    for i = first, last do
        if find(tokens[i], '~', 1, true) then return true end
    end
    return false
end

-- Counts the ends of a type that had a lease; returns how many were stale.
local function count(name, all, ended)
    if ended > 0 then counters.add(name, 'done', ended) end
    if ended < all then counters.add(name, 'stale', all - ended) end
    return all - ended
end

local function remove(tokens, worker, name, first, last)
    return count(name, last - first + 1, call('HDEL', P .. 'active:' .. worker, unpack(tokens, first, last)))
end

function settle_done.plain(ARGV, worker, name, first, last)
    if counts_in_flight(ARGV, first, last) then return nil end
    return remove(ARGV, worker, name, first, last)
end

local IS_GROUP = {done = true, run = true}
local MOST = 4000 -- jobs of one group

function settle_done.is_group(verb) return IS_GROUP[verb] end

-- Lists n tokens of a turn from the given one on; nil: that is none, or it has not so many.
local function run_of(token, n)
    local turn, high, low, behind = match(token, '^(%d+%.)([%w_-])([%w_-])([^%w_-].*)$')
    if not turn or VALUES[high] * 64 + VALUES[low] + n > 4096 then return nil end
    local tokens, digit_of, i, k, at = {}, DIGITS, VALUES[high] + 1, VALUES[low] + 1, 0
    while at < n do
        local head, shift, last = turn .. digit_of[i], at + 1 - k, min(64, k + n - at - 1)
        for digit = k, last do tokens[shift + digit] = head .. digit_of[digit] .. behind end
        i, k, at = i + 1, 1, shift + last
    end
    return tokens
end

function settle_done.read(ARGV, i)
    local name, batch, n, token = ARGV[i + 1], ARGV[i + 2], tonumber(ARGV[i + 3]), ARGV[i + 4]
    if not (is_name(name) and (batch == '' or is_name(batch)) and is_whole(n, 1) and n <= MOST and token) then return nil end
    if ARGV[i] == 'run' then
        local tokens = run_of(token, n)
        return tokens and {name = name, batch = batch, counted = counts_in_flight(tokens, 1, 1), behind = i + 5, tokens = tokens, first = 1, last = n}
    end
    local last = i + 3 + n
    if last > #ARGV then return nil end
    return {name = name, batch = batch, counted = counts_in_flight(ARGV, i + 4, last), behind = last + 1, tokens = ARGV, first = i + 4, last = last}
end

-- Ends jobs of which some are counted in flight.
local function end_counted(group, worker)
    local ended = 0
    for i = group.first, group.last do
        if call('HDEL', P .. 'active:' .. worker, group.tokens[i]) == 1 then
            wake.release(group.tokens[i])
            ended = ended + 1
        end
    end
    return count(group.name, group.last - group.first + 1, ended)
end

function settle_done.settle(group, worker)
    if group.counted or group.batch ~= '' then read_clock() end
    local stale = group.counted and end_counted(group, worker) or remove(group.tokens, worker, group.name, group.first, group.last)
    local ended = group.last - group.first + 1 - stale
    if ended > 0 and group.batch ~= '' then ends.batch(group.batch, 'done', ended) end
    return stale
end

return settle_done

-- orders: what an operator orders a worker to do. The worker hears it with its next heartbeat, which keeps the order for as long as the worker
-- lives; a day later it is gone.
--
--   order:<instance>   "<word> <us>": what is ordered since when: "quiet": take no more jobs, and stay; "resume": take jobs again, until a heartbeat says that it does; "stop": finish, and
--                      leave. It is kept for longer when it was heard
--
-- An instance is a worker process, whatever its ids are, in each partition.
--
-- uses: check
local orders = {}

local KEPT_MS = 86400000  -- an order waits for a day to be heard, which is more than there is between two heartbeats
local HEARD_MS = 172800000 -- an order is kept for two days behind the last heartbeat that has heard it

-- Returns the order of an instance, '' where there is none, and since when: "us"; what is no name has none.
function orders.read(instance)
    local text = is_name(instance) and call_safe('GET', P .. 'order:' .. instance)
    local order, since = match(type(text) == 'string' and text or '', '^(%a+) ?(%d*)')
    if order == 'quiet' or order == 'resume' or order == 'stop' then return order, since ~= '' and since or nil end
    return ''
end

-- True when the worker takes no more jobs, or is about to hear that; and since when.
function orders.rests(instance)
    local order, since = orders.read(instance)
    return order == 'quiet' or order == 'stop', tonumber(since)
end

-- True when a heartbeat has answered the order: the worker hears it before its next one.
function orders.is_heard(instance)
    local ttl = call_safe('PTTL', P .. 'order:' .. instance)
    return ttl == -1 or type(ttl) == 'number' and ttl > KEPT_MS
end

-- Reads the order of a worker that hears it now. A worker that a signal has made quiet has that for its order.
function orders.of(instance, is_quiet)
    local order = orders.read(instance)
    if order == 'resume' and not is_quiet then
        call_safe('DEL', P .. 'order:' .. instance)
        return ''
    end
    if is_quiet and order == '' and is_name(instance) then
        orders.give(instance, 'quiet')
        order = orders.read(instance)
    end
    if order ~= '' and not VIRTUAL then call_safe('PEXPIRE', P .. 'order:' .. instance, us(HEARD_MS)) end
    return order
end

-- Gives an order; a worker that stops hears no other one, and one that has not heard that it is to be quiet need not hear that it is not. Returns
-- what is wrong with the key.
function orders.give(instance, order)
    local key = 'order:' .. instance
    local wrong = check.wrong_kind(key, 'string')
    local before = not wrong and orders.read(instance)
    if wrong or before == order or before == 'stop' then return wrong end
    if order == 'resume' and (before == '' or not orders.is_heard(instance)) then
        call('DEL', P .. key)
        return nil
    end
    local text = order .. ' ' .. us(now)
    if VIRTUAL then call('SET', P .. key, text) else call('SET', P .. key, text, 'PX', us(KEPT_MS)) end
end

return orders

-- cancel: ends one job that find_job has found, in the way of its place.
--
-- KEYS[1] prefix
-- ARGV: now, id, then one of
--         "mark"              it waits: claims drop it where they meet it. Who marks it looks for it once more: then
--         "keep" queue type batch place   it still waited: the mark stays until claims meet it, or nothing is left where it could
--                             be. If it is the first of the lane that is its place, the next claim meets it
--         "unmark"            it was not there any more
--         "tell" worker token it runs: its worker is told, and if it comes back all the same, it ends. If it was marked while it
--                             still waited, that mark is not needed any more: the next job of that id would end by it
--         "take" header entry it stands in `later`, as a record of these: gone at once
--         "unlock" key        no such job is found: a unique lock that it holds is free
-- role: operator
-- reply: JSON: {"done": true}; false: it is not there any more, is marked already, or does not hold the lock: nothing was changed
-- uses: bell cancelled cancelling check lane lease

local verbs = {}

function verbs.mark(id) return call('HSETNX', P .. 'cancelled', id, 'asked ' .. us(now)) end

function verbs.keep(id, queue, kind, batch, place)
    local since = match(call('HGET', P .. 'cancelled', id) or '', '^%a+ (%d+)')
    if not since then return 0 end
    call('HSET', P .. 'cancelled', id, cancelled.waiting(since, queue, kind, batch))
    local name = match(place, '^lane:(.*)$')
    if name and call('EXISTS', P .. place) == 1 then bell.ring(cancelling.lane_is_due(name)) end
    return 1
end

function verbs.unmark(id)
    local mark = call('HGET', P .. 'cancelled', id) or ''
    return find(mark, '^asked') and call('HDEL', P .. 'cancelled', id) or 0
end

function verbs.tell(id, worker, token)
    local entry = call('HGET', P .. 'active:' .. worker, token)
    if not entry then return 0 end
    cancelling.tell(worker, token, entry)
    verbs.unmark(id)
    return 1
end

function verbs.take(_, header, entry)
    return cancelling.take(header, entry) and 1 or 0
end

function verbs.unlock(id, key)
    if call('GET', P .. 'unique:' .. key) ~= id then return 0 end
    return call('DEL', P .. 'unique:' .. key)
end

local WORDS = {mark = 3, keep = 7, unmark = 3, tell = 5, take = 5, unlock = 4}

local function wrong_keys(verb, word, place)
    local wrong = check.wrong_kind('cancelled', 'hash')
    if verb == 'keep' and find(place, '^lane:') then wrong = wrong or lane.wrong(sub(place, 6)) end
    if verb == 'tell' then
        wrong = wrong or check.wrong_kind('active:' .. word, 'hash') or check.wrong_kind('told:' .. word, 'list')
    end
    if verb == 'take' then wrong = wrong or check.wrong_kind('later', 'zset') end
    if verb == 'unlock' then wrong = wrong or check.wrong_kind('unique:' .. word, 'string') end
    return wrong
end

local function cancel(ARGV)
    local id, verb = ARGV[2], ARGV[3]
    if not is_name(id) or #ARGV ~= WORDS[verb or ''] then return refuse('cancel: wants now, id, what to do and its words') end
    if verb == 'keep' and (not is_name(ARGV[4]) or find(ARGV[7], '^lane:') and not lease.lane_parts(sub(ARGV[7], 6))) then
        return refuse('cancel: keep wants queue, type, batch, place')
    end
    local wrong = wrong_keys(verb, ARGV[4], ARGV[7])
    if wrong then return check.refuse_key(wrong) end
    return answer{done = verbs[verb](id, ARGV[4], ARGV[5], ARGV[6], ARGV[7]) == 1}
end

return cancel

-- cancel: ends one job that find_job has found, in the way of its place.
--
-- KEYS[1] prefix
-- ARGV: now, id, then one of
--         "mark"              it waits: claims drop it where they meet it
--         "look" place        it waits in that lane and is marked: if it is the first there, the next claim meets it
--         "unmark"            it was not there any more when it had been marked
--         "tell" worker token it runs: its worker is told, and if it comes back all the same, claims drop it
--         "take" record       it stands in `later`, as this record: gone at once
--         "unlock" key        no such job is found: a unique lock that it holds is free
-- reply: 1; 0: it is not there any more, is marked already, or does not hold the lock: nothing was changed
-- uses: bell cancelled check lane lease

local TOLD_MS = 3600000 -- a worker that has not heard of it by then is not there any more

local verbs = {}

function verbs.mark(id) return call('HSETNX', P .. 'cancelled', id, 'waiting ' .. us(now)) end

function verbs.look(_, place)
    local name = sub(place, 6)
    if call('EXISTS', P .. 'lane:' .. name) == 0 then return 0 end
    local queue, kind, key = lease.lane_parts(name)
    lane.wake(queue, kind, key)
    bell.ring(queue)
    return 1
end

function verbs.unmark(id)
    local mark = call('HGET', P .. 'cancelled', id) or ''
    return find(mark, '^waiting') and call('HDEL', P .. 'cancelled', id) or 0
end

function verbs.tell(id, worker, token)
    if call('HEXISTS', P .. 'active:' .. worker, token) == 0 then return 0 end
    call('HSET', P .. 'cancelled', id, 'running ' .. us(now))
    call('RPUSH', P .. 'told:' .. worker, token)
    if not VIRTUAL then call('PEXPIRE', P .. 'told:' .. worker, TOLD_MS) end
    return 1
end

function verbs.take(_, record)
    local header, entry = record:match('^([^\n]*)\n(.*)$')
    local name = (header or ''):match('^q %S+ %S+ (%S+)$') or (header or ''):match('^l %S+ [^/]+/([^/]+)/')
    if not name or call('ZREM', P .. 'later', record) == 0 then return 0 end
    lease.count(name, 'scheduled', -1)
    lease.count(name, 'cancelled', 1)
    cancelled.finish({entry})
    return 1
end

function verbs.unlock(id, key)
    if call('GET', P .. 'unique:' .. key) ~= id then return 0 end
    return call('DEL', P .. 'unique:' .. key)
end

local WORDS = {mark = 3, look = 4, unmark = 3, tell = 5, take = 4, unlock = 4}

local function wrong_keys(verb, word)
    local wrong = check.wrong_kind('cancelled', 'hash')
    if verb == 'look' then wrong = wrong or lane.wrong(sub(word, 6)) end
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
    if verb == 'look' and not (find(ARGV[4], '^lane:') and lease.lane_parts(sub(ARGV[4], 6))) then
        return refuse('cancel: look wants lane:<lane>')
    end
    local wrong = wrong_keys(verb, ARGV[4])
    if wrong then return check.refuse_key(wrong) end
    return verbs[verb](id, ARGV[4], ARGV[5])
end

return cancel

-- cancel: ends one job that find_job has found where it does not wait in line: those are ended by job_act.
--
-- ARGV: now, id, then one of
--         "tell" worker token it runs: its worker is told, and if it comes back all the same, it ends
--         "take" header entry it stands in `later`, as a record of these: gone at once
--         "unlock" key        no such job is found: a unique lock that it holds is free
-- role: operator
-- reply: JSON: {"done": true}; false: it is not there any more, or does not hold the lock: nothing was changed
-- uses: cancelling check

local verbs = {}

function verbs.tell(_, worker, token)
    local entry = call('HGET', P .. 'active:' .. worker, token)
    if not entry then return 0 end
    cancelling.tell(worker, token, entry)
    return 1
end

function verbs.take(_, header, entry)
    return cancelling.take(header, entry) and 1 or 0
end

function verbs.unlock(id, key)
    if call('GET', P .. 'unique:' .. key) ~= id then return 0 end
    return call('DEL', P .. 'unique:' .. key)
end

local WORDS = {tell = 5, take = 5, unlock = 4}

local function wrong_keys(verb, word)
    local wrong = check.wrong_kind('cancelled', 'hash')
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
    local wrong = wrong_keys(verb, ARGV[4])
    if wrong then return check.refuse_key(wrong) end
    return answer{done = verbs[verb](id, ARGV[4], ARGV[5]) == 1}
end

return cancel

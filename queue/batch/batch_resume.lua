-- batch_resume: ends the pause of a batch; what was set aside returns to the head of its queues, one page, the last of them first, so
-- that it stands there in its order when all pages have returned.
--
-- KEYS[1] prefix
-- ARGV: now, name, most (1 to 500; fewer are moved where they are large), seed (random: see sign)
-- role: operator
-- reply: JSON: {"was": "paused", "running", or "cancelled" (then nothing was changed), "returned": how many, "aside": how many still
--        are}; no "was" when there is no such batch
-- uses: batch bell check ends large sign

local function wrong_queues(jobs)
    local wrong
    for _, job in ipairs(jobs) do wrong = wrong or check.wrong_kind('queue:' .. job.queue, 'list') end
    return wrong
end

local function to_heads(jobs, seed)
    local queues, rung = {}, {}
    for _, job in ipairs(jobs) do
        queues[job.queue] = queues[job.queue] or {}
        queues[job.queue][#queues[job.queue] + 1] = sign.write(job.entry, seed)
    end
    for queue, entries in pairs(queues) do
        push('LPUSH', P .. 'queue:' .. queue, entries)
        call('SADD', P .. 'queues', queue)
        for _, entry in ipairs(entries) do large.note(queue, entry) end
        rung[queue] = true
    end
    bell.ring_all(rung)
end

local function batch_resume(ARGV)
    local name, most = ARGV[2], tonumber(ARGV[3])
    if #ARGV ~= 4 or not (is_name(name) and is_whole(most, 1) and is_name(ARGV[4])) or most > 500 then
        return refuse('batch_resume: wants a name, most from 1 to 500, a seed')
    end
    local wrong = batch.wrong(name) or check.wrong_kind('queues', 'set') or check.wrong_kind('dead', 'zset') or sign.wrong()
    if wrong then return check.refuse_key(wrong) end
    local b, was = batch.read(name), batch.halted(name)
    if b and b.cancelled or was == 'cancelled' then return answer{was = 'cancelled', returned = 0, aside = call('LLEN', P .. 'aside:' .. name)} end
    local jobs, unread = batch.aside(name, most)
    if not b and #jobs + #unread == 0 then return answer{} end
    wrong = wrong_queues(jobs)
    if wrong then return check.refuse_key(wrong) end

    if was == 'paused' then
        call('HDEL', P .. 'halted', 'b/' .. name)
        ends.keep(name, ends.KEPT_MS, true)
    end
    to_heads(jobs, ARGV[4])
    batch.count(jobs, 'enqueued', 1)
    batch.count(jobs, 'set_aside', -1)
    batch.bury(name, unread)
    batch.trim(name, jobs, unread)
    if was == 'paused' then ends.look(name) end
    return answer{was = was == 'paused' and 'paused' or 'running', returned = #jobs, aside = call('LLEN', P .. 'aside:' .. name)}
end

return batch_resume

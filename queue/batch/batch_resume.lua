-- batch_resume: ends the pause of a batch; what was set aside returns to the head of its queues, one page, the last of them first, so
-- that it stands there in its order when all pages have returned.
--
-- ARGV: now, name, most (1 to 500; fewer are moved where they are large), seed (random: see sign)
-- role: operator
-- reply: JSON: {"was": "paused", "running", or "cancelled" (then nothing was changed), "returned": how many, "aside": how many still
--        are}; no "was" when there is no such batch
-- uses: aside batch check reasons

local function batch_resume(ARGV)
    local name, most = ARGV[2], tonumber(ARGV[3])
    if #ARGV ~= 4 or not (is_name(name) and is_whole(most, 1) and is_name(ARGV[4])) or most > 500 then
        return refuse('batch_resume: wants a name, most from 1 to 500, a seed')
    end
    local wrong = batch.wrong(name) or aside.wrong(name)
    if wrong then return check.refuse_key(wrong) end
    local b, was = batch.read(name), batch.halted(name)
    if b and b.cancelled or was == 'cancelled' then return answer{was = 'cancelled', returned = 0, aside = call('LLEN', P .. 'aside:' .. name)} end
    if not b and call('EXISTS', P .. 'aside:' .. name) == 0 then return answer{} end
    local returned
    returned, wrong = aside.give_back(name, was, most, ARGV[4])
    if wrong then return check.refuse_key(wrong) end
    reasons.set('batch', name, '', nil)
    return answer{was = was == 'paused' and 'paused' or 'running', returned = returned, aside = call('LLEN', P .. 'aside:' .. name)}
end

return batch_resume

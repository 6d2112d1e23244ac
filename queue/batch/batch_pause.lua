-- batch_pause: pauses a batch, for a time or until it is resumed: claims set its jobs aside as they meet them, and what runs is left to end. With create,
-- one that is not there is begun without jobs, unless there are other partitions, where it may be.
--
-- ARGV: now, name, for_us ('': until it is resumed), reason, create (1: though there is no such batch yet), what, by (for the log)
-- role: operator
-- reply: JSON: {"was": "ended", "cancelled" (then nothing was changed), "paused" or "running", "left": its jobs that have not ended,
--        "aside": those of them that are, "before", "pause": as reasons.pause has them, of the pause before and of the one that is there now, "asleep",
--        "rest": as rate_wake has them}; no "was" when there is no such batch here
-- uses: arrival batch check partition rates reasons

local function pause(name, till, reason)
    if not VIRTUAL then call('PERSIST', P .. 'batch:' .. name) end
    if not batch.pause(name) then call('HSET', P .. 'halted', 'b/' .. name, 'paused ' .. us(now)) end
    reasons.set('batch', name, reason, till)
end

local function batch_pause(ARGV)
    local name = ARGV[2]
    if #ARGV ~= 7 or not is_name(name) or ARGV[3] == '0' or ARGV[5] ~= '0' and ARGV[5] ~= '1' then
        return refuse('batch_pause: wants now, name, for_us, reason, create, what, by')
    end
    local wrong = batch.wrong(name) or arrival.wrong_batch(name) or rates.wrong_keys()
    if wrong then return check.refuse_key(wrong) end
    local till, refusal = reasons.read(ARGV[3], ARGV[4])
    if refusal then return refusal end
    local b = batch.read(name)
    if not b and (ARGV[5] == '0' or partition.count() > 1) then return answer{} end
    if not b then arrival.join(name, {}, 0, 0) end

    b = b or {left = 0}
    local was, before, asleep, rest = batch.state(name, b), batch.pause(name), nil, nil
    if was == 'running' or was == 'paused' then
        pause(name, till, ARGV[4])
        rates.note(ARGV[6], ARGV[7])
        if was == 'running' then asleep, rest = batch.look_again(name) end
    end
    return answer{was = was, left = b.left, aside = call('LLEN', P .. 'aside:' .. name), before = before, pause = batch.pause(name),
                  asleep = asleep, rest = rest}
end

return batch_pause

-- batch_halt: pauses a batch: claims set its jobs aside as they meet them, and one that is not there is begun without jobs, unless there
-- are other partitions, where it may be; or cancels it: claims drop them, it takes no more, and nothing follows it. What runs is left to
-- end. Whoever cancels it ends those that no claim will meet soon.
--
-- KEYS[1] prefix
-- ARGV: now, name, verb (pause or cancel), dry (0/1: only ask what it would do)
-- role: operator
-- reply: JSON: {"was": "ended", "cancelled" (then nothing was changed), "paused" or "running", "left": its jobs that have not ended,
--        "aside": those of them that are, "unmet": true where it may have jobs of a type that no worker runs, "asleep", "rest": as
--        rate_wake has them}; no "was" when there is no such batch here
-- uses: arrival batch check ends partition runs

local function state(name, b)
    if b.cancelled then return 'cancelled' end
    if b.sealed and b.left == 0 then return 'ended' end
    return batch.halted(name) == 'paused' and 'paused' or 'running'
end

local function is_unmet(name)
    local kinds = call('HGET', P .. 'batch:' .. name, 'types')
    for kind in (kinds or '*'):gmatch('(%S+) ?%d*') do
        if kind == '*' or not runs.is_run(kind) then return true end
    end
    return false
end

local function cancel(name)
    call('HSET', P .. 'batch:' .. name, 'cancel', us(now))
    call('HSET', P .. 'halted', 'b/' .. name, 'cancelled ' .. us(now))
    ends.seal(name)
end

local function batch_halt(ARGV)
    local name, verb, dry = ARGV[2], ARGV[3], ARGV[4]
    if #ARGV ~= 4 or not is_name(name) or verb ~= 'pause' and verb ~= 'cancel' or dry ~= '0' and dry ~= '1' then
        return refuse('batch_halt: wants a name, pause or cancel, 0 or 1')
    end
    local wrong = batch.wrong(name) or arrival.wrong_batch(name)
    if wrong then return check.refuse_key(wrong) end
    local b = batch.read(name)
    if not b and (verb == 'cancel' or partition.count() > 1) then return answer{} end
    if not b and dry == '0' then arrival.join(name, {}, 0, 0) end
    b = b or {left = 0}
    local was, asleep, rest = state(name, b), {}, nil
    if dry == '0' and (was == 'running' or was == 'paused' and verb == 'cancel') then
        if not VIRTUAL then call('PERSIST', P .. 'batch:' .. name) end
        if verb == 'cancel' then cancel(name) else call('HSET', P .. 'halted', 'b/' .. name, 'paused ' .. us(now)) end
        asleep, rest = batch.look_again(name)
    end
    return answer{was = was, left = b.left, aside = call('LLEN', P .. 'aside:' .. name),
                  unmet = verb == 'cancel' and is_unmet(name), asleep = asleep, rest = rest}
end

return batch_halt

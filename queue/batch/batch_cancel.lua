-- batch_cancel: cancels a batch: claims drop its jobs as they meet them, it takes no more, and nothing follows it. What runs is left to end. Whoever
-- cancels it ends those that no claim will meet soon.
--
-- ARGV: now, name, dry (0/1: only ask what it would do)
-- role: operator
-- reply: JSON: {"was": "ended", "cancelled" (then nothing was changed), "paused" or "running", "left": its jobs that have not ended,
--        "aside": those of them that are, "unmet": true where it may have jobs of a type that no worker runs, "asleep", "rest": as
--        rate_wake has them}; no "was" when there is no such batch here
-- uses: arrival batch check ends reasons runs

local function is_unmet(name)
    local kinds = call('HGET', P .. 'batch:' .. name, 'types')
    for kind in (kinds or '*'):gmatch('(%S+) ?%d*') do
        if kind == '*' or not runs.is_run(kind) then return true end
    end
    return false
end

local function cancel(name)
    if not VIRTUAL then call('PERSIST', P .. 'batch:' .. name) end
    call('HSET', P .. 'batch:' .. name, 'cancel', us(now))
    call('HSET', P .. 'halted', 'b/' .. name, 'cancelled ' .. us(now))
    reasons.set('batch', name, '', nil)
    ends.seal(name)
end

local function batch_cancel(ARGV)
    local name, dry = ARGV[2], ARGV[3]
    if #ARGV ~= 3 or not is_name(name) or dry ~= '0' and dry ~= '1' then return refuse('batch_cancel: wants a name, 0 or 1') end
    local wrong = batch.wrong(name) or arrival.wrong_batch(name)
    if wrong then return check.refuse_key(wrong) end
    local b = batch.read(name)
    if not b then return answer{} end
    local was, asleep, rest = batch.state(name, b), {}, nil
    if dry == '0' and (was == 'running' or was == 'paused') then
        cancel(name)
        asleep, rest = batch.look_again(name)
    end
    return answer{was = was, left = b.left, aside = call('LLEN', P .. 'aside:' .. name), unmet = is_unmet(name), asleep = asleep, rest = rest}
end

return batch_cancel

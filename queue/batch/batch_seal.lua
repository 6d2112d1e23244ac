-- batch_seal: no more jobs come into a batch: it ends when all it has have ended, and at once when they have. What is to be enqueued
-- then is kept in the same step. Again, it changes nothing.
--
-- ARGV: now, name, create (0/1: one that is not there is begun, without jobs), queue, type (of the job that is to follow; '' and ''
--       when none is)
-- role: producer
-- reply: [ "ok", its jobs, those that have not ended ]; [ "none" ] when there is no such batch
--        an error that says so when it was sealed before with another job to follow, or cancelled, or that job lives on another partition
-- format: any
-- uses: arrival batch check ends partition

local function wrong_arguments(ARGV, follows)
    if #ARGV ~= 5 then return 'wants 5 arguments' end
    if not is_name(ARGV[2]) then return 'its name is not a valid name' end
    if ARGV[3] ~= '0' and ARGV[3] ~= '1' then return 'create must be 0 or 1' end
    if follows and not (is_name(ARGV[4]) and is_name(ARGV[5])) then return 'the queue and type to follow must be names' end
end

-- Why that job cannot follow any more; nil: it can, or is to.
local function wrong_follower(name, follows)
    local f = call('HMGET', P .. 'batch:' .. name, 'sealed', 'then', 'cancel')
    if not follows or not f[1] or f[2] == follows then return nil end
    if f[3] then return format('batch %s was cancelled: nothing follows it; use another name', name) end
    local kept = f[2] and 'for --then ' .. f[2]:match('%S+$') .. ' in queue ' .. f[2]:match('^%S+') or 'without --then'
    return format('batch %s was sealed %s: it stays so; leave --then out', name, kept)
end

-- Why it cannot follow a batch that is here; nil: it can.
local function wrong_home(name, kind)
    local home = partition.elsewhere(kind)
    return home and format('batch %s: lives on partition %d and type %s on %d, so it cannot follow; use one whose name is the same as that of ' ..
                               'the batch\'s types up to the first dot', name, partition.own(), kind, home)
end

local function batch_seal(ARGV)
    local name, create, queue, kind = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
    local follows = kind ~= '' and kind and queue .. ' ' .. kind or nil
    local wrong = wrong_arguments(ARGV, follows)
    if wrong then return refuse('batch_seal: %s', wrong) end
    wrong = arrival.wrong_batch(name) or follows and check.wrong_kind('queue:' .. queue, 'list')
    if wrong then return check.refuse_key(wrong) end
    wrong = wrong_follower(name, follows)
    if wrong then return refuse('%s', wrong) end

    local b = batch.read(name)
    if not b and create == '0' then return {'none'} end
    wrong = follows and wrong_home(name, kind)
    if wrong then return refuse('%s', wrong) end
    if not b then arrival.join(name, {}, 0, 0) end
    if follows then call('HSET', P .. 'batch:' .. name, 'then', follows) end
    if not (b and b.sealed) then ends.seal_new(name) end
    return {'ok', b and us(b.total) or '0', b and us(b.left) or '0'}
end

return batch_seal

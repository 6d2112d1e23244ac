-- batch: what its scripts share: a batch as a row, and what is looked at again once it is halted.
--
--   batches        zset: name -> created, us
--   halted         hash: "b/<batch>" -> "paused <us>" or "cancelled <us>": claim sets its jobs aside, or drops them
--
-- uses: check rates reasons types
local batch = {}

local FIELDS = {'total', 'done', 'dead', 'cancelled', 'failed', 'created', 'sealed', 'ended', 'then', 'fired', 'cancel',
                'mark_us', 'mark', 'last_us', 'last', 'types'}

-- Returns "paused", "cancelled" or '', and since when.
function batch.halted(name)
    local halted = call_safe('HGET', P .. 'halted', 'b/' .. name)
    return match(type(halted) == 'string' and halted or '', '^(%a*) ?(%d*)')
end

-- Describes its pause as reasons.pause does; nil: it is not paused.
function batch.pause(name)
    local halted, since = batch.halted(name)
    return halted == 'paused' and reasons.pause('batch', name, nil, since) or nil
end

-- What is known of it, {name =, halted =, since =, pause =, aside =, and its fields as they stand there}; nil: there is no such batch.
function batch.row(name)
    local f = call_safe('HMGET', P .. 'batch:' .. name, unpack(FIELDS))
    if not f[1] then return nil end
    local aside = call_safe('LLEN', P .. 'aside:' .. name)
    local row = {name = name, aside = type(aside) == 'number' and aside or 0}
    row.halted, row.since = batch.halted(name)
    row.pause = batch.pause(name)
    for i, field in ipairs(FIELDS) do row[field] = f[i] or nil end
    return row
end

-- Says in a word what a batch is that batch.read has read; nil: there is none.
function batch.state(name, b)
    if not b then return nil end
    if b.cancelled then return 'cancelled' end
    if b.sealed and b.left == 0 then return 'ended' end
    return batch.halted(name) == 'paused' and 'paused' or 'running'
end

-- What is wrong with the keys that halting and what follows write; nil: nothing.
function batch.wrong(name)
    return check.wrong_kind('batch:' .. name, 'hash') or check.wrong_kind('halted', 'hash')
        or check.wrong_kind('aside:' .. name, 'list') or reasons.wrong()
end

-- Returns {total =, left = (not ended), sealed =, cancelled =}; nil: there is no such batch.
function batch.read(name)
    local f = call('HMGET', P .. 'batch:' .. name, 'total', 'done', 'dead', 'cancelled', 'sealed', 'cancel')
    if not f[1] then return nil end
    local n = {}
    for i = 1, 4 do n[i] = tonumber(f[i] or 0) or 0 end
    return {total = n[1], left = max(0, n[1] - n[2] - n[3] - n[4]), sealed = f[5], cancelled = f[6]}
end

-- True when jobs of one of its types may differ in what they cost.
local function costs_differ(name)
    local f = call_safe('HMGET', P .. 'batch:' .. name, 'total', 'types')
    if f.err or f[1] == '0' then return false end -- it was begun by a pause
    for kind in (f[2] or '* 1'):gmatch('(%S+) %d+') do
        if kind == '*' or types.read(kind).own_costs then return true end
    end
end

-- Jobs of a batch are not to run now: those for whom gates are closed until later than for those behind them. Has the types that
-- wait looked at, here or as rates.wake has it. Returns what rates.look_on returns: lanes sleep that may be concerned.
function batch.look_again(name)
    rates.wake_at{'*'}
    if not costs_differ(name) then return {}, rates.rest() end
    return rates.look_on('0', '', {})
end

return batch

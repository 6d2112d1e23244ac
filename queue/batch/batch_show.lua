-- batch_show: one batch; changes nothing.
--
-- KEYS[1] prefix
-- ARGV: now, name
-- reply: [ now, row of batch.lua, [worker, ...] ]; [ now ] when there is no such batch
-- writes: nothing
-- uses: batch

local function batch_show(ARGV)
    local name = ARGV[2]
    if #ARGV ~= 2 or not is_name(name) then return refuse('batch_show: wants a name') end
    local row = batch.row(name)
    if not row then return {us(now)} end
    return {us(now), row, call('ZRANGE', P .. 'workers', '0', '-1')}
end

return batch_show

-- batch_show: one batch; changes nothing.
--
-- ARGV: now, name
-- role: viewer
-- reply: JSON: {"now": us, "batch": as batch.row has it, "workers": [id, ...]}; no "batch" when there is none of that name
-- writes: nothing
-- uses: batch

local function batch_show(ARGV)
    local name = ARGV[2]
    if #ARGV ~= 2 or not is_name(name) then return refuse('batch_show: wants a name') end
    return answer{now = us(now), batch = batch.row(name), workers = call('ZRANGE', P .. 'workers', '0', '-1')}
end

return batch_show

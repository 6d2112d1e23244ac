-- batch_running: how many jobs of a batch a worker has, one page of its leases; changes nothing.
--
-- ARGV: now, name, worker, cursor (where the last page ended; none at first)
-- role: viewer
-- reply: JSON: {"next": [cursor], unless that was the last page, "running": how many}
-- writes: nothing
-- uses: heads

local PAGE = '500' -- leases

local function batch_running(ARGV)
    local name, worker, cursor = ARGV[2], ARGV[3], ARGV[4] or '0'
    if #ARGV < 3 or #ARGV > 4 or not is_name(name) or not find(cursor, '^%d+$') then
        return refuse('batch_running: wants a name, a worker, and a cursor or none')
    end
    local page = call('HSCAN', P .. 'active:' .. worker, cursor, 'COUNT', PAGE)
    local leases, n = page[2], 0
    for i = 2, #leases, 2 do
        if heads.attr(heads.attrs_of(leases[i]), 'b') == name then n = n + 1 end
    end
    return answer{next = page[1] ~= '0' and {page[1]} or nil, running = n}
end

return batch_running

-- batch_running: how many jobs of a batch a worker has, one page of its leases; changes nothing.
--
-- KEYS[1] prefix
-- ARGV: now, name, worker, from ('' at first), most (leases of one page, 1 to 1000)
-- role: viewer
-- reply: JSON: {"next": from of the next page, '' at the end, "running": how many}
-- writes: nothing
-- uses: lease

local function batch_running(ARGV)
    local name, worker, from, most = ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
    if #ARGV ~= 5 or not (is_name(name) and is_whole(most, 1)) or most > 1000 then
        return refuse('batch_running: wants a name, a worker, from, most from 1 to 1000')
    end
    local page = call('HSCAN', P .. 'active:' .. worker, from == '' and '0' or from, 'COUNT', us(most))
    local leases, n = page[2], 0
    for i = 2, #leases, 2 do
        local head = match(leases[i], '^@([^;]*);')
        if head and lease.attr(head, 'b') == name then n = n + 1 end
    end
    return answer{next = page[1] ~= '0' and page[1] or '', running = n}
end

return batch_running

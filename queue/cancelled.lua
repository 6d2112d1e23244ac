-- cancelled: jobs end as cancelled, many at once: their batches count them, their unique locks are free, and their marks in the hash
-- `cancelled` are not needed any more. The counters of their types are the caller's. Jobs are moved in the same call, so nothing
-- here may fail.
--
-- uses: ends lease
local cancelled = {}

-- Adds what the end of an entry changes to batches, {name = n}, and ids.
local function end_one(entry, batches, ids)
    local _, _, _, body, attrs = lease.entry_read(entry)
    local batch = lease.attr(attrs, 'b')
    if batch then batches[batch] = (batches[batch] or 0) + 1 end
    if attrs ~= '' then ends.unlock(entry) end
    ids[#ids + 1] = lease.id(body)
end

function cancelled.finish(entries)
    local batches, ids = {}, {}
    for _, entry in ipairs(entries) do end_one(entry, batches, ids) end
    for name, n in pairs(batches) do ends.batch(name, 'cancelled', n) end
    for i = 1, #ids, 4000 do call_safe('HDEL', P .. 'cancelled', unpack(ids, i, min(i + 3999, #ids))) end
end

return cancelled

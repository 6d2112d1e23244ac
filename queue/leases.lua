-- leases: what a worker holds, a part at a time: it may be 65,536 jobs, and Redis serves nobody else meanwhile.
--
-- uses: lease
local leases = {}

leases.MOST = 1000 -- given back in one call, about: 20 ms

-- About most of what active:<id> holds, as lease.list, and how many more there are; 0: these are all. Of a worker that has more they
-- come in any order: by chance, as HSCAN from its beginning finds nothing where much has been taken already.
function leases.read(id, most)
    local active = P .. 'active:' .. id
    local count = call('HLEN', active)
    local whole = count <= most + 1 -- "@"
    local jobs, unread = lease.list(whole and call('HGETALL', active) or call('HRANDFIELD', active, us(most), 'WITHVALUES'))
    return jobs, unread, whole and 0 or max(1, count - 1 - #jobs - #unread)
end

-- These leave, lists as lease.list has them; a worker of which none is left is forgotten.
function leases.drop(id, left, ...)
    local active = P .. 'active:' .. id
    if left == 0 then
        call('ZREM', P .. 'workers', id)
        call('DEL', active)
        return
    end
    for _, jobs in ipairs({...}) do
        local tokens = {}
        for i, job in ipairs(jobs) do tokens[i] = job.token end
        push('HDEL', active, tokens)
    end
end

return leases

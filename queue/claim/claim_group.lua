-- claim_group: suspects that run together. Each says how many may at most (heads.together): half of those that ran as its worker died, so
-- the one that kills it is found in as many deaths as that can be halved. A group is as large as each of its jobs allows. One that must be alone
-- is so: nothing joins it, and its token says it.
--
-- uses: claim_call heads lease
local claim_group = {}

local claim = claim_call

-- Begins a group: all that this claim leases from now on belongs to it.
function claim_group.begin() claim.together = {size = 0, most = huge} end

-- Returns how many of `most` jobs of a list may join, from `first` on. Where the first one may not, the group is complete.
function claim_group.fit(jobs, first, most)
    local group, n, limit = claim.together, 0, claim.together.most
    while n < most do
        limit = min(limit, heads.together(jobs[first + n]) or 1)
        if group.size + n + 1 > limit then break end
        n = n + 1
    end
    if n == 0 then claim.free = 0 end
    return n
end

-- Counts n jobs as members of the group.
function claim_group.join(jobs, first, n)
    local group = claim.together
    for i = first, first + n - 1 do group.most = min(group.most, heads.together(jobs[i]) or 1) end
    group.size = group.size + n
end

-- Ends the group; returns how many jobs it has. Where they need not be alone, their tokens name their usual lanes, so a death of their worker
-- counts against none.
function claim_group.finish()
    local group, leases = claim.together, claim.leases
    claim.together = false
    for i = 1, group.most > 1 and #leases or 0, 2 do leases[i] = lease.usual_token(leases[i]) end
    return group.size
end

return claim_group

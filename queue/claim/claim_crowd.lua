-- claim_crowd: how many workers claim jobs in advance from this Redis, of all namespaces. Redis is shared among them, and each takes only
-- its part of what is in hand in all (worker/mind/room.c).
--
-- It is known from the claims of the last moment, and kept between calls: nothing is written, and after a restart it is known again in a
-- moment.
local claim_crowd = {}

local PERIOD_US = 200000 -- is longer than a round of many workers takes

local since, seen, count, before = 0, {}, 0, 0 -- who came in this period, and how many; how many came in the last one

local function next_period()
    before = now >= since and now < since + 2 * PERIOD_US and count or 0
    since, seen, count = now, {}, 0
end

-- Counts the workers that claim jobs in advance, this one among them if it does.
function claim_crowd.count(worker, prefetch)
    if now < since or now >= since + PERIOD_US then next_period() end
    if prefetch > 0 and not seen[worker] then seen[worker], count = true, count + 1 end
    return max(before, count)
end

return claim_crowd

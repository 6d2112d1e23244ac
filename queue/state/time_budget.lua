-- time_budget: how much a call may do that looks at whatever there is, counted and timed. A look is a command, or a name, an entry or a kilobyte that is
-- gone through: some 3 us. Where a machine is slow, or what is looked at is large, the clock ends the call before its looks are spent; where the clock
-- says nothing (passed_us of base), looks do.
--
--   time_budget.begin()       a call begins
--   time_budget.spend(n)      n looks are done
--   time_budget.is_spent()    the call should end
--   time_budget.left()        looks that are left
--   time_budget.is_late(us)   has the call taken so long? nil: as long as it should go on looking. It asks the clock, some 2 us: for a call that counts in its
--                        own way, once for every 20 looks or so, and behind the first thing that it does
--   time_budget.take(found, step, take, a, b, c)
--                        take(found[i], found[i + 1], a, b, c) for what a scan has found, each step values of it one thing, as far as the budget
--                        goes; returns the place of the first that was not taken, nil: all were. A scan may find more than it was asked for: all
--                        of a hash that is small enough to be packed, up to 512 fields and more
--   time_budget.rest(list, found, from)
--                        adds what stands in found from a place on to a list; returns it
local time_budget = {}

local LOOKS = 500     -- looks of a call: some 1.5 ms
local TIME_US = 2000  -- of a call
local AT_ONCE = 50    -- looks between two questions what the time is

local left, next_look -- next_look: the clock is asked again when so many looks are left

function time_budget.is_late(us) return passed_us() >= (us or TIME_US) end

function time_budget.begin() left, next_look = LOOKS, LOOKS - AT_ONCE end

function time_budget.spend(n)
    left = left - n
    if left > next_look then return end
    next_look = left - AT_ONCE
    if left > 0 and time_budget.is_late() then left = 0 end
end

function time_budget.is_spent() return left <= 0 end

function time_budget.left() return left end

function time_budget.take(found, step, take, a, b, c)
    for i = 1, #found, step do
        if left <= 0 then return i end
        take(found[i], found[i + 1], a, b, c)
    end
end

function time_budget.rest(list, found, from)
    for i = from, #found do list[#list + 1] = found[i] end
    return list
end

return time_budget

-- budget: how much a call may do that looks at whatever there is, counted, as time is not known before it has passed. A look is a command, or a
-- name, an entry or a kilobyte that is gone through: some 3 us.
--
--   budget.begin()       a call begins
--   budget.spend(n)      n looks are done
--   budget.is_spent()    the call should end
--   budget.left()        looks that are left
--   budget.take(found, step, take, a, b, c)
--                        take(found[i], found[i + 1], a, b, c) for what a scan has found, each step values of it one thing, as far as the budget
--                        goes; returns the place of the first that was not taken, nil: all were. A scan may find more than it was asked for: all
--                        of a hash that is small enough to be packed, up to 512 fields and more
--   budget.rest(list, found, from)
--                        adds what stands in found from a place on to a list; returns it
local budget = {}

local LOOKS = 500 -- of a call: some 1.5 ms

local left

function budget.begin() left = LOOKS end

function budget.spend(n) left = left - n end

function budget.is_spent() return left <= 0 end

function budget.left() return left end

function budget.take(found, step, take, a, b, c)
    for i = 1, #found, step do
        if left <= 0 then return i end
        take(found[i], found[i + 1], a, b, c)
    end
end

function budget.rest(list, found, from)
    for i = from, #found do list[#list + 1] = found[i] end
    return list
end

return budget

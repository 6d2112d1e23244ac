-- counters: what is counted of a type, in stats:<type>.

local counters = {}

-- Counts. It must not fail a script that moves jobs: where the counters are something else, nothing is counted.
function counters.add(name, what, n) return call_safe('HINCRBY', P .. 'stats:' .. name, what, n == 1 and '1' or digits(n)) end

-- Counts each of a list of {type =}, where it has one.
function counters.add_all(jobs, what)
    local counts = {}
    for _, job in ipairs(jobs) do
        if job.type then counts[job.type] = (counts[job.type] or 0) + 1 end
    end
    for name, n in pairs(counts) do counters.add(name, what, n) end
end

-- Returns a counter as a number; 0 where it is no whole number.
function counters.number(text)
    local n = text and find(text, '^-?[1-9]%d*$') and tonumber(text)
    return n and n > -2 ^ 53 and n < 2 ^ 53 and n or 0
end

return counters

-- concurrency: at most count jobs in flight, whatever they cost. It opens when one of them ends: gate.release().
--
-- Words: "n": jobs in flight, as many as there are leases whose token names the gate. gate.lua keeps the number over
-- a change of the rule. The functions are described in rules.lua.
-- uses: exact

local concurrency = {}

function concurrency.read(rule, numbers)
    rule.count = exact.burst(numbers:match('^[1-9]%d*$'))
    rule.burst, rule.in_flight = rule.count, true
    return rule.count ~= nil
end

-- Begins with what is in flight, which outlives a change of the rule.
function concurrency.fresh(g) g.flight = g.flight or 0 end

function concurrency.load(g, first, rest)
    g.flight = first
    return rest == ''
end

function concurrency.store(g) return format('%d', g.flight) end
function concurrency.back() end
function concurrency.start(g) return g.flight < g.rule.count and now or huge end
function concurrency.count(g, _, most) return max(0, min(most, g.rule.count - g.flight)) end
function concurrency.take(g, _, k) g.flight = g.flight + k end
function concurrency.charge() end
function concurrency.give() end
function concurrency.used(g) return g.flight, now end
function concurrency.fill() end
function concurrency.resets(g) return g.flight > 0 and huge or 0 end

return concurrency

-- take_wait: a slot for a caller who waits for it. Callers who wait for the same limit and key stand in line, in the order of coming.
--
-- ARGV: now, what it does: "wait", "ask" (it waits, and does not listen to its bell: it is told the soonest time) or "leave" (it does not
--       wait any more), rules (as in take), limit, key ('' for none), cost, place ('' at first, then as it was answered), tag (letters and
--       digits, of the caller's own), most (how long it may wait yet, us; -1: as long as it takes)
-- role: taker
-- reply: leave: [ 1 ]; wait: the five elements of take, but that of one who is allowed retry_after_us is when its slot starts, then
--        now, place ('': denied, and not in line: the slot comes later than it may wait), bell (a list to which a time is pushed
--        when its slot comes sooner than it was told)
--
-- Errors: WEIR take_wait: wants ..., wrong name of a limit or key, wrong cost, wrong rule, wrong place.
-- format: any
-- uses: caller

local function take_wait(ARGV)
    if #ARGV ~= 9 then return refuse('take_wait: wants now, wait, ask or leave, rules, limit, key, cost, place, tag, most') end
    return caller.ask('take_wait', ARGV)
end

return take_wait

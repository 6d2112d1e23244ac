-- claim_dues: what the answer says of each queue that was served, for a worker that serves several and chooses which ones its claims serve
-- (worker/mind/wide.c):
--
--   <queue> <when> <what> [<gate> <when> <opens>]...
--
-- Something is due in the queue at the first time, and whenever it waits for one of these gates and that opens. The gate's own times: for what
-- waits there in this queue; and for whoever waits there and costs least, in any queue. -1: never, as far as is known; 1: at once; 0: not known.
-- A queue of which only a 0 is said is one that the claim did not come to. What waits there: n nothing, g types at gates, k keys that sleep, too,
-- w the same and much else.
--
-- Many queues may wait at one gate. It is enough that one of them is served when it opens. A gate of concurrency opens at no time: whoever makes
-- room there rings for queues by their names, and a queue that is due there already, as the claim had no time left for it, is so by itself.
--
-- uses: claim_call gate
local claim_dues = {}

local claim = claim_call

local GATES_MOST = 4 -- gates that are told of a queue; what waits at further ones is due by itself
local KEYS_WITH = 8  -- gates beside which keys that sleep are asked for, as a union reads them

local function text(at) return at < huge and us(max(at, 1)) or '-1' end

-- Returns when to claim for what opens then.
local function look_time(name, opens) return opens <= now + claim.ahead_of(name) and 1 or gate.check_time(name, opens) end

local function of_queue(queue)
    if claim.missed[queue] then return queue .. ' 0' end
    local due, what, gates, n, all = claim.unread[queue] and 1 or huge, 'n', '', 0, 0
    for name, opens in pairs(claim.wakes[queue]) do
        local at, first = look_time(name, opens), gate.opens(name)
        what, all = (name == '*' or what == 'k') and 'k' or 'g', all + 1
        if n < GATES_MOST and find(name, '#', 1, true) and first ~= huge then
            gates = gates .. ' ' .. name .. ' ' .. text(at) .. ' ' .. (first and text(look_time(name, first)) or '0')
            n = n + 1
        else
            due = min(due, at)
        end
    end
    if what == 'k' and all > KEYS_WITH then what = 'w' end
    return queue .. ' ' .. text(due) .. ' ' .. what .. gates
end

-- Returns the list; nil while jobs are to run alone: then what the answer says of all queues holds for each.
function claim_dues.list()
    if not claim.has_option('t') or claim.suspects then return nil end
    local list = {}
    for i, queue in ipairs(claim.queues) do list[i] = of_queue(queue) end
    return list
end

return claim_dues

-- claim_call: the arguments of claim, and what is decided while it runs. The other parts find all of it here.
--
-- uses: gate slices
local claim_call = {}

local BUDGET = 500              -- jobs and waiters looked at in one claim: 2 ms, well within the 5 ms that slots are granted ahead

claim_call.LANE = 8             -- of it, for a lane of a key: its list and its gates are read
local ROOM_MOST = 2000          -- of free and of prefetch: a turn has 4096 tokens
local WAKE_MOST = 64            -- lanes that wake in one claim, beyond twice those that could start

claim_call.TO_SERVE = 200       -- of it, kept from lanes that wake for those that start
claim_call.AHEAD = gate.AHEAD

local function read_names(ARGV, c, n)
    c.queues, c.mine, c.known = {}, {}, {}
    c.all_queues = c.queues -- those that are paused too
    for i = 11, 10 + n do
        if not is_name(ARGV[i]) or c.known[ARGV[i]] then return 'claim: a queue is no name, or named twice' end
        c.known[ARGV[i]] = true
        c.queues[#c.queues + 1] = ARGV[i]
    end
    for i = 11 + n, #ARGV do c.mine[ARGV[i]] = true end
end

local function read_numbers(ARGV, c)
    c.turn, c.free, c.prefetch, c.look = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
    c.duty_until = tonumber(ARGV[8])
    local n = tonumber(ARGV[10])
    if not (is_whole(c.turn) and is_whole(c.duty_until) and is_whole(n)) then return 'claim: wrong arguments' end
    if n < 1 or #ARGV < 10 + n then return 'claim: wants n queues and the types' end
    if not (is_whole(c.free) and is_whole(c.prefetch) and is_whole(c.look, 1)) or c.look > 1000 then
        return 'claim: free, prefetch or look out of range'
    end
    return read_names(ARGV, c, n)
end

-- Reads the arguments; returns what is wrong with them.
function claim_call.begin(ARGV)
    local c = claim_call
    c.worker, c.group, c.options = ARGV[2], ARGV[3], ARGV[9]
    local wrong = read_numbers(ARGV, c)
    if wrong then return wrong end
    -- One command for two questions: a key that is named three times counts three times.
    local active = P .. 'active:' .. c.worker
    local found = call('EXISTS', active, active, active, P .. 'halted', P .. 'cancelled')
    if found < 3 then return 'unregistered: worker ' .. c.worker end
    c.halts = found > 3 -- something is paused or cancelled; see claim_halt
    c.free, c.prefetch = min(c.free, ROOM_MOST), min(c.prefetch, ROOM_MOST)
    c.waking = 2 * c.free + WAKE_MOST
    -- What was decided, written by claim_commit.
    c.dead, c.started, c.rules, c.aside, c.broken = {}, {}, {}, {}, {} -- started: entries whose lock ends with that
    c.reserved = c.has_option('r')
    c.starved, c.kept = false, 0 -- kept: executors that are not in free, but left for the queue
    c.load, c.budget, c.tick, c.soonest, c.named = slices.load(nil, true, c.look), BUDGET, now, huge, 0
    c.wakes = {} -- of each queue: gate -> opening time, as far as they were read or written
    for _, queue in ipairs(c.queues) do c.wakes[queue] = {} end
end

-- The order of service: each call is later than all before.
function claim_call.next_ticket()
    claim_call.tick = claim_call.tick + 1
    return claim_call.tick
end

function claim_call.has_option(letter) return find(claim_call.options, letter, 1, true) ~= nil end

return claim_call

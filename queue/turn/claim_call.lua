-- claim_call: the arguments of claim, and what is decided while it runs. The other parts find all of it here.
--
-- uses: gate slices
local claim_call = {}

local BUDGET = 500              -- jobs and waiters looked at in one claim: 2 ms, well within the 5 ms that slots are granted ahead

claim_call.TYPE = 8             -- of it, for a type that is met: what holds it is read, and its counters are written
claim_call.LANE = 6             -- the same for a lane of a key: its list,
claim_call.KEY_GATE = 2         -- and each of its gates
claim_call.KEYS = 8             -- the same for so many keys that are asked for, a few in one command
local ROOM_MOST = 2000          -- of free and of prefetch: a turn has 4096 tokens
local WAKE_MOST = 64            -- lanes that wake in one claim, beyond twice those that could start

claim_call.TO_SERVE = 200       -- of it, kept from lanes that wake for those that start
local NEAR = gate.AHEAD         -- how far ahead slots are granted to a worker that is near

claim_call.AGAIN_US = gate.AHEAD_MOST + 1000000 -- what a fault closes is looked at again after that; no slot is granted so far ahead

local function read_names(ARGV, c, n)
    c.queues, c.mine, c.known, c.types = {}, {}, {}, {}
    c.all_queues = c.queues -- those that are paused too
    for i = 13, 12 + n do
        if not is_name(ARGV[i]) or c.known[ARGV[i]] then return 'claim: a queue is no name, or named twice' end
        c.known[ARGV[i]] = true
        c.queues[#c.queues + 1] = ARGV[i]
    end
    for i = 13 + n, #ARGV do
        c.mine[ARGV[i]] = true
        c.types[i - 12 - n] = ARGV[i]
    end
end

local function read_numbers(ARGV, c)
    c.turn, c.free, c.prefetch, c.look = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
    c.duty_until, c.ahead, c.far = tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10])
    c.look_at = -1
    local n = tonumber(ARGV[12])
    if not (is_whole(c.turn) and is_whole(c.duty_until) and is_whole(n)) then return 'claim: wrong arguments' end
    if not (is_whole(c.ahead) and is_whole(c.far)) or c.ahead > gate.AHEAD_MOST then return 'claim: ahead or far out of range' end
    if n < (c.has_option('w') and 0 or 1) or #ARGV < 12 + n then return 'claim: wants n queues and the types' end
    if not (is_whole(c.free) and is_whole(c.prefetch) and is_whole(c.look, 1)) or c.look > 1000 then
        return 'claim: free, prefetch or look out of range'
    end
    return read_names(ARGV, c, n)
end

-- A key holds something else than it should: that is answered. nil: it has gone meanwhile.
function claim_call.note_fault(text)
    if not text or claim_call.is_noted[text] then return end
    claim_call.is_noted[text] = true
    claim_call.faults[#claim_call.faults + 1] = text
end

-- Reads the arguments; returns what is wrong with them.
function claim_call.begin(ARGV)
    local c = claim_call
    c.worker, c.group, c.options = ARGV[2], ARGV[3], ARGV[11]
    local wrong = read_numbers(ARGV, c)
    if wrong then return wrong end
    -- One command for three questions: a key that is named three times counts three times.
    local active, alone = P .. 'active:' .. c.worker, P .. 'alone'
    local found = call('EXISTS', active, active, active, active, active, active, alone, alone, alone, P .. 'halted', P .. 'cancelled')
    if found < 6 then return 'unregistered: worker ' .. c.worker end
    c.halts = found % 3 > 0 -- something is paused or cancelled; see claim_halt
    c.suspects = found > 8  -- jobs are to run alone; see claim_alone
    c.serves_alone = false  -- one was looked for
    c.keeps = false         -- gates that are closed are kept for who waits there
    c.free, c.prefetch = min(c.free, ROOM_MOST), min(c.prefetch, ROOM_MOST)
    c.waking = 2 * c.free + WAKE_MOST
    -- What was decided, written by claim_commit.
    c.dead, c.started, c.rules, c.aside, c.broken = {}, {}, {}, {}, {} -- started: entries whose lock ends with that
    c.put_off, c.faults, c.is_noted, c.woken = {}, {}, {}, {} -- put_off: jobs for `later`; woken: queue -> gates of keys
    c.reserved = c.has_option('r')
    c.starved, c.kept = false, 0 -- kept: executors that are not in free, but left for the queue
    c.load, c.budget, c.tick, c.soonest, c.named = slices.load(nil, true, c.look), BUDGET + c.TYPE, now, huge, 0
    c.is_far = c.ahead > NEAR
    c.ahead = c.far > 0 and max(c.ahead, NEAR) or NEAR
    c.ahead_at_first, c.near = c.ahead, {} -- near: gates whose slots were not granted farther ahead than for a worker that is near
    c.held_taken = 0 -- held types that were taken back
    c.sleepers, c.crowded = nil, nil -- see claim_wait.sleepers
    c.wakes = {} -- of each queue: gate -> opening time, as far as they were read or written
    for _, queue in ipairs(c.queues) do c.wakes[queue] = {} end
end

-- Until when slots of a type may be granted. What counts in flight is not held by a job that waits for its start.
function claim_call.till(s) return now + (s.kind.in_flight and NEAR or claim_call.ahead) end

-- A job starts then: one of the few that may wait long for it?
function claim_call.count_far(start)
    local c = claim_call
    if start <= now + NEAR then return end
    c.far = c.far - 1
    if c.far < 1 then c.ahead = NEAR end
end

-- May no further job wait long for its start, of a worker that is far away?
function claim_call.lacks_far() return claim_call.is_far and claim_call.far < 1 end

-- A gate was looked at, and opens then.
function claim_call.note_near(name, opens)
    local c = claim_call
    if opens > now + NEAR and opens <= now + c.ahead_at_first then c.near[name] = true end
end

-- How far ahead slots of that gate are granted.
function claim_call.ahead_of(name) return claim_call.near[name] and NEAR or claim_call.ahead_at_first end

-- The order of service: each call is later than all before.
function claim_call.next_ticket()
    claim_call.tick = claim_call.tick + 1
    return claim_call.tick
end

function claim_call.has_option(letter) return find(claim_call.options, letter, 1, true) ~= nil end

return claim_call

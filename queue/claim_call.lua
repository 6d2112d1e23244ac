-- claim_call: the arguments of claim, and what is decided while it runs.

local BUDGET = 500              -- jobs looked at in one claim: 2 ms, well within the 5 ms that slots are granted ahead
local BYTES = 8 * 1024 * 1024  -- of bodies read in one claim
local ROOM_MOST = 2000         -- of free and of prefetch: a turn has 4096 tokens

local worker, group, turn = ARGV[2], ARGV[3], tonumber(ARGV[4])
local free, prefetch, look = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local duty_until, options = tonumber(ARGV[8]), ARGV[9]
local queues, mine = {}, {}

local function read_arguments()
    local n, seen = tonumber(ARGV[10]), {}
    if not (is_whole(turn) and is_whole(duty_until) and is_whole(n)) then return 'claim: wrong arguments' end
    if n < 1 or #ARGV < 10 + n then return 'claim: wants n queues and the types' end
    if not (is_whole(free) and is_whole(prefetch) and is_whole(look, 1)) or look > 1000 then
        return 'claim: free, prefetch or look out of range'
    end
    for i = 11, 10 + n do
        if not is_name(ARGV[i]) or seen[ARGV[i]] then return 'claim: a queue is no name, or named twice' end
        seen[ARGV[i]] = true
        queues[#queues + 1] = ARGV[i]
    end
    for i = 11 + n, #ARGV do mine[ARGV[i]] = true end
    if call('HEXISTS', P .. 'active:' .. worker, '@') == 0 then return 'unregistered: worker ' .. worker end
end

local wrong = read_arguments()
if wrong then return refuse('%s', wrong) end
free, prefetch = min(free, ROOM_MOST), min(prefetch, ROOM_MOST)

-- What was decided, written by commit(). leases: token, entry, token, entry ...
local leases, dead, rules, aside, broken = {}, {}, {}, {}, {}
local index, bytes, budget, more = 0, 0, BUDGET, 0

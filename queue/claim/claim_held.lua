-- claim_held: types that this worker cannot run. A type is held as a whole, until a worker claims that can run it.
--
--   held:<queue>  sorted set: type -> ticket
--
-- uses: bell claim_call claim_causes claim_ring lane runs
local claim_held = {}

local claim, ring = claim_call, claim_ring

-- Lets s wait for a worker that can run it.
function claim_held.add(s, ticket)
    s.gone = false
    if not runs.is_run(s.name) then claim.held[#claim.held + 1] = s.name end
    if call('ZADD', P .. 'held:' .. s.queue, us(ticket), s.name) ~= 1 then return end
    bell.ring(s.queue)
    if claim.is_resting(s.name) then bell.ring_spare(claim.group) end -- it only rests here: others of the group may run it
end

-- Takes a held type back, now that this worker can run it.
local function take_back(queue, name, ticket)
    lane.type_is_due(queue, name, ticket)
    claim_causes.take_back(name)
    call('ZREM', P .. 'held:' .. queue, name)
end

-- Takes back the type of a job that has come, if it was held.
function claim_held.take_back(s)
    local ticket = ring.members(s) > 0 and call('ZSCORE', P .. 'held:' .. s.queue, s.name)
    if ticket then take_back(s.queue, s.name, tonumber(ticket)) end
end

-- ---- All of them

local ASKED_MOST = 10000 -- names that one claim asks for: 3 ms
local TAKEN_MOST = 500   -- types that one claim takes back: 2 ms
local PAGE = 1000        -- names in one question

-- Returns names among which are all types that are held in a queue and that this worker runs: {list =, first =, count =, all =}. They are `count`
-- of the list, from `first` on and then from its beginning. all: these are all; where they are too many, each call returns others.
local function names_to_ask(key)
    local most, count = floor(ASKED_MOST / #claim.all_queues), call('ZCARD', key)
    local names = claim.mine.names
    if count == 0 then return {list = names, first = 0, count = 0, all = true} end
    if count < #names or claim.mine.patterns[1] then
        local first = count > most and now % (count - most) or 0
        names = call('ZRANGE', key, us(first), us(first + most - 1))
        return {list = names, first = 0, count = #names, all = #names == count}
    end
    if #names > most then return {list = names, first = now % #names, count = most, all = false} end
    return {list = names, first = 0, count = #names, all = true}
end

-- Finds types that are held in a queue and that this worker runs, {name =, ticket =} each, at most `most`; and whether these are all.
local function find_mine(queue, most)
    local key, found = P .. 'held:' .. queue, {}
    local names = names_to_ask(key)
    for i = 0, names.count - 1, PAGE do
        local page = {}
        for k = i, min(i + PAGE, names.count) - 1 do page[#page + 1] = names.list[(names.first + k) % #names.list + 1] end
        for k, ticket in ipairs(call('ZMSCORE', key, unpack(page))) do
            if ticket and claim.can_run(page[k]) then
                if #found >= most then return found, false end
                found[#found + 1] = {name = page[k], ticket = tonumber(ticket)}
            end
        end
    end
    return found, names.all
end

-- True when a held type is one that this worker runs.
function claim_held.is_any_mine(queue) return #find_mine(queue, 1) > 0 end

-- Takes back all held types that this worker runs; returns whether there was one. What is too much for one claim is left to the next one with
-- option h.
function claim_held.take_back_all(queue)
    local mine, all = find_mine(queue, TAKEN_MOST - claim.held_taken)
    for _, held in ipairs(mine) do take_back(queue, held.name, held.ticket) end
    claim.held_taken = claim.held_taken + #mine
    if not all and claim.held_taken > 0 then bell.ring(queue) end
    return #mine > 0
end

local UNKNOWN_MOST = 64 -- held types that one claim asks for, by chance

-- Takes back types that no worker runs, so that their jobs end.
function claim_held.take_back_unknown(queue)
    for _, name in ipairs(call('ZRANDMEMBER', P .. 'held:' .. queue, digits(ceil(UNKNOWN_MOST / #claim.all_queues)))) do
        if not claim.can_run(name) and runs.is_unknown(name) then
            take_back(queue, name, tonumber(call('ZSCORE', P .. 'held:' .. queue, name)))
        end
    end
end

return claim_held

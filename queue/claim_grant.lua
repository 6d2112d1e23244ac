-- claim_grant: the types that a claim meets, with their gates, and leasing one job.

-- Tokens of this turn: its number and two digits of base 64, in ASCII order. Formatting a number would take longer than all the
-- rest of a grant.
local ALPHABET = '-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz'
local find, sub = string.find, string.sub
local high, low, token_head = 0, 64, nil
local function next_token(tail)
    if low == 64 then
        high, low = high + 1, 0
        token_head = us(turn) .. '.' .. sub(ALPHABET, high, high)
    end
    low = low + 1
    return token_head .. sub(ALPHABET, low, low) .. tail
end

local CLOSED = {} -- the gate of a limit whose rule cannot be read: nothing starts, the type is reported
local gates, rule_of = {}, {}
local states, order = {}, {} -- states[queue][type]

local function gate_of(name)
    if gates[name] == nil then
        local rule = call('HGET', P .. 'limits', name)
        gates[name] = rule and (gate_load(name .. '#0', rule) or CLOSED)
        rule_of[name] = rule
        if gates[name] == CLOSED then broken[#broken + 1] = name end
    end
    return gates[name]
end

-- One type in one queue, as this claim sees it.
local function state_of(queue, name)
    local s = states[queue][name]
    if not s then
        local lane = queue .. '/' .. name .. '/'
        s = {queue = queue, name = name, lane = lane, tail = '/' .. lane, gate = gate_of(name),
             taken = 0, parked = {}, pulled = 0, left = nil, woken = nil, direct = nil}
        states[queue][name] = s
        order[#order + 1] = s
    end
    return s
end

local function lane_is_empty(s)
    if s.left == nil then s.left = call('LLEN', P .. 'lane:' .. s.lane) > 0 end
    return not s.left and #s.parked == 0
end

local function opening(s)
    if s.gate == CLOSED then return math.huge end
    return s.gate and gate_start(s.gate, 1) or now
end

-- How many jobs of s could be leased, whatever its gate says.
local function room_of(s) return s.gate and free or free + prefetch end

local function lease(token, entry)
    index = index + 2
    leases[index - 1], leases[index] = token, entry
    bytes = bytes + #entry
end

-- Leases a job without a limit; unsafe: it must have an executor of its own.
local function lease_free(s, entry, unsafe)
    lease(next_token(s.tail), entry)
    if prefetch > 0 and not unsafe then prefetch = prefetch - 1 else free = free - 1 end
end

-- Leases a job whose slot was taken at its gate.
local function lease_slot(s, entry, start)
    if start ~= s.slot then s.slot, s.slot_tail = start, '@' .. us(start) .. s.tail end
    lease(next_token(s.slot_tail), entry)
    free = free - 1
end

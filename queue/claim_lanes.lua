-- claim_lanes: serving the types that are due from their lanes.

local DUE_MOST = 64            -- types looked at in wake

-- The start times of up to n jobs of s that are granted now, at most a little ahead; their slots are taken.
local function take_slots(s, n)
    local starts = {}
    while #starts < n do
        local start = gate_start(s.gate, 1)
        if start > now + AHEAD then break end
        gate_take(s.gate, start, 1, 1)
        starts[#starts + 1] = start
    end
    return starts
end

-- Up to n jobs of the lane from where this claim has come to, and how many; one more is read: is anything left?
local function read_lane(s, n)
    local entries = call('LRANGE', P .. 'lane:' .. s.lane, s.taken, s.taken + n)
    s.left = #entries > n
    return entries, min(n, #entries)
end

local function serve_slots(s, n)
    local tat_us, tat_rem = gate_mark(s.gate)
    local starts = take_slots(s, n)
    if #starts == 0 then return end
    local entries, k = read_lane(s, #starts)
    if k < #starts then
        gate_reset(s.gate, tat_us, tat_rem)
        take_slots(s, k)
    end
    for i = 1, k do lease_slot(s, entries[i], starts[i]) end
    s.taken = s.taken + k
end

local function serve_free(s, n)
    local entries, k = read_lane(s, n)
    for i = 1, k do
        -- A job that was running when its worker died is not prefetched: those leased beside it would share its blame.
        local _, interrupted = entry_read(entries[i])
        if interrupted > 0 and free < 1 then
            s.left = true
            return
        end
        lease_free(s, entries[i], interrupted > 0)
        s.taken = s.taken + 1
    end
end

-- Grants up to `most` jobs from the head of the lane.
local function serve(s, most)
    local n = min(most, room_of(s), look)
    if n < 1 or bytes > BYTES or s.gate == CLOSED then return end
    if s.gate then serve_slots(s, n) else serve_free(s, n) end
end

-- The types in wake, soonest first: {state, ...} of those that are due, and the time at which the next one is.
local function due_types(queue)
    local wake = call('ZRANGE', P .. 'wake:' .. queue, 0, DUE_MOST - 1, 'WITHSCORES')
    local due = {}
    for i = 1, #wake, 2 do
        local at = tonumber(wake[i + 1])
        if at > now + AHEAD then return due, at end
        local s = state_of(queue, wake[i])
        s.left, s.woken = true, at
        due[#due + 1] = s
    end
    if #due == DUE_MOST then more = 1 end
    return due, math.huge
end

local function serve_due(due)
    local share = max(1, ceil((free + prefetch) / max(1, #due)))
    for _, most in ipairs({share, math.huge}) do
        for _, s in ipairs(due) do
            if s.left and mine[s.name] then serve(s, most) end
        end
    end
end

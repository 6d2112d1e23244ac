-- claim_faults: keys of a wrong kind. A claim that meets one begins again without what needs it, so that it
-- stops nothing else; its name is answered. A key that should be a gate only closes that gate: see claim_meet.
--
--   of a queue  neither it nor its lanes are served
--   of a type   its jobs leave the queue for `later` and come again after a while; in its lanes they stay
--   of a lane   the same
--
-- uses: check claim_call
local claim_faults = {}

local claim = claim_call

local KNOWN_MOST = 64 -- remembered from call to call, so that claims need not begin anew each time

local known, known_count = {}, 0 -- key with its prefix -> the kind it should be
local wrong                      -- in this call: key -> what is wrong with it

local function forget() wrong = nil end

claim_faults.any = false -- is there any?

local function add(key, kind)
    local text = not wrong[key] and check.wrong_kind(key, kind)
    if not text then return false end
    wrong[key], claim_faults.any = text, true
    claim.note_fault(text)
    if not known[P .. key] and known_count < KNOWN_MOST then
        known[P .. key], known_count = kind, known_count + 1
    end
    return true
end

local function add_known()
    for key, kind in pairs(known) do
        if sub(key, 1, #P) == P and not add(sub(key, #P + 1), kind) then
            known[key], known_count = nil, known_count - 1
        end
    end
end

-- The claim begins, or begins anew, with what it has found so far.
function claim_faults.begin()
    if wrong then
        for _, text in pairs(wrong) do claim.note_fault(text) end
        return
    end
    wrong, claim_faults.any = {}, false
    at_next_call(forget)
    if known_count > 0 then add_known() end
end

-- ---- What has made a claim fail

local QUEUE_KEYS = {'queue:%s', 'list', 'wake:%s', 'zset', 'sleep:%s', 'zset', 'held:%s', 'zset', 'wait:%s/-', 'zset'}

local function add_waits(queue, names)
    local found = false
    for name in pairs(names or claim.NONE) do found = add('wait:' .. queue .. '/' .. name, 'zset') or found end
    return found
end

local function add_of_queue(queue)
    local found = false
    for i = 1, #QUEUE_KEYS, 2 do found = add(format(QUEUE_KEYS[i], queue), QUEUE_KEYS[i + 1]) or found end
    return found
end

local function add_gates(queue, gates)
    local found = false
    for _, e in ipairs(gates) do found = add('wait:' .. queue .. '/' .. e.name, 'zset') or found end
    return found
end

-- Looks at the keys of all that the claim has met; returns whether there is a fault that it did not know.
function claim_faults.find()
    local found = false
    for _, queue in ipairs(claim.queues) do found = add_of_queue(queue) or found end
    for queue, names in pairs(claim.wakes) do found = add_waits(queue, names) or found end
    for queue, names in pairs(claim.woken) do found = add_waits(queue, names) or found end
    for _, s in ipairs(claim.order) do
        found = add('ring:' .. s.queue .. '/' .. s.name, 'zset') or found
        found = add_gates(s.queue, s.gates) or found
    end
    for _, l in ipairs(claim.lanes) do
        found = add('lane:' .. l.name, 'list') or found
        found = add_gates(l.s.queue, l.gates) or found
    end
    return found
end

-- What is wrong with a key that all types need; nil: nothing.
function claim_faults.of_all()
    return check.wrong_kind('types', 'hash') or check.wrong_kind('limits', 'hash') or check.wrong_kind('workers', 'zset')
        or check.wrong_kind('active:' .. claim.worker, 'hash')
end

-- ---- What needs them

function claim_faults.of_queue(queue)
    for i = 1, #QUEUE_KEYS, 2 do
        if wrong[format(QUEUE_KEYS[i], queue)] then return true end
    end
    return false
end

-- The same of one that is asked for now.
function claim_faults.stops_queue(queue)
    add_of_queue(queue)
    return claim_faults.of_queue(queue)
end

function claim_faults.of_wait(queue, gate_name) return wrong['wait:' .. queue .. '/' .. gate_name] end

local function of_gates(queue, gates)
    for _, e in ipairs(gates) do
        if claim_faults.of_wait(queue, e.name) then return true end
    end
    return false
end

function claim_faults.of_type(s) return wrong['ring:' .. s.queue .. '/' .. s.name] and true or of_gates(s.queue, s.gates) end

function claim_faults.of_lane(l) return wrong['lane:' .. l.name] and true or of_gates(l.s.queue, l.gates) end

return claim_faults

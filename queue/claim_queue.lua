-- claim_queue: looking at the jobs of a queue.

local BODY_MAX = 1024 * 1024   -- JOB_BODY_MAX of queue/job.h

-- The type of a job as Weir's producers write it, id and type first; nil when it is written otherwise. An odd job that this
-- misreads is found by the worker, which reads the whole. Mostly it is the type of the job before.
local last_name, last_text = nil, '?'
local function quick_type(body)
    local quote = sub(body, 1, 7) == '{"id":"' and find(body, '"', 8, true)
    if not quote then return nil end
    if sub(body, quote, quote + #last_text - 1) == last_text then return last_name end
    if sub(body, quote, quote + 9) ~= '","type":"' then return nil end
    local name = sub(body, quote + 10, (find(body, '"', quote + 10, true) or 0) - 1)
    if not (mine[name] or #name <= 128 and find(name, '^[%w_.-]+$')) then return nil end
    last_name, last_text = name, '","type":"' .. name .. '"'
    return name
end

-- The type of a job and its body, with an id if it had none; or nil and what is wrong with it.
local function read_job(body)
    if #body > BODY_MAX then return nil, string.format('larger than %d bytes', BODY_MAX) end
    local name = quick_type(body)
    if name then return name, body end
    local ok, job = pcall(cjson.decode, body)
    if not ok then return nil, 'no JSON: ' .. tostring(job) end
    if type(job) ~= 'table' or not find(body, '^%s*{') then return nil, 'no JSON object' end
    name = job.type
    if type(name) ~= 'string' or #name > 128 or not find(name, '^[%w_.-]+$') then
        return nil, 'its type is missing or no name'
    end
    if job.id == nil then
        body = string.format('{"id":"%s.%d.%d",', worker, turn, BUDGET - budget) .. body:match('^%s*{(.*)$')
    end
    return name, body
end

local function bury_unknown(s, body)
    dead[#dead + 1] = {name = s.name, lane = s.lane, reason = 'this worker has no handler for its type', entry = body}
end

-- What becomes of one job at the head of a queue. False: it stays there until an executor is free for it.
local function place(queue, body)
    local name, text = read_job(body)
    if not name then
        dead[#dead + 1] = {lane = queue .. '//', reason = 'unreadable: ' .. text, entry = body}
        return true
    end
    local s = states[queue][name] or state_of(queue, name)
    if s.direct == nil then s.direct = mine[name] and not s.gate and lane_is_empty(s) or false end
    if s.direct then
        lease_free(s, text)
        s.pulled = s.pulled + 1
        return true
    end
    if not mine[name] and options:find('d', 1, true) then
        bury_unknown(s, text)
        return true
    end
    if mine[name] and s.gate and lane_is_empty(s) then
        local start = opening(s)
        if start <= now + AHEAD then
            if free < 1 then return false end
            gate_take(s.gate, start, 1, 1)
            lease_slot(s, text, start)
            s.pulled = s.pulled + 1
            return true
        end
    end
    s.parked[#s.parked + 1] = text
    bytes = bytes + #text
    return true
end

-- Looks at jobs from the head of the queue while there is room; returns how many leave it.
local function read_queue(queue, jobs)
    local used, chunk = 0, look
    while true do
        local room = free + prefetch
        for i, body in ipairs(jobs) do
            if free + prefetch < 1 or budget < 1 or bytes > BYTES or not place(queue, body) then
                more = 1
                return used + i - 1
            end
            budget = budget - 1
        end
        used = used + #jobs
        if #jobs < chunk then return used end
        if free + prefetch < 1 or budget < 1 then
            more = 1
            return used
        end
        chunk = min(1000, budget, max(free + prefetch, free + prefetch == room and chunk * 2 or 16))
        jobs = call('LRANGE', P .. 'queue:' .. queue, used, used + chunk - 1)
    end
end

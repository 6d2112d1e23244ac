-- lease: what a job looks like on its way: entries in lanes and leases, tokens of leases, records in later and dead.
--
--   entry  = body | "@" attempts "," interrupted "," throttled ";" body      once there is something to remember
--   lane   = queue "/" type "/" key                                          key is empty for a type without keys
--   token  = turn "." index [ "@" slot ] "/" lane                            unique for one worker instance
--   record = header "\n" entry                                               the header makes equal entries differ
--            later: "q " tag " " queue " " type  a scheduled job, for its queue
--                   "l " tag " " lane          a retried job, for the head of its lane
--            dead:  tag " " lane " " reason

local function entry_read(entry)
    local attempts, interrupted, throttled, at = entry:match('^@(%d+),(%d+),(%d+);()')
    if not at then return 0, 0, 0, entry end
    return tonumber(attempts), tonumber(interrupted), tonumber(throttled), entry:sub(at)
end

local function entry_write(attempts, interrupted, throttled, body)
    return string.format('@%d,%d,%d;', attempts, interrupted, throttled) .. body
end

local function lane_of(token) return token:match('^%d+%.[%w_-]+@?%d*/([%w_.-]+/[%w_.-]+/[%w_.-]*)$') end

local function lane_parts(lane) return lane:match('^([^/]+)/([^/]+)/(.*)$') end

-- What active:<worker> holds: the leases, and the {token =, entry =} pairs whose token cannot be read.
local function leases_read(fields)
    local leases, unread = {}, {}
    for i = 1, #fields, 2 do
        local lease = {token = fields[i], entry = fields[i + 1], lane = lane_of(fields[i])}
        if lease.lane then
            lease.queue, lease.type = lane_parts(lease.lane)
            leases[#leases + 1] = lease
        elseif lease.token ~= '@' then
            unread[#unread + 1] = lease
        end
    end
    return leases, unread
end

-- Keeps what will not run again without a person, with the reason in one line.
local function bury(tag, lane, reason, entry)
    call('ZADD', P .. 'dead', us(now), tag .. ' ' .. lane .. ' ' .. reason:gsub('%c', ' ') .. '\n' .. entry)
end

local function bury_unread(worker, leases)
    for i, lease in ipairs(leases) do
        bury(worker .. ':unread' .. i, '//', 'its lease cannot be read: ' .. lease.token, lease.entry)
    end
end

-- Counting must not fail a script that moves jobs: where the counters are something else, nothing is counted.
local function count(type, what, n)
    return redis.pcall('HINCRBY', P .. 'stats:' .. type, what, n)
end

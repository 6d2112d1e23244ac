-- lease: a job that a worker has. active:<worker> holds its token and its entry (heads).
--
--   token  = turn "." index [ "@" slot ] [ "*" cost ] [ "+" rules ] "/" lane [ "~" gates ]   unique for one worker instance;
--            slot: when its gates let it start, us; cost: 1 when not there; rules: a digest of those that held it;
--            gates: "," between, the concurrency gates that it took
--   record = header "\n" entry                                               the header makes equal entries differ
--            later: "q " tag " " queue " " type  a scheduled job, for its queue
--                   "l " tag " " lane          a retried job, for the head of its lane
--            dead:  tag " " lane " " reason
--
-- uses: heads lane_names

local lease = {}

local behind, behind_lane -- what stands behind the head of the token that was read last; its lane, nil: it is none

-- Returns the lane of a token. Each pattern takes all of its text at the first try: one that must try again takes ten times as long.
function lease.lane_of(token)
    local at = match(token, '^%d+%.[%w_-]+@?%d*%*?%d*%+?%x*/()')
    local text = at and sub(token, at)
    if text ~= behind then
        local lane, gates = match(text or '', '^([%w_.-]+!?/[%w_.-]+/[%w_.-]*)(.*)$')
        behind, behind_lane = text, lane and (gates == '' or find(gates, '^~[%w_.#/,-]+$')) and lane or nil
    end
    return text and behind_lane
end

function lease.slot_of(token) return tonumber(token:match('^[^/]-@(%d+)')) or 0 end
function lease.rules_of(token) return token:match('^[^/]-(%+%x+)') or '' end
function lease.cost_of(token) return tonumber(token:match('^[^/]-%*(%d+)')) or 1 end

-- Iterates over the names of the concurrency gates that a token took.
function lease.gates_of(token) return (token:match('~(.*)$') or ''):gmatch('[^,]+') end

function lease.usual_token(token) return (token:gsub('^([^/]+/[^/!]+)!/', '%1/')) end

-- Returns what stands before the lane in a token.
function lease.token_head(token) return sub(token, 1, (find(token, '/', 1, true) or 0) - 1) end

-- Lists what active:<worker> holds: {token =, entry =, alone = (it ran so), lane = (to which it goes back), queue =, type =} each, and the {token
-- =, entry =} pairs whose token cannot be read.
function lease.list(fields)
    local jobs, unread = {}, {}
    for i = 1, #fields, 2 do
        local job = {token = fields[i], entry = fields[i + 1], lane = lease.lane_of(fields[i])}
        if job.lane then
            job.alone = lane_names.is_alone(job.lane)
            if heads.together(job.entry) then job.lane = lane_names.alone(job.lane) end
            job.queue, job.type, job.key = lane_names.parts(job.lane)
            jobs[#jobs + 1] = job
        elseif job.token ~= '@' then
            unread[#unread + 1] = job
        end
    end
    return jobs, unread
end

return lease

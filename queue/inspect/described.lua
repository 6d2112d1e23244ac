-- described: what is known of a job, as its entry and Redis say it.
--
--   described.job(state, lane, entry, more)  what is known of a job: more, with members of job_list's reply
--   described.number(x)                      a number that may stand anywhere in Redis, as text
--   described.lane(lane)                     queue, type and key of a lane, nil where it says none
--
-- uses: body heads lane_names reasons stamp
local described = {}

function described.number(x) return us(max(0, min(x or 0, WHOLE_MOST))) end

local function some(text) return text ~= '' and text or nil end

local function text_of(key, field)
    local text = call_safe('HGET', P .. key, field)
    return type(text) == 'string' and text or ''
end

-- Returns when a job was cancelled: of a running job its entry says so, of others a mark.
local function cancelled_at(state, attrs, id)
    if state == 'running' then return match(heads.attr(attrs, 'c') or '', '^%d+') end
    local mark = is_name(id) and text_of('cancelled', id) or ''
    return match(mark, '^waiting (%d+)') or match(mark, '^asked (%d+)')
end

local split_lane, lane_queue, lane_type, lane_key -- the last one that was split

function described.lane(of_lane)
    if of_lane ~= split_lane then
        local queue, name, key = match(of_lane, '^([^/]*)/?([^/]*)/?(.*)$')
        split_lane, lane_queue, lane_type, lane_key = of_lane, some(lane_names.usual_queue(queue)), some(name), some(key)
    end
    return lane_queue, lane_type, lane_key
end

function described.job(state, of_lane, entry, more)
    local job, attempts, interrupted, throttled, _, attrs = more, heads.read(entry)
    local failed, failure = heads.failure(attrs)
    local until_end, until_start, enqueued = heads.attr(attrs, 'u'), heads.attr(attrs, 'w'), stamp.time(attrs)
    local since, was_due = stamp.since(attrs) -- a scheduled one says when it starts
    local _, at = heads.attrs_of(entry)
    job.state, job.body_at, job.id = state, at, body.id(entry, at)
    job.queue, job.type, job.key = described.lane(of_lane)
    job.alone = lane_names.is_alone(of_lane) or heads.attr(attrs, 'h') ~= nil
    job.attempts, job.interrupted, job.throttled = described.number(attempts), described.number(interrupted), described.number(throttled)
    job.batch, job.unique = heads.attr(attrs, 'b'), until_end or until_start
    job.unique_until = until_start and 'start' or until_end and 'end'
    job.enqueued_at, job.due_at = enqueued and us(enqueued), was_due and state ~= 'scheduled' and us(since) or nil
    job.failed_at, job.failure = failed and described.number(failed), failure
    job.cancelled_at = cancelled_at(state, attrs, job.id)
    local paused, halted = text_of('halted', 'q/' .. (job.queue or '')), text_of('halted', 'b/' .. (job.batch or ''))
    job.queue_paused = some(paused) and reasons.pause('queue', job.queue, nil, match(paused, '^%d+$') or '-1')
    job.batch_paused, job.batch_cancelled_at = reasons.pause('batch', job.batch, nil, match(halted, '^paused (%d+)')), match(halted, '^cancelled (%d+)')
    return job
end

return described

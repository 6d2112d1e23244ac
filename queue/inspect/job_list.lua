-- job_list: one page of the jobs that a search is for: which, or how many.
--
-- ARGV: now, verb ("list"; "count"; "measure": how many jobs there are in the places that are looked at, about), most (entries of one page,
--       1 to 1000), rows (of list, 1 to 100), n, field, value (n of these, as job_search.lua has them), then what `next` of the page before
--       says: places, as places.lua has them, the next one first
-- role: viewer
-- reply: JSON: {"now": "us", "looked_at": jobs of this page, "matched": of these, "next": [place, from, ...], if there is more,
--        "batch": one that was cancelled, whose jobs the search is not for therefore, "jobs": [{...}, ...]}: of each what find_job says but for its entry; "reason": of a dead job, else its last failure; "args": their beginning
--
-- writes: nothing
-- uses: body described job_search job_text places types

local REASON_MOST = 1000 -- bytes
local NAME_MOST = 128
local ARGS_MOST = 100 -- bytes

local jobs, matched, rows_most -- of one call

local function own_key(entry)
    local key = job_text.value(entry, 'key')
    return type(key) == 'string' and sub(key, 1, NAME_MOST) or nil
end

-- The text of its key, where its place knows what stands for that.
local function shown_key(job, entry)
    if not job.type then return job.key end
    local path = types.load(job.type).path
    if not job.key then return path and body.shown_key(entry, path, body.key(entry, path)) or own_key(entry) end
    return body.shown_key(entry, path or 'key', job.key)
end

local function row_of(state, of_lane, entry, more)
    local job = described.job(state, of_lane, entry, more)
    job.type = job.type or body.type(entry)
    job.key = shown_key(job, entry)
    job.reason = job.reason or job.failure
    job.args = job_text.beginning(entry, 'args', ARGS_MOST)
    job.id, job.reason = job.id and sub(job.id, 1, NAME_MOST), job.reason and sub(job.reason, 1, REASON_MOST)
    job.body_at, job.header, job.token, job.item, job.score, job.failure, job.result = nil, nil, nil, nil, nil, nil, nil
    return job
end

local function meet(state, of_lane, entry, more)
    if not job_search.is_state(state) then return false end
    matched = matched + 1
    if rows_most == 0 then return false end
    jobs[#jobs + 1] = row_of(state, of_lane, entry, more)
    return #jobs == rows_most
end

local VERBS = {list = true, count = true, measure = true}

local function job_list(ARGV)
    local verb, most, rows, count = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
    local whole = VERBS[verb or ''] and is_whole(most, 1) and is_whole(rows, 1) and is_whole(count)
    local stack = whole and job_search.read(ARGV, 6, count) and places.stack(ARGV, 6 + 2 * count)
    if not stack or most > 1000 or rows > 100 then
        return refuse('job_list: wants now, list, count or measure, most from 1 to 1000, rows from 1 to 100, n, n fields and values, place, from, ...')
    end
    jobs, matched, rows_most = {}, 0, verb == 'list' and rows or 0
    places.walk(stack, {only = job_search.only(), wants = job_search.wants, meet = meet, counts = verb == 'count', measures = verb == 'measure'}, most)
    return answer{now = us(now), looked_at = us(places.looked()), matched = us(matched), next = places.words(stack) or nil,
                  batch = job_search.batch(), jobs = jobs}
end

return job_list

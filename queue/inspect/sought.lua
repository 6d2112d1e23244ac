-- sought: one job, looked for by its id.
--
--   sought.page(id, stack, most)   looks at a page of the places on the stack, as places.walk has it; the job as find_job answers it, nil: it is not there
--
-- uses: body described heads places
local sought = {}

local id, quoted, job -- of one call

local function is_it(entry)
    if not find(entry, quoted, 1, true) then return false end
    local _, at = heads.attrs_of(entry)
    return body.id(entry, at) == id
end

-- Lists its failed attempts, the last one first; of a dead job its record has that one.
local function failures_of(entry)
    local rows = {}
    if job.state == 'dead' and job.attempts .. job.interrupted ~= '00' then
        rows[1] = {at = job.since, worker = {name = match(job.item, '^([%w_.-]+):')}, reason = job.reason}
    end
    for _, failure in ipairs(heads.failures((heads.attrs_of(entry)))) do
        failure.at, failure.worker = us(min(failure.at, WHOLE_MOST)), failure.worker and {name = failure.worker}
        failure.ran = failure.ran and us(min(failure.ran, WHOLE_MOST))
        rows[#rows + 1] = failure
    end
    return rows[1] and rows
end

-- When the last attempt of a job started that has ended.
local function started_at(entry)
    local at = (job.state == 'dead' or job.state == 'finished') and tonumber(heads.attr(heads.attrs_of(entry), 'a'))
    return at and us(min(at, WHOLE_MOST)) or nil
end

local function meet(state, of_lane, entry, more)
    job = described.job(state, of_lane, entry, more)
    job.failures, job.started_at = failures_of(entry), started_at(entry)
    if job.start then job.passed = us(call('ZRANK', P .. 'later', job.item) - call('ZCOUNT', P .. 'later', '-inf', '(' .. job.score)) end
    job.entry, job.id, job.item, job.score = entry, nil, nil, nil
    return true
end

function sought.page(its_id, stack, most)
    id, quoted, job = its_id, '"' .. its_id .. '"', nil
    places.walk(stack, {only = {id = id}, text = quoted, wants = is_it, meet = meet}, most)
    return job
end

return sought

-- call_job: the verb of the protocol that looks for a job; changes nothing.
--
-- ARGV: now, verb ("job"), document (doc/protocol.md)
-- role: viewer
-- reply: JSON, as doc/protocol.md has it
-- writes: nothing
-- uses: body document one_job places sought

local MOST = 500 -- entries of one call

local TIMES = {'enqueued_at', 'start', 'failed_at'}
local WORDS = {'type', 'queue', 'batch', 'unique', 'failure', 'reason', 'outcome'}

local function show(id, job)
    local text = '{"id":"' .. id .. '","state":"' .. job.state .. '"'
    for _, name in ipairs(WORDS) do
        if job[name] then text = text .. ',"' .. name .. '":' .. document.text(job[name]) end
    end
    text = text .. ',"attempts":' .. (job.attempts or '0')
    for _, name in ipairs(TIMES) do
        if job[name] then text = text .. ',"' .. name .. '":' .. document.seconds(tonumber(job[name])) end
    end
    return text .. (job.result and ',"result":' .. job.result or '') .. '}'
end

local function call_job(ARGV)
    if #ARGV ~= 3 or ARGV[2] ~= 'job' then return refuse('call_job: wants now, job and a document') end
    local given, stack = one_job.read(ARGV[3], 'job')
    if not given then return stack end
    local job = sought.page(given.id, stack, MOST)
    if job then job.type = job.type or body.type(job.entry) end -- a queue does not say it
    return job and show(given.id, job) or one_job.not_here(given.id, places.words(stack))
end

return call_job

-- dead_arrive: dead jobs of another partition, whose types live here, come to the tail of their queues as a retry brings them there, each once.
--
-- ARGV: now, seed (random: see sign), for each of them: its queue, its record
-- role: operator
-- reply: JSON: {"jobs": how many have come now}
-- full: refused
-- uses: check dead_moves dead_records heads

local KEPT_MS = '86400000' -- so long it is known that a record has come

-- The batch of a job stays where it is: there it has died.
local function read_job(queue, record)
    local job = dead_records.read(record)
    local _, _, _, text, attrs = heads.read(job.entry)
    job.queue, job.body, job.attrs = queue, text, (attrs:gsub(',b[^,]*', ''))
    job.entry = heads.write(0, 0, 0, text, job.attrs)
    job.came = P .. 'id:' .. sha1(record)
    return job
end

local function dead_arrive(ARGV)
    local jobs = {}
    if #ARGV < 4 or #ARGV % 2 ~= 0 or not is_name(ARGV[2]) then return refuse('dead_arrive: wants a seed, then queues and records') end
    for i = 3, #ARGV, 2 do
        local job = read_job(ARGV[i], ARGV[i + 1])
        if not is_name(job.type) then return refuse('dead_arrive: a record is none') end
        if call('EXISTS', job.came) == 0 then jobs[#jobs + 1] = job end
    end
    local able, queues, elsewhere = dead_moves.into_queues(jobs, '')
    if #able < #jobs then return refuse('dead_arrive: %s', #elsewhere > 0 and 'a type lives elsewhere' or 'a queue has no valid name') end
    local wrong = dead_moves.wrong(queues)
    if wrong then return check.refuse_key(wrong) end

    dead_moves.put(able, queues, ARGV[2])
    for _, job in ipairs(able) do
        call('SET', job.came, 'moved')
        if not VIRTUAL then call('PEXPIRE', job.came, KEPT_MS) end
    end
    return answer{jobs = #able}
end

return dead_arrive

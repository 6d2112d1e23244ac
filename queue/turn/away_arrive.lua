-- away_arrive: jobs that another partition has sent away come to the tail of their queues, each once.
--
-- KEYS[1] prefix
-- ARGV: now, the partition that has sent them, seed (random: see sign), record of away_read, ...
-- role: worker
-- reply: the number of the last record that is here; those up to it are done with
-- full: refused
-- format: any
-- uses: arrival away bell body check large lease sign

-- {number =, queue =, type =, entry =} each; nil: one is none.
local function read_records(ARGV)
    local jobs = {}
    for i = 4, #ARGV do
        local number, queue, name, at = away.read(ARGV[i])
        if not number then return nil end
        jobs[#jobs + 1] = {number = number, queue = queue, type = name, entry = sub(ARGV[i], at)}
    end
    return jobs
end

local function wrong_keys(jobs)
    local wrong = check.wrong_kind('arrived', 'hash') or arrival.wrong_registries() or sign.wrong()
    for _, job in ipairs(jobs) do
        wrong = wrong or check.wrong_kind('queue:' .. job.queue, 'list') or arrival.wrong_counter(job.type, 'enqueued')
    end
    return wrong
end

-- The entry as it is here: without the batch that it has left, and with its lock if that is free.
local function entry_here(entry)
    local attempts, interrupted, throttled, text, attrs = lease.entry_read(entry)
    if attrs == '' then return entry end
    attrs = attrs:gsub(',b[^,]*', ''):gsub(',s[^,]*', '')
    local key = lease.attr(attrs, 'u') or lease.attr(attrs, 'w')
    if key then call_safe('SET', P .. 'unique:' .. key, body.id(text) or '', 'NX') end
    return lease.entry_write(attempts, interrupted, throttled, text, attrs)
end

local function put(job, seed)
    if call('RPUSH', P .. 'queue:' .. job.queue, sign.write(entry_here(job.entry), seed)) == 1 then bell.arrived(job.queue) end
    call('SADD', P .. 'queues', job.queue)
    large.note(job.queue, job.entry)
    arrival.count(job.type, 'enqueued', 1)
end

local function away_arrive(ARGV)
    local from, seed, jobs = ARGV[2], ARGV[3], read_records(ARGV)
    if #ARGV < 4 or not is_whole(tonumber(from)) or not is_name(seed) or not jobs then
        return refuse('away_arrive: wants a partition, a seed and records of away_read')
    end
    local wrong = wrong_keys(jobs)
    if wrong then return check.refuse_key(wrong) end

    local last = lease.counted(call('HGET', P .. 'arrived', from))
    for _, job in ipairs(jobs) do
        if job.number > last then
            put(job, seed)
            last = job.number
        end
    end
    call('HSET', P .. 'arrived', from, us(last))
    return us(last)
end

return away_arrive

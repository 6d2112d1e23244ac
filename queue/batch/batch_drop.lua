-- batch_drop: jobs of a cancelled batch that were set aside while it was paused have ended, one page.
--
-- ARGV: now, name, most (1 to 500; fewer are dropped where they are large)
-- role: operator
-- reply: JSON: {"dropped": how many, "aside": how many still are}; nothing is dropped of a batch that is not cancelled
-- uses: aside batch cancelled check

local function drop(jobs)
    local entries = {}
    for i, job in ipairs(jobs) do entries[i] = job.entry end
    aside.count(jobs, 'set_aside', -1)
    aside.count(jobs, 'cancelled', 1)
    cancelled.finish(entries)
end

local function batch_drop(ARGV)
    local name, most = ARGV[2], tonumber(ARGV[3])
    if #ARGV ~= 3 or not (is_name(name) and is_whole(most, 1)) or most > 500 then
        return refuse('batch_drop: wants a name, most from 1 to 500')
    end
    local wrong = batch.wrong(name) or check.wrong_kind('dead', 'zset')
    if wrong then return check.refuse_key(wrong) end
    local b = batch.read(name)
    if not (b and b.cancelled) then return answer{dropped = 0, aside = call('LLEN', P .. 'aside:' .. name)} end
    local jobs, unread = aside.read(name, most)
    drop(jobs)
    aside.trim(name, jobs, unread)
    return answer{dropped = #jobs, aside = call('LLEN', P .. 'aside:' .. name)}
end

return batch_drop

-- find_job: looks for a job by its id, in as many places as one page allows; changes nothing.
--
-- KEYS[1] prefix
-- ARGV: now, id, most (entries of one page, 1 to 1000), then what `next` of the page before says: places, as places.lua has them, the next one first
-- role: viewer
-- reply: JSON: {"now": "us", "bytes": that were read, "looked_at": jobs of this page, "next": [place, from, ...], "job": {...}}; "next" is
--        not there when the job is found or all has been looked at. job: times are "us"; what does not apply is not there:
--        "state", "queue", "type", "key", "alone", "entry", "body_at": where the body begins in it, "attempts", "interrupted",
--        "throttled", "enqueued_at", "due_at": it waits, or waited, since then, where that is later, but for a scheduled one, "batch", "unique", "unique_until": "start" or "end", "failed_at", "failure", "cancelled_at": it was cancelled, and
--        nobody who can end it has met it; "queue_paused_since" (-1: unknown), "batch_paused_since", "batch_cancelled_at"; and
--        of waiting, parked, held, aside: "place", "of": of so many in "list"; held: waiting or parked, and no worker that looked can
--        run its type
--        of running: "worker": {"name", "host", "pid"}, "token", "since": its slot, "lease_until"
--        of scheduled, retry: "start", "passed": how many that are due at the same time come before it, "header": of its record
--        of dead: "since", "reason"; of finished: "since", "outcome", "worker": {"name"}
--
-- writes: nothing
-- uses: body lease places

local id, quoted, job -- of one call

local function is_it(entry)
    if not find(entry, quoted, 1, true) then return false end
    local _, at = lease.head_read(entry)
    return body.id(entry, at) == id
end

local function meet(state, of_lane, entry, more)
    job = places.describe(state, of_lane, entry, more)
    if job.start then job.passed = us(call('ZRANK', P .. 'later', job.item) - call('ZCOUNT', P .. 'later', '-inf', '(' .. job.score)) end
    job.entry, job.id, job.item, job.score = entry, nil, nil, nil
    return true
end

local function find_job(ARGV)
    local most, stack = tonumber(ARGV[3]), places.stack(ARGV, 4)
    if not (ARGV[2] and is_name(ARGV[2]) and is_whole(most, 1) and stack) or most > 1000 then
        return refuse('find_job: wants now, id, most from 1 to 1000, place, from, ...')
    end
    id, quoted, job = ARGV[2], '"' .. ARGV[2] .. '"', nil
    places.walk(stack, {only = {id = id}, text = quoted, wants = is_it, meet = meet}, most)
    return answer{now = us(now), bytes = places.bytes(), looked_at = us(places.looked()), next = not job and places.words(stack) or nil, job = job}
end

return find_job

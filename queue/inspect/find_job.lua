-- find_job: looks for a job by its id, in as many places as one page allows; changes nothing.
--
-- ARGV: now, id, most (entries of one page, 1 to 1000), then what `next` of the page before says: places, as places.lua has them, the next one first
-- role: viewer
-- reply: JSON: {"now": "us", "bytes": that were read, "looked_at": jobs of this page, "next": [place, from, ...], "job": {...}}; "next" is
--        not there when the job is found or all has been looked at; then "known": its id is remembered, so it was enqueued. job: times are "us"; what does not apply is not there:
--        "state", "queue", "type", "key", "alone", "entry", "body_at": where the body begins in it, "attempts", "interrupted",
--        "failures": [{"at", "worker": {"name"}, "reason", "ran": us}, ...]: attempts that failed, the last one first, so many as are kept; "throttled", "enqueued_at", "due_at": it waits, or waited, since then, where that is later, but for a scheduled one, "batch", "unique", "unique_until": "start" or "end", "failed_at", "failure", "cancelled_at": it was cancelled, and
--        nobody who can end it has met it; "queue_paused" (since -1: unknown), "batch_paused": as reasons.pause has them; "batch_cancelled_at"; and
--        of waiting, parked, held, aside: "place", "of": of so many in "list"; held: waiting or parked, and no worker that looked can
--        run its type
--        of running: "worker": {"name", "host", "pid"}, "token", "since": its slot, "lease_until"
--        of scheduled, retry: "start", "passed": how many that are due at the same time come before it, "header": of its record
--        of dead: "since", "started_at", "reason"; of finished: "since", "started_at", "outcome", "worker": {"name"}, "result": one line of JSON
--
-- writes: nothing
-- uses: fired places sought

local function find_job(ARGV)
    local id, most, stack = ARGV[2], tonumber(ARGV[3]), places.stack(ARGV, 4)
    if not (id and is_name(id) and is_whole(most, 1) and stack) or most > 1000 then
        return refuse('find_job: wants now, id, most from 1 to 1000, place, from, ...')
    end
    local job = sought.page(id, stack, most)
    local words = not job and places.words(stack) or nil
    local known = not job and not words and (call('EXISTS', P .. 'id:' .. id) == 1 or fired.has(id)) or nil
    return answer{now = us(now), bytes = places.bytes(), looked_at = us(places.looked()), next = words, known = known, job = job}
end

return find_job

-- promote: scheduled and retried jobs that are due leave `later`: for the tail of their queue, or the head of their lane.
--
-- KEYS[1] prefix
-- ARGV: now, most
-- reply: how many were moved; most of them: there may be more
-- uses: bell check ends lane lease

-- Sorts a record into moves: those for a queue, those for a lane, and what cannot be moved and must not stop the others.
local function plan(record, moves)
    local header, entry = record:match('^([^\n]*)\n(.*)$')
    local queue, name = (header or ''):match('^q %S+ ([%w_.-]+) ([%w_.-]+)$')
    local into = (header or ''):match('^l %S+ ([%w_.-]+/[%w_.-]+/[%w_.-]*)$')
    local wrong = queue and check.wrong_kind('queue:' .. queue, 'list') or into and lane.wrong(into)
    if wrong or not queue and not into then
        moves.dead[#moves.dead + 1] = {reason = wrong or 'this record of `later` cannot be read', record = record}
    elseif queue then
        moves.to_queue[#moves.to_queue + 1] = {queue = queue, type = name, entry = entry}
    else
        local entries = moves.entries[into]
        if not entries then
            entries = {}
            moves.entries[into], moves.lanes[#moves.lanes + 1] = entries, into
        end
        entries[#entries + 1] = entry
    end
end

local function move(moves)
    for _, job in ipairs(moves.to_queue) do
        call('RPUSH', P .. 'queue:' .. job.queue, job.entry)
        lease.count(job.type, 'scheduled', -1)
        lease.count(job.type, 'enqueued', 1)
    end
    for _, into in ipairs(moves.lanes) do
        local queue, name = lease.lane_parts(into)
        lane.give_back(into, moves.entries[into])
        lease.count(name, 'scheduled', -#moves.entries[into])
        bell.ring(queue)
    end
    for i, d in ipairs(moves.dead) do
        ends.bury('later:' .. us(now) .. '.' .. i, '//', 'promote: ' .. d.reason, d.record)
    end
end

local function promote(ARGV)
    local most = tonumber(ARGV[2])
    if not is_whole(most, 1) or most > 1000 then return refuse('promote: most must be 1 to 1000') end

    local records = call('ZRANGEBYSCORE', P .. 'later', '-inf', us(now), 'LIMIT', 0, most)
    if #records == 0 then return 0 end
    local moves = {to_queue = {}, lanes = {}, entries = {}, dead = {}} -- entries: of each of the lanes
    for _, record in ipairs(records) do plan(record, moves) end
    local wrong = #moves.dead > 0 and check.wrong_kind('dead', 'zset')
    if wrong then return check.refuse_key(wrong) end
    move(moves)
    call('ZREM', P .. 'later', unpack(records))
    return #records
end

return promote

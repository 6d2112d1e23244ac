-- call_produce: the verbs of the protocol by which jobs come in: enqueue, bulk, batch.
--
-- ARGV: now, verb, text: a document (doc/protocol.md), of bulk lines behind it
-- role: producer
-- reply: JSON, as doc/protocol.md has it
-- full: refused
-- time: when needed
-- format: any
-- uses: arrival cost document partition stamp

local TIME_MOST = 4102444800   -- the year 2100, as enqueue has it
local TEN_YEARS = 315532800    -- s
local LOCK_MOST = 315360000    -- s, as enqueue has it
local KEEP_GIVEN, KEEP_MADE, KEEP_MOST = 86400, 60, 2592000 -- s that an id is remembered
local STREAM_MS = 3600000      -- as long is a bulk without a name remembered
local LINES_MOST, TEXT_MOST = 1000, 2097152
local ZEROS = '0000000000000000' -- the sum over nothing

local is_name, is_digits = document.is_name, document.is_digits

-- ---- The job

local A_NAME = 'a string of 1 to 128 of A-Z a-z 0-9 _ . -'

local function is_timeout(value, name)
    return type(value) == 'number' and value > 0 and value <= TEN_YEARS and find(document.text_of(name), '^%d')
end

local TRACE = '^%x%x%-(%x+)%-(%x+)%-%x%x$'

local function is_trace(value)
    local trace, span = match(type(value) == 'string' and value or '', TRACE)
    return trace and #trace == 32 and #span == 16 and not find(value, '%u') and sub(value, 1, 2) ~= 'ff' and find(trace, '[^0]')
        and find(span, '[^0]')
end

local function is_span(value) return type(value) == 'number' and value >= 0 and value < TIME_MOST end

-- What a job may have, and behind it what a call may.
local JOB = {
    id = {is = is_name, must_be = A_NAME},
    type = {is = is_name, must_be = A_NAME},
    key = {is = is_name, must_be = A_NAME},
    cost = document.cost(1),
    args = {is = document.is_any},
    max_attempts = {is = function(value, name) return is_digits(value, name, 1, 1000000) end, must_be = 'a whole number from 1 to 1000000'},
    timeout = {is = is_timeout, must_be = 'a number of seconds above 0, at most ten years'},
    traceparent = {is = is_trace, must_be = 'VERSION-TRACE-SPAN-FLAGS in lower-case hex, as in ' ..
        '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'},
    meta = {is = document.is_any},
}
local LINE, CALL = {queue = {is = is_name, must_be = A_NAME}}, {
    ['in'] = {is = is_span, must_be = 'a number of seconds from 0, before the year 2100'},
    at = {is = is_span, must_be = 'a time from 0, before the year 2100'},
    unique = {is = is_name, must_be = A_NAME},
    unique_until = {is = function(value)
        return value == 'end' or value == 'start' or type(value) == 'number' and value >= 0.001 and value <= LOCK_MOST
    end, must_be = '"end", "start" or a number of seconds from 0.001 to ten years'},
    batch = {is = is_name, must_be = A_NAME},
    remember = {is = function(value, name) return is_digits(value, name, 1, KEEP_MOST) end, must_be = 'a whole number from 1 to 2592000'},
}

local is_filled = false

local function fill()
    for name, known in pairs(JOB) do LINE[name] = known end
    for name, known in pairs(LINE) do CALL[name] = known end
    is_filled = true
end

-- The job that was read last: `{"id":...,"type":...,"key":...,"cost":...` first, the other members as they stand.
local function body_of(text, job, id)
    local front = '"id":"' .. id .. '","type":"' .. job.type .. '"' .. (job.key and ',"key":"' .. job.key .. '"' or '')
        .. (job.cost and ',"cost":' .. cost.json(cost.read(job.cost)) or '')
    local at = document.begin_of('id')
    if at and sub(text, at, at + #front - 1) == front and find(text, '^[,}]', at + #front) and byte(text, -1) == 125 then
        local all = true -- what is no member of the job stands before that
        for name in pairs(job) do
            local place = document.begin_of(name)
            all = all and place and (place < at) ~= (JOB[name] ~= nil)
        end
        if all then return at == 2 and text or '{' .. sub(text, at) end
    end
    local parts = {'{' .. front}
    for _, m in ipairs(document.members()) do
        if JOB[m.name] and m.name ~= 'id' and m.name ~= 'type' and m.name ~= 'key' and m.name ~= 'cost' then
            parts[#parts + 1] = sub(text, m.from, m.last)
        end
    end
    return concat(parts, ',') .. '}'
end

local function too_long(size)
    return document.refused('invalid', format('the job has %d bytes: at most %d are allowed; keep large data elsewhere and enqueue where it is',
                                              size, document.MOST))
end

local head, head_open, head_unit -- "@<stamp>" of these 10 ms, and with a bracket behind it

-- The head that says when a job is enqueued.
local function stamped()
    read_clock()
    local unit = floor(now / 10000)
    if unit ~= head_unit then
        head, head_unit = stamp.head(now), unit
        head_open = head .. '{'
    end
    return head
end

-- ---- enqueue

local function wrong_call(job)
    if not job.type then return document.missing('job', 'type') end
    if job['in'] and job.at then return document.refused('invalid', 'wrong job: either "in" or "at"', 'at') end
    if job.unique_until and not job.unique then
        return document.refused('invalid', 'wrong job: "unique_until" without "unique"', 'unique_until')
    end
end

local function micros(seconds) return seconds and us(floor(seconds * 1000000 + 0.5)) or '' end

local function lock_of(job)
    if not job.unique then return '' end
    return type(job.unique_until) == 'number' and us(ceil(job.unique_until * 1000)) or job.unique_until or 'end'
end

local function answered(reply, id)
    if reply == 1 then return '{"id":"' .. id .. '","new":true}' end
    return '{"id":"' .. reply[2] .. '","new":false' .. (reply[1] < 0 and ',"locked":true' or '') .. '}'
end

-- Says why enqueue or append has refused.
local function refused(err, batch, name, said)
    local why = err:gsub('^WEIR ', '')
    if batch and arrival.closed(batch) == why then return document.refused('closed', why, 'batch') end
    return name and arrival.never_fits(name, said) == why and document.refused('invalid', why, 'cost') or document.fault(err)
end

-- A batch lives where its types do, and its name says so.
local function wrong_place(batch, name)
    if not batch or partition.count() == 1 or partition.refusal(name) then return nil end
    if partition.home(batch) ~= partition.own() then
        return document.refused('invalid', format('batch %s: lives on partition %d and type %s on %d; name it as the type up to its first dot',
                                                  batch, partition.home(batch), name, partition.own()), 'batch')
    end
    scripts.batch_place{'', batch, us(partition.own())}
end

local FRONT = '^"id":"([%w_.-]+)","type":"([%w_.-]+)","args":()'
local MADE = '{"remember":60,' -- an id that a client has made
local GIVEN_MS, MADE_MS = '86400000', '60000' -- KEEP_GIVEN, KEEP_MADE
local ONCE = 'x' -- the tag of who asks for nothing more: to who asks again it is known

-- Enqueues a job with args and nothing else, for which most calls ask, without a look at each member. nil: this is no such call, or something
-- stands in its way.
local function enqueue_fast(text)
    local is_made = sub(text, 1, #MADE) == MADE
    local at = is_made and #MADE + 1 or 2
    local id, name, args = match(text, FRONT, at)
    if not id or byte(text) ~= 123 or byte(text, -1) ~= 125 or #id > 128 or #name > 128 or #text > document.MOST
        or not document.is_value(sub(text, args, -2)) then
        return nil
    end
    local entry = stamped()
    entry = is_made and head_open .. sub(text, at) or entry .. text
    return scripts.put_at_once('default', name, id, is_made and MADE_MS or GIVEN_MS, ONCE, entry) and '{"id":"' .. id .. '","new":true}'
end

local function enqueue(text)
    local fast = enqueue_fast(text)
    if fast then return fast end
    local job, refusal = document.read(text, CALL, 'job')
    refusal = refusal or wrong_call(job)
    if refusal then return refusal end
    local tag = document.made()
    local id = job.id or tag
    local body = body_of(text, job, id)
    if #body > document.MOST then return too_long(#body) end
    refusal = wrong_place(job.batch, job.type)
    if refusal then return refusal end
    local keep, said = job.remember or job.id and KEEP_GIVEN or KEEP_MADE, cost.read(job.cost)
    local reply = scripts.enqueue{'', job.queue or 'default', job.type, id, us(keep * 1000), tag, micros(job['in']), micros(job.at),
                                  said and cost.text(said) or '', job.batch or '', job.unique or '', lock_of(job), stamped() .. body}
    if type(reply) == 'table' and reply.err then return refused(reply.err, job.batch, job.type, said) end
    return answered(reply, id)
end

-- ---- bulk

local function is_sum(value) return type(value) == 'string' and #value == 16 and find(value, '^[0-9a-f]+$') end

local HEAD = {
    batch = CALL.batch,
    stream = CALL.batch,
    type = JOB.type,
    queue = LINE.queue,
    offset = {is = function(value, name) return is_digits(value, name, 0, 2 ^ 53 - 1) end, must_be = 'a whole number from 0'},
    sum = {is = is_sum, must_be = '16 hexadecimal digits in lower case'},
}

local c -- of this call: what its lines say

local function bodies_of(queue)
    local bodies = c.bodies[queue]
    if not bodies then
        bodies = {}
        c.bodies[queue], c.queues[#c.queues + 1] = bodies, queue
    end
    return bodies
end

local function count_type(name, count)
    if not c.types[name] then c.types[#c.types + 1] = name end
    c.types[name] = (c.types[name] or 0) + count
end

local function add_job(queue, name, body)
    if #body > document.MOST then return too_long(#body) end
    local bodies = bodies_of(queue)
    bodies[#bodies + 1] = c.head .. body
    count_type(name, 1)
end

local function id_of_line()
    c.made = c.made + 1
    return c.ids .. digits(c.made)
end

-- Adds a line of a text whose head has a type.
local function add_args(line, bodies)
    local ok, why = document.is_value(line, c.is_plain)
    if not ok then return document.refused('invalid', 'wrong args, ' .. why) end
    if byte(line) <= 32 or byte(line, -1) <= 32 then line = match(line, '^%s*(.*%S)') end
    local body = c.front .. digits(c.lines) .. c.middle .. line .. '}'
    if #body > document.MOST + #c.head then return too_long(#body - #c.head) end
    bodies[#bodies + 1] = body
end

-- A single job is told these, and no line is.
local ALONE = {['in'] = true, at = true, unique = true, unique_until = true, remember = true, batch = true}

local LINE_FRONT = '^"type":"([%w_.-]+)","args":()'

-- Adds a line as enqueue_fast() reads a call; true: it was such a line.
local function add_fast(line)
    local id, name, args = match(line, FRONT, 2)
    if not id then name, args = match(line, LINE_FRONT, 2) end
    if not name or byte(line) ~= 123 or byte(line, -1) ~= 125 or id and #id > 128 or #name > 128 or not document.is_value(sub(line, args, -2)) then
        return false
    end
    return not add_job(c.queue, name, id and line or '{"id":"' .. id_of_line() .. '",' .. sub(line, 2))
end

local function add_line(line)
    if add_fast(line) then return nil end
    local job, refusal = document.read(line, LINE, 'job')
    if not job then
        local name = match(refusal, '"member":"([%w_]+)"')
        return ALONE[name or ''] and find(refusal, 'is no member of it', 1, true) and document.refused('invalid', format(
            'wrong job: "%s" in a line would be ignored; enqueue such jobs one by one', name), name) or refusal
    end
    if not job.type then return document.missing('job', 'type') end
    if job.cost then c.costs[job.type] = cost.highest(c.costs[job.type], cost.read(job.cost)) end
    return add_job(job.queue or c.queue, job.type, body_of(line, job, job.id or id_of_line()))
end

-- Reads the lines that begin at that place; returns a refusal.
local function read_lines(text, at)
    local sums, lines, last = c.sums, 0, #text
    local bodies, add = {}, c.type and add_args or add_line
    while at <= last do
        local ends = find(text, '\n', at, true) or last + 1
        local line = sub(text, at, ends - 1)
        lines = lines + 1
        c.lines = lines
        if lines > LINES_MOST then return document.refused('invalid', format('wrong bulk: at most %d lines are allowed', LINES_MOST)) end
        local refusal = ((byte(line) or 0) > 32 or find(line, '[^ \t\r]')) and add(line, bodies)
        if refusal then return (refusal:gsub('"why"', '"line":' .. us(lines) .. ',"why"', 1)) end
        if sums then sums = sub(sha1(sums .. line), 1, 16) end
        at = ends + 1
    end
    if #bodies > 0 then
        count_type(c.type, #bodies)
        c.queues[1], c.bodies[c.queue] = c.queue, bodies
    end
    for _, queue in ipairs(c.queues) do c.jobs = c.jobs + #c.bodies[queue] end
    c.after = sums or ZEROS
end

local function wrong_head(given)
    if (given.batch == nil) == (given.stream == nil) then
        return document.refused('invalid', 'wrong bulk: either "batch" or "stream"', given.batch and 'stream' or 'batch')
    end
    if given.stream and given.sum then return document.refused('invalid', 'wrong bulk: a stream has no "sum"', 'sum') end
end

-- Why these jobs cannot come in together; nil: they can.
local function wrong_types(batch)
    local home = c.types[1] and partition.home(c.types[1])
    for _, name in ipairs(c.types) do
        if partition.home(name) ~= home then
            return document.refused('invalid', format('wrong bulk: its types %s and %s live on two partitions; send them apart', c.types[1], name), 'type')
        end
        local refusal = partition.refusal(name)
        if refusal then return document.fault(refusal.err) end
        local wrong = arrival.never_fits(name, c.costs[name])
        if wrong then return document.refused('invalid', wrong, 'cost') end
    end
    return c.types[1] and wrong_place(batch, c.types[1])
end

local function arguments(given, name, offset, before)
    local words = {'', name, given.batch and '' or us(STREAM_MS), us(offset), us(c.lines), before, c.after, document.made(),
                   given.batch and sub(stamped(), 2) or '', us(#c.types)}
    for _, kind in ipairs(c.types) do words[#words + 1], words[#words + 2] = kind, us(c.types[kind]) end
    words[#words + 1] = us(#c.queues)
    for _, queue in ipairs(c.queues) do words[#words + 1], words[#words + 2] = queue, us(#c.bodies[queue]) end
    local n = #words
    for _, queue in ipairs(c.queues) do
        for _, entry in ipairs(c.bodies[queue]) do
            n = n + 1
            words[n] = entry
        end
    end
    return words
end

local function taken(is, lines, jobs, sum)
    return '{"taken":' .. (is and 'true' or 'false') .. ',"lines":' .. us(lines) .. ',"jobs":' .. us(jobs) .. ',"sum":"' .. sum .. '"}'
end

local function begin_lines(given, before)
    c = {type = given.type, queue = given.queue or 'default', sums = given.batch and before, head = given.batch and '' or stamped(), types = {},
         queues = {}, bodies = {}, costs = {}, jobs = 0, lines = 0, made = 0, ids = document.made() .. 'x'}
    c.front, c.middle = c.head .. '{"id":"' .. c.ids, given.type and '","type":"' .. given.type .. '","args":'
end

local function bulk(text)
    if #text > TEXT_MOST then
        return document.refused('invalid', format('wrong bulk: it has %d bytes: at most %d are allowed; send fewer lines', #text, TEXT_MOST))
    end
    local ends = find(text, '\n', 1, true) or #text + 1
    local given, refusal = document.read(sub(text, 1, ends - 1), HEAD, 'bulk')
    refusal = refusal or wrong_head(given)
    if refusal then return refusal end
    local name, offset = given.batch or given.stream, given.offset or 0
    local wrong = arrival.wrong_batch(name)
    if wrong then return document.refused('unavailable', wrong) end
    local state = call('HMGET', P .. 'batch:' .. name, 'next', 'sum')
    local lines, before = tonumber(state[1] or 0), state[2] or ZEROS
    local is_next = lines == offset and (given.sum or before) == before
    if is_next or not state[1] and partition.count() > 1 then -- where nothing is known of it, its types say whether it is elsewhere
        begin_lines(given, before)
        c.is_plain = find(text, '^[\n -~]*$', ends) and not find(text, '\\', ends, true)
    refusal = document.strictly(read_lines, text, ends + 1) or wrong_types(given.batch)
        if refusal then return refusal end
    end
    if not is_next then return taken(false, lines, 0, before) end
    local reply = scripts.append(arguments(given, name, offset, before))
    if reply.err then return refused(reply.err, given.batch) end
    return taken(true, reply[2], c.jobs, c.after)
end

-- ---- batch

local BATCH = {
    batch = CALL.batch,
    seal = {is = function(value) return value == true end, must_be = 'true'},
    ['then'] = JOB.type,
    queue = LINE.queue,
}
local COUNTS = {'total', 'done', 'dead', 'cancelled', 'failed', 'next', 'sum', 'then', 'created', 'sealed', 'ended', 'cancel'}

local function row(name)
    local f, b = call('HMGET', P .. 'batch:' .. name, unpack(COUNTS)), {}
    for i, field in ipairs(COUNTS) do b[field] = f[i] or nil end
    return b
end

local function state_of(b) return b.cancel and 'cancelled' or b.ended and 'ended' or b.sealed and 'sealed' or 'open' end

local function show(name, b)
    local n, total = {}, tonumber(b.total or 0)
    for i = 2, 5 do n[i] = tonumber(b[COUNTS[i]] or 0) or 0 end
    local text = format('{"batch":"%s","state":"%s","total":%d,"left":%d,"done":%d,"dead":%d,"cancelled":%d,"failed":%d,"lines":%d,"sum":"%s"',
                        name, state_of(b), total, max(0, total - n[2] - n[3] - n[4]), n[2], n[3], n[4], n[5], tonumber(b.next or 0), b.sum or ZEROS)
    if b['then'] then text = text .. ',"then":"' .. match(b['then'], '%S+$') .. '"' end
    for _, field in ipairs{'created', 'sealed', 'ended'} do
        if b[field] then text = text .. ',"' .. field .. '_at":' .. document.seconds(tonumber(b[field])) end
    end
    return text .. '}'
end

-- Where a batch is that is not here; nil: here, or nowhere.
local function batch_elsewhere(name)
    if partition.count() == 1 then return nil end
    local home, place = partition.home(name), call('GET', P .. 'home:' .. name)
    if home ~= partition.own() then return home end
    return place and tonumber(place) ~= partition.own() and place
end

local function seal(name, given)
    local follows = given['then']
    if follows and partition.elsewhere(follows) then
        return document.refused('invalid', format('batch %s: type %s lives on another partition, so it cannot follow', name, follows), 'then')
    end
    local reply = scripts.batch_seal{'', name, '1', follows and (given.queue or 'default') or '', follows or ''}
    if not reply.err then return nil end
    local refusal = document.fault(reply.err)
    return sub(reply.err, 1, 5) == 'WEIR ' and refusal:gsub('"invalid"', '"closed"', 1) or refusal
end

local function wrong_batch(given)
    if not given.batch then return document.missing('batch', 'batch') end
    if given['then'] and not given.seal then return document.refused('invalid', 'wrong batch: "then" without "seal"', 'then') end
    if given.queue and not given['then'] then return document.refused('invalid', 'wrong batch: "queue" without "then"', 'queue') end
end

local function batch(text)
    local given, refusal = document.read(text, BATCH, 'batch')
    refusal = refusal or wrong_batch(given)
    if refusal then return refusal end
    local name = given.batch
    local wrong = arrival.wrong_batch(name)
    if wrong then return document.refused('unavailable', wrong) end
    local b = row(name)
    local elsewhere = not b.total and batch_elsewhere(name)
    if elsewhere then return document.elsewhere(elsewhere) end
    if not b.total and not given.seal then return document.refused('missing', format('batch %s: no such batch', name)) end
    refusal = given.seal and seal(name, given)
    return refusal or show(name, given.seal and row(name) or b)
end

-- ----

local verbs = {enqueue = enqueue, bulk = bulk, batch = batch}

local function call_produce(ARGV)
    local verb = verbs[ARGV[2] or '']
    if #ARGV ~= 3 or not verb then return refuse('call_produce: wants now, enqueue, bulk or batch, and a document') end
    if not is_filled then fill() end
    read_clock()
    return verb(ARGV[3])
end

return call_produce

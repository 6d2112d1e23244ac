-- job_search: a search for jobs, as queue/inspect/job_search.c reads it from what people write; and whether a job is one of those.
--
--   job_search.read(words, first, count)  so many pairs of words from there on, each a field and its value; nil: they are wrong
--     id, type, queue, batch, state (several: any of them), key (then made: the key of a lane that stands for that text),
--     older, newer (us since it was enqueued), reason (a part of it), args.<path>, able (run, retry: not those with which that is
--     not done, as they were cancelled)
--   job_search.only()                     where these may be, for places.walk
--   job_search.wants, job_search.is_state for its visitor
--   job_search.batch()                    a cancelled batch for which some were not wanted; nil: none
--
-- uses: body cancelled job_text lease stamp types
local job_search = {}

local FIELDS = {id = true, type = true, queue = true, batch = true, state = true, key = true, made = true, older = true, newer = true,
                reason = true, able = true}

local asked    -- of one call: the fields and their values; states: a set; args: {path =, value =, plain =} each
local needles  -- texts that stand in each of those entries
local batch    -- for which some were not wanted

-- A value that a JSON text has letter by letter, unless its writer escaped what needs none.
local function is_plain(value) return #value > 0 and find(value, '^[%w_.-]+$') ~= nil end

local function read_pair(field, value)
    local path = match(field, '^args%.(.+)$')
    if path then
        asked.args[#asked.args + 1] = {path = field, value = value, number = tonumber(value)}
        if is_plain(value) then needles[#needles + 1] = value end
    elseif field == 'state' then
        asked.states = asked.states or {}
        asked.states[value] = true
    else
        asked[field] = value
    end
    return path or FIELDS[field]
end

function job_search.read(words, first, count)
    asked, needles, batch = {args = {}}, {}, nil
    for i = first, first + 2 * count - 2, 2 do
        if not words[i + 1] or not read_pair(words[i], words[i + 1]) then return nil end
    end
    asked.older, asked.newer = tonumber(asked.older), tonumber(asked.newer)
    if asked.id then needles[#needles + 1] = '"' .. asked.id .. '"' end
    asked.plain_key = asked.key and is_plain(asked.key)
    asked.in_head = asked.batch or asked.older or asked.newer or asked.reason
    return asked
end

-- A lane without a key has jobs too that name one.
function job_search.only()
    return {id = asked.id, type = asked.type, queue = asked.queue, batch = asked.batch, states = asked.states,
            keys = asked.key and {asked.key, '', asked.made ~= asked.key and asked.made or nil}}
end

function job_search.is_state(state) return not asked.states or asked.states[state] == true end

local function has_text(entry, text) return find(entry, text, 1, true) or find(entry, '\\u', 1, true) end

local function has_needles(entry)
    for i = 1, #needles do
        if not has_text(entry, needles[i]) then return false end
    end
    return true
end

-- Of a job in a lane the key is that of the lane; else what stands at the path of its limits, or what it names itself.
local function is_key(entry, name, key)
    if not key then
        if asked.plain_key and not has_text(entry, asked.key) then return false end
        name = name or body.type(entry)
        local path = name and types.load(name).path
        key = path and body.key(entry, path) or job_text.value(entry, 'key')
    end
    return key == asked.key or key == asked.made
end

local function is_value(entry, arg)
    local value = job_text.value(entry, arg.path)
    if type(value) == 'string' then return value == arg.value end
    if type(value) == 'number' then return value == arg.number end
    return value ~= nil and type(value) ~= 'table' and (type(value) == 'boolean' and tostring(value) or 'null') == arg.value
end

local function is_reason(attrs, reason)
    local _, failure = lease.failure(attrs)
    return find(reason or failure or '', asked.reason, 1, true) ~= nil
end

local AHEAD_US = 1000000 -- clocks of producers differ

-- What nobody knows is neither older nor newer, nor is what will be enqueued when it is due.
local function is_age(attrs)
    local at = stamp.time(attrs)
    return at ~= nil and at <= now + AHEAD_US and (not asked.older or now - at >= asked.older) and (not asked.newer or now - at <= asked.newer)
end

local function is_head(entry, reason)
    local attrs = lease.head_read(entry)
    return (not asked.batch or lease.attr(attrs, 'b') == asked.batch) and (not asked.reason or is_reason(attrs, reason))
        and (not (asked.older or asked.newer) or is_age(attrs))
end

local function has_args(entry)
    for i = 1, #asked.args do
        if not is_value(entry, asked.args[i]) then return false end
    end
    return true
end

local function has_id(entry)
    local _, at = lease.head_read(entry)
    return body.id(entry, at) == asked.id
end

-- A dead job that was cancelled alone runs again.
local function is_able(entry)
    local over = asked.able == 'retry' and cancelled.batch_of(lease.head_read(entry)) or asked.able == 'run' and cancelled.by(entry)
    if over and over ~= '' then batch = over end
    return not over
end

function job_search.batch() return batch end

function job_search.wants(entry, reason, queue, name, key)
    if asked.queue and queue ~= asked.queue or asked.type and (name or body.type(entry)) ~= asked.type then return false end
    if #needles > 0 and not has_needles(entry) then return false end
    if asked.in_head and not is_head(entry, reason) then return false end
    return (not asked.id or has_id(entry)) and (not asked.key or is_key(entry, name, key)) and has_args(entry)
        and (not asked.able or is_able(entry))
end

return job_search

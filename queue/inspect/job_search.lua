-- job_search: a search for jobs, as queue/inspect/job_search.c reads it from what people write; and whether a job is one of those.
--
--   job_search.read(words, first, count)  so many pairs of words from there on, each a field and its value; nil: they are wrong
--     id, schedule (of its runs), type, queue, batch, worker, state (several: any of them), key (then made: the key of a lane that stands for that text),
--     enqueued>, enqueued<, died>, died< (us since then: at least, at most), due>, due< (us until then), reason (a part of it, as dead_records.has_reason has it), args.<path>, able (run, retry: not those with which that is
--     not done, as they were cancelled)
-- Values are compared by their one text (body.text): 100 is 1e2, 1.50 is 1.5. A string is equal to the number that it spells.
--
--   job_search.only()                     where these may be, for places.walk
--   job_search.wants, job_search.is_state for its visitor
--   job_search.batch()                    a cancelled batch for which some were not wanted; nil: none
--
-- uses: body cancelled dead_records heads job_text stamp types
local job_search = {}

local function is_time(value) return is_whole(tonumber(value)) end

-- Fields, and what says whether a value is one; true: any is.
local FIELDS = {id = true, schedule = true, worker = true, type = true, queue = true, batch = true, state = true, key = true, made = true, reason = true, able = true,
                ['enqueued>'] = is_time, ['enqueued<'] = is_time, ['died>'] = is_time, ['died<'] = is_time, ['due>'] = is_time, ['due<'] = is_time}

local asked    -- of one call: the fields and their values; states: a set; args: {path =, value =, plain =} each
local needles  -- texts that stand in each of those entries
local batch    -- for which some were not wanted

-- A value that a JSON text has letter by letter, unless its writer escaped what needs none.
local function is_plain(value) return #value > 0 and find(value, '^[%w_.-]+$') ~= nil end

-- A text that stands in each entry that has the value; number: unless it is written with an exponent. nil: nothing is known.
local function needle_of(value, text)
    if not text then return is_plain(value) and {text = value} or nil end
    return find(text, '^%-?[%d.]+$') and {text = match(text, '[%d.]+'), number = true} or nil
end

local function read_pair(field, value)
    local path = match(field, '^args%.(.+)$')
    if path then
        local text = body.text_of(value)
        asked.args[#asked.args + 1] = {path = field, value = value, text = text}
        needles[#needles + 1] = needle_of(value, text)
    elseif field == 'state' then
        asked.states = asked.states or {}
        asked.states[value] = true
    else
        asked[field] = value
    end
    local known = FIELDS[field]
    return path or known == true or known and known(value)
end

-- Makes the range of times from least to most us after now; nil: any.
local function range(least, most)
    return (least or most) and {from = least and us(now + least) or '-inf', to = most and us(now + most) or '+inf'} or nil
end

local function ago(text) return text and -tonumber(text) end

-- Leaves of the states that are asked for those in which a job has such a time.
local function narrow(...)
    local kept = {}
    for _, state in ipairs{...} do kept[state] = job_search.is_state(state) or nil end
    asked.states = kept
end

local function read_places()
    asked.older, asked.newer = tonumber(asked['enqueued>']), tonumber(asked['enqueued<'])
    asked.times = {dead = range(ago(asked['died<']), ago(asked['died>'])), later = range(tonumber(asked['due>']), tonumber(asked['due<']))}
    if asked.worker then narrow('running') end
    if asked.times.dead then narrow('dead') end
    if asked.times.later then narrow('scheduled', 'retry') end
end

function job_search.read(words, first, count)
    asked, needles, batch = {args = {}}, {}, nil
    for i = first, first + 2 * count - 2, 2 do
        if not words[i + 1] or not read_pair(words[i], words[i + 1]) then return nil end
    end
    read_places()
    if asked.id then needles[#needles + 1] = {text = '"' .. asked.id .. '"'} end
    if asked.schedule then needles[#needles + 1] = {text = '"' .. asked.schedule .. '.'} end
    local text = asked.key and body.text_of(asked.key)
    asked.key_of_value = text and body.key_of(text)
    asked.key_needle = asked.key and needle_of(asked.key, text)
    asked.in_head = asked.batch or asked.older or asked.newer or asked.reason
    return asked
end

-- A lane without a key has jobs too that name one.
local function keys_of_lanes()
    local keys, known = {}, {}
    for _, key in ipairs({asked.key, '', asked.made or asked.key, asked.key_of_value}) do
        if not known[key] then keys[#keys + 1], known[key] = key, true end
    end
    return keys
end

function job_search.only()
    return {id = asked.id, type = asked.type, queue = asked.queue, batch = asked.batch, worker = asked.worker, states = asked.states, times = asked.times,
            keys = asked.key and keys_of_lanes()}
end

function job_search.is_state(state) return not asked.states or asked.states[state] == true end

local function has(entry, needle)
    return find(entry, needle.text, 1, true) or find(entry, '\\u', 1, true) or needle.number and find(entry, '%d[eE][-+%d]')
end

local function has_needles(entry)
    for i = 1, #needles do
        if not has(entry, needles[i]) then return false end
    end
    return true
end

-- Of a job in a lane the key is that of the lane; else what stands at the path of its limits, or what it names itself.
local function is_key(entry, name, key)
    if not key then
        if asked.key_needle and not has(entry, asked.key_needle) then return false end
        name = name or body.type(entry)
        local path = name and types.load(name).path
        key = path and body.key(entry, path) or job_text.value(entry, 'key')
    end
    return key == asked.key or key == asked.made or asked.key_of_value ~= nil and key == asked.key_of_value
end

local function is_value(entry, arg)
    local value = job_text.value(entry, arg.path)
    local text = body.text(value)
    if text then return text == arg.value or text == arg.text end
    return value ~= nil and type(value) ~= 'table' and arg.value == 'null'
end

local function is_reason(attrs, reason)
    local _, failure = heads.failure(attrs)
    return dead_records.has_reason(reason or failure or '', asked.reason)
end

local AHEAD_US = 1000000 -- clocks of producers differ

-- What nobody knows is neither older nor newer, nor is what says a time that has not come.
local function is_age(attrs)
    local at = stamp.time(attrs)
    return at ~= nil and at <= now + AHEAD_US and (not asked.older or now - at >= asked.older) and (not asked.newer or now - at <= asked.newer)
end

local function is_head(entry, reason)
    local attrs = heads.attrs_of(entry)
    return (not asked.batch or heads.attr(attrs, 'b') == asked.batch) and (not asked.reason or is_reason(attrs, reason))
        and (not (asked.older or asked.newer) or is_age(attrs))
end

local function has_args(entry)
    for i = 1, #asked.args do
        if not is_value(entry, asked.args[i]) then return false end
    end
    return true
end

local function has_id(entry)
    local _, at = heads.attrs_of(entry)
    local id = body.id(entry, at)
    return (not asked.id or id == asked.id) and (not asked.schedule or match(id or '', '^(.+)%.[%w_-]+$') == asked.schedule)
end

-- A dead job that was cancelled alone runs again.
local function is_able(entry)
    local over = asked.able == 'retry' and cancelled.batch_ever(heads.attrs_of(entry)) or asked.able == 'run' and cancelled.by(entry)
    if over and over ~= '' then batch = over end
    return not over
end

function job_search.batch() return batch end

function job_search.wants(entry, reason, queue, name, key)
    if asked.queue and queue ~= asked.queue or asked.type and (name or body.type(entry)) ~= asked.type then return false end
    if #needles > 0 and not has_needles(entry) then return false end
    if asked.in_head and not is_head(entry, reason) then return false end
    return (not (asked.id or asked.schedule) or has_id(entry)) and (not asked.key or is_key(entry, name, key)) and has_args(entry)
        and (not asked.able or is_able(entry))
end

return job_search

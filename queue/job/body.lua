-- body: type, id, cost and key of a job, read from its entry or its body; nothing else knows how a body begins.
--
--   body.TYPE               a pattern: captures the type where a body begins, if Weir's producers wrote it
--   body.STAMPED_TYPE       the same of an entry whose head says only when the job was enqueued
--   body.id_and_type(entry) of one that Weir's producers wrote, whose head says no more than that; nil: of another
--   body.type(entry)        nil: it cannot be read
--   body.id(entry[, at])    nil: it has none. at: where the body begins, else it is a body alone
--   body.cost(entry)        nil: it names none, so that of its type counts
--   body.names_cost(entry)  may it name one? Cheap: it is asked of each job
--   body.key(entry, path)   what stands at that path, as the key of a lane: a name stands for itself, another text for its hash, nothing
--                           for `-`
--   body.shown_key(entry, path, key)  the text that makes that key, for people
--
-- Weir's producers write `id`, then `type`, then `key` and `cost` where there are any: patterns find those. Any other body is decoded, or
-- walked through where it is large. An odd body that a pattern misreads is found by the worker, which reads the whole.
--
-- uses: job_text lease stamp
local body = {}

local HEAD = '^@?[^;{]*;?' -- of an entry
local ID_TYPE = '{"id":"[^"]*","type":"[^"]*",'
local KEY, COST = HEAD .. ID_TYPE .. '"key":"([^"\\]*)"', HEAD .. ID_TYPE .. '"cost":(%d+)[,}]'
local KEY_COST = HEAD .. ID_TYPE .. '"key":"[^"]*","cost":(%d+)[,}]'

body.TYPE = '^{"id":"[^"\\]*","type":"([%w_.-]+)"'
body.STAMPED_TYPE = stamp.ALONE .. body.TYPE:sub(3)
local ENTRY_TYPE = HEAD .. body.TYPE:sub(2)

local ID_AND_TYPE = '^{"id":"([%w_.-]+)","type":"([%w_.-]+)"'
local STAMPED_ID_AND_TYPE = stamp.ALONE .. ID_AND_TYPE:sub(3)

function body.id_and_type(entry)
    return match(entry, byte(entry) == 64 and STAMPED_ID_AND_TYPE or ID_AND_TYPE) -- "@"
end

local function decoded(text)
    local ok, job = pcall(json_read, text)
    return ok and type(job) == 'table' and job or {}
end

function body.type(entry)
    local name = match(entry, ENTRY_TYPE)
    if name then return name end
    local _, at = lease.head_read(entry)
    name = decoded(sub(entry, at)).type
    return type(name) == 'string' and is_name(name) and name or nil
end

function body.id(entry, at)
    local id = match(entry, '^{"id":"([^"\\]*)"', at)
    if id then return id end
    id = decoded(at and sub(entry, at) or entry).id
    return type(id) == 'string' and id or nil
end

function body.names_cost(entry) return find(entry, '"cost"', 1, true) ~= nil end

function body.cost(entry)
    if not find(entry, '"cost"', 1, true) then return nil end
    local cost = tonumber(match(entry, COST) or match(entry, KEY_COST) or job_text.value(entry, 'cost'))
    return is_whole(cost, 1) and cost or nil
end

-- ---- Keys

-- Is that text the key of jobs without one, or what a hash looks like? (throttle/key.c)
local function looks_made(text) return text == '-' or #text == 42 and find(text, '^h%.[0-9a-f]+$') ~= nil end

local function key_name(value)
    local of = type(value)
    if of == 'string' then return is_name(value) and not looks_made(value) and value or 'h.' .. sha1(value) end
    if of == 'number' and value % 1 == 0 and value < 2 ^ 63 and value > -2 ^ 63 then return format('%.0f', value) end
    if of == 'boolean' then return tostring(value) end
    return '-'
end

function body.key(entry, path)
    return key_name(path == 'key' and match(entry, KEY) or job_text.value(entry, path))
end

local SHOWN = 128 -- bytes of a key that was hashed

function body.shown_key(entry, path, key)
    local value = job_text.value(entry, path)
    return type(value) == 'string' and key_name(value) == key and sub(value, 1, SHOWN) or key
end

return body

-- body: type, id, cost and key of a job, read from its entry or its body; nothing else knows how a body begins.
--
--   body.MOST               bytes of the largest body, JOB_BODY_MAX of queue/job/job.h
--   body.TYPE               a pattern: captures the type where a body begins, if Weir's producers wrote it
--   body.STAMPED_TYPE       the same of an entry whose head says only when the job was enqueued
--   body.id_and_type(entry) of one that Weir's producers wrote, whose head says no more than that; nil: of another
--   body.type(entry)        nil: it cannot be read
--   body.id(entry[, at])    nil: it has none. at: where the body begins, else it is a body alone
--   body.cost(entry)        plain slots; nil: it names none, so that of its type counts
--   body.costs(entry)       all that it says of its cost, as cost.lua has it; nil: nothing
--   body.names_cost(entry)  may it name one? Cheap: it is asked of each job
--   body.text(value)        the one text of a value, however it is written; nil: there is none, or it is null, or too long
--   body.key(entry, path)   what stands at that path, as the key of a lane: a text that is a name stands for itself, another for its hash,
--                           nothing for `-`
--   body.key_of(value)      the same of a value
--   body.text_of(written)   that of a number, object or array that is written so; nil: it is none. Digits are their own text, however many
--   body.shown_key(entry, path, key)  the text that makes that key, for people. A string that would name another value there is in quotes (throttle/key.h)
--
-- Weir's producers write `id`, then `type`, then `key` and `cost` where there are any: patterns find those. Any other body is decoded, or
-- walked through where it is large. An odd body that a pattern misreads is found by the worker, which reads the whole.
--
-- uses: cost heads job_text stamp
local body = {}

local HEAD = '^@?[^;{]*;?' -- of an entry
local ID_TYPE = '{"id":"[^"]*","type":"[^"]*",'
local KEY, COST = HEAD .. ID_TYPE .. '"key":"([^"\\]*)"', HEAD .. ID_TYPE .. '"cost":(%d+)[,}]'
local KEY_COST = HEAD .. ID_TYPE .. '"key":"[^"]*","cost":(%d+)[,}]'

body.MOST = 1024 * 1024
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
    local _, at = heads.attrs_of(entry)
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
    local slots = match(entry, COST) or match(entry, KEY_COST) or job_text.value(entry, 'cost')
    if type(slots) == 'table' then slots = slots.plain end
    slots = tonumber(slots)
    return is_whole(slots, 1) and slots or nil
end

function body.costs(entry)
    if not find(entry, '"cost"', 1, true) then return nil end
    local value = match(entry, COST) or match(entry, KEY_COST)
    return cost.read(value and tonumber(value) or job_text.value(entry, 'cost'))
end

-- ---- Keys

-- True when that text is the key of jobs without one, or looks like a hash. (throttle/key.c)
local function looks_made(text) return text == '-' or #text == 42 and find(text, '^h%.[0-9a-f]+$') ~= nil end

-- Writes a number. A whole number of 64 bits is its digits, and 0 has no sign. Another number has as few digits as tell it from all others: 1.5,
-- 1e20.
local function number_text(value)
    if value % 1 == 0 and value < 2 ^ 63 and value >= -2 ^ 63 then return value == 0 and '0' or format('%.0f', value) end
    if value ~= value or value == huge or value == -huge then return nil end
    local text
    for digits = 15, 17 do
        text = format('%.' .. digits .. 'g', value)
        if tonumber(text) == value then break end
    end
    return (text:gsub('e%+?(%-?)0*', 'e%1'))
end

local part_text

local function member_names(value)
    local names = {}
    for name in pairs(value) do names[#names + 1] = name end
    sort(names, by_bytes)
    return names
end

-- Writes members in the order of their names. An empty array is written as an empty object: decoded, they are the same.
local function table_text(value)
    local parts = {}
    if #value > 0 then
        for i = 1, #value do parts[i] = part_text(value[i]) end
        return '[' .. concat(parts, ',') .. ']'
    end
    for i, name in ipairs(member_names(value)) do parts[i] = part_text(name) .. ':' .. part_text(value[name]) end
    return '{' .. concat(parts, ',') .. '}'
end

function part_text(value)
    local of = type(value)
    if of == 'string' then return '"' .. value:gsub('[\\"]', '\\%0') .. '"' end
    if of == 'number' then return number_text(value) or 'null' end
    if of == 'table' then return table_text(value) end
    return of == 'boolean' and tostring(value) or 'null'
end

function body.text(value)
    local of = type(value)
    if of == 'string' then return value end
    if of == 'number' then return number_text(value) end
    if of == 'boolean' then return tostring(value) end
    local text = of == 'table' and table_text(value)
    return text and #text <= job_text.NESTED_MOST and text or nil
end

function body.text_of(written)
    local number = tonumber(match(written, '^%-?[1-9]%d*$'))
    if number and number <= 2 ^ 63 and number >= -2 ^ 63 then return written end
    if not find(written, '^%s*[%d{[-]') or find(written, '^%-?0%w') then return nil end
    local ok, list = pcall(json_read, '[' .. written .. ']')
    return ok and #list == 1 and body.text(list[1]) or nil
end

function body.key_of(value)
    local text = body.text(value)
    if not text then return '-' end
    return is_name(text) and not looks_made(text) and text or 'h.' .. sha1(text)
end

function body.key(entry, path)
    return body.key_of(path == 'key' and match(entry, KEY) or job_text.value(entry, path))
end

local SHOWN = 128 -- bytes that are shown of a key that was hashed

local function names_another(text, path)
    return text == '-' or byte(text) == 34 or path ~= 'key' and (body.text_of(text) or text) ~= text
end

function body.shown_key(entry, path, key)
    local value = job_text.value(entry, path)
    local text = body.text(value)
    if not text or body.key_of(value) ~= key then return key end
    return sub(type(value) == 'string' and names_another(text, path) and part_text(text) or text, 1, SHOWN)
end

return body

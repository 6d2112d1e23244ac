-- cost: what a job costs: a whole number of plain slots, or numbers by name beside it. Equal costs are one value, so that == compares them.
--
--   cost.read(value[, least])  what a job says, as JSON has it, 3 or {tokens = 900}; nil: that is no cost. least: of plain slots, else 1
--   cost.parse(text[, least])  the same of a text: "3", "3,images:2,tokens:900", "tokens:900"
--   cost.text(c)           that text: the plain slots where they are said, then names in order
--   cost.json(c)           the JSON that cost.read takes
--   cost.over(said, usual) what is said, and what is usual where nothing is said; usual: as this returns, or a number
--   cost.highest(c, other) of two said costs the higher part of each name; the other one, where these are too many names. c nil: other
--   cost.part(c, name)     how many slots of that name (nil: of plain ones); 1 where the cost does not say it
--   cost.say(c, name)      for people: "900 tokens", "3"
--
-- Said costs and whole ones are a number, or a table {plain = (nil: not said), parts = {name -> slots}, text =}, which is not to be changed.
-- uses:

local cost = {}

local MOST = 1000000000
local MOST_NAMES = 8
local MOST_KEPT = 1000

local known, count = {}, 0 -- text -> the cost

local function is_number(n, least) return type(n) == 'number' and is_whole(n, least) and n <= MOST end

local function is_part_name(name)
    return type(name) == 'string' and #name <= 32 and find(name, '^[a-z][a-z0-9_]*$') and name ~= 'plain' and name ~= 'jobs'
end

-- Returns the one value of such parts.
local function kept(plain, parts, names)
    sort(names, by_bytes)
    local words = {plain and digits(plain)}
    for _, name in ipairs(names) do words[#words + 1] = name .. ':' .. digits(parts[name]) end
    local text = concat(words, ',')
    if known[text] then return known[text] end
    if count >= MOST_KEPT then known, count = {}, 0 end
    known[text], count = {plain = plain, parts = parts, text = text, over = {}}, count + 1
    return known[text]
end

-- Makes a cost of what is said of each name, "plain" too; nil: it is none.
local function make(said, least)
    local plain, parts, names = said.plain, {}, {}
    if plain and not is_number(plain, least or 1) then return nil end
    for name, n in pairs(said) do
        if name ~= 'plain' then
            if not is_part_name(name) or not is_number(n, 0) then return nil end
            parts[name], names[#names + 1] = n, name
        end
    end
    if #names == 0 then return plain end
    if #names > MOST_NAMES then return nil end
    return kept(plain, parts, names)
end

function cost.read(value, least)
    if type(value) ~= 'table' then return is_number(value, least or 1) and value or nil end
    return make(value, least)
end

function cost.parse(text, least)
    local c = known[text]
    if c and (c.plain or huge) >= (least or 1) then return c end
    local plain, rest = match(text, '^(%d+),?(.*)$')
    local said = {plain = tonumber(plain)}
    local left = (',' .. (rest or text)):gsub(',([%l%d_]+):(%d+)', function(name, n)
        said[name] = tonumber(n)
        return ''
    end)
    if left ~= '' and left ~= ',' then return nil end
    c = make(said, least)
    return c and cost.text(c) == text and c or nil
end

function cost.text(c) return type(c) == 'table' and c.text or digits(c) end

function cost.json(c)
    if type(c) ~= 'table' then return digits(c) end
    return '{' .. ((c.plain and 'plain:' or '') .. c.text):gsub('([%l%d_]+):', '"%1":') .. '}'
end

local function parts_of(c)
    if type(c) == 'table' then return c.plain, c.parts end
    return c, {}
end

function cost.over(said, usual)
    if not said then return usual end
    if type(said) == 'number' and type(usual) == 'number' then return said end
    local plain, parts = parts_of(said)
    local usual_plain, usual_parts = parts_of(usual)
    local found = type(said) == 'table' and said.over[usual]
    if found then return found end
    local all, names = {}, {}
    for name, n in pairs(usual_parts) do all[name] = n end
    for name, n in pairs(parts) do all[name] = n end
    for name in pairs(all) do names[#names + 1] = name end
    local whole = kept(plain or usual_plain or 1, all, names)
    if type(said) == 'table' then said.over[usual] = whole end
    return whole
end

function cost.highest(c, other)
    if not c then return other end
    if type(c) == 'number' and type(other) == 'number' then return max(c, other) end
    local all = {}
    for _, one in ipairs{c, other} do
        local plain, parts = parts_of(one)
        all.plain = plain and max(plain, all.plain or 0) or all.plain
        for name, n in pairs(parts) do all[name] = max(n, all[name] or 0) end
    end
    return make(all) or other
end

function cost.part(c, name)
    if type(c) ~= 'table' then return name and 1 or c end
    return name and (c.parts[name] or 1) or c.plain or 1
end

function cost.say(c, name) return digits(cost.part(c, name)) .. (name and ' ' .. name or '') end

return cost

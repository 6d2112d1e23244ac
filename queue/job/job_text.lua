-- job_text: what stands at a path in a job, found without decoding the rest of it, which takes Redis 2 to 60 ns a byte.
--
--   job_text.value(entry, path)  what json_read has of its body at "member.member"; nil: nothing, or an object or array of more bytes
--                                than NESTED_MOST. Of a whole number beyond 2^53, which json_read rounds, its digits
--   job_text.beginning(entry, name, most)  that member of its body as it is written, cut behind so many bytes; nil: there is none
--
-- A large text is walked through from member to member: a string is passed over by searching for its end, an object or array by its
-- brackets. Where that is not sure (brackets in strings, too many members), the name is searched for, and the member is it if all that is
-- open before it, without strings, is its object. Where that is not sure either (escapes in names, several of that name), the text is
-- decoded. So a large text that is no JSON may have a value: what stands behind that is not looked at.
--
-- uses: heads
local job_text = {}

job_text.NESTED_MOST = 1024 -- a value is decoded, sorted and hashed in less than 0.2 ms
local SMALL = 1024        -- a text is decoded in less time than it is walked through
local MEMBERS_MOST = 500  -- members of one object
local ESCAPED_MOST = 2000 -- quotes within one string
local RUN_MOST = 100      -- backslashes before a quote

local UNSURE = {}

-- Finds the quote that ends the string which begins at that place; nil: not sure.
local function string_end(text, at)
    for _ = 1, ESCAPED_MOST do
        at = find(text, '"', at + 1, true)
        local first = at
        while first and byte(text, first - 1) == 92 and at - first < RUN_MOST do first = first - 1 end
        if not at or at - first == RUN_MOST then return nil end
        if (at - first) % 2 == 0 then return at end
    end
end

local BALANCED = {[123] = '^%b{}', [91] = '^%b[]'}

-- Takes out strings, whose brackets count for nothing; nil: where they end is not sure.
local function without_strings(part)
    if find(part, '\\"', 1, true) then part = part:gsub('\\.', '') end
    part = part:gsub('%b"":?', '')
    return not find(part, '"', 1, true) and part or nil
end

-- The text that this call looked at last, and where its values end: one asks for several of its members.
local passed_text, passed

local function forget() passed_text, passed = nil, nil end

local function find_nested_end(text, at)
    local pattern = BALANCED[byte(text, at)]
    local _, last = find(text, pattern, at)
    if not last or (find(text, '"', at, true) or huge) > last then return last end
    local bare = without_strings(sub(text, at, last))
    local _, bare_last = find(bare or '', pattern)
    return bare_last and bare_last == #bare and last or nil
end

local function nested_end(text, at)
    if passed_text ~= text then
        at_next_call(forget)
        passed_text, passed = text, {}
    end
    if passed[at] == nil then passed[at] = find_nested_end(text, at) or false end
    return passed[at] or nil
end

-- Finds the last byte of the value that begins at that place; nil: not sure.
local function value_end(text, at)
    local first = byte(text, at)
    if first == 34 then return string_end(text, at) end
    if BALANCED[first] then return nested_end(text, at) end
    local _, last = find(text, '^[%w.+-]+', at)
    return last
end

-- Returns where the value begins of the member whose name begins at `at`, when that is `name`. UNSURE: its escapes may spell it.
local function member_at(text, at, name)
    local last = byte(text, at) == 34 and string_end(text, at)
    local _, colon = find(text, '^%s*:%s*', (last or huge) + 1)
    if not colon then return UNSURE end
    local found = sub(text, at + 1, last - 1)
    if find(found, '\\u00', 1, true) then return UNSURE end
    return colon + 1, found == name
end

-- True when there is no such member from that place on. Its name consists of letters, which escapes can only spell as \u00XX.
local function is_nowhere(text, quoted, from)
    return not find(text, quoted, from, true) and not find(text, '\\u00', from, true)
end

-- Walks from member to member of the object at that place to the last one of that name; returns where its value begins, nil: it has none.
local function walk_to(text, at, name, quoted)
    local found
    at = match(text, '^%s*()', at + 1)
    if byte(text, at) == 125 then return nil end
    for _ = 1, MEMBERS_MOST do
        local value, is_it = member_at(text, at, name)
        if value == UNSURE then return UNSURE end
        if is_it then
            found = value
            if is_nowhere(text, quoted, value) then return value end
        end
        local last = value_end(text, value)
        local separator, behind = match(text, '^%s*([,}])%s*()', (last or huge) + 1)
        if not separator then return UNSURE end
        if separator == '}' then return found end
        at = behind
    end
    return UNSURE
end

-- True when the object at that place has the member whose name begins at `place`. A quote that no escape stands before, and that letters and a
-- quote follow, begins a string in any JSON.
local function has_member(text, at, place)
    local bare = without_strings(sub(text, at, place - 1))
    local _, last = find((bare or '') .. '}', '^%b{}')
    return bare and last == #bare + 1
end

-- Searches for a member from the end of the text; returns where its value begins, if it is the last thing that could be one of that name.
local function search_for(text, at, name, quoted)
    local place = match(text, '^.*()' .. quoted:gsub('%-', '%%-') .. '%s*:', at)
    if not place or byte(text, place - 1) == 92 or not has_member(text, at, place) then return UNSURE end
    return match(text, '^%s*:%s*()', place + #quoted)
end

-- Finds the last member of that name of the object at that place; returns where its value begins, nil: it has none.
local function find_member(text, at, name)
    local quoted = '"' .. name .. '"'
    if is_nowhere(text, quoted, at) then return nil end
    local value = walk_to(text, at, name, quoted)
    if value ~= UNSURE or find(text, '\\u00', at, true) then return value end
    return search_for(text, at, name, quoted)
end

local function is_rounded(value)
    return type(value) == 'number' and value % 1 == 0 and max(value, -value) >= 2 ^ 53 and max(value, -value) <= 2 ^ 63
end

local function token_value(token)
    local ok, list = pcall(json_read, '[' .. token .. ']')
    if not ok then return UNSURE end
    if is_rounded(list[1]) and find(token, '^%-?%d+$') then return token end
    return list[1]
end

-- Looks for the value at a path; `at` is where the body begins.
local function look_for(text, at, path)
    at = match(text, '^%s*()', at)
    for name in path:gmatch('[^.]+') do
        if byte(text, at) ~= 123 then return nil end
        at = find_member(text, at, name)
        if not at or at == UNSURE then return at end
    end
    local last = value_end(text, at)
    if not last then return UNSURE end
    if BALANCED[byte(text, at)] and last - at >= job_text.NESTED_MOST then return nil end
    return token_value(sub(text, at, last))
end

local function decoded(text, path)
    local ok, value = pcall(json_read, text)
    if not ok then return nil end
    for member in path:gmatch('[^.]+') do
        if type(value) ~= 'table' then return nil end
        value = value[member]
    end
    return value
end

-- Returns the digits in the text that were rounded to that number; where several were, the number.
local function digits_of(text, value)
    local found
    for token in text:gmatch('%-?%d+') do
        if #token > 15 and tonumber(token) == value and found ~= token then
            if found then return value end
            found = token
        end
    end
    return found or value
end

function job_text.value(entry, path)
    local _, at = heads.attrs_of(entry)
    local value
    if #entry <= SMALL then
        value = decoded(sub(entry, at), path)
        if not is_rounded(value) then return value end
    end
    value = look_for(entry, at, path)
    if value ~= UNSURE then return value end
    value = decoded(sub(entry, at), path)
    return is_rounded(value) and digits_of(entry, value) or value
end

function job_text.beginning(entry, name, most)
    local _, at = heads.attrs_of(entry)
    at = match(entry, '^%s*()', at)
    at = byte(entry, at) == 123 and find_member(entry, at, name)
    local last = at and at ~= UNSURE and value_end(entry, at)
    if not last then return nil end
    return last - at < most and sub(entry, at, last) or sub(entry, at, at + most - 1) .. '...'
end

return job_text

-- document: what callers of the protocol send, one JSON object, checked as strictly as queue/job/json.c checks, but for numbers within args that a
-- later member of the same name hides; and what they are answered.
--
--   document.read(text, known, what)   the members, as json_read has them; nil and the refusal: it is wrong. known: name -> {is = (value, digits),
--                                      must_be =}; what: a word for messages
--   document.is_value(text[, is_plain])  true for one JSON value, as it may stand in a document; false and why. is_plain: it is ASCII, without escapes and
--                                      control characters, as is known
--   document.strictly(f, ...)          calls f, which asks is_value often
--   document.text_of(name)             the value of a member as it stands in the text that was read last
--   document.begin_of(name)            the place of the quote at which that member begins; nil: they are not known without a walk
--   document.members()                 {name =, from =, first =, last =} of each member of that text: of the name's quote, and of its value
--   document.refused(kind, why, member, line)   the answer to who is refused
--   document.fault(err)                the same of an error that a script replied; nil: none of ours
--   document.missing(what, name)       the refusal that it is not there
--   document.made()                    a name that nobody had before
--   document.seconds(us)               as a JSON number
--   document.text(words)               as a JSON string
--   document.elsewhere(p)              the answer of what is to be asked of another partition
--
-- uses: cost
local document = {}


document.MOST = 1048576

local DEPTH = 512 -- levels, as JSON_DEPTH

-- ---- Is it JSON?

local has_numbers, has_large -- of a value: whether some of its numbers need a look at their digits

local function look_at(values)
    for _, value in pairs(values) do
        local of = type(value)
        if of == 'number' then
            has_numbers = true
            if value >= 2 ^ 63 or value <= -2 ^ 63 then has_large = true end
        elseif of == 'table' then
            look_at(value)
        end
    end
end

-- What json_read takes for a number and JSON does not, or beyond what others can read.
local function wrong_number(bare)
    for token in bare:gmatch('%-?%.?%d[%w.+-]*') do
        if find(token, '^%-?%.') or find(token, '%.%D') or find(token, '%.$') then return 'a digit is missing' end
        local value = tonumber(token)
        if value == huge or value == -huge then return 'a number too large for a double' end
        local digits = match(token, '^%-?(%d+)$')
        if digits and (#digits > 19 or #digits == 19 and (digits > '9223372036854775808'
            or digits == '9223372036854775808' and byte(token) ~= 45)) then
            return 'an integer that does not fit 64 bits'
        end
    end
end

-- Characters of two to four bytes, the frequent ones first: shortest form, no surrogate, at most U+10FFFF.
local CHARACTERS = {'[\225-\236\238\239][\128-\191][\128-\191]', '[\194-\223][\128-\191]', '\224[\160-\191][\128-\191]',
                    '\237[\128-\159][\128-\191]', '\240[\144-\191][\128-\191][\128-\191]', '[\241-\243][\128-\191][\128-\191][\128-\191]',
                    '\244[\128-\143][\128-\191][\128-\191]'}

local function is_utf8(text)
    for _, character in ipairs(CHARACTERS) do
        if not find(text, '[\128-\255]') then return true end
        text = text:gsub(character, ' ')
    end
    return not find(text, '[\128-\255]')
end

local function count(text, class)
    local _, n = text:gsub(class, '')
    return n
end

-- What json_read takes within strings and JSON does not. bare: without them.
local function wrong_string(text, unescaped, bare)
    if find(text, '\\u0000', 1, true) and find(text:gsub('\\\\', ''), '\\u0000', 1, true) then return '\\u0000 is not supported' end
    local CONTROL = '[%z\1-\31]'
    if find(text, '%z') then return 'a NUL byte' end -- where json_read thinks that the text ends
    if find(text, CONTROL) and count(unescaped, CONTROL) ~= count(bare, CONTROL) then return 'a control character in a string' end
    return not is_utf8(text) and 'invalid UTF-8' or nil
end

local is_strict = false

-- Calls f, in which json_read takes no number that JSON does not know. Others who use the same library get back what they have set.
function document.strictly(f, ...)
    local loose, was_strict = json_numbers(), is_strict
    json_numbers(false)
    is_strict = true
    local ok, first, second, third = pcall(f, ...)
    is_strict = was_strict
    json_numbers(loose)
    if not ok then error(first) end
    return first, second, third
end

-- Decodes; what has more levels is no value.
local function decode(text, levels)
    local depth = #text > levels and json_depth()
    if depth then json_depth(levels) end
    local ok, value = pcall(json_read, text)
    if depth then json_depth(depth) end
    return ok, value
end

local DOTS_MOST = 20 -- more cost as much as a look at the numbers alone

-- True when a point may stand in a number without a digit on both sides.
local function has_bare_point(text)
    local at = 0
    for _ = 1, DOTS_MOST do
        at = find(text, '.', at + 1, true)
        if not at then return false end
        local before, behind = byte(text, at - 1) or 0, byte(text, at + 1) or 0
        if before == 45 or before >= 48 and before <= 57 and (behind < 48 or behind > 57) then return true end
    end
    return true
end

-- Returns what json_read took and JSON does not.
local function wrong_value(text, value, is_plain)
    has_numbers, has_large = false, false
    look_at(type(value) == 'table' and value or {value})
    if is_plain and not has_large and not (has_numbers and has_bare_point(text)) then return nil end
    local unescaped = is_plain and text or text:gsub('\\.', '')
    local bare = unescaped:gsub('"[^"]*"', '')
    return not is_plain and wrong_string(text, unescaped, bare) or has_numbers and wrong_number(bare) or nil
end

local BOM = '\239\187\191'

-- Returns whether it is JSON, the value or why it is none, and whether only quotes are to be looked at in it.
local function checked(text, levels, is_plain)
    local ok, value = decode(text, levels)
    if not ok then
        if sub(text, 1, 3) == BOM then return false, 'begins with a byte order mark (BOM); save it without one' end
        value = type(value) == 'string' and value or ''
        return false, 'not JSON: ' .. (match(value, 'found (.*)$') or find(value, 'nested', 1, true) and 'nested too deep' or 'not UTF-8')
    end
    is_plain = is_plain or find(text, '^[ -~]*$') and not find(text, '\\', 1, true)
    local wrong = wrong_value(text, value, is_plain)
    if wrong then return false, 'not JSON: ' .. wrong end
    return true, value, is_plain
end

function document.is_value(text, is_plain)
    if not is_strict then return document.strictly(checked, text, DEPTH - 1, is_plain) end
    return checked(text, DEPTH - 1, is_plain)
end

-- ---- Where its members stand

local text, places, walked -- of the text that was read last; places: name -> its quote, where that is sure

local function string_end(at)
    local first
    repeat
        at = find(text, '"', at + 1, true)
        first = at
        while byte(text, first - 1) == 92 do first = first - 1 end
    until (at - first) % 2 == 0
    return at
end

local OPENS, CLOSES = {[91] = true, [123] = true}, {[93] = true, [125] = true}

-- Finds the end of a value in a text that is JSON.
local function value_end(at)
    local first, depth = byte(text, at), 0
    if first == 34 then return string_end(at) end
    if not OPENS[first] then
        local _, last = find(text, '^[%w.+-]+', at)
        return last
    end
    repeat
        local c = byte(text, at)
        if c == 34 then at = string_end(at) elseif OPENS[c] then depth = depth + 1 elseif CLOSES[c] then depth = depth - 1 end
        if depth == 0 then return at end
        at = find(text, '["%[%]{}]', at + 1)
    until false
end

function document.members()
    if walked then return walked end
    local at = match(text, '^%s*{%s*()')
    walked = {}
    while byte(text, at) == 34 do
        local closing = string_end(at)
        local name = sub(text, at + 1, closing - 1)
        if find(name, '\\', 1, true) then name = json_read('["' .. name .. '"]')[1] end
        local first = match(text, '^%s*:%s*()', closing + 1)
        walked[#walked + 1] = {name = name, from = at, first = first, last = value_end(first)}
        at = match(text, '^%s*,?%s*()', walked[#walked].last + 1)
    end
    return walked
end

function document.begin_of(name) return places[name] end

function document.text_of(name)
    local at = places[name]
    local token = at and match(text, '^"%s*:%s*([%w.+-]+)', at + #name + 1)
    if token then return token end
    for _, m in ipairs(document.members()) do
        if m.name == name then return sub(text, m.first, m.last) end
    end
end

local function twice()
    local seen = {}
    for _, m in ipairs(document.members()) do
        if seen[m.name] then return m.name end
        seen[m.name] = true
    end
end

-- ---- Answers

-- Returns the first bytes of somebody else's text, in whole characters.
local function beginning(words)
    local cut = sub(words, 1, 60)
    return find(words, '^[\128-\191]', 61) and (cut:gsub('[\192-\255][\128-\191]*$', '')) or cut
end

function document.refused(kind, why, member, line)
    return '{"refused":"' .. kind .. '"' .. (member and ',"member":' .. json_write(beginning(member)) or '')
        .. (line and ',"line":' .. us(line) or '') .. ',"why":' .. json_write(why) .. '}'
end

local function wrong_member(what, name, known)
    local must_be, value = known[name] and known[name].must_be, document.text_of(name)
    if must_be and byte(value) == 123 then must_be = known[name].by_name or must_be end
    local why = must_be and format('"%s" must be %s, not %s', name, must_be, beginning(value))
        or format('"%s" is no member of it', beginning(name)) .. (known['args'] and '; what the handler needs goes into "args" or "meta"' or '')
    return nil, document.refused('invalid', format('wrong %s: ', what) .. why, name)
end

-- Returns whether each member is known, right, and there once. One whose name stands in the text once is.
local function wrong_members(members, known, what, is_plain)
    local exact = not is_plain
    for name in pairs(members) do
        if not known[name] then return name end
        local at = find(text, '"' .. name .. '"', 1, true)
        if not at or find(text, '"' .. name .. '"', at + 1, true) then exact = true end
        places[name] = at
    end
    if not exact then return nil end
    for name in pairs(members) do places[name] = nil end
    return nil, twice()
end

-- Returns the name of the first member, as they stand, that is unknown or wrong.
local function first_wrong(members, known)
    for _, m in ipairs(document.members()) do
        if not known[m.name] or not known[m.name].is(members[m.name], m.name) then return m.name end
    end
end

function document.read(given, known, what)
    if #given > document.MOST then
        return nil, document.refused('invalid', format('wrong %s: it has %d bytes: at most %d are allowed; keep large data elsewhere and ' ..
                                                           'enqueue where it is', what, #given, document.MOST))
    end
    local ok, members, is_plain = document.strictly(checked, given, DEPTH)
    if not ok then return nil, document.refused('invalid', members) end
    if not find(given, '^%s*{') then return nil, document.refused('invalid', format('not a JSON object: a %s begins with {', what)) end
    text, places, walked = given, {}, nil
    local unknown, again = wrong_members(members, known, what, is_plain)
    again = again or unknown and twice()
    if again then
        return nil, document.refused('invalid', format('wrong %s: "%s" comes twice', what, beginning(again)), again)
    end
    if unknown then return wrong_member(what, first_wrong(members, known), known) end
    for name, value in pairs(members) do
        if not known[name].is(value, name) then return wrong_member(what, first_wrong(members, known), known) end
    end
    return members
end

function document.missing(what, name)
    return document.refused('invalid', format('wrong %s: "%s" is missing', what, name), name)
end

function document.fault(err)
    local p = match(err, '^WRONG%-PARTITION (%d+)')
    if p then return document.elsewhere(p) end
    if sub(err, 1, 9) == 'WRONGTYPE' then return document.refused('unavailable', sub(err, 11)) end
    return document.refused('invalid', (err:gsub('^WEIR ', '')))
end

function document.elsewhere(p) return '{"elsewhere":"' .. P:gsub('{%d+}:$', '{' .. p .. '}:') .. '"}' end

function document.text(words) return json_write(words) end

function document.seconds(t)
    local part = t % 1000000
    return part == 0 and digits(t / 1000000) or format('%d.%06d', (t - part) / 1000000, part)
end

-- Names that nobody had before are digests of a word of this Redis, since it was loaded: not to be guessed, as they sign heads and end holds of others.
local word, names = nil, 0

function document.made()
    read_clock()
    word = word or sha1(us(now) .. tostring({}))
    names = names + 1
    return sub(sha1(word .. digits(names)), 1, 24)
end

-- ---- Kinds of members

function document.is_name(value) return type(value) == 'string' and is_name(value) end

function document.is_any() return true end

-- A number that is written as digits alone.
function document.is_digits(value, name, least, most)
    return type(value) == 'number' and value >= least and value <= most and find(document.text_of(name), '^%d+$')
end

-- True for a number that is written as digits alone, or an object of such by name, each once. least: of plain slots.
local function is_cost(value, name, least)
    if type(value) ~= 'table' then return document.is_digits(value, name, least, 1000000000) end
    local left, count = document.text_of(name):gsub('"[%l%d_]+"%s*:%s*%d+', '')
    for _ in pairs(value) do count = count - 1 end
    return count == 0 and find(left, '^{[%s,]*}$') and cost.read(value, least) ~= nil
end

-- Returns the kind of a member that is a cost.
function document.cost(least)
    return {is = function(value, name) return is_cost(value, name, least) end, must_be = 'a whole number from ' .. least .. ' to 1000000000',
            by_name = 'whole numbers to 1000000000 by 1 to 8 names of a-z 0-9 _, each once, none of them jobs'}
end

return document

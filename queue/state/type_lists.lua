-- type_lists: the types that a worker runs. It names them once, as it begins, in what it says of itself; its claims name their digest only.
--
-- The names are kept between calls by their digest, so workers with the same types have one list. A worker that begins has very many
-- types read a page at a time. A list that is not kept (there are too many, or Redis has forgotten its functions) is read again, all of it,
-- from what the worker said.
--
-- A worker may name patterns beside types (pattern.lua). A name goes before a pattern, a longer pattern before a shorter one.
--
--   type_lists.read(info)          -> the digest of the types in what a worker says of itself (registry.info), and their names; in place of
--                                  the names nil: this call has read enough, call it again
--   type_lists.all(info)           -> their list, all of them: {names = {name or pattern, ...}, set = {[name] = true}, patterns = {longest, ...}}
--   type_lists.of(worker, digest)  -> the same; not to be changed; nil: the worker did not name them
--   type_lists.given(words, first) -> the list of such words
--   type_lists.word(list, name)    -> the name or pattern by which its worker runs that type; nil: it does not
--
-- uses: pattern registry
local type_lists = {}

local PAGE = 500    -- names that a call of read() reads: 1 ms
local ENOUGH = 250  -- with so many names nothing more is done with them in that call
local MOST = 100000 -- names kept, of all lists: some 10 MB

local kept, count = {}, 0 -- digest -> list, which has at: where in the text its next name stands; nil: all were read

local function list_of(digest)
    if not kept[digest] then kept[digest] = {names = {}, set = {}, patterns = {}, at = 1} end
    return kept[digest]
end

local function is_longer(a, b) return #a > #b end

local function add(list, word)
    list.names[#list.names + 1], list.set[word] = word, true
    if not pattern.is(word) then return end
    list.patterns[#list.patterns + 1] = word
    sort(list.patterns, is_longer)
end

local function is_word(text) return is_name(text) or text == '*' or pattern.is(text) and is_name(sub(text, 1, -2)) end

-- Reads some more names of a text, a JSON array; returns how many.
local function read_on(list, text, most)
    local at, found = list.at, 0
    while at and found < most do
        local _, last, word = find(text, '"([%w_.*-]+)"', at)
        if word and is_word(word) then
            found = found + 1
            add(list, word)
        end
        at = last and last + 1
    end
    list.at, count = at, count + found
    return found
end

-- Forgets other lists where there are too many, but for those that are being read: they would never be read to their end.
local function bound(digest, list)
    if count <= MOST then return end
    local before = kept
    kept, count = {[digest] = list}, #list.names
    for other, one in pairs(before) do
        if one.at and one ~= list and count + #one.names <= MOST then kept[other], count = one, count + #one.names end
    end
end

-- Returns the list, and how many names were read for it.
local function read(text, digest, most)
    local list, found = list_of(digest), 0
    if list.at then
        found = read_on(list, text, most)
        bound(digest, list)
    end
    return list, found
end

function type_lists.read(info)
    local text = registry.types_text(info)
    local digest = sha1(text)
    local list, found = read(text, digest, PAGE)
    return digest, not list.at and found < ENOUGH and list.names or nil
end

function type_lists.all(info)
    local text = registry.types_text(info)
    return (read(text, sha1(text), huge))
end

function type_lists.of(worker, digest)
    local list = kept[digest]
    if list and not list.at then return list end
    local text = registry.types_text(registry.info(worker))
    return sha1(text) == digest and (read(text, digest, huge)) or nil
end

function type_lists.given(words, first)
    local list = {names = {}, set = {}, patterns = {}}
    for i = first, #words do add(list, words[i]) end
    return list
end

function type_lists.word(list, name)
    if list.set[name] then return name end
    for i = 1, #list.patterns do
        if pattern.matches(list.patterns[i], name) then return list.patterns[i] end
    end
    return nil
end

return type_lists

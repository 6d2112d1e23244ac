-- handled: the types that a worker runs. It names them once, as it begins, in what it says of itself; its claims name their digest only.
--
-- The names are kept between calls by their digest, so workers with the same types have one list. A list that is not kept (Redis was
-- started again, or has too many) is read again from what the worker said.
--
--   handled.digest(said)        -> the digest of the types in what a worker says of itself, as registry.read reads it
--   handled.of(worker, digest)  -> {names = {name, ...}, set = {[name] = true}}; not to be changed; nil: the worker did not name them
--
-- uses: registry
local handled = {}

local MOST = 100000 -- names kept, of all lists: some 10 MB

local kept, count = {}, 0 -- digest -> list

local function names_of(said)
    local names = {}
    for _, name in ipairs(type(said.types) == 'table' and said.types or {}) do
        if type(name) == 'string' and is_name(name) then names[#names + 1] = name end
    end
    return names
end

local function keep(digest, names)
    if count + #names > MOST then kept, count = {}, 0 end
    local list = {names = names, set = {}}
    for _, name in ipairs(names) do list.set[name] = true end
    kept[digest], count = list, count + #names
end

function handled.digest(said)
    local names = names_of(said)
    local digest = sha1(concat(names, ','))
    if not kept[digest] then keep(digest, names) end
    return digest
end

function handled.of(worker, digest)
    if not kept[digest] and handled.digest(registry.said_by(worker)) ~= digest then return nil end
    return kept[digest]
end

return handled

-- moves: types and limits that go to live on another partition. They leave here in one step, which also writes a record of them to the jobs
-- that are sent there (away.lua). It arrives there before any of their jobs, once.
--
--   homes     hash: name -> partition. Here it says from now on where the name lives; there, that it lives there
--   a record  "<number> ! <partition it comes from>\n" and lines:
--               limit <name> <us> <rules>     its rules; its gates there open so much later, when those here would be as if never used
--               weight <limit>/<key> <n>
--               pause <limit>/<key> <pause>   of key_pauses
--               type <name> <attributes>      types.attributes
--               home <name> <partition>       for the partition that is asked first for the name
--
-- uses: bell gate key_pauses partition revisions rules types
local moves = {}

local function write_limit(name, rest)
    local closed_us, text = match(rest, '^(%d+) (.+)$')
    if not closed_us or not rules.read(text) then return end
    local till = now + tonumber(closed_us)
    if till > now then
        local weights = sub(text, -10) == ' weights:1'
        text = (weights and sub(text, 1, -11) or text) .. format(' pause:%d/%d', till, now) .. (weights and ' weights:1' or '')
    end
    call('HSET', P .. 'limits', name, text)
end

local write = {}

local function write_home(name, to)
    call('HSET', P .. 'homes', name, us(to))
    revisions.renew('home', name)
end

function write.limit(name, rest)
    write_limit(name, rest)
    revisions.renew('limit', name)
    write_home(name, partition.own())
end

function write.weight(field, n) call('HSET', P .. 'weights', field, n) end

function write.pause(field, text)
    local limit, key = match(field, '^([^/]+)/(.+)$')
    local set = limit and rules.read(call('HGET', P .. 'limits', limit) or '')
    if set and set.path then key_pauses.write(limit, set, key, text) end
end

function write.type(name, attributes)
    local t, known = types.parse(name, attributes), types.parse(name, call('HGET', P .. 'types', name) or '')
    known.use, known.cost = t.use, t.cost
    types.write(known)
    revisions.renew('type', name)
    write_home(name, partition.own())
end

-- What is asked first for the name is told where it is, unless it is there.
function write.home(name, to)
    if tonumber(to) ~= partition.own() then write_home(name, tonumber(to)) end
end

-- The text of a record: its lines.
function moves.arrive(text)
    for line in text:gmatch('[^\n]+') do
        local word, name, rest = match(line, '^(%a+) ([%w_./-]+) ?(.*)$')
        if write[word] then write[word](name, rest) end
    end
    gate.save()
    bell.ring()
end

return moves

-- record: what a worker has counted since it last said so is added to the slots of its types and limits. A worker sends it with a turn that goes
-- anyway. Rows of what lives on another partition by now, and those whose key is of a wrong kind, are passed over.
--
-- KEYS[1] prefix
-- ARGV: now, rows: what, name, code, count, code, count ... ''
--       what: t a type, l a limit; codes as in queue/state/minutes.lua. s the seconds of a limit: a code of starts is the tenth of a second
--       since 1970, of lost slots N, E, H or L and the second
-- role: worker
-- reply: [what is wrong with a key of a wrong kind, ...]
-- format: any
-- uses: check minutes partition

local WORDS_MOST = 4000 -- a worker sends 3,000 at most, which take 4 ms
local REASON_MOST = 80   -- bytes of a code that is one

local function is_code(what, code)
    if what == 's' then return is_whole(tonumber(match(code, '^[NEHL]?(%d+)$'))) end
    if what == 't' then return find(code, '^[sdrxct]$') or find(code, '^[RAKCPE][a-zA-F+]$') end
    return find(code, '^[gnehl]$') or #code <= REASON_MOST and find(code, '^:[%w%%_.-]*=$')
end

-- The row that begins at ARGV[i], and where the next one does; nil: it cannot be read.
local function read_row(ARGV, i)
    local row = {what = ARGV[i], name = ARGV[i + 1], counts = {}}
    if not find(row.what, '^[tls]$') or not is_name(row.name) then return nil end
    i = i + 2
    while ARGV[i] ~= '' do
        local code, count = ARGV[i], tonumber(ARGV[i + 1])
        if not code or not is_code(row.what, code) or not is_whole(count) then return nil end
        row.counts[#row.counts + 1] = code
        row.counts[#row.counts + 1] = count
        i = i + 2
    end
    return row, i + 1
end

local function read_rows(ARGV)
    local rows, i = {}, 2
    while i <= #ARGV do
        rows[#rows + 1], i = read_row(ARGV, i)
        if not i then return nil end
    end
    return rows
end

-- Returns what is wrong with its key; nil: nothing.
local function write(row)
    if row.what == 's' then
        return not minutes.add_seconds(row.name, row.counts) and check.wrong_kind('ribbon:' .. row.name, 'hash') or nil
    end
    local ring = row.what .. '/' .. row.name
    return not minutes.add(ring, row.counts) and check.wrong_kind('minutes:' .. ring, 'hash') or nil
end

local function record(ARGV)
    local rows = #ARGV <= WORDS_MOST and read_rows(ARGV)
    if not rows then return refuse('record: wants now and rows of what, name, code, count, ... and an empty word') end
    local wrong = {}
    for _, row in ipairs(rows) do
        if not partition.elsewhere(row.name) then wrong[#wrong + 1] = write(row) end
    end
    return wrong
end

return record

-- record: what a worker has counted since it last said so is added to the slots of its types and limits. A worker sends it with a turn that goes
-- anyway. Rows of what lives on another partition by now, and those whose key is of a wrong kind, are passed over.
--
-- ARGV: now, rows: what, name, counts
--       what: t a type, l a limit; counts as in the slots of queue/state/minutes.lua, each code once. s the seconds of a limit: a code of starts is
--       the tenth of a second since 1970, of lost slots N, E, H or L and the second; and "="
-- role: worker
-- reply: [what is wrong with a key of a wrong kind, ...]
-- format: any
-- uses: check minutes partition

local ROWS_MOST = 1000   -- a worker sends a third as many at most: 3 ms
local BYTES_MOST = 16384 -- of the counts of a row

local COUNTS = {t = {' [sdrxct]%d+', ' [RAKCPE][a-zA-F+]%d+'}, l = {' [gnehluvfw]%d+', ' :[%w%%_.-]*=%d+'}, s = {' [NEHL]?%d+=%d+'}}
local TOO_LARGE = '%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d' -- a count of so many digits is not exact

local function are_counts(what, text)
    if not COUNTS[what] or #text > BYTES_MOST or find(text, TOO_LARGE) then return false end
    for _, pattern in ipairs(COUNTS[what]) do text = text:gsub(pattern, '') end
    return text == ''
end

local function is_row(what, name, counts) return is_name(name) and counts and are_counts(what, counts) end

-- Writes the counts of a type or limit; returns what is wrong with its key, nil: nothing.
local function write(what, name, counts)
    if what == 's' then
        return not minutes.add_seconds(name, counts) and check.wrong_kind('ribbon:' .. name, 'hash') or nil
    end
    local ring = what .. '/' .. name
    return not minutes.add(ring, counts) and check.wrong_kind('minutes:' .. ring, 'hash') or nil
end

local function record(ARGV)
    local wrong, fits = {}, #ARGV <= 1 + 3 * ROWS_MOST
    for i = 2, #ARGV, 3 do fits = fits and is_row(ARGV[i], ARGV[i + 1], ARGV[i + 2]) end
    if not fits then return refuse('record: wants now and rows of what, name, counts') end
    for i = 2, #ARGV, 3 do
        if not partition.elsewhere(ARGV[i + 1]) then wrong[#wrong + 1] = write(ARGV[i], ARGV[i + 1], ARGV[i + 2]) end
    end
    return wrong
end

return record

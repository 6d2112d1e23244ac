-- away_read: the first of the jobs that are to be carried to another partition.
--
-- KEYS[1] prefix
-- ARGV: now, the partition
-- role: worker
-- reply: [ record, ... ], as they are kept; none: there is nothing to carry
-- writes: nothing
-- format: any
-- uses: check slices

local MOST = 200

local function away_read(ARGV)
    local to = ARGV[2]
    if #ARGV ~= 2 or not is_whole(tonumber(to)) then return refuse('away_read: wants a partition') end
    local wrong = check.wrong_kind('away:' .. to, 'list')
    if wrong then return check.refuse_key(wrong) end
    return (slices.read('LRANGE', P .. 'away:' .. to, 0, MOST, slices.load(nil, true, 16)))
end

return away_read

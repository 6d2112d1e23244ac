-- batch_place: on which partition a batch with a name is: that of its first job, for as long as it is remembered. Asked of the partition of
-- its name, where the namespace has several.
--
-- ARGV: now, name, partition ('': only looks)
-- role: producer
-- reply: [ its partition; '' when it has none ]
-- format: any
-- uses: check ends

local function batch_place(ARGV)
    local name, wanted = ARGV[2], ARGV[3]
    if #ARGV ~= 3 or not is_name(name) or wanted ~= '' and not is_whole(tonumber(wanted)) then
        return refuse('batch_place: wants a name and a partition')
    end
    local wrong = check.wrong_kind('home:' .. name, 'string')
    if wrong then return check.refuse_key(wrong) end
    local place = call('GET', P .. 'home:' .. name) or wanted
    if place ~= '' then call('SET', P .. 'home:' .. name, place, 'PX', us(2 * ends.KEPT_MS)) end
    return {place}
end

return batch_place

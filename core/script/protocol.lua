-- protocol: tells programs that speak it (doc/protocol.md) by which function each verb is called.
--
--   about: hash: protocol -> {"protocol":1,"verbs":{<verb>: the words of the call, before the verb and the document}}
--
--   protocol.verbs()   their names
--   protocol.write()   each worker as it begins: where two versions are at work, either will do
local protocol = {}

protocol.VERSION = '1'

-- verb -> its function, and the role that calls it.
local VERBS = {
    {'about', 'call_about'}, {'batch', 'call_produce', 'producer'}, {'bulk', 'call_produce', 'producer'}, {'cancel', 'call_cancel', 'operator'},
    {'end', 'call_take', 'taker'}, {'enqueue', 'call_produce', 'producer'}, {'hold', 'call_take', 'taker'}, {'job', 'call_job'},
    {'rate', 'call_take', 'taker'}, {'renew', 'call_take', 'taker'}, {'take', 'call_take', 'taker'},
}

function protocol.verbs()
    local names = {}
    for i, verb in ipairs(VERBS) do names[i] = verb[1] end
    return names
end

local function words(verb)
    local key = verb[3] and concat{P, 'role:', verb[3]} or P -- not read or written
    return format('"%s":["%s","%s","1","%s",""]', verb[1], verb[3] and 'FCALL' or 'FCALL_RO', LIBRARY .. verb[2], key)
end

function protocol.write()
    local list = {}
    for i, verb in ipairs(VERBS) do list[i] = words(verb) end
    call('HSET', P .. 'about', 'protocol', '{"protocol":' .. protocol.VERSION .. ',"verbs":{' .. concat(list, ',') .. '}}')
end

return protocol

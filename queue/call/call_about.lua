-- call_about: the verb of the protocol that says what there is.
--
-- ARGV: now, verb ("about"), document (doc/protocol.md)
-- role: viewer producer taker
-- reply: JSON, as doc/protocol.md has it
-- writes: nothing
-- format: any
-- uses: document partition protocol

local function call_about(ARGV)
    if #ARGV ~= 3 or ARGV[2] ~= 'about' then return refuse('call_about: wants now, about and a document') end
    local given, refusal = document.read(ARGV[3], {}, 'about')
    if not given then return refusal end
    return '{"protocol":' .. protocol.VERSION .. ',"verbs":["' .. concat(protocol.verbs(), '","') .. '"],"capabilities":["costs","hold","result"],"partitions":'
        .. digits(partition.count()) .. '}'
end

return call_about

-- doctor_workers: the libraries of functions that the workers of this namespace use.
--
-- KEYS[1] prefix
-- ARGV: now
-- reply: [ digest, ... ], one for each worker; '' where one does not say
-- writes: nothing

local function doctor_workers()
    local digests = {}
    for _, id in ipairs(call_safe('ZRANGE', P .. 'workers', '0', '-1')) do
        local info = call_safe('HGET', P .. 'active:' .. id, '@')
        digests[#digests + 1] = match(type(info) == 'string' and info or '', '"library":"(%x+)"') or ''
    end
    return digests
end

return doctor_workers

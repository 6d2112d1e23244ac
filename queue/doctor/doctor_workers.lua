-- doctor_workers: which of these libraries of functions no worker of this namespace uses. One that does not say may use any.
--
-- ARGV: now, digest, ...
-- role: viewer
-- reply: JSON: all: how many were given; unused: those
-- writes: nothing

local function doctor_workers(ARGV)
    local used, silent, unused = {}, false, {}
    for _, id in ipairs(call_safe('ZRANGE', P .. 'workers', '0', '-1')) do
        local info = call_safe('HGET', P .. 'active:' .. id, '@')
        local digest = match(type(info) == 'string' and info or '', '"library":"(%x+)"')
        used[digest or ''] = true
        silent = silent or not digest
    end
    for i = 2, #ARGV do
        if not silent and not used[ARGV[i]] then unused[#unused + 1] = ARGV[i] end
    end
    return answer{all = #ARGV - 1, unused = unused}
end

return doctor_workers

-- rate_log: what people have done, the newest first; changes nothing.
--
-- ARGV: now
-- role: viewer
-- reply: JSON: {"changes": [text, ...], "acts": [text, ...]}, of limits and types, and of all else; each text is JSON: {"at": seconds,
--        "by": "user@host", "what": "..."}
-- writes: nothing

local function rate_log(ARGV)
    if #ARGV > 1 then return refuse('rate_log: wants now') end
    return answer{changes = call('LRANGE', P .. 'changes', 0, -1), acts = call('LRANGE', P .. 'acts', 0, -1)}
end

return rate_log

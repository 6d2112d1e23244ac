-- rate_log: what people have done, the newest first; changes nothing.
--
-- KEYS[1] prefix
-- ARGV: now
-- role: viewer
-- reply: JSON: {"changes": [text, ...]}; each text is JSON: {"at": seconds, "by": "user@host", "what": "...", "acts": true where it is no change of
--        limits or types}
-- writes: nothing

local function rate_log(ARGV)
    if #ARGV > 1 then return refuse('rate_log: wants now') end
    return answer{changes = call('LRANGE', P .. 'changes', 0, -1)}
end

return rate_log

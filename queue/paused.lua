-- paused: since when a queue is paused: the field "q/<queue>" of the hash `halted`.

local paused = {}

-- us, as text; '': it is not; '-1': it is, and what stands there is no time.
function paused.since(queue)
    local since = call('HGET', P .. 'halted', 'q/' .. queue)
    if not since then return '' end
    return find(since, '^%d+$') and is_whole(tonumber(since), 1) and since or '-1'
end

return paused

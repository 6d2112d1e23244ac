-- revisions: when limits and types were changed last. They only grow, and stay when what they are of is removed: a worker that knows of a
-- later one has seen what Redis has lost.
--
--   revisions: hash limit/<name>, type/<name> -> when somebody changed it last, us; * -> when anything was;
--              places/<limit> -> its rules, and those that are gone, by the place of the gates that counted by them last (rate_set)
local revisions = {}

function revisions.newest() return tonumber(call('HGET', P .. 'revisions', '*') or nil) or 0 end

-- Returns the newest revision as text, by a call that must not fail; '': the key is of a wrong kind.
function revisions.newest_safe()
    local newest = call_safe('HGET', P .. 'revisions', '*')
    if type(newest) == 'table' then return '' end
    return us(tonumber(newest or nil) or 0)
end

-- Gives a "limit" or a "type" a new revision, so that workers learn it; kind nil: something else has changed.
function revisions.renew(kind, name)
    local at = us(max(now, revisions.newest() + 1))
    call('HSET', P .. 'revisions', '*', at)
    if kind then call('HSET', P .. 'revisions', kind .. '/' .. name, at) end
end

return revisions

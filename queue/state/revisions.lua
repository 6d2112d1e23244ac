-- revisions: when limits, types and homes were changed last. They only grow, and stay when what they are of is removed: a worker that knows of a
-- later one has seen what Redis has lost.
--
--   revisions: hash limit/<name>, type/<name>, home/<name> -> when somebody changed it last, us; * -> when anything was
local revisions = {}

function revisions.newest() return tonumber(call('HGET', P .. 'revisions', '*') or nil) or 0 end

-- The same as text, by a call that must not fail; '': the key is of a wrong kind.
function revisions.newest_safe()
    local newest = call_safe('HGET', P .. 'revisions', '*')
    if type(newest) == 'table' then return '' end
    return us(tonumber(newest or nil) or 0)
end

-- What is stored of a "limit", a "type" or a "home" is new, and workers learn it; kind nil: none of these is.
function revisions.renew(kind, name) revisions.renew_all({kind and kind .. '/' .. name}) end

-- The same of many, named <kind>/<name>.
function revisions.renew_all(fields)
    local at = us(max(now, revisions.newest() + 1))
    local values = {'*', at}
    for _, field in ipairs(fields) do values[#values + 1], values[#values + 2] = field, at end
    push('HSET', P .. 'revisions', values)
end

return revisions

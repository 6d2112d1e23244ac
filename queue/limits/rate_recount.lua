-- rate_recount: after rate_set changed the path by which the jobs of a limit's types are told apart: of a page of these types, jobs without a key are
-- counted anew. What is not done because somebody died half way leaves the old count, which is only shown.
--
-- ARGV: now, limit, its text before [, the place where the last call ended]
-- role: operator
-- reply: JSON: {"next": [place], unless that was the last page}
-- uses: check partition rates

local TYPES_MOST = 100 -- in one call, about: 4 us each, where no two are alike 25

local function rate_recount(ARGV)
    local name, before, cursor = ARGV[2], ARGV[3], ARGV[4] or '0'
    if #ARGV < 3 or #ARGV > 4 or not is_name(name) or not find(cursor, '^%d+$') then
        return refuse('rate_recount: wants now, limit, text, and a place or none')
    end
    local refusal = partition.refusal(name)
    if refusal then return refusal end
    local wrong = rates.wrong_tables()
    if wrong then return check.refuse_key(wrong) end
    local kinds, behind = rates.users_from(name, cursor, TYPES_MOST)
    for _, kind in ipairs(kinds) do
        local is_other = rates.path_of(kind.one, {}) ~= rates.path_of(kind.one, {[name] = before})
        for _, user in ipairs(is_other and kind.names or {}) do rates.count_keys_anew(user) end
    end
    return answer{next = behind ~= '0' and {behind} or nil}
end

return rate_recount

-- rate_home: does a type or limit live here? Where it does not, it is refused as everywhere, with where it lives.
--
-- KEYS[1] prefix
-- ARGV: now, name
-- role: operator viewer
-- reply: JSON: {"limit": is there a limit of that name}
-- writes: nothing
-- format: any
-- uses: check partition

local function rate_home(ARGV)
    if #ARGV ~= 2 or not is_name(ARGV[2]) then return refuse('rate_home: wants a name') end
    local wrong = check.wrong_kind('limits', 'hash')
    if wrong then return check.refuse_key(wrong) end
    return partition.refusal(ARGV[2]) or answer{limit = call('HEXISTS', P .. 'limits', ARGV[2]) == 1}
end

return rate_home

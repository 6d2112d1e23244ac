-- rate_home: does a type or limit live here? Where it does not, it is refused as everywhere, with where it lives.
--
-- KEYS[1] prefix
-- ARGV: now, name
-- role: operator viewer
-- reply: JSON: {}
-- writes: nothing
-- format: any
-- uses: partition

local function rate_home(ARGV)
    if #ARGV ~= 2 or not is_name(ARGV[2]) then return refuse('rate_home: wants a name') end
    return partition.refusal(ARGV[2]) or answer{}
end

return rate_home

-- sign: heads of entries that stand in queues. Anybody may push into a queue, so a head counts there only with the secret of the
-- namespace in it, which Weir's own scripts write. An entry with another head is what its body alone would be.
-- A head that says nothing but when the job was enqueued needs none (stamp).
-- Where only Weir writes (lanes, leases, later, dead, aside) heads are believed, and the secret says nothing; a job that leaves its
-- queue keeps it only because it costs a copy of its body to take it out.
--
--   entry in a queue  body | "@" stamp body | "@" attempts "," interrupted "," throttled ",s" secret attrs ";" body      see heads
--   about             hash: secret -> random text, made by the first script that signs a head
--
-- uses: check heads stamp
local sign = {}

local AT = 64 -- "@"

local ALONE, BODY = stamp.ALONE, stamp.BODY

local secret -- as this call has read it; false: there is none, nil: it is not read yet
local known, known_at -- the signed head of the entry that was read last, and where its body began

local function forget() secret, known = nil, nil end

local function read_secret()
    if secret ~= nil then return end
    local wrong = sign.wrong()
    if wrong then error(check.refuse_key(wrong)) end
    at_next_call(forget)
    local kept = call('HGET', P .. 'about', 'secret')
    secret = is_name(kept) and kept or false
end

local function is_signed(head)
    read_secret()
    return secret and match(head, '^@%d+,%d+,%d+,s([^,;]*)') == secret
end

-- Says what is wrong with the key of the secret; nil: nothing. A script that signs asks before it writes.
function sign.wrong() return check.wrong_kind('about', 'hash') end

-- True when there is a secret, so that an entry can be signed without a seed.
function sign.is_ready()
    read_secret()
    return secret ~= false
end

-- Signs an entry that is to stand in a queue, or only its head. seed: random text, which becomes the secret where there is none.
function sign.write(entry, seed)
    if byte(entry) ~= AT or find(entry, ALONE) then return entry end
    entry = heads.fresh(entry)
    if is_signed(entry) then return entry end
    if not secret then
        secret = seed
        call('HSETNX', P .. 'about', 'secret', seed)
    end
    local counts, at = match(entry, '^(@%d+,%d+,%d+)()')
    if not counts then return entry end
    local _, last = find(entry, '^,s[^,;]*', at)
    return counts .. ',s' .. secret .. sub(entry, (last or at - 1) + 1)
end

-- Returns the entry for what was found in a queue, and where its body begins. What is no job behind its head stays as it was pushed, behind a head
-- that says nothing, so that no part of it is ever taken for a head.
function sign.read(item)
    if byte(item) ~= AT then return item, 1 end
    if known and sub(item, 1, #known) == known then return item, known_at end
    if find(item, ALONE) then
        known, known_at = sub(item, 1, BODY), BODY
        return item, BODY
    end
    local head = match(item, '^@%d+,%d+,%d+[^;]*;')
    if not head then return item, 1 end
    if is_signed(head) then
        known, known_at = head, #head + 1
        return item, known_at
    end
    if find(item, '^%s*{', #head + 1) then return sub(item, #head + 1), 1 end
    return '@0,0,0;' .. item, 8
end

return sign

-- doctor_access: has this user these rights within scripts? Each is tried: a command on the role's key, with as many arguments as
-- it wants; a key by GET and SET. Redis looks at the user's rights before it finds that this script may not write, so nothing is
-- written.
--
-- ARGV: now, role: its rights are "+hset"; "RW~queue:*", to read (R) and to write (W) keys behind the prefix; "(+rpush,W~queue:*)", to do that
--       with these keys
-- role: producer taker viewer worker
-- reply: [ right that it lacks, ... ]; "?hset" among them: this Redis has no command of that name
-- format: any
-- time: when needed
-- writes: nothing

local ARGUMENTS_MOST = 4
local QUESTION, PARENTHESIS = 63, 40

-- What Redis says when it is called with so many arguments.
local function try(command, key, count)
    local words = {command, key}
    for i = 2, count do words[i + 1] = key end -- it may be one of another key
    if count == 0 then words[2] = nil end
    local answer = call_safe(unpack(words))
    return type(answer) == 'table' and answer.err or ''
end

-- What the reply says of a command; nil: nothing, it may be run, with so many arguments. Redis 7.0 has other words for it than 7.2 and Valkey.
local function refused(command, key)
    for count = 0, ARGUMENTS_MOST do
        local why = try(command, key, count)
        if find(why, 'run this command', 1, true) or find(why, 'no permissions to run', 1, true) then return '+' .. command end
        if find(why, 'command called from script', 1, true) then return '?' .. command end
        if not find(why, 'Wrong number of args', 1, true) then return nil, count end
    end
end

local function is_kept_from(command, key, count)
    local why = try(command, key, count)
    return find(why, 'keys mentioned', 1, true) or find(why, 'permissions to access', 1, true)
end

-- Returns the right to read or write these keys that the user lacks; nil: none.
local function kept_from(mode, keys)
    local key = P .. keys:gsub('%*$', 'doctor')
    local reads = find(mode, 'R', 1, true) and is_kept_from('GET', key, 1) and 'R' or ''
    local writes = find(mode, 'W', 1, true) and is_kept_from('SET', key, 2) and 'W' or ''
    return reads .. writes ~= '' and reads .. writes .. '~' .. keys or nil
end

-- Returns the right to call commands on some keys that the user lacks; nil: none.
local function kept_from_some(right)
    local commands, keys = match(right, '^%((.*),%a+~(.*)%)$')
    local key = P .. keys:gsub('%*$', 'doctor')
    for command in commands:gmatch('%+([^,]+)') do
        local lacks, count = refused(command, key)
        if lacks and byte(lacks) == QUESTION then return lacks end
        if lacks or is_kept_from(command, key, count or 1) then return right end
    end
end

local function missing(right, own)
    if byte(right) == PARENTHESIS then return kept_from_some(right) end
    local mode, keys = match(right, '^(%a+)~(.*)$')
    return mode and kept_from(mode, keys) or not mode and refused(sub(right, 2), P .. own) or nil
end

local function doctor_access(ARGV)
    local role, reply = ARGV[2], {}
    local words = role_rights[role]
    if not words then return refuse('doctor_access: no such role: %s', role or '') end
    local own = role == 'viewer' and '' or 'role:' .. role
    -- Where each command has keys of its own, none can be tried on the role's key, which this call has named.
    if not find(words, '(', 1, true) then words = words .. (own ~= '' and ' RW~' .. own or '') .. ' R~' end
    for right in words:gmatch('%S+') do reply[#reply + 1] = missing(right, own) end
    return reply
end

return doctor_access

-- doctor_access: may this user run these commands within scripts, and touch our keys? Each is tried on a key that nobody uses,
-- with as many arguments as it wants. Redis looks at the user's rights before it finds that this script may not write, so
-- nothing is.
--
-- KEYS[1] prefix
-- ARGV: now, command, ...
-- reply: [ command that it may not, ... ]; "?command" among them: this Redis has none of that name; "~": it may not touch our keys
-- time: when needed
-- writes: nothing

local ARGUMENTS_MOST = 4

-- What Redis says when it is called with so many arguments.
local function try(command, count)
    local words = {command, P .. 'bell:doctor'}
    for i = 2, count do words[i + 1] = '1' end
    if count == 0 then words[2] = nil end
    local answer = call_safe(unpack(words))
    return type(answer) == 'table' and answer.err or ''
end

-- What the reply says of a command; nil: nothing, it may be run.
local function refused(command)
    for count = 0, ARGUMENTS_MOST do
        local why = try(command, count)
        if find(why, 'run this command', 1, true) then return command end
        if find(why, 'Unknown Redis command', 1, true) then return '?' .. command end
        if not find(why, 'Wrong number of args', 1, true) then return nil end
    end
end

local function doctor_access(ARGV)
    local reply = {}
    for i = 2, #ARGV do reply[#reply + 1] = refused(ARGV[i]) end
    if find(try('EXISTS', 1), 'keys mentioned', 1, true) then reply[#reply + 1] = '~' end
    return reply
end

return doctor_access

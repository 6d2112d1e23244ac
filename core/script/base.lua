-- base: what every script begins with: the prefix of all keys, the time, names and exact numbers.
--
-- All .lua files are one library of Redis functions: this one at its top level, each of the others as the body of a
-- function whose value gets the name of the file. The library is loaded once, so a local outside of functions lives as
-- long as the server. What belongs to one call is set at its beginning, by begin() or the script itself, or forgotten
-- when the next one begins: at_next_call().

-- While a library loads, Redis 7.0 hides all globals from it. They are taken over at the first call, and only here: a local
-- costs 3 ns, a global, which Redis finds by way of another table, 40.
local error, ipairs, pairs, pcall, tonumber, tostring, type, unpack
local floor, ceil, max, min, byte, char, find, match, sub, format, concat, sort
local collect -- Lua's collectgarbage; nil: there is none
local compile
local call, call_safe, error_reply, may_call, has_info, sha1, json_read, json_write, json_numbers, json_depth, xor
local huge = 1 / 0

-- How much Lua's collector does in a step, in percent of what was allocated since the last one. Lua's own is 200. Behind each 50th call Redis
-- has it do 50 steps at once, and everybody waits for them: at 200 up to 1 ms. From 30 on it keeps up with what is allocated.
local COLLECTOR_PACE = 40

local function take_globals()
    local g = _G
    error, pcall, ipairs, pairs = g.error, g.pcall, g.ipairs, g.pairs
    tonumber, tostring, type, unpack = g.tonumber, g.tostring, g.type, g.unpack
    floor, ceil, max, min = math.floor, math.ceil, math.max, math.min
    byte, char, find, match, sub, format = string.byte, string.char, string.find, string.match, string.sub, string.format
    concat, sort = table.concat, table.sort
    call, call_safe, error_reply, sha1 = redis.call, redis.pcall, redis.error_reply, redis.sha1hex
    may_call = redis.acl_check_cmd
    has_info = pcall(may_call, 'INFO') -- rename-command may have taken it away
    collect = g.collectgarbage
    if collect then collect('setstepmul', COLLECTOR_PACE) end
    compile = g.loadstring
    json_read, json_write, json_numbers, json_depth = cjson.decode, cjson.encode, cjson.decode_invalid_numbers, cjson.decode_max_depth
    xor = bit.bxor
end

-- A call that has read n jobs collects about as much garbage as they are, so that little of it is left for the steps behind other calls, and
-- the memory of Lua stays small enough for the processor's cache.
local COLLECTED_JOBS = 64 -- fewer jobs leave little
local function collect_behind(n)
    if collect and n >= COLLECTED_JOBS then collect('step', floor(n * 0.3)) end
end

-- P: the prefix, "weir:{0}:". now: the time of this call, in microseconds; in a script that reads it when it comes to need it, nil until
-- then. VIRTUAL: the clock is a test's own, so nothing expires by Redis's clock.
local P, now, VIRTUAL

-- Formats of the data, numbers: the oldest and the newest that this version reads, and the one that it writes. CONTRIBUTING.md says what
-- has them, and how they change. format:<number> is there once a version has begun that writes that one.
local FORMAT_OLDEST = 1
local FORMAT_NEWEST = 1
local FORMAT_WRITTEN = 1

local forgets, forgets_count = {}, 0

-- Calls forget() when the next call begins, whatever becomes of this one.
local function at_next_call(forget)
    forgets_count = forgets_count + 1
    forgets[forgets_count] = forget
end

local noted -- the key of the last command, while keys are noted

-- Lets noted_key() be the key that the last command named, until the next call begins: Redis does not say at which key a command failed.
local function note_keys()
    local plain = call
    call = function(...)
        local _, key = ...
        noted = key
        return plain(...)
    end
    at_next_call(function() call = plain end)
end

local function noted_key() return noted end

local WHOLE_MOST = 2 ^ 53 -- beyond it a number is no longer exact

local said_time -- the first argument of a script, '' for Redis TIME

-- Reads the clock, once in a call: Redis TIME moves within a call on Redis 7.0.
local function read_clock()
    if now then return end
    if VIRTUAL then
        now = tonumber(said_time)
    else
        local t = call('TIME')
        now = t[1] * 1000000 + t[2]
        if now >= WHOLE_MOST then
            error(error_reply('WEIR Redis\'s clock says 2255 or later, which is beyond what Weir counts: set it right'))
        end
    end
end

-- Returns how long this call has taken so far, in microseconds. 0 where nobody can say: in a test's own time, and from Redis 7.2 on, where TIME
-- stands still within a script.
local function passed_us()
    if VIRTUAL then return 0 end
    local t = call('TIME')
    return t[1] * 1000000 + t[2] - now
end

-- Begins a call. own_clock: the script calls read_clock itself, when it comes to need the time.
local function begin(prefix, ARGV, own_clock)
    P, now, said_time = prefix, nil, ARGV[1]
    VIRTUAL = said_time ~= ''
    if not own_clock then read_clock() end
    for i = 1, forgets_count do forgets[i]() end
    forgets_count = 0
end

-- Files that no worker, producer or taker needs: name -> {text =, line = that of the library before it, names = what it sees of other files,
-- given = a function that returns those}. They are compiled when one of them is first called: Lua's collector goes through all that is compiled
-- again and again, and lets as much garbage come together as that is, which has to fit the processor's cache.
local late, late_begins = {}, {}

local function late_value(name)
    local file = late[name]
    if file.text then
        local text = ('\n'):rep(file.line) .. 'local ' .. file.names .. ' = ... local P, now, VIRTUAL, call return (function()\n' .. file.text
            .. 'end)(), function(...) P, now, VIRTUAL, call = ... end'
        local value, begin_it = compile(text, '@user_function')(file.given())
        late_begins[#late_begins + 1] = begin_it
        file.value, file.text = value, nil
    end
    return file.value
end

-- Returns the function of such a file.
local function late_script(name)
    return function(ARGV)
        local run = late_value(name)
        for i = 1, #late_begins do late_begins[i](P, now, VIRTUAL, call) end
        return run(ARGV)
    end
end

local RECENT_US = 100000

-- True when that was asked of Redis just now, by its own clock. What hardly ever changes is not asked in each call: INFO alone takes an eighth of
-- what a job that comes alone costs.
local function is_recent(asked_us)
    if VIRTUAL or not asked_us then return false end
    read_clock()
    return asked_us <= now and now - asked_us < RECENT_US
end

-- Counts the calls that may have changed what a claim finds before it starts jobs that came alone (claim_short). A call that writes counts, unless
-- it says that it has changed nothing. Another version's functions, and others' commands, count nothing.
local changes = 0

local function has_changed_nothing() changes = changes - 1 end

local INFO = 'INFO' -- optional: without the right to it the check is skipped

local master_us -- when this Redis was found to be no replica last

-- True when this is a replica that takes writes (replica-read-only no), which are lost with its next synchronization. It may have become one just
-- now.
local function is_replica()
    if is_recent(master_us) then return false end
    local info = has_info and may_call(INFO, 'replication') and call_safe(INFO, 'replication')
    local replica = type(info) == 'string' and find(info, 'role:slave', 1, true) ~= nil
    read_clock()
    master_us = not replica and now or nil
    return replica
end

-- Returns the prefix in the key that a call names. ACLs know keys and no functions, so the key says which role calls: "<prefix>role:<role>". nil:
-- it is not that of the script's role. What only reads takes any, and the prefix alone.
local function prefix_of(key, role)
    local prefix, named = match(key or '', '^(.*:)role:(%a+)$')
    if role and role ~= 'viewer' then return named == role and prefix or nil end
    return prefix or key
end

local function format_error(there)
    return error_reply('WEIR format: the data of this namespace have format ' .. there .. ', and this version of Weir reads ' ..
                           FORMAT_NEWEST .. '; run the version that wrote them')
end

-- Returns the error that there are data which this version does not read; nil: there are none.
local function newer_format()
    return call('EXISTS', P .. 'format:' .. FORMAT_NEWEST + 1) == 1 and format_error(FORMAT_NEWEST + 1) or nil
end

-- Replies for a script that only reads. Where it fails at a key of another kind, it runs once more to learn which key that is; any other failure is told
-- as if nobody had caught it.
local function read_only_reply(run, ARGV, own_clock)
    local ok, reply = pcall(run, ARGV)
    if ok then return reply end
    begin(P, ARGV, own_clock)
    if not find(reply, '^WRONGTYPE Operation') then return run(ARGV) end
    note_keys()
    ok, reply = pcall(run, ARGV)
    return ok and reply or error_reply(format('WRONGTYPE %s is a %s, another kind of key than Weir keeps there', noted, call('TYPE', noted).ok))
end

local LIBRARY = 'weir_DIGEST_' -- the names of its functions begin with it

-- Makes a script of run(ARGV), which returns its reply. A full Redis must still be drained: a script is refused then only where it fills it. is:
--   role          who calls it; viewer: Redis refuses each write of it; nil, in a library of a test: any
--   full_refused  it fills a Redis
--   own_clock     it calls read_clock itself
--   any_format    it may run among data of newer formats
local function script(name, run, is)
    is = is or {}
    local role, own_clock, any_format = is.role, is.own_clock, is.any_format
    local key, prefix, read_only = nil, nil, role == 'viewer' -- key: that of the last call
    redis.register_function{
        function_name = LIBRARY .. name,
        callback = function(KEYS, ARGV)
            if not call then take_globals() end
            if KEYS[1] ~= key then key, prefix = KEYS[1], prefix_of(KEYS[1], role) end
            if not prefix then return error_reply('WEIR ' .. name .. ': its first key must be <prefix>role:' .. role) end
            begin(prefix, ARGV, own_clock)
            if not read_only then changes = changes + 1 end
            if not read_only and is_replica() then return error_reply('READONLY a replica, which loses what is written there') end
            local newer = not any_format and role and newer_format()
            if newer then return newer end
            if read_only then return read_only_reply(run, ARGV, own_clock) end
            return run(ARGV)
        end,
        flags = read_only and {'no-writes'} or is.full_refused and {} or {'allow-oom'},
    }
end

-- Writes a whole number: tostring() and .. keep 14 digits only; a time in microseconds has 16. %d is exact to 2^53 and four times as fast as %.0f.
local function us(x) return format('%d', x) end

-- Small whole numbers as text, for an index or a count: Redis would print a number as a real one, which takes as long as the command.
local small = {}
local function digits(n)
    local text = small[n]
    if not text then
        text = format('%d', n)
        if n < 4096 then small[n] = text end
    end
    return text
end

local function is_name(s) return s and #s <= 128 and find(s, '^[%w_.-]+$') end

-- True for a whole number, at least 0 or `least`. NaN is none.
local function is_whole(n, least) return n and n >= (least or 0) and n <= WHOLE_MOST and n % 1 == 0 end

-- Compares texts by bytes: `<` asks the server's locale.
local function by_bytes(a, b)
    for i = 1, min(#a, #b) do
        local x, y = byte(a, i), byte(b, i)
        if x ~= y then return x < y end
    end
    return #a < #b
end

local function refuse(...) return error_reply('WEIR ' .. format(...)) end

-- Does call(command, key, values...), in slices: unpack fails near 8,000 values.
local function push(command, key, values)
    for i = 1, #values, 4000 do call(command, key, unpack(values, i, min(i + 3999, #values))) end
end

-- Makes the reply of an administrative script: one JSON text, which core/client/answer.h reads. A number keeps 14 digits, so a time is sent as
-- us(time). A string may hold any bytes. A nil member is left out, and an empty table is {}, list or not. raw: a list of strings that may be large.
-- They stay beside the JSON, which takes Redis 5 ms for each mebibyte. How many partitions the namespace has is said where it has several: the
-- first answer is how a client learns it.
local function answer(document, raw)
    local partitions = call_safe('HGET', P .. 'about', 'partitions')
    if type(partitions) == 'string' then document.partitions = partitions end
    local text = json_write(document)
    return raw and {text, unpack(raw)} or text
end

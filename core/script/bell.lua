-- bell: wakes the worker that holds the pacing duty of its group, which sleeps in BLPOP bell:<group>, or another of the group,
-- which sleeps in BLPOP spare:<group>.
--
-- duty: hash group -> "<worker> <until_us> <queue>,<queue>"; <group>/second -> "<worker> <until_us>", who looks after the one on
-- duty. A wide group serves patterns, or more queues than it can watch: its words begin with a comma, and its bell rings for jobs too
-- that come into an empty queue. As long as there is one, `*` -> "- <until_us>" says so.
--
-- One token in a bell is enough; it expires by itself where nobody comes for it. It names the queues, with blanks between them, or is `*`
-- where they are too many. A wake-up is a hint: nothing here may fail the script that rings, so a duty of the wrong kind is passed over.
--
-- news:<group> has queues in which something began to wait at a gate, until the group has served them: a ring may be lost.
--
-- uses: pattern

local bell = {}

local SECOND_US = 1000000
local DAY_US = 86400 * SECOND_US -- a group whose last holder was not heard of for a day has no workers

local ALL = '*'
local COMMA = 44
local ALONE = 33 -- "!"

local TOKEN_MOST = 4000 -- bytes

local function put_token(key, token)
    local there = call_safe('LINDEX', key, '0')
    if there == token or there == ALL or type(there) == 'table' then return end
    local both = there and token ~= ALL and #there + #token < TOKEN_MOST and there .. ' ' .. token
    call('RPUSH', key, not there and token or both or ALL)
    if there then call('LTRIM', key, '-1', '-1') end
    call('PEXPIRE', key, 60000)
end

local KNOWN_MOST = 4096 -- groups whose words are known between calls: few of many write anew

local known, known_count = {}, 0 -- group -> what it has written, as it was read last

local function read_words(group, value)
    local until_us, words = match(value, '^%S+ (%d+) ?(%S*)$')
    local there = {value = value, until_us = tonumber(until_us or nil) or -huge, rings = words ~= '', wide = words and byte(words) == COMMA,
                   names = {}, patterns = {}}
    for word in (words or ''):gmatch('[^,]+') do
        local list = pattern.is(word) and there.patterns or there.names
        list[#list + 1] = word
    end
    if not known[group] then
        if known_count >= KNOWN_MOST then known, known_count = {}, 0 end
        known_count = known_count + 1
    end
    known[group] = there
    return there
end

local function words_of(group, value)
    local there = known[group]
    return there and there.value == value and there or read_words(group, value)
end

local function is_gone(there) return there.until_us < now - DAY_US end

-- Forgets groups without workers. A ring does not do so: a producer rings, and may take away nothing.
function bell.forget()
    local duty = call_safe('HGETALL', P .. 'duty')
    for i = 1, #duty, 2 do
        if is_gone(words_of(duty[i], duty[i + 1])) then call('HDEL', P .. 'duty', duty[i]) end
    end
end

-- Returns the queues of a set by the names that words have for them: without "!".
local function usual_names(wanted)
    local names = {}
    for queue in pairs(wanted) do names[byte(queue, #queue) == ALONE and sub(queue, 1, -2) or queue] = true end
    return names
end

local function serves(there, wanted)
    for _, name in ipairs(there.names) do
        if wanted[name] then return true end
    end
    for _, word in ipairs(there.patterns) do
        for queue in pairs(wanted) do
            if pattern.matches(word, queue) then return true end
        end
    end
end

local NEWS_MS = 60000

-- Rings for the groups that serve one of the queues, a set with "<queue>!" among them; nil: for all groups. token names the queues; nil: no bell. new:
-- one of them, which stays in news:<group> until a claim has served it, whatever becomes of the bell. A group of one queue needs no such thing.
local function ring(wanted, token, but, wide_only, new)
    local duty = call_safe('HGETALL', P .. 'duty')
    wanted = wanted and usual_names(wanted)
    for i = 1, #duty, 2 do
        local group, value = duty[i], duty[i + 1]
        local there = words_of(group, value)
        if there.rings and not is_gone(there) and group ~= but and (there.wide or not wide_only) and (not wanted or serves(there, wanted)) then
            if token then put_token(P .. 'bell:' .. group, token) end
            if new and (there.wide or #there.names > 1) and call_safe('SADD', P .. 'news:' .. group, new) == 1 then
                call('PEXPIRE', P .. 'news:' .. group, NEWS_MS)
            end
        end
    end
end

-- Rings once for a set of queues, as each ring goes through all groups. but: a group that does not hear it.
function bell.ring_all(wanted, but)
    local token, size = {}, 0
    for queue in pairs(wanted) do
        token[#token + 1], size = queue, size + #queue + 1
        if size > TOKEN_MOST then break end
    end
    if size > 0 then ring(wanted, size > TOKEN_MOST and ALL or concat(token, ' '), but) end
end

function bell.ring(queue, but)
    if not queue then return ring(nil, ALL, but) end
    ring({[queue] = true}, queue, but)
end

-- Rings for a queue, if that is wanted; is_new: something begins to wait there at a gate, for which who only asks for the queue does not look.
function bell.tell(queue, but, rings, is_new) ring({[queue] = true}, rings and queue or nil, but, false, is_new and queue or nil) end

function bell.ring_spare(group) put_token(P .. 'spare:' .. group, '1') end

local wide_until_us, wide_of, wide_us -- until when a wide group had the duty; for which prefix, and when, that was asked

local function read_wide()
    local mark = call_safe('HGET', P .. 'duty', ALL)
    read_clock()
    wide_until_us = type(mark) == 'string' and tonumber(mark:match('%d+')) or 0
    wide_of, wide_us = P, not VIRTUAL and now or nil
end

-- True when a wide group has had the duty just now; else nobody waits for its bell.
local function is_any_wide()
    if wide_of ~= P or not is_recent(wide_us) then read_wide() end
    return wide_until_us > now - SECOND_US
end

-- Tells wide groups that a job has come into this queue, which was empty. Others see it by themselves.
function bell.arrived(queue)
    if is_any_wide() then ring({[queue] = true}, queue, nil, true) end
end

-- Rings for several queues, a list.
function bell.arrived_all(queues)
    if #queues < 2 then return #queues == 1 and bell.arrived(queues[1]) end
    if not is_any_wide() then return end
    local wanted = {}
    for _, queue in ipairs(queues) do wanted[queue] = true end
    ring(wanted, ALL, nil, true)
end

-- Writes that a group has the pacing duty; wide: its words are many, or patterns.
function bell.write_duty(group, worker, until_us, words, wide)
    if wide then
        call_safe('HSET', P .. 'duty', ALL, '- ' .. us(until_us))
        wide_of = nil
    end
    call_safe('HSET', P .. 'duty', group, worker .. ' ' .. us(until_us) .. (wide and ' ,' or ' ') .. words)
end

return bell

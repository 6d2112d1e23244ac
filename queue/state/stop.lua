-- stop: the provider said stop. The limits of the type pause, for the job's key where they are keyed.
--
-- Where it gives no time, the pause is 1 s, and twice the last one each time, up to 5 min, until a job of the type is done. Where it
-- gives one, that is the pause, but at least 0.1 s, and twice as much each time, up to 10 s: "at once" is no hot loop. After
-- 24 hours of nothing but throttled ends each one counts as an attempt.
--
-- stop:<type>/<key>: "<streak> <since_us> <done> <until_us>": how often in a row, since when, the type's counter of done jobs at that
-- time, until when it paused last.
--
-- uses: check gate types
local stop = {}

local FIRST_US, MOST_US = 1000000, 300 * 1000000   -- of a pause without a time
local FLOOR_US, FLOOR_MOST_US = 100000, 10 * 1000000 -- of a pause with a time
local DAY_US = 86400 * 1000000
local KEPT_MS = 3600000 -- a streak is kept so long after its pause
local ATTEMPTS = 25     -- JOB_MAX_ATTEMPTS of queue/job/job.h

-- Says what is wrong with the keys that this reads and writes; nil: nothing.
function stop.wrong(name, key)
    return check.wrong_kind('stop:' .. name .. '/' .. key, 'string') or types.wrong(name, key)
end

-- Returns the pause after so many throttled ends in a row; delay_us < 0: no time was given.
local function pause_of(streak, delay_us)
    local doubled = 2 ^ min(streak - 1, 20)
    if delay_us < 0 then return min(MOST_US, FIRST_US * doubled) end
    return max(delay_us, min(FLOOR_MOST_US, FLOOR_US * doubled))
end

-- Remember what this call read or wrote last of <type>/<key>, {text =, done =}, and for how long its limits pause, {us =, any =}: jobs that end
-- together nearly all say the same.
local records, paused

local function forget() records, paused = nil, nil end

local function begin()
    if records then return end
    records, paused = {}, {}
    at_next_call(forget)
end

local function record_of(name, key)
    begin()
    local place = name .. '/' .. key
    local r = records[place]
    if not r then
        local done = call_safe('HGET', P .. 'stats:' .. name, 'done')
        r = {key = P .. 'stop:' .. place, text = call('GET', P .. 'stop:' .. place) or '', done = type(done) == 'string' and done or '0'}
        records[place] = r
    end
    return r
end

local function write(r, text, till)
    if text == r.text then return end
    r.text = text
    if VIRTUAL then
        call('SET', r.key, text)
    else
        call('SET', r.key, text, 'PX', us(ceil((till - now) / 1000) + KEPT_MS))
    end
end

-- Records a throttled end; delay_us < 0: no time was given. Returns how long to pause, whether it counts as an attempt, and, when it begins a
-- pause, how many in a row that makes.
function stop.record(name, key, delay_us)
    local r = record_of(name, key)
    local streak, since, mark, till = match(r.text, '^(%d+) (%d+) (%d+) (%d+)$')
    streak, since, till = tonumber(streak), tonumber(since), tonumber(till)
    if not streak or mark ~= r.done or since > now then streak, since, till = 0, now, 0 end
    local pause_us, begun
    if till > now then -- several jobs were running when the provider said stop: they count as one
        pause_us = max(delay_us, till - now)
    else
        streak = streak + 1
        pause_us, begun = pause_of(streak, delay_us), streak
    end
    till = max(till, now + pause_us)
    write(r, format('%d %d %s %d', streak, since, r.done, till), till)
    return pause_us, now - since >= DAY_US, begun
end

-- Returns the gate of a limit that pauses for a key: its first keyed one, else its first.
local function gate_to_pause(t, limit, key)
    for i, list in ipairs({key ~= '' and types.keyed(t, key) or {}, t.global}) do
        for _, spec in ipairs(list) do
            if spec.rule and spec.name:match('^[^#]+') == limit then
                return gate.load(i == 1 and spec.name .. '/' .. key or spec.name, spec.rule)
            end
        end
    end
end

local function pause(name, key, pause_us)
    local t = types.load(name)
    local any = false
    for _, e in ipairs(types.gates(name, key)) do gate.throttled(e) end
    for _, limit in ipairs(t.limits) do
        local g = gate_to_pause(t, limit, key)
        if g then
            gate.pause(g, now + pause_us)
            any = true
        end
    end
    return any
end

-- Pauses the limits of a type for that long; false: it has none.
function stop.pause(name, key, pause_us)
    begin()
    local place = name .. '/' .. key
    local p = paused[place]
    if not p or p.us < pause_us then
        p = {us = pause_us, any = pause(name, key, pause_us)}
        paused[place] = p
    end
    return p.any
end

function stop.max_attempts(body)
    local ok, job = pcall(json_read, body)
    local most = ok and type(job) == 'table' and job.max_attempts
    return is_whole(tonumber(most), 1) and tonumber(most) or ATTEMPTS
end

return stop

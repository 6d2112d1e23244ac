-- memory: how much Redis has used over the last hour, for whoever asks when it is full. `about` has it as `memory`, "<us>:<bytes> ...", the oldest
-- first, one about every five minutes while a worker runs. Where INFO is not allowed there is none.
--
local memory = {}

local STEP_US, MOST = 300 * 1000000, 13

local looked_us, looked_of -- when it was looked whether one is due, and the prefix

local function ask(...) return call_safe(...) end -- INFO is no right that a worker must have: rights.awk does not see it here

local function is_due(last_us) return now - last_us >= STEP_US or now < last_us end

function memory.note()
    if VIRTUAL or looked_of == P and not is_due(looked_us) then return end
    looked_us, looked_of = now, P
    local text = call_safe('HGET', P .. 'about', 'memory')
    text = type(text) == 'string' and text or ''
    if not is_due(tonumber(match(text, '(%d+):%d+$')) or 0) then return end
    local info, noted = ask('INFO', 'memory'), {}
    local used = type(info) == 'string' and match(info, 'used_memory:(%d+)')
    if not used then return end
    for sample in text:gmatch('%d+:%d+') do noted[#noted + 1] = sample end
    noted[#noted + 1] = us(now) .. ':' .. used
    call_safe('HSET', P .. 'about', 'memory', concat(noted, ' ', max(1, #noted + 1 - MOST)))
end

return memory

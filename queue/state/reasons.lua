-- reasons: why somebody has paused something, in the words of --reason; and since and until when, where nothing else says that.
--
--   reasons: hash "<kind> <name>" -> "<until_us>/<since_us> <text>"; kinds: type, queue, batch, limit, key, schedule. A pause without a time ends at
--            key_pauses.ENDLESS. Heartbeats forget those that are over, and resume a queue or a batch whose pause is
--
-- uses: aside bell check key_pauses rules
local reasons = {}

local TEXT_MOST = 200 -- bytes
local MOST = 1000     -- reasons of all kinds
local LONGEST = 3650 * 86400 * 1000000 -- of a pause with a time

function reasons.wrong() return check.wrong_kind('reasons', 'hash') end

local function refusal(text)
    if #text > TEXT_MOST or find(text, '%c') then return refuse('reason: must be one line of at most %d bytes', TEXT_MOST) end
    if text ~= '' and call('HLEN', P .. 'reasons') >= MOST then
        return refuse('reason: %d are kept, and that is the most; resume something, or give none', MOST)
    end
end

-- Reads for how long a pause is to be ('': until somebody resumes it; '0': it ends), and why. Returns until when, nil: it ends; and why that is refused, nil: it is not.
function reasons.read(for_us, text)
    local n = tonumber(for_us)
    if for_us ~= '' and (not is_whole(n) or n > LONGEST) then return nil, refuse('pause: must be at most ten years (3650d)') end
    return n ~= 0 and (n and now + n or key_pauses.ENDLESS) or nil, refusal(text)
end

-- Notes until when something is paused, and why; text '': nobody has said. till nil: it is not. Of some kinds nothing else says that.
local NOTED = {queue = true, batch = true, schedule = true}

function reasons.set(kind, name, text, till)
    if not till or text == '' and not NOTED[kind] then
        call('HDEL', P .. 'reasons', kind .. ' ' .. name)
    else
        call('HSET', P .. 'reasons', kind .. ' ' .. name, us(till) .. '/' .. us(now) .. ' ' .. text)
    end
end

local function read(text)
    local till, since, words = match(text or '', '^(%d+)/(%d+) (.*)$')
    return tonumber(till) or key_pauses.ENDLESS, words or '', since
end

-- Describes a pause, as rules.paused takes it, or one since a time that reasons.set has noted: {"since", "until": us, "reason": ''}; nil: there is none.
function reasons.pause(kind, name, pause, since)
    if not pause and not since then return nil end
    local till, words = read(call('HGET', P .. 'reasons', kind .. ' ' .. name))
    if pause then since, till = us(min(pause.paused_at, now)), rules.paused(pause) end
    return {since = since, ['until'] = us(till), reason = words}
end

-- Describes the pause of a key; nil: nobody has paused it.
function reasons.key(limit, key) return reasons.pause('key', limit .. '/' .. key, key_pauses.pause(limit, key)) end

-- Describes a pause that stands here alone; nil: there is none.
function reasons.noted(kind, name)
    local till, words, since = read(call('HGET', P .. 'reasons', kind .. ' ' .. name))
    return since and till > now and {since = since, ['until'] = us(till), reason = words} or nil
end

-- Returns why things of a kind are paused: name -> text; a table without any where nobody has said it.
function reasons.all(kind)
    local all, found = call('HGETALL', P .. 'reasons'), {}
    for i = 1, #all, 2 do
        local name = match(all[i], '^' .. kind .. ' (.*)$')
        local till, words = read(all[i + 1])
        if name and till > now and words ~= '' then found[name] = words end
    end
    return found
end

-- Returns the names of a kind that stand here, in no order.
function reasons.names(kind)
    local all, names = call('HGETALL', P .. 'reasons'), {}
    for i = 1, #all, 2 do names[#names + 1] = match(all[i], '^' .. kind .. ' (.*)$') end
    return names
end

local GIVEN_BACK = 250 -- jobs that one call gives back, and batches whose pauses it ends, together

-- Forgets what is over, but for the pause of a batch that cannot end yet. Returns how much is left to the next calls: jobs of such batches that are still
-- aside, and batches.
function reasons.follow()
    local all, left, most = call_safe('HGETALL', P .. 'reasons'), 0, GIVEN_BACK
    for i = 1, all.err and 0 or #all, 2 do
        local kind, name = match(all[i], '^(%a+) (.*)$')
        if read(all[i + 1]) <= now then
            local returned, more = 0, 0
            if kind == 'batch' and most > 0 then
                returned, more = aside.follow(name, most)
                most = most - 1 - (returned or 0)
            elseif kind == 'batch' then
                more = 1
            end
            left = left + (more or 0)
            if more == 0 then call('HDEL', P .. 'reasons', all[i]) end
            if kind == 'queue' and type(call_safe('HDEL', P .. 'halted', 'q/' .. name)) == 'number' then bell.ring(name) end
        end
    end
    return left
end

return reasons

-- fired: the last runs of each schedule. How they ended is looked up when somebody asks: nothing is written when a job ends.
--
--   fired: hash <schedule> -> "<queue> <type>" of its jobs, then " <us> <id>" for each run, the newest first, MOST at most: when it was due and its
--          job, "-": it was skipped
--   fired.wrong()
--   fired.note(name, queue, type, runs)  more runs, the oldest first: {at = us, id =} each; without jobs, queue and type are nil
--   fired.read(name)                     {"queue", "type", "runs": [{"at": us, "id", unless it was skipped; "outcome", "since": us, of a done job that
--                                        is kept}, ...]}; nil: there was none
--   fired.has(id)                        is it the job of such a run?
--   fired.forget(name)
--
-- uses: check
local fired = {}

local MOST = 10

function fired.wrong() return check.wrong_kind('fired', 'hash') end

-- Runs of other jobs, which the schedule had before it was replaced, are forgotten.
local function kept(name, queue, kind)
    local known_queue, known_kind, runs = match(call('HGET', P .. 'fired', name) or '', '^([%w_.-]+) ([%w_.-]+)(.*)$')
    if queue and (queue ~= known_queue or kind ~= known_kind) then return queue, kind, '' end
    return known_queue or '-', known_kind or '-', runs or ''
end

function fired.note(name, queue, kind, runs)
    local its_queue, its_kind, before = kept(name, queue, kind)
    local words, count = {its_queue .. ' ' .. its_kind}, 1
    for i = #runs, max(1, #runs - MOST + 1), -1 do
        count = count + 1
        words[count] = us(runs[i].at) .. ' ' .. (runs[i].id or '-')
    end
    for at, id in before:gmatch(' (%d+) ([%w_.-]+)') do
        if count > MOST then break end
        count = count + 1
        words[count] = at .. ' ' .. id
    end
    call('HSET', P .. 'fired', name, concat(words, ' '))
end

local HEADER_MOST = 100 -- bytes of the record of a done job that say how it ended

local function run(at, id)
    if id == '-' then return {at = at} end
    local text = call_safe('GETRANGE', P .. 'finished:' .. id, '0', us(HEADER_MOST))
    local outcome, since = match(type(text) == 'string' and text or '', '^(%a+) (%d+) ')
    return {at = at, id = id, outcome = outcome, since = since}
end

function fired.read(name)
    local queue, kind, rest = match(call('HGET', P .. 'fired', name) or '', '^([%w_.-]+) ([%w_.-]+)(.*)$')
    local runs = {}
    for at, id in (rest or ''):gmatch(' (%d+) ([%w_.-]+)') do runs[#runs + 1] = run(at, id) end
    return runs[1] and {queue = queue, type = kind, runs = runs}
end

function fired.has(id)
    local name = match(id, '^(.+)%.[%w_-]+$')
    local text = name and call_safe('HGET', P .. 'fired', name)
    return type(text) == 'string' and find(text .. ' ', ' ' .. id .. ' ', 1, true) ~= nil
end

function fired.forget(name) call('HDEL', P .. 'fired', name) end

return fired

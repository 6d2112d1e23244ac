-- pattern: the words by which a worker says what queues it serves, and what types it runs: names, and patterns as `mail.*` and `*`: the
-- beginning of names and one `*` at the end.

local pattern = {}

local STAR = 42

function pattern.is(word) return byte(word, #word) == STAR end

-- True when the pattern stands for that queue, or for a lane's "<queue>!".
function pattern.matches(word, queue) return sub(queue, 1, #word - 1) == sub(word, 1, -2) end

-- True when one of these words, a list, stands for the queue.
function pattern.serves(words, queue)
    for _, word in ipairs(type(words) == 'table' and words or {}) do
        if word == queue or type(word) == 'string' and pattern.is(word) and pattern.matches(word, queue) then return true end
    end
    return false
end

return pattern

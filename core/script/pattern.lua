-- pattern: the words by which a worker says what queues it serves: names, and patterns as `mail.*` and `*`: the beginning of names
-- and one `*` at the end.

local pattern = {}

local STAR = 42

function pattern.is(word) return byte(word, #word) == STAR end

-- Is that queue, or a lane's "<queue>!", one of those that the pattern stands for?
function pattern.matches(word, queue) return sub(queue, 1, #word - 1) == sub(word, 1, -2) end

-- Does one of these words, a list, stand for the queue?
function pattern.serves(words, queue)
    for _, word in ipairs(type(words) == 'table' and words or {}) do
        if word == queue or type(word) == 'string' and pattern.is(word) and pattern.matches(word, queue) then return true end
    end
    return false
end

return pattern

-- one_job: what job and cancel share: a document that names a job, and how far it was looked for.
--
--   one_job.read(text, what)       its members, and the stack of places; nil and the refusal
--   one_job.not_here(id, words)    the answer where it was not found: words: places.words of what is left
-- uses: document partition places
local one_job = {}

local KNOWN = {
    id = {is = document.is_name, must_be = 'a string of 1 to 128 of A-Z a-z 0-9 _ . -'},
    cursor = {is = function(value)
        if type(value) ~= 'table' or #value == 0 then return false end
        for _, word in ipairs(value) do
            if type(word) ~= 'string' then return false end
        end
        return places.stack(value, 1) ~= nil
    end, must_be = 'as it was answered'},
}

function one_job.read(text, what)
    local given, refusal = document.read(text, KNOWN, what)
    if not given then return nil, refusal end
    if not given.id then return nil, document.missing(what, 'id') end
    return given, places.stack(given.cursor or {}, 1)
end

-- Other partitions may have it.
function one_job.not_here(id, words)
    if words then
        for i, word in ipairs(words) do words[i] = document.text(word) end
        return '{"cursor":[' .. concat(words, ',') .. ']}'
    end
    local other = partition.own() + 1
    if other < partition.count() then return document.elsewhere(other) end
    return document.refused('missing', 'job ' .. id .. ': no such job here: it is done, or was never enqueued')
end

return one_job

-- note: puts what somebody has done into the log, beside the changes of limits, which their scripts put there. It changes no revision.
--
-- ARGV: now, what, by
-- role: operator
-- reply: JSON: {}
-- uses: check rates

local WHAT_MOST = 400 -- bytes

local function note(ARGV)
    if #ARGV ~= 3 or ARGV[2] == '' or #ARGV[2] > WHAT_MOST or find(ARGV[2], '[^ -~]') then
        return refuse('note: wants now, what was done, of at most %d printable bytes, and by whom', WHAT_MOST)
    end
    local wrong = check.wrong_kind('acts', 'list')
    if wrong then return check.refuse_key(wrong) end
    rates.note(ARGV[2], ARGV[3])
    return answer{}
end

return note

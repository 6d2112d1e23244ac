-- schedule_row: a schedule as scripts answer it.
--
local function schedule_row(name, definition)
    local due = call('ZSCORE', P .. 'later', 's ' .. name .. '\n')
    return {name = name, definition = definition, due = due and us(tonumber(due)) or nil}
end

return schedule_row

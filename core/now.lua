-- now: the time of this call, in microseconds. ARGV[1]: a test's own, or '' for Redis TIME.

-- A virtual clock is a test's own: nothing then expires by Redis's clock.
local VIRTUAL = ARGV[1] ~= ''
local now
if VIRTUAL then
    now = tonumber(ARGV[1])
else
    local t = call('TIME') -- once: it moves within a script on Redis 7.0
    now = t[1] * 1000000 + t[2]
end

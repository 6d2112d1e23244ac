-- stamp: when a job was enqueued, in the head of its entry, as Weir's producers write it: ",t" and six digits of base 64, units of 10 ms
-- since 2020. A scheduled job is enqueued when it is due.
--
-- A head that says nothing else needs no signature: whoever forges it spoils the age of its own job. Behind such a head stands a body of
-- Weir's producers; claims rely on that.
--
--   stamp.ALONE      a pattern: an entry with such a head
--   stamp.BODY       where the body begins in such an entry
--   stamp.DIGITS     in the order of ASCII
--   stamp.is(text)   are these such digits?
--   stamp.attr(at)   the attr of that time, us
--   stamp.renewed(attrs)  those of a job that is enqueued now
--   stamp.time(attrs)  when a job was enqueued whose head has these attrs, us; nil: it does not say so
--
-- uses: lease
local stamp = {}

local UNIT_US, BEGIN, COUNT = 10000, 157783680000, 6 -- BEGIN: 2020-01-01 in those units

stamp.ALONE = '^@0,0,0,t[%w_-][%w_-][%w_-][%w_-][%w_-][%w_-];{'
stamp.BODY = 16
stamp.DIGITS = {}

local DIGITS, VALUES = stamp.DIGITS, {}
for digit in ('-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz'):gmatch('.') do
    VALUES[digit] = #DIGITS
    DIGITS[#DIGITS + 1] = digit
end

function stamp.is(text) return #text == COUNT and not find(text, '[^%w_-]') end

-- What lies before 2020 is unknown.
function stamp.attr(at)
    local units, text = max(0, floor(at / UNIT_US) - BEGIN), ''
    for _ = 1, COUNT do
        text, units = DIGITS[units % 64 + 1] .. text, floor(units / 64)
    end
    return ',t' .. text
end

-- A job of which it is not known stays one.
function stamp.renewed(attrs)
    local rest, n = attrs:gsub(',t[^,]*', '')
    return n > 0 and rest .. stamp.attr(now) or attrs
end

function stamp.time(attrs)
    local text, units = lease.attr(attrs, 't'), 0
    if not text or not stamp.is(text) then return nil end
    for digit in text:gmatch('.') do units = units * 64 + VALUES[digit] end
    return units > 0 and (units + BEGIN) * UNIT_US or nil
end

return stamp

-- stamp: when a job was enqueued, in the head of its entry, as Weir's producers write it: seven digits of base 64, units of 10 ms since 2020, which
-- last to 3413. It never changes. "@" and these digits are the whole head of a job that is new; in a head that says more they stand behind ",t".
-- Of a job that waits since later, ",d" and such digits say since when: a scheduled one since it is due, a dead one that was retried since then.
--
-- A head that is only a stamp needs no signature: whoever forges it spoils the age of its own job. Behind such a head stands a body of
-- Weir's producers; claims rely on that. It is short, as Lua computes a hash over each byte of an entry, one after the other.
--
--   stamp.ALONE      a pattern: an entry with such a head
--   stamp.BODY       where the body begins in such an entry
--   stamp.DIGITS     in the order of ASCII; stamp.VALUES: digit -> its value, 0 to 63
--   stamp.is(text)   are these such digits?
--   stamp.head(at)   the head of a job that is enqueued at that time, us
--   stamp.due(attrs, at)  those of a job that waits since then, us; of one that does not say when it was enqueued they stay
--   stamp.time(attrs)  when a job was enqueued whose head has these attrs, us; nil: it does not say so
--   stamp.since(attrs) since when it waits, us; nil likewise. And whether that is later, as it was due then
--
-- uses: heads
local stamp = {}

local MOST = 64 ^ 7 - 1
local UNIT_US, BEGIN, COUNT = 10000, 157783680000, 7 -- BEGIN: 2020-01-01 in those units

stamp.ALONE, stamp.BODY = heads.STAMP, 9
stamp.DIGITS, stamp.VALUES = {}, {}

local DIGITS, VALUES = stamp.DIGITS, stamp.VALUES
for digit in ('-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz'):gmatch('.') do
    VALUES[digit] = #DIGITS
    DIGITS[#DIGITS + 1] = digit
end

function stamp.is(text) return #text == COUNT and not find(text, '[^%w_-]') end

-- Writes a stamp; what lies before 2020 is unknown.
local function write(at)
    local units, text = min(MOST, max(0, floor(at / UNIT_US) - BEGIN)), ''
    for _ = 1, COUNT do
        text, units = DIGITS[units % 64 + 1] .. text, floor(units / 64)
    end
    return text
end

local function read(text)
    local units = 0
    if not text or not stamp.is(text) then return nil end
    for digit in text:gmatch('.') do units = units * 64 + VALUES[digit] end
    return units > 0 and (units + BEGIN) * UNIT_US or nil
end

function stamp.head(at) return '@' .. write(at) end

function stamp.due(attrs, at)
    if not heads.attr(attrs, 't') then return attrs end
    return attrs:gsub(',d[^,]*', '') .. ',d' .. write(at)
end

function stamp.time(attrs) return read(heads.attr(attrs, 't')) end

function stamp.since(attrs)
    local due = read(heads.attr(attrs, 'd'))
    return due or stamp.time(attrs), due ~= nil
end

return stamp

-- token_bucket: a bucket of burst tokens, one more every T until it is full; a job takes cost of them.
--
-- That bucket lacks (TAT - now) / T tokens: it grants exactly what GCRA grants, and is kept as GCRA keeps it.
-- uses: gcra

local token_bucket = {
    read = gcra.read, scale = gcra.scale, fresh = gcra.fresh, load = gcra.load, store = gcra.store, back = gcra.back,
    remember = gcra.remember,
    start = gcra.start, count = gcra.count, take = gcra.take, note = gcra.note, charge = gcra.charge, give = gcra.give,
    used = gcra.used, fill = gcra.fill, slowed = gcra.slowed, full = gcra.full, lost = gcra.lost, resets = gcra.resets,
}

return token_bucket

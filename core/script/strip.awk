# Lua files as Redis gets them: without comments, indentation and trailing blanks. Each line stays a line, so that an error names it.
# base=PATH: each as the body of a function whose value has the name of the file, among `scripts` where that (" PATH PATH ... ") names it; all see the
# locals of that base. Those of `late` (" PATH PATH ... ") are texts, which late_value() of base.lua compiles. A text sees no locals from outside,
# so a function gives it those that it names.

BEGIN {
    while (base && (getline text < base) > 0) {
        if (text ~ /^local /) note_locals(text)
        line++
    }
    note_locals("local scripts, role_rights")
    line += 2 # what stands around the base
}

# text is "local a, b = ..." or "local function c(...)".
function note_locals(text,    i, n, list) {
    sub(/^local (function )?/, "", text)
    sub(/ *[(=].*/, "", text)
    n = split(text, list, /, */)
    for (i = 1; i <= n; i++) is_local[list[i]] = 1
}

function note_words(text,    word) {
    while (match(text, /[A-Za-z_][A-Za-z_0-9]*/)) {
        word = substr(text, RSTART, RLENGTH)
        text = substr(text, RSTART + RLENGTH)
        if (word in is_local && !(word in known)) give(word, word)
    }
}

function give(word, value) {
    known[word] = 1
    words = words (words == "" ? "" : ", ") word
    values = values (values == "" ? "" : ", ") value
}

function end_file() {
    print is_late ? "]==], names = '" words "', given = function() return " values " end}" : "end)()"
    line++
}

FNR == 1 && base {
    if (NR > 1) end_file()
    name = FILENAME
    sub(/.*\//, "", name)
    sub(/\.lua$/, "", name)
    is_late = index(late, " " FILENAME " ")
    words = values = ""
    split("", known)
    known["P"] = known["now"] = known["VIRTUAL"] = known["call"] = 1 # these are given at each call
    if (is_late) was_late[name] = 1
    print (is_late ? "late." : index(scripts, " " FILENAME " ") ? "scripts." : "local ") name " = " \
        (is_late ? "{line = " line ", text = [==[" : "(function()")
    line++
}

/\[=*\[/ {
    print "strip.awk: " FILENAME ":" FNR ": a text or comment in long brackets; use quotes, or -- on each line" > "/dev/stderr"
    exit 1
}

is_late && /^-- uses: / {
    for (i = 3; i <= NF; i++) give($i, $i in was_late ? "late_value('" $i "')" : $i)
}

{
    quote = ""
    for (i = 1; i <= length($0) && /--/; i++) {
        c = substr($0, i, 1)
        if (quote != "" && c == "\\") {
            i++
        } else if (quote != "") {
            if (c == quote) quote = ""
        } else if (c == "'" || c == "\"") {
            quote = c
        } else if (substr($0, i, 2) == "--") {
            $0 = substr($0, 1, i - 1)
        }
    }
    gsub(/^[ \t]+|[ \t]+$/, "")
    if (is_late) note_words($0)
    print
    line++
}

END { if (base) end_file() }

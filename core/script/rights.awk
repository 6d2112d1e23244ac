# What each role needs of Redis, read from the scripts: rights.awk FILE.lua ... prints "<role> +<command>" and
# "<role> <mode>~<keys>", unsorted. Mode: R, W or RW; keys: a name behind the prefix, or a pattern: "queue:*", "*".
# Roles that are given to programs which are trusted with little get each command for the keys alone on which a script calls it:
# "<role> (+<command>,...,<mode>~<keys>)". A line that names a key and no command is taken to need all that stand in lines of its file which name no key.
#
# A function needs the commands and keys that stand in it, and what the functions need whose names stand in it. A key is read or
# written as the last command before it on its line does; where none stands there, both. So a script names a key where it is used:
# P .. '<key>'; of what stands behind a P in a variable nothing is known, and its role gets all keys.
# The line "-- role:" of a script says who calls it; operators call all.

BEGIN {
    # Redis's rights to keys: a command that only asks whether and how much there is needs neither.
    split("exists type hexists hlen hstrlen llen scard sismember zcard", plain)
    split("get getrange hget hgetall hkeys hmget hrandfield hscan hvals lindex lrange pttl smembers srandmember sscan " \
          "zcount zmscore zrandmember zrange zrangebylex zrangebyscore zrank zscan zscore zunion", reads)
    split("del unlink hdel hset hsetnx lpush lrem lset ltrim persist pexpire rpush sadd set srem zadd zrem zremrangebyrank", writes)
    split("hincrby lpop renamenx spop sunionstore zincrby zunionstore", both)
    for (i in plain) needs[plain[i]] = "-"
    for (i in reads) needs[reads[i]] = "R"
    for (i in writes) needs[writes[i]] = "W"
    for (i in both) needs[both[i]] = "RW"
    needs["time"] = needs["scan"] = "-"
    narrow["producer"] = narrow["taker"] = 1
    CALL = "(call|call_safe|push|read|scan|last)\\("
    FUNCTION = "^(local )?function [a-z_.]+\\("
}

FNR == 1 {
    module = FILENAME
    gsub(/.*\/|\.lua$/, "", module)
    chunk = module "()"
    here = chunk
    files[module] = 1
}

/^-- role: / { roles[module] = substr($0, 10) }
/^-- writes: nothing$/ { looks[module] = 1 }
/^ *--/ { next }

# local claim, ring = claim_call, claim_ring
/^ *local [a-z_, ]+ = [a-z_, ]+$/ {
    n = split($0, sides, / = |local /)
    split(sides[2], called, ", ")
    for (i = split(sides[3], meant, ", "); i > 0; i--) alias[module, called[i]] = meant[i]
}

$0 ~ FUNCTION {
    here = $0
    sub(/^local /, "", here)
    sub(/^function /, "", here)
    sub(/\(.*/, "", here)
    if (here !~ /\./) here = module "." here
    else if (index(here, module ".") != 1) here = chunk # of a table in this file, whose members are called by words of arguments
    known[here] = 1
    module_of[here] = module
}

{
    look_at_line($0)
    if (/^end/ || ($0 ~ FUNCTION && / end$/)) here = chunk
}

function add(set, value) { if (index(set, " " value " ")) return set; return (set == "" ? " " : set) value " " }

function look_at_line(line,    rest, word, mode, before, command) {
    sub(/ -- .*/, "", line)
    gsub(/P \.\. [a-z]/, "P .. ''&", line) # a key that stands in a variable: one without a name
    rest = line
    mode = "RW"
    command = "?"
    while (match(rest, /'[^']*'/)) {
        word = substr(rest, RSTART + 1, RLENGTH - 2)
        before = substr(rest, 1, RSTART - 1)
        rest = substr(rest, RSTART + RLENGTH)
        if (word ~ /^[A-Z]+$/ && tolower(word) in needs) {
            command = tolower(word)
            mode = needs[command]
            commands[here] = add(commands[here], command)
            if (line !~ /P \.\./) bare[here] = add(bare[here], command)
        } else if (before ~ /(call|call_safe|push|scan)\($/ && word ~ /^[A-Z]+$/) {
            fail(word ": add it to the commands that rights.awk knows")
        } else if (before ~ /P \.\. $/ && (word != "" || (mode != "-" && line ~ CALL))) {
            add_key(mode, command, word)
        } else if (before ~ /wrong_kind\($/) {
            add_key("-", "type", word)
        } else if (line ~ /P \.\. \(/ && word ~ /^[a-z]+:$/) {
            add_key(mode, command, word)
        }
    }
    gsub(/'[^']*'/, " ", line)
    while (match(line, /[A-Za-z_][A-Za-z0-9_.]*/)) {
        word = substr(line, RSTART, RLENGTH)
        line = substr(line, RSTART + RLENGTH)
        names[here] = add(names[here], word)
    }
}

function add_key(mode, command, key) {
    keys[here] = add(keys[here], mode "~" family(key))
    pairs[here] = add(pairs[here], command "~" family(key))
}

function family(key) {
    sub(/:.*/, ":", key)
    return key
}

function fail(what) {
    print "rights.awk: " FILENAME ":" FNR ": " what > "/dev/stderr"
    exit 1
}

# The function that a word names in a module; "": none.
function function_of(module, word,    parts) {
    if (split(word, parts, ".") == 1) return module "." word
    return ((module, parts[1]) in alias ? alias[module, parts[1]] : parts[1]) "." parts[2]
}

function visit(name, module,    words, n, i, to) {
    if (name in seen) return
    seen[name] = 1
    n = split(names[name], words, " ")
    for (i = 1; i <= n; i++) {
        to = function_of(module, words[i])
        if (!(to in known)) continue
        visit(to, module_of[to])
        visit(module_of[to] "()", module_of[to])
    }
}

# The same to a narrow role, command by command.
function give_each(role, only_looks,    name, words, n, i, part) {
    for (name in seen) {
        n = split(pairs[name], words, " ")
        for (i = 1; i <= n; i++) {
            split(words[i], part, "~")
            if (part[1] == "?") vague[role "~" part[2]] = add(vague[role "~" part[2]], module_of[name])
            else if (!only_looks || needs[part[1]] !~ /W/) on[role "~" part[2]] = add(on[role "~" part[2]], part[1])
        }
        n = split(bare[name], words, " ")
        for (i = 1; i <= n; i++) {
            if (words[i] == "time") rights[role " +time"] = 1
            else if (!only_looks || needs[words[i]] !~ /W/) bare_of[role, module_of[name]] = add(bare_of[role, module_of[name]], words[i])
        }
    }
}

# "producer (+rpush,+type,W~queue:*)"
function print_each(at,    part, words, files_of, n, i, k, text, mode) {
    split(at, part, "~")
    text = on[at]
    for (k = split(vague[at], files_of, " "); k > 0; k--)
        for (i = split(bare_of[part[1], files_of[k]], words, " "); i > 0; i--) text = add(text, words[i])
    n = split(text, words, " ")
    text = ""
    mode = ""
    for (i = 2; i <= n; i++) # sorted: the order of an awk's arrays is its own
        for (k = i; k > 1 && words[k - 1] > words[k]; k--) {
            at = words[k]
            words[k] = words[k - 1]
            words[k - 1] = at
        }
    for (i = 1; i <= n; i++) {
        text = text "+" words[i] ","
        if (needs[words[i]] ~ /R/ && mode !~ /R/) mode = "R" mode
        if (needs[words[i]] ~ /W/ && mode !~ /W/) mode = mode "W"
    }
    print part[1] " (" text (mode == "" ? "R" : mode) "~" part[2] (part[2] ~ /:$/ ? "*" : "") ")"
}

# What all functions need that were visited, to a role. What only looks needs no right to write.
function give(role, only_looks,    name, words, n, i, at, mode) {
    for (name in seen) {
        n = split(commands[name], words, " ")
        for (i = 1; i <= n; i++) rights[role " +" words[i]] = 1
        n = split(keys[name], words, " ")
        for (i = 1; i <= n; i++) {
            at = role " " substr(words[i], index(words[i], "~"))
            mode = substr(words[i], 1, index(words[i], "~") - 1)
            if (only_looks && mode != "-") mode = "R"
            touched[at] = 1
            if (mode ~ /R/) read[at] = 1
            if (mode ~ /W/) written[at] = 1
        }
    }
}

END {
    for (module in roles) {
        split("", seen)
        visit("base.script", "base")
        visit(module "." module, module)
        visit(module "()", module)
        n = split(roles[module], list, " ")
        for (i = 1; i <= n; i++) if (list[i] in narrow) give_each(list[i], module in looks); else give(list[i], module in looks)
        give("operator", module in looks)
    }
    for (right in rights) print right
    for (at in vague) if (!(at in on)) on[at] = ""
    for (at in on) print_each(at)
    for (at in touched) {
        split(at, part, "~")
        if (part[2] == "" || !covers(mode_of(part[1] "~"), mode_of(at))) print part[1] mode_of(at) "~" part[2] (part[2] ~ /^(.*:)?$/ ? "*" : "")
    }
}

function mode_of(at) {
    if (!(at in touched)) return "none"
    return (at in written) ? ((at in read) ? "RW" : "W") : "R"
}

function covers(whole, mode) { return whole == "RW" || whole == mode }

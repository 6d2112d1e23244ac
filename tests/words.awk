# tests/lint.sh --words: counts comments that a reader cannot understand alone. Advisory: it guesses, and fails nothing.
#
#   above    the first sentence points at what stands before: "The same, and ...", "It ...", "These ...", "that one", "of them"
#   riddle   the first sentence is a question
#   no verb  the first sentence of a comment that begins a line has more than three words and no verb
#
# A comment is judged by its first sentence, and counts once. The first comment of a file is its title, a line of dashes a heading. A verb is
# an auxiliary, or a word with which some comment begins and that ends in s ("Takes"), or the same without the s.
# Prints the files with ten or more, then totals in % of the lines of comments. -v only='FILE...': each such comment of these, with its place.

function end_comment() {
    if (text != "" && begun > 1 && text !~ /^-|^[a-z]+:/) {
        n++; place[n] = FILENAME ":" begun; file[n] = FILENAME; alone[n] = own
        sentence[n] = match(text, /[.?:;]( |$)/) ? substr(text, 1, RSTART) : text
        word = sentence[n]; sub(/[^A-Za-z].*/, "", word)
        if (word ~ /^[A-Z][a-z]+s$/ && !(tolower(word) in noun)) verb[tolower(word)] = verb[tolower(substr(word, 1, length(word) - 1))] = 1
    }
    text = ""
}

function add(line) {
    sub(/\*\/.*/, "", line); gsub(/^[ \t*]+|[ \t]+$/, "", line)
    text = text (text == "" || line == "" ? "" : " ") line
}

function verbs(s,    i, count, w, words) {
    count = split(tolower(s), words, /[^a-z_]+/)
    for (i = 1; i <= count; i++) if (words[i] in verb) w++
    return w + 0
}

function kind(i,    s) {
    s = sentence[i]
    if (s ~ /^(The same|Same|The others?|Likewise|And|Or|Nor|But|Its?|They|Their|Them|This|That|These|Those|Both|Neither|So|Then|Else|Also|Again)[ ,.:;]/ ||
        s ~ /(^| )(of them|that one|this one|the other one|likewise|as above|the former|the latter)[ ,.:;?]/) return "above"
    if (s ~ /\?$/) return "riddle"
    if (alone[i] && split(s, w, " ") > 3 && verbs(s) < (s ~ /^(What|Which|Who|Whose|How|Whether|Where|When) / ? 2 : 1)) return "no verb"
    return ""
}

BEGIN {
    split("is are was were has have had does do did can cannot may must will would should comes goes went came said stood gave took knew found " \
          "becomes begins begin ends follows means needs stands waits says lives lies holds grows matters depends happens remains sees repeats belongs fetches true", w, " ")
    for (i in w) { verb[w[i]] = 1; if (w[i] ~ /[^aiw]s$/) verb[substr(w[i], 1, length(w[i]) - 1)] = 1 }
    split(only, w, " ")
    for (i in w) wanted[w[i]] = 1
    split("names jobs lines types queues gates lanes keys slots rules limits tokens bytes words entries workers times seconds this its as microseconds", w, " ")
    for (i in w) noun[w[i]] = 1
}

FNR == 1 { end_comment(); inside = 0; lua = FILENAME ~ /\.lua$/ }
lua && /^ *--/ { lines++; if (text == "") { begun = FNR; own = /^--/ } line = $0; sub(/^ *-- ?/, "", line); add(line); next }
lua { end_comment(); next }
inside || /\/\*/ {
    lines++; line = $0
    if (!inside) { end_comment(); begun = FNR; own = /^\/\*/; sub(/.*\/\*/, "", line) }
    inside = line !~ /\*\//; add(line)
    if (!inside) end_comment()
}

END {
    end_comment()
    for (i = 1; i <= n; i++) if ((k = kind(i)) != "") {
        total[k]++; sum++; of_file[file[i]]++
        if (file[i] in wanted) printf "%s: %s: %s\n", place[i], k, sentence[i]
    }
    if (only == "") for (f in of_file) if (of_file[f] >= 10) printf "%5d  %s\n", of_file[f], f | "sort -rn"
    close("sort -rn")
    printf "%d of %d lines of comments (%.1f %%): above %d, riddle %d, no verb %d\n", sum, lines, lines ? 100 * sum / lines : 0, total["above"], total["riddle"], total["no verb"]
}

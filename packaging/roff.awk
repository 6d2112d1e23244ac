# What man.awk and man_library.awk write with: lines of a page, by man(7).

# A line of input as text: nothing of it is a request. Long ones are continued, as man pages are read by the line.
function text(line, rest, out, at) {
    gsub(/\\/, "\\e", line)
    gsub(/-/, "\\-", line)
    gsub(/'/, "\\(aq", line)
    gsub(/\^/, "\\(ha", line)
    gsub(/~/, "\\(ti", line)
    gsub(/`/, "\\(ga", line)
    if (line ~ /^\./)
        line = "\\&" line
    for (rest = line; length(rest) > 70; rest = substr(rest, at + 1)) {
        for (at = 70; at > 1 && substr(rest, at, 1) != " "; at--)
            ;
        if (at == 1)
            break
        out = out substr(rest, 1, at) "\\\n"
    }
    return out rest
}

function put(line) { print line > page }

function heading(macro, words) {
    end_block()
    put("." macro (macro == "SH" ? " \"" text(words) "\"" : "\n" text(words)))
    gap = 0
    fresh = 1
}

function end_block() {
    if (block)
        put(".EE")
    gap = gap || block
    block = 0
}

function paragraph() {
    if (gap && !fresh)
        put(".PP")
    gap = fresh = 0
}

# A line of prose, or one to be kept as it is.
function line_out(line) {
    if (line ~ /^ *$/) {
        gap = 1
        return
    }
    if ((line ~ /^  / || line ~ /^\$ /) != block || (block && gap)) {
        end_block()
        paragraph()
        if (line ~ /^  / || line ~ /^\$ /) {
            put(".EX")
            block = 1
        }
    }
    paragraph()
    put(text(block && line !~ /^  / ? "  " line : line))
}


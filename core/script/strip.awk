# Lua files as Redis gets them: without comments, indentation and trailing blanks. Each line stays a line, so that an error names it.
# wraps=1: each as the body of a function whose value has the name of the file, among `scripts` where that (" PATH PATH ... ") names it.

FNR == 1 && wraps {
    if (NR > 1) print "end)()"
    name = FILENAME
    sub(/.*\//, "", name)
    sub(/\.lua$/, "", name)
    print (index(scripts, " " FILENAME " ") ? "scripts." : "local ") name " = (function()"
}

/\[=*\[/ {
    print "strip.awk: " FILENAME ":" FNR ": a text or comment in long brackets; use quotes, or -- on each line" > "/dev/stderr"
    exit 1
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
    print
}

END { if (wraps) print "end)()" }

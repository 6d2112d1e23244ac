# Makes what lowdown writes of doc/protocol.md a page that man and mandoc like: it has a NAME, fonts that both know, and short lines.
/^\.SH$/ && !named++ {
    getline
    print ".SH NAME\nweir\\-protocol \\- how programs in any language speak to the job queue Weir\n.SH DESCRIPTION"
    heading = 1
    next
}
heading && /^\.(PP|LP)/ { next }
{
    heading = heading == 2 # the words of a heading stand on the next line
    if (/^\.S[HS]$/)
        heading = 2
    gsub(/\\fB\\fC/, "\\fB")
    gsub(/\\fC/, "\\f(CR")
    gsub(/ <\\fI#[^>]*>/, "") # leads to another place of the page
    if (/^\.(EX|nf|TS)/)
        kept = 1
    if (/^\.(EE|fi|TE)/)
        kept = 0
    while (!kept && length > 80 && (at = break_of($0)) > 0) {
        print substr($0, 1, at - 1)
        $0 = substr($0, at + 1)
    }
    print
}

# A blank behind which a line may begin.
function break_of(line, at) {
    for (at = 80; at > 1; at--)
        if (substr(line, at, 1) == " " && substr(line, at + 1, 1) !~ /[ .\x27]/)
            return at
    return 0
}

# Writes libweir.3 from include/weir.h, its comments as prose, and the list of pages that lead to it, one a function:
#   awk -v dir=build/man/man3 -v version=0.1.0 -v date=2026-11-28 -f packaging/roff.awk -f packaging/man_library.awk include/weir.h

BEGIN {
    page = dir "/libweir.3"
    put(".TH LIBWEIR 3 " date " \"Weir " version "\" \"Weir\"")
    put(".SH NAME\nlibweir \\- producers and workers of the job queue Weir, in C")
    put(".SH SYNOPSIS\n.B #include <weir.h>\n.PP\n\\fBcc own.c $(pkg\\-config \\-\\-cflags \\-\\-libs weir)\\fP")
    heading("SH", "DESCRIPTION")
}

function link(line, name) {
    name = line
    sub(/\(.*/, "", name)
    sub(/.*[ *]/, "", name)
    if (!linked[name]++)
        print name ".3" > (dir "/links")
}

# A line of C: what is only there for compilers is left out.
function code(line) {
    if (line ~ /^WEIR_(API|INLINE) /)
        link(line)
    gsub(/WEIR_(API|INLINE|CHECKED) |#define WEIR_(API|INLINE|CHECKED|PRINTF).*/, "", line)
    line_out("  " line)
}

/^WEIR_INLINE [^;]*$/ && in_sized { in_body = 1 }
in_body { if (/^}/) in_body = 0; next }
/^#(ifn?def|endif|include|define WEIR_(H|API|PRINTF|CHECKED|INLINE))|^extern "C"|^}$/ { next }
/^\/\* ---- / {
    gsub(/^\/\* -+ | -+ \*\/$/, "")
    in_sized = /^Structs that grow/
    heading("SH", toupper($0))
    next
}
/^(\/\*| \*)/ || in_comment {
    opens = /^\/\*/
    in_comment = !/\*\//
    gsub(/^\/\*( |$)| *\*\/$|^ \*( |$)/, "")
    if (opens || /^  - /)
        gap = 1
    sub(/^weir.h - t/, "T")
    if (/^ *cc own.c/)
        next
    sub(/^ +/, "")
    if (/^(Conventions|After fork\(\))$/)
        heading("SS", $0)
    else
        line_out($0)
    next
}
{ code($0) }

END {
    end_block()
    put(".SH \"SEE ALSO\"\n.BR weir (1)")
}

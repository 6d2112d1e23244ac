# What embed.sh wants to know of Lua files, a line each, with tabs between:
#
#   PATH NAME script|part ROLES FULL OWN_CLOCK ANY_FORMAT LINES USED,USED,...     "-": none
#
# A file with a line "-- ARGV:" is a script. FULL, OWN_CLOCK and ANY_FORMAT are true or false.

BEGIN { OFS = "\t" }

function say() {
    if (path == "") return
    print path, name, kind, (writes ? role : "viewer"), full, clock, format, lines, (uses == "" ? "-" : uses)
}

FNR == 1 {
    say()
    path = name = FILENAME
    sub(/.*\//, "", name)
    sub(/\.lua$/, "", name)
    kind = "part"
    role = "-"
    writes = 1
    full = clock = format = "false"
    uses = ""
}

{ lines = FNR }
/^-- ARGV:/ { kind = "script" }
/^-- role: / { role = substr($0, 10) }
/^-- writes: nothing$/ { writes = 0 }
/^-- full: refused$/ { full = "true" }
/^-- time: when needed$/ { clock = "true" }
/^-- format: any$/ { format = "true" }
/^-- uses: / { for (i = 3; i <= NF; i++) uses = uses (uses == "" ? "" : ",") $i }

END { say() }

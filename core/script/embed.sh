#!/bin/sh
# Writes all Lua as one library of Redis functions, in C: embed.sh FILE.lua ... > scripts.c
#
# Comments and indentation are left out (strip.awk); what files say of themselves is read by facts.awk. Lines stay, and script_places tells which line of which file one is.
# role_rights, behind base.lua: role -> what its scripts need of Redis, as rights.awk finds it.
# core/script/base.lua is the top level. Each other file becomes "local <its name> = (function() ... end)()", behind those that its
# line "-- uses: a b" names. A file with a line "-- ARGV:" is a script: its value is kept in a table, as Lua has room for 200 locals,
# and registered as the function weir_<digest>_<its name>; "-- full: refused" says that a full Redis refuses it, "-- time: when needed" that it reads the clock
# itself, "-- writes: nothing" has Redis refuse its writes, "-- role: worker" whose key a call of it names. The digest is that of the text: two versions of Weir have two
# libraries, and each calls its own.
# "-- format: any": it runs though there are data of a format that this version does not read.
set -eu

base=${BASE:-core/script/base.lua} # tests have another one

# Where there are many files, processes for each of them would take most of the time: so each step is one awk over all.
facts=$(awk -f core/script/facts.awk "$@")
facts() { printf '%s\n' "$facts"; }

# The facts of files, each behind those that it uses. tsort wants pairs: what is used, and what uses it.
in_order() {
    facts | awk -F'\t' '
        $1 == "core/script/base.lua" { next }
        { print $2, $2 }
        $9 != "-" { for (i = split($9, used, ","); i > 0; i--) print used[i], $2 }' | tsort |
        { facts; cat; } | awk -F'\t' '
            NF > 1 { fact[$2] = $0; next }
            $1 in fact { print fact[$1]; next }
            { print "embed.sh: \047-- uses: " $1 "\047: there is no " $1 ".lua" > "/dev/stderr"; exit 1 }'
}

ordered=$(in_order)
ordered() { printf '%s\n' "$ordered"; }
scripts() { facts | awk -F'\t' '$3 == "script"'; }

# Files that no worker, producer or taker needs: scripts of operators and viewers, and what only they use. They are compiled when they are called.
late() {
    ordered | awk -F'\t' '
        { list[NR] = $2; path[$2] = $1; used[$2] = $9; soon[$2] = $3 == "script" && $4 ~ /^(worker|producer|taker|-)$/ }
        END {
            for (i = NR; i > 0; i--)
                if (soon[list[i]])
                    for (n = split(used[list[i]], names, ","); n > 0; n--) soon[names[n]] = 1
            for (i = 1; i <= NR; i++) if (!soon[list[i]]) print path[list[i]]
        }'
}

library() { # FILE...
    late=" $(late | tr '\n' ' ')"
    awk -f core/script/strip.awk "$base"
    echo "local scripts, role_rights = {}, {$(roles "$@" | sed 's/^ *{"\(.*\)", \("[^"]*"\)},$/\1 = \2,/' | tr '\n' ' ')}"
    awk -v base="$base" -v scripts=" $(scripts | cut -f 1 | tr '\n' ' ')" -v late="$late" -f core/script/strip.awk $(ordered | cut -f 1)
    scripts | awk -F'\t' -v q="'" -v late="$late" '{
        if (index(late, " " $1 " ")) printf "scripts.%s = late_script(%s%s%s)\n", $2, q, $2, q
        printf "script(%s%s%s, scripts.%s, {full_refused = %s, own_clock = %s, role = %s%s%s, any_format = %s})\n", q, $2, q, $2, $5, $6, q, $4, q,
            $7 }'
}

# The line of the library that stands before a file's first one, for an error that names a line.
places() {
    { wc -l <"$base" && ordered | cut -f 1,8; } | awk -F'\t' -v base="$base" '
        NR == 1 { print "    {\"" base "\", 1},"; line = $1 + 2; next }
        { print "    {\"" $1 "\", " line + 1 "},"; line += $2 + 2 }'
}

roles() { # FILE...
    awk -f core/script/rights.awk "$@" | LC_ALL=C sort | awk '
        $1 != role { if (role != "") print "\"},"; role = $1; printf "    {\"%s\", \"%s", role, $2; next }
        { printf " %s", $2 }
        END { print "\"}," }'
}

quoted() { sed 's/\\/\\\\/g; s/"/\\"/g; s/^/    "/; s/$/\\n"/'; }

text=$(library "$@")
digest=$(printf '%s\n' "$text" | sha1sum | cut -c1-12)

echo '#include "core/script/script.h"'
echo "const char script_digest[] = \"$digest\";"
echo "const int script_format = $(sed -n 's/^local FORMAT_WRITTEN = //p' "$base");"
echo 'const char script_library[] ='
printf '#!lua name=weir_%s\n%s\n' "$digest" "$text" | sed "s/weir_DIGEST_/weir_${digest}_/" | quoted
echo ';'
echo 'const struct script scripts[] = {'
scripts | awk -F'\t' '{ print "    {\"" $2 "\", \"" $4 "\"}," }' | LC_ALL=C sort
echo '    {0}};'
echo 'const size_t script_count = sizeof scripts / sizeof *scripts - 1;'
echo 'const struct script_place script_places[] = {'
places
echo '    {0}};'
echo 'const struct script_role script_roles[] = {'
roles "$@"
echo '    {0}};'

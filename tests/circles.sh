#!/bin/sh
# Prints the object files of the layers below BUILD that call each other in a circle; nothing: there is none.
# Who calls whom is what the linker sees: nm. Files that call none of the rest, or that none of it calls, are
# taken away until nothing changes; what is left are circles, and what lies between two of them.
set -eu
build=${1:-build}
find "$build"/core "$build"/throttle "$build"/queue "$build"/producer "$build"/worker "$build"/view "$build"/serve "$build"/cli -name '*.o' 2>/dev/null |
    while read -r object; do
        source=${object#"$build"/}
        [ ! -e "${source%.o}.c" ] || echo "$object" # of a source that was moved an old object may be left
    done |
    xargs nm -A | awk -F: -v build="$build/" '
{
    file = substr($1, length(build) + 1); split($2, word, " ")
    files[file] = 1
    if (word[1] == "U") wants[file, word[2]] = 1
    else if (word[2] ~ /^[TDBRC]$/) has[word[3]] = file
}
END {
    for (pair in wants) {
        split(pair, part, SUBSEP)
        if (part[2] in has && has[part[2]] != part[1]) calls[part[1], has[part[2]]] = 1
    }
    do {
        changed = 0
        split("", above); split("", below)
        for (pair in calls) { split(pair, part, SUBSEP); below[part[1]] = 1; above[part[2]] = 1 }
        for (pair in calls) {
            split(pair, part, SUBSEP)
            if (!(part[1] in above) || !(part[2] in below)) { delete calls[pair]; changed = 1 }
        }
    } while (changed)
    for (pair in calls) { split(pair, part, SUBSEP); print part[1] " calls " part[2] }
}' | sort

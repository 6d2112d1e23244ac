#!/bin/sh
# Writes the scripts as C: embed.sh FILE.lua ... > scripts.c
# A script's line "-- uses: a.lua b.lua" names the parts that are put before it; a file that only others use is no
# script of its own and is not named here. allow-oom: a full Redis must still be drained (DESIGN, "Nothing lost"); what
# fills it has the line "-- full: refused" and runs without.
set -eu

# Each part is the body of a function of its own, inside of the part before it: what a function takes from outside is then found at
# once. In one flat chunk Lua 5.1 searches all captured locals for each, which took half of the time of a claim.
whole() { # the script with its parts, as Redis gets it
    closing=
    if grep -q '^-- full: refused$' "$1"; then echo '#!lua'; else echo '#!lua flags=allow-oom'; fi
    for part in $(sed -n 's/^-- uses: //p' "$1"); do
        cat "$part"
        echo 'return (function()'
        closing="$closing end)()"
    done
    cat "$1"
    echo "$closing"
}

quoted() { sed 's/\\/\\\\/g; s/"/\\"/g; s/^/    "/; s/$/\\n"/'; }

echo '#include "core/script.h"'
echo 'const struct script scripts[] = {'
for file in "$@"; do
    printf '{.name = "%s", .sha1 = "%s", .source =\n' "$(basename "$file" .lua)" "$(whole "$file" | sha1sum | cut -c1-40)"
    whole "$file" | quoted
    echo '},'
done
echo '{.name = NULL}};'

#!/bin/sh
# Writes all Lua as one library of Redis functions, in C: embed.sh FILE.lua ... > scripts.c
#
# Comments and indentation are left out (strip.awk). Lines stay, and script_places tells which line of which file one is.
# role_rights, behind base.lua: role -> what its scripts need of Redis, as rights.awk finds it.
# core/script/base.lua is the top level. Each other file becomes "local <its name> = (function() ... end)()", behind those that its
# line "-- uses: a b" names. A file with a line "-- ARGV:" is a script: its value is kept in a table, as Lua has room for 200 locals,
# and registered as the function weir_<digest>_<its name>; "-- full: refused" says that a full Redis refuses it, "-- time: when needed" that it reads the clock
# itself, "-- writes: nothing" has Redis refuse its writes, "-- role: worker" whose key a call of it names. The digest is that of the text: two versions of Weir have two
# libraries, and each calls its own.
# "-- format: any": it runs though there are data of a format that this version does not read.
set -eu

base=${BASE:-core/script/base.lua} # tests have another one

name() { basename "$1" .lua; }

path_of() { # NAME FILE...
    wanted=$1
    shift
    for file in "$@"; do
        [ "$(name "$file")" != "$wanted" ] || { echo "$file" && return; }
    done
    echo "embed.sh: '-- uses: $wanted': there is no $wanted.lua" >&2
    exit 1
}

edges() { # FILE...: for tsort, what is used before what uses it
    for file in "$@"; do
        [ "$file" != core/script/base.lua ] || continue
        echo "$(name "$file") $(name "$file")"
        for used in $(sed -n 's/^-- uses: //p' "$file"); do echo "$used $(name "$file")"; done
    done
}

in_order() { # FILE...
    for module in $(edges "$@" | tsort); do path_of "$module" "$@"; done
}

is_script() { grep -q '^-- ARGV:' "$1"; } # FILE

library() { # FILE...
    strip "$base"
    echo "local scripts, role_rights = {}, {$(roles "$@" | sed 's/^ *{"\(.*\)", \("[^"]*"\)},$/\1 = \2,/' | tr '\n' ' ')}"
    for file in $(in_order "$@"); do
        if is_script "$file"; then into=scripts.; else into='local '; fi
        echo "$into$(name "$file") = (function()"
        strip "$file"
        echo 'end)()'
    done
    for file in "$@"; do
        is_script "$file" || continue
        if grep -q '^-- full: refused$' "$file"; then full=true; else full=false; fi
        if grep -q '^-- time: when needed$' "$file"; then own_clock=true; else own_clock=false; fi
        if grep -q '^-- format: any$' "$file"; then any_format=true; else any_format=false; fi
        echo "script('$(name "$file")', scripts.$(name "$file"), $full, $own_clock, '$(role "$file")', $any_format)"
    done
}

strip() { awk -f core/script/strip.awk "$1"; }

# The line of the library that stands before a file's first one, for an error that names a line.
places() { # FILE...
    line=1
    echo "    {\"$base\", $line},"
    line=$((line + $(wc -l <"$base") + 1))
    for file in $(in_order "$@"); do
        echo "    {\"$file\", $((line + 1))},"
        line=$((line + $(wc -l <"$file") + 2))
    done
}

# The role whose key a call names; of what writes nothing: viewer.
role() { # FILE
    if grep -q '^-- writes: nothing$' "$1"; then echo viewer; else sed -n 's/^-- role: //p' "$1"; fi
}

scripts() { # FILE...
    for file in "$@"; do
        if is_script "$file"; then echo "    {\"$(name "$file")\", \"$(role "$file")\"},"; fi
    done | LC_ALL=C sort
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
scripts "$@"
echo '    {0}};'
echo 'const size_t script_count = sizeof scripts / sizeof *scripts - 1;'
echo 'const struct script_place script_places[] = {'
places "$@"
echo '    {0}};'
echo 'const struct script_role script_roles[] = {'
roles "$@"
echo '    {0}};'

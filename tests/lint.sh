#!/bin/sh
# make lint: cppcheck and clang-tidy over the product and the examples, as .clang-tidy and .cppcheck say, and the lines of
# tests/mutations that no longer fit the source; exit 1 where they find something. lint.sh FILE...: these files alone.
# lint.sh --words [FILE...]: counts comments that cannot be understood alone (tests/words.awk). Of named files it prints each.
set -u
cd "$(dirname "$0")/.."
if [ "${1-}" = --words ]; then
    shift
    git ls-files '*.c' '*.h' '*.lua' | grep -Ev '^(tests|bench)/' | xargs awk -v only="$*" -f tests/words.awk
    exit
fi

folders='core throttle queue producer worker serve cli examples'
defines='-D_GNU_SOURCE -I. -Iinclude'
wrong=0
if [ $# -eq 0 ]; then
    tests/mutate.sh --stale || wrong=1
    for folder in $folders; do
        for file in "$folder"/*.c "$folder"/*/*.c; do [ ! -e "$file" ] || set -- "$@" "$file"; done
    done
fi

# shellcheck disable=SC2086
printf '%s\n' "$@" | cppcheck --file-list=- --std=c11 --library=posix $defines --enable=warning,performance,portability --inline-suppr \
    '-Djson_array_foreach(a,i,v)=for(i=0;(v=json_array_get(a,i));i++)' '-Djson_object_foreach(o,k,v)=for(;(v=json_object_get(o,k));)' \
    --suppressions-list=.cppcheck --quiet --error-exitcode=1 --template='{file}:{line}: {id}: {message}' -j "$(nproc)" \
    || wrong=1

# shellcheck disable=SC2086
printf '%s\n' "$@" | xargs -P "$(nproc)" -I FILE clang-tidy --quiet FILE -- $defines -std=c11 $(pkg-config --cflags glib-2.0) 2>/dev/null \
    || wrong=1
exit $wrong

#!/bin/bash
# Is every fault caught? Puts the faults of tests/mutations into the source, one at a time, and runs the test programs that are named
# with each until one fails. Prints "mutation: caught by TEST"; exits with 1 when a mutation survives, does not build, or is stale.
#
#   tests/mutate.sh [PATTERN...]      only mutations whose line matches one of these (bash patterns: '*gcra.lua*')
#   tests/mutate.sh --stale           builds and runs nothing; prints the lines that no longer fit the source
#   ALL=1                             runs all test programs of a mutation to their end, and names each that fails
#   LIMIT=200                         seconds for a test program; one that takes longer has failed
#
# It builds in a copy of the source (BUILD, else build-mutate). A line of tests/mutations is
#   FILE ::: FROM ::: TO ::: TEST...
# where FROM stands exactly once in FILE; TO may be NOTHING; what begins with # is a comment.
set -u
cd "$(dirname "$0")/.." || exit 1
build=${BUILD:-build-mutate}
unset BUILD # make reads it too
WEIR_TEST_FOLDER=$(mktemp -d)
trap 'rm -rf "$WEIR_TEST_FOLDER"' EXIT
export WEIR_TEST_FOLDER # of programs that leave theirs when they are ended
failed=0

# All but build/ is copied anew. What a mutation has touched is built once more, whatever an earlier run has left.
copy_source() {
    mkdir -p "$build/src"
    find "$build/src" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
    git ls-files -z --cached --others --exclude-standard | xargs -0 cp -p --parents -t "$build/src"
    sed -n 's/ ::: .*//p' tests/mutations | grep -v '^#' | sort -u | (cd "$build/src" && xargs touch -c)
}

# A program ends by TERM as soon as one of its tests has failed; what it has started ends with it.
catches() { # TEST: does it fail?
    (cd "$build/src" && exec timeout "${LIMIT:-200}" "build/tests/$1") >"$build/log" 2>&1 </dev/null &
    while [ -z "${ALL:-}" ] && kill -0 $! 2>/dev/null; do
        grep -q '^\[  FAILED  \]' "$build/log" && kill $! 2>/dev/null
        sleep 0.1
    done
    ! wait $!
}

# The names of the tests that failed, from cmocka's last lines.
failures() {
    sed -n 's/^\[  FAILED  \] \([a-zA-Z_0-9./-]*\)$/\1/p' "$build/log" | sort -u | head -2 | paste -sd ' '
}

try() { # TEST...: prints what caught it
    local test caught=
    for test in "$@"; do
        make -s -j2 -C "$build/src" all "build/tests/$test" >"$build/log" 2>&1 || { echo "DOES NOT BUILD: $(tail -1 "$build/log")"; return 1; }
        catches "$test" || continue
        caught+="${caught:+, }$test ($(failures))"
        [ -n "${ALL:-}" ] || break
    done
    [ -n "$caught" ] && echo "caught by $caught" || { echo "SURVIVES $*"; return 1; }
}

fits() { # FILE FROM
    local text rest
    text=$(cat "$1") || return 1
    rest=${text//"$2"/}
    [ $((${#text} - ${#rest})) -eq ${#2} ] || { echo "STALE: not once in $1"; return 1; }
}

mutate() { # FILE FROM TO TEST...
    local path=$build/src/$1 text rest to=$3 result
    fits "$1" "$2" || return 1
    [ "$to" = NOTHING ] && to=
    text=$(cat "$path" && echo .) || return 1
    cp "$path" "$build/original"
    rest=${text/"$2"/"$to"}
    printf %s "${rest%.}" >"$path"
    try "${@:4}"
    result=$?
    cp "$build/original" "$path"
    return $result
}

wanted() { # LINE
    local pattern
    [ ${#patterns[@]} -eq 0 ] && return 0
    # shellcheck disable=SC2053
    for pattern in "${patterns[@]}"; do [[ $1 == $pattern ]] && return 0; done
    return 1
}

only_stale=
[ "${1:-}" = --stale ] && { only_stale=1; shift; }
patterns=("$@")
[ -n "$only_stale" ] || copy_source
while IFS= read -r line <&3; do
    [[ $line == *:::* && $line != '#'* ]] && wanted "$line" || continue
    [[ $line == *' ::: '*' ::: '*' ::: '* ]] || { echo "$line: NOT FOUR PARTS"; failed=1; continue; }
    file=${line%% ::: *} rest=${line#* ::: }
    from=${rest%% ::: *} rest=${rest#* ::: }
    to=${rest%% ::: *} tests=${rest#* ::: }
    [ -n "$only_stale" ] && { caught=$(fits "$file" "$from") || { echo "$line: $caught"; failed=1; }; continue; }
    # shellcheck disable=SC2086
    caught=$(mutate "$file" "$from" "$to" $tests) || failed=1
    echo "$file: $from -> $to: $caught"
done 3<tests/mutations
exit $failed

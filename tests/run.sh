#!/bin/sh
# Runs test programs side by side and adds up what cmocka says: run.sh PROGRAM ...
# The last line is "N passed, N failed"; before it stands once more what failed. A crash, an end without a result, a time-out and a
# skip are failures.
# JOBS: how many at a time, else twice as many as there are processors: most of them wait for much of their time.
set -u
LIMIT=900 # seconds for one program
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
trap 'exit 130' INT TERM
export LIMIT logs CMOCKA_MESSAGE_OUTPUT=STDOUT

run_one='
name=$(basename "$0")
timeout "$LIMIT" "$0" >"$logs/$name.log" 2>&1 </dev/null
code=$?
sum() { sed -n "s/^\[  $1 *\] \([0-9][0-9]*\) test(s).*/\1/p" "$logs/$name.log" | paste -sd+ | sed "s/^$/0/"; }
passed=$(($(sum PASSED)))
failed=$(($(sum FAILED) + $(sum SKIPPED)))
if [ "$code" -ne 0 ] && [ "$failed" -eq 0 ] || [ $((passed + failed)) -eq 0 ]; then
    failed=$((failed + 1))
    echo "$name: ended with exit code $code" >>"$logs/$name.log"
fi
echo "$passed $failed" >"$logs/$name.sum"
printf "%-24s %4d passed, %d failed\n" "$name" "$passed" "$failed"
[ "$failed" -eq 0 ] || sed "s/^/    /" "$logs/$name.log"
'
printf '%s\n' "$@" | xargs -P "${JOBS:-$((2 * $(nproc)))}" -n 1 sh -c "$run_one"

passed=0 failed=0
for program in "$@"; do
    name=$(basename "$program")
    if read -r p f <"$logs/$name.sum"; then
        passed=$((passed + p)) failed=$((failed + f))
        [ "$f" -eq 0 ] || { echo "$name:" && grep -E '^\[ +(ERROR|LINE|FAILED) |^ERROR:|^WRONG|exit code' "$logs/$name.log" | head -n 40; }
    else
        failed=$((failed + 1))
        echo "$name: no result"
    fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]

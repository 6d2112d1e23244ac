#!/bin/sh
# Fuzzes: run.sh SECONDS TARGET...: each for so long, two at a time, from its corpus on. What is new and worth keeping goes to
# build-fuzz/corpus/TARGET; what makes it fail to build-fuzz/TARGET-crash-... and the like, and the end is exit 1.
set -u
cd "$(dirname "$0")/../.."
seconds=$1
shift

run_one='
target=$0
new=build-fuzz/corpus/$target
mkdir -p "$new"
nice -n 19 "build-fuzz/fuzz_$target" -max_total_time="$1" -timeout=30 -rss_limit_mb=1024 -max_len=20000 -print_final_stats=1 \
    -artifact_prefix="build-fuzz/$target-" -close_fd_mask=1 "$new" "tests/fuzz/corpus/$target" >"build-fuzz/$target.log" 2>&1
code=$?
runs=$(sed -n "s/^stat::number_of_executed_units: *//p" "build-fuzz/$target.log")
found=$(sed -n "s/^#[0-9]*.*DONE *cov: \([0-9]*\).*/\1/p" "build-fuzz/$target.log" | tail -n 1)
printf "%-10s %12s runs, %6s edges: %s\n" "$target" "${runs:-?}" "${found:-?}" "$([ "$code" -eq 0 ] && echo clean || echo "failed; see build-fuzz/$target.log")"
exit "$((code > 0))"
'
printf '%s\n' "$@" | xargs -P 2 -I TARGET sh -c "$run_one" TARGET "$seconds"

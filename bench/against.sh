#!/bin/sh
# Two revisions of Weir in turns, each on a Redis of its own: against.sh OLD NEW, two folders with weir and client
# (bench/against/client.c linked with that revision's library). ROUNDS: how many turns of each (5). JOBS: in one of them (600,000), and in those that fail a tenth of it. Loading
# the functions is not measured. What a retry or a death costs Redis, its claim included, stands beside what a run costs.
#
# Prints, for each kind of work, the medians of jobs a second and of the processor time a job, and new over old as the median of the
# ratios pair by pair: a machine that is slower for a while is so for both of a pair.
set -eu

old=$1 new=$2 rounds=${ROUNDS:-5} jobs=${JOBS:-600000}
folder=$(mktemp -d /tmp/weir-against-XXXXXX)
redis=''
trap '[ -z "$redis" ] || kill "$redis" 2>/dev/null || true; rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM

ask() { redis-cli -s "$folder/redis.sock" "$@"; }

begin_redis() {
    redis-server --port 0 --unixsocket "$folder/redis.sock" --save '' --appendonly no --dir "$folder" --logfile "$folder/redis.log" &
    redis=$!
    until ask PING >/dev/null 2>&1; do sleep 0.05; done
}

end_redis() {
    kill "$redis"
    wait "$redis" || true
    redis=''
}

redis_cpu() { ask INFO cpu | awk -F: '/^used_cpu_(sys|user):/ { s += $2 } END { printf "%.6f", s }'; }

# One measurement: a line of the work, who did it, jobs a second, and microseconds of Redis and of the client a job.
measure() { # WORK WHO CLIENT KIND URL JOBS...
    work=$1 who=$2 client=$3
    shift 3
    before=$(redis_cpu)
    took=$("$client" "$@" 2>"$folder/log") || { cat "$folder/log" >&2; echo "bench-against: $who: $work failed" >&2; exit 1; }
    echo "$work $who $took $before $(redis_cpu) $3" |
        awk '{ printf "%s %s %.0f %.3f %.3f\n", $1, $2, $7 / $3, ($6 - $5) * 1e6 / $7, $4 }' >>"$folder/figures"
}

turn() { # WHO FOLDER
    url=unix://$folder/redis.sock
    begin_redis
    "$2/client" bulk "$url" 1 >/dev/null 2>&1 # loads the functions
    measure bulk "$1" "$2/client" bulk "$url" "$jobs"
    measure run "$1" "$2/client" run "$url" "$jobs" 100
    for failure in retry dead; do
        "$2/client" bulk "$url" $((jobs / 10)) >/dev/null 2>&1
        measure "$failure" "$1" "$2/client" "$failure" "$url" $((jobs / 10)) 100
    done
    end_redis
    begin_redis
    "$2/weir" rate set noop '1000000/s' --redis "$url" >/dev/null
    "$2/client" bulk "$url" "$jobs" >/dev/null 2>&1
    measure limited "$1" "$2/client" run "$url" "$jobs" 512
    end_redis
}

for round in $(seq "$rounds"); do
    turn old "$old"
    turn new "$new"
done

awk '
function median(list, n,    i, j, t) {
    for (i = 2; i <= n; i++)
        for (j = i; j > 1 && list[j - 1] > list[j]; j--) { t = list[j]; list[j] = list[j - 1]; list[j - 1] = t }
    return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
}
function figures(work, who, field,    i) {
    for (i = 1; i <= count[work, who]; i++) values[i] = got[work, who, field, i]
    return median(values, count[work, who])
}
function ratio(work, field,    i) {
    for (i = 1; i <= count[work, "new"]; i++) values[i] = got[work, "new", field, i] / got[work, "old", field, i]
    return median(values, count[work, "new"])
}
function row(work, field, name, form) {
    printf "%-9s %-22s " form " " form " %8.3f\n", work, name, figures(work, "old", field), figures(work, "new", field), ratio(work, field)
}
{
    i = ++count[$1, $2]
    for (field = 3; field <= 5; field++) got[$1, $2, field, i] = $field
}
END {
    printf "%-32s %10s %10s %8s\n", "", "old", "new", "new/old"
    n = split("bulk run retry dead limited", works, " ")
    for (w = 1; w <= n; w++) {
        row(works[w], 3, "jobs/s", "%10.0f")
        row(works[w], 4, "Redis us a job", "%10.2f")
        row(works[w], 5, "client us a job", "%10.2f")
    }
}' "$folder/figures"

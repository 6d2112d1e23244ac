#!/bin/sh
# Two versions of Weir side by side, under load: skew.sh OLD [NEW], two build/weir. Each order of a deployment is one round, on a Redis of its
# own: workers first, producers first, and back again. Meanwhile jobs are enqueued by both versions: single ones, bulks, scheduled ones and a
# schedule's; some fail at first, workers are killed, and one limit holds them all. Then each job must have run and none be dead, the rate must have
# been kept (weir verify over all traces), and the doctor of the version that is left must find nothing wrong.
#
# A job that a killed worker had may run twice; one in a round that nobody killed may not.
set -eu

old=$1
new=${2:-build/weir}
root=$(mktemp -d /tmp/weir-skew-XXXXXX)
started=""

# Whatever ends it, nothing goes on.
trap '[ -z "$started" ] || kill $started 2>/dev/null || true' EXIT

fail() {
    echo "skew: $round: $*; see $folder" >&2
    exit 1
}

# The handler: a job whose id ends with 7 fails at its first attempt.
cat >"$root/handler" <<'HANDLER'
#!/bin/sh
case $WEIR_JOB_ID in
*7) [ "$WEIR_JOB_ATTEMPT" -gt 1 ] || exit 1 ;;
esac
echo "$WEIR_JOB_ID" >>"$SKEW_DONE"
HANDLER
chmod +x "$root/handler"

begin_round() { # NAME
    round=$1
    folder=$root/$1
    mkdir "$folder"
    redis-server --port 0 --unixsocket "$folder/redis.sock" --save '' --appendonly no --dir "$folder" --logfile "$folder/redis.log" &
    redis=$!
    started=$redis
    export REDIS_URL="unix://$folder/redis.sock" SKEW_DONE="$folder/done"
    : >"$SKEW_DONE"
    until redis-cli -s "$folder/redis.sock" PING >/dev/null 2>&1; do sleep 0.1; done
    "$old" rate set mail '50/s,burst=5' >/dev/null
    "$old" schedule add often @hourly mail >/dev/null
    jobs=0 workers=0
}

worker() { # WEIR; its process is $started_worker
    workers=$((workers + 1))
    "$1" worker -c 4 --lease 2s --exec "mail=$root/handler" --backoff mail=0.1s..0.2s --trace "$folder/$workers.trace" 2>>"$folder/$workers.log" &
    started_worker=$!
    started="$started $started_worker"
}

enqueue() { # WEIR COUNT
    for i in $(seq "$2"); do echo "{\"id\":\"b$jobs-$i\",\"type\":\"mail\"}"; done >"$folder/jobs"
    "$1" enqueue --from "$folder/jobs" >/dev/null || fail "a bulk is refused"
    for i in 1 2 7; do
        "$1" enqueue mail --id "s$jobs-$i" >/dev/null || fail "a job is refused"
        "$1" enqueue mail --id "l$jobs-$i" --in 0.5s >/dev/null || fail "a scheduled job is refused"
    done
    "$1" schedule run often >/dev/null || fail "a schedule is refused"
    jobs=$((jobs + $2 + 7))
}

stop() { # PROCESS
    kill "$1" 2>/dev/null || true
    wait "$1" || true
}

done_jobs() { sort -u "$SKEW_DONE" | wc -l; }

end_round() { # WEIR: the version that is left
    for i in $(seq 600); do
        [ "$(done_jobs)" -lt $jobs ] || break
        sleep 0.1
    done
    [ "$(done_jobs)" -eq $jobs ] || fail "of $jobs jobs $(done_jobs) have run"
    [ "$("$1" dead list --json | wc -l)" -eq 0 ] || fail "jobs are dead"
    twice=$(($(wc -l <"$SKEW_DONE") - jobs))
    [ $twice -le $((4 * kills)) ] || fail "$twice jobs ran twice"
    "$1" doctor >"$folder/doctor" || [ $? -eq 78 ] || fail "the doctor finds something: $(grep wrong "$folder/doctor")"
    ! grep -q '^wrong' "$folder/doctor" || fail "$(grep '^wrong' "$folder/doctor")"
    for pid in $started; do
        if [ "$pid" != $redis ]; then stop "$pid"; fi
    done
    "$1" verify "$folder"/*.trace >"$folder/verify" || fail "the rate was not kept: $(cat "$folder/verify")"
    stop $redis
    started=""
    echo "skew: $round: $jobs jobs, $twice of them twice, rate kept"
}

# A deployment: both workers of the first version, one after the other, are replaced by the second's; one is killed on the way.
round_of() { # NAME FIRST SECOND PRODUCER_BEFORE PRODUCER_AFTER
    kills=1
    begin_round "$1"
    worker "$2" && a=$started_worker
    worker "$2" && b=$started_worker
    enqueue "$4" 100
    sleep 0.7
    worker "$3" && c=$started_worker
    enqueue "$2" 20
    enqueue "$3" 20
    stop "$a"
    sleep 0.7
    kill -9 "$b"
    worker "$3"
    enqueue "$5" 60
    sleep 0.7
    end_round "$3"
}

round_of workers-first "$old" "$new" "$old" "$old"
round_of producers-first "$old" "$new" "$new" "$new"
round_of back-again "$new" "$old" "$new" "$old"
rm -rf "$root"

#!/bin/bash
# demo: a bulk of weekly summaries through three workers at one global rate, from nothing to a check of all that came out.
#
#   examples/demo.sh [--businesses 2000] [--rate 200] [--burst 20] [--keep]
#
# In a new temporary folder: makes a week of card transactions, starts weir dev (a private Redis) and three workers, sets the rate and
# enqueues one summary a business. Meanwhile it enqueues receipts, a type without a limit: each must start at once although it stands
# behind the backlog. Then it checks every file against the transactions, and the rate with weir verify. Exits 0 when all is right, else
# 1, and then keeps the folder. Nothing is left running either way. BUILD names the folder of what was built.
set -u
cd "$(dirname "$0")/.." && build=$(realpath "${BUILD:-build}") && handler=$build/examples/weekly_summary_handler.so

businesses=2000 rate=200 burst=20 keep=false
usage() { echo 'usage: demo.sh [--businesses 2000] [--rate 200] [--burst 20] [--keep]' >&2 && exit 64; }
while [ $# -gt 0 ]; do
    case $1 in
    --keep) keep=true && shift && continue ;;
    --businesses | --rate | --burst) [[ ${2-} =~ ^[1-9][0-9]{0,5}$ ]] || usage ;;
    *) usage ;;
    esac
    declare "${1#--}=$2"
    shift 2
done

unset WEIR_NAMESPACE WEEKLY_SUMMARY_DIR REDIS_URL
PATH=$build:$build/examples:$PATH
folder=$(mktemp -d "${TMPDIR:-/tmp}/weir-demo.XXXXXX") && cd "$folder" || exit 1
dev='' workers=() receipts='' watch=''

# Ends what it is given, and waits; 1 when anything did not end with 0.
stop() { # PID...
    local pid failed=0
    [ $# -eq 0 ] || kill -TERM "$@" 2>/dev/null
    for pid in "$@"; do wait "$pid" || failed=1; done
    return $failed
}

stop_all() {
    trap '' INT TERM
    stop $receipts $watch 2>/dev/null
    stop "${workers[@]}" && stop $dev
}

fail() {
    echo "demo: $1" >&2
    stop_all
    echo "kept for you to look at: $folder"
    exit 1
}

interrupted() {
    stop_all
    cd / && rm -rf "$folder"
    echo 'demo: interrupted' >&2
    exit 130
}
trap interrupted INT TERM

# Shows a command as one would type it, and runs it.
run() {
    echo "\$ $*"
    "$@" || fail "$1 $2: exit code $?"
}

await() { # SECONDS COMMAND...
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ $SECONDS -lt "$end" ] || return 1
        sleep 0.05
    done
}

# Children are told to end by the script alone: a Ctrl-C in the terminal is not theirs.
start() { # LOG COMMAND...
    local log=$1
    shift
    setsid "$@" >"$log" 2>&1 </dev/null &
}

workers_are_up() { [ "$(weir status --json | grep -o '"host"' | wc -l)" -ge 3 ]; }
redis() { redis-cli -s .weir/redis.sock "$@"; }
commands() { redis info commandstats | grep -o 'calls=[0-9]*' | awk -F= '{ n += $2 } END { print n + 0 }'; }

# ---- The run

run weekly_summary . --businesses "$businesses"
echo '$ weir dev'
start dev.log weir dev && dev=$!
await 15 grep -qs 'Redis is ready' dev.log || fail "weir dev: no Redis; see $folder/dev.log"
export REDIS_URL=unix://$folder/.weir/redis.sock
run weir rate set weekly_summary "$rate/s,burst=$burst"
echo '$ weir worker --load weekly_summary_handler.so --trace trace-N.ndjson    (3 times)'
for i in 1 2 3; do
    start "worker-$i.log" weir worker --load "$handler" --trace "trace-$i.ndjson" --grace 5s && workers+=($!)
done
await 15 workers_are_up || fail "the workers did not come up; see $folder/worker-1.log"

before=$(commands)
run weir enqueue --from jobs.ndjson --batch week
echo 'and meanwhile receipts, a type without a limit, behind the backlog'
# The id of a receipt is the time at which its command was started, in us.
(
    trap 'exit 0' TERM
    while :; do
        weir enqueue receipt '{"business_id":"b000001","amount_cents":1250}' --id "receipt-${EPOCHREALTIME/[.,]/}" >>receipts.out || exit 1
        sleep 0.1
    done
) 2>receipts.err &
receipts=$!
echo '$ weir batch show week --watch'
weir batch show week --watch &
watch=$!
wait $watch || fail 'the batch has not ended'
watch=''
stop $receipts && receipts='' || fail "receipts: $(cat receipts.err)"
receipt_count=$(wc -l <receipts.out)
receipts_are_done() { [ "$(wc -l <receipts.ndjson)" -eq "$receipt_count" ]; }
await 15 receipts_are_done || fail 'not all receipts have run'
denials=$(redis hget 'weir:{0}:stats:weekly_summary' parked)
commands=$(($(commands) - before))
run weir status
stop_all || fail 'not all ended with 0 when they were told to end'
workers=() dev=''
run weir verify trace-*.ndjson

# ---- The check

wrong=0
check() { # WHAT FOUND WANTED OK
    [ "$4" = 1 ] || wrong=1
    printf '%-40s %20s   %-18s %s\n' "$1" "$2" "$3" "$([ "$4" = 1 ] && echo ok || echo WRONG)"
}
check_count() { check "$1" "$2" "$3" "$(($2 == $3))"; }
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", a / b }'; }
is_most() { awk -v a="$1" -v b="$2" 'BEGIN { print a != "" && a <= b ? 1 : 0 }'; }

# Sums of the transactions, found anew; and what the mails say, dots and commas left out.
awk -F'"amount_cents":' 'FNR == 1 { name = FILENAME; gsub(/.*\/|\..*/, "", name); seen[name] = 1 }
    { cents = $2 + 0; if (cents < 0) back[name] -= cents; else spent[name] += cents; n[name]++ }
    END { for (name in seen) { total = spent[name] - back[name]
          print name, spent[name] + 0, back[name] + 0, total < 0 ? -total : total, n[name] + 0 } }' transactions/*.ndjson | sort >sums
awk 'FNR == 1 { name = FILENAME; gsub(/.*\/|\..*/, "", name); names[name] = 1 }
    /^(Spent|Refunded|Total|Transactions) / { label = $1; sub(/^[A-Z][a-z]+ /, ""); gsub(/[^0-9]/, ""); said[name, label] = $0 + 0 }
    END { for (name in names) print name, said[name, "Spent"], said[name, "Refunded"], said[name, "Total"], said[name, "Transactions"] }' \
    mail/*.eml | sort >mails
# From the trace: the time of a receipt's start, less that in its id.
waits=$(sed -n 's/.*"start":\([0-9]*\),.*"id":"receipt-\([0-9]*\)".*/\1 \2/p' trace-*.ndjson | awk '{ print ($1 - $2) / 1000 }' | sort -n)
at() { sed -n "$((($(wc -l <<<"$waits") - 1) * $1 / 100 + 1))p" <<<"$waits"; }
p50=$(at 50) p99=$(at 99)

printf '\n%-40s %20s   %s\n' '' found wanted
check_count 'summaries started' "$(cat trace-*.ndjson | grep -c '"start":.*"type":"weekly_summary"')" "$businesses"
check_count 'files with the right totals' "$(comm -12 sums mails | wc -l)" "$businesses"
check_count 'receipts done' "$(wc -l <receipts.ndjson)" "$receipt_count"
check 'denials per summary' "$(ratio "$denials" "$businesses")" 'at most 1.00' "$(is_most "$denials" "$businesses")"
per_job=$(ratio $commands $((businesses + receipt_count)))
check 'Redis commands per job' "$per_job" 'at most 25.00' "$(is_most "$per_job" 25)"
check 'receipts, command to start: p50, p99' "$p50 ms, $p99 ms" 'p99 under 2 s' "$(is_most "$p99" 2000)"
[ $wrong -eq 0 ] || fail 'not all is right'
if $keep; then echo "kept for you to look at: $folder"; else cd / && rm -rf "$folder"; fi
echo 'all is right'

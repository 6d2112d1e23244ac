# What the sessions of transcripts (tests/transcript.h) have besides weir.
# shellcheck shell=bash disable=SC2120

redis() { redis-cli -s "${REDIS_URL#unix://}" "$@"; }

# push BODY...: jobs as any client of Redis may push them.
push() { redis rpush 'weir:{0}:queue:default' "$@" >/dev/null; }

# program NAME: a script of what comes in.
program() { { echo '#!/bin/sh' && cat; } >"$1" && chmod +x "$1"; }

# drain FLAG...: a worker runs what there is, and ends; its log is the file log.
drain() { weir worker --drain "$@" 2>log; }

# run_until TEXT TIMES FLAG...: a worker runs until its log says that so often, and is told to end.
run_until() {
    weir worker "${@:3}" 2>log &
    until [ "$(grep -cs -- "$1" log)" -ge "$2" ]; do sleep 0.05; done
    kill $! && wait $!
}

# What the log says of jobs, a line each: "TYPE JOB: message".
told() { sed -n 's/^time=.* msg=\("\(\\.\|[^"\\]\)*"\|[^ ]*\) job=\([^ ]*\) type=\([^ ]*\).*/\4 \3: \1/p' log; }

# The dead jobs, a line each: "ID: reason".
deaths() { weir dead list --json | sed 's/.*"id":\("[^"]*"\|null\).*"reason":\(.*\),"attempts".*/\1: \2/'; }

# counts TYPE COUNTER...: these counters of a type.
counts() { local type=$1 name; shift; for name; do echo "$name $(redis hget "weir:{0}:stats:$type" "$name")"; done; }

# typing ANSWER COMMAND...: on a terminal on which that is typed.
typing() { printf '%b' "$1" | script -qe -E never -c "${*:2}" /dev/null | tr -d '\r'; return "${PIPESTATUS[1]}"; }

# await COMMAND...: until it succeeds, for a minute at most, whatever it complains of meanwhile.
await() {
    local end=$((SECONDS + 60))
    until "$@" 2>/dev/null; do [ "$SECONDS" -lt "$end" ] || { echo "in vain: $*"; return 1; }; sleep 0.01; done
}

# serve FLAG...: weir serve, once it answers, in place of the one before; on a unix socket, if it is not to listen elsewhere.
serve() {
    [ -z "$served" ] || { kill "$served" && wait "$served"; }
    : >served.log
    weir serve --listen "${listen:-unix:serve.sock}" "$@" 2>served.log &
    served=$!
    await grep -q 'listening on' served.log
    site=$(sed -n 's,.*listening on http://\([0-9.:]*\).*,\1,p' served.log)
    await eval 'ask /healthz | grep -q ^200'
}

# ask FLAG... PATH: the status of the answer, and its body; its head is the file head. FLAG: those of curl.
ask() {
    local flags=(-sg --path-as-is -D head -o body -w '%{http_code} %{content_type}') kind
    [ -n "$site" ] || flags+=(--unix-socket serve.sock)
    kind=$(curl "${flags[@]}" "${@:1:$#-1}" "http://${site:-localhost}${*: -1}")
    case $kind in
    *json) echo "${kind%% *} $(cat body)" ;;
    *html*) echo "${kind%% *} a page: $(sed -n 's,.*<title>\(.*\)</title>.*,\1,p' body)" ;;
    *) echo "$kind" ;;
    esac
}

# headers NAME...: those of the last answer that it has.
headers() { local name; for name; do tr -d '\r' <./head | grep -i "^$name:"; done; true; }

# get PATH...; post PATH [FORM]; json PATH BODY; lines PATH BODY: requests of each kind.
get() { local path; for path; do ask "$path"; done; }
post() { ask -d "${2-}" "$1"; }
json() { ask -H 'Content-Type: application/json' --data-binary "$2" "$1"; }
lines() { ask -H 'Content-Type: application/x-ndjson' --data-binary "$2" "$1"; }

#!/bin/sh
# A handler in shell: weir worker --pipe sms=examples/handler.sh
#
# One job a line comes in, one answer a line goes out; standard error goes to the worker's log. To take JSON apart by text
# is enough for the id and type of jobs that Weir has enqueued; for more there is jq.

send() { # stands for a provider: its answer depends on the number
    case $1 in
    *'"to":'*'"+0"'*) return 4 ;;
    *'"to":'*'"+1"'*) return 5 ;;
    *'"to":'*'"+2"'*) return 6 ;;
    esac
}

while IFS= read -r job; do
    id=${job#*\"id\":\"}
    id=${id%%\"*}
    send "$job"
    case $? in
    0) end='"status":"done"' ;;
    4) end='"status":"dead","reason":"no such number"' ;;
    5) end='"status":"throttled","after":2' ;;
    *) end='"status":"retry","reason":"the provider is ill"' ;;
    esac
    echo "{\"id\":\"$id\",$end}"
done

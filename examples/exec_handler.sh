#!/bin/sh
# A handler that is started for each job: weir worker --exec sms=examples/exec_handler.sh
#
# The job is on standard input, and in WEIR_JOB_ID, WEIR_JOB_TYPE and WEIR_JOB_ATTEMPT. The exit code is its end; the last
# lines of standard error are the reason.

job=$(cat)
case $job in # stands for a provider: its answer depends on the number
*'"to":'*'"+0"'*)
    echo "no such number" >&2
    exit 65 # dead: is not tried again
    ;;
*'"to":'*'"+1"'*)
    echo 2  # seconds
    exit 75 # throttled: pauses the limits of its type, uses no attempt
    ;;
*'"to":'*'"+2"'*)
    echo "the provider is ill, job $WEIR_JOB_ID, attempt $WEIR_JOB_ATTEMPT" >&2
    exit 1 # retry
    ;;
esac

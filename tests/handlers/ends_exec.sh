#!/bin/sh
touch $WEIR_JOB_TYPE.begun
case $WEIR_JOB_TYPE in
done) exit 0;;
retry) echo no luck >&2; exit 1;;
dead) echo no such customer >&2; exit 65;;
throttled) exit 75;;
throttled_after) echo 600; exit 75;;
throttled_long) echo 99999999999; exit 75;;
throttled_wrong) echo -1; exit 75;;
odd) exit 42;;
crash) kill -9 $$;;
says_done) trap 'exit 0' TERM; sleep 1000 & wait;;
*) sleep 1000;;
esac

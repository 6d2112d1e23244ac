#!/bin/sh
# Checks protocol.pml with spin in each configuration below, some at a time (JOBS). Those that "hold" must hold in every
# order of events; those that "end" have no cycle in which work goes on for ever; those that "fail" have one fault put in,
# and spin must find it. Exit 1: one of them was otherwise. It takes some four minutes and 2 GB a process.
# MODEL='stop*' checks those whose name matches only.
set -u
cd "$(dirname "$0")"

configurations() {
    cat <<'END'
quiet             hold
lost-answers      hold -DCUT -DFAULTS=2
killed            hold -DKILL -DFAULTS=2
one-at-a-time     hold -DCUT -DKILL -DSTALL -DN_IN_FLIGHT=1 -DFAULTS=2
stopped           hold -DSTALL -DFAULTS=2
retried           hold -DCUT -DKILL -DRETRIED_JOB=0 -DFAULTS=1
buried            hold -DCUT -DRETRIED_JOB=0 -DBAD_QUEUE=0 -DFAULTS=1
cancelled         hold -DCUT -DKILL -DCANCEL -DFAULTS=1
cancelled-running hold -DCUT -DKILL -DCANCEL -DSTUBBORN=1 -DFAULTS=1
cancelled-retry   hold -DCUT -DCANCEL -DRETRIED_JOB=1 -DBAD_QUEUE=1 -DFAULTS=1
forced-stop       hold -DCUT -DSTOP -DFAULTS=1
poison            hold -DPOISON=0
poison-halves     hold -DPOISON=0 -DFIRST_HALF=2
halves-one-death  hold -DPOISON=0 -DFIRST_HALF=2 -DDEAD_AT=1
outside           hold -DOUTSIDE -DKILL -DFAULTS=2
no-thread         hold -DNO_THREAD -DFAULTS=2
outage            hold -DOUTAGE -DKILL -DFAULTS=1
rollback          hold -DROLLBACK -DFAULTS=1
wrong-key         hold -DKILL -DBROKEN -DFAULTS=1
quiet             end
killed            end  -DKILL -DFAULTS=1
lost-answers      end  -DCUT -DFAULTS=1
stopped           end  -DSTALL -DFAULTS=1
poison            end  -DPOISON=0
poison-halves     end  -DPOISON=0 -DFIRST_HALF=2
outage            end  -DOUTAGE -DFAULTS=1
wrong-key         end  -DKILL -DBROKEN -DFAULTS=1
enqueue-no-id     fail -DBUG_NO_ID -DFAULTS=1
claim-unknown-id  fail -DBUG_CLAIM_UNREGISTERED -DCUT -DFAULTS=2
same-id           fail -DBUG_SAME_ID -DCUT -DFAULTS=2
settle-stale      fail -DBUG_SETTLE_STALE -DSTALL -DFAULTS=1
release-twice     fail -DBUG_RELEASE_TWICE -DN_IN_FLIGHT=1 -DKILL -DFAULTS=1
slot-not-saved    fail -DBUG_SLOT_NOT_SAVED
reap-refused      fail -DBUG_REAP_REFUSED -DBROKEN -DKILL -DFAULTS=1
buried-uncounted  fail -DBUG_BURIED_UNCOUNTED -DRETRIED_JOB=0 -DBAD_QUEUE=0
mark-stays        fail -DBUG_MARK_STAYS -DCANCEL
cancel-unheard    fail -DBUG_CANCEL_UNHEARD -DCANCEL -DSTUBBORN=1 -DCUT -DFAULTS=1
stop-unsettled    fail -DBUG_FORCED_STOP -DSTOP -DFAULTS=1
innocents         fail -DBUG_INNOCENTS -DPOISON=0
group-blamed      fail -DBUG_GROUP -DPOISON=0 -DFIRST_HALF=2 -DDEAD_AT=1
short-amnesty     fail -DBUG_AMNESTY -DOUTAGE -DFAULTS=1
unstarted-kept    fail -DBUG_UNSTARTED_KEPT -DNO_THREAD -DFAULTS=1
END
}

check() { # NAME hold|end|fail OPTION...
    name=$1 want=$2 search=-DSAFETY cycles=''
    shift 2
    if [ "$want" = end ]; then search=-DNP cycles=-l; fi
    folder=$(mktemp -d) || return 1
    trap 'rm -rf "$folder"' EXIT
    model=$PWD/protocol.pml
    cd "$folder" || return 1
    # -DSAFETY: no cycles are looked for; -DNP and -l: nothing else is; -DCOLLAPSE: less memory, the same states.
    if ! { spin -a "$@" "$model" && gcc -O2 $search -DCOLLAPSE -DMEMLIM=8000 -o pan pan.c; } >build.log 2>&1; then
        cat build.log
        return 1
    fi
    ./pan $cycles -m1000000 >pan.log 2>&1
    states=$(sed -n 's/^ *\([0-9]*\) states, stored.*/\1/p' pan.log)
    got=hold
    [ -z "$cycles" ] || got=end
    if grep -q 'max search depth too small\|out of memory' pan.log || [ -z "$states" ]; then got=unfinished; fi
    if grep -q 'assertion violated\|^pan.*non-progress cycle' pan.log; then got=fail; fi
    printf '%-18s %-4s %10s states%s\n' "$name" "$got" "${states:-0}" "$([ $got = "$want" ] || echo ": wanted $want")"
    [ $got = "$want" ] || { cat pan.log && return 1; }
}

if [ "${1-}" = check ]; then
    shift
    check "$@"
    exit
fi
configurations | while read -r name rest; do
    # shellcheck disable=SC2254 # a pattern is what is asked for
    case $name in ${MODEL:-*}) echo "$name $rest" ;; esac
done | xargs -P "${JOBS:-$(nproc)}" -L 1 sh run.sh check

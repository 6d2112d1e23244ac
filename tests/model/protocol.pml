/* The protocol between workers, producer and Redis, small enough for spin to check every order of events.
 *
 * Two workers, two jobs of one batch, a producer that repeats what was not answered, a reaper in each worker. Requests and
 * answers may be lost; a request that is still buffered when its connection breaks may arrive later. Workers are killed,
 * stopped beyond their lease, cut off; Redis may go back to what it had synced last. Each script of queue/ is one atomic
 * step here, with the name it has there.
 *
 * What must hold:
 *   - a settle changes a job only for the run that holds it            assert in do_settle()
 *   - a job starts again only for a named reason (may_start)           assert in start()
 *   - a slot is granted once, and the gate counts the leases           assert in take_slot(), perform()
 *   - a worker that lives and is heard is never reaped                 assert in do_reap()
 *   - it always drains: when nothing can happen any more, every job has ended, its batch has counted it and has fired,
 *     and no mark of a cancel is left                                  asserts at the end of init
 *   - and nothing goes on for ever                                     the configurations that "end"
 *
 * run.sh has the configurations: those that must hold, and those with one fault put in (BUG_...) that must fail, so that the
 * model is known to see. Time is abstract: a lease may end (late) when its worker is gone, stopped or cut off.
 */
#define J 2      /* jobs */
#define W 2      /* workers */
#define IDS 8    /* worker ids: a new one for each process and each connect */
#define NONE 255
#ifndef DEAD_AT
#define DEAD_AT 2 /* interruptions that count */
#endif
#ifndef FIRST_HALF
#define FIRST_HALF 1 /* of how many jobs a worker died the first time: 2, as if it had had four */
#endif

#ifndef FAULTS
#define FAULTS 0 /* how many of the faults that are switched on may happen, in any order */
#endif
#ifndef N_IN_FLIGHT
#define N_IN_FLIGHT J /* concurrency=1 makes it 1 */
#endif

/* Where a job is. */
#define NOWHERE 0
#define QUEUE 1
#define LANE 2
#define ACTIVE 3
#define LATER 4
#define DONE 5
#define DEAD 6
#define CANCELLED 7

/* What Redis holds: one array, so that it can be taken back to an earlier time as a whole. */
#define PLACE(j) r[j]
#define OWNER(j) r[J + (j)]
#define TURN(j) r[2 * J + (j)]        /* with OWNER, the lease's token */
#define BLAMED(j) r[3 * J + (j)]      /* interruptions that count */
#define SUSPECT(j) r[4 * J + (j)]     /* was interrupted: so many suspects run together from now on, 1: it runs alone; 0: it is none */
#define MARK(j) r[5 * J + (j)]        /* cancelled: 1 while it waits, 2 while it runs */
#define KNOWN(j) r[6 * J + (j)]       /* its id is remembered */
#define RETRIED(j) r[7 * J + (j)]
#define TOLD(j) r[8 * J + (j)]        /* the worker that is told of its cancel, plus 1 */
#define RUN(j) r[9 * J + (j)]         /* for the checks: which of its runs the lease is */
#define REG(i) r[10 * J + (i)]
#define LATE(i) r[10 * J + IDS + (i)]
#define IN_FLIGHT r[10 * J + 2 * IDS]
#define SLOT r[10 * J + 2 * IDS + 1]
#define COUNTED r[10 * J + 2 * IDS + 2] /* jobs of the batch that have ended */
#define FIRED r[10 * J + 2 * IDS + 3]
#define SIZE (10 * J + 2 * IDS + 4)

byte r[SIZE];
#ifdef ROLLBACK
byte synced[SIZE];
bool has_synced;
#endif

/* Jobs with a part to play. */
#ifndef POISON
#define POISON NONE /* kills its worker */
#endif
#ifndef STUBBORN
#define STUBBORN NONE /* ends only when it is told that it was cancelled */
#endif
#ifndef RETRIED_JOB
#define RETRIED_JOB NONE /* fails once */
#endif
#ifndef BAD_QUEUE
#define BAD_QUEUE NONE /* cannot go back to where it belongs when its retry is due */
#endif
#define poison POISON
#define stubborn STUBBORN
#define retried RETRIED_JOB
#define bad_queue BAD_QUEUE

#define WAITS(j) (PLACE(j) == QUEUE || PLACE(j) == LANE)
#define HELD_BY(j, i) (PLACE(j) == ACTIVE && OWNER(j) == i)

/* May a claim of worker i lease job j? Suspects run with nothing but suspects in their worker, as many as each of them allows. */
#ifdef BUG_INNOCENTS
#define ALONE(j, i) true
#else
#define HAS_NONE(i) (!HELD_BY(0, i) && !HELD_BY(1, i))
#define HAS_SUSPECTS(i) ((HELD_BY(0, i) && SUSPECT(0)) || (HELD_BY(1, i) && SUSPECT(1)))
#define ALONE(j, i) (HAS_NONE(i) || (!SUSPECT(j) && !HAS_SUSPECTS(i)))
#endif
#define MAY_START(j, i) (WAITS(j) && !MARK(j) && IN_FLIGHT < N_IN_FLIGHT && ALONE(j, i))
/* Job 1 is granted with job 0 by the same claim; nothing joins them later. */
#define JOINS(j, a) (j == 1 && a.has[0] && SUSPECT(0) > 1 && SUSPECT(1) > 1 && WAITS(1) && !MARK(1) && IN_FLIGHT < N_IN_FLIGHT)

/* What a worker knows of a job. */
#define NO 0
#define RUNS 1
#define ENDED 2     /* unsettled */
#define UNSTARTED 3 /* no thread for it */

/* Its connection. */
#define DOWN 0
#define UP 1 /* connected, not adopted */
#define IN 2 /* adopted */

mtype = { adopt, leave, claim, settle, reap, promote };

typedef Worker {
    byte id = NONE;
    byte next = NONE; /* what an adopt has asked for: a repeated one asks for the same */
    byte link;
    byte turn;        /* counted here and not in Redis, which may go back in time */
    mtype asked_for;  /* the request that is out; 0: none */
    bool stopped;     /* a second TERM came */
    bool gone;
    byte job[J];
    byte token[J];    /* the turn of its lease: it stays when the lease moves to a new id */
    byte nth[J];
    bool told[J];     /* its handler was asked to end */
    bool named[J];    /* the request that is out settles it */
};
Worker w[W];

/* Requests, one for each worker, and their answers. req[W] is what a broken connection had still buffered. */
typedef Request { mtype kind; byte id; byte old; byte turn; byte verb[J]; byte token[J]; byte nth[J] };
typedef Answer { bool there; bool unregistered; bool refused; bool has[J]; byte nth[J] };
Request req[W + 1];
bool sent[W + 1];
Answer ans[W + 1];

#define V_NONE 0
#define V_DONE 1
#define V_RETRY 2
#define V_BACK 3

/* What only the checks know. */
byte last_run[J];    /* its runs are numbered, and numbers are never used again */
byte may_start[J];   /* how often it may: once, and once more for each named reason */
bool runs_on[J];     /* its present run has begun */
bool lives[IDS];     /* this id's worker lives and is heard */
bool was_granted[16], went_back;
bool amnesty;
byte next_id, faults;
byte broken = NONE;  /* the lane of this job holds something else */
bool broken_met;

inline end_job(j, where) {
    PLACE(j) = where;
    OWNER(j) = NONE;
#ifndef BUG_MARK_STAYS
    MARK(j) = 0;
#endif
    COUNTED++;
    if
    :: COUNTED == J && !FIRED -> FIRED = 1
    :: else
    fi
}

inline release(j) {
    assert(IN_FLIGHT > 0);
    IN_FLIGHT--
}

/* ---- The scripts. q: the request; a: its answer */

inline do_enqueue(j) {
#ifndef BUG_NO_ID
    if
    :: !KNOWN(j) ->
#else
    if
    :: true ->
#endif
        KNOWN(j) = 1;
        PLACE(j) = QUEUE
    :: else
    fi
}

inline take_slot() {
#ifndef BUG_SLOT_NOT_SAVED
    SLOT++;
#endif
    assert(went_back || !was_granted[SLOT]);
    was_granted[SLOT] = true
}

inline do_claim(q, a) {
    if
#ifndef BUG_CLAIM_UNREGISTERED
    :: !REG(q.id) -> a.unregistered = true
#endif
    :: else ->
        for (k : 0 .. J - 1) {
            if
            :: WAITS(k) && MARK(k) -> end_job(k, CANCELLED); MARK(k) = 0
            :: MAY_START(k, q.id) || JOINS(k, a) ->
                PLACE(k) = ACTIVE;
                OWNER(k) = q.id;
                TURN(k) = q.turn;
                IN_FLIGHT++;
                take_slot();
                last_run[k]++;
                RUN(k) = last_run[k];
                runs_on[k] = false;
                a.has[k] = true;
                a.nth[k] = RUN(k)
            :: else
            fi
        }
    fi
}

inline do_settle(q) {
    for (k : 0 .. J - 1) {
        if
#ifdef BUG_SETTLE_STALE
        :: q.verb[k] != V_NONE && PLACE(k) == ACTIVE ->
#else
        :: q.verb[k] != V_NONE && HELD_BY(k, q.id) && TURN(k) == q.token[k] ->
#endif
            assert(q.nth[k] == RUN(k));
            release(k);
            if
            :: q.verb[k] == V_DONE -> end_job(k, DONE)
            :: q.verb[k] == V_RETRY ->
                PLACE(k) = LATER;
                OWNER(k) = NONE;
                RETRIED(k) = 1;
                may_start[k]++
            :: q.verb[k] == V_BACK ->
                PLACE(k) = LANE;
                OWNER(k) = NONE
            fi
        :: else
        fi
    }
}

/* What the old id held goes to the new one where the worker names its token, else back. */
inline do_adopt(q, a) {
    for (k : 0 .. J - 1) {
        if
        :: q.old != NONE && HELD_BY(k, q.old) && q.old != q.id ->
            if
            :: q.id != NONE && q.verb[k] != V_NONE && TURN(k) == q.token[k] -> OWNER(k) = q.id
            :: else ->
                release(k);
                PLACE(k) = LANE;
                OWNER(k) = NONE
            fi
        :: else
        fi;
        a.has[k] = q.id != NONE && HELD_BY(k, q.id) && q.verb[k] != V_NONE && TURN(k) == q.token[k];
#ifndef BUG_CANCEL_UNHEARD
        if
        :: q.id != NONE && q.old != NONE && TOLD(k) == q.old + 1 -> TOLD(k) = q.id + 1
        :: else
        fi
#endif
    }
    if
    :: q.old != NONE -> REG(q.old) = 0; LATE(q.old) = 0
    :: else
    fi;
    if
    :: q.id != NONE -> REG(q.id) = 1; LATE(q.id) = 0
    :: else
    fi
}

/* What does not run in its worker cannot have killed it. */
inline interrupt(j) {
    release(j);
#ifdef BUG_RELEASE_TWICE
    release(j);
#endif
    OWNER(j) = NONE;
    may_start[j] = may_start[j] + (runs_on[j] || ans[0].has[j] || ans[1].has[j]);
#ifndef OUTSIDE
    if
#ifdef BUG_INNOCENTS
    :: true -> BLAMED(j)++
#endif
#ifdef BUG_GROUP
    :: SUSPECT(j) > 1 -> BLAMED(j)++
#endif
    :: SUSPECT(j) == 1 -> BLAMED(j)++
    :: else
    fi;
    SUSPECT(j) = (SUSPECT(j) -> 1 : FIRST_HALF);
#endif
    if
    :: BLAMED(j) >= DEAD_AT -> end_job(j, DEAD)
    :: else -> PLACE(j) = LANE
    fi
}

/* Worker m is past its deadline: what it held goes back, but for a job whose lane holds something else. */
inline reap_one(m, a) {
    broken_met = broken_met || (broken != NONE && HELD_BY(broken, m));
    for (k : 0 .. J - 1) {
        if
        :: HELD_BY(k, m) && k != broken -> interrupt(k)
        :: else
        fi
    }
    if
    :: broken != NONE && HELD_BY(broken, m) ->
#ifdef BUG_REAP_REFUSED
        a.refused = true
#else
        skip
#endif
    :: else -> REG(m) = 0; LATE(m) = 0
    fi
}

inline do_reap(q, a) {
    if
    :: !REG(q.id) -> a.unregistered = true
    :: else ->
        LATE(q.id) = 0;
        lives[q.id] = lives[q.id] || w[q.old].id == q.id; /* old: whose heartbeat it is */
        for (m : 0 .. IDS - 1) {
            if
            :: REG(m) && LATE(m) && !amnesty ->
                assert(!lives[m]);
                reap_one(m, a)
            :: else
            fi
        }
    fi
}

/* What is due goes back; where it cannot, it is dead. */
inline do_promote() {
    for (k : 0 .. J - 1) {
        if
        :: PLACE(k) == LATER && k != bad_queue -> PLACE(k) = LANE
        :: PLACE(k) == LATER && k == bad_queue ->
#ifdef BUG_BURIED_UNCOUNTED
            PLACE(k) = DEAD
#else
            end_job(k, DEAD)
#endif
        :: else
        fi
    }
}

inline clear(x) {
    req[x].kind = 0;
    req[x].id = 0;
    req[x].old = 0;
    req[x].turn = 0;
    for (k : 0 .. J - 1) { req[x].verb[k] = V_NONE; req[x].token[k] = 0; req[x].nth[k] = 0 }
    sent[x] = false
}

inline clear_answer(x) {
    ans[x].there = false;
    ans[x].unregistered = false;
    ans[x].refused = false;
    for (k : 0 .. J - 1) { ans[x].has[k] = false; ans[x].nth[k] = 0 }
}

inline perform(x) {
    if
    :: req[x].kind == adopt || req[x].kind == leave -> do_adopt(req[x], ans[x])
    :: req[x].kind == claim -> do_claim(req[x], ans[x])
    :: req[x].kind == settle -> do_settle(req[x])
    :: req[x].kind == reap -> do_reap(req[x], ans[x])
    :: req[x].kind == promote -> do_promote()
    fi;
    assert(IN_FLIGHT == (PLACE(0) == ACTIVE) + (PLACE(1) == ACTIVE) && IN_FLIGHT <= N_IN_FLIGHT);
    clear(x);
    ans[x].there = true;
    k = 0;
    m = 0
}

proctype Redis() {
    byte k, m;

end:
    do
    :: d_step { sent[0] -> perform(0) }
    :: d_step { sent[1] -> perform(1) }
    :: d_step { sent[W] -> perform(W); clear_answer(W); k = 0 }
    od
}

/* ---- A worker */

inline send(x, what, to, from) {
    req[x].kind = what;
    req[x].id = to;
    req[x].old = from;
    req[x].turn = w[x].turn;
    w[x].asked_for = what;
    sent[x] = true
}

inline name(x, j, what) {
    req[x].verb[j] = what;
    req[x].token[j] = w[x].token[j];
    req[x].nth[j] = w[x].nth[j];
    w[x].named[j] = true
}

inline forget(x, j) {
    w[x].job[j] = NO;
    w[x].token[j] = 0;
    w[x].nth[j] = 0;
    w[x].told[j] = false;
    w[x].named[j] = false
}

/* The handler is called, unless there is no thread for it. */
inline start(x, j) {
    w[x].nth[j] = ans[x].nth[j];
    w[x].token[j] = w[x].turn;
    if
#ifdef NO_THREAD
    :: faults < FAULTS ->
        faults++;
#ifndef BUG_UNSTARTED_KEPT
        w[x].job[j] = UNSTARTED
#else
        forget(x, j)
#endif
#endif
    :: true ->
        assert(may_start[j] > 0);
        may_start[j]--;
        runs_on[j] = true;
        w[x].job[j] = RUNS
    fi
}

inline on_adopted(x) {
    for (k : 0 .. J - 1) {
        if
        :: w[x].job[k] != NO && !ans[x].has[k] -> forget(x, k) /* was given to others */
        :: else -> w[x].named[k] = false
        fi
    }
    w[x].id = w[x].next;
    w[x].next = NONE;
    lives[w[x].id] = !LATE(w[x].id); /* else this answer took longer than the lease */
    w[x].link = IN
}

inline take_answer(x) {
    if
    :: ans[x].unregistered -> w[x].link = UP
    :: ans[x].refused -> w[x].gone = true; w[x].link = DOWN; lives[w[x].id] = false
    :: else ->
        if
        :: w[x].asked_for == adopt -> on_adopted(x)
        :: w[x].asked_for == leave -> w[x].gone = true; w[x].link = DOWN; w[x].id = NONE
        :: w[x].asked_for == claim ->
            for (k : 0 .. J - 1) {
                if
                :: ans[x].has[k] -> start(x, k)
                :: else
                fi
            }
        :: w[x].asked_for == settle ->
            for (k : 0 .. J - 1) {
                if
                :: w[x].named[k] -> forget(x, k)
                :: else
                fi
            }
        :: else
        fi
    fi;
    w[x].asked_for = 0;
    clear_answer(x);
    k = 0
}

/* The connection is gone. What was sent is lost, or arrives later; an answer is lost. */
inline cut(x) {
    if
    :: sent[x] && !sent[W] ->
        req[W].kind = req[x].kind;
        req[W].id = req[x].id;
        req[W].old = req[x].old;
        req[W].turn = req[x].turn;
        for (k : 0 .. J - 1) {
            req[W].verb[k] = req[x].verb[k];
            req[W].token[k] = req[x].token[k];
            req[W].nth[k] = req[x].nth[k]
        }
        sent[W] = true
    :: true
    fi;
    clear(x);
    clear_answer(x);
    w[x].asked_for = 0;
    w[x].link = DOWN;
    for (k : 0 .. J - 1) { w[x].named[k] = false }
    if
    :: w[x].id != NONE -> lives[w[x].id] = false
    :: else
    fi;
    k = 0
}

/* The process is gone, with all that it knew. */
inline die(x) {
    cut(x);
    for (k : 0 .. J - 1) { forget(x, k) }
    w[x].id = NONE;
    w[x].next = NONE;
    w[x].turn = 0;
    w[x].stopped = false;
    k = 0
}

#define IDLE(x) (w[x].link == IN && !w[x].asked_for)
#define HAS(x, what) (w[x].job[0] == what || w[x].job[1] == what)
#define TO_SETTLE(x) (HAS(x, ENDED) || HAS(x, UNSTARTED))
#ifdef BUG_FORCED_STOP
#define MUST_SETTLE(x) (TO_SETTLE(x) && !w[x].stopped)
#define MAY_LEAVE(x) w[x].stopped
#else
#define MUST_SETTLE(x) TO_SETTLE(x)
#define MAY_LEAVE(x) (w[x].stopped && !TO_SETTLE(x))
#endif
#define CAN_END(x, j) (w[x].job[j] == RUNS && (j != stubborn || w[x].told[j]) && j != poison)
#define STUCK(i) (broken_met && HELD_BY(0, i) && !HELD_BY(1, i)) /* looked at before, in vain */
#define LATE_OF(i) (REG(i) && LATE(i) && !amnesty && !STUCK(i))
#define TO_REAP (LATE_OF(0) || LATE_OF(1) || LATE_OF(2) || LATE_OF(3) || LATE_OF(4) || LATE_OF(5) || LATE_OF(6) || LATE_OF(7))

proctype Worker_(byte me) {
    byte k;

end:
    do
    :: atomic { !w[me].gone && w[me].link == DOWN -> w[me].link = UP }
    :: atomic { w[me].link == UP && !w[me].asked_for ->
        if
        :: w[me].next == NONE ->
#ifdef BUG_SAME_ID
            if
            :: w[me].id != NONE -> w[me].next = w[me].id
            :: else -> w[me].next = next_id; next_id++
            fi
#else
            assert(next_id < IDS);
            w[me].next = next_id;
            next_id++
#endif
        :: else
        fi;
        for (k : 0 .. J - 1) {
            if
            :: w[me].job[k] != NO -> name(me, k, V_BACK)
            :: else
            fi
        }
        send(me, adopt, w[me].next, w[me].id);
        k = 0 }
    :: atomic { IDLE(me) && MUST_SETTLE(me) ->
        for (k : 0 .. J - 1) {
            if
            :: w[me].job[k] == ENDED -> name(me, k, (k == retried && !RETRIED(k) -> V_RETRY : V_DONE))
            :: w[me].job[k] == UNSTARTED -> name(me, k, V_BACK)
            :: else
            fi
        }
        send(me, settle, w[me].id, NONE);
        k = 0 }
    :: atomic { IDLE(me) && !w[me].stopped && (MAY_START(0, w[me].id) || MAY_START(1, w[me].id) ||
                                             (WAITS(0) && MARK(0)) || (WAITS(1) && MARK(1))) ->
        w[me].turn++;
        send(me, claim, w[me].id, NONE) }
    :: atomic { IDLE(me) && (TO_REAP || LATE(w[me].id)) -> send(me, reap, w[me].id, me) }
    :: atomic { IDLE(me) && !w[me].stopped && (PLACE(0) == LATER || PLACE(1) == LATER) -> send(me, promote, w[me].id, NONE) }
    :: atomic { ans[me].there -> take_answer(me) }
    :: atomic { CAN_END(me, 0) -> w[me].job[0] = ENDED }
    :: atomic { CAN_END(me, 1) -> w[me].job[1] = ENDED }
    :: atomic { poison != NONE && w[me].job[poison] == RUNS -> die(me) }
    :: atomic { IDLE(me) && TOLD(1) == w[me].id + 1 -> TOLD(1) = 0; w[me].told[1] = true }
    :: atomic { IDLE(me) && MAY_LEAVE(me) ->
        for (k : 0 .. J - 1) {
            may_start[k] = may_start[k] + (w[me].job[k] == RUNS); /* ended by force, and given back */
            forget(me, k)
        }
        lives[w[me].id] = false;
        send(me, leave, NONE, w[me].id);
        k = 0 }
    od
}

/* ---- Everybody else */

/* Repeats what was not answered: then it may have arrived or not, or arrive later. */
proctype Producer() {
    byte j;

    for (j : 0 .. J - 1) {
again:  atomic {
            if
            :: do_enqueue(j)
            :: faults < FAULTS -> faults++; do_enqueue(j); goto again
            :: faults < FAULTS -> faults++; goto again
            fi
        }
    }
}

proctype Canceller() {
    atomic {
        if
        :: WAITS(1) -> MARK(1) = 1
        :: PLACE(1) == ACTIVE -> MARK(1) = 2; TOLD(1) = OWNER(1) + 1
        :: PLACE(1) == LATER -> end_job(1, CANCELLED)
        :: PLACE(1) > LATER
        fi
    }
}

#ifdef BUG_AMNESTY
#define AMNESTY_OVER true
#else
#define AMNESTY_OVER (!(lives[0] && LATE(0)) && !(lives[1] && LATE(1)))
#endif

/* The lease of a worker that is gone, or not heard, ends. Amnesty is over when all who live have been heard. */
#define ADOPTS(x, i) (w[x].next == i && w[x].asked_for == adopt)
#define GROWS_LATE(i) (REG(i) && !LATE(i) && !lives[i] && !ADOPTS(0, i) && !ADOPTS(1, i))

proctype Clock() {
end:
    do
    :: atomic { GROWS_LATE(0) -> LATE(0) = 1 }
    :: atomic { GROWS_LATE(1) -> LATE(1) = 1 }
    :: atomic { GROWS_LATE(2) -> LATE(2) = 1 }
    :: atomic { GROWS_LATE(3) -> LATE(3) = 1 }
    :: atomic { GROWS_LATE(4) -> LATE(4) = 1 }
    :: atomic { GROWS_LATE(5) -> LATE(5) = 1 }
    :: atomic { GROWS_LATE(6) -> LATE(6) = 1 }
    :: atomic { GROWS_LATE(7) -> LATE(7) = 1 }
#ifdef OUTAGE
    :: atomic { amnesty && AMNESTY_OVER -> amnesty = false }
#endif
    od
}

#define HURT(x) (faults < FAULTS && !w[x].gone && w[x].link != DOWN)

proctype Faults(byte x) {
    byte k;

end:
    do
    :: false
#ifdef CUT
    :: atomic { HURT(x) -> faults++; cut(x) }
#endif
#ifdef KILL
    :: atomic { HURT(x) -> faults++; die(x) }
#endif
#ifdef STALL
    :: atomic { HURT(x) && w[x].link == IN && lives[w[x].id] -> faults++; lives[w[x].id] = false }
#endif
#ifdef STOP
    :: atomic { HURT(0) && x == 0 && !w[0].stopped -> faults++; w[x].stopped = true }
#endif
#ifdef OUTAGE
    :: atomic { faults < FAULTS && REG(0) && REG(1) -> faults++; amnesty = true; LATE(0) = 1; LATE(1) = 1 }
#endif
#ifdef ROLLBACK
    :: d_step { !has_synced && KNOWN(0) && KNOWN(1) ->
        has_synced = true;
        for (k : 0 .. SIZE - 1) { synced[k] = r[k] }
        k = 0 }
    :: atomic { has_synced && faults < FAULTS ->
        faults++;
        went_back = true;
        for (k : 0 .. SIZE - 1) { r[k] = synced[k] }
        may_start[0]++;
        may_start[1]++;
        if
        :: w[0].link != DOWN -> cut(0)
        :: else
        fi;
        if
        :: w[1].link != DOWN -> cut(1)
        :: else
        fi;
        clear(W) }
#endif
    od
}

#define HAS_ENDED(j) (PLACE(j) > LATER || j == broken)

init {
    atomic {
        for (faults : 0 .. J - 1) { OWNER(faults) = NONE; may_start[faults] = 1 }
        faults = 0;
#ifdef BROKEN
        broken = 0;
#endif
        run Redis();
        run Producer();
        run Worker_(0);
        run Worker_(1);
        run Clock();
        run Faults(0);
        run Faults(1);
#ifdef CANCEL
        run Canceller()
#endif
    }
    timeout; /* nothing can happen any more */
    assert(HAS_ENDED(0) && HAS_ENDED(1));
    assert(broken != NONE || (COUNTED == J && FIRED));
    assert(!MARK(0) && !MARK(1));
    assert(poison == NONE || PLACE(1 - poison) == DONE)
}

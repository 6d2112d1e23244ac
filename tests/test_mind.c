/* The worker's mind (worker/mind/): what it decides, from facts and a time that are given, without a loop, a Redis or a clock. */
#include <inttypes.h>

#include "tests/test.h"
#include "worker/mind/inside.h"

#define EXECUTORS 8
#define NOW (1000000 * MS)
#define POLL_US (1200 * MS)

/* A worker that is idle and off duty. It claimed half a second ago, and polls 0.7 s from now. */
struct one {
    struct minds all;
    struct mind m, other;
};

static struct mind *one_open(struct one *o)
{
    *o = (struct one){
        .all =
            {.executors = EXECUTORS, .queue_count = 1, .type_count = 1, .lease_us = 30000 * MS, .count = 1},
        .m = {.all = &o->all,
              .random = 7,
              .facts = {.up = true, .registered = true, .idle = true},
              .polls = {.workers = 1, .wait_us = POLL_US},
              .due = {.heard_us = NOW},
              .claims = {.sent_us = NOW - 500 * MS, .mark_us = NOW, .leases = 1, .free = EXECUTORS},
              .beat_us = NOW + 5000 * MS}};
    o->other = o->m;
    o->all.at[0] = &o->m;
    o->all.at[1] = &o->other;
    return &o->m;
}

/* Redis is so far away. */
static void be_far(struct mind *m, int64_t trip_us)
{
    m->distance = (struct distance){0};
    distance_hear(&m->distance, NOW - trip_us, NOW - trip_us / 2, NOW);
}

/* ---- Plans: what a mind knows beside what one_open() says, and what it decides */

struct expected {
    int64_t next_us; /* after now; 0: a turn begins */
    bool claims;
    int free, prefetch;
    bool settle, promote, beat, learn, match, drained;
    enum plan_wait wait;
};

/* So many jobs have ended, the first of them then. */
static void end(struct mind *m, int count, int64_t at_us)
{
    m->facts.finished = count;
    m->facts.finished_us = at_us;
    m->facts.idle = false;
}

/* A claim has said so then. */
static void be_alone(struct mind *m, int64_t at_us)
{
    m->alone = (struct alone){.on = true, .since_us = at_us};
    m->facts.idle = true;
}

static void check(const char *what, struct mind *m, struct expected is)
{
    struct plan plan = plan_turn(m, NOW);

    if (plan.turn != (is.next_us == 0) || (!plan.turn && plan.next_us != NOW + is.next_us))
        fail_msg("%s: %s after %" PRId64 " us", what, plan.turn ? "a turn" : "no turn", plan.next_us - NOW);
    if (plan.claims != is.claims || plan.claim.free != is.free || plan.claim.prefetch != is.prefetch)
        fail_msg("%s: claims %d, free %d, prefetch %d", what, plan.claims, plan.claim.free,
                 plan.claim.prefetch);
    if (plan.settle != is.settle || plan.promote != is.promote || plan.beat != is.beat ||
        plan.learn != is.learn || plan.match != is.match || plan.drained != is.drained ||
        plan.wait != is.wait)
        fail_msg("%s: settle %d, promote %d, beat %d, learn %d, match %d, drained %d, wait %d", what,
                 plan.settle, plan.promote, plan.beat, plan.learn, plan.match, plan.drained, (int)plan.wait);
}

#define PLAN(what, set, ...)                                                                                 \
    {                                                                                                        \
        struct one o;                                                                                        \
        struct mind *m = one_open(&o);                                                                       \
        set check(what, m, (struct expected){__VA_ARGS__});                                                  \
    }

/* clang-format off */
TEST(test_plans)
{
    PLAN("an idle worker polls", { (void)m; }, .next_us = 700 * MS, .wait = PLAN_WAIT_OFF_DUTY)
    PLAN("it is called", { m->claims.wanted = true; }, .claims = true, .free = 8, .settle = true)
    PLAN("on duty it renews that in time", { m->claims.duty_until_us = NOW + 700 * MS; }, .next_us = 100 * MS, .wait = PLAN_WAIT_ON_DUTY)
    PLAN("but not too often", { m->claims.duty_until_us = NOW + 40 * MS; m->claims.sent_us = NOW - 20 * MS; }, .next_us = 80 * MS, .wait = PLAN_WAIT_ON_DUTY)
    PLAN("the second follows at its time", { m->claims.second_us = NOW + 50 * MS; }, .next_us = 50 * MS, .wait = PLAN_WAIT_OFF_DUTY)
    PLAN("all executors are busy", { m->facts.running = 8; m->claims.wanted = true; }, .next_us = 1500 * MS)
    PLAN("half of them are open, and there is more", { m->facts.running = 4; m->claims.more = true; }, .claims = true, .free = 4, .settle = true)
    PLAN("fewer are open: it waits for half", { m->facts.running = 6; m->claims.more = true; m->claims.more_us = NOW; }, .next_us = 500)
    PLAN("but not for long", { m->facts.running = 6; m->claims.more = true; m->claims.more_us = NOW - 500; }, .claims = true, .free = 2, .settle = true)
    PLAN("a job with a limit found none idle", { m->facts.running = 7; m->claims.starved = true; }, .claims = true, .free = 1, .settle = true)
    PLAN("reserved executors are not for jobs without", { m->facts.running = m->facts.unlimited = 6; m->capacity.reserve = 2; m->claims.more = true; }, .next_us = 700 * MS)
    PLAN("but for others like those that came", { m->facts.running = m->facts.unlimited = 6; m->capacity.reserve = 2; m->claims.more = true; m->claims.limited = 2; m->claims.more_us = NOW - 500; }, .claims = true, .free = 2, .settle = true)
    PLAN("a gate opens", { m->claims.duty_until_us = NOW + 900 * MS; m->claims.next_us = NOW + 3 * MS; }, .next_us = 3 * MS, .wait = PLAN_WAIT_ON_DUTY)
    PLAN("which is for another", { m->claims.next_us = NOW + 3 * MS; }, .next_us = 700 * MS, .wait = PLAN_WAIT_OFF_DUTY)
    PLAN("unless executors are reserved here", { m->claims.next_us = NOW + 3 * MS; m->capacity.reserve = 2; }, .next_us = 3 * MS, .wait = PLAN_WAIT_OFF_DUTY)
    PLAN("and the last claim brought something", { m->claims.next_us = NOW + 3 * MS; m->capacity.reserve = 2; m->claims.leases = 0; }, .next_us = 700 * MS, .wait = PLAN_WAIT_OFF_DUTY)
    PLAN("a job is due", { m->claims.duty_until_us = NOW + 900 * MS; m->due.at_us = NOW; }, .claims = true, .free = 8, .settle = true, .promote = true, .wait = PLAN_WAIT_ON_DUTY)
    PLAN("which is for another, off duty", { m->due.at_us = NOW + 20 * MS; }, .next_us = 700 * MS, .wait = PLAN_WAIT_OFF_DUTY)
    PLAN("unless it promoted the last ones", { m->due.at_us = NOW + 20 * MS; m->due.promotes = true; }, .next_us = 20 * MS, .wait = PLAN_WAIT_OFF_DUTY)
    PLAN("a job is done: it waits a little", { end(m, 1, NOW); }, .next_us = 10 * MS, .wait = PLAN_WAIT_OFF_DUTY)
    PLAN("for a claim that is due soon", { end(m, 1, NOW); m->claims.second_us = NOW + 55 * MS; }, .next_us = 55 * MS, .wait = PLAN_WAIT_OFF_DUTY)
    PLAN("longer where a claim stands", { end(m, 1, NOW); m->claims.stands = true; }, .next_us = 60 * MS, .wait = PLAN_WAIT_OFF_DUTY)
    PLAN("but not for many", { end(m, 64, NOW); m->claims.stands = true; }, .next_us = 10 * MS, .wait = PLAN_WAIT_OFF_DUTY)
    PLAN("so many do not wait", { end(m, 500, NOW); }, .settle = true)
    PLAN("somebody waits for its end", { end(m, 1, NOW); m->facts.urgent = true; }, .settle = true)
    PLAN("a claim takes it along", { end(m, 1, NOW); m->claims.wanted = m->facts.along = true; }, .claims = true, .free = 8)
    PLAN("a claim cannot", { end(m, 1, NOW); m->claims.wanted = true; }, .claims = true, .free = 8, .settle = true)
    PLAN("a worker that stops settles, and claims no more", { end(m, 1, NOW); m->claims.wanted = m->facts.stopping = true; }, .settle = true)
    PLAN("so does one that is quiet", { m->claims.wanted = m->facts.quiet = m->said_quiet = true; }, .next_us = 5000 * MS)
    PLAN("all of its types rest", { m->claims.wanted = m->facts.rests = true; }, .next_us = 1500 * MS)
    PLAN("then the duty is for others", { m->facts.rests = true; m->claims.duty_until_us = NOW + 500 * MS; ask_passes(m); }, .claims = true, .settle = true, .wait = PLAN_WAIT_ON_DUTY)
    PLAN("an error: it pauses", { m->claims.wanted = true; hear_refusal(m, NOW); }, .next_us = 1000 * MS)
    PLAN("limits have changed", { m->facts.learns = true; }, .settle = true, .learn = true)
    PLAN("a heartbeat is due", { m->beat_us = NOW; m->claims.duty_until_us = NOW + 900 * MS; }, .settle = true, .beat = true)
    PLAN("a worker that is quiet now says so", { m->facts.quiet = true; }, .settle = true, .beat = true)
    PLAN("and when that is over", { m->said_quiet = m->claims.wanted = true; }, .claims = true, .free = 8, .settle = true, .beat = true)
    PLAN("not before it is registered", { m->facts.quiet = true; m->facts.registered = false; }, .next_us = 5000 * MS)
    PLAN("it goes along with a claim", { m->beat_us = NOW + 3000 * MS; m->claims.wanted = true; }, .claims = true, .free = 8, .settle = true, .beat = true)
    PLAN("and asks in place of a poll", { m->beat_us = NOW + 3000 * MS; m->claims.sent_us = NOW - POLL_US; }, .settle = true, .beat = true)
    PLAN("what is due by the next turn is asked for now", { be_far(m, 10 * MS); end(m, 500, NOW); m->claims.duty_until_us = NOW + 900 * MS; m->claims.next_us = NOW + 9 * MS; }, .claims = true, .free = 8, .settle = true, .wait = PLAN_WAIT_ON_DUTY)
    PLAN("a worker that drains asks whether anything is left", { m->all->drain = true; }, .claims = true, .free = 8, .settle = true, .drained = true)
    PLAN("not while something runs", { m->all->drain = true; m->facts.running = 1; m->facts.idle = false; }, .next_us = 700 * MS, .wait = PLAN_WAIT_OFF_DUTY)
    PLAN("a job is to run alone: others end first", { be_alone(m, NOW); m->facts.running = 1; m->facts.idle = false; m->claims.wanted = true; }, .next_us = 1000 * MS)
    PLAN("then it is asked for", { be_alone(m, NOW); }, .claims = true, .free = 8, .settle = true)
    PLAN("now and then", { be_alone(m, NOW); m->alone.asked = true; m->claims.sent_us = NOW; }, .next_us = 500 * MS, .wait = PLAN_WAIT_OFF_DUTY)
    PLAN("others do not wait for ever", { be_alone(m, NOW - 1000 * MS); m->facts.running = 1; m->facts.idle = false; }, .claims = true, .free = 7, .settle = true)
    PLAN("jobs ahead: what ends in 8 ms", { m->all->pace.rate = 1000; m->facts.running = m->facts.unlimited = 8; m->claims.more = true; }, .claims = true, .prefetch = 8, .settle = true)
    PLAN("and in two round trips", { m->all->pace.rate = 1000; be_far(m, 10 * MS); m->facts.running = m->facts.unlimited = 8; m->claims.more = true; }, .claims = true, .prefetch = 28, .settle = true)
    PLAN("in a crowd its part", { m->all->pace.rate = 1000; be_far(m, 10 * MS); m->claims.crowd = 1000; m->facts.running = m->facts.unlimited = 8; m->claims.more = true; }, .claims = true, .prefetch = 5, .settle = true)
    PLAN("but not while all that waits needs an executor", { m->all->pace.rate = 1000; m->facts.running = 8; m->claims.more = m->claims.barren = true; }, .next_us = 1500 * MS)
    PLAN("which are here", { m->all->pace.rate = 1000; m->facts.running = m->facts.unlimited = 8; m->facts.prefetched = 8; m->claims.more = true; }, .next_us = 1500 * MS)
    PLAN("another partition has all executors, and here nobody watches", { m->all->count = 2; m->facts.running = 8; m->claims.sent_us = NOW - 300 * MS; }, .next_us = 100 * MS)
}
/* clang-format on */

/* ---- What a claim asks for */

/* On duty slots are taken farther ahead, for half of the executors that are free; not of a worker that is far away, and not after one
 * found none. */
TEST(test_early_jobs)
{
    struct one o;
    struct mind *m = one_open(&o);
    struct plan plan;

    m->claims.duty_until_us = NOW;
    plan = plan_turn(m, NOW);
    assert_true(plan.claim.early);
    assert_int_equal(plan.claim.ahead_us, 50 * MS);
    assert_int_equal(plan.claim.far, 4);
    assert_int_equal(m->claims.early_us, 5 * MS);
    m = one_open(&o);
    m->claims.duty_until_us = NOW;
    room_was_crowded(&o.all, NOW - 999 * MS);
    assert_false(plan_turn(m, NOW).claim.early);
    m = one_open(&o);
    m->claims.duty_until_us = NOW;
    be_far(m, 10 * MS);
    plan = plan_turn(m, NOW);
    assert_false(plan.claim.early);
    assert_int_equal(plan.claim.ahead_us, 15 * MS);
    assert_int_equal(plan.claim.far, 6); /* a quarter is for who needs no slot */
}

/* One of several partitions asks for half of its share, and has as many executors for a wait as are idle beyond those that never wait: where it had
 * none, workers of two executors would call each other in a circle. What another partition's claim may fill is not idle. */
TEST(test_partitions_wait_for_slots)
{
    struct one o;
    struct mind *m = one_open(&o);
    struct plan plan;

    be_far(m, 10 * MS);
    o.all.count = 2;
    o.all.executors = 2;
    m->claims.wanted = true;
    plan = plan_turn(m, NOW);
    assert_int_equal(plan.claim.free, 1);
    assert_int_equal(plan.claim.far, 1);
    m->claims.wanted = true;
    o.other.capacity.taken = 1;
    o.other.capacity.taken_us = NOW;
    plan = plan_turn(m, NOW);
    assert_int_equal(plan.claim.free, 1);
    assert_int_equal(plan.claim.far, 0);
}

/* While a turn is under way, of one that is far away and whose last answer was full. */
TEST(test_claims_beside_a_turn)
{
    struct claim_call call;
    struct one o;
    struct mind *m = one_open(&o);
    int64_t next_us;

    m->facts.awaited = 1;
    m->claims.plenty = true;
    o.all.pace.rate = 10000;
    assert_false(plan_beside(m, NOW, &call, &next_us));
    assert_true(next_us == NEVER); /* near */
    be_far(m, 20 * MS);
    assert_true(plan_beside(m, NOW, &call, &next_us));
    assert_int_equal(call.prefetch, 480);
    assert_int_equal(next_us, NOW + 500); /* apart */
    assert_false(plan_beside(m, NOW + 499, &call, &next_us));
    assert_int_equal(m->claims.coming_beside, 480);
    hear_beside(m, NULL, NOW + 500);
    assert_int_equal(m->claims.coming_beside, 0);
    m->claims.plenty = m->claims.wanted = true; /* that is for a turn */
    assert_false(plan_beside(m, NOW + 500, &call, &next_us));
    m->claims.wanted = false;
    o.all.weights = (const int[]){1};
    assert_false(plan_beside(m, NOW + 500, &call, &next_us)); /* the order is drawn for each turn */
    o.all.weights = NULL;
    assert_true(plan_beside(m, NOW + 500, &call, &next_us));
    hear_beside(m, NULL, NOW + 600);
    assert_false(m->claims.plenty);
}

/* Where jobs come one by one, on duty; and for a minute not after an answer was lost. */
TEST(test_a_claim_stands)
{
    struct claim_call call;
    struct one o;
    struct mind *m = one_open(&o);

    m->claims.few_us = NOW - 249 * MS;
    assert_false(plan_standing(m, NOW, &call));
    m->claims.duty_until_us = m->claims.duty_until_redis_us = NOW + 500 * MS;
    assert_true(plan_standing(m, NOW, &call));
    assert_true(call.standing);
    assert_int_equal(call.free, 3);
    assert_false(plan_standing(m, NOW + 1 * MS, &call));
    m->facts.running = 6;
    assert_false(plan_standing(m, NOW, &call));
    m->facts.running = 0;
    assert_true(hear_stood(m));
    hear_lost_standing(m, NOW);
    assert_false(plan_standing(m, NOW, &call));
}

/* Two partitions that want more have half of the executors each. One that may need none leaves half of its share. */
TEST(test_partitions_share)
{
    struct one o;
    struct mind *m = one_open(&o);

    o.all.count = 2;
    assert_int_equal(room_of(m, NOW).free, 4);
    m->claims.more = true;
    assert_int_equal(room_of(m, NOW).free, 8);
    o.other.capacity.hungry = true;
    assert_int_equal(room_of(m, NOW).free, 4);
    o.other.facts.here = o.other.facts.running = m->facts.running =
        6; /* it has them all, and this one the rest */
    assert_int_equal(room_of(m, NOW).free, 2);
    o.other.capacity.taken = 1; /* its claim is under way */
    o.other.capacity.taken_us = NOW;
    assert_int_equal(room_of(m, NOW).free, 1);
    assert_int_equal(room_of(m, NOW + 100 * MS).free, 2); /* its answer does not come */
}

/* The other partition wants executors, too. */
static struct mind *share_open(struct one *o)
{
    struct mind *m = one_open(o);

    o->all.count = 2;
    m->claims.more = o->other.claims.more = true;
    o->other.capacity.hungry = true;
    return m;
}

TEST(test_what_counts_as_a_share)
{
    struct one o;
    struct mind *m = share_open(&o);

    m->facts.running = o.other.facts.running = 2;
    o.other.facts.here = 6; /* with four that wait for an executor, and hold none */
    o.other.facts.here_prefetched = 4;
    assert_int_equal(room_of(m, NOW).free, 4);
    m = share_open(&o);
    o.other.capacity.taken = 3; /* its claim is under way, and it wants no more */
    o.other.capacity.taken_us = NOW;
    assert_int_equal(room_of(m, NOW).free, 5);
    m = share_open(&o);
    o.other.facts.awaited = 1;
    o.other.sent_us = NOW - 99 * MS;
    assert_int_equal(room_of(m, NOW).free, 4);
    assert_int_equal(room_of(m, NOW + 1 * MS).free, 8); /* its answer does not come */
    m = share_open(&o);
    m->capacity.hungry = true;
    m->facts.running = o.other.facts.running = 7; /* the one that is left is for who waits longer */
    o.other.claims.sent_us--;
    assert_int_equal(room_of(m, NOW).free, 0);
    assert_int_equal(room_of(&o.other, NOW).free, 1);
}

/* What is prefetched is shared among those that want more, and what one has of it is its own. */
TEST(test_prefetched_jobs_are_shared)
{
    struct one o;
    struct mind *m = share_open(&o);

    o.all.pace.rate = 1000;
    m->facts.running = m->facts.unlimited = EXECUTORS;
    assert_int_equal(room_of(m, NOW).prefetch, 4);
    o.other.capacity.hungry = false;
    m->facts.prefetched = 5;
    m->facts.here_prefetched = 3;
    assert_int_equal(room_of(m, NOW).prefetch, 5);
}

/* Who waits for more executors to be free is hungry, and who has asked for jobs is not. */
TEST(test_who_is_hungry)
{
    struct one o;
    struct mind *m = share_open(&o);

    m->claims.more_us = NOW;
    m->facts.running = 6;
    o.other.capacity.hungry = false;
    assert_false(plan_turn(m, NOW).turn);
    assert_true(m->capacity.hungry);
    assert_true(plan_turn(m, NOW + 1 * MS).claims);
    assert_false(m->capacity.hungry);
}

/* What an answer with jobs that have a limit, and with more behind them, says of the executor that is reserved for such jobs: this one of two
 * partitions goes on to claim for it. One that has met none asks only for jobs ahead, so it is not taken from the other. */
TEST(test_reserved_executors_are_claimed_again)
{
    static const struct {
        int asked, unlimited, limited, free;
    } cases[] = {{5, 0, 1, 1}, {0, 0, 1, 1}, {5, 3, 1, 1}, {5, 0, 0, 1}, {5, 5, 0, 0}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lease leases[8] = {{.slot_us = 0}};
        struct claim claim = {
            .now_us = NOW, .next_us = -1, .later_us = -1, .look_us = -1, .more = true, .leases = leases};
        struct one o;
        struct mind *m = one_open(&o);
        struct plan plan;

        o.all.count = 2;
        o.all.pace.rate = 1000;
        claim.lease_count = (size_t)cases[i].unlimited + (size_t)cases[i].limited;
        if (cases[i].limited)
            leases[0].slot_us = NOW;
        m->claims.coming = cases[i].asked;
        m->claims.free = 1;
        m->capacity.reserve = 1;
        assert_true(hear_claim(m, &claim, NOW));
        m->facts.running = m->facts.unlimited = EXECUTORS - 1; /* of the other partition */
        plan = plan_turn(m, NOW);
        assert_true(plan.claims);
        assert_int_equal(plan.claim.free, cases[i].free);
        assert_int_equal(plan.claim.reserved, cases[i].free);
    }
}

TEST(test_prefetched_jobs_do_not_stay)
{
    struct one o;
    struct mind *m = one_open(&o);

    assert_true(room_stuck_time(&o.all) == NEVER);
    m->facts.oldest_us = NOW;
    assert_int_equal(room_stuck_time(&o.all), NOW + 250 * MS);
    be_far(m, 10 * MS);
    assert_int_equal(room_stuck_time(&o.all), NOW + 280 * MS);
    room_was_stuck(&o.all, NOW + 300 * MS);
    assert_int_equal(room_stuck_time(&o.all), NOW + 580 * MS);
}

/* ---- Answers */

/* How full the answer to a claim for so many jobs ahead was: so many came without a limit. */
TEST(test_how_full_an_answer_was)
{
    static const struct {
        int asked, unlimited, limited;
        bool more, plenty, barren;
    } cases[] = {{10, 10, 0, true, true, false}, {10, 5, 0, true, true, false},
                 {10, 4, 6, true, false, false}, {10, 10, 0, false, false, false},
                 {10, 0, 3, true, false, true},  {1, 0, 3, true, false, true},
                 {0, 0, 3, true, false, false}};

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct lease leases[10] = {{.slot_us = 0}};
        struct claim claim = {.now_us = NOW,
                              .next_us = -1,
                              .later_us = -1,
                              .look_us = -1,
                              .more = cases[i].more,
                              .leases = leases};
        struct one o;
        struct mind *m = one_open(&o);

        claim.lease_count = (size_t)cases[i].unlimited + (size_t)cases[i].limited;
        for (int k = 0; k < cases[i].limited; k++)
            leases[k].slot_us = NOW;
        m->claims.coming = cases[i].asked;
        assert_true(hear_claim(m, &claim, NOW));
        assert_int_equal(m->claims.coming, 0);
        assert_int_equal(m->claims.plenty, cases[i].plenty);
        assert_int_equal(m->claims.barren, cases[i].barren);
    }
}

/* Times of Redis's clock are heard by our own; a claim goes early where Redis is far away. */
TEST(test_times_of_an_answer)
{
    const int64_t redis_us = 7 * NOW, trip_us = 10 * MS;
    struct claim claim = {.now_us = redis_us,
                          .next_us = redis_us + 100 * MS,
                          .later_us = redis_us + 200 * MS,
                          .duty_until_us = redis_us + 800 * MS,
                          .look_us = -1};
    struct one o;
    struct mind *m = one_open(&o);

    m->sent_us = NOW - trip_us;
    assert_true(hear_claim(m, &claim, NOW));
    assert_int_equal(m->claims.next_us, NOW + 100 * MS - trip_us);
    assert_int_equal(m->claims.duty_until_us, NOW + 800 * MS);
    assert_int_equal(m->claims.duty_until_redis_us, claim.duty_until_us);
    assert_int_equal(m->claims.second_us, 0);
    assert_int_equal(m->due.at_us, NOW + 200 * MS);
}

/* ---- Polls */

/* Each wait is drawn anew, and what is due is asked for a little after an idle worker's poll. */
TEST(test_a_worker_waits_by_intervals)
{
    int64_t before_us = 0, least_us = INT64_MAX, most_us = 0;
    struct one o;
    struct mind *m = one_open(&o);

    m->due.heard_us = 1000 * MS;
    polls_hear(m, 32);
    for (int i = 0; i < 1000; i++) {
        polls_draw(m);
        assert_in_range(m->polls.wait_us, 4800 * MS, 6400 * MS);
        assert_int_not_equal(m->polls.wait_us, before_us);
        assert_in_range(when_promote(m) - 1000 * MS - m->polls.wait_us, 1, 300 * MS);
        assert_in_range(plan_beat_wait(m), 6562 * MS, 7500 * MS);
        least_us = min_i64(m->polls.wait_us, least_us);
        most_us = max_i64(m->polls.wait_us, most_us);
        before_us = m->polls.wait_us;
    }
    assert_true(most_us - least_us > 700 * MS);
}

/* Of many workers all polls do. On duty, and as the second, each goes when it is due. */
TEST(test_who_is_off_duty_polls_with_its_heartbeat)
{
    struct one o;
    struct mind *m = one_open(&o);

    assert_int_equal(polls_along(m), 3000 * MS);
    assert_true(interval_of_polls(1000, 0) - interval_of_beats(30000 * MS, 1) <= 3000 * MS);
    assert_true(interval_of_beats(30000 * MS, 0) - interval_of_polls(1000, 1) <= 3000 * MS);
    m->claims.second_us = 1;
    assert_int_equal(polls_along(m), 0);
    m->claims.second_us = 0;
    m->claims.sent_us = NOW - POLL_US;
    hear_beat(m, &(struct reaped){.registered = 3, .of_others = true, .now_us = NOW}, NOW);
    assert_true(plan_turn(m, NOW).next_us >= NOW + POLL_US / 2); /* others have the duty */
    m->claims.duty_until_us = 1;
    assert_int_equal(polls_along(m), 0);
}

/* ---- Room */

/* Executors are reserved for jobs with a limit where others take them. Where all have limits none are: a worker with reserved
 * executors claims for itself, beside the one on duty. */
TEST(test_nothing_is_reserved_among_limited_jobs)
{
    static const struct {
        int64_t at_us;
        int prefetched;
        bool starved;
        int reserve;
    } cases[] = {{10000 * MS, 0, true, 0},  {10000 * MS + 1, 0, true, 0}, {10001 * MS, 2, true, 1},
                 {10500 * MS, 0, true, 2},  {10501 * MS, 0, true, 4},     {10502 * MS, 0, true, 4},
                 {11501 * MS, 2, false, 1}, {12502 * MS, 0, true, 0}};
    struct one o;
    struct mind *m = one_open(&o);

    m->facts.timed = 1;
    for (size_t i = 0; i < COUNT(cases); i++) {
        m->facts.prefetched = cases[i].prefetched;
        m->claims.starved = cases[i].starved;
        room_adapt(m, cases[i].at_us);
        assert_int_equal(m->capacity.reserve, cases[i].reserve);
    }
}

TESTS(NULL, NULL)

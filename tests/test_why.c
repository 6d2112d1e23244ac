/* why: where a job is, what holds it, and the start that it is told, against the start that claim then gives
 * it under virtual time; pages of long lanes and of many; the command from outside. */
#include "tests/scene.h"

#include <jansson.h>

#include "core/client/client.h"
#include "queue/inspect/why.h"
#include "tests/program.h"

#define INFO                                                                                                 \
    "{\"host\":\"h\",\"pid\":42,\"executors\":1000,\"queues\":[\"default\",\"far\"],\"types\":[\"t\","       \
    "\"slow\"]}"
#define ACTIVE_W ACTIVE "w"

static struct weir *w;
static struct why why; /* the last one */

static int start_all(void **state)
{
    turns_start(state);
    w = weir_new(turns.server.url, NULL);
    assert_non_null(w);
    return 0;
}

static int stop_all(void **state)
{
    why_free(&why);
    weir_free(w);
    return turns_stop(state);
}

/* A worker that says what it runs. */
static void start_worker(void)
{
    start("w");
    free(redis_text("HSET", ACTIVE_W, "@", INFO));
}

static int try_ask(const char *id)
{
    why_free(&why);
    return why_read(w, turns.now_us, id, &why);
}

/* It changes nothing. */
static void ask_why(const char *id, enum job_state state)
{
    char *before = turns_digest(), *after;

    if (try_ask(id) != 0)
        fail_msg("%s: %s", id, w->error.text);
    after = turns_digest();
    assert_string_equal(before, after);
    free(before);
    free(after);
    if (why.job.state != state)
        fail_msg("%s: state %d, not %d", id, why.job.state, state);
    assert_int_equal(why.job.now_us, turns.now_us);
}

static void expect_place(int64_t before, int64_t length)
{
    assert_int_equal(why.job.before, before);
    assert_int_equal(why.job.length, length);
}

/* The gate that holds it. */
static const struct why_gate *holder(void)
{
    assert_in_range(why.holder, 0, why.gate_count - 1);
    return &why.gates[why.holder];
}

static void push_job(const char *queue, const char *type, const char *id, const char *more)
{
    char body[400];

    snprintf(body, sizeof body, "{\"id\":\"%s\",\"type\":\"%s\"%s}", id, type, more);
    push(queue, body);
}

static void use(const char *type, const char *cost, const char *limit)
{
    must(turns_use(type, "use", cost, &limit, limit ? 1 : 0));
}

/* ---- Where it is */

static void test_a_job_in_its_queue(void **state)
{
    (void)state;
    start_worker();
    must(turns_rate("slow", "1/10000000/1"));
    enqueue("default", "slow", "a b");
    enqueue("default", "t", "c d");
    push("default", " {\"args\": {\"id\": \"d\"}, \"type\": \"slow\", \"id\": \"odd\"}");
    push("default", "{\"type\":\"slow\"}");

    ask_why("b", JOB_WAITING);
    expect_place(1, 6);
    assert_string_equal(why.job.queue, "default");
    assert_string_equal(why.job.type, "slow");
    assert_int_equal(why.ahead, 1);
    assert_int_equal(why.gate_count, 1);
    assert_int_equal(why.holder, -1);
    assert_true(why.served);
    assert_int_equal(why.because, 0);
    assert_int_equal(why.start_us, BEGIN_US + 10 * SECOND_US);

    ask_why("odd", JOB_WAITING);
    expect_place(4, 6);
    assert_int_equal(why.ahead, 2);
    assert_int_equal(why.start_us, BEGIN_US + 20 * SECOND_US);

    ask_why("d", JOB_WAITING);
    expect_place(3, 6);
    assert_false(why.limited);
    assert_int_equal(why.start_us, GATE_NEVER);
}

static void test_a_job_in_its_lane(void **state)
{
    (void)state;
    start_worker();
    must(turns_rate("slow", "1/10000000/1"));
    enqueue("default", "slow", "a b c");
    assert_int_equal(claim("w", 9, 0), 1);
    enqueue("default", "slow", "d e");

    ask_why("b", JOB_PARKED);
    expect_place(0, 2);
    assert_string_equal(why.job.type, "slow");
    assert_string_equal(why.job.key, "");
    assert_string_equal(holder()->limit, "slow");
    assert_int_equal(holder()->opens_us, BEGIN_US + 10 * SECOND_US);
    assert_int_equal(why.start_us, BEGIN_US + 10 * SECOND_US);
    assert_int_equal(why.turns, 0);
    ask_why("c", JOB_PARKED);
    expect_place(1, 2);
    assert_int_equal(why.start_us, BEGIN_US + 20 * SECOND_US);
    ask_why("e", JOB_WAITING);
    expect_place(1, 2);
    assert_int_equal(why.ahead, 3);
    assert_int_equal(why.start_us, BEGIN_US + 40 * SECOND_US);
    assert_int_equal(why.because, 0);
}

static void test_a_job_that_runs(void **state)
{
    (void)state;
    start_worker();
    must(turns_rate("slow", "1/10000000/1"));
    enqueue("default", "slow", "a");
    enqueue("default", "t", "b");
    assert_int_equal(claim("w", 9, 0), 2);

    ask_why("a", JOB_RUNNING);
    assert_string_equal(why.job.queue, "default");
    assert_string_equal(why.job.type, "slow");
    assert_string_equal(why.job.worker, "w");
    assert_string_equal(why.job.host, "h");
    assert_int_equal(why.job.pid, 42);
    assert_int_equal(why.job.at_us, BEGIN_US);
    assert_int_equal(why.job.lease_us, BEGIN_US + LEASE_US);
    ask_why("b", JOB_RUNNING);
    assert_int_equal(why.job.at_us, 0);
}

static void test_a_job_of_later(void **state)
{
    (void)state;
    start_worker();
    must(turns_enqueue("default", "t", "s", 5 * SECOND_US));
    enqueue("default", "t", "r");
    assert_int_equal(claim("w", 9, 0), 1);
    keep_tokens();
    settle("w", SETTLE_RETRY, tokens[0], 7 * SECOND_US, "");

    ask_why("s", JOB_SCHEDULED);
    assert_string_equal(why.job.queue, "default");
    assert_string_equal(why.job.type, "t");
    assert_int_equal(why.job.at_us, BEGIN_US + 5 * SECOND_US);
    assert_int_equal(why.job.attempts, 0);
    ask_why("r", JOB_RETRY);
    assert_string_equal(why.job.type, "t");
    assert_int_equal(why.job.at_us, BEGIN_US + 7 * SECOND_US);
    assert_int_equal(why.job.attempts, 1);
}

static void test_a_dead_job(void **state)
{
    (void)state;
    start_worker();
    enqueue("default", "t", "a");
    assert_int_equal(claim("w", 9, 0), 1);
    keep_tokens();
    turns.now_us += SECOND_US;
    settle("w", SETTLE_DEAD, tokens[0], 0, "the address is wrong");

    ask_why("a", JOB_DEAD);
    assert_string_equal(why.job.type, "t");
    assert_string_equal(why.job.queue, "default");
    assert_string_equal(why.job.reason, "the address is wrong");
    assert_int_equal(why.job.at_us, BEGIN_US + SECOND_US);
}

/* Foreign, of a member that a worker refuses. */
static void test_a_job_that_cannot_be_read(void **state)
{
    (void)state;
    start_worker();
    must(turns_rate("slow", "1/10000000/1"));
    push_job("default", "slow", "a", ",\"key\":5");
    push_job("default", "t", "b", ",\"type\":\"t\"");
    push("default", "{\"id\":\"c\",\"type\":7}");
    ask_why("a", JOB_WAITING);
    assert_string_equal(why.job.wrong,
                        "wrong job: \"key\" must be a string of 1 to 128 of A-Z a-z 0-9 _ . -, not 5");
    assert_string_equal(why.job.type, "slow");
    assert_int_equal(why.start_us, GATE_NEVER);
    ask_why("b", JOB_WAITING);
    assert_non_null(strstr(why.job.wrong, "a member comes twice"));
    assert_int_equal(why.start_us, GATE_NEVER);
    ask_why("c", JOB_WAITING);
    assert_non_null(strstr(why.job.wrong, "\"type\" must be a string"));
    assert_string_equal(why.job.type, "");
    assert_int_equal(claim("w", 9, 0), 2); /* a and b: the worker that has them says they are dead */
    ask_why("c", JOB_DEAD);
}

/* What does not start before somebody resumes it. */
static void test_what_is_halted(void **state)
{
    (void)state;
    start_worker();
    must(turns_rate("slow", "1/10000000/1"));
    enqueue("default", "slow", "a");
    use_secret();
    push("default", "@0,0,0,s" SECRET ",bb;{\"id\":\"b\",\"type\":\"slow\"}");
    free(redis_text("HSET", PREFIX "halted", "q/default", "7"));
    ask_why("a", JOB_WAITING);
    assert_int_equal(why.job.queue_paused_us, 7);
    assert_int_equal(why.start_us, GATE_NEVER);
    free(redis_text("DEL", PREFIX "halted"));
    ask_why("a", JOB_WAITING);
    assert_int_equal(why.start_us, turns.now_us);

    free(redis_text("HSET", PREFIX "halted", "b/b", "paused 8"));
    ask_why("b", JOB_WAITING);
    assert_int_equal(why.job.batch_paused_us, 8);
    assert_int_equal(why.start_us, GATE_NEVER);
    claim("w", 5, 0);
    ask_why("b", JOB_ASIDE);
    expect_place(0, 1);
    assert_string_equal(why.job.type, "slow");
    assert_string_equal(why.job.batch, "b");

    free(redis_text("SET", PREFIX "finished:c", "done 9 w 2 default/t/\n{\"id\":\"c\",\"type\":\"t\"}"));
    ask_why("c", JOB_FINISHED);
    assert_int_equal(why.job.at_us, 9);
    assert_int_equal(why.job.attempts, 2);
    assert_string_equal(why.job.worker, "w");
    assert_string_equal(why.job.outcome, "done");
}

static void test_a_job_that_is_nowhere(void **state)
{
    (void)state;
    assert_int_equal(try_ask("none"), WEIR_ENOTFOUND);
    start_worker();
    enqueue("default", "t", "a ab");
    assert_int_equal(try_ask("b"), WEIR_ENOTFOUND);
    assert_int_equal(try_ask("default"), WEIR_ENOTFOUND);
    assert_int_equal(try_ask("not a name"), WEIR_EINPUT);
    assert_int_equal(try_ask(""), WEIR_EINPUT);
    assert_int_equal(claim("w", 9, 0), 2);
    keep_tokens();
    must(turns_settle_done("w", "t", tokens, 2, &(int64_t){0}));
    assert_int_equal(try_ask("a"), WEIR_ENOTFOUND);
    assert_non_null(strstr(w->error.text, "it is done, or was never enqueued"));
}

/* A lane of a type that no worker can run. */
static void test_a_held_job(void **state)
{
    (void)state;
    start_worker();
    must(turns_rate("other", "1/10000000/1"));
    enqueue("default", "other", "a b");
    assert_int_equal(claim("w", 9, 0), 0);

    ask_why("b", JOB_PARKED);
    expect_place(1, 2);
    assert_true(why.job.held);
    assert_false(why.served);
    assert_int_equal(why.start_us, GATE_NEVER);
}

/* ---- What holds it */

static void test_lanes_of_keys(void **state)
{
    const struct why_gate *g;

    (void)state;
    start_worker();
    must(turns_rate("t", "gcra:100/1000000/100 gcra:1/10000000/1,by=key"));
    for (int i = 0; i < 4; i++) {
        push_job("default", "t", (const char *[]){"a0", "a1", "a2", "a3"}[i], ",\"key\":\"ann\"");
        push_job("default", "t", (const char *[]){"b0", "b1", "b2", "b3"}[i], ",\"key\":\"bob\"");
    }
    ask_why("b1", JOB_WAITING);
    assert_string_equal(why.job.key, "bob");
    assert_int_not_equal(why.because, 0);
    assert_int_equal(claim("w", 9, 0), 2);
    expect_leases("a0 b0");

    ask_why("b2", JOB_PARKED);
    expect_place(1, 3);
    assert_string_equal(why.job.key, "bob");
    assert_int_equal(why.turns, -1);
    assert_int_equal(why.gate_count, 2);
    g = holder();
    assert_string_equal(g->rule.by, "key");
    assert_int_equal(g->index, 1);
    assert_int_equal(g->opens_us, BEGIN_US + 10 * SECOND_US);
    assert_int_equal(why.gates[0].opens_us, BEGIN_US);
    assert_int_not_equal(why.because, 0);
    assert_int_equal(why.start_us, BEGIN_US + 20 * SECOND_US);
}

/* A key that looks like one of Weir's own is told as it was given, and waits at a gate of its own. */
static void test_a_key_that_looks_like_ours(void **state)
{
    (void)state;
    start_worker();
    must(turns_rate("t", "gcra:1/10000000/1,by=key"));
    push_job("default", "t", "none0", "");
    push_job("default", "t", "none1", "");
    push_job("default", "t", "dash0", ",\"key\":\"-\"");
    push_job("default", "t", "dash1", ",\"key\":\"-\"");
    ask_why("dash1", JOB_WAITING);
    assert_string_equal(why.job.key, "-");
    assert_int_equal(claim("w", 9, 0), 2);
    expect_leases("none0 dash0");
    expect_counters("t", "keyless 2");
    ask_why("dash1", JOB_PARKED);
    assert_string_equal(why.job.key, "-");
    assert_int_equal(why.start_us, BEGIN_US + 10 * SECOND_US);
    assert_int_equal(redis_number("EXISTS", PREFIX "gate:t#0/-",
                                  PREFIX "gate:t#0/h.3bc15c8aae3e4124dd409035f32ea2fd6835efc9"),
                     2);
}

/* The gates are of no key then, or of another one than the job's own. */
static void test_a_key_that_no_limit_asks_for(void **state)
{
    (void)state;
    start_worker();
    must(turns_rate("slow", "1/10000000/1"));
    must(turns_rate("t", "gcra:1/10000000/1,by=args.customer"));
    push_job("default", "slow", "a", ",\"key\":\"ann\"");
    push_job("default", "slow", "b", ",\"key\":\"bob\"");
    push_job("default", "t", "c", ",\"key\":\"eve\"");
    push_job("default", "other", "d", ",\"key\":\"dan\"");
    ask_why("b", JOB_WAITING);
    assert_string_equal(why.job.key, "bob");
    ask_why("d", JOB_WAITING);
    assert_string_equal(why.job.key, "dan");
    ask_why("c", JOB_WAITING);
    assert_string_equal(why.job.key, "-");
    assert_int_equal(claim("w", 9, 0), 2);
    ask_why("b", JOB_PARKED);
    assert_string_equal(why.job.key, "bob");
}

/* Lanes whose gates are open, one behind the other at the gate of their type. */
static void test_turns_of_other_keys(void **state)
{
    (void)state;
    start_worker();
    must(turns_rate("t", "gcra:1/10000000/1 gcra:100/1000000/100,by=args.customer"));
    push_job("default", "t", "a", ",\"args\":{\"customer\":\"x\"}");
    push_job("default", "t", "b", ",\"args\":{\"customer\":\"y\"}");
    push_job("default", "t", "c", ",\"args\":{\"customer\":\"not a name\"}");
    assert_int_equal(claim("w", 9, 0), 1);
    ask_why("c", JOB_PARKED);
    assert_int_equal(why.turns, 1);
    assert_string_equal(why.job.key, "not a name");
    assert_string_equal(holder()->rule.by, "");
    assert_int_equal(why.start_us, BEGIN_US + 20 * SECOND_US); /* b has its turn before it */
    assert_int_not_equal(why.because, 0);
}

static void test_a_full_concurrency_gate(void **state)
{
    (void)state;
    start_worker();
    must(turns_rate("t", "concurrency:2 gcra:10/1000000/10"));
    enqueue("default", "t", "a b c d e");
    ask_why("b", JOB_WAITING);
    assert_int_equal(why.start_us, BEGIN_US);
    ask_why("c", JOB_WAITING); /* only two at once */
    assert_int_equal(why.start_us, GATE_NEVER);
    assert_int_equal(claim("w", 9, 0), 2);
    keep_tokens();
    ask_why("c", JOB_PARKED);
    assert_int_equal(holder()->rule.algorithm, ALGORITHM_CONCURRENCY);
    assert_int_equal(holder()->opens_us, GATE_NEVER);
    assert_false(holder()->unfit);
    assert_int_equal(why.start_us, GATE_NEVER);
    must(turns_settle_done("w", "t", tokens, 1, &(int64_t){0}));
    ask_why("c", JOB_PARKED);
    assert_int_equal(why.holder, -1);
    assert_int_equal(why.start_us, BEGIN_US);
    assert_int_not_equal(why.because, 0);
}

static void test_a_paused_limit(void **state)
{
    (void)state;
    start_worker();
    must(turns_rate("t", "10/1000000/10"));
    must(turns_pause("t", 60 * SECOND_US));
    enqueue("default", "t", "a");
    assert_int_equal(claim("w", 9, 0), 0);
    ask_why("a", JOB_PARKED);
    assert_int_equal(holder()->kind, WHY_PAUSE);
    assert_int_equal(holder()->opens_us, BEGIN_US + 60 * SECOND_US);
    assert_int_equal(why.start_us, BEGIN_US + 60 * SECOND_US);
    must(turns_pause("t", 0));
    ask_why("a", JOB_PARKED);
    assert_int_equal(why.holder, -1);
}

static void test_a_provider_that_says_stop(void **state)
{
    (void)state;
    start_worker();
    must(turns_rate("t", "10/1000000/10"));
    enqueue("default", "t", "a");
    assert_int_equal(claim("w", 9, 0), 1);
    keep_tokens();
    settle("w", SETTLE_THROTTLED, tokens[0], 30 * SECOND_US, "");
    ask_why("a", JOB_PARKED);
    assert_int_equal(holder()->kind, WHY_GATE);
    assert_int_equal(holder()->pause_until_us, BEGIN_US + 30 * SECOND_US);
    assert_int_equal(why.start_us, BEGIN_US + 30 * SECOND_US);
    assert_int_equal(why.job.attempts, 0);
}

static void test_a_shared_limit(void **state)
{
    (void)state;
    start_worker();
    must(turns_rate("account", "1/10000000/1"));
    use("t", "", "account");
    use("slow", "", "account");
    enqueue("default", "t", "a b");
    ask_why("b", JOB_WAITING);
    assert_int_equal(why.because, 0);
    enqueue("default", "slow", "c");
    ask_why("b", JOB_WAITING);
    assert_int_not_equal(why.because, 0);
    assert_string_equal(why.gates[0].limit, "account");
    assert_int_equal(why.start_us, BEGIN_US + 10 * SECOND_US);
}

static void test_jobs_elsewhere_may_be_first(void **state)
{
    (void)state;
    start_worker();
    must(turns_rate("t", "1/10000000/1"));
    enqueue("default", "t", "a");
    ask_why("a", JOB_WAITING);
    assert_int_equal(why.because, 0);
    enqueue("far", "t", "b");
    ask_why("a", JOB_WAITING);
    assert_int_not_equal(why.because, 0);
}

static void test_nobody_to_run_it(void **state)
{
    (void)state;
    must(turns_rate("t", "1/10000000/1"));
    enqueue("default", "t", "a");
    ask_why("a", JOB_WAITING);
    assert_false(why.served);
    assert_int_not_equal(why.because, 0);
    start_worker();
    ask_why("a", JOB_WAITING);
    assert_true(why.served);
    turns.now_us += LEASE_US;
    ask_why("a", JOB_WAITING);
    assert_true(why.served);
    turns.now_us += 1;
    ask_why("a", JOB_WAITING);
    assert_false(why.served);
}

/* What is before it may cost more or less than itself. */
static void test_jobs_of_different_costs(void **state)
{
    (void)state;
    start_worker();
    must(turns_rate("t", "1/1000000/10"));
    push_job("default", "t", "a", ",\"cost\":10");
    push_job("default", "t", "b", ",\"cost\":4");
    push_job("default", "t", "c", "");
    push_job("default", "t", "d", ",\"cost\":11");
    ask_why("c", JOB_WAITING);
    assert_int_equal(why.cost, 1);
    assert_int_not_equal(why.because, 0);
    assert_int_equal(why.start_us, BEGIN_US + 5 * SECOND_US);
    ask_why("d", JOB_WAITING);
    assert_int_equal(why.cost, 11);
    assert_int_equal(claim("w", 9, 0), 1);
    ask_why("b", JOB_PARKED);
    assert_int_equal(holder()->opens_us, BEGIN_US + 4 * SECOND_US);
    assert_int_equal(why.start_us, BEGIN_US + 4 * SECOND_US);
}

static void test_a_job_that_never_fits(void **state)
{
    (void)state;
    start_worker();
    must(turns_rate("t", "1/1000000/10"));
    push_job("default", "t", "a", ",\"cost\":11");
    ask_why("a", JOB_WAITING);
    assert_true(holder()->unfit);
    assert_int_equal(why.start_us, GATE_NEVER);
    assert_int_equal(claim("w", 9, 0), 0);
    ask_why("a", JOB_DEAD);
}

static void test_a_limit_that_cannot_be_read(void **state)
{
    (void)state;
    start_worker();
    free(redis_text("HSET", PREFIX "limits", "t", "nonsense"));
    enqueue("default", "t", "a");
    ask_why("a", JOB_WAITING);
    assert_int_equal(holder()->kind, WHY_UNREADABLE);
    assert_int_equal(why.start_us, GATE_NEVER);
}

/* ---- When it starts */

/* Serves the lanes until job id starts, each claim at the time that the last one named; its slot. */
static int64_t start_of(const char *id)
{
    for (int turn = 0; turn < 1000; turn++) {
        must(try_claim("w", 100, 0));
        for (size_t i = 0; i < turns.claim.lease_count; i++) {
            const struct lease *lease = &turns.claim.leases[i];
            struct job_view view;

            assert_int_equal(job_read(lease->body.at, lease->body.len, &view, &turns.error), 0);
            if (view.id.len == strlen(id) && memcmp(view.id.at, id, view.id.len) == 0)
                return lease->slot_us;
        }
        if (!turns.claim.more) {
            assert_true(turns.claim.next_us > 0);
            pass("w", turns.claim.next_us > turns.now_us ? turns.claim.next_us - turns.now_us : 0);
        }
    }
    fail_msg("%s did not start", id);
    return 0;
}

/* Of the 200 jobs of a type the 200th starts when it was told, from its queue and from its lane. */
static void expect_foretold(const char *rules, const char *cost)
{
    for (int parked = 0; parked < 2; parked++) {
        int64_t told_us, began_us, real_us;

        scene_begin(NULL);
        turns.now_us += 123456;
        start_worker();
        must(turns_rate("t", rules));
        if (*cost)
            use("t", cost, NULL);
        enqueue_many("t", 200);
        if (parked)
            must(try_claim("w", 100, 0));
        ask_why("t199", parked ? JOB_PARKED : JOB_WAITING);
        assert_int_equal(why.because, 0);
        began_us = turns.now_us;
        told_us = why.start_us;
        real_us = start_of("t199");
        if (llabs(real_us - told_us) > (real_us - began_us) / 100)
            fail_msg("%s: told %lld us, started %lld us", rules, (long long)(told_us - began_us),
                     (long long)(real_us - began_us));
    }
}

static void test_starts_come_as_they_were_told(void **state)
{
    (void)state;
    expect_foretold("gcra:100/60000000/20", "");
    expect_foretold("gcra:10/1000000/4", "3");
    expect_foretold("token-bucket:10/1000000/5", "3");
    expect_foretold("fixed-window:20/7000000/0", "");
    expect_foretold("sliding-log:15/10000000", "2");
    expect_foretold("sliding-window:30/10000000", "");
    expect_foretold("gcra:10/1000000/2 fixed-window:100/60000000/0", "");
}

/* 40 keys share a gate, which lets one job start a second: a job is told to wait for those of the keys before
 * its own, whether its lane is in the ring, asleep at its key's gate, or not made yet. */
static void test_keys_that_share_a_gate_are_waited_for(void **state)
{
    static const struct {
        const char *id;
        enum job_state state;
    } cases[] = {{"a39", JOB_PARKED}, {"a0", JOB_PARKED}, {"z", JOB_WAITING}};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t told_us, began_us, real_us;

        scene_begin(NULL);
        start_worker();
        must(turns_rate("t", "gcra:1/1000000/1 gcra:1/5000000/1,by=key"));
        for (int round = 0; round < 2; round++)
            for (int k = 0; k < 40; k++) {
                char id[16], key[32];

                snprintf(id, sizeof id, "%c%d", round ? 'a' : 'f', k);
                snprintf(key, sizeof key, ",\"key\":\"k%d\"", k);
                push_job("default", "t", id, key);
            }
        must(try_claim("w", 100, 0)); /* f0 starts, and the lane of k0 sleeps */
        must(try_claim("w", 100, 0));
        turns.now_us += 1000;
        push_job("default", "t", "z", ",\"key\":\"new\"");
        ask_why(cases[i].id, cases[i].state);
        began_us = turns.now_us;
        told_us = why.start_us;
        real_us = start_of(cases[i].id);
        if (told_us > real_us || told_us - began_us < 39 * SECOND_US)
            fail_msg("%s: told %lld us, started %lld us", cases[i].id, (long long)(told_us - began_us),
                     (long long)(real_us - began_us));
        assert_int_not_equal(why.because, 0);
    }
}

/* Other keys and other types come between: never sooner than it was told. */
static void test_no_start_is_sooner_than_it_was_told(void **state)
{
    int64_t told_us, real_us;

    (void)state;
    start_worker();
    must(turns_rate("t", "gcra:5/1000000/2 gcra:1/3000000/2,by=key concurrency:90"));
    must(turns_rate("account", "gcra:4/1000000/2"));
    use("t", "", "account");
    use("slow", "2", "account");
    for (int i = 0; i < 60; i++) {
        char id[16], key[32];

        snprintf(id, sizeof id, "j%d", i);
        snprintf(key, sizeof key, ",\"key\":\"k%d\"", i % 7);
        push_job("default", i % 3 ? "t" : "slow", id, key);
    }
    ask_why("j58", JOB_WAITING);
    assert_int_not_equal(why.because, 0);
    must(try_claim("w", 50, 0));
    ask_why("j58", JOB_PARKED);
    assert_int_not_equal(why.because, 0);
    assert_int_equal(why.gate_count, 4);
    told_us = why.start_us;
    real_us = start_of("j58");
    assert_true(told_us <= real_us);
    assert_true(told_us > BEGIN_US);
}

/* ---- Pages */

static void test_long_lanes_and_queues_are_paged(void **state)
{
    char big[20000], body[21000];

    (void)state;
    start_worker();
    must(turns_rate("t", "1/10000000/1"));
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    enqueue_many("t", 3000);
    for (int i = 0; i < 300; i++) {
        snprintf(body, sizeof body, "{\"id\":\"big%d\",\"type\":\"t\",\"args\":\"%s\"}", i, big);
        push("default", body);
    }
    ask_why("t0", JOB_WAITING);
    expect_place(0, 3300);
    ask_why("t2999", JOB_WAITING);
    expect_place(2999, 3300);
    ask_why("big150", JOB_WAITING);
    assert_int_equal(why.ahead, 3150);
    for (int i = 0; i < 8; i++)
        must(try_claim("w", 1000, 0));
    ask_why("t1", JOB_PARKED);
    assert_int_equal(why.job.before, 0);
    ask_why("t2999", JOB_PARKED);
    assert_int_equal(why.job.before, 2998);
    assert_int_equal(why.start_us, BEGIN_US + 2999 * 10 * SECOND_US);
}

static void test_many_lanes_are_paged(void **state)
{
    (void)state;
    start_worker();
    must(turns_rate("t", "gcra:1/10000000/1 gcra:100/1000000/100,by=key"));
    must(turns_rate("slow", "gcra:1000/1000000/1000 gcra:1/100000000/1,by=key"));
    for (int i = 0; i < 3000; i++) {
        char id[16], key[32];

        snprintf(id, sizeof id, "j%d", i);
        snprintf(key, sizeof key, ",\"key\":\"k%d\"", i < 1000 ? 0 : i / 2);
        push_job("default", i < 2000 ? "t" : "slow", id, key);
    }
    for (int i = 0; i < 30; i++)
        must(try_claim("w", 1000, 0));
    ask_why("j500", JOB_PARKED); /* the lane of k0 */
    assert_int_equal(why.job.length, 999);
    assert_int_equal(why.job.before, 499);
    ask_why("j1999", JOB_PARKED); /* in the ring */
    assert_string_equal(why.job.key, "k999");
    assert_in_range(why.turns, 1, 500);
    ask_why("j2999", JOB_PARKED); /* asleep */
    assert_string_equal(why.job.key, "k1499");
    assert_int_equal(why.turns, -1);
    assert_string_equal(holder()->rule.by, "key");
}

static void test_many_queues_take_few_calls(void **state)
{
    int64_t before;

    (void)state;
    fill_queues(1000);
    before = count_calls();
    assert_int_equal(try_ask("none"), WEIR_ENOTFOUND);
    assert_in_range(count_calls() - before, 1, 150);
    ask_why("w999", JOB_WAITING);
    ask_why("r500", JOB_PARKED);
    assert_string_equal(why.job.queue, "q500");
    assert_string_equal(why.job.key, "a");
    ask_why("s0", JOB_PARKED);
    assert_string_equal(why.job.key, "b");
    ask_why("h999", JOB_PARKED);
    assert_true(why.job.held);
}

static void test_wrong_calls_are_refused(void **state)
{
    static const char *const wrong[][6] = {
        {"find_job", "not a name", "10", "", ""},     {"find_job", "a", "0", "", ""},
        {"find_job", "a", "1001", "later", ""},       {"find_job", "a", "10", "limits", ""},
        {"find_job", "a", "10", "later", "", "dead"}, {"ahead", "lane:default/t/", "0", "1000", "t"},
        {"ahead", "lane:default/t/", "x", "1", "t"},  {"ahead", "limits", "0", "1", "t"},
    };
    const char *nothing[] = {"limits", "t", "{}"};

    (void)state;
    for (size_t i = 0; i < COUNT(wrong); i++)
        if (turns_script(wrong[i][0], wrong[i] + 1, wrong[i][5] ? 5 : 4) != WEIR_EINPUT &&
            strstr(turns.error.text, "wants") == NULL)
            fail_msg("%s %s was not refused: %s", wrong[i][0], wrong[i][1], turns.error.text);
    assert_true(turns_script("why", nothing, 3) < 0);
    assert_non_null(strstr(turns.error.text, "wants"));
}

/* ---- The command */

static struct outcome o;

static json_t *json_of(const char *id)
{
    json_t *doc;

    run_in(&o, NULL, built("weir"), "why", id, "--json", "--redis", turns.server.url, NULL);
    assert_int_equal(o.code, 0);
    doc = json_loads(o.out, 0, NULL);
    assert_non_null(doc);
    return doc;
}

static void expect_member(json_t *doc, const char *name, const char *text)
{
    assert_string_equal(json_string_value(json_object_get(doc, name)), text);
}

static void test_the_command_says_it_in_words(void **state)
{
    static const char *const lines[] = {
        "place      2 of 2 in its lane",
        "paused until ",
        "open",
        "  <- holds it",
        "no worker  takes t from queue default now",
        ", at the earliest",
    };

    (void)state;
    turns.now_us = -1;
    start("w");
    must(turns_rate("t", "gcra:10/1000000/10 gcra:1/60000000/1,by=key"));
    must(turns_pause("t", 60 * SECOND_US));
    push_job("default", "t", "a", ",\"key\":\"x\"");
    push_job("default", "t", "b", ",\"key\":\"x\"");
    must(try_claim("w", 9, 0));
    run_in(&o, NULL, built("weir"), "why", "b", "--redis", turns.server.url, NULL);
    assert_int_equal(o.code, 0);
    for (size_t i = 0; i < COUNT(lines); i++)
        if (!strstr(o.out, lines[i]))
            fail_msg("'%s' is not in:\n%s", lines[i], o.out);
    run_in(&o, NULL, built("weir"), "why", "c", "--redis", turns.server.url, NULL);
    assert_int_equal(o.code, 66);
    assert_string_equal(o.out, "");
    run_in(&o, NULL, built("weir"), "why", "--redis", turns.server.url, NULL);
    assert_int_equal(o.code, 64);
}

static void test_the_command_says_that_it_cannot_be_read(void **state)
{
    json_t *doc;

    (void)state;
    turns.now_us = -1;
    start("w");
    push("default", "{\"type\":\"g\",\"id\":\"f10\",\"key\":5}");
    push("default", "{\"type\":5,\"id\":\"f11\"}");
    run_in(&o, NULL, built("weir"), "why", "f10", "--redis", turns.server.url, NULL);
    assert_int_equal(o.code, 0);
    if (!strstr(o.out, "unreadable wrong job: \"key\" must be a string of") ||
        !strstr(o.out, "starts     never: it ends among the dead when a worker comes to it\n"))
        fail_msg("%s", o.out);
    run_in(&o, NULL, built("weir"), "why", "f11", "--redis", turns.server.url, NULL);
    assert_non_null(strstr(o.out, "unreadable wrong job: \"type\" must be a string of"));
    assert_null(strstr(o.out, "no worker"));
    doc = json_of("f10");
    assert_non_null(strstr(json_string_value(json_object_get(doc, "unreadable")), "\"key\" must be"));
    assert_true(json_is_null(json_object_get(doc, "start")));
    json_decref(doc);
}

static void test_attempts_of_a_finished_job(void **state)
{
    (void)state;
    free(redis_text("SET", "weir:{0}:finished:x",
                    "done 1795000000000000 w 1 default/t/\n{\"id\":\"x\",\"type\":\"t\"}"));
    run_in(&o, NULL, built("weir"), "why", "x", "--redis", turns.server.url, NULL);
    assert_int_equal(o.code, 0);
    if (!strstr(o.out, "finished\nattempts   1 used\n"))
        fail_msg("%s", o.out);
}

static void test_the_command_says_it_in_json(void **state)
{
    json_t *doc, *gate;

    (void)state;
    turns.now_us = -1;
    start_worker();
    must(turns_rate("slow", "1/60000000/1"));
    enqueue("default", "slow", "a b");
    must(turns_enqueue("default", "t", "s", 60 * SECOND_US));
    enqueue("default", "t", "d");
    must(try_claim("w", 9, 0));
    keep_tokens();
    settle("w", SETTLE_DEAD, tokens[1], 0, "caf\xe9");

    doc = json_of("b");
    expect_member(doc, "state", "parked");
    gate = json_array_get(json_object_get(doc, "gates"), 0);
    expect_member(gate, "gate", "slow#0");
    expect_member(gate, "rule", "1/1m");
    assert_true(json_is_true(json_object_get(gate, "holds_it")));
    assert_true(json_is_false(json_object_get(doc, "at_the_earliest")));
    assert_true(json_number_value(json_object_get(doc, "start")) ==
                json_number_value(json_object_get(gate, "opens_at")));
    json_decref(doc);
    doc = json_of("a");
    expect_member(doc, "state", "running");
    expect_member(json_object_get(doc, "worker"), "host", "h");
    assert_true(json_is_number(json_object_get(doc, "since")));
    json_decref(doc);
    doc = json_of("s");
    expect_member(doc, "state", "scheduled");
    assert_true(json_is_number(json_object_get(doc, "start")));
    json_decref(doc);
    doc = json_of("d");
    expect_member(doc, "state", "dead");
    expect_member(doc, "reason", "caf\\xe9");
    json_decref(doc);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(test_##name, scene_begin)
    const struct CMUnitTest tests[] = {
        TEST(a_job_in_its_queue),
        TEST(a_job_in_its_lane),
        TEST(a_job_that_runs),
        TEST(a_job_of_later),
        TEST(a_dead_job),
        TEST(a_job_that_cannot_be_read),
        TEST(what_is_halted),
        TEST(a_job_that_is_nowhere),
        TEST(a_held_job),
        TEST(lanes_of_keys),
        TEST(a_key_that_looks_like_ours),
        TEST(a_key_that_no_limit_asks_for),
        TEST(turns_of_other_keys),
        TEST(a_full_concurrency_gate),
        TEST(a_paused_limit),
        TEST(a_provider_that_says_stop),
        TEST(a_shared_limit),
        TEST(jobs_elsewhere_may_be_first),
        TEST(nobody_to_run_it),
        TEST(jobs_of_different_costs),
        TEST(a_job_that_never_fits),
        TEST(a_limit_that_cannot_be_read),
        TEST(starts_come_as_they_were_told),
        TEST(keys_that_share_a_gate_are_waited_for),
        TEST(no_start_is_sooner_than_it_was_told),
        TEST(long_lanes_and_queues_are_paged),
        TEST(many_lanes_are_paged),
        TEST(many_queues_take_few_calls),
        TEST(wrong_calls_are_refused),
        TEST(the_command_says_it_in_words),
        TEST(the_command_says_that_it_cannot_be_read),
        TEST(attempts_of_a_finished_job),
        TEST(the_command_says_it_in_json),
    };

    return cmocka_run_group_tests_name("why", tests, start_all, stop_all);
}

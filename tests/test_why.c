/* why: where a job is, what holds it, and the start that it is told, against the start that claim then gives
 * it under virtual time; pages of long lanes and of many. */
#include "tests/scene_client.h"

#include "core/client/client.h"
#include "queue/inspect/find_job.h"
#include "queue/inspect/why.h"

#define INFO                                                                                                 \
    "{\"host\":\"h\",\"pid\":42,\"executors\":1000,\"queues\":[\"default\",\"far\"],\"types\":[\"t\","       \
    "\"slow\"]}"
#define ACTIVE_W ACTIVE "w"

static json_t *why; /* the last one */

static int stop_all(void **state)
{
    json_decref(why);
    return scene_stop_client(state);
}

/* A worker that says what it runs. */
static void start_worker(void)
{
    start("w");
    redis_do("HSET", ACTIVE_W, "@", INFO);
}

static int try_ask(const char *id)
{
    json_decref(why);
    return why_read(w, turns.now_us, id, &why);
}

/* "+5": 5 seconds after the beginning; GATE_NEVER for "none". */
static int64_t time_of(const char *text)
{
    if (strcmp(text, "none") == 0)
        return GATE_NEVER;
    return *text == '+' ? BEGIN_US + atoll(text) * SECOND_US : atoll(text);
}

static const json_t *gate_at(size_t i)
{
    return json_array_get(json_object_get(why, "gates"), i);
}

/* The gate that holds it, "slow#0@+10" with the time when it opens; "none": all are open. */
static bool is_holder(const char *expected)
{
    char gate[100] = "", opens[40] = "";
    bool held = false;

    sscanf(expected, "%99[^@]@%39s", gate, opens);
    for (size_t i = 0; gate_at(i); i++) {
        if (!json_is_true(json_object_get(gate_at(i), "holds_it")))
            continue;
        held = true;
        if (strcmp(answer_text(gate_at(i), "gate"), gate) != 0 ||
            answer_int_or(gate_at(i), "opens_at", GATE_NEVER) != time_of(opens))
            return false;
    }
    return held == (strcmp(expected, "none") != 0);
}

static bool is_value(const json_t *of, const char *name, const char *expected)
{
    const json_t *value = json_object_get(of, name);

    if (strcmp(expected, "none") == 0)
        return !value || json_is_null(value);
    if (json_is_boolean(value))
        return json_is_true(value) == (strcmp(expected, "true") == 0);
    if (*expected == '+')
        return answer_int_or(of, name, -1) == time_of(expected);
    if (json_is_integer(value))
        return json_integer_value(value) == atoll(expected);
    return strcmp(answer_text(of, name), expected) == 0;
}

/* "place=1": a member, "worker.name=w" one of another; gates=2: how many; holder=...; exact: the start is. */
static bool is_so(char *word)
{
    char *expected = word, *name = strsep(&expected, "="), *inner = strchr(name, '.');

    if (strstr(name, "exact"))
        return json_is_true(json_object_get(why, "at_the_earliest")) == (strcmp(name, "inexact") == 0);
    if (strcmp(name, "holder") == 0)
        return is_holder(expected);
    if (strcmp(name, "gates") == 0)
        return json_array_size(json_object_get(why, name)) == (size_t)atoll(expected);
    if (!inner)
        return is_value(why, name, expected);
    *inner = '\0';
    return is_value(json_object_get(why, name), inner + 1, expected);
}

/* Each word of expected is so. */
static void expect(const char *expected)
{
    char *words = strdup(expected), *rest = words, *word;

    while ((word = strsep(&rest, " ")))
        if (*word && !is_so(word))
            fail_msg("not '%s' of '%s': %s", word, expected, json_dumps(why, JSON_INDENT(1)));
    free(words);
}

/* It changes nothing. */
static void ask_why(const char *id, const char *state, const char *expected)
{
    char *before = turns_digest();

    if (try_ask(id) != 0)
        fail_msg("%s: %s", id, w->error.text);
    turns_unchanged(before);
    assert_string_equal(answer_text(why, "state"), state);
    assert_int_equal(answer_int(why, "now"), turns.now_us);
    expect(expected);
}

static void push_job(const char *queue, const char *type, const char *id, const char *more)
{
    push(queue, textf("{\"id\":\"%s\",\"type\":\"%s\"%s}", id, type, more));
}

static void use_at(const char *type, const char *cost, const char *limit)
{
    must(turns_use(type, "use", cost, &limit, limit ? 1 : 0));
}

/* ---- Where it is */

SCENE_TEST(test_a_job_in_its_queue)
{
    start_worker();
    must(turns_rate("slow", "1/10000000/1"));
    enqueue("default", "slow", "a b");
    enqueue("default", "t", "c d");
    push("default", " {\"args\": {\"id\": \"d\"}, \"type\": \"slow\", \"id\": \"odd\"}");
    push("default", "{\"type\":\"slow\"}");

    ask_why("b", "waiting",
            "place=2 of=6 queue=default type=slow ahead=1 gates=1 holder=none served=true exact start=+10");
    ask_why("odd", "waiting", "place=5 of=6 ahead=2 start=+20");

    ask_why("d", "waiting", "place=4 of=6 gates=0 start=none");
}

SCENE_TEST(test_a_job_in_its_lane)
{
    start_worker();
    must(turns_rate("slow", "1/10000000/1"));
    enqueue("default", "slow", "a b c");
    assert_int_equal(claim("w", 9, 0), 1);
    enqueue("default", "slow", "d e");

    ask_why("b", "parked", "place=1 of=2 type=slow key=none holder=slow#0@+10 start=+10 turns_before=0");
    ask_why("c", "parked", "place=2 of=2 start=+20");
    ask_why("e", "waiting", "place=2 of=2 ahead=3 start=+40 exact");
}

SCENE_TEST(test_a_job_that_runs)
{
    start_worker();
    must(turns_rate("slow", "1/10000000/1"));
    enqueue("default", "slow", "a");
    enqueue("default", "t", "b");
    assert_int_equal(claim("w", 9, 0), 2);

    ask_why("a", "running", "queue=default type=slow worker.name=w worker.host=h worker.pid=42 since=+0");
    assert_int_equal(answer_int(why, "lease_until"), BEGIN_US + LEASE_US);
    ask_why("b", "running", "since=none");
}

SCENE_TEST(test_a_job_of_later)
{
    start_worker();
    must(turns_enqueue("default", "t", "s", 5 * SECOND_US));
    enqueue("default", "t", "r");
    assert_int_equal(claim("w", 9, 0), 1);
    settle("w", SETTLE_RETRY, tokens[0], 7 * SECOND_US, "");

    ask_why("s", "scheduled", "queue=default type=t start=+5 attempts=0");
    ask_why("r", "retry", "type=t start=+7 attempts=1");
}

SCENE_TEST(test_a_dead_job)
{
    start_worker();
    enqueue("default", "t", "a");
    assert_int_equal(claim("w", 9, 0), 1);
    turns.now_us += SECOND_US;
    settle("w", SETTLE_DEAD, tokens[0], 0, "wrong-address");

    ask_why("a", "dead", "type=t queue=default reason=wrong-address since=+1");
}

/* Foreign, of a member that a worker refuses. */
SCENE_TEST(test_a_job_that_cannot_be_read)
{
    start_worker();
    must(turns_rate("slow", "1/10000000/1"));
    push_job("default", "slow", "a", ",\"key\":5");
    push_job("default", "t", "b", ",\"type\":\"t\"");
    push("default", "{\"id\":\"c\",\"type\":7}");
    ask_why("a", "waiting", "");
    assert_string_equal(answer_text(why, "unreadable"),
                        "wrong job: \"key\" must be a string of 1 to 128 of A-Z a-z 0-9 _ . -, not 5");
    expect("type=slow start=none");
    ask_why("b", "waiting", "");
    assert_non_null(strstr(answer_text(why, "unreadable"), "a member comes twice"));
    expect("start=none");
    ask_why("c", "waiting", "");
    assert_non_null(strstr(answer_text(why, "unreadable"), "\"type\" must be a string"));
    expect("type=none");
    assert_int_equal(claim("w", 9, 0), 2); /* a and b: the worker that has them says they are dead */
    ask_why("c", "dead", "");
}

/* What does not start before somebody resumes it. */
SCENE_TEST(test_what_is_halted)
{
    start_worker();
    must(turns_rate("slow", "1/10000000/1"));
    enqueue("default", "slow", "a");
    use_secret();
    push("default", "@0,0,0,s" SECRET ",bb;{\"id\":\"b\",\"type\":\"slow\"}");
    redis_do("HSET", PREFIX "halted", "q/default", "7");
    ask_why("a", "waiting", "queue_paused_since=7 start=none");
    redis_do("DEL", PREFIX "halted");
    ask_why("a", "waiting", "");
    assert_int_equal(answer_int(why, "start"), turns.now_us);

    redis_do("HSET", PREFIX "halted", "b/b", "paused 8");
    ask_why("b", "waiting", "batch_paused_since=8 start=none");
    claim("w", 5, 0);
    ask_why("b", "aside", "place=1 of=1 type=slow batch=b");

    redis_do("SET", PREFIX "finished:c", "done 9 w 2 default/t/\n{\"id\":\"c\",\"type\":\"t\"}");
    ask_why("c", "finished", "since=9 attempts=2 worker.name=w outcome=done");
}

SCENE_TEST(test_a_job_that_is_nowhere)
{
    assert_int_equal(try_ask("none"), WEIR_ENOTFOUND);
    assert_non_null(strstr(w->error.text, "it is done, or was never enqueued"));
    start_worker();
    enqueue("default", "t", "a ab");
    assert_int_equal(try_ask("b"), WEIR_ENOTFOUND);
    assert_int_equal(try_ask("default"), WEIR_ENOTFOUND);
    assert_int_equal(try_ask("not a name"), WEIR_EINPUT);
    assert_int_equal(try_ask(""), WEIR_EINPUT);
    assert_int_equal(claim("w", 9, 0), 2);
    must(turns_settle_done("w", "t", tokens, 2, &(int64_t){0}));
    assert_int_equal(try_ask("a"), WEIR_ENOTFOUND);
    assert_non_null(strstr(w->error.text, "no such job here any more: it was enqueued a day ago at most"));
}

/* A lane of a type that no worker can run. */
SCENE_TEST(test_a_held_job)
{
    start_worker();
    must(turns_rate("other", "1/10000000/1"));
    enqueue("default", "other", "a b");
    assert_int_equal(claim("w", 9, 0), 0);

    ask_why("b", "held", "place=2 of=2 served=false start=none");
}

/* ---- What holds it */

SCENE_TEST(test_lanes_of_keys)
{
    start_worker();
    must(turns_rate("t", "gcra:100/1000000/100 gcra:1/10000000/1,by=key"));
    for (int i = 0; i < 4; i++) {
        push_job("default", "t", (const char *[]){"a0", "a1", "a2", "a3"}[i], ",\"key\":\"ann\"");
        push_job("default", "t", (const char *[]){"b0", "b1", "b2", "b3"}[i], ",\"key\":\"bob\"");
    }
    ask_why("b1", "waiting", "key=bob inexact");
    assert_int_equal(claim("w", 9, 0), 2);
    expect_leases("a0 b0");

    ask_why("b2", "parked", "place=2 of=3 key=bob turns_before=none gates=2 holder=t#1/bob@+10");
    assert_true(json_is_true(json_object_get(gate_at(0), "open")));
    expect("inexact start=+20");
}

/* A key that looks like one of Weir's own is told as it was given, and waits at a gate of its own. */
SCENE_TEST(test_a_key_that_looks_like_ours)
{
    start_worker();
    must(turns_rate("t", "gcra:1/10000000/1,by=key"));
    push_job("default", "t", "none0", "");
    push_job("default", "t", "none1", "");
    push_job("default", "t", "dash0", ",\"key\":\"-\"");
    push_job("default", "t", "dash1", ",\"key\":\"-\"");
    ask_why("dash1", "waiting", "key=-");
    assert_int_equal(claim("w", 9, 0), 2);
    expect_leases("none0 dash0");
    expect_counters("t", "keyless 2");
    ask_why("dash1", "parked", "key=- start=+10");
    assert_int_equal(redis_number("EXISTS", PREFIX "gate:t#0/-",
                                  PREFIX "gate:t#0/h.3bc15c8aae3e4124dd409035f32ea2fd6835efc9"),
                     2);
}

/* The gates are of no key then, or of another one than the job's own. */
SCENE_TEST(test_a_key_that_no_limit_asks_for)
{
    start_worker();
    must(turns_rate("slow", "1/10000000/1"));
    must(turns_rate("t", "gcra:1/10000000/1,by=args.customer"));
    push_job("default", "slow", "a", ",\"key\":\"ann\"");
    push_job("default", "slow", "b", ",\"key\":\"bob\"");
    push_job("default", "t", "c", ",\"key\":\"eve\"");
    push_job("default", "other", "d", ",\"key\":\"dan\"");
    ask_why("b", "waiting", "key=bob");
    ask_why("d", "waiting", "key=dan");
    ask_why("c", "waiting", "key=-");
    assert_int_equal(claim("w", 9, 0), 2);
    ask_why("b", "parked", "key=bob");
}

/* Lanes whose gates are open, one behind the other at the gate of their type. */
SCENE_TEST(test_turns_of_other_keys)
{
    start_worker();
    must(turns_rate("t", "gcra:1/10000000/1 gcra:100/1000000/100,by=args.customer"));
    push_job("default", "t", "a", ",\"args\":{\"customer\":\"x\"}");
    push_job("default", "t", "b", ",\"args\":{\"customer\":\"y\"}");
    push_job("default", "t", "c", ",\"args\":{\"customer\":\"not a name\"}");
    assert_int_equal(claim("w", 9, 0), 1);
    ask_why("c", "parked", "turns_before=1");
    assert_string_equal(answer_text(why, "key"), "not a name");
    expect("holder=t#0@+10");
    /* b has its turn before it */
    expect("start=+20 inexact");
}

SCENE_TEST(test_a_full_concurrency_gate)
{
    start_worker();
    must(turns_rate("t", "concurrency:2 gcra:10/1000000/10"));
    enqueue("default", "t", "a b c d e");
    ask_why("b", "waiting", "start=+0");
    ask_why("c", "waiting", "start=none"); /* only two at once */
    assert_int_equal(claim("w", 9, 0), 2);
    ask_why("c", "parked", "holder=t#0@none");
    assert_null(json_object_get(gate_at(0), "never"));
    expect("start=none");
    must(turns_settle_done("w", "t", tokens, 1, &(int64_t){0}));
    ask_why("c", "parked", "holder=none start=+0 inexact");
}

SCENE_TEST(test_a_paused_limit)
{
    start_worker();
    must(turns_rate("t", "10/1000000/10"));
    must(turns_pause("t", 60 * SECOND_US));
    enqueue("default", "t", "a");
    assert_int_equal(claim("w", 9, 0), 0);
    ask_why("a", "parked", "holder=t@+60 start=+60");
    must(turns_pause("t", 0));
    ask_why("a", "parked", "holder=none");
}

SCENE_TEST(test_a_provider_that_says_stop)
{
    start_worker();
    must(turns_rate("t", "10/1000000/10"));
    enqueue("default", "t", "a");
    assert_int_equal(claim("w", 9, 0), 1);
    settle("w", SETTLE_THROTTLED, tokens[0], 30 * SECOND_US, "");
    ask_why("a", "parked", "holder=t#0@+30");
    assert_int_equal(answer_int(gate_at(0), "paused_until"), BEGIN_US + 30 * SECOND_US);
    expect("start=+30 attempts=0");
}

SCENE_TEST(test_a_shared_limit)
{
    start_worker();
    must(turns_rate("account", "1/10000000/1"));
    use("t", "account");
    use("slow", "account");
    enqueue("default", "t", "a b");
    ask_why("b", "waiting", "exact");
    enqueue("default", "slow", "c");
    ask_why("b", "waiting", "inexact");
    assert_string_equal(answer_text(gate_at(0), "limit_name"), "account");
    expect("start=+10");
}

SCENE_TEST(test_jobs_elsewhere_may_be_first)
{
    start_worker();
    must(turns_rate("t", "1/10000000/1"));
    enqueue("default", "t", "a");
    ask_why("a", "waiting", "exact");
    enqueue("far", "t", "b");
    ask_why("a", "waiting", "inexact");
}

SCENE_TEST(test_nobody_to_run_it)
{
    must(turns_rate("t", "1/10000000/1"));
    enqueue("default", "t", "a");
    ask_why("a", "waiting", "served=false inexact");
    start_worker();
    ask_why("a", "waiting", "served=true");
    turns.now_us += LEASE_US;
    ask_why("a", "waiting", "served=true");
    turns.now_us += 1;
    ask_why("a", "waiting", "served=false");
}

/* Behind others the gate that is open now may be the one that lets it start last. */
SCENE_TEST(test_the_gate_that_counts_for_it)
{
    static const struct {
        const char *id, *gate;
        int64_t start_us;
    } cases[] = {{"b", "t#0", BEGIN_US + SECOND_US}, {"f", "t#1", BEGIN_US + 50 * SECOND_US}};

    start_worker();
    must(turns_rate("t", "gcra:1/1000000/1 sliding-log:5/50000000"));
    enqueue("default", "t", "a b c d e f");
    for (size_t i = 0; i < COUNT(cases); i++) {
        const json_t *waits_for;

        ask_why(cases[i].id, "waiting", "");
        waits_for = json_object_get(why, "waits_for");
        assert_string_equal(answer_text(waits_for, "gate"), cases[i].gate);
        assert_int_equal(answer_int(waits_for, "until"), cases[i].start_us);
        assert_int_equal(answer_int(why, "start"), cases[i].start_us);
    }
}

/* What is before it may cost more or less than itself. */
SCENE_TEST(test_jobs_of_different_costs)
{
    start_worker();
    must(turns_rate("t", "1/1000000/10"));
    push_job("default", "t", "a", ",\"cost\":10");
    push_job("default", "t", "b", ",\"cost\":4");
    push_job("default", "t", "c", "");
    push_job("default", "t", "d", ",\"cost\":11");
    ask_why("c", "waiting", "cost=1 inexact start=+5");
    ask_why("d", "waiting", "cost=11");
    assert_int_equal(claim("w", 9, 0), 1);
    ask_why("b", "parked", "holder=t#0@+4 start=+4");
}

SCENE_TEST(test_a_job_that_never_fits)
{
    start_worker();
    must(turns_rate("t", "1/1000000/10"));
    push_job("default", "t", "a", ",\"cost\":11");
    ask_why("a", "waiting", "holder=t#0@none");
    assert_true(json_is_true(json_object_get(gate_at(0), "never")));
    expect("start=none");
    assert_int_equal(claim("w", 9, 0), 0);
    ask_why("a", "dead", "");
}

SCENE_TEST(test_a_limit_that_cannot_be_read)
{
    start_worker();
    redis_do("HSET", PREFIX "limits", "t", "nonsense");
    enqueue("default", "t", "a");
    ask_why("a", "waiting", "holder=t@none");
    assert_null(json_object_get(gate_at(0), "rule"));
    expect("start=none");
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
            use_at("t", cost, NULL);
        enqueue_many("t", 200);
        if (parked)
            must(try_claim("w", 100, 0));
        ask_why("t199", parked ? "parked" : "waiting", "exact");
        began_us = turns.now_us;
        told_us = answer_int(why, "start");
        real_us = start_of("t199");
        if (llabs(real_us - told_us) > (real_us - began_us) / 100)
            fail_msg("%s: told %lld us, started %lld us", rules, (long long)(told_us - began_us),
                     (long long)(real_us - began_us));
    }
}

SCENE_TEST(test_starts_come_as_they_were_told)
{
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
SCENE_TEST(test_keys_that_share_a_gate_are_waited_for)
{
    static const struct {
        const char *id;
        const char *state;
    } cases[] = {{"a39", "parked"}, {"a0", "parked"}, {"z", "waiting"}};

    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t told_us, began_us, real_us;

        scene_begin(NULL);
        start_worker();
        must(turns_rate("t", "gcra:1/1000000/1 gcra:1/5000000/1,by=key"));
        for (int round = 0; round < 2; round++)
            for (int k = 0; k < 40; k++)
                push_job("default", "t", textf("%c%d", round ? 'a' : 'f', k), textf(",\"key\":\"k%d\"", k));
        must(try_claim("w", 100, 0)); /* f0 starts, and the lane of k0 sleeps */
        must(try_claim("w", 100, 0));
        turns.now_us += 1000;
        push_job("default", "t", "z", ",\"key\":\"new\"");
        ask_why(cases[i].id, cases[i].state, "");
        began_us = turns.now_us;
        told_us = answer_int(why, "start");
        real_us = start_of(cases[i].id);
        if (told_us > real_us || told_us - began_us < 39 * SECOND_US)
            fail_msg("%s: told %lld us, started %lld us", cases[i].id, (long long)(told_us - began_us),
                     (long long)(real_us - began_us));
        expect("inexact");
    }
}

/* Other keys and other types come between: never sooner than it was told. */
SCENE_TEST(test_no_start_is_sooner_than_it_was_told)
{
    int64_t told_us, real_us;

    start_worker();
    must(turns_rate("t", "gcra:5/1000000/2 gcra:1/3000000/2,by=key concurrency:90"));
    must(turns_rate("account", "gcra:4/1000000/2"));
    use("t", "account");
    use_at("slow", "2", "account");
    for (int i = 0; i < 60; i++) {
        const char *id = textf("j%d", i);
        const char *key = textf(",\"key\":\"k%d\"", i % 7);

        push_job("default", i % 3 ? "t" : "slow", id, key);
    }
    ask_why("j58", "waiting", "inexact");
    must(try_claim("w", 50, 0));
    ask_why("j58", "parked", "inexact gates=4");
    told_us = answer_int(why, "start");
    real_us = start_of("j58");
    assert_true(told_us <= real_us);
    assert_true(told_us > BEGIN_US);
}

/* ---- Pages */

SCENE_TEST(test_long_lanes_and_queues_are_paged)
{
    char big[20000];

    start_worker();
    must(turns_rate("t", "1/10000000/1"));
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    enqueue_many("t", 3000);
    for (int i = 0; i < 300; i++)
        push("default", textf("{\"id\":\"big%d\",\"type\":\"t\",\"args\":\"%s\"}", i, big));
    ask_why("t0", "waiting", "place=1 of=3300");
    ask_why("t2999", "waiting", "place=3000 of=3300");
    ask_why("big150", "waiting", "ahead=3150");
    for (int i = 0; i < 8; i++)
        must(try_claim("w", 1000, 0));
    ask_why("t1", "parked", "place=1");
    ask_why("t2999", "parked", "place=2999 start=+29990");
}

SCENE_TEST(test_many_lanes_are_paged)
{
    start_worker();
    must(turns_rate("t", "gcra:1/10000000/1 gcra:100/1000000/100,by=key"));
    must(turns_rate("slow", "gcra:1000/1000000/1000 gcra:1/100000000/1,by=key"));
    for (int i = 0; i < 3000; i++) {
        const char *id = textf("j%d", i);
        const char *key = textf(",\"key\":\"k%d\"", i < 1000 ? 0 : i / 2);

        push_job("default", i < 2000 ? "t" : "slow", id, key);
    }
    for (int i = 0; i < 30; i++)
        must(try_claim("w", 1000, 0));
    ask_why("j500", "parked", "of=999"); /* the lane of k0 */
    expect("place=500");
    ask_why("j1999", "parked", "key=k999"); /* in the ring */
    assert_in_range(answer_int(why, "turns_before"), 1, 500);
    ask_why("j2999", "parked", "key=k1499 turns_before=none"); /* asleep */
    assert_string_equal(answer_text(json_object_get(why, "waits_for"), "gate"), "slow#1/k1499");
}

SCENE_TEST(test_many_queues_take_few_calls)
{
    int64_t before;

    fill_queues(1000);
    before = count_calls();
    assert_int_equal(try_ask("none"), WEIR_ENOTFOUND);
    assert_in_range(count_calls() - before, 1, 150);
    ask_why("w999", "waiting", "");
    ask_why("r500", "parked", "queue=q500 key=a");
    ask_why("s0", "parked", "key=b");
    ask_why("h999", "held", "");
}

/* Where it was last found is where it is looked for first; what is wrong there only costs. */
SCENE_TEST(test_a_job_is_looked_for_where_it_was_seen)
{
    static const char *const ids[] = {"w999", "r500", "s0", "h999"};
    static const struct find_place wrong[] = {
        {"", ""},         {"queue:q1", "0"}, {"queue:q999", "7"},   {"limits", "0"},  {"queues:lanes", ""},
        {"dead", "x"},    {"active:t", "0"}, {"queue:q999", "0 1"}, {"wake:q1", "0"}, {"lane:limits", "0"},
        {"later", "0:0"}, {"queue:q1", ":"}};
    struct find_place place;
    json_t *job;
    int64_t before;

    fill_queues(1000);
    for (size_t i = 0; i < COUNT(ids); i++) {
        assert_int_equal(try_ask(ids[i]), 0);
        snprintf(place.at, sizeof place.at, "%s", answer_text(why, "list"));
        snprintf(place.from, sizeof place.from, "%d",
                 (int)(answer_int(why, "of") - answer_int(why, "place")));
        before = count_calls();
        assert_int_equal(find_job_near(w, turns.now_us, ids[i], &place, &job), 0);
        assert_int_equal(count_calls() - before, 1);
        assert_string_equal(answer_text(job, "list"), place.at);
        json_decref(job);
    }
    for (size_t i = 0; i < COUNT(wrong); i++) {
        before = count_calls();
        assert_true(find_job_near(w, turns.now_us, "w999", &wrong[i], &job) < 0);
        assert_null(job);
        assert_in_range(count_calls() - before, 0, 2);
    }
}

SCENE_TEST(test_it_is_looked_for_near_there_only)
{
    const struct find_place place = {"queue:default", "0"};
    int64_t before;
    json_t *job;

    enqueue_many("t", 20000);
    before = count_calls();
    assert_int_equal(find_job_near(w, turns.now_us, "none", &place, &job), WEIR_ENOTFOUND);
    assert_int_equal(count_calls() - before, 2);
}

/* ---- A part at a time */

static char cursor[4096]; /* where the next part begins; "": at the beginning */

/* One page of a walk. */
static int look_on(const char *id, json_t **job)
{
    int status = find_job_part(w, turns.now_us, id, *cursor ? cursor : NULL, 1, job);

    snprintf(cursor, sizeof cursor, "%s", found_too_early(*job) ? answer_text(*job, "next") : "");
    return status;
}

/* Looks on until it is known where the job is; what looking said last, and how many parts it took. */
static int look_to_the_end(const char *id, json_t **job, int *parts)
{
    int64_t looked_at = 0;
    int status;

    *cursor = '\0';
    for (*parts = 1; (status = look_on(id, job)) == 0 && *cursor; ++*parts) {
        assert_string_equal(answer_text(*job, "id"), id);
        assert_true(answer_int(*job, "looked_at") >= looked_at);
        assert_true(answer_int(*job, "of") >= answer_int(*job, "looked_at"));
        looked_at = answer_int(*job, "looked_at");
        json_decref(*job);
    }
    return status;
}

SCENE_TEST(test_a_job_is_looked_for_a_part_at_a_time)
{
    static const char *const ids[] = {"w0", "w999", "r500", "s0", "h999"};
    json_t *job;
    int parts;

    fill_queues(1000);
    for (size_t i = 0; i < COUNT(ids); i++) {
        assert_int_equal(look_to_the_end(ids[i], &job, &parts), 0);
        assert_string_equal(answer_text(job, "id"), ids[i]);
        assert_non_null(json_object_get(job, "state"));
        json_decref(job);
    }
    assert_int_equal(look_to_the_end("none", &job, &parts), WEIR_ENOTFOUND);
    assert_null(job);
    assert_in_range(parts, 5, 150);
    assert_non_null(strstr(w->error.text, "no such job"));
}

SCENE_TEST(test_a_part_says_how_far_it_has_looked)
{
    json_t *job;
    int parts;

    enqueue_many("t", 20000);
    *cursor = '\0';
    assert_int_equal(look_on("none", &job), 0);
    assert_true(found_too_early(job));
    assert_int_equal(answer_int(job, "of"), 20000);
    json_decref(job);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(look_on("none", &job), 0);
        json_decref(job);
    }
    assert_int_equal(look_on("none", &job), 0);
    assert_in_range(answer_int(job, "looked_at"), 6000, 12000);
    json_decref(job);
    assert_int_equal(look_to_the_end("none", &job, &parts), WEIR_ENOTFOUND);
    assert_int_equal(find_job_part(w, turns.now_us, "none", NULL, INT64_MAX, &job), WEIR_ENOTFOUND);
    assert_non_null(strstr(w->error.text, "was never enqueued; check the id"));
}

static void push_front(const char *key, const char *id)
{
    redis_do("LPUSH", key, textf("{\"id\":\"%s\",\"type\":\"t\"}", id));
}

/* Its state, found at once from where the last look ended; "": passed over. */
static const char *state_on(const char *id)
{
    static char found[32];
    json_t *job;
    int status = find_job_part(w, turns.now_us, id, cursor, INT64_MAX, &job);

    snprintf(found, sizeof found, "%s", answer_text(job, "state"));
    json_decref(job);
    assert_int_equal(status, *found ? 0 : WEIR_ENOTFOUND);
    return found;
}

/* Between two parts a job may go on in its life, or end; one that goes back to where was looked is passed over. */
SCENE_TEST(test_a_job_that_moves_between_parts)
{
    json_t *job;

    start_worker();
    push_job("default", "t", "a", "");
    push_job("default", "t", "b", "");
    enqueue_many("t", 10000);
    *cursor = '\0';
    for (int i = 0; i < 3; i++) {
        assert_int_equal(look_on("a", &job), 0);
        assert_true(found_too_early(job));
        json_decref(job);
    }
    must(try_claim("w", 2, 0));
    assert_string_equal(state_on("a"), "running");
    free(
        redis_text("SET", PREFIX "finished:done", "done 1 w 1 default/t/\n{\"id\":\"done\",\"type\":\"t\"}"));
    assert_string_equal(state_on("done"), "finished");
    push("default", "{\"id\":\"back\",\"type\":\"t\"}"); /* at the tail */
    assert_string_equal(state_on("back"), "");
    assert_non_null(strstr(w->error.text, "has moved meanwhile; look again without the cursor"));
    assert_int_equal(find_job_part(w, turns.now_us, "back", NULL, INT64_MAX, &job), 0);
    json_decref(job);
    push_front(PREFIX "queue:default", "front");
    assert_string_equal(state_on("front"), "waiting");
}

SCENE_TEST(test_wrong_cursors_are_refused)
{
    static const char *const wrong[] = {"",
                                        "x",
                                        "1",
                                        "0,99",
                                        "0,0,later",
                                        "<b>",
                                        "0,0,nowhere,",
                                        "0,0,queues:limits,",
                                        "0,0,later,x:1",
                                        "0,0,active:w,99999999999999999999"};
    static const char *const elsewhere[] = {"0,9",
                                            "0,0,dead,",
                                            "0,0,queue:gone,17",
                                            "0,0,finished,",
                                            "0,0,queues:ring,",
                                            "0,0,queues:lanes,",
                                            "0,0,parked,",
                                            "5000000000,0,later,-inf:0"};
    json_t *job;

    push_job("default", "t", "a", "");
    for (size_t i = 0; i < COUNT(wrong); i++) {
        assert_int_equal(find_job_part(w, turns.now_us, "a", wrong[i], INT64_MAX, &job), WEIR_EINPUT);
        assert_null(job);
        assert_non_null(strstr(w->error.text, "not one; take it as the page before gave it"));
    }
    for (size_t i = 0; i < COUNT(elsewhere); i++) {
        assert_int_equal(find_job_part(w, turns.now_us, "a", elsewhere[i], INT64_MAX, &job), WEIR_ENOTFOUND);
        assert_null(job);
    }
    assert_int_equal(find_job_part(w, turns.now_us, "a b", "x", INT64_MAX, &job), WEIR_EINPUT);
    assert_non_null(strstr(w->error.text, "not a valid id"));
}

SCENE_TEST(test_wrong_calls_are_refused)
{
    static const char *const wrong[][6] = {
        {"find_job", "not a name", "10", "", ""},     {"find_job", "a", "0", "", ""},
        {"find_job", "a", "1001", "later", ""},       {"find_job", "a", "10", "limits", ""},
        {"find_job", "a", "10", "later", "", "dead"}, {"ahead", "lane:default/t/", "0", "1000", "t"},
        {"ahead", "lane:default/t/", "x", "1", "t"},  {"ahead", "limits", "0", "1", "t"},
    };
    const char *nothing[] = {"limits", "t", "{}"};

    for (size_t i = 0; i < COUNT(wrong); i++)
        if (turns_script(wrong[i][0], wrong[i] + 1, wrong[i][5] ? 5 : 4) != WEIR_EINPUT &&
            strstr(turns.error.text, "wants") == NULL)
            fail_msg("%s %s was not refused: %s", wrong[i][0], wrong[i][1], turns.error.text);
    assert_true(turns_script("why", nothing, 3) < 0);
    assert_non_null(strstr(turns.error.text, "wants"));
}

TESTS(scene_start_client, stop_all)

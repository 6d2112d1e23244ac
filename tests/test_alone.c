/* Jobs whose worker died while they ran: each runs alone in its worker, so that only the one that kills is
 * dead; and nobody else waits for them. The scripts under a clock of the test's own, then real workers. */
#include "tests/scene.h"

#include <signal.h>
#include <unistd.h>

#include "core/client/client.h"
#include "core/clock.h"
#include "queue/inspect/find_job.h"
#include "queue/queues/queues.h"
#include "tests/stage.h"

#define PLACES PREFIX "alone"

/* A worker that runs these jobs dies. */
static void die_with(const char *type, const char *ids, const char *fields)
{
    start("dead");
    if (fields)
        enqueue_with(type, ids, fields);
    else
        enqueue("default", type, ids);
    claim("dead", 60, 0);
    start("reaper");
    pass("reaper", LEASE_US + SECOND_US);
    must(turns_adopt("", "reaper", NULL, 0, default_queue, NULL));
    turns_check();
}

static void done(const char *worker, const char *type)
{
    int64_t stale;

    must(turns_settle_done(worker, type, tokens, turns.claim.lease_count, &stale));
    assert_int_equal(stale, 0);
}

static void expect_alone(size_t leases, bool alone)
{
    assert_int_equal(turns.claim.lease_count, leases);
    assert_int_equal(turns.claim.alone, alone);
    turns_check();
}

/* ---- One worker */

/* Is it among the leases of the last claim? */
static bool is_leased(const char *id)
{
    const char *text = textf("\"id\":\"%s\"", id);

    for (size_t i = 0; i < turns.claim.lease_count; i++)
        if (memmem(turns.claim.leases[i].body.at, turns.claim.leases[i].body.len, text, strlen(text)))
            return true;
    return false;
}

/* The suspects of `count` jobs run, until all have ended; whoever runs one of two jobs dies. Returns how often. */
static int run_suspects(int count, const char *killer, const char *other)
{
    int deaths = 1, ended = 0, rounds = 0;
    char worker[16];

    start("w0");
    enqueue_many("t", count);
    while (claim("w0", count, 0) > 0)
        continue;
    for (bool died = true; died; deaths += died) {
        snprintf(worker, sizeof worker, "w%d", deaths);
        start(worker);
        pass(worker, LEASE_US + SECOND_US);
        for (died = false, ask.alone = true; !died && claim(worker, count, 50) > 0; rounds++) {
            assert_true(turns.claim.alone);
            for (size_t i = 0; i < turns.claim.lease_count; i++)
                assert_in_range(turns.claim.leases[i].interrupted, 1, turns.claim.lease_count > 1 ? 1 : 2);
            died = is_leased(killer) || is_leased(other);
            if (!died) {
                ended += (int)turns.claim.lease_count;
                done(worker, "t");
            }
            turns_check();
        }
    }
    assert_int_equal(redis_number("ZCARD", PREFIX "dead") + ended, count);
    assert_in_range(rounds, 1, 2 * deaths + 2);
    assert_int_equal(turns_check().parked, 0);
    return deaths;
}

static int halvings(int count)
{
    int n = 0;

    for (; count > 1; count = (count + 1) / 2)
        n++;
    return n;
}

/* Wherever it stands: each death halves those among which it is; then it dies alone, twice. */
SCENE_TEST(test_the_one_that_kills_is_found_by_halves)
{
    static const int counts[] = {1, 2, 3, 7, 50, 64};

    for (size_t i = 0; i < COUNT(counts); i++)
        for (int at = 0; at < counts[i]; at += at == 0 ? counts[i] / 3 + 1 : counts[i] / 2 + 1) {
            char *dead;
            int deaths;

            scene_begin(state);
            deaths = run_suspects(counts[i], textf("t%d", at), "none");
            assert_in_range(deaths, 3, 3 + halvings(counts[i]));
            expect_text("1", "ZCARD", PREFIX "dead");
            dead = redis_text("ZRANGE", PREFIX "dead", "0", "-1");
            if (!strstr(unstamped(dead), textf("its worker died %d times\n@0,3,0;", deaths)))
                fail_msg("%d deaths: %s", deaths, dead);
            free(dead);
        }
}

SCENE_TEST(test_two_that_kill)
{
    assert_in_range(run_suspects(50, "t9", "t40"), 5, 2 * (3 + halvings(50)));
    expect_counters("t", "done 48, dead 2");
}

/* It comes when nothing else is in flight, and nothing comes beside it. */
SCENE_TEST(test_it_has_its_worker_to_itself)
{
    die_with("t", "a b", NULL);
    start("w");
    enqueue("default", "slow", "c d e");
    assert_int_equal(claim("w", 1, 0), 1);
    expect_leases("c");
    ask.alone = true;
    claim("w", 4, 4);
    expect_alone(0, true);
    settle("w", SETTLE_FINISH, tokens[0], 0, NULL);
    claim("w", 5, 5);
    expect_alone(1, true);
    expect_leases("a");
    assert_int_equal(turns.claim.leases[0].interrupted, 1);
    claim("w", 4, 4);
    expect_alone(0, true);
    ask.alone = false;
    settle("w", SETTLE_FINISH, tokens[0], 0, NULL);
    claim("w", 1, 0); /* it does not want one more now: the others have their turn */
    expect_alone(1, false);
    expect_leases("d");
    expect_list(ALONE("t"), "b");
}

/* Who wants none gets one when there is nothing else. */
SCENE_TEST(test_an_idle_worker_runs_them_one_after_the_other)
{
    die_with("t", "a b", NULL);
    start("w");
    for (int i = 0; i < 2; i++) {
        claim("w", 3, 3);
        expect_alone(1, true);
        expect_leases(i ? "b" : "a");
        done("w", "t");
    }
    claim("w", 3, 3);
    expect_alone(0, false);
    assert_int_equal(redis_number("EXISTS", PLACES), 0);
}

/* All of its executors are for jobs with a limit, or it asks in advance only. */
SCENE_TEST(test_reserved_executors)
{
    die_with("t", "a b", NULL);
    start("w");
    ask.alone = ask.reserved = true;
    claim("w", 2, 5);
    expect_alone(1, true);
    settle("w", SETTLE_FINISH, tokens[0], 0, NULL);
    claim("w", 0, 5);
    expect_alone(0, true);
}

/* ---- What becomes of it */

SCENE_TEST(test_its_ends)
{
    static const struct {
        enum settle_verb verb;
        const char *usual, *alone, *later;
        int dead;
    } cases[] = {
        {SETTLE_BACK, "", "a", "0", 0},     {SETTLE_INTERRUPTED, "", "a", "0", 0},
        {SETTLE_RETRY, "", "", "1", 0},     {SETTLE_DEAD, "", "", "0", 1},
        {SETTLE_THROTTLED, "", "", "1", 0}, {SETTLE_FINISH, "", "", "0", 0},
        {SETTLE_CANCELLED, "", "", "0", 0},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        scene_begin(state);
        die_with("t", "a", NULL);
        start("w");
        assert_int_equal(claim("w", 1, 0), 1);
        settle("w", cases[i].verb, tokens[0], cases[i].verb == SETTLE_INTERRUPTED ? 3 : 1000, "why");
        expect_list(LANE("t"), cases[i].usual);
        expect_list(ALONE("t"), cases[i].alone);
        expect_text(cases[i].later, "ZCARD", PREFIX "later");
        assert_int_equal(turns_check().dead, cases[i].dead);
        if (*cases[i].later == '0')
            continue;
        turns.now_us += SECOND_US; /* it did not kill its worker: it comes back as others do */
        promote(1);
        expect_list(LANE("t"), "a");
        turns_check();
    }
}

/* With a limit: to its own lane, when its handler was throttled. */
SCENE_TEST(test_throttled_under_a_limit)
{
    must(turns_rate("slow", "10/1000000/10"));
    die_with("slow", "a", NULL);
    start("w");
    assert_int_equal(claim("w", 1, 0), 1);
    settle("w", SETTLE_THROTTLED, tokens[0], SECOND_US, NULL);
    expect_list(LANE("slow"), "a");
    turns_check();
}

/* However often a job is beside one that kills its worker, it is only suspected. */
SCENE_TEST(test_what_counts)
{
    start("w");
    enqueue("default", "t", "a b");
    for (int i = 0; i < 5; i++) {
        start("dead");
        assert_int_equal(claim("dead", 2, 0), 2);
        assert_int_equal(turns.claim.leases[1].interrupted, i > 0);
        pass("w", LEASE_US + SECOND_US);
        expect_list(ALONE("t"), "a b");
        for (int k = 0; k < 2; k++) {
            assert_int_equal(claim("w", 1, 0), 1);
            settle("w", SETTLE_RETRY, tokens[0], 0, NULL);
        }
        promote(2);
    }
    assert_int_equal(redis_number("EXISTS", PREFIX "dead"), 0);
}

/* Those that are cancelled, or of a paused batch or queue, do not run; the purge of a queue takes them. */
SCENE_TEST(test_what_is_not_to_run)
{
    struct weir *w = weir_new(turns.server.url, NULL);
    struct queue_jobs jobs;
    json_t *job;

    die_with("t", "a b c", NULL);
    start("w");
    must(turns_pausing("queue_pause", "default", RATE_ENDLESS));
    claim("w", 1, 0);
    expect_alone(0, false);
    must(turns_pausing("queue_pause", "default", RATE_RESUME));
    redis_do("HSET", PREFIX "cancelled", "a", "waiting 1");
    assert_int_equal(claim("w", 1, 0), 1);
    expect_leases("b");
    expect_counters("t", "cancelled 1");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(find_job(w, turns.now_us, i ? "c" : "b", &job), 0);
        assert_true(json_is_true(json_object_get(job, "alone")));
        assert_string_equal(answer_text(job, "state"), i ? "parked" : "running");
        assert_int_equal(answer_int(job, "interrupted"), 1);
        assert_string_equal(answer_text(job, "queue"), "default");
        json_decref(job);
    }
    assert_int_equal(queue_count(w, turns.now_us, "default", NULL, &jobs), 0);
    assert_int_equal(jobs.parked, 1);
    assert_int_equal(queue_purge(w, turns.now_us, "default", NULL, 100, &jobs), 0);
    assert_int_equal(jobs.parked, 1);
    expect_list(ALONE("t"), "");
    turns_check();
    weir_free(w);
}

/* ---- Several workers */

/* One in four, and one at least. */
SCENE_TEST(test_places)
{
    char name[16];

    die_with("t", "a b c d", NULL);
    enqueue_many("slow", 50);
    for (int i = 0; i < 9; i++) {
        snprintf(name, sizeof name, "w%d", i);
        start(name);
    }
    for (int i = 0; i < 9; i++) { /* each has something in flight */
        snprintf(name, sizeof name, "w%d", i);
        assert_int_equal(claim(name, 1, 0), 1);
    }
    ask.alone = true;
    for (int i = 0; i < 9; i++) {
        snprintf(name, sizeof name, "w%d", i);
        claim(name, 1, 0);
        expect_alone(i < 2 ? 0 : 1, i < 2);
    }
    must(turns_adopt("", "w0", NULL, 0, default_queue, NULL)); /* who leaves has none any more, */
    claim("w2", 1, 0);
    expect_alone(0, true);
    ask.alone = false;
    claim("w1", 1, 0); /* nor who gave it up, */
    expect_alone(1, false);
    ask.alone = true;
    claim("w3", 1, 0);
    expect_alone(0, true);
    start("w9");
    turns.now_us += LEASE_US - 1;
    pass("w9", 0);
    pass("w9", LEASE_US + SECOND_US); /* nor who died */
    claim("w9", 1, 0);
    expect_alone(1, true);
    expect_leases("a");
}

/* Who has no handler leaves them to one that has. */
SCENE_TEST(test_a_type_of_others)
{
    static const char *const slow[] = {"slow"}, *const all[] = {"t", "slow"};

    die_with("t", "a", NULL);
    start("w");
    start("v");
    ask.alone = true;
    ask.types = (struct names){slow, 1};
    enqueue("default", "slow", "b c");
    claim("w", 1, 0);
    expect_alone(1, false);
    expect_leases("b");
    ask.types = (struct names){all, 2};
    claim("v", 1, 0);
    expect_alone(1, true);
    expect_leases("a");
}

/* Two that find nothing else run suspects, however few there are: one of them may be dead. */
SCENE_TEST(test_places_of_idle_workers)
{
    die_with("t", "a b c d e f", NULL);
    for (int i = 0; i < 3; i++) {
        char name[] = {'w', (char)('0' + i), 0};

        start(name);
        claim(name, 8, 0);
        expect_alone(i < 2 ? 3 : 0, i < 2);
    }
}

/* Those that a worker may have died of come behind those that have not run since. */
SCENE_TEST(test_who_has_run_again_comes_behind)
{
    die_with("t", "a b c d", NULL);
    start("w");
    claim("w", 8, 0);
    expect_leases("a b");
    start("v");
    pass("v", LEASE_US + SECOND_US);
    expect_list(ALONE("t"), "c d a b");
    claim("v", 8, 0);
    expect_leases("c d");
    expect_alone(2, true);
    done("v", "t");
    for (int i = 0; i < 2; i++) {
        claim("v", 8, 0);
        expect_alone(1, true);
        done("v", "t");
    }
    expect_counters("t", "done 4");
}

/* What a worker says of the types that can end it: jobs of others are not to blame, and wait and run as ever. */
SCENE_TEST(test_jobs_of_other_processes)
{
    turns.info = "{\"lease\":30.0,\"inside\":[\"slow\"],\"types\":[\"slow\",\"t\"]}";
    start("dead");
    turns.info = NULL;
    start("w");
    enqueue("default", "t", "a b");
    enqueue("default", "slow", "c d");
    assert_int_equal(claim("dead", 9, 0), 4);
    pass("w", LEASE_US + SECOND_US);
    expect_list(LANE("t"), "a b");
    expect_list(ALONE("slow"), "c d");
    ask.alone = true;
    claim("w", 9, 0);
    expect_leases("c d"); /* two of four, and these are all */
    expect_alone(2, true);
    assert_int_equal(turns.claim.leases[0].interrupted, 1);
    done("w", "slow");
    ask.alone = false;
    claim("w", 9, 0);
    expect_leases("a b");
    expect_alone(2, false);
    assert_int_equal(turns.claim.leases[0].interrupted, 0);
    expect_counters("t", "reaped 2");
}

/* However often a worker is killed from outside: what does not run in its process never dies of it. */
SCENE_TEST(test_workers_of_commands_that_are_killed)
{
    start("w");
    enqueue("default", "t", "a");
    for (int i = 0; i < 5; i++) {
        turns.info = "{\"lease\":30.0,\"inside\":[]}";
        start("dead");
        turns.info = NULL;
        assert_int_equal(claim("dead", 1, 0), 1);
        assert_int_equal(turns.claim.leases[0].interrupted, 0);
        pass("w", LEASE_US + SECOND_US);
        expect_list(LANE("t"), "a");
    }
    turns_check();
}

/* A group ends in all ways: who comes back as it is stays a suspect, whatever its token says. */
SCENE_TEST(test_ends_of_a_group)
{
    char *dead;

    die_with("t", "a b c d e f g h i j", NULL);
    start("w");
    claim("w", 5, 0);
    expect_leases("a b c d e");
    expect_alone(5, true);
    assert_null(memchr(tokens[0].at, '!', tokens[0].len));
    settle("w", SETTLE_BACK, tokens[0], 0, NULL);
    expect_list(ALONE("t"), "a f g h i j");
    settle("w", SETTLE_RETRY, tokens[1], 0, NULL);
    settle("w", SETTLE_DEAD, tokens[2], 0, "no");
    settle("w", SETTLE_INTERRUPTED, tokens[3], 3, "gone");
    expect_list(ALONE("t"), "d a f g h i j");
    must(turns_adopt("", "w", NULL, 0, default_queue, NULL));
    expect_list(ALONE("t"), "e d a f g h i j");
    start("v");
    promote(1);
    expect_text("@1,1,0;{\"id\":\"b\",\"type\":\"t\",\"args\":{}}", "LINDEX", LANE("t"), "0");
    dead = redis_text("ZRANGE", PREFIX "dead", "0", "0");
    assert_non_null(strstr(dead, "default/t/ no\n@1,1,0"));
    assert_null(strstr(dead, ",h"));
    free(dead);
    turns_check();
}

/* Suspects of several deaths in one lane: a group is as large as each of them allows. */
SCENE_TEST(test_suspects_of_several_deaths)
{
    die_with("t", "a b c d e f", NULL);
    die_with("t", "g", NULL);
    die_with("t", "h i", NULL);
    start("w");
    expect_list(ALONE("t"), "h i g a b c d e f");
    for (int i = 0; i < 5; i++) {
        claim("w", 9, 0);
        expect_leases(((const char *[]){"h", "i", "g", "a b c", "d e f"})[i]);
        assert_true(turns.claim.alone);
        done("w", "t");
    }
    expect_counters("t", "done 9");
}

/* As workers of older versions leave them: one that ran alone, whose head does not say so, and one that was handed back to where others run. */
SCENE_TEST(test_suspects_of_older_versions)
{
    char *text;

    start("w");
    start("old");
    start("older");
    redis_do("HSET", ACTIVE "old", "1.--/default!/t/", "@0,1,0;{\"id\":\"a\",\"type\":\"t\"}");
    redis_do("HSET", ACTIVE "older", "1.--/default/t/", "@0,1,0,h1;{\"id\":\"b\",\"type\":\"t\"}",
             "1.-0/default/t/", "{\"id\":\"c\",\"type\":\"t\"}", "1.-1/default/t/",
             "{\"id\":\"d\",\"type\":\"t\"}");
    pass("w", LEASE_US + SECOND_US);
    text = redis_text("LRANGE", ALONE("t"), "0", "-1");
    assert_non_null(strstr(text, "@0,2,0,h1;{\"id\":\"a\""));
    assert_non_null(strstr(text, "@0,1,0,h1,k2;{\"id\":\"b\""));
    assert_non_null(strstr(text, "@0,1,0,h2;{\"id\":\"c\""));
    free(text);
}

/* In strict order what stands in a queue before comes first. */
SCENE_TEST(test_queues_before)
{
    static const char *const queues[] = {"high", "default"};

    die_with("t", "a", NULL);
    must(turns_adopt("w", "", NULL, 0, (struct names){queues, 2}, NULL));
    ask.queues = (struct names){queues, 2};
    ask.alone = true;
    enqueue("high", "slow", "b");
    claim("w", 1, 0);
    expect_leases("b");
    done("w", "slow");
    claim("w", 1, 0);
    expect_leases("a");
}

/* ---- Gates */

/* Others that want the next slot of a rate, or the place of one that ends, do not come before it. */
SCENE_TEST(test_its_gates_are_kept)
{
    must(turns_rate("slow", "1/1000000/1"));
    die_with("slow", "a", NULL);
    start("w");
    start("v");
    enqueue("default", "slow", "b c");
    assert_int_equal(claim("v", 1, 0), 1);
    expect_leases("b");
    ask.alone = true;
    claim("w", 1, 0);
    expect_alone(0, true);
    assert_int_equal(turns.claim.next_us, turns.now_us + SECOND_US);
    turns.now_us += SECOND_US;
    ask.alone = false;
    claim("v", 5, 0);
    expect_alone(0, false);
    ask.alone = true;
    claim("w", 1, 0);
    expect_leases("a");
    turns.now_us += 2 * SECOND_US;
    claim("v", 5, 0);
    expect_leases("c");
}

SCENE_TEST(test_its_place_among_those_in_flight_is_kept)
{
    must(turns_rate("slow", "concurrency:1"));
    die_with("slow", "a", NULL);
    start("w");
    start("v");
    enqueue("default", "slow", "b c");
    enqueue("default", "t", "d"); /* an idle one might run it */
    assert_int_equal(claim("v", 2, 0), 2);
    expect_leases("b d");
    redis_do("ZADD", PREFIX "wake:default!", "1", "slow#0"); /* somebody had it looked at */
    ask.alone = true;
    claim("w", 1, 0);
    expect_alone(0, true);
    settle("v", SETTLE_FINISH, tokens[0], 0, NULL);
    ask.alone = false;
    claim("v", 1, 0);
    expect_alone(0, false);
    turns.now_us += SECOND_US / 2;
    ask.alone = true;
    claim("w", 1, 0);
    expect_leases("a");
    turns_check();
}

/* A gate that opens late keeps nobody waiting: the worker goes on as usual. */
SCENE_TEST(test_a_gate_that_opens_late)
{
    must(turns_rate("slow", CLOSED_RULE));
    die_with("slow", "a", NULL);
    start("w");
    enqueue("default", "t", "b c");
    enqueue("default", "slow", "d");
    ask.alone = true;
    claim("w", 1, 0);
    expect_leases("b");
    expect_alone(1, false);
    claim("w", 1, 0);
    expect_alone(1, false);
}

/* Nor does it keep jobs of others that are to run alone from a limit that they share. */
SCENE_TEST(test_a_gate_that_opens_late_keeps_no_other)
{
    static const char *const all[] = {"all"};

    must(turns_rate("all", "1000/1000000/1000"));
    must(turns_rate("slow", CLOSED_RULE));
    must(turns_use("slow", "use", "", all, 1));
    must(turns_use("t", "use", "", all, 1));
    die_with("slow", "a", NULL);
    die_with("t", "b", NULL);
    start("w");
    ask.alone = true;
    claim("w", 1, 0);
    expect_alone(1, true);
    expect_leases("b");
}

/* Each has its lane, by its key. */
SCENE_TEST(test_keys)
{
    must(turns_rate("slow", "1/1000000/1,by=key"));
    start("w");
    start("dead");
    enqueue_with("slow", "a", "\"key\":\"x\"");
    enqueue_with("slow", "b", "\"key\":\"y\"");
    assert_int_equal(claim("dead", 2, 0), 2);
    pass("w", LEASE_US + SECOND_US);
    expect_list(ALONE("slow") "x", "a");
    expect_list(ALONE("slow") "y", "b");
    enqueue_with("slow", "c", "\"key\":\"x\"");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(claim("w", 1, 0), 1);
        done("w", "slow");
    }
    turns.now_us += SECOND_US;
    ask.alone = true;
    for (int i = 0; i < 2 && turns_check().parked > 0; i++) {
        assert_int_equal(claim("w", 1, 0), 1);
        done("w", "slow");
        turns.now_us += SECOND_US;
    }
    assert_int_equal(turns_check().parked, 0);
}

/* ---- Keys of others */

/* Claims go on; what needs it stays where it is. */
SCENE_TEST(test_a_key_of_the_wrong_kind)
{
    die_with("t", "a", NULL);
    start("w");
    redis_do("RENAME", PLACES, PREFIX "id:kept");
    redis_do("SET", PLACES, "foreign");
    enqueue("default", "slow", "b");
    ask.alone = true;
    assert_int_equal(claim("w", 1, 0), 1);
    expect_leases("b");
    redis_do("RENAME", PREFIX "id:kept", PLACES);
    done("w", "slow");
    assert_int_equal(claim("w", 1, 0), 1);
    expect_leases("a");
}

/* ---- Real workers */

static pid_t actor(struct stage *s, const char *name)
{
    return stage_actor(s, name, "types=mark,kills", "executors=8", "lease=1", "fragile=1", NULL);
}

/* A job that kills its worker, seven beside it, and others that come all the time; who dies is started again.
 */
STAGE_TEST(one_of_eight_kills)
{
    pid_t worker;
    int deaths = 0;
    char *dead;

    stage_enqueue(s, "mark", "{\"sleep\":0.2}", 1, 7);
    stage_enqueue(s, "kills", "{\"sleep\":0.05,\"kill\":\"before\"}", 0, 1);
    for (worker = actor(s, "worker"); stage_stat(s, "kills", "dead") == 0; deaths++) {
        await(!is_running(worker) || stage_stat(s, "kills", "dead") == 1);
        if (stage_stat(s, "kills", "dead") == 1)
            break;
        assert_int_equal(program_end(worker), 1000 + SIGKILL);
        stage_enqueue(s, "mark", "{\"sleep\":0.01}", 10 + 10 * deaths, 10);
        worker = actor(s, "worker");
    }
    assert_in_range(deaths, 3, 5);
    await(stage_stat(s, "mark", "done") == 7 + 10 * deaths);
    dead = stage_dead(s);
    assert_non_null(strstr(dead, textf("default/kills/ its worker died %d times\n", deaths)));
    assert_null(strstr(dead, "default/mark/"));
    free(dead);
}

/* Its functions run again half of them together; all of them wait. */
STAGE_TEST(halves_run_together)
{
    pid_t worker;

    stage_enqueue(s, "mark", "{\"wait\":\"go\"}", 1, 8);
    worker = stage_actor(s, "first", "types=mark", "executors=8", "lease=2", NULL);
    await(history_count(s, "begin", -1) == 8);
    kill(worker, SIGKILL);
    program_end(worker);
    worker = stage_actor(s, "worker", "types=mark", "executors=8", "lease=2", NULL);
    await(history_count(s, "begin", -1) == 8 + 4);
    await_text(s->server.folder, "worker.err", "4 jobs run together and nothing beside them");
    write_text(s->server.folder, "go", "");
    await(stage_stat(s, "mark", "done") == 8);
    assert_int_equal(history_count(s, "begin", -1), 8 + 8);
}

/* What does not run in its process is not to blame: all of it runs again beside each other, and none is interrupted. Types of both kinds in one worker. */
STAGE_TEST(commands_of_a_worker_that_is_killed)
{
    pid_t worker;
    char *info;

    write_text(s->server.folder, "handler",
               "#!/bin/sh\necho >>begun\nuntil [ -e go ]; do sleep 0.05; done\n");
    stage_enqueue(s, "run", NULL, 1, 8);
    for (int i = 1; i <= 2; i++) {
        worker = stage_weir(s, i == 1 ? "first" : "worker", "--exec", "run=sh handler", "-c", "8", "--lease",
                            "2s", NULL);
        await(stage_lines(s, "begun") == 8 * i);
        info = server_ask(&s->server, "EVAL",
                          "for _, id in ipairs(redis.call('ZRANGE', KEYS[1], '-1', '-1')) do\n"
                          "  return redis.call('HGET', ARGV[1] .. id, '@')\n"
                          "end",
                          "1", stage_key(s, "workers"), stage_key(s, "active:"), NULL);
        assert_non_null(strstr(info, "\"inside\":[]"));
        free(info);
        if (i == 1) {
            kill(worker, SIGKILL);
            program_end(worker);
        }
    }
    assert_int_equal(stage_number(s, "EXISTS", stage_key(s, "alone")), 0);
    await_text(s->server.folder, "worker.err",
               "msg=\"back: its worker died, and it cannot be what killed it\" job=");
    write_text(s->server.folder, "go", "");
    await(stage_stat(s, "run", "done") == 8);
    assert_int_equal(stage_stat(s, "run", "reaped"), 8);
}

/* A worker that always has something in flight: the others go on, and in the end it has its turn. Its functions would end it (70) if the
 * machine let it stand still for a lease. */
STAGE_TEST(a_busy_worker)
{
    long long done;

    stage_do(s, "HSET", stage_key(s, "active:gone"), "@", "{}", "1.--/default/mark/",
             "{\"id\":\"j0\",\"type\":\"mark\"}");
    stage_do(s, "ZADD", stage_key(s, "workers"), "1", "gone");
    stage_enqueue(s, "mark", "{\"wait\":\"go\"}", 1, 1);
    stage_actor(s, "worker", "types=mark,other", "executors=4", "lease=4", NULL);
    await(stage_number(s, "EXISTS", stage_key(s, "lane:default!/mark/")) == 1);
    stage_enqueue(s, "other", "{\"sleep\":0.05}", 100, 400);
    await(stage_stat(s, "other", "done") > 20);
    done = stage_stat(s, "other", "done");
    await(stage_stat(s, "other", "done") > done + 20);
    assert_int_equal(history_count(s, "effect", 0), 0);
    write_text(s->server.folder, "go", "");
    await(history_count(s, "effect", 0) == 1);
    await_text(s->server.folder, "worker.err", "runs alone: its worker died");
    await(stage_stat(s, "other", "done") == 400);
}

STAGE_TESTS(turns_start, turns_stop)

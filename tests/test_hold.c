/* Slots on lease, for what is not a job: plays, a random world of jobs and holders at one gate, and the library. */
#include <inttypes.h>
#include <signal.h>
#include <unistd.h>

#include "tests/play.h"
#include "tests/program.h"
#include "tests/random.h"
#include "tests/scene.h"
#include "tests/stage.h"

PLAY("hold")

/* ---- A random world */

#define HOLDERS 12
#define TTL_US (10 * SECOND_US)
#define SLOTS_MOST 4

static struct {
    uint64_t random, seed;
    int slots;
    int64_t till_us[HOLDERS]; /* the end of each hold, as its holder may believe; 0: it has none */
    char lease[SLOTS_MOST * 2][200];
    int leases, tag[HOLDERS], tags;
    char place[HOLDERS][64]; /* in line; "": it does not wait */
} world;

static int64_t held(void)
{
    int64_t n = 0;

    for (int i = 0; i < HOLDERS; i++)
        n += world.till_us[i] > turns.now_us;
    return n;
}

/* Holders who live and jobs are never more than the rule; the gate counts the jobs and the holds that nobody has ended. */
static void check_world(void)
{
    char *state = redis_text("GET", STATE("t#0")), *last = state ? strrchr(state, ' ') : NULL;
    int64_t counted = last ? atoll(last + 1) : 0,
            leased = world.leases + redis_number("ZCARD", PREFIX "holds");

    free(state);
    if (held() + world.leases > world.slots || counted != leased)
        fail_msg("WEIR_SEED=%" PRIu64 ": %" PRId64 " hold, %d jobs run, of %d; the gate counts %" PRId64
                 " of %" PRId64,
                 world.seed, held(), world.leases, world.slots, counted, leased);
    turns_check();
}

/* Half of them wait in line, and hear no bell. An answer may be lost: then it is asked for again. */
static int64_t call_hold(int holder)
{
    char tag[32], *place = world.place[holder];
    bool waits = *place || random_in(&world.random, 0, 1);
    int64_t granted;

    snprintf(tag, sizeof tag, "h%d", world.tag[holder]);
    must(turns_script("hold", WORDS(waits ? "ask" : "wait", "", "t", "", "1", place, tag,
                                    waits ? "60000000" : "0", "10000000", "who")));
    granted = turns.reply->element[0]->integer;
    if (random_in(&world.random, 0, 3) == 0)
        return call_hold(holder);
    snprintf(place, sizeof world.place[holder], "%s", granted == 1 ? "" : turns.reply->element[6]->str);
    return granted;
}

static int64_t call_token(const char *script, int holder, bool ends)
{
    char token[32];
    const char *words[] = {token, ""};

    snprintf(token, sizeof token, "t~h%d", world.tag[holder]);
    must(turns_script(script, words, ends ? 2 : 1));
    return turns.reply->element[0]->integer;
}

static void step_of_holder(int i)
{
    int64_t now_us = turns.now_us;

    if (*world.place[i] && random_in(&world.random, 0, 5) == 0) { /* it dies while it waits */
        *world.place[i] = '\0';
    } else if (!world.till_us[i]) {
        if (!*world.place[i])
            world.tag[i] = ++world.tags;
        world.till_us[i] = call_hold(i) == 1 ? now_us + TTL_US : 0;
    } else if (random_in(&world.random, 0, 3) == 0) { /* it dies */
        world.tag[i] = ++world.tags;
        world.till_us[i] = 0;
    } else if (random_in(&world.random, 0, 1)) {
        assert_int_equal(call_token("hold_end", i, true), world.till_us[i] > now_us);
        world.till_us[i] = 0;
    } else {
        bool renewed = call_token("hold_renew", i, false) == 1;

        assert_int_equal(renewed, world.till_us[i] > now_us);
        world.till_us[i] = renewed ? now_us + TTL_US : 0;
    }
}

static void end_job(void)
{
    struct span token = span_str(world.lease[--world.leases]);

    finish("w", "t", &token, 1);
}

static size_t claim_jobs(void)
{
    size_t n = claim("w", SLOTS_MOST + 1, 0);

    for (size_t i = 0; i < n; i++)
        snprintf(world.lease[world.leases++], sizeof world.lease[0], "%s", token_texts[i]);
    return n;
}

/* What dead holders held is back a heartbeat after their end: all slots serve jobs again. */
static void expect_all_back(void)
{
    memset(world.till_us, 0, sizeof world.till_us);
    pass("w", TTL_US + LEASE_US / 4);
    while (world.leases > 0)
        end_job();
    assert_int_equal(claim_jobs(), world.slots);
    check_world();
    assert_int_equal(redis_number("EXISTS", PREFIX "holds", PREFIX "hold:t"), 0);
}

static void run_world(void)
{
    char rules[40];
    bool rated = random_in(&world.random, 0, 1);

    world.slots = (int)random_in(&world.random, 1, SLOTS_MOST);
    snprintf(rules, sizeof rules, "concurrency:%d%s", world.slots, rated ? " gcra:1000/1000000/1000" : "");
    must(turns_rate("t", rules));
    enqueue_many("t", 400);
    for (int n = 0; n < 60; n++) {
        int64_t what = random_in(&world.random, 0, 9);

        turns.now_us += random_in(&world.random, 0, 2 * SECOND_US);
        heartbeat("w");
        if (what < 6)
            step_of_holder((int)random_in(&world.random, 0, HOLDERS - 1));
        else if (what < 8 && world.leases > 0)
            end_job();
        else if (what == 8 && random_in(&world.random, 0, 3) == 0)
            redis_do("DEBUG", "RELOAD");
        else
            claim_jobs();
        check_world();
    }
    expect_all_back();
}

WORKER_TEST(test_jobs_and_holders_are_never_more_than_the_rule)
{
    int worlds = getenv("WEIR_WORLDS") ? atoi(getenv("WEIR_WORLDS")) : 8;

    for (int i = 0; i < worlds; i++) {
        memset(&world, 0, sizeof world);
        world.random = world.seed = random_seed() + (uint64_t)i;
        if (i)
            assert_int_equal(worker_begin(NULL), 0);
        run_world();
    }
}

/* ---- The library */

SCENE_TEST(test_of_c)
{
    struct weir *w = weir_new(turns.server.url, NULL);
    struct weir_hold a, b;

    assert_non_null(w);
    assert_int_equal(weir_rate_set(w, "gpu", "concurrency=1"), 0);
    assert_int_equal(weir_hold(w, "gpu", 0, 0, 0, &a), 0);
    assert_true(a.allowed && a.limit == 1 && a.remaining == 0 && strncmp(a.token, "gpu~", 4) == 0);
    assert_int_equal(weir_hold(w, "gpu", 0, 5, 0.3, &b), 0);
    assert_true(!b.allowed && !b.never && !*b.token);
    assert_int_equal(weir_hold_renew(w, a.token), 0);
    server_do(&turns.server, "FUNCTION", "FLUSH"); /* the next call loads them again */
    assert_int_equal(weir_hold_renew(w, a.token), 0);
    assert_int_equal(weir_hold_end(w, a.token, 1000000001), WEIR_EUSAGE);
    assert_int_equal(weir_hold_end(w, a.token, -1), 0);
    assert_int_equal(weir_hold_end(w, a.token, -1), WEIR_ENOTFOUND);
    assert_int_equal(weir_hold_renew(w, a.token), WEIR_ENOTFOUND);
    assert_int_equal(weir_hold_renew(w, "gpu"), WEIR_EINPUT);
    assert_int_equal(weir_hold(w, "gpu", 0, -1, 0, &b), WEIR_EUSAGE);
    assert_int_equal(weir_hold(w, "nothing", 0, 0, 0, &b), WEIR_ENOTFOUND);
    assert_int_equal(weir_take(w, "gpu", NULL, 1, 0, &(struct weir_take){0}), WEIR_EINPUT);
    weir_free(w);
}

/* ---- The command */

/* Its command ends with it, and who waits has the slot by the end of the lease, without any worker. */
SCENE_TEST(test_a_holder_that_is_killed)
{
    const char *folder = turns.server.folder;
    const char *const holds[] = {built("weir"),
                                 "hold",
                                 "gpu",
                                 "--redis",
                                 turns.server.url,
                                 "--ttl",
                                 "2s",
                                 "--",
                                 "/bin/sh",
                                 "-c",
                                 "echo $$ >held; exec sleep 1000",
                                 NULL};
    struct outcome said;
    char text[32];
    pid_t pid;

    unlink(textf("%s/held", folder));
    must(turns_rate("gpu", "concurrency:1"));
    pid = program_start(folder, "holder", holds);
    await_text(folder, "held", "\n");
    assert_true(read_text(folder, "held", text, sizeof text));
    kill(pid, SIGKILL);
    assert_int_equal(program_end(pid), 1000 + SIGKILL);
    run_in(&said, NULL, built("weir"), "hold", "gpu", "--redis", turns.server.url, "--wait", "--", "true",
           NULL);
    assert_int_equal(said.code, 0);
    await(kill((pid_t)atoi(text), 0) < 0);
}

TESTS(turns_start, turns_stop)

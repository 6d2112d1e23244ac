/* A master with two replicas under three Sentinels: what a failover does to producers and workers. What the replicas had is
 * never lost; the history of the handlers is the judge. */
#include <hiredis/hiredis.h>

#include "core/clock.h"
#include "tests/both.h"
#include "tests/several.h"
#include "tests/test.h"

#define JOBS 300

static struct several shared; /* the tests follow each other on it */

static int open_several(void **state)
{
    several_start_sentinels(&shared, NULL);
    return 0;
}

static int close_several(void **state)
{
    several_stop(&shared);
    return 0;
}

static long long length(struct server *s, const char *key)
{
    return server_number(s, "LLEN", key, NULL);
}

/* One that becomes a replica closes its connections. */
static bool has_jobs(struct server *s, const char *key, int jobs)
{
    char *answer = server_try(s, "LLEN", key, NULL);
    bool has = answer && atoi(answer) == jobs;

    free(answer);
    return has;
}

/* Has each replica what was enqueued? */
static bool replicas_have(struct several *s, struct stage *stage, int master, int jobs)
{
    for (int i = 0; i < s->count; i++)
        if (i != master && !has_jobs(&s->redis[i], stage_key(stage, "queue:default"), jobs))
            return false;
    return true;
}

/* JOBS jobs are in all three, and two workers have begun with them, 100 a second. */
static void begin_load(struct several *s, const char *ns, struct stage *stage, pid_t workers[2])
{
    several_stage(s, ns, stage);
    stage_rate(stage, "mark", "100/s");
    stage_enqueue(stage, "mark", NULL, 0, JOBS);
    await(replicas_have(s, stage, several_holder(s), JOBS));
    for (int i = 0; i < 2; i++)
        workers[i] = stage_actor(stage, i ? "second" : "first", "types=mark", "executors=4", "lease=2", NULL);
    await(history_count(stage, "effect", -1) > 20);
}

static void end_load(struct several *s, struct stage *stage, const pid_t workers[2], int jobs)
{
    several_follow(s, stage);
    stage_await_done(stage, jobs);
    for (int i = 0; i < 2; i++)
        assert_int_equal(stage_end(workers[i]), 0);
    stage_close(stage);
}

static bool accepts(struct stage *stage, int number)
{
    const char *id = textf("j%d", number);

    return weir_enqueue(stage->client, &(struct weir_job_spec){.type = "mark", .id = id}, NULL) == 0;
}

/* Before the other failovers: behind one Sentinels may give it up. At first there may be no good replica. */
static bool begins_failover(struct several *s)
{
    char *answer = server_ask(&s->sentinels[0], "SENTINEL", "FAILOVER", SEVERAL_MASTER, NULL);
    bool begins = strcmp(answer, "OK") == 0;

    free(answer);
    return begins;
}

TEST(a_person_orders_a_failover)
{
    struct several *s = &shared;
    struct stage stage;
    pid_t workers[2];
    int old = several_holder(s);

    begin_load(s, "ordered", &stage, workers);
    await(begins_failover(s));
    several_await_holder_other_than(s, old);
    end_load(s, &stage, workers, JOBS);
}

/* The old one comes back empty and takes writes until a Sentinel speaks to it. */
TEST(a_master_dies_and_comes_back)
{
    struct several *s = &shared;
    struct stage stage;
    pid_t workers[2];
    int old = several_holder(s), now;

    begin_load(s, "dies", &stage, workers);
    several_kill(s, old);
    now = several_await_holder_other_than(s, old);
    server_restart(&s->redis[old]);
    for (int i = 0; i < 50; i++)
        await(accepts(&stage, JOBS + i));
    assert_int_equal(several_holder(s), now);
    end_load(s, &stage, workers, JOBS + 50);
}

/* What a person reads who has written the address wrongly. */
TEST(wrong_addresses)
{
    struct several *s = &shared;
    static const struct {
        const char *change; /* of the url: what stands behind the hosts */
        const char *says;
        int code;
    } cases[] = {
        {"/nobody", "the Sentinels know no master nobody", 78},
        {"/" SEVERAL_MASTER "?sentinel-password=x", "the Sentinels refuse", 77},
        {"/" SEVERAL_MASTER "/x", "the database must be a number", 78},
        {"/" SEVERAL_MASTER "?sentinel-pasword=s3cret", "may stand", 78},
        {"", "the name of the master is missing", 78},
    };
    struct outcome o;
    char url[200];

    for (size_t i = 0; i < COUNT(cases); i++) {
        snprintf(url, sizeof url, "%.*s%s", (int)(strrchr(s->url, '/') - s->url), s->url, cases[i].change);
        run_in(&o, NULL, built("weir"), "status", "--redis", url, NULL);
        if (o.code != cases[i].code || !strstr(o.err, cases[i].says) || strstr(o.err, "s3cret"))
            fail_msg("%s: %d: %s", url, o.code, o.err);
    }
    snprintf(url, sizeof url, "redis+sentinel://127.0.0.1:%d/%s", s->ports[0], SEVERAL_MASTER);
    run_in(&o, NULL, built("weir"), "status", "--redis", url, NULL);
    if (o.code != 78 || !strstr(o.err, "no Sentinel"))
        fail_msg("%s: %d: %s", url, o.code, o.err);
    snprintf(url, sizeof url, "redis+cluster://127.0.0.1:%d", s->ports[0]);
    run_in(&o, NULL, built("weir"), "status", "--redis", url, NULL);
    if (o.code != 78 || !strstr(o.err, "no node of a cluster"))
        fail_msg("%s: %d: %s", url, o.code, o.err);
}

/* It cannot be made a replica, so it calls itself the master and takes writes: the Sentinels alone know better. Who hears them leaves
 * it at once, long before they would be asked again. */
TEST(a_master_that_stays)
{
    struct several *s = &shared;
    int old = several_holder(s), now;
    struct redis *r = both_redis(s->url);
    struct redisReply *reply;
    struct linked l;
    struct error e;
    int64_t named_us;

    both_open_link(&l, s->url);
    BOTH_RUN_UNTIL(&l, l.heard.up);
    assert_int_equal(both_ping(r, &e), 0);
    server_do(&s->redis[old], "ACL", "SETUSER", "default", "-replicaof", "-slaveof");
    await(begins_failover(s));
    now = several_await_holder_other_than(s, old);
    named_us = clock_mono_us();
    assert_int_equal(both_call(r, "INCR", "counter", strlen("counter"), &reply, &e), 0);
    freeReplyObject(reply);
    assert_int_equal(server_number(&s->redis[now], "EXISTS", "counter", NULL), 1);
    BOTH_RUN_UNTIL(&l, l.heard.down);
    assert_non_null(strstr(l.heard.why.text, "another one is the master now"));
    l.heard.up = false;
    BOTH_RUN_UNTIL(&l, l.heard.up);
    assert_true(clock_mono_us() - named_us < 25000000); /* they would be asked after 30 s */
    assert_int_equal(several_holder(s), now);
    both_close_link(&l);
    redis_free(r);
}

/* Two of three are gone: one answers. All are gone: a line says so. */
TEST(sentinels_are_gone)
{
    struct several *s = &shared;
    struct outcome o;

    server_kill(&s->sentinels[0]);
    server_kill(&s->sentinels[1]);
    run_in(&o, NULL, built("weir"), "enqueue", "mark", "--redis", s->url, NULL);
    assert_int_equal(o.code, 0);
    server_kill(&s->sentinels[2]);
    run_in(&o, NULL, built("weir"), "enqueue", "mark", "--redis", s->url, NULL);
    if (o.code != 69 || !strstr(o.err, "no Sentinel answers"))
        fail_msg("%d: %s", o.code, o.err);
}

/* ---- What a failover costs: WEIR_FAILOVERS=3 WEIR_TEST=all_failovers build/tests/test_sentinel */

#define STREAM_S 12
#define STREAM_EVERY_US 20000
#define EVENT_S 3

/* 50 jobs a second for 12 s, each sent again until it is accepted; after 3 s the master is killed, or a failover is ordered,
 * or both writes are paused and a failover is ordered. */
enum trial { KILL, ORDER, PAUSE_AND_ORDER };

static void one_failover(const char *name, enum trial trial, const char *const *options)
{
    struct several s;
    struct stage stage;
    int64_t begun_us, longest_us = 0, last_us;
    int accepted = 0, old;
    bool done = false;
    long long there;

    several_start_sentinels(&s, options);
    several_stage(&s, "stream", &stage);
    old = several_holder(&s);
    begun_us = last_us = clock_mono_us();
    while (clock_mono_us() < begun_us + STREAM_S * INT64_C(1000000)) {
        if (!done && clock_mono_us() > begun_us + EVENT_S * INT64_C(1000000)) {
            done = true;
            if (trial == PAUSE_AND_ORDER)
                server_do(&s.redis[old], "CLIENT", "PAUSE", "5000", "WRITE");
            if (trial == KILL)
                several_kill(&s, old);
            else
                server_do(&s.sentinels[0], "SENTINEL", "FAILOVER", SEVERAL_MASTER);
        }
        if (accepts(&stage, accepted)) {
            accepted++;
            longest_us = clock_mono_us() - last_us > longest_us ? clock_mono_us() - last_us : longest_us;
            last_us = clock_mono_us();
        }
        clock_sleep_until(clock_mono_us() + STREAM_EVERY_US);
    }
    several_await_holder_other_than(&s, old);
    several_follow(&s, &stage);
    there = length(&stage.server, stage_key(&stage, "queue:default"));
    printf("%-36s %4d accepted, %3lld lost, %.1f s without an answer\n", name, accepted, accepted - there,
           (double)longest_us / 1e6);
    stage_close(&stage);
    several_stop(&s);
}

TEST(all_failovers)
{
    static const char *const needs_one[] = {"--min-replicas-to-write", "1", "--min-replicas-max-lag", "2",
                                            NULL};

    if (!getenv("WEIR_FAILOVERS"))
        return;
    for (int i = 0; i < atoi(getenv("WEIR_FAILOVERS")); i++) {
        one_failover("kill -9", KILL, NULL);
        one_failover("kill -9, min-replicas-to-write 1", KILL, needs_one);
        one_failover("SENTINEL FAILOVER", ORDER, NULL);
        one_failover("SENTINEL FAILOVER, min-replicas 1", ORDER, needs_one);
        one_failover("CLIENT PAUSE, SENTINEL FAILOVER", PAUSE_AND_ORDER, NULL);
    }
}

STAGE_TESTS(open_several, close_several)

/* Two versions of Weir on one Redis, as while a new one is rolled out. The other version is this program with
 * other scripts (tests/versions): its library has another name, and so have all its functions. */
#include <signal.h>

#include "core/clock.h"
#include "tests/stage.h"
#include "throttle/verify/verify.h"

enum { TIMED = 300, KEYS = 10, OF_KEY = 20, JOBS = TIMED + KEYS * OF_KEY, WORKERS = 6 };

#define OTHER "tests/versions/other" /* other scripts */
#define NEWER "tests/versions/newer" /* the next format of the data */

/* Of this version (NULL), or of another. */
static pid_t start(struct stage *s, int number, const char *other)
{
    const char *name = textf("worker%d", number);
    const char *trace = textf("trace=%d.trace", number);
    const char *program = textf("program=%s", other ? built(other) : "/proc/self/exe");

    return stage_actor(s, name, "types=timed,keyed", "executors=4", "lease=1", trace, program, NULL);
}

/* More than two workers have executors for. */
static void enqueue_all(struct stage *s)
{
    stage_rate(s, "timed", "150/s,burst=5");
    stage_rate(s, "keyed", "20/s,burst=2,by=args.k concurrency=1,by=args.k");
    stage_enqueue(s, "timed", "{\"sleep\":0.06}", 0, TIMED);
    for (int i = 0; i < KEYS * OF_KEY; i++) {
        const char *args = textf("{\"k\":%d,\"sleep\":0.06}", i % KEYS);

        stage_enqueue(s, "keyed", args, TIMED + i, 1);
    }
}

static int libraries(struct stage *s)
{
    char *list = server_ask(&s->server, "FUNCTION", "LIST", "LIBRARYNAME", "weir_*", NULL);
    int n = 0;

    for (const char *at = list; (at = strstr(at, "library_name")); at++)
        n++;
    free(list);
    return n;
}

static int effects_of(struct stage *s, pid_t pid)
{
    struct history h = history_read(s);
    int n = 0;

    for (int i = 0; i < h.count; i++)
        n += h.events[i].pid == pid && strcmp(h.events[i].what, "effect") == 0;
    history_free(&h);
    return n;
}

static void expect_rates_kept(struct stage *s)
{
    struct verify verify;
    struct error e;
    size_t torn;

    assert_int_equal(verify_init(&verify, &e), 0);
    for (int i = 0; i < WORKERS; i++) {
        if (verify_read(&verify, textf("%s/%d.trace", s->server.folder, i), &torn, &e) != 0)
            fail_msg("%s", e.text);
    }
    assert_int_equal(verify_replay(&verify, &e), 0);
    assert_int_equal(verify.violations, 0);
    verify_free(&verify);
}

/* Two of each, one of each is killed, and its jobs go on with the others. Then the old version is stopped. */
STAGE_TEST(two_versions_side_by_side)
{
    pid_t workers[WORKERS];
    struct verdict v;

    for (int i = 0; i < 4; i++)
        workers[i] = start(s, i, i % 2 ? OTHER : NULL);
    stage_await_workers(s, 4);
    assert_int_equal(libraries(s), 2);
    enqueue_all(s);
    await(effects_of(s, workers[0]) > 0 && effects_of(s, workers[1]) > 0);
    for (int i = 0; i < 2; i++)
        kill(workers[i], SIGKILL);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(program_end(workers[i]), 1000 + SIGKILL);
        workers[4 + i] = start(s, 4 + i, OTHER);
    }
    await(history_count(s, "effect", -1) >= JOBS / 2);
    assert_int_equal(stage_end(workers[2]), 0);
    v = stage_await_done(s, JOBS);
    assert_in_range(v.twice, 0, 8); /* those that the two had in flight */
    for (int i = 3; i < WORKERS; i++)
        assert_int_equal(stage_end(workers[i]), 0);
    expect_rates_kept(s);
}

/* The data are of a version that keeps them in another way. */
STAGE_TEST(another_format)
{
    pid_t early = start(s, 0, NULL), late;

    stage_await_workers(s, 1);
    await(stage_number(s, "HGET", stage_key(s, "about"), "format") == 1);
    stage_do(s, "HSET", stage_key(s, "about"), "format", "2");
    stage_enqueue(s, "timed", NULL, 0, 1);
    await(history_count(s, "effect", 0) == 1); /* it goes on as long as it is connected */
    late = start(s, 1, OTHER);
    assert_int_equal(program_end(late), 78);
    await_text(s->server.folder, "worker1.err",
               "format: the data of this namespace have format 2, and this version of Weir reads 1");
    stage_do(s, "CLIENT", "KILL", "TYPE", "normal");
    assert_int_equal(program_end(early), 78);
}

static void expect_to_say_so(struct stage *s, const char *command)
{
    struct outcome o;

    run_in(&o, NULL, built("weir"), command, "--redis", s->server.url, "--namespace", s->ns, NULL);
    assert_int_equal(o.code, 78);
    assert_non_null(
        strstr(o.err, "format: the data of this namespace have format 2, and this version of Weir reads 1"));
}

/* A version begins that writes the next format: the others end what they run, take no more, and say so. Nothing is lost or buried;
 * producers of this version go on, and what they enqueue is run. */
STAGE_TEST(a_newer_format)
{
    pid_t early = start(s, 0, NULL), late;

    stage_await_workers(s, 1);
    stage_enqueue(s, "timed", "{\"wait\":\"go\"}", 0, 1);
    await(history_count(s, "begin", 0) == 1);
    start(s, 1, NEWER);
    await(stage_number(s, "EXISTS", stage_key(s, "format:2")) == 1);
    assert_int_equal(stage_number(s, "HGET", stage_key(s, "about"), "oldest"), 1);
    stage_enqueue(s, "timed", "{\"fail\":1,\"after\":0.1}", 1, 20);
    await_text(s->server.folder, "worker0.err", "have format 2");
    write_text(s->server.folder, "go", "");
    assert_int_equal(program_end(early), 78);
    assert_int_equal(history_count(s, "effect", 0), 1);
    late = start(s, 2, NULL);
    assert_int_equal(program_end(late), 78);
    expect_to_say_so(s, "status");
    expect_to_say_so(s, "doctor");
    stage_await_done(s, 21);
}

/* The old version again: what it does not read it leaves alone, until the newer one is back. */
STAGE_TEST(and_back_again)
{
    pid_t newer = start(s, 0, NEWER), older;

    await(stage_number(s, "EXISTS", stage_key(s, "format:2")) == 1);
    stage_enqueue(s, "timed", NULL, 0, 1);
    await(history_count(s, "effect", 0) == 1);
    kill(newer, SIGKILL);
    assert_int_equal(program_end(newer), 1000 + SIGKILL);
    stage_enqueue(s, "timed", NULL, 1, 5);
    older = start(s, 1, NULL);
    assert_int_equal(program_end(older), 78);
    assert_int_equal(stage_number(s, "LLEN", stage_key(s, "queue:default")), 5);
    newer = start(s, 2, NEWER);
    stage_await_done(s, 6);
    assert_int_equal(stage_number(s, "HGET", stage_key(s, "about"), "oldest"), 2);
}

STAGE_TESTS(NULL, NULL)

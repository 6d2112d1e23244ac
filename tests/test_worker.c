/* The worker, end to end: what handlers answer, how it is set up, threads that do not start, and the program.
 * When jobs start: test_worker_starts.c. How it ends: test_worker_stops.c. Its Redis: test_worker_redis.c.
 * Commands as handlers: test_command.c. Crashes: test_crash.c. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "core/clock.h"
#include "tests/stage.h"

/* That of all code here: in a worker it fails FAILING_THREADS times before it works. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
    static atomic_int tries;
    const char *failing = getenv("FAILING_THREADS");
    __typeof__(pthread_create) *create;

    if (failing && atomic_fetch_add(&tries, 1) < atoi(failing))
        return EAGAIN;
    *(void **)&create = dlsym(RTLD_NEXT, "pthread_create");
    return create(thread, attr, run, arg);
}

static pid_t start_without_threads(struct stage *s, const char *failing)
{
    pid_t worker;

    setenv("FAILING_THREADS", failing, 1);
    worker = stage_actor(s, "worker", "executors=1", NULL);
    unsetenv("FAILING_THREADS");
    return worker;
}

/* ---- What handlers answer */

/* Handlers on several threads enqueue by the client that each is lent. */
STAGE_TEST(a_client_is_lent)
{
    pid_t worker = stage_actor(s, "worker", "executors=8", NULL);

    for (int i = 0; i < 40; i++) {
        stage_push(s, "mark", textf("{\"next\":\"j%d\"}", 40 + i), i, 1);
    }
    await(stage_stat(s, "mark", "done") == 80);
    assert_int_equal(stage_end(worker), 0);
}

STAGE_TEST(done_retry_dead_throttled)
{
    struct history h;
    char *dead;
    pid_t worker;

    stage_push(s, "mark", NULL, 0, 1);
    stage_push(s, "mark", "{\"fail\":2,\"after\":0.2}", 1, 1);
    stage_push(s, "mark", "{\"dead\":\"no such customer\"}", 2, 1);
    stage_push(s, "mark", "{\"throttled\":0.1}", 3, 1);
    stage_push_text(s,
                    "{\"id\":\"j4\",\"type\":\"mark\",\"max_attempts\":2,\"args\":{\"fail\":9,\"after\":0}}");
    worker = stage_actor(s, "worker", NULL);
    await(history_count(s, "begin", 3) > 2);
    write_text(s->server.folder, "j3.open", "");
    await(stage_stat(s, "mark", "done") == 3 && stage_stat(s, "mark", "dead") == 2);
    assert_int_equal(stage_end(worker), 0);

    h = history_read(s);
    for (int i = 0; i < 3; i++)
        assert_int_equal(history_nth(&h, "begin", 1, i)->attempt, i + 1);
    for (int i = 1; i < 3; i++) {
        int64_t gap_us = history_nth(&h, "begin", 1, i)->at_us - history_nth(&h, "begin", 1, i - 1)->at_us;

        assert_in_range(gap_us, 200 * MS, 14 * SECOND); /* the usual is 15 s and more */
    }
    assert_int_equal(history_nth(&h, "effect", 3, 0)->attempt, 1);
    assert_int_equal(history_nth(&h, "begin", 4, 1)->attempt, 2);
    assert_int_equal(history_count(s, "begin", 4), 2);
    history_free(&h);
    dead = stage_dead(s);
    assert_non_null(strstr(dead, "default/mark/ no such customer\n@1,0,0,"));
    assert_non_null(strstr(dead, ";{\"id\":\"j2\""));
    assert_non_null(strstr(dead, "default/mark/ failed 2 times: attempt 2 failed\n@2,0,0,e"));
    free(dead);
}

STAGE_TEST(large_jobs_are_settled_a_few_at_a_time)
{
    enum { JOBS = 32, BYTES = 60000 };
    char *args = malloc(BYTES + 100);
    pid_t worker;
    int len = sprintf(args, "{\"wait\":\"go\",\"fail\":1,\"after\":600,\"pad\":\"");

    memset(args + len, 'x', (size_t)(BYTES - len));
    strcpy(args + BYTES, "\"}");
    stage_log_ends(s);
    worker = stage_actor(s, "large", "executors=32", NULL);
    stage_enqueue(s, "mark", args, 0, JOBS);
    await(history_count(s, "begin", -1) == JOBS);
    write_text(s->server.folder, "go", "");
    await(stage_stat(s, "mark", "retried") == JOBS);
    assert_in_range(stage_most_failed(s), 1, 8);
    stage_end(worker);
    free(args);
}

/* The provider gave no time: its type rests for 1 s, then for 2. */
STAGE_TEST(throttled_without_a_time)
{
    struct history h;
    pid_t worker;

    stage_rate(s, "mark", "1000/s");
    stage_push(s, "mark", "{\"throttled\":-1}", 0, 1);
    worker = stage_actor(s, "worker", NULL);
    await(history_count(s, "begin", 0) > 2);
    write_text(s->server.folder, "j0.open", "");
    await(stage_stat(s, "mark", "done") == 1);
    assert_int_equal(stage_end(worker), 0);
    h = history_read(s);
    for (int i = 1; i < 3; i++) {
        int64_t gap_us = history_nth(&h, "begin", 0, i)->at_us - history_nth(&h, "begin", 0, i - 1)->at_us;

        assert_in_range(gap_us, i * SECOND - 10 * MS, 10 * SECOND);
        assert_int_equal(history_nth(&h, "begin", 0, i)->attempt, 1);
    }
    history_free(&h);
}

STAGE_TEST(executors_run_side_by_side)
{
    stage_actor(s, "worker", "executors=7", NULL);
    stage_enqueue(s, "mark", "{\"wait\":\"go\"}", 0, 9);
    await(history_count(s, "begin", -1) == 7);
    write_text(s->server.folder, "go", "");
    stage_await_done(s, 9);
    assert_int_equal(history_count(s, "begin", -1), 9);
}

/* Many short jobs: prefetched, each run once. */
STAGE_TEST(thousands_once_each)
{
    stage_actor(s, "one", "executors=4", NULL);
    stage_actor(s, "two", "executors=4", NULL);
    stage_enqueue(s, "mark", NULL, 0, 5000);
    assert_int_equal(stage_await_done(s, 5000).twice, 0);
    assert_int_equal(history_count(s, "begin", -1), 5000);
}

static int never_called(struct weir_job *job, void *arg)
{
    (void)job, (void)arg;
    return WEIR_DONE;
}

TEST(wrong_set_up)
{
    static const struct {
        struct weir_worker_options options;
        const char *part;
    } cases[] = {
        {{.executors = -1}, "executors"},
        {{.executors = 2000}, "executors"},
        {{.queues = "a,b,a"}, "named twice"},
        {{.queues = "a,,b"}, "not a valid queue"},
        {{.queues = "a=0"}, "weight"},
        {{.queues = "a=1x"}, "weight"},
        {{.queues = ""}, "not a valid queue"},
        {{.lease_s = 0.1}, "lease"},
        {{.ns = "a:b"}, "namespace"},
        {{.redis_url = "http://x"}, "begins with none"},
        {{.trace_file = "/nowhere/x"}, "trace /nowhere/x"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct weir_worker *w = weir_worker_new(&cases[i].options);
        int rc;

        assert_int_equal(weir_worker_handle(w, "mark", never_called, NULL), 0);
        rc = weir_worker_run(w);
        if (rc >= 0 || !strstr(weir_worker_message(w), cases[i].part))
            fail_msg("case %zu: %d %s", i, rc, weir_worker_message(w));
        assert_true(fcntl(STDIN_FILENO, F_GETFD) >= 0); /* it closes only what it has opened */
        weir_worker_free(w);
    }
}

TEST(wrong_handlers)
{
    struct weir_worker *w = weir_worker_new(NULL);

    assert_int_equal(weir_worker_run(w), WEIR_EUSAGE);
    assert_int_equal(weir_worker_handle(w, "mark", never_called, NULL), 0);
    assert_int_equal(weir_worker_handle(w, "mark", never_called, NULL), WEIR_EUSAGE);
    assert_int_equal(weir_worker_handle(w, "two words", never_called, NULL), WEIR_EUSAGE);
    assert_int_equal(weir_worker_handle(w, "other", NULL, NULL), WEIR_EUSAGE);
    assert_int_equal(weir_worker_exec(w, "other", "  "), WEIR_EUSAGE);
    assert_int_equal(weir_worker_exec(w, "other", "./no-such-program x"), WEIR_ECONFIG);
    assert_int_equal(weir_worker_load(w, "./nothing.so"), WEIR_ECONFIG);
    weir_worker_free(w);
}

/* ---- No threads */

STAGE_TEST(a_thread_is_tried_again)
{
    start_without_threads(s, "4");
    stage_rate(s, "mark", "100/s");
    stage_push(s, "mark", NULL, 0, 1);
    await(stage_stat(s, "mark", "done") == 1);
}

/* Another worker may have one. */
STAGE_TEST(a_job_without_a_thread_is_given_back)
{
    pid_t worker = start_without_threads(s, "1000000");

    stage_rate(s, "mark", "100/s");
    stage_push(s, "mark", NULL, 0, 1);
    await(stage_stat(s, "mark", "back") >= 1);
    await_text(s->server.folder, "worker.err", "no thread; its jobs are given back");
    await_text(s->server.folder, "worker.err",
               "worker: cannot start a thread: Resource temporarily unavailable; raise");
    assert_int_equal(stage_end(worker), 0);
    assert_int_equal(stage_judge(s, 1).present, 1);
}

STAGE_TESTS(NULL, NULL)

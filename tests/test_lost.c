/* A Redis that comes back without what it had, or with less: workers as processes, a real Redis. The judges
 * are the history that the handlers wrote, and the lines of the workers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/clock.h"
#include "tests/stage.h"

#define SECOND 1000000

static int open_stage(void **state)
{
    struct stage *s = calloc(1, sizeof *s);

    *state = s;
    stage_open(s, false);
    return 0;
}

static int close_stage(void **state)
{
    stage_close(*state);
    free(*state);
    return 0;
}

/* How often a worker's log says that. */
static int times_said(struct stage *s, const char *name, const char *what)
{
    char log[16384], file[64];
    int n = 0;

    snprintf(file, sizeof file, "%s.err", name);
    assert_true(read_text(s->server.folder, file, log, sizeof log));
    for (const char *at = log; (at = strstr(at, what)); at++)
        n++;
    return n;
}

/* The most effects in any second. */
static int most_in_a_second(struct stage *s)
{
    struct history h = history_read(s);
    int most = 0;

    for (int i = 0; i < h.count; i++) {
        int n = 0;

        for (int k = i; k < h.count; k++)
            n += strcmp(h.events[k].what, "effect") == 0 && h.events[k].at_us - h.events[i].at_us < SECOND;
        most = n > most ? n : most;
    }
    history_free(&h);
    return most;
}

/* Three workers under load; all is gone at once; what comes then keeps the old rate. */
static void rates_outlive_their_redis(void **state)
{
    enum { BEFORE = 40, AFTER = 500, WORKERS = 3 };
    static const char *const names[WORKERS] = {"one", "two", "three"};
    struct stage *s = *state;
    pid_t workers[WORKERS];
    char *log;

    stage_rate(s, "timed", "20/s,burst=1");
    stage_rate(s, "mark", "7/s");
    for (int i = 0; i < WORKERS; i++)
        workers[i] = stage_actor(s, names[i], i < 2 ? "types=timed" : "types=timed,mark", "executors=5",
                                 "lease=2", NULL);
    stage_await_workers(s, WORKERS);
    stage_enqueue(s, "timed", NULL, 0, BEFORE);
    await(history_count(s, "effect", -1) >= 10);
    free(server_ask(&s->server, "FLUSHALL", NULL));
    stage_enqueue(s, "timed", NULL, BEFORE, AFTER);
    await(history_count(s, "effect", BEFORE + 25) == 1);
    assert_in_range(most_in_a_second(s), 15, 22); /* of each life 20, and what two clocks differ */
    for (int i = 0; i < WORKERS; i++) {
        await(times_said(s, names[i], "lost all of Weir's data") == 1);
        assert_int_equal(stage_end(workers[i]), 0);
    }
    assert_int_equal(times_said(s, "three", "had lost are written again: ") +
                         times_said(s, "one", "had lost are written again: ") +
                         times_said(s, "two", "had lost are written again: "),
                     server_number(&s->server, "LLEN", stage_key(s, "changes"), NULL));
    log = server_ask(&s->server, "LRANGE", stage_key(s, "changes"), "0", "-1", NULL);
    assert_non_null(strstr(log, "written again, after Redis lost them: "));
    assert_non_null(strstr(log, "limit timed"));
    assert_non_null(strstr(log, "limit mark"));
    assert_true(server_number(&s->server, "LLEN", stage_key(s, "changes"), NULL) <= 2);
    free(log);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rates_outlive_their_redis, open_stage, close_stage),
    };
    int rc = stage_actor_main(argc, argv);

    if (rc >= 0)
        return rc;
    return cmocka_run_group_tests_name("lost data", tests, NULL, NULL);
}

/* weir worker list, quiet, stop: workers that run are seen, and do what an operator orders. */
#include <signal.h>
#include <sys/wait.h>

#include "core/clock.h"
#include "queue/inspect/order.h"
#include "queue/status/status.h"
#include "tests/stage.h"
#include "view/workers.h"

/* The row of a process; the caller frees *status. */
static const struct worker_status *row_of(struct stage *s, pid_t pid, struct status *status)
{
    assert_int_equal(status_workers(s->client, status), 0);
    for (size_t i = 0; i < status->worker_count; i++)
        if (status->workers[i].pid == pid)
            return &status->workers[i];
    return NULL;
}

static void order(struct stage *s, pid_t pid, const char *word)
{
    struct status status;
    const struct worker_status *row = row_of(s, pid, &status);

    assert_non_null(row);
    assert_int_equal(worker_order(s->client, row->instance, word), 0);
    status_free(&status);
}

static bool has_heard(struct stage *s, pid_t pid)
{
    struct status status;
    const struct worker_status *row = row_of(s, pid, &status);
    bool heard = row && row->heard;

    status_free(&status);
    return heard;
}

/* Gives an order to a process that stands still. */
static void order_unheard(struct stage *s, pid_t pid, const char *word)
{
    kill(pid, SIGSTOP);
    assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid);
    order(s, pid, word);
    assert_false(has_heard(s, pid));
    kill(pid, SIGCONT);
}

static bool has_order(struct stage *s, pid_t pid, const char *word)
{
    struct status status;
    const struct worker_status *row = row_of(s, pid, &status);
    bool has = row && strcmp(row->order, word) == 0;

    status_free(&status);
    return has;
}

STAGE_TEST(a_worker_says_what_it_is)
{
    pid_t pid = stage_actor(s, "worker", "queues=mail.*,default", "executors=3", NULL);
    struct status status;
    const struct worker_status *row;

    stage_await_workers(s, 1);
    row = row_of(s, pid, &status);
    assert_non_null(row);
    assert_int_equal(row->executors, 3);
    assert_int_equal(json_array_size(row->queues), 2);
    assert_string_equal(json_string_value(json_array_get(row->queues, 0)), "mail.*");
    assert_string_equal(row->version, WEIR_VERSION);
    assert_string_equal(row->order, "");
    assert_false(row->silent);
    assert_int_equal(status.queue_count + status.type_count, 0);
    status_free(&status);
}

/* What it runs ends, nothing more begins, and it stays; another worker takes the rest. */
STAGE_TEST(a_quiet_worker_takes_no_more_jobs)
{
    pid_t quiet = stage_actor(s, "quiet", "executors=1", "lease=4", NULL);

    stage_await_workers(s, 1);
    stage_enqueue(s, "mark", "{\"sleep\":2}", 0, 1);
    await(history_count(s, "begin", 0) == 1);
    order(s, quiet, "quiet");
    await_text(s->server.folder, "quiet.err", "takes no more jobs");
    stage_enqueue(s, "mark", NULL, 1, 5);
    await(history_count(s, "effect", 0) == 1);
    assert_true(has_order(s, quiet, "quiet"));
    assert_int_equal(history_count(s, "begin", -1), 1);
    stage_actor(s, "other", "lease=1", NULL);
    assert_int_equal(stage_await_done(s, 6).twice, 0);
}

STAGE_TEST(a_quiet_worker_takes_jobs_again)
{
    pid_t pid = stage_actor(s, "worker", "executors=1", "lease=1", NULL);

    stage_await_workers(s, 1);
    order(s, pid, "resume"); /* it is not quiet: nothing to hear */
    order(s, pid, "quiet");
    await(has_heard(s, pid));
    stage_enqueue(s, "mark", NULL, 0, 3);
    order(s, pid, "resume");
    assert_int_equal(stage_await_done(s, 3).twice, 0);
    await(has_order(s, pid, ""));
}

/* Until a heartbeat has brought it, an order is no more than ordered; nor is it that again when it is given twice. */
STAGE_TEST(an_order_is_heard_by_a_heartbeat)
{
    pid_t pid = stage_actor(s, "worker", "lease=4", NULL);

    stage_await_workers(s, 1);
    order_unheard(s, pid, "quiet");
    await(has_heard(s, pid));
    await_text(s->server.folder, "worker.err", "takes no more jobs");
    order(s, pid, "quiet");
    assert_true(has_heard(s, pid));
    order_unheard(s, pid, "stop");
    assert_int_equal(program_end(pid), 0);
}

/* Without a worker, and as lists and pages say it. */
TEST(the_words_of_an_order)
{
    static const struct {
        struct worker_status row;
        const char *state;
    } rows[] = {
        {{.order = ""}, "working"},
        {{.order = "quiet"}, "quiet ordered"},
        {{.order = "quiet", .heard = true}, "quiet"},
        {{.order = "resume", .heard = true}, "resume ordered"},
        {{.order = "stop"}, "stop ordered"},
        {{.order = "stop", .heard = true}, "stopping"},
        {{.order = "stop", .heard = true, .silent = true}, "silent"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_string_equal(worker_state(&rows[i].row), rows[i].state);
}

STAGE_TEST(a_stopped_worker_finishes_and_ends)
{
    pid_t pid = stage_actor(s, "worker", "executors=1", "lease=4", NULL);

    stage_await_workers(s, 1);
    stage_enqueue(s, "mark", "{\"sleep\":2}", 0, 1);
    await(history_count(s, "begin", 0) == 1);
    order(s, pid, "stop");
    assert_int_equal(program_end(pid), 0);
    assert_int_equal(history_count(s, "effect", 0), 1);
}

/* An order belongs to the process: it holds under each id that this has after it has connected again. */
STAGE_TEST(an_order_outlives_a_connection)
{
    pid_t pid = stage_actor(s, "worker", "lease=1", NULL);

    stage_await_workers(s, 1);
    stage_do(s, "CLIENT", "KILL", "TYPE", "normal");
    order(s, pid, "stop");
    assert_int_equal(program_end(pid), 0);
}

STAGE_TEST(who_stops_is_not_told_to_be_quiet)
{
    char *kept;

    assert_int_equal(worker_order(s->client, "process", "stop"), 0);
    assert_int_equal(worker_order(s->client, "process", "quiet"), 0);
    kept = server_ask(&s->server, "GET", stage_key(s, "order:process"), NULL);
    assert_memory_equal(kept, "stop ", 5); /* and since when */
    free(kept);
    assert_int_not_equal(worker_order(s->client, "process", "dance"), 0);
    assert_int_not_equal(worker_order(s->client, "no name", "stop"), 0);
    stage_do(s, "DEL", stage_key(s, "order:process"));
    stage_do(s, "SADD", stage_key(s, "order:process"), "x");
    assert_int_not_equal(worker_order(s->client, "process", "stop"), 0);
}

STAGE_TESTS(NULL, NULL)

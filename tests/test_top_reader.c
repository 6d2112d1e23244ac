/* The thread of weir top that talks with Redis: what it reads, and that orders are carried out, once, as they were given. */
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cli/top/reader.h"
#include "core/client/client.h"
#include "core/clock.h"
#include "tests/client.h"
#include "tests/test.h"

#define HOUR_US INT64_C(3600000000)
#define LIMIT_MS 60000 /* for what must come */

static struct reader *reader;
static int wake = -1;

static int set_up(void **state)
{
    client_begin(state);
    wake = eventfd(0, EFD_CLOEXEC);
    reader = reader_start(weir_new(server.url, NULL), HOUR_US, wake);
    assert_non_null(reader);
    return 0;
}

static int tear_down(void **state)
{
    while (!reader_end(reader))
        ; /* this machine is busy */
    close(wake);
    return client_end(state);
}

static void ask(const char *expected, const char *command, const char *key, const char *a, const char *b)
{
    char *answer;

    answer = server_ask(&server, command, textf(PREFIX "%s", key), a, b, NULL);
    if (expected)
        assert_string_equal(answer, expected);
    free(answer);
}

static void fill(const char *queue, const char *type, int jobs)
{
    for (int i = 0; i < jobs; i++)
        assert_int_equal(weir_enqueue(w, &(struct weir_job_spec){.type = type, .queue = queue}, NULL), 0);
}

/* ---- News */

static struct news news; /* what has come and nobody has looked at */

static void forget(struct news *n)
{
    top_snapshot_free(n->snapshot);
    free(n->pasts);
    free(n->result);
    *n = (struct news){.snapshot = NULL};
}

/* Of each kind the last one stays. */
static void take(void)
{
    eventfd_t count;
    struct news more, old = {.snapshot = NULL};

    assert_int_equal(poll(&(struct pollfd){.fd = wake, .events = POLLIN}, 1, LIMIT_MS), 1);
    eventfd_read(wake, &count);
    more = reader_take(reader);
#define KEEP(kind) (old.kind = more.kind ? news.kind : NULL, more.kind = more.kind ? more.kind : news.kind)
    (void)KEEP(snapshot);
    (void)KEEP(pasts);
    (void)KEEP(result);
    news = more;
    forget(&old);
}

/* The first one since it began, or since the last order was given. */
static const struct top_snapshot *next_snapshot(void)
{
    while (!news.snapshot)
        take();
    return news.snapshot;
}

/* What became of it. */
static const struct result *order(enum order_kind kind, const char *name)
{
    struct order o = {.kind = kind};

    snprintf(o.name, sizeof o.name, "%s", name);
    forget(&news);
    reader_order(reader, &o);
    while (!news.result)
        take();
    return news.result;
}

static void expect_done(enum order_kind kind, const char *name, const char *said)
{
    const struct result *r = order(kind, name);

    assert_string_equal(r->said, said);
    assert_int_equal(r->status, 0);
}

static void expect_refused(enum order_kind kind, const char *name, const char *said)
{
    const struct result *r = order(kind, name);

    assert_true(r->status < 0);
    if (!strstr(r->said, said))
        fail_msg("%s", r->said);
}

/* ---- Orders */

static int forget_news(void **state)
{
    int rc = tear_down(state);

    forget(&news);
    return rc;
}

TEST_WITH(queues, set_up, forget_news)
{
    fill("q", "mail", 7);
    expect_done(ORDER_PAUSE_QUEUE, "q", "queue q paused");
    ask("1", "HEXISTS", "halted", "q/q", NULL);
    expect_done(ORDER_RESUME_QUEUE, "q", "queue q resumed");
    ask("0", "HEXISTS", "halted", "q/q", NULL);
}

TEST_WITH(types, set_up, forget_news)
{
    fill("q", "mail", 7);
    expect_done(ORDER_PAUSE_TYPE, "mail", "type mail paused");
    expect_done(ORDER_RESUME_TYPE, "mail", "type mail resumed");
}

TEST_WITH(limits, set_up, forget_news)
{
    ask("1", "HSET", "limits", "mail", "gcra:10/1000000/10");
    expect_done(ORDER_PAUSE_LIMIT, "mail", "limit mail paused for 10m");
    expect_done(ORDER_RESUME_LIMIT, "mail", "limit mail resumed");
    expect_done(ORDER_RESUME_LIMIT, "mail", "limit mail was not paused");
    expect_refused(ORDER_PAUSE_LIMIT, "gone", "gone");
}

TEST_WITH(workers, set_up, forget_news)
{
    expect_refused(ORDER_QUIET_WORKER, "w1", "w1");
}

/* ---- Readings */

/* It reads again in an hour, but for an order that has changed something. */
TEST_WITH(a_change_is_seen_at_once, set_up, forget_news)
{
    assert_int_equal(next_snapshot()->status.queue_count, 0);
    fill("q", "mail", 1);
    order(ORDER_PAUSE_QUEUE, "q");
    assert_true(next_snapshot()->status.queues[0].paused_us > 0);
    assert_true(news.interval_us >= HOUR_US);
}

static void want(bool of_limits, const char *name, int count)
{
    struct wanted *wanted = calloc(1, sizeof *wanted);

    wanted->of_limits = of_limits;
    for (int i = 0; i < count; i++)
        snprintf(wanted->names[wanted->count++], TOP_NAME_SIZE, "%s%d", name, i);
    reader_want(reader, wanted);
    free(wanted);
}

static void await_past(const char *name, bool of_limit)
{
    while (!news.pasts || !pasts_find(news.pasts, name, of_limit))
        take();
}

/* Nothing is carried out twice: a second one would find it resumed. */
TEST_WITH(an_order_is_carried_out_once, set_up, forget_news)
{
    fill("q", "mail", 9);
    order(ORDER_PAUSE_QUEUE, "q");
    ask("1", "HDEL", "halted", "q/q", NULL);
    want(false, "t", 1); /* the next round */
    await_past("t0", false);
    ask("0", "HEXISTS", "halted", "q/q", NULL);
}

/* The past of what is shown: all of it, a few a round; of what is no longer shown nothing is kept. */
TEST_WITH(pasts_of_what_is_shown, set_up, forget_news)
{
    want(false, "t", PASTS_MOST);
    await_past("t127", false);
    assert_int_equal(news.pasts->count, PASTS_MOST);
    want(true, "t", PASTS_MOST);
    await_past("t127", true);
    assert_int_equal(news.pasts->count, PASTS_MOST);
    assert_null(pasts_find(news.pasts, "t0", false));
    want(true, "u", 3);
    await_past("u2", true);
    assert_int_equal(news.pasts->count, 3);
}

/* Since when it is asked in vain is known while the call hangs, and no longer when it has answered. */
TEST_WITH(a_redis_that_hangs_is_known, set_up, forget_news)
{
    int64_t until_us = clock_mono_us() + LIMIT_MS * INT64_C(1000);

    next_snapshot();
    kill(server.pid, SIGSTOP);
    want(false, "t", 1);
    while (!news.unanswered_us && clock_mono_us() < until_us)
        news.unanswered_us = reader_take(reader).unanswered_us;
    assert_true(news.unanswered_us > 0);
    kill(server.pid, SIGCONT);
    await_past("t0", false);
    assert_int_equal(news.unanswered_us, 0);
}

TESTS(client_start_server, client_stop)

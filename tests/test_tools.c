/* The tools of other tests that misbehave on purpose: slow links, stalled ones, clocks that step. */
#include "tests/test.h"
#include <hiredis/hiredis.h>

#include "core/clock.h"
#include "tests/clock_shift.h"
#include "tests/program.h"
#include "tests/proxy.h"
#include "tests/server.h"

#define MS INT64_C(1000)
#define SECOND INT64_C(1000000)

struct fixture {
    struct server server;
    struct proxy *near, *far;
};

static int open_all(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    server_start_shifted(&f->server, true, NULL);
    f->near = proxy_start(&f->server);
    f->far = proxy_start(&f->server);
    *state = f;
    return 0;
}

static int close_all(void **state)
{
    struct fixture *f = *state;

    proxy_stop(f->near);
    proxy_stop(f->far);
    server_stop(&f->server);
    free(f);
    return 0;
}

static redisContext *dial(struct proxy *p)
{
    redisContext *c = redisConnectUnix(proxy_url(p) + strlen("unix://"));

    assert_non_null(c);
    assert_int_equal(c->err, 0);
    return c;
}

static void receive(redisContext *c)
{
    void *reply;

    assert_int_equal(redisGetReply(c, &reply), REDIS_OK);
    assert_non_null(reply);
    freeReplyObject(reply);
}

static void send_ping(redisContext *c)
{
    int done;

    assert_int_equal(redisAppendCommand(c, "PING"), REDIS_OK);
    do
        assert_int_equal(redisBufferWrite(c, &done), REDIS_OK);
    while (!done);
}

static int64_t round_trip_us(redisContext *c)
{
    int64_t begun_us = clock_mono_us();

    send_ping(c);
    receive(c);
    return clock_mono_us() - begun_us;
}

/* Every byte has the delay of its own: what is sent a while after the first comes that while after it. */
TEST_WITH(a_link_far_away, open_all, close_all)
{
    struct fixture *f = *state;
    redisContext *near = dial(f->near), *far = dial(f->far);
    int64_t sent_us[2];

    round_trip_us(far);
    proxy_delay(f->far, PROXY_REQUESTS, 30 * MS);
    proxy_delay(f->far, PROXY_REPLIES, 20 * MS);
    assert_true(round_trip_us(far) >= 50 * MS);
    for (int i = 0; i < 2; i++) {
        sent_us[i] = clock_mono_us();
        send_ping(far);
        clock_sleep_until(clock_mono_us() + 15 * MS);
    }
    for (int i = 0; i < 2; i++) {
        receive(far);
        assert_true(clock_mono_us() - sent_us[i] >= 50 * MS);
    }
    round_trip_us(near);
    redisFree(near);
    redisFree(far);
}

TEST_WITH(a_link_that_stalls, open_all, close_all)
{
    struct fixture *f = *state;
    redisContext *near = dial(f->near), *far = dial(f->far);

    round_trip_us(far);
    round_trip_us(near);
    for (enum proxy_side side = PROXY_REQUESTS; side <= PROXY_REPLIES; side++) {
        bool near_goes_on = false;

        for (int tries = 0; tries < 20 && !near_goes_on; tries++) {
            int64_t begun_us = clock_mono_us();

            proxy_stall(f->far, side, 150 * MS);
            send_ping(far);
            send_ping(far);
            near_goes_on = round_trip_us(near) < 100 * MS;
            receive(far);
            assert_true(clock_mono_us() - begun_us >= 150 * MS);
            receive(far);
        }
        assert_true(near_goes_on);
    }
    redisFree(near);
    redisFree(far);
}

/* How far Redis's clock is before ours. */
static int64_t shift_us(struct fixture *f)
{
    char *time = server_ask(&f->server, "TIME", NULL), *us = strchr(time, '\n');
    int64_t shift_us = atoll(time) * SECOND + atoll(us + 1) - clock_wall_us();

    free(time);
    return shift_us;
}

static bool is_about(int64_t a_us, int64_t b_us)
{
    return llabs(a_us - b_us) < 5 * SECOND;
}

TEST_WITH(a_clock_of_redis_alone, open_all, close_all)
{
    static const int64_t shifts_us[] = {3600 * SECOND, -3600 * SECOND, 86400 * 365 * SECOND};
    struct fixture *f = *state;

    assert_true(is_about(shift_us(f), 0));
    for (size_t i = 0; i < COUNT(shifts_us); i++) {
        server_shift_clock(&f->server, shifts_us[i]);
        assert_true(is_about(shift_us(f), shifts_us[i]));
        server_restart(&f->server);
        assert_true(is_about(shift_us(f), shifts_us[i]));
    }
    server_shift_clock(&f->server, 0);
    assert_true(is_about(shift_us(f), 0));
}

TEST_WITH(a_clock_of_a_program, open_all, close_all)
{
    static const char *const date[] = {"/bin/date", "+%s", NULL};
    struct fixture *f = *state;
    struct outcome o;
    const char *file = textf("%s/mine", f->server.folder);

    clock_shift_set(file, -86400 * SECOND);
    clock_shift_enter(file);
    program_run(&o, NULL, date);
    clock_shift_leave();
    assert_true(is_about(atoll(o.out) * SECOND, clock_wall_us() - 86400 * SECOND));
    program_run(&o, NULL, date);
    assert_true(is_about(atoll(o.out) * SECOND, clock_wall_us()));
}

TESTS(NULL, NULL)

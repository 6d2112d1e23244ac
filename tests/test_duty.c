/* The pacing duty, end to end: one worker of a group has it, a second looks after it, the others leave the queues to them. */
#include <inttypes.h>
#include <signal.h>

#include "core/clock.h"
#include "tests/proxy.h"
#include "tests/stage.h"

/* The process that holds the pacing duty; second: that looks after it. */
static pid_t on_duty(struct stage *s, bool second)
{
    char *duty = server_ask(&s->server, "EVAL",
                            "local h = redis.call('HGETALL', KEYS[1]) for i = 1, #h, 2 do "
                            "if not h[i]:find('/') == (ARGV[1] == '0') then return h[i + 1] end end",
                            "1", stage_key(s, "duty"), second ? "1" : "0", NULL),
         *info;
    const char *pid;
    pid_t result;

    duty[strcspn(duty, " ")] = '\0';
    info = server_ask(&s->server, "HGET", stage_key(s, "active:%s", duty), "@", NULL);
    pid = strstr(info, "\"pid\":");
    result = pid ? atoi(pid + 6) : 0;
    free(duty);
    free(info);
    return result;
}

/* Of the jobs below most. */
static int64_t longest_gap_us(struct stage *s, const char *event, int most)
{
    struct history h = history_read(s);
    int64_t longest_us = 0, before_us = 0;

    for (int i = 0; i < h.count; i++) {
        if (strcmp(h.events[i].what, event) != 0 || h.events[i].job >= most)
            continue;
        if (before_us && h.events[i].at_us - before_us > longest_us)
            longest_us = h.events[i].at_us - before_us;
        before_us = h.events[i].at_us;
    }
    history_free(&h);
    return longest_us;
}

/* Of two workers, the one on duty. */
STAGE_TEST(duty_of_one_that_stands_still)
{
    pid_t workers[2], gone, heir;

    stage_rate(s, "mark", "50/s,burst=1");
    for (int i = 0; i < 2; i++)
        workers[i] = stage_actor(s, i ? "two" : "one", "executors=3", "lease=1", NULL);
    await((on_duty(s, false) == workers[0] && on_duty(s, true) == workers[1]) ||
          (on_duty(s, false) == workers[1] && on_duty(s, true) == workers[0]));
    gone = on_duty(s, false);
    heir = workers[gone == workers[0]];
    stage_enqueue(s, "mark", NULL, 0, 120);
    await(history_count(s, "effect", -1) > 10);
    kill(gone, SIGSTOP);
    stage_await_done(s, 120);
    assert_int_equal(on_duty(s, false), heir);
    assert_int_equal(stage_end(heir), 0);
    kill(gone, SIGCONT);
}

/* The third worker asks by its heartbeats whether others look after the queue, also where a poll would come a little before. When both are gone it looks itself: nobody calls it, as the
 * job comes by a bare RPUSH. */
STAGE_TEST(a_third_worker_does_not_claim)
{
    enum { HEARTBEATS = 6 };
    struct proxy *proxy = proxy_start(&s->server);
    pid_t workers[2], third;
    int claims;

    for (int i = 0; i < 2; i++)
        workers[i] = stage_actor(s, i ? "two" : "one", "executors=3", "lease=6", NULL);
    await(on_duty(s, false) != 0 && on_duty(s, true) != 0);
    third = stage_actor(s, "third", textf("url=%s", proxy_url(proxy)), "executors=3", "lease=6", NULL);
    stage_await_workers(s, 3);
    stage_await_heartbeats(s, 1);
    claims = proxy_claims(proxy);
    stage_await_heartbeats(s, HEARTBEATS);
    claims = proxy_claims(proxy) - claims;
    assert_in_range(claims, 0, HEARTBEATS / 2); /* of a busy machine: the heartbeats of others were late */
    for (int i = 0; i < 2; i++) {
        kill(workers[i], SIGKILL);
        assert_int_equal(program_end(workers[i]), 1000 + SIGKILL);
    }
    stage_push(s, "mark", NULL, 0, 1);
    assert_int_equal(stage_await_done(s, 1).twice, 0);
    assert_int_equal(on_duty(s, false), third);
    assert_int_equal(stage_end(third), 0);
    proxy_stop(proxy);
}

/* Redis's clock goes back in the middle of paced starts, and they go on. Side by side. */
TRIAL_WITH(clock_of_redis_goes_back, NULL, NULL)
{
    static const struct {
        const char *executors;
        bool flood; /* no executor is idle */
        int64_t back_us;
        int jobs, at; /* so many of them have begun then */
    } cases[] = {{"executors=3", false, INT64_C(3600) * SECOND, 30, 5},
                 {"executors=1", true, INT64_C(3600) * SECOND, 30, 5},
                 {"executors=3", false, 4500 * MS, 240, 220}}; /* less than what passed since a heartbeat */
    enum { CASES = COUNT(cases) };
    struct stage all[CASES];
    pid_t workers[CASES];

    (void)state;
    for (int i = 0; i < CASES; i++) {
        struct stage *s = &all[i];

        stage_open_shifted(s);
        stage_rate(s, "mark", "40/s,burst=1");
        stage_enqueue(s, "mark", NULL, 0, cases[i].jobs);
        if (cases[i].flood)
            stage_enqueue(s, "flood", "{\"sleep\":0.01}", 1000, 1000);
        workers[i] = stage_actor(s, "worker", "types=mark,flood", cases[i].executors, NULL);
    }
    for (int i = 0; i < CASES; i++) {
        await(history_count(&all[i], "begin", cases[i].at) == 1);
        server_shift_clock(&all[i].server, -cases[i].back_us);
    }
    for (int i = 0; i < CASES; i++) {
        await(history_count(&all[i], "begin", cases[i].jobs - 1) == 1);
        stage_in_time(longest_gap_us(&all[i], "begin", cases[i].jobs), 4000 * MS);
        assert_int_equal(stage_end(workers[i]), 0);
        stage_close(&all[i]);
    }
}

STAGE_TESTS(NULL, NULL)

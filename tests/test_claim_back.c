/* Slots that come back: of jobs that cost less than was said, and of jobs that were claimed and have not started. Under virtual time. */
#include "tests/play.h"
#include "tests/scene.h"
#include "throttle/cost.h"

PLAY("claim_back")

static uint32_t draw(uint32_t *seed, uint32_t below)
{
    *seed = *seed * 1664525 + 1013904223;
    return (*seed >> 16) % below;
}

/* A worker claims; some answers come too late, and those jobs have not started. Returns how many have; *lost_us: what being late may have
 * cost a bucket, which drains meanwhile. */
static int start_some_late(const char *worker, uint32_t *seed, int64_t *lost_us)
{
    int64_t passed = 50000 + draw(seed, 800000);
    size_t count = claim(worker, 1 + (int)draw(seed, 5), 0);
    int started = 0;
    struct args a = {0};

    turns.now_us += passed;
    settle_request(&a, PREFIX, turns.now_us, worker);
    for (size_t i = 0; i < count; i++) {
        bool late = draw(seed, 3) > 0;

        turns_add_end(&a, late ? SETTLE_BACK : SETTLE_RETRY, tokens[i], late ? 1 : 10 * SECOND_US * 86400,
                      NULL);
        started += !late;
        *lost_us += late ? passed : 0;
    }
    if (count > 0)
        assert_int_equal(settled(&a), 0);
    else
        args_free(&a);
    return started;
}

/* Five a day, of which some come too late again and again, to either of two workers: five start. */
SCENE_TEST(test_a_quota_of_a_day_is_used_whole_however_late)
{
    static const char *const rules[] = {"gcra:5/86400000000/5",         "token-bucket:5/86400000000/5",
                                        "fixed-window:5/86400000000/0", "sliding-log:5/86400000000",
                                        "sliding-window:5/86400000000", "gcra:5/86400000000/5,by=key"};

    for (uint32_t run = 0; run < 10 * COUNT(rules); run++) {
        const char *rule = rules[run % COUNT(rules)];
        uint32_t seed = run;
        int64_t lost_us = 0;
        int started = 0;

        worker_begin(state);
        start("v");
        must(turns_rate("slow", rule));
        enqueue("default", "slow", "a b c d e f g");
        for (int round = 0; round < 10; round++)
            started += start_some_late(round % 2 ? "w" : "v", &seed, &lost_us);
        turns.now_us += lost_us;
        started += (int)claim("w", 10, 0);
        fail_if(started != 5, "%s, run %u: %d of 5 have started", rule, run, started);
    }
}

/* ---- Where they come back to */

struct taken {
    const char *worker;
    char token[200];
};

/* So many jobs more are taken by that worker. */
static void take(struct taken *taken, int *count, const char *worker, int n)
{
    assert_int_equal(claim(worker, n, 0), n);
    for (int i = 0; i < n; i++, ++*count) {
        taken[*count].worker = worker;
        snprintf(taken[*count].token, sizeof taken->token, "%.*s", (int)turns.claim.leases[i].token.len,
                 turns.claim.leases[i].token.at);
    }
}

/* By a word of its handler, unstarted, or as its worker leaves with all that it has left. */
static void come_back(const struct taken *taken)
{
    int way = rand() % 8;
    int64_t stale; /* it may have come back with its worker */

    if (way == 0)
        must(turns_adopt("", taken->worker, NULL, 0, default_queue, NULL));
    else if (way < 3)
        must(
            turns_settle_end(taken->worker, SETTLE_THROTTLED, span_str(taken->token), SECOND_US, "", &stale));
    else
        must(turns_settle_end(taken->worker, SETTLE_BACK, span_str(taken->token), way % 2, "", &stale));
}

/* Whoever comes back when, and how: at the head of its lane they stand as they were taken. */
SCENE_TEST(test_jobs_come_back_to_the_order_in_which_they_were_taken)
{
    for (int seed = 1; seed <= 100; seed++) {
        struct taken taken[6];
        int count = 0;

        srand((unsigned)seed);
        worker_begin(state);
        start("v");
        must(turns_rate("slow", "100/1000000/3"));
        enqueue_many("slow", 9);
        take(taken, &count, "w", 2);
        turns.now_us++;
        take(taken, &count, "v", 1);
        turns.now_us += 10000;
        take(taken, &count, "v", 1);
        turns.now_us += 20000;
        take(taken, &count, "w", 2);
        for (int left = count; left > 0; left--) {
            int i = rand() % left;
            struct taken t = taken[i];

            come_back(&t);
            taken[i] = taken[left - 1];
        }
        expect_list(LANE("slow"), "slow0 slow1 slow2 slow3 slow4 slow5");
        turns_check();
    }
}

#define RUNNING_MOST 50

/* What runs, in the order of its slots. */
static struct {
    char token[200];
    int64_t end_us;
} running[RUNNING_MOST];
static int running_count;

static void run_claimed(int64_t takes_us)
{
    for (size_t i = 0; i < turns.claim.lease_count; i++) {
        const struct lease *lease = &turns.claim.leases[i];

        snprintf(running[running_count].token, sizeof running->token, "%.*s", (int)lease->token.len,
                 lease->token.at);
        running[running_count++].end_us = lease->slot_us + takes_us;
    }
}

/* Settles those that have ended by now, each by what it spent. */
static void end_due(const char *spent)
{
    struct args a = {0};
    int n = 0;

    while (n < running_count && running[n].end_us <= turns.now_us)
        n++;
    if (n == 0)
        return;
    settle_request(&a, PREFIX, turns.now_us, "w");
    for (int i = 0; i < n; i++)
        settle_cost(&a, span_str(running[i].token), &(struct job_cost){.plain = atoi(spent)});
    for (int i = 0; i < n; i++)
        settle_end(&a, SETTLE_FINISH, span_str(running[i].token), 0, NULL);
    assert_int_equal(settled(&a), 0);
    running_count -= n;
    memmove(running, running + n, (size_t)running_count * sizeof *running);
}

/* How many jobs of cost 5 start in two seconds, after one, when each spends 1 and takes that long. */
static int starts_of_cheap_jobs(const char *rule, int64_t takes_us)
{
    int64_t next_us = 0;
    int starts = 0;

    worker_begin(NULL);
    must(turns_rate("slow", rule));
    redis_do("EVAL",
             "for i = 1, 1000 do redis.call('RPUSH', KEYS[1], '{\"id\":\"' .. i .. "
             "'\",\"type\":\"slow\",\"cost\":5}') end",
             "1", QUEUE);
    running_count = 0;
    for (; turns.now_us < BEGIN_US + 3 * SECOND_US; turns.now_us += 1000) {
        bool ended = running_count > 0 && running[0].end_us <= turns.now_us;

        end_due("1");
        if (running_count == RUNNING_MOST || (!ended && turns.now_us < next_us))
            continue;
        claim("w", RUNNING_MOST - running_count, 0);
        next_us = turns.claim.next_us;
        if (turns.now_us > BEGIN_US + SECOND_US)
            starts += (int)turns.claim.lease_count;
        run_claimed(takes_us);
    }
    turns_check();
    return starts;
}

/* However long they run: what they did not spend lets others start. The windows count a job's slots while its
 * start stands in them. */
SCENE_TEST(test_what_was_not_spent_lets_others_start)
{
    static const struct {
        const char *rule;
        int64_t takes_us;
        int least;
    } cases[] = {
        {"gcra:100/1000000/100", 20000, 195},         {"gcra:100/1000000/100", 100000, 195},
        {"token-bucket:100/1000000/100", 20000, 195}, {"gcra:100/1000000/5", 2000, 170},
        {"gcra:1000/7000000/50", 60000, 270},         {"fixed-window:100/1000000/0", 20000, 180},
        {"sliding-log:100/1000000", 20000, 180},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        int starts = starts_of_cheap_jobs(cases[i].rule, cases[i].takes_us);

        print_message("%s, %lld ms: %d starts in 2 s\n", cases[i].rule, (long long)cases[i].takes_us / 1000,
                      starts);
        assert_in_range(starts, cases[i].least, 1000);
    }
}

TESTS(turns_start, turns_stop)

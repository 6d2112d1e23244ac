/* Jobs on a partition where their type does not live: a claim buries them with that reason, and a retry moves them to where it does, each once,
 * whatever dies between. */
#include "tests/scene.h"

#include <hiredis/hiredis.h>

#include "core/client/client.h"
#include "core/script/script.h"
#include "queue/dead/dead.h"
#include "queue/inspect/job_act.h"

#define DEAD PREFIX "dead"
#define THERE "weir:{2}:queue:default"
#define HERE "3" /* partitions: of three "t" lives on 0, where the scene is, and "slow" on 2 */
#define REASON "wrong partition: its type lives on partition 2; weir dead retry moves it there"

static struct weir *w;

static int begin(void **state)
{
    w = weir_new(turns.server.url, NULL);
    return w ? scene_begin(state) : -1;
}

static int end(void **state)
{
    weir_free(w);
    return 0;
}

/* From now on there are three partitions; what waits of "slow" is in the wrong place. */
static void divide(void)
{
    for (int p = 0; p < 3; p++)
        redis_do("HSET", textf("weir:{%d}:about", p), "partitions", HERE, NULL);
}

/* So many are dead here, and the newest for that reason. */
static void expect_dead(int count)
{
    char *record = redis_text("ZRANGE", DEAD, "-1", "-1", NULL);

    assert_int_equal(redis_number("ZCARD", DEAD, NULL), count);
    fail_if(count > 0 && !strstr(record, REASON), "dead: %s", record);
    free(record);
}

static int count_jobs(const json_t *page, void *arg)
{
    *(int64_t *)arg += answer_int(page, "jobs");
    return 0;
}

/* weir dead retry --all; returns how many jobs it says. */
static int64_t try_retry(const char *into, int *status)
{
    int64_t jobs = 0;

    *status = dead_walk(&(struct dead_walk){
        .w = w, .now_us = turns.now_us, .verb = "retry", .into = into, .take = count_jobs, .arg = &jobs});
    return jobs;
}

static int64_t retry(void)
{
    int status;
    int64_t jobs = try_retry(NULL, &status);

    fail_if(status < 0, "%s", weir_message(w));
    return jobs;
}

TEST_WITH(test_from_the_queue, begin, end)
{
    start("w");
    enqueue("default", "t", "t1");
    enqueue("default", "slow", "s1 s2");
    enqueue("default", "t", "t2");
    push("default", "{\"args\":[],\"type\":\"slow\"}");
    divide();
    assert_int_equal(claim("w", 10, 0), 2);
    assert_int_equal(redis_number("LLEN", QUEUE, NULL), 0);
    expect_dead(3);
    turns_check();

    assert_int_equal(retry(), 3);
    expect_dead(0);
    assert_int_equal(redis_number("LLEN", THERE, NULL), 3);
    assert_int_equal(redis_number("LLEN", QUEUE, NULL), 0);
    expect_text("3", "HGET", PREFIX "stats:slow", "revived", NULL);
    expect_text("3", "HGET", "weir:{2}:stats:slow", "enqueued", NULL);
    expect_text("", "HGET", "weir:{2}:types", "slow", NULL);
    expect_text("default", "SMEMBERS", "weir:{2}:queues", NULL);
    turns_check();
    assert_int_equal(retry(), 0);
}

/* Parked behind a closed gate, retried, and in the lane of those that run alone. */
TEST_WITH(test_from_lanes, begin, end)
{
    start("w");
    enqueue("default", "slow", "s1");
    assert_int_equal(claim("w", 1, 0), 1);
    settle("w", SETTLE_RETRY, tokens[0], SECOND_US, "it broke");
    must(turns_rate("slow", CLOSED_RULE));
    enqueue("default", "slow", "s2 s3 s4");
    assert_int_equal(claim("w", 10, 0), 1);
    assert_int_equal(redis_number("LLEN", LANE("slow"), NULL), 2);
    must(turns_rate("slow", ""));
    divide();
    assert_int_equal(claim("w", 10, 0), 0);
    expect_dead(2);
    assert_int_equal(redis_number("EXISTS", LANE("slow"), NULL), 0);
    turns_check();

    turns.now_us += SECOND_US;
    promote(1);
    assert_int_equal(claim("w", 10, 0), 0);
    expect_dead(3);
    start("v");
    pass("v", LEASE_US / 2); /* w dies with s2 */
    pass("v", LEASE_US);
    assert_int_equal(claim("v", 10, 0), 0);
    expect_dead(4);
    turns_check();
    assert_int_equal(retry(), 4);
    assert_int_equal(redis_number("LLEN", THERE, NULL), 4);
}

/* A worker without a handler for the type says the same. */
TEST_WITH(test_without_a_handler, begin, end)
{
    start("w");
    enqueue("default", "slow", "s1 s2");
    divide();
    ask.types = NAMES("t");
    assert_int_equal(claim("w", 1, 0), 0);
    expect_dead(2);
    assert_int_equal(redis_number("EXISTS", PREFIX "held:default", NULL), 0);
    turns_check();
}

/* It begins anew, as each retried job does, and takes its lock there. Its batch stays, where it has died. */
TEST_WITH(test_what_is_kept, begin, end)
{
    char *entry;

    start("w");
    use_secret();
    push("default", "@3,1,0,s" SECRET ",bnight,ukey;{\"id\":\"s1\",\"type\":\"slow\"}");
    redis_do("SET", PREFIX "unique:key", "s1", NULL);
    redis_do("HSET", PREFIX "batch:night", "total", "2", NULL);
    divide();
    assert_int_equal(claim("w", 1, 0), 0);
    assert_int_equal(redis_number("EXISTS", PREFIX "unique:key", NULL), 0);
    assert_int_equal(retry(), 1);
    expect_text("1", "HGET", PREFIX "batch:night", "dead", NULL);
    expect_text("s1", "GET", "weir:{2}:unique:key", NULL);
    entry = redis_text("LINDEX", THERE, "0", NULL);
    assert_true(strncmp(entry, "@0,0,0,s", 8) == 0);
    assert_non_null(strstr(entry, ",ukey"));
    assert_non_null(strstr(entry, ";{\"id\":\"s1\",\"type\":\"slow\"}"));
    assert_null(strstr(entry, ",b"));
    free(entry);
}

/* Sends a step by hand: of that record, there or here. Returns how many jobs it says. */
static int64_t step(const char *script, const char *record)
{
    bool arrives = strcmp(script, "dead_arrive") == 0;
    json_t *answer;
    struct args a = {0};
    int64_t jobs;

    assert_int_equal(client_at(w, arrives ? 2 : 0), 0);
    script_begin(&a, script, w->prefix, turns.now_us);
    if (arrives) {
        args_add(&a, "seed");
        args_add(&a, "default");
    }
    args_add(&a, record);
    fail_if(client_ask(w, script, &a, &answer) < 0, "%s", weir_message(w));
    jobs = answer_int(answer, "jobs");
    json_decref(answer);
    return jobs;
}

/* The command dies behind each step; the next one begins anew, and one that was only slow repeats its own. */
TEST_WITH(test_killed_between_the_steps, begin, end)
{
    start("w");
    divide();
    for (int killed = 1; killed <= 3; killed++) {
        char *record;

        push("default", textf("{\"id\":\"s%d\",\"type\":\"slow\"}", killed));
        assert_int_equal(claim("w", 1, 0), 0);
        record = redis_text("ZRANGE", DEAD, "0", "0", NULL);
        if (killed > 1)
            assert_int_equal(step("dead_arrive", record), 1);
        if (killed > 2)
            assert_int_equal(step("dead_leave", record), 1);
        assert_int_equal(retry(), killed > 2 ? 0 : 1);
        assert_int_equal(step("dead_arrive", record), 0);
        assert_int_equal(step("dead_leave", record), 0);
        assert_int_equal(redis_number("LLEN", THERE, NULL), killed);
        expect_dead(0);
        free(record);
    }
}

/* Two that are equal are two. */
TEST_WITH(test_the_same_pushed_twice, begin, end)
{
    start("w");
    divide();
    push("default", "{\"id\":\"s1\",\"type\":\"slow\"}");
    push("default", "{\"id\":\"s1\",\"type\":\"slow\"}");
    assert_int_equal(claim("w", 1, 0), 0);
    assert_int_equal(retry(), 2);
    assert_int_equal(redis_number("LLEN", THERE, NULL), 2);
}

/* More than one page has, among them large ones, and others that are dead for reasons of their own. */
TEST_WITH(test_many, begin, end)
{
    size_t size = 300000;
    char *body = malloc(size + 64);

    start("w");
    enqueue("default", "t", "t1");
    assert_int_equal(claim("w", 1, 0), 1);
    settle("w", SETTLE_DEAD, tokens[0], 0, "it broke");
    enqueue_many("slow", 300);
    memset(body, ' ', size);
    memcpy(body, "{\"id\":\"big\",\"type\":\"slow\"", 25);
    body[size - 1] = '}';
    body[size] = '\0';
    push("default", body);
    push("default", "{\"id\":\"last\",\"type\":\"slow\"}");
    free(body);
    divide();
    for (int i = 0; i < 10 && redis_number("LLEN", QUEUE, NULL) > 0; i++)
        claim("w", 1, 0);
    expect_dead(303);
    assert_int_equal(retry(), 303);
    expect_dead(0);
    assert_int_equal(redis_number("LLEN", QUEUE, NULL), 1);
    assert_int_equal(redis_number("LLEN", THERE, NULL), 302);
}

/* weir job retry. */
TEST_WITH(test_by_a_search, begin, end)
{
    const struct job_bounds most = {.looked_at = 100000, .jobs = 1};
    struct job_search search = {.count = 0};
    json_t *result;

    start("w");
    divide();
    push("default", "{\"id\":\"s1\",\"type\":\"slow\"}");
    push("default", "{\"id\":\"s2\",\"type\":\"slow\"}");
    assert_int_equal(claim("w", 1, 0), 0);
    assert_int_equal(job_search_add(&search, "id", "s2", &turns.error), 0);
    fail_if(job_actions(w, turns.now_us, &search, "retry", NULL, &most, &result) < 0, "%s", weir_message(w));
    assert_int_equal(answer_int(result, "jobs"), 1);
    json_decref(result);
    expect_dead(1);
    assert_int_equal(redis_number("LLEN", THERE, NULL), 1);
}

/* To another queue, and to one whose key is of a wrong kind there: the jobs stay dead here. */
TEST_WITH(test_into_a_queue, begin, end)
{
    int status;

    start("w");
    divide();
    push("default", "{\"id\":\"s1\",\"type\":\"slow\"}");
    assert_int_equal(claim("w", 1, 0), 0);
    redis_do("SET", "weir:{2}:queue:other", "x", NULL);
    (void)try_retry("other", &status);
    assert_int_equal(status, WEIR_ECONFIG);
    expect_dead(1);
    redis_do("DEL", "weir:{2}:queue:other", NULL);
    assert_int_equal(try_retry("other", &status), 1);
    assert_int_equal(status, 0);
    assert_int_equal(redis_number("LLEN", "weir:{2}:queue:other", NULL), 1);
    expect_dead(0);
}

TEST_WITH(test_wrong_arguments, begin, end)
{
    divide();
    expect_refused(WORDS("dead_arrive", "dead_arrive | seed | seed default | seed default nothing",
                         "dead_arrive a/b default w~default/slow/~r\n{}", "dead_leave"));
    redis_do("SET", DEAD, "x", NULL);
    assert_int_equal(call_line("dead_leave x"), WEIR_ECONFIG);
}

TESTS(turns_start, turns_stop)

/* No call keeps Redis long, however large the bodies are: it moves half a mebibyte, or one body that is
 * larger. How many a call moves is exact. How long it takes is the CPU time of the server's thread; it is
 * printed, and four times what a quiet machine needs fails. */
#include <inttypes.h>

#include "tests/scene.h"

#define LARGE (64 * 1024)
#define LARGEST (1024 * 1024)
#define LOAD (512 * 1024)    /* slices.BYTES */
#define SHORT_US 20000       /* of a call that moves LOAD */
#define ONE_LARGEST_US 40000 /* of one that moves a body of LARGEST */
#define WALK_US 100000       /* of one through which a claim walks to a member, past all that JSON may have */
#define CALLS_MOST 100

/* ---- Measuring */

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* One call of the case that is looked at; returns how many entries it has moved, -1 when nothing is left. */
typedef int one_call(void);

/* Calls until all count entries were moved, bytes each; of one that is larger than LOAD a call may take so
 * long. */
static void measure_long(const char *name, one_call *call, int count, size_t bytes, int64_t one_us)
{
    int64_t took_us[CALLS_MOST], quick_us;
    int most = bytes > LOAD ? 1 : (int)(LOAD / bytes), calls = 0, moved = 0;

    while (moved < count) {
        int64_t begin_us = server_cpu_us();
        int n;

        fail_if(calls == CALLS_MOST, "%s: %d of %d after %d calls", name, moved, count, calls);
        n = call();
        took_us[calls++] = server_cpu_us() - begin_us;
        fail_if(n > most, "%s: %d bodies of %zu bytes in one call, %d were right", name, n, bytes, most);
        moved += n;
    }
    qsort(took_us, (size_t)calls, sizeof *took_us, by_size);
    quick_us = took_us[(calls - 1) / 4];
    print_message("%-24s %7zu bytes: %2d calls, most of them take %.1f ms and more\n", name, bytes, calls,
                  (double)quick_us / 1e3);
    if (server_took_more(quick_us, bytes > LOAD ? one_us : SHORT_US))
        fail_msg("%s: of %d calls most took %" PRId64 " us and more of Redis, the longest %" PRId64 " us",
                 name, calls, quick_us, took_us[calls - 1]);
}

static void measure(const char *name, one_call *call, int count, size_t bytes)
{
    measure_long(name, call, count, bytes, ONE_LARGEST_US);
}

/* ---- Bodies */

/* "<front>{"id":"<type><n>","type":"<type>","args":{"pad":"xxx...","x":"<n>"}}", in all so many bytes; the
 * caller's to free. */
static char *make_body(const char *front, const char *type, int n, size_t bytes)
{
    char *body = malloc(bytes + 1), end[64];
    int len = snprintf(body, bytes, "%s{\"id\":\"%s%d\",\"type\":\"%s\",\"args\":{\"pad\":\"", front, type, n,
                       type);
    int end_len = snprintf(end, sizeof end, "\",\"x\":\"k%d\"}}", n % 7);

    memset(body + len, 'x', bytes - (size_t)len);
    memcpy(body + bytes - (size_t)end_len, end, (size_t)end_len + 1);
    return body;
}

static void push_bodies(const char *type, int count, size_t bytes)
{
    for (int i = 0; i < count; i++) {
        char *body = make_body("", type, i, bytes);

        push("default", body);
        free(body);
    }
}

static const struct load {
    int count;
    size_t bytes;
} loads[] = {{32, LARGE}, {5, LARGEST}};

/* ---- What is due, or was set aside */

static const char *record_front;

/* apart: each has a time of its own, else all have the same. */
static void plant(const char *key, bool apart, int count, size_t bytes)
{
    char front[64], score[24];

    for (int i = 0; i < count; i++) {
        char *record;

        snprintf(front, sizeof front, record_front, i);
        snprintf(score, sizeof score, "%d", apart ? i + 1 : 1);
        record = make_body(front, "t", i, bytes);
        redis_do("ZADD", key, score, record);
        free(record);
    }
}

static int call_promote(void)
{
    int64_t moved;

    must(turns_promote(200, &moved));
    return (int)moved;
}

SCENE_TEST(test_what_is_due_is_promoted_a_few_at_a_time_where_it_is_large)
{
    static const char *const fronts[] = {"q a%d default t\n", "l a%d default/t/\n"};

    for (size_t f = 0; f < COUNT(fronts); f++)
        for (size_t i = 0; i < COUNT(loads); i++) {
            turns_flush(NULL);
            record_front = fronts[f];
            plant(PREFIX "later", true, loads[i].count, loads[i].bytes);
            measure(fronts[f], call_promote, loads[i].count, loads[i].bytes);
        }
}

static const char *batch_script;

static int call_batch(void)
{
    const char *words[] = {"b", "500", "seed"};
    bool resumes = strcmp(batch_script, "batch_resume") == 0;

    must(turns_ask(batch_script, words, resumes ? 3 : 2));
    return (int)answer_int(turns.answer, resumes ? "returned" : "dropped");
}

SCENE_TEST(test_what_was_set_aside_returns_a_few_at_a_time_where_it_is_large)
{
    static const char *const scripts[] = {"batch_resume", "batch_drop"};

    for (size_t s = 0; s < COUNT(scripts); s++)
        for (size_t i = 0; i < COUNT(loads); i++) {
            turns_flush(NULL);
            batch_script = scripts[s];
            redis_do("HSET", PREFIX "batch:b", "total", "100");
            if (s == 1)
                redis_do("HSET", PREFIX "batch:b", "cancel", "1");
            for (int n = 0; n < loads[i].count; n++) {
                char *record = make_body("default/t/\n@0,0,0,bb;", "t", n, loads[i].bytes);

                redis_do("RPUSH", PREFIX "aside:b", record);
                free(record);
            }
            measure(scripts[s], call_batch, loads[i].count, loads[i].bytes);
            if (s == 0)
                assert_int_equal(redis_number("LLEN", QUEUE), loads[i].count);
        }
}

/* ---- Claims */

static int call_claim(void)
{
    return (int)claim("w", 500, 500);
}

/* Jobs that leave the lane. */
static int call_serve(void)
{
    long long before = redis_number("LLEN", LANE("t"));

    claim("w", 500, 500);
    return (int)(before - redis_number("LLEN", LANE("t")));
}

/* Jobs that leave the queue. */
static int call_look(void)
{
    long long before = redis_number("LLEN", QUEUE);

    claim("w", 500, 500);
    return (int)(before - redis_number("LLEN", QUEUE));
}

SCENE_TEST(test_claims_of_large_bodies)
{
    for (size_t i = 0; i < COUNT(loads); i++) {
        turns_flush(NULL);
        start("w");
        push_bodies("t", loads[i].count, loads[i].bytes);
        measure("claim", call_claim, loads[i].count, loads[i].bytes);
        assert_false(turns.claim.more);
    }
}

static void park(int count, size_t bytes)
{
    must(turns_rate("t", "1/86400000000/1"));
    push_bodies("t", count + 1, bytes);
    for (int i = 0; redis_number("EXISTS", QUEUE); i++) {
        assert_in_range(i, 0, 2 * count + 2);
        claim("w", 500, 0);
    }
    assert_int_equal(redis_number("LLEN", LANE("t")), count);
    must(turns_rate("t", "1000000/1000000/1000000"));
    turns.now_us += SECOND_US;
}

/* Writes about so many bytes of JSON into out. */
typedef void fill(char *out, size_t bytes);

static void repeat(char *out, size_t bytes, const char *unit, const char *last)
{
    size_t used = 0, unit_len = strlen(unit), last_len = strlen(last);

    for (; used + unit_len + last_len < bytes; used += unit_len)
        memcpy(out + used, unit, unit_len);
    memcpy(out + used, last, last_len + 1);
}

static void fill_objects(char *out, size_t bytes)
{
    *out = '[';
    repeat(out + 1, bytes - 1, "{\"a\":1,\"b\":\"some\",\"c\":[1,2,{\"d\":null}]},", "0]");
}

static void fill_members(char *out, size_t bytes)
{
    *out = '{';
    repeat(out + 1, bytes - 1, "\"member\":17,", "\"z\":0}");
}

static void fill_brackets(char *out, size_t bytes)
{
    *out = '[';
    repeat(out + 1, bytes - 1, "\"a}[ b\",", "0]");
}

/* A member behind a very large one is found, in whatever the latter is. */
SCENE_TEST(test_claims_by_what_stands_behind_much)
{
    static fill *const fills[] = {fill_objects, fill_brackets, fill_members};
    static char body[LARGEST];

    for (size_t f = 0; f < COUNT(fills); f++) {
        turns_flush(NULL);
        start("w");
        must(turns_rate("t", "1/86400000000/1,by=args.x"));
        for (int i = 0; i < 8; i++) {
            int len = snprintf(body, sizeof body, "{\"id\":\"j%d\",\"type\":\"t\",\"args\":{\"y\":", i);

            fills[f](body + len, LARGEST - 100);
            strcat(body, ",\"x\":\"k\"}}");
            push("default", body);
        }
        measure_long("claim by args.x", call_look, 8, LARGEST, WALK_US);
        assert_int_equal(redis_number("LLEN", LANE("t") "k"), 7);
    }
}

/* The members stand in another order than Weir's producers write them. */
SCENE_TEST(test_claims_of_foreign_bodies)
{
    static char body[LARGEST];

    for (size_t i = 0; i < COUNT(loads); i++) {
        turns_flush(NULL);
        start("w");
        for (int n = 0; n < loads[i].count; n++) {
            int len = snprintf(body, sizeof body, "{\"args\":{\"pad\":\"");

            memset(body + len, 'x', loads[i].bytes - 100);
            snprintf(body + loads[i].bytes - 100, 100, "\"},\"type\":\"t\",\"id\":\"j%d\"}", n);
            push("default", body);
        }
        measure("claim of foreign bodies", call_claim, loads[i].count, loads[i].bytes);
    }
}

/* Those that were cancelled leave their queue, or their lane. */
SCENE_TEST(test_claims_of_cancelled_bodies)
{
    for (size_t i = 0; i < COUNT(loads); i++)
        for (int parked = 0; parked < 2; parked++) {
            turns_flush(NULL);
            start("w");
            if (parked)
                park(loads[i].count, loads[i].bytes);
            else
                push_bodies("t", loads[i].count, loads[i].bytes);
            for (int n = 0; n < loads[i].count; n++) {
                free(
                    redis_text("HSET", PREFIX "cancelled", textf("t%d", n + parked), "waiting 1 default/t "));
            }
            measure(parked ? "cancelled in a lane" : "cancelled in a queue", parked ? call_serve : call_look,
                    loads[i].count, loads[i].bytes);
            assert_int_equal(redis_number("HLEN", ACTIVE "w"), 1 + parked);
            expect_counters("t", loads[i].bytes == LARGE ? "cancelled 32" : "cancelled 5");
        }
}

/* What is large is known only when it has been read. */
WORKER_TEST(test_large_bodies_behind_small_ones)
{
    int claims = 0;
    size_t jobs = 0;

    for (int round = 0; round < 3; round++) {
        enqueue_many("t", 60);
        push_bodies("t", 2, LARGEST);
        for (; jobs < 62; claims++) {
            size_t n = claim("w", 500, 500), bytes = 0;

            for (size_t i = 0; i < n; i++)
                bytes += turns.claim.leases[i].body.len;
            assert_true(n > 0 && (n == 1 || bytes <= LOAD));
            jobs += n;
        }
        jobs = 0;
        turns_flush(NULL);
        start("w");
    }
    assert_int_equal(claims, 3 * 3);
}

/* As a client of Weir enqueues it. */
static void enqueue_body(const char *type, int n, size_t bytes)
{
    char id[32], *body = make_body("", type, n, bytes);
    const char *words[] = {"default", type, id, "1000", "tag", body};

    snprintf(id, sizeof id, "%s%d", type, n);
    must(turns_script("enqueue", words, COUNT(words)));
    free(body);
}

/* Of what Weir's clients wrote it is known whether large bodies are among it: many small ones are read at once, and a large one behind
 * them makes no call long. */
SCENE_TEST(test_a_queue_is_listed_while_large_bodies_are_in_it)
{
    long long before;

    start("w");
    enqueue_many("t", 62);
    assert_int_equal(redis_number("HEXISTS", PREFIX "large", "default"), 0);
    before = server_calls(&turns.server, "lrange");
    assert_int_equal(claim("w", 500, 500), 62);
    assert_int_equal(server_calls(&turns.server, "lrange") - before, 1);

    enqueue_many("slow", 60);
    enqueue_body("t", 100, LARGEST);
    enqueue_body("t", 101, LARGEST);
    assert_int_equal(redis_number("HEXISTS", PREFIX "large", "default"), 1);
    before = server_calls(&turns.server, "lrange");
    assert_int_equal(claim("w", 500, 500), 60);
    assert_true(server_calls(&turns.server, "lrange") - before > 60 / 4);
    assert_int_equal(claim("w", 500, 500), 1);
    assert_int_equal(claim("w", 500, 500), 1);
    assert_int_equal(redis_number("HEXISTS", PREFIX "large", "default"), 1);
    for (int n = 200; n < 220; n++)
        enqueue_body("t", n, 200);
    assert_int_equal(claim("w", 500, 500), 20);
    assert_int_equal(redis_number("HEXISTS", PREFIX "large", "default"), 0);
    turns_check();
}

/* The same of lanes: what is parked, or comes back, tells how much may be read of them at once. */
SCENE_TEST(test_lanes_are_listed_once_a_large_body_was_in_them)
{
    long long before;
    int parked;

    start("w");
    enqueue_body("t", 1, LARGEST);
    assert_int_equal(claim("w", 1, 0), 1);
    settle("w", SETTLE_BACK, tokens[0], 0, NULL);
    assert_int_equal(redis_number("HEXISTS", PREFIX "large", "default/"), 1);
    assert_int_equal(claim("w", 1, 0), 1);
    redis_do("DEL", PREFIX "large");
    must(turns_rate("slow", "100/100000000/100"));
    enqueue_many("slow", 200);
    parked = 200 - (int)claim("w", 500, 0);
    assert_in_range(parked, 80, 100);
    turns.now_us += 100 * SECOND_US;
    before = server_calls(&turns.server, "lrange");
    assert_int_equal(claim("w", 500, 0), parked);
    assert_in_range(server_calls(&turns.server, "lrange") - before, 1, 4);
    assert_int_equal(redis_number("EXISTS", PREFIX "large"), 0);

    for (int n = 200; n < 360; n++)
        enqueue_body("slow", n, 200);
    enqueue_body("slow", 1000, LARGEST);
    while (redis_number("EXISTS", QUEUE) == 1)
        claim("w", 500, 0);
    assert_int_equal(redis_number("HEXISTS", PREFIX "large", "default/"), 1);
    turns.now_us += 100 * SECOND_US;
    before = server_calls(&turns.server, "lrange");
    assert_true(claim("w", 500, 0) > 40);
    assert_true(server_calls(&turns.server, "lrange") - before > 40 / 3);
    turns_check();
}

/* Claims what there is, and lets all of it fail, to be due after delay_us. */
static void let_fail(int jobs, int64_t delay_us)
{
    while (jobs > 0) {
        size_t n = claim("w", 500, 500);

        assert_true(n > 0);
        jobs -= (int)n;
        for (size_t i = 0; i < n; i++)
            settle("w", SETTLE_RETRY, tokens[i], delay_us, NULL);
    }
}

/* The same of retried jobs: where all are small, many are read at once, and a large one makes no call long. */
SCENE_TEST(test_later_is_listed_while_large_bodies_are_in_it)
{
    long long before;

    start("w");
    enqueue_many("t", 62);
    let_fail(62, 0);
    assert_int_equal(redis_number("HEXISTS", PREFIX "large", "/later"), 0);
    before = server_calls(&turns.server, "zrange");
    assert_int_equal(call_promote(), 62);
    assert_in_range(server_calls(&turns.server, "zrange") - before, 1, 4);
    let_fail(62, 1);

    enqueue_body("t", 100, LARGEST);
    enqueue_body("t", 101, LARGEST);
    let_fail(2, 2);
    assert_int_equal(redis_number("HEXISTS", PREFIX "large", "/later"), 1);
    turns.now_us += SECOND_US;
    before = server_calls(&turns.server, "zrange");
    assert_int_equal(call_promote(), 62);
    assert_true(server_calls(&turns.server, "zrange") - before > 62 / 4);
    assert_int_equal(call_promote(), 1);
    assert_int_equal(call_promote(), 1);
    assert_int_equal(redis_number("HEXISTS", PREFIX "large", "/later"), 1);
    turns_check();
    record_front = "l a%d default/t/\n";
    plant(PREFIX "later", false, 4, 200);
    assert_int_equal(call_promote(), 4);
    assert_int_equal(redis_number("HEXISTS", PREFIX "large", "/later"), 0);
}

/* The mark only keeps calls short: a key of another kind in its place stops nothing. */
WORKER_TEST(test_a_list_of_large_queues_that_is_none)
{
    redis_do("SET", PREFIX "large", "x");
    enqueue_many("t", 60);
    enqueue_body("t", 100, LARGEST);
    assert_int_equal(claim("w", 500, 500), 60);
    assert_int_equal(claim("w", 500, 500), 1);
}

SCENE_TEST(test_claims_of_large_bodies_from_lanes)
{
    for (size_t i = 0; i < COUNT(loads); i++) {
        turns_flush(NULL);
        start("w");
        park(loads[i].count, loads[i].bytes);
        measure("claim from a lane", call_claim, loads[i].count, loads[i].bytes);
        turns_check();
    }
}

/* Neither the queue nor its lanes wait for the other for good. */
WORKER_TEST(test_lanes_and_queue_take_turns_with_large_bodies)
{
    size_t first = 0;

    park(4, LARGEST);
    push_bodies("slow", 4, LARGEST);
    for (int i = 0; i < 4; i++)
        first += claim("w", 500, 500);
    assert_int_equal(first, 4);
    assert_int_equal(redis_number("LLEN", LANE("t")), 2);
    assert_int_equal(redis_number("LLEN", QUEUE), 2);
    turns_check();
}

/* ---- What a worker leaves behind */

static int call_reap(void)
{
    int64_t taken;

    taken = heartbeat("v");
    return (int)taken;
}

static int call_leave(void)
{
    long long before = redis_number("HLEN", ACTIVE "w"), left;

    must(turns_adopt("", "w", NULL, 0, default_queue, NULL));
    left = redis_number("HLEN", ACTIVE "w");
    assert_int_equal(left > 0, turns.left > 0);
    return (int)(before - left - (left == 0)); /* "@" */
}

/* w has so many; and it is silent for a lease. */
static void lease_all(int count, size_t bytes)
{
    turns_flush(NULL);
    start("v");
    start("w");
    push_bodies("t", count, bytes);
    for (int i = 0; redis_number("EXISTS", QUEUE); i++) {
        assert_in_range(i, 0, count);
        claim("w", count, 0);
    }
    assert_int_equal(pass("v", LEASE_US - 1), 0);
    turns.now_us += 2;
}

SCENE_TEST(test_large_jobs_of_a_worker_that_is_gone_return_in_their_order)
{
    static one_call *const calls[] = {call_reap, call_leave};
    char *first;

    for (size_t c = 0; c < COUNT(calls); c++)
        for (size_t i = 0; i < COUNT(loads); i++) {
            lease_all(loads[i].count, loads[i].bytes);
            measure(c == 0 ? "reap" : "adopt", calls[c], loads[i].count, loads[i].bytes);
            assert_int_equal(redis_number("EXISTS", ACTIVE "w"), 0);
            for (int n = 0; n < loads[i].count; n++) {
                const char *id = textf("{\"id\":\"t%d\"", n);

                first = redis_text("LINDEX", c == 0 ? ALONE("t") : LANE("t"), textf("%d", n));
                assert_non_null(strstr(first, id));
                free(first);
            }
            turns_check();
        }
}

/* Some that a key of another kind keeps from their lane keep no others from theirs. */
SCENE_TEST(test_large_jobs_that_cannot_return_keep_no_others)
{
    int64_t taken = 1, workers;

    turns_flush(NULL);
    start("v");
    start("w");
    push_bodies("t", 1, LARGEST);
    push_bodies("slow", 2, LARGEST);
    for (int i = 0; i < 3; i++)
        claim("w", 3, 0);
    redis_do("SET", ALONE("slow"), "x");
    assert_int_equal(pass("v", LEASE_US - 1), 0);
    turns.now_us += 2;
    for (int i = 0; i < 9 && taken > 0; i++)
        must(turns_reap("v", &taken, &workers));
    assert_int_equal(redis_number("LLEN", ALONE("t")), 1);
    assert_int_equal(redis_number("ZCARD", PREFIX "later"), 2);
}

/* ---- Dead jobs */

static long long dead_bytes(void)
{
    return redis_number("EXISTS", PREFIX "dead_bytes") ? redis_number("HGET", PREFIX "dead_bytes", "bytes")
                                                       : 0;
}

static size_t record_size; /* of each */

/* A heartbeat of w; returns how many records it has counted, or forgotten. */
static int call_heartbeat(void)
{
    long long before = dead_bytes();

    heartbeat("w");
    return (int)(llabs(dead_bytes() - before) / (long long)record_size);
}

SCENE_TEST(test_large_dead_jobs_are_counted_and_forgotten_a_few_at_a_time)
{
    record_front = "w:%02d default/t/ why\n";
    for (size_t i = 0; i < COUNT(loads); i++) {
        turns_flush(NULL);
        start("w");
        record_size = loads[i].bytes;
        plant(PREFIX "dead", true, loads[i].count, record_size);
        redis_do("HSET", PREFIX "dead_bytes", "bytes", "0", "score", "-inf", "record", "");
        redis_do("HSET", PREFIX "settings", "dead_age_us", "9000000000000000");
        measure("count", call_heartbeat, loads[i].count, loads[i].bytes);
        turns.now_us++;
        call_heartbeat(); /* finds no more */
        turns_check();
        redis_do("HSET", PREFIX "settings", "dead_bytes", "1");
        measure("forget", call_heartbeat, loads[i].count, loads[i].bytes);
        assert_int_equal(redis_number("EXISTS", PREFIX "dead", PREFIX "dead_bytes"), 0);
    }
}

/* A place that is gone, among very many large records of its time. */
static int call_dead_page(void)
{
    must(turns_script("dead_sizes", WORDS("1", "w:999 default/t/ why\n")));
    return 1;
}

SCENE_TEST(test_a_place_among_large_records_is_found_in_time)
{
    record_front = "w:%d default/t/ why\n";
    plant(PREFIX "dead", false, 64, LARGEST);
    measure("a place", call_dead_page, 5, LOAD);
    must(turns_ask("dead_sizes", (const char *const[]){"1", "w:0 "}, 2)); /* begins too early, if at all */
    assert_int_equal(json_array_size(json_object_get(turns.answer, "sizes")), 1);
}

/* ---- Looking for jobs, counting and removing them */

static const char *place_looked_at;
static char looked_from[64];

/* How far the answer's page has come; "": to the end. */
static void read_place(void)
{
    const char *from = json_string_value(json_array_get(json_object_get(turns.answer, "next"), 1));

    snprintf(looked_from, sizeof looked_from, "%s", from ? from : "");
}

/* Entries that a page of find_job has seen, by the bytes that it says. A page of a hash ends with a whole bucket: it may have more, by chance
 * of Redis's hash seed; twice as many would need ten of 32 entries in one bucket. */
static int call_find(void)
{
    int64_t bytes;

    must(turns_ask("find_job", WORDS("nobody", "1000", place_looked_at, looked_from)));
    bytes = answer_int(turns.answer, "bytes");
    read_place();
    assert_in_range(bytes, 1, 2 * LOAD);
    return bytes > LOAD ? LOAD / LARGE : (int)(bytes / LARGE);
}

/* A list, a hash and a sorted set of the same bodies: each of them is gone through a few at a time. */
SCENE_TEST(test_jobs_are_looked_for_a_few_at_a_time_where_they_are_large)
{
    static const char *const places[] = {"queue:default", "lane:default/t/", "active:w", "later", "dead"};

    for (size_t p = 0; p < COUNT(places); p++) {
        turns_flush(NULL);
        start("w");
        for (int n = 0; n < 32; n++) {
            char *body = make_body(p > 2 ? "l a default/t/\n" : "", "t", n, LARGE), name[48], key[64];

            snprintf(name, sizeof name, "%d.0/default/t/", n);
            snprintf(key, sizeof key, PREFIX "%s", places[p]);
            if (p < 2)
                redis_do("RPUSH", key, body);
            else
                free(p == 2 ? redis_text("HSET", key, name, body) : redis_text("ZADD", key, "1", body));
            free(body);
        }
        place_looked_at = places[p];
        looked_from[0] = '\0';
        measure(places[p], call_find, 32, LARGE);
    }
}

static int call_purge(void)
{
    must(ask_line("queue_purge default remove _ 500 queue _"));
    return (int)answer_int(turns.answer, "waiting");
}

static int call_mark(void)
{
    must(turns_ask("queue_purge", WORDS("default", "count", "t", "500", "queue", looked_from)));
    read_place();
    return (int)answer_int(turns.answer, "waiting");
}

static int call_ahead(void)
{
    int looked_at;

    must(turns_ask("ahead", WORDS("queue:default", looked_from, "31", "t")));
    looked_at = (int)answer_int(turns.answer, "looked_at");
    snprintf(looked_from, sizeof looked_from, "%ld", strtol(looked_from, NULL, 10) + looked_at);
    return looked_at;
}

SCENE_TEST(test_queues_are_counted_and_purged_a_few_at_a_time_where_jobs_are_large)
{
    for (size_t i = 0; i < COUNT(loads); i++) {
        turns_flush(NULL);
        start("w");
        push_bodies("t", loads[i].count, loads[i].bytes);
        if (i == 0) {
            snprintf(looked_from, sizeof looked_from, "0");
            measure("ahead", call_ahead, loads[i].count, loads[i].bytes);
        }
        looked_from[0] = '\0';
        measure("purge of a type", call_mark, loads[i].count, loads[i].bytes);
        measure("purge", call_purge, loads[i].count, loads[i].bytes);
        assert_int_equal(redis_number("EXISTS", QUEUE), 0);
    }
}

/* One call that looks at a queue, at `later` or at leases reads no more than its load of them. */
static int call_status(void)
{
    must(turns_script("status", NULL, 0));
    return 1;
}

static int call_doctor(void)
{
    const char *words[] = {"later", "100"}, *bytes;

    must(turns_script("doctor", words, COUNT(words)));
    bytes = strstr(turns.reply->str, "\"bytes\":");
    assert_non_null(bytes);
    assert_in_range(atoi(bytes + 8), 1, 10 * LARGEST); /* a bucket of its hash, or some */
    return 1;
}

WORKER_TEST(test_status_and_doctor_read_few_where_jobs_are_large)
{
    record_front = "q a%d default t\n";
    push_bodies("t", 20, LARGEST);
    plant(PREFIX "later", true, 20, LARGEST);
    measure("status", call_status, 8, LARGEST);
    measure("doctor", call_doctor, 8, LARGEST);
}

TESTS(turns_start, turns_stop)

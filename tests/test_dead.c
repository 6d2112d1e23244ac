/* The dead jobs under virtual time: their bounds, walks through them while others add, retry and trim, what
 * filters let through, the way back into a queue, and whatever a foreign client has put among them. The
 * command from outside is in test_dead_command.c. */
#include "tests/scene_client.h"

#include "core/client/client.h"
#include "queue/dead/dead.h"
#include "queue/enqueue/enqueue.h"
#include "tests/play.h"
#include "tests/random.h"
#include "view/dead.h"

#define DEAD PREFIX "dead"
#define ANY ((struct dead_filter){0})
#define LONG_60 "a reason that is so long that nobody wants to see all of it, "
#define FOR_EVER (2000000000 * SECOND_US)

static char seen[200000]; /* what the last walk met: "id id id" */

/* A record as ends.bury() writes it. */
static void bury(const char *tag, const char *lane, const char *reason, const char *entry)
{
    redis_do("ZADD", DEAD, textf("%lld", (long long)turns.now_us),
             textf("%s %s %s\n%s", tag, lane, reason, entry));
}

/* A job of type t by its id. */
static void bury_job(const char *id, const char *reason)
{
    bury(textf("w:%s", id), "default/t/", reason, textf("{\"id\":\"%s\",\"type\":\"t\",\"args\":{}}", id));
}

static void bury_many(const char *name, int first, int count)
{
    for (int i = first; i < first + count; i++)
        bury_job(textf("%s%04d", name, i), "why");
}

static void add_seen(const char *id)
{
    size_t len = strlen(seen);

    snprintf(seen + len, sizeof seen - len, "%s%s", len ? " " : "", id);
}

/* Until the next call. */
static struct dead_filter by_id(const char *id)
{
    static const char *ids[1];

    ids[0] = id;
    return (struct dead_filter){.ids = ids, .id_count = 1};
}

/* A walk to its end, and what it has met. */
struct walked {
    int64_t jobs, without_queue, looked_at;
    int pages;
    json_t *last; /* that a list has found */
    void (*meanwhile)(const struct walked *so_far);
};

static int take_page(const json_t *page, void *arg)
{
    const json_t *found = json_object_get(page, "found");
    struct walked *walked = arg;

    walked->pages++;
    walked->looked_at += answer_int(page, "looked_at");
    walked->jobs += answer_int(page, "jobs") + (int64_t)json_array_size(found);
    walked->without_queue += answer_int(page, "without_queue");
    for (size_t i = 0; i < json_array_size(found); i++) {
        json_decref(walked->last);
        walked->last = json_incref(json_array_get(found, i));
        json_object_set(walked->last, "body", json_array_get(json_object_get(page, "raw"), i));
        add_seen(answer_text(walked->last, "id"));
    }
    if (walked->meanwhile)
        walked->meanwhile(walked);
    return 0;
}

static int go(const char *verb, struct dead_filter filter, const char *into, struct walked *walked)
{
    struct dead_walk walk = {.w = w,
                             .now_us = turns.now_us,
                             .verb = verb,
                             .filter = filter,
                             .body_bytes = INT32_MAX,
                             .into = into,
                             .take = take_page,
                             .arg = walked};

    if (strcmp(verb, "list") == 0)
        seen[0] = '\0';
    return dead_walk(&walk);
}

static struct walked walk(const char *verb, struct dead_filter filter,
                          void (*meanwhile)(const struct walked *so_far))
{
    struct walked walked = {.meanwhile = meanwhile};

    fail_if(go(verb, filter, NULL, &walked) != 0, "%s", w->error.text);
    json_decref(walked.last);
    return walked;
}

static void expect_listed(struct dead_filter filter, const char *ids)
{
    walk("list", filter, NULL);
    assert_string_equal(seen, ids);
}

/* All of the filter, by the verb; how many were moved, and how many have no queue. */
static void expect_moved(const char *verb, struct dead_filter filter, const char *into, int64_t moved,
                         int64_t left)
{
    struct walked walked = {0};

    fail_if(go(verb, filter, into, &walked) != 0, "%s", w->error.text);
    assert_int_equal(walked.jobs, moved);
    assert_int_equal(walked.without_queue, left);
}

static int64_t walk_counts(struct dead_filter filter)
{
    return walk("list", filter, NULL).jobs;
}

static int take_groups(const json_t *page, void *arg)
{
    return dead_groups_add(arg, page);
}

/* The only one that the filter lets through; the caller's. */
static json_t *only(struct dead_filter filter)
{
    struct walked walked = {0};

    assert_int_equal(go("list", filter, NULL, &walked), 0);
    assert_int_equal(walked.jobs, 1);
    return walked.last;
}

/* ---- Bounds */

static void set_bound(const char *name, int64_t bound)
{
    redis_do("HSET", PREFIX "settings", name, textf("%lld", (long long)bound));
}

/* A heartbeat of a worker that was started with these bounds. */
static struct reaped beat(int64_t most, int64_t age_us)
{
    struct reap_call call = {"w", LEASE_US, 3, most, age_us, "g", false};
    struct reaped reaped;
    struct args a = {0};

    reap_request(&a, PREFIX, turns.now_us, &call);
    must(turns_send(&a));
    must(reap_reply(turns.reply, &reaped, &turns.error));
    return reaped;
}

/* One in a namespace with these, which has counted its dead jobs. */
static struct reaped reap_with(int64_t most, int64_t age_us)
{
    struct reaped r;

    set_bound("dead_most", most);
    set_bound("dead_age_us", age_us);
    do
        r = beat(0, 0);
    while (redis_number("HEXISTS", PREFIX "dead_bytes", "score"));
    return r;
}

WORKER_TEST(test_the_oldest_are_forgotten_beyond_a_number)
{
    struct reaped r;

    bury_many("j", 0, 30);
    turns.now_us++;
    bury_many("k", 0, 5);
    r = reap_with(35, FOR_EVER);
    assert_int_equal(r.forgotten + r.left, 0);
    r = reap_with(7, FOR_EVER);
    assert_int_equal(r.forgotten, 28);
    assert_int_equal(r.left, 0);
    expect_listed(ANY, "k0004 k0003 k0002 k0001 k0000 j0029 j0028");
    expect_counters("t", "forgotten 28");
    r = reap_with(1, FOR_EVER);
    assert_int_equal(r.forgotten, 6);
    expect_listed(ANY, "k0004");
}

WORKER_TEST(test_the_oldest_are_forgotten_beyond_an_age)
{
    struct reaped r;

    bury_job("a", "why");
    turns.now_us++;
    bury_job("b", "why");
    turns.now_us += 180 * DAY_US - 1;
    bury_job("c", "why");
    r = reap_with(100, 180 * DAY_US);
    assert_int_equal(r.forgotten, 0); /* a is that old, and not older */
    turns.now_us++;
    redis_do("ZADD", PREFIX "workers", "1999999999999999", "w");
    r = reap_with(100, 180 * DAY_US);
    assert_int_equal(r.forgotten, 1);
    expect_listed(ANY, "c b");
}

/* A heartbeat takes a bounded number, says how many are left, and catches up. */
WORKER_TEST(test_forgetting_goes_by_steps)
{
    struct reaped r;
    int calls = 0;

    bury_many("j", 0, 1300);
    do {
        r = reap_with(100, FOR_EVER);
        assert_in_range(r.forgotten, 1, 500);
        assert_int_equal(r.left, server_number(&turns.server, "ZCARD", DEAD, NULL) - 100);
        calls++;
    } while (r.left > 0);
    assert_int_equal(calls, 3);
    expect_counters("t", "forgotten 1200");
}

WORKER_TEST(test_large_ones_are_forgotten_a_few_at_a_time)
{
    char *entry = malloc(1 << 20);
    struct reaped r;
    struct args a = {0};

    for (int i = 0; i < 12; i++) {
        snprintf(entry, 64, "w:%d default/t/ why\n", i);
        memset(entry + strlen(entry), 'x', (1 << 20) - strlen(entry));
        args_add(&a, "ZADD");
        args_add(&a, DEAD);
        args_add_int(&a, i);
        args_add_bytes(&a, entry, 1 << 20);
        must(turns_send(&a));
    }
    free(entry);
    r = reap_with(2, FOR_EVER);
    assert_in_range(r.forgotten, 1, 3);
    assert_int_equal(r.left, 10 - r.forgotten);
    while (r.left > 0)
        r = reap_with(2, FOR_EVER);
    assert_int_equal(redis_number("ZCARD", DEAD), 2);
}

WORKER_TEST(test_a_heartbeat_goes_on_beside_what_is_not_ours)
{
    redis_do("ZADD", DEAD, "5", "junk", "6", "w:1 //", "-inf", "", "7", "w:2 // why\n");
    assert_int_equal(reap_with(2, FOR_EVER).forgotten, 2);
    assert_int_equal(reap_with(1, FOR_EVER).forgotten, 1);
    redis_do("DEL", PREFIX "dead_bytes");
    redis_do("SET", DEAD, "somebody's");
    redis_do("SET", PREFIX "cancelled", "somebody's");
    assert_int_equal(reap_with(1, FOR_EVER).forgotten, 0);
    expect_text("somebody's", "GET", DEAD);
}

static int64_t counted_bytes(void)
{
    return redis_number("HGET", PREFIX "dead_bytes", "bytes");
}

/* What a worker was started with forgets nothing: it counts only where nothing is set, if it keeps more than
 * usual. */
WORKER_TEST(test_options_of_a_worker_only_widen)
{
    struct reaped r;

    bury_many("j", 0, 30);
    turns.now_us += DAY_US;
    redis_do("ZADD", PREFIX "workers", "1999999999999999", "w");
    r = beat(10, SECOND_US);
    assert_int_equal(r.forgotten + beat(10, SECOND_US).forgotten, 0);
    assert_int_equal(r.kept.most, 100000);
    assert_int_equal(r.kept.age_us, 180 * DAY_US);
    assert_int_equal(r.kept.bytes, 256 << 20);
    assert_int_equal(redis_number("EXISTS", PREFIX "settings"), 0);
    assert_int_equal(beat(200000, 0).kept.most, 200000);
    r = beat(300000, 200 * DAY_US);
    assert_int_equal(r.kept.most, 200000);
    assert_int_equal(r.kept.age_us, 200 * DAY_US);
    redis_do("HSET", PREFIX "settings", "dead_most", "many", "dead_age_us", "0", "dead_bytes", "-1");
    assert_int_equal(beat(0, 0).forgotten, 0); /* what cannot be read bounds nothing */
    redis_do("SET", PREFIX "settings", "x");
    r = beat(0, 0);
    assert_int_equal(r.kept.most, 0);
    redis_do("DEL", PREFIX "settings");
}

/* Jobs with a body of so many bytes die by their handlers. */
static void die(int count, size_t size)
{
    char *body = malloc(size + 100);

    for (int i = 0; i < count; i++) {
        int len = sprintf(body, "{\"id\":\"d%lld\",\"type\":\"t\",\"args\":\"", (long long)turns.now_us);

        memset(body + len, 'x', size);
        strcpy(body + len + size, "\"}");
        push("default", body);
        assert_int_equal(claim("w", 1, 0), 1);
        settle("w", SETTLE_DEAD, tokens[0], 0, "no");
        turns.now_us++;
    }
    free(body);
}

WORKER_TEST(test_the_oldest_are_forgotten_beyond_bytes)
{
    struct reaped r;
    int64_t one;

    die(1, 1000);
    one = counted_bytes();
    die(39, 1000);
    assert_in_range(one, 1000, 1100);
    turns_check();
    set_bound("dead_bytes", 10 * one);
    r = reap_with(1000, FOR_EVER);
    assert_int_equal(r.forgotten, 31); /* tokens of later turns are longer */
    assert_int_equal(r.left, 0);
    assert_in_range(counted_bytes(), 9 * one, 10 * one);
    expect_counters("t", "dead 40, forgotten 31");
    turns_check();
    die(3, 300000); /* two large ones are as much as a heartbeat takes */
    set_bound("dead_bytes", 1);
    r = beat(0, 0);
    assert_in_range(r.forgotten, 9, 11);
    assert_int_equal(r.left, 1);
    while (r.left > 0)
        r = beat(0, 0);
    assert_int_equal(redis_number("EXISTS", DEAD, PREFIX "dead_bytes"), 0);
    turns_check();
}

/* Those that were there before anybody counted are counted by heartbeats, exactly, whatever moves meanwhile.
 */
WORKER_TEST(test_bytes_are_counted_while_jobs_move)
{
    struct reaped r;
    int beats = 0;

    bury_many("j", 0, 1300);
    assert_int_equal(redis_number("EXISTS", PREFIX "dead_bytes"), 0);
    expect_moved("remove", by_id("j0000"), NULL, 1, 0);
    do {
        r = beat(0, 0);
        turns.now_us++;
        die(2, 10);
        for (int i = 0; i < 4; i++) {
            expect_moved(i % 2 ? "remove" : "retry", by_id(textf("j%04d", 1 + (beats * 4 + i) * 97)), NULL, 1,
                         0);
        }
        if (beats == 0) /* the place up to which they are counted goes */
            expect_moved("remove", by_id("j0500"), NULL, 1, 0);
        beats++;
    } while (r.left > 0);
    assert_in_range(beats, 3, 4);
    assert_true(counted_bytes() > 0);
    claim("w", 50, 0); /* those that were retried */
    assert_int_equal(turns_check().dead, 1300 - 1 - 1 - beats * 4 + beats * 2);
    expect_moved("retry", ANY, NULL, redis_number("ZCARD", DEAD), 0);
    assert_int_equal(redis_number("EXISTS", PREFIX "dead_bytes"), 0);
}

/* More than usual that was there before there was a bound is kept; a count that is gone begins anew. */
WORKER_TEST(test_what_was_there_before_is_kept)
{
    bury_many("j", 0, 3);
    redis_do("HSET", PREFIX "dead_bytes", "bytes", "300000000", "score", "-inf", "record", "");
    assert_in_range(beat(0, 0).kept.bytes, 300000100, 300000400);
    assert_int_equal(beat(0, 0).forgotten, 0);
    redis_do("DEL", PREFIX "dead_bytes", PREFIX "settings");
    beat(0, 0);
    assert_int_equal(redis_number("EXISTS", PREFIX "settings"), 0);
    redis_do("HSET", PREFIX "dead_bytes", "bytes", "what");
    beat(0, 0);
    turns_check();
    redis_do("SET", PREFIX "dead_bytes", "what");
    beat(0, 0);
    die(1, 10);
    expect_text("what", "GET", PREFIX "dead_bytes");
    redis_do("DEL", PREFIX "dead_bytes");
}

/* Others who do not count write there, such as workers of an older version: begun anew, every ten minutes. */
WORKER_TEST(test_bytes_are_counted_anew_when_others_write)
{
    int64_t bytes;

    die(3, 10);
    turns_check();
    bytes = counted_bytes();
    bury_many("j", 0, 600);
    pass("w", 595 * SECOND_US);
    assert_int_equal(counted_bytes(), bytes);
    turns.now_us += 5 * SECOND_US;
    assert_int_equal(beat(0, 0).left, 1);
    die(1, 10);
    assert_int_equal(beat(0, 0).left, 0);
    assert_int_equal(turns_check().dead, 604);
    redis_do("ZREMRANGEBYRANK", DEAD, "0", "-2");
    pass("w", 601 * SECOND_US);
    assert_int_equal(turns_check().dead, 1);
}

/* dead_keep and dead_count_beyond: the bounds that hold, what there is, and how many are beyond. */
static void expect_kept(int64_t passed_us, struct dead_bounds wanted, bool write, const char *expected)
{
    json_t *kept;
    int64_t beyond;

    must(dead_keep(w, turns.now_us + passed_us, &wanted, write, &kept));
    must(dead_count_beyond(w, turns.now_us, kept, &beyond));
    assert_string_equal(textf("%lld jobs, %s, the oldest %lld us ago; most %lld; %lld beyond",
                              (long long)answer_int(kept, "jobs"),
                              json_object_get(kept, "bytes") ? "counted" : "not counted",
                              (long long)(turns.now_us + passed_us -
                                          answer_int_or(kept, "oldest_at", turns.now_us + passed_us)),
                              (long long)answer_int(kept, "keep_jobs"), (long long)beyond),
                        expected);
    json_decref(kept);
}

SCENE_TEST(test_bounds_are_read_and_set)
{
    json_t *kept;

    start("w");
    expect_kept(0, (struct dead_bounds){0}, true,
                "0 jobs, counted, the oldest 0 us ago; most 100000; 0 beyond");
    bury_many("j", 0, 2000);
    expect_kept(1, (struct dead_bounds){.most = 10}, false,
                "2000 jobs, not counted, the oldest 1 us ago; most 10; 1990 beyond");
    expect_kept(1, (struct dead_bounds){.bytes = 1}, false,
                "2000 jobs, not counted, the oldest 1 us ago; most 100000; 2000 beyond");
    assert_int_equal(redis_number("EXISTS", PREFIX "settings"), 0);
    while (beat(0, 0).left > 0)
        ;
    expect_kept(1, (struct dead_bounds){.bytes = counted_bytes() / 2}, true,
                "2000 jobs, counted, the oldest 1 us ago; most 100000; 1000 beyond");
    expect_kept(5, (struct dead_bounds){.age_us = 4}, true,
                "2000 jobs, counted, the oldest 5 us ago; most 100000; 2000 beyond");
    assert_int_equal(redis_number("HLEN", PREFIX "settings"), 2);
    redis_do("SET", PREFIX "settings", "x");
    assert_int_equal(dead_keep(w, turns.now_us, &(struct dead_bounds){0}, false, &kept), WEIR_ECONFIG);
    redis_do("DEL", PREFIX "settings");
}

/* Marks that nobody confirmed, after a day; of jobs that wait, when nothing is left where they could be. */
WORKER_TEST(test_marks_of_cancelled_jobs_are_forgotten)
{
    static const char *const places[] = {QUEUE, PREFIX "ring:default/t", PREFIX "sleep:default",
                                         PREFIX "aside:b"};
    char old[40], young[40];
    const char *waiting = "waiting 1 default/t b";

    snprintf(old, sizeof old, "asked %lld", (long long)turns.now_us);
    snprintf(young, sizeof young, "asked %lld", (long long)turns.now_us + 1);
    for (size_t i = 0; i < COUNT(places); i++) {
        char *kind = redis_text(i % 3 ? "ZADD" : "RPUSH", places[i], "1", "x");

        free(kind);
        redis_do("HSET", PREFIX "cancelled", "a", waiting);
        reap_with(1, 1);
        assert_int_equal(redis_number("HLEN", PREFIX "cancelled"), 1);
        redis_do("DEL", places[i]);
        reap_with(1, 1);
        assert_int_equal(redis_number("EXISTS", PREFIX "cancelled"), 0);
    }
    push("default", "{}");
    for (int i = 0; i < 600; i++) {
        redis_do("HSET", PREFIX "cancelled", textf("j%d", i),
                 i % 3 == 0   ? waiting
                 : i % 3 == 1 ? old
                              : young);
    }
    redis_do("HSET", PREFIX "cancelled", "odd", "what");
    turns.now_us += DAY_US;
    redis_do("ZADD", PREFIX "workers", "1999999999999999", "w");
    for (int left = 600; left >= 0; left -= 200, turns.now_us++) { /* the odd one is forgotten at once */
        if (left == 0)
            redis_do("DEL", QUEUE);
        for (int i = 0; i < 20; i++)
            reap_with(1, 1);
        assert_int_equal(redis_number("HLEN", PREFIX "cancelled"), left);
    }
    assert_int_equal(reap_with(1, 1).taken, 0);
}

/* ---- Walks */

enum { ALL = 700 };
static uint64_t dice;
static bool gone[ALL];

/* Others retry, remove, bury and trim. */
static void disturb(const struct walked *so_far)
{
    char id[32];
    size_t len = strlen(seen);

    for (int k = 0; k < 40; k++) {
        int i = (int)random_in(&dice, 0, ALL - 1);

        snprintf(id, sizeof id, "j%04d", i);
        walk(k % 2 ? "retry" : "remove", by_id(id), NULL);
        assert_int_equal(strlen(seen), len);
        gone[i] = true;
    }
    memcpy(id, seen + len - 5, 6); /* the last one that was met, too */
    walk("remove", by_id(id), NULL);
    gone[atoi(id + 1)] = true;
    turns.now_us++;
    bury_many("new", (int)so_far->looked_at, 3);
    reap_with(redis_number("ZCARD", DEAD) - 5, FOR_EVER);
    for (int i = 0, left = 5; i < ALL && left > 0; i++) {
        left -= !gone[i];
        gone[i] = true;
    }
}

/* Each that stays is met once, the newest first; none that died since is met. */
SCENE_TEST(test_a_walk_meets_each_once_whatever_others_do)
{
    uint64_t seed = dice = random_seed();
    const char *at = seen;

    memset(gone, 0, sizeof gone);
    start("w");
    for (int i = 0; i < ALL; i += 70) { /* ten times, in which seventy die at once */
        bury_many("j", i, 70);
        turns.now_us += i % 140 ? SECOND_US : 0;
    }
    walk("list", ANY, disturb);
    for (int i = 0, last = ALL; *at; at += at[5] ? 6 : 5, last = i) {
        assert_int_equal(sscanf(at, "j%4d", &i), 1);
        assert_true(i < last);
        for (int k = last - 1; k > i; k--)
            fail_if(!gone[k], "WEIR_SEED=%llu: j%04d was passed over", (unsigned long long)seed, k);
    }
    assert_null(strstr(seen, "new"));
}

static void bury_more(const struct walked *so_far)
{
    turns.now_us++;
    bury_many("again", (int)so_far->jobs, 200);
}

SCENE_TEST(test_a_walk_ends_though_jobs_die_again)
{
    bury_many("j", 0, 450);
    assert_int_equal(walk("retry", ANY, bury_more).jobs, 450);
}

SCENE_TEST(test_scores_of_any_kind_are_walked_through)
{
    static const char *const scores[] = {"-inf", "-5", "0", "0.5", "1795000000000000.5", "1e300", "inf"};

    for (size_t i = 0; i < COUNT(scores); i++)
        for (int k = 0; k < 150; k++) {
            redis_do("ZADD", DEAD, scores[i],
                     textf("w:%zu.%03d default/t/ why\n{\"id\":\"j%zu.%03d\",\"type\":\"t\"}", i, k, i, k));
        }
    expect_moved("retry", ANY, NULL, 150 * (int64_t)COUNT(scores), 0);
    assert_int_equal(redis_number("LLEN", QUEUE), 150 * (long long)COUNT(scores));
}

/* A page stays small where records are large; what is as long is told apart by its last byte. */
SCENE_TEST(test_pages_of_large_records_are_short)
{
    const size_t size = 700000;
    char *record = malloc(size);
    struct walked walked;
    struct args a = {0};

    for (int i = 0; i < 9; i++) {
        memset(record, 'x', size);
        memcpy(record, "w:1 default/t/ why\n", 19);
        record[size - 1] = (char)('0' + i);
        args_add(&a, "ZADD");
        args_add(&a, DEAD);
        args_add_int(&a, turns.now_us);
        args_add_bytes(&a, record, size);
        must(turns_send(&a));
    }
    free(record);
    walked = walk("count", ANY, NULL);
    assert_int_equal(walked.looked_at, 9);
    assert_in_range(walked.pages, 5, 10); /* one or two on each */
}

/* ---- Which ones */

SCENE_TEST(test_filters)
{
    static const char *const some[] = {"b", "e", "nobody"}, *const none[] = {"nobody"};
    static const struct {
        struct dead_filter filter;
        const char *ids;
    } cases[] = {
        {{0}, "e d c b a"},
        {{.type = "t"}, "d b a"},
        {{.type = "u"}, "e c"},
        {{.type = "v"}, ""},
        {{.queue = "default"}, "c b a"},
        {{.queue = "mail"}, "e d"},
        {{.batch = "night"}, "e b"},
        {{.batch = "nigh"}, ""},
        {{.batch = "day"}, ""}, /* what the body says of it counts for nothing */
        {{.reason = "exit 1"}, "c b a"},
        {{.reason = "exit 1: (no"}, "b"}, /* no pattern */
        {{.reason = "."}, "e"},
        {{.older_us = 10 * SECOND_US}, "c b a"},
        {{.older_us = 20 * SECOND_US}, "a"},
        {{.older_us = 20 * SECOND_US + 1}, ""},
        {{.newer_us = 10 * SECOND_US}, "e d c b"},
        {{.newer_us = 10 * SECOND_US - 1}, "e d"},
        {{.newer_us = 15 * SECOND_US, .older_us = 5 * SECOND_US}, "c b"},
        {{.ids = some, .id_count = 3}, "e b"},
        {{.ids = none, .id_count = 1}, ""},
        {{.type = "t", .queue = "default", .batch = "night", .reason = "luck", .ids = some, .id_count = 3},
         "b"},
    };

    bury("w:1", "default/t/", "exit 1", "{\"id\":\"a\",\"type\":\"t\",\"batch\":\"day\"}");
    turns.now_us += 10 * SECOND_US;
    bury("w:2", "default/t/", "exit 1: (no luck)",
         "@3,0,0,unight,bnight;{\"id\":\"b\",\"type\":\"t\",\"batch\":\"day\"}");
    bury("w:3", "default/u/k", "exit 1", "{\"type\":\"u\",\"id\":\"c\"}");
    turns.now_us += 10 * SECOND_US;
    bury("w:4", "mail/t/", "exit 2", "{\"id\":\"d\",\"type\":\"t\"}");
    bury("w:5", "mail/u/", "exit 3.", "@1,0,0,bnight,e5:exit 1;{\"id\":\"e\",\"type\":\"u\"}");
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct walked counted;

        walk("list", cases[i].filter, NULL);
        fail_if(strcmp(seen, cases[i].ids) != 0, "case %zu: '%s', not '%s'", i, seen, cases[i].ids);
        counted = walk("count", cases[i].filter, NULL);
        assert_int_equal(counted.jobs, (strlen(cases[i].ids) + 1) / 2);
        assert_int_equal(counted.without_queue, 0);
    }
}

/* ---- Groups */

/* Checks that the dead jobs are one group of such a reason, which selects all of them. */
static void expect_one_group(const char *reason, int64_t jobs)
{
    struct dead_walk walk = {.w = w, .now_us = turns.now_us, .verb = "count", .take = take_groups};
    json_t *groups = json_object(), *row;

    walk.arg = groups;
    must(dead_walk(&walk));
    groups = dead_groups(groups, 0);
    row = json_array_get(groups, 0);
    assert_string_equal(answer_text(row, "reason"), reason);
    assert_int_equal(json_array_size(groups), 1);
    assert_int_equal(answer_int(row, "jobs"), jobs);
    assert_int_equal(walk_counts((struct dead_filter){.reason = reason}), jobs);
    json_decref(groups);
}

SCENE_TEST(test_reasons_that_differ_in_numbers_are_one_group)
{
    static const struct {
        const char *reasons[3], *folded;
    } cases[] = {
        {{"no luck", "no luck"}, "no luck"},
        {{"order 4711: gone", "order 3: gone"}, "order #: gone"},
        {{"failed 3 times: exit 1: k9", "failed 12 times: exit 1: 0x7f"}, "failed # times: exit 1: #"},
        {{"HTTP 503: at 17:04:59.1", "HTTP 503: at 9:12:00.25"}, "HTTP 503: at #:#:#.#"},
        {{"8f2c4d1e-abcd-4a01-9f2a-0a1b2c3d4e5f!", "11111111-2222-beef-face-444444444444!"}, "#!"},
        {{"C# at 5, #7 a_1", "C# at 66, #888 a_2"}, "C# at #, ## a_#"},
        {{"%d 1 [", "%d 22 ["}, "%d # ["},
        {{"", ""}, ""},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        redis_do("DEL", DEAD);
        bury_job("a", cases[i].reasons[0]);
        bury_job("b", cases[i].reasons[1]);
        expect_one_group(cases[i].folded, 2);
    }
}

SCENE_TEST(test_a_long_reason_is_cut_between_characters)
{
    char reason[1000] = "", folded[256];
    size_t len = 0;

    for (int i = 0; i < 3; i++)
        len += (size_t)snprintf(reason + len, sizeof reason - len, "%s", LONG_60);
    snprintf(reason + len, sizeof reason - len, "\xc3\xa4%s", LONG_60);
    snprintf(folded, sizeof folded, "%.60s...%s", reason, reason + strlen(reason) - 137);
    bury_job("a", reason);
    expect_one_group(folded, 1);
    redis_do("DEL", DEAD);
    memcpy(reason + 59, "\xc3\xa4", 2);
    memcpy(reason + strlen(reason) - 138, "\xc3\xa4", 2);
    snprintf(folded, sizeof folded, "%.59s...%s", reason, reason + strlen(reason) - 136);
    bury_job("a", reason);
    expect_one_group(folded, 1);
}

SCENE_TEST(test_groups_say_when_and_the_rest_is_one_row)
{
    struct dead_walk walk = {
        .w = w, .now_us = turns.now_us + 60 * SECOND_US, .verb = "count", .take = take_groups};
    json_t *groups = json_object(), *row;
    int64_t begin_us = turns.now_us;

    redis_do("ZADD", DEAD, "-5", "w:0 default/t/ order 1\n{\"id\":\"z\"}");
    for (int i = 0; i < 500; i++) {
        bury_job(textf("j%d", i), i % 5 < 3 ? textf("order %d", i) : textf("other %c", 'a' + i % 5));
        turns.now_us += 1000;
    }
    walk.arg = groups;
    must(dead_walk(&walk));
    groups = dead_groups(groups, 1);
    assert_int_equal(json_array_size(groups), 2);
    row = json_array_get(groups, 0);
    assert_string_equal(answer_text(row, "reason"), "order #");
    assert_int_equal(answer_int(row, "jobs"), 301);
    assert_int_equal(json_us(json_object_get(row, "first_at")), begin_us);
    assert_int_equal(json_us(json_object_get(row, "last_at")), begin_us + 497 * 1000);
    row = json_array_get(groups, 1);
    assert_true(json_is_null(json_object_get(row, "reason")));
    assert_int_equal(answer_int(row, "groups"), 2);
    assert_int_equal(answer_int(row, "jobs"), 200);
    assert_int_equal(json_us(json_object_get(row, "last_at")), begin_us + 499 * 1000);
    json_decref(groups);
}

SCENE_TEST(test_all_is_told_of_a_job)
{
    json_t *job, *expected;

    bury("w:1.00@5", "mail/t/k9", "failed 4 times: exit 1",
         "@3,1,2,bnight,wonce,t-JDOAw-,d-JDOAw0,e1794000000000001:a%2C b%0A;{\"id\":\"j\",\"type\":\"t\"}");
    job = only(ANY);
    expected = json_pack("{s:I,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:i,s:s}", "since",
                         (json_int_t)BEGIN_US, "id", "j", "type", "t", "queue", "mail", "key", "k9", "reason",
                         "failed 4 times: exit 1", "attempts", "3", "interrupted", "1", "throttled", "2",
                         "enqueued_at", "1795000000000000", "due_at", "1795000000010000", "batch", "night",
                         "unique", "once", "failed_at", "1794000000000001", "failure", "a, b\n", "bytes", 21,
                         "body", "{\"id\":\"j\",\"type\":\"t\"}");
    json_object_set_new(job, "since", json_integer(answer_int(job, "since")));
    fail_if(!json_equal(job, expected), "%s", json_dumps(job, 0));
    json_decref(expected);
    json_decref(job);
}

/* ---- Back into a queue */

/* What nobody can read has no queue, or nobody knows it: it stays, until somebody names one. */
/* It came back from a claim before it died. In its lane it stands behind one that was taken from there before it came. */
WORKER_TEST(test_a_retried_job_is_as_new)
{
    start("v");
    must(turns_rate("slow", "10/1000000/1"));
    enqueue("default", "slow", "a");
    expect_claim("a");
    settle("w", SETTLE_BACK, tokens[0], 1, NULL);
    expect_claim("a");
    settle("w", SETTLE_DEAD, tokens[0], 0, "x");
    turns.now_us += SECOND_US;
    enqueue("default", "slow", "b c");
    expect_claim("b");
    turns.now_us = turns.claim.next_us;
    expect_claim("c");
    expect_moved("retry", ANY, NULL, 1, 0);
    assert_int_equal(claim("v", 1, 0), 0);
    settle("w", SETTLE_BACK, tokens[0], 1, NULL);
    turns.now_us += LEAD_US;
    expect_in_turn("c a");
}

SCENE_TEST(test_what_has_no_queue_stays_until_one_is_named)
{
    const char *id;
    json_t *job;

    bury("w:1", "//", "its lease cannot be read: x", "@2,0,0;{\"id\":\"a\",\"type\":\"t\"}");
    bury("w:2", "default//", "unreadable: no JSON", "what\n\nis this");
    redis_do("ZADD", DEAD, "3", "junk");
    redis_do("ZADD", DEAD, "4", "");
    expect_moved("retry", ANY, NULL, 1, 3);
    expect_text("what\n\nis this", "LRANGE", QUEUE, "0", "-1");
    job = only((struct dead_filter){.reason = "this record cannot be read", .older_us = BEGIN_US - 3});
    id = answer_text(job, "id");
    assert_memory_equal(id, "raw:", 4);
    assert_string_equal(answer_text(job, "body"), "junk");
    expect_moved("retry", by_id(id), "other", 1, 0);
    json_decref(job);
    expect_moved("retry", by_id("a"), "other", 1, 0);
    expect_text("junk\n{\"id\":\"a\",\"type\":\"t\"}", "LRANGE", PREFIX "queue:other", "0", "-1");
    expect_moved("remove", ANY, NULL, 1, 0);
    assert_int_equal(redis_number("EXISTS", DEAD), 0);
}

/* ---- Ways into the dead jobs: a job of batch b and lock k, scheduled for now, goes one of them. */

static void promote_into(const char *key)
{
    redis_do("SET", key, "somebody's");
    promote(1);
    redis_do("DEL", key);
}

static void lease_it(void)
{
    promote(1);
    assert_int_equal(claim("w", 1, 0), 1);
}

static void by_promote_to_its_queue(void)
{
    promote_into(QUEUE);
}

static void by_settle(void)
{
    lease_it();
    settle("w", SETTLE_DEAD, tokens[0], 0, "why");
}

static void by_interruption(void)
{
    lease_it();
    settle("w", SETTLE_INTERRUPTED, tokens[0], 1, "why");
}

static void by_unread_lease(void)
{
    char *entry;

    lease_it();
    entry = redis_text("HGET", ACTIVE "w", token_texts[0]);
    settle("w", SETTLE_FINISH, tokens[0], 0, NULL);
    redis_do("HINCRBY", PREFIX "batch:b", "done", "-1");
    redis_do("SET", PREFIX "unique:k", "a");
    redis_do("HSET", ACTIVE "w", "what is this", entry);
    must(turns_adopt("w2", "w", NULL, 0, default_queue, NULL));
    free(entry);
}

static void as_unknown(void)
{
    ask.unknown_dead = true;
    redis_do("ZADD", PREFIX "runs", "1", "t");
    ask.types.count = 0;
    promote(1);
    assert_int_equal(claim("w", 1, 0), 0);
}

static void as_unfit(void)
{
    must(turns_rate("t", "1/1000000/1"));
    promote(1);
    assert_int_equal(claim("w", 1, 0), 0);
}

static void schedule_for_now(void)
{
    struct enqueue job = {.queue = span_str("default"),
                          .type = span_str("t"),
                          .id = span_str("a"),
                          .body = span_str("{\"id\":\"a\",\"type\":\"t\",\"cost\":2}"),
                          .keep_ms = 1000,
                          .tag = "tag",
                          .delay_us = 1,
                          .at_us = -1,
                          .batch = span_str("b"),
                          .unique = span_str("k"),
                          .lock_ms = LOCK_UNTIL_END};
    struct args a = {0};

    enqueue_request(&a, PREFIX, turns.now_us, &job);
    must(turns_send(&a));
    turns.now_us += SECOND_US;
}

SCENE_TEST(test_every_way_into_the_dead_jobs_is_counted)
{
    static void (*const ways[])(void) = {by_promote_to_its_queue, by_settle,  by_interruption,
                                         by_unread_lease,         as_unknown, as_unfit};

    for (size_t i = 0; i < COUNT(ways); i++) {
        worker_begin(state);
        use_secret();
        schedule_for_now();
        must(call_line("batch_seal b 0 other next"));
        ways[i]();
        assert_int_equal(turns_check().dead, 1);
        expect_text("1", "HGET", PREFIX "batch:b", "dead");
        expect_counters("next", "enqueued 1");
        assert_int_equal(redis_number("EXISTS", PREFIX "unique:k"), 0);
        expect_moved("retry", ANY, "default", 1, 0);
        expect_text("0", "HGET", PREFIX "batch:b", "dead");
        expect_text("a", "GET", PREFIX "unique:k");
        expect_text("@0,0,0,s" SECRET ",bb,uk;{\"id\":\"a\",\"type\":\"t\",\"cost\":2}", "LRANGE", QUEUE, "0",
                    "-1");
        assert_int_equal(turns_check().dead, 0);
    }
}

PLAY("dead")

TESTS(scene_start_client, scene_stop_client)

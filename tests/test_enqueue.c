/* Enqueueing one job: the scripts with right and wrong arguments, once by id, delayed, lost answers, a full
 * Redis. */
#include <hiredis/hiredis.h>
#include <math.h>

#include "core/client/client.h"
#include "core/clock.h"
#include "core/script/script.h"
#include "producer/enqueue.h"
#include "queue/enqueue/enqueue.h"
#include "queue/turn/turn.h"
#include "tests/client.h"
#include "tests/proxy.h"
#include "tests/test.h"

#define P "weir:{0}:"
#define NOW_US INT64_C(1795000000000001)

static struct error error;

#define assert_answer(expected, ...)                                                                         \
    do {                                                                                                     \
        char *answer = unstamped(server_ask(&server, __VA_ARGS__, NULL));                                    \
        assert_string_equal(answer, expected);                                                               \
        free(answer);                                                                                        \
    } while (0)

static long long length(const char *key)
{
    return server_number(&server, "LLEN", key, NULL);
}

/* Calls a script with these words, "a|b||c", behind now. */
static int call_script(const char *name, const char *words, struct redisReply **reply)
{
    char *text = textf("%s", words ? words : "");
    struct args a = {0};
    int status;

    script_begin(&a, name, P, -1);
    while (words && text)
        args_add(&a, strsep(&text, "|"));
    status = client_call(w, &a, reply, NULL);
    args_free(&a);
    return status;
}

static void expect_fault(const char *script, const char *words, int status, const char *says)
{
    struct redisReply *reply;

    fail_if(call_script(script, words, &reply) != status || !strstr(w->error.text, says),
            "%s %s: \"%s\" should say \"%s\"", script, words, w->error.text, says);
}

/* ---- Wrong arguments */

struct wrong {
    const char *words, *says;
};

static void assert_refused(const char *script, const struct wrong *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        expect_fault(script, cases[i].words, WEIR_EINPUT, cases[i].says);
        assert_answer("0", "DBSIZE");
    }
}

#define BODY "{\"id\":\"i\",\"type\":\"t\"}"
#define PLAIN "q|t|i|60000|x|" BODY
#define FORTY "0123456789012345678901234567890123456789"
#define LONG FORTY FORTY FORTY "012345678" /* 129 bytes */

TEST_WITH(test_enqueue_script_refuses, client_flush, NULL)
{
    static const struct wrong cases[] = {
        {NULL, "13 arguments"},
        {"q|t|i|60000|x||", "13 arguments"},
        {"q|t|i|60000|x|||||||" BODY "|more", "13 arguments"},
        {"|t|i|60000|x|||||||" BODY, "queue is not a valid name"},
        {"a:b|t|i|60000|x|||||||" BODY, "queue is not a valid name"},
        {"q|{t}|i|60000|x|||||||" BODY, "type is not a valid name"},
        {"q|t|i/i|60000|x|||||||" BODY, "id is not a valid name"},
        {"q|t|i|0|x|||||||" BODY, "keep_ms"},
        {"q|t|i|1.5|x|||||||" BODY, "keep_ms"},
        {"q|t|i|nan|x|||||||" BODY, "keep_ms"},
        {"q|t|i|1e30|x|||||||" BODY, "keep_ms"},
        {"q|t|i||x|||||||" BODY, "keep_ms"},
        {"q|t|i|0060|x|" BODY, "keep_ms"},
        {"q|t|i|1000000000000|x|" BODY, "keep_ms"},
        {"q|t|" LONG "|60000|x|{\"id\":\"" LONG "\",\"type\":\"t\"}", "id is not a valid name"},
        {"q|" LONG "|i|60000|x|{\"id\":\"i\",\"type\":\"" LONG "\"}", "type is not a valid name"},
        {"q|u|i|60000|x|" BODY, "another job's"},
        {"q|t|i|60000||||||||" BODY, "tag"},
        {"q|t|i|60000|a b|||||||" BODY, "tag"},
        {"q|t|i|60000|x|1|1|||||" BODY, "a delay or a time"},
        {"q|t|i|60000|x|soon||||||" BODY, "its time"},
        {"q|t|i|60000|x|nan||||||" BODY, "its time"},
        {"q|t|i|60000|x|inf||||||" BODY, "its time"},
        {"q|t|i|60000|x|1e17||||||" BODY, "its time"},
        {"q|t|i|60000|x||-1|||||" BODY, "its time"},
        {"q|t|i|60000|x||x|||||" BODY, "its time"},
        {"q|t|i|60000|x|||0||||" BODY, "its cost"},
        {"q|t|i|60000|x|||1.5||||" BODY, "its cost"},
        {"q|t|i|60000|x|||nan||||" BODY, "its cost"},
        {"q|t|i|60000|x|||||||", "another job's"},
        {"q|t|i|60000|x|||||||@9,0,0,t-JDOAw-;" BODY, "another job's"},
        {"q|t|i|60000|x|||||||@0,0,0,b-JDOAw-;" BODY, "another job's"},
        {"q|t|i|60000|x|||||||@0,0,0;" BODY, "another job's"},
        {"q|t|i|60000|x|||||||{\"id\":\"j\",\"type\":\"t\"}", "another job's"},
        {"q|t|i|60000|x||||||| " BODY, "another job's"},
        {"q|t|i|60000|x||||b b|||" BODY, "batch is not a valid name"},
        {"q|t|i|60000|x||||||end|" BODY, "without a unique key"},
        {"q|t|i|60000|x|||||k:k|end|" BODY, "unique key is not a valid name"},
        {"q|t|i|60000|x|||||k||" BODY, "its lock"},
        {"q|t|i|60000|x|||||k|never|" BODY, "its lock"},
        {"q|t|i|60000|x|||||k|0|" BODY, "its lock"},
        {"q|t|i|60000|x|||||k|1.5|" BODY, "its lock"},
        {"q|t|i|60000|x|||||k|315360000001|" BODY, "its lock"},
    };

    assert_refused("enqueue", cases, COUNT(cases));
}

TEST_WITH(test_append_script_refuses, client_flush, NULL)
{
    static const struct wrong cases[] = {
        {NULL, "batch is not a valid name"},
        {"|1000|0|1|s|s|seed||1|t|1|1|q|1|" BODY, "batch is not a valid name"},
        {"b|x|0|1|s|s|seed||1|t|1|1|q|1|" BODY, "keep_ms"},
        {"b|1000|-1|1|s|s|seed||1|t|1|1|q|1|" BODY, "whole numbers"},
        {"b|1000|0||s|s|seed||1|t|1|1|q|1|" BODY, "whole numbers"},
        {"b|1000|0|nan|s|s|seed||1|t|1|1|q|1|" BODY, "whole numbers"},
        {"b|1000|0|1", "no checksums"},
        {"b|1000|0|1|s|s", "its seed"},
        {"b|1000|0|1|s|s|a b", "its seed"},
        {"b||0|1|s|s|seed", "its stamp"},
        {"b||0|1|s|s|seed|123456;", "its stamp"},
        {"b||0|1|s|s|seed|12345678", "its stamp"},
        {"b|1000|0|1|s|s|seed|", "of its types"},
        {"b|1000|0|1|s|s|seed||x", "of its types"},
        {"b|1000|0|1|s|s|seed||2|t|1", "of its types"},
        {"b|1000|0|1|s|s|seed||1|t t|1|1|q|1|" BODY, "of its types"},
        {"b|1000|0|1|s|s|seed||1|t|0|1|q|1|" BODY, "of its types"},
        {"b|1000|0|1|s|s|seed||1|t|1", "of its queues"},
        {"b|1000|0|1|s|s|seed||1|t|1|1|q:q|1|" BODY, "of its queues"},
        {"b|1000|0|1|s|s|seed||1|t|1|1|q|-1|" BODY, "of its queues"},
        {"b|1000|0|1|s|s|seed||1|t|1|1|q|1", "do not agree"},
        {"b|1000|0|2|s|s|seed||1|t|1|1|q|1|" BODY "|" BODY, "do not agree"},
        {"b|1000|0|2|s|s|seed||1|t|2|1|q|1|" BODY, "do not agree"},
        {"b|1000|0|2|s|s|seed||1|t|1|1|q|2|" BODY "|" BODY, "do not agree"},
        {"b|1000|0|1|s|s|seed||1|t|2|1|q|2|" BODY "|" BODY, "do not agree"},
    };

    assert_refused("append", cases, COUNT(cases));
}

TEST_WITH(test_fits_script_refuses, client_flush, NULL)
{
    static const struct wrong cases[] = {
        {NULL, "a type and a cost"}, {"t", "a type and a cost"}, {"t t|1", "a type and"},
        {"t|0", "a type and"},       {"t|x", "a type and"},      {"t|1|2", "a type and"},
    };

    assert_refused("fits", cases, COUNT(cases));
}

/* Whatever foreign value stands under one of our names: refused, named, and nothing written. */
TEST_WITH(test_foreign_keys, client_flush, NULL)
{
    static const char one[] = "q|t|i|60000|x||||b|k|end|" BODY;
    static const char later[] = "q|t|i|60000|x|5000000||||||" BODY;
    static const char named[] = "b||0|1|s|s|seed||1|t|1|1|q|1|" BODY;
    static const char chunk[] = "b|1000|0|1|s|s|seed||1|t|1|1|q|1|" BODY;
    static const char fits[] = "t|2";
    static const struct {
        const char *script, *words, *key;
    } cases[] = {
        {"enqueue", one, P "queue:q"},  {"enqueue", one, P "queues"},  {"enqueue", one, P "types"},
        {"enqueue", one, P "stats:t"},  {"enqueue", later, P "later"}, {"append", chunk, P "queue:q"},
        {"append", chunk, P "queues"},  {"append", chunk, P "types"},  {"append", chunk, P "stats:t"},
        {"enqueue", one, P "batch:b"},  {"enqueue", one, P "batches"}, {"append", named, P "batches"},
        {"append", chunk, P "batch:b"}, {"fits", fits, P "types"},     {"fits", fits, P "limits"},
        {"enqueue", one, P "about"},    {"append", named, P "about"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        server_do(&server, "SET", cases[i].key, "foreign");
        expect_fault(cases[i].script, cases[i].words, WEIR_ECONFIG, cases[i].key);
        assert_answer("1", "DBSIZE");
        server_do(&server, "FLUSHALL");
    }
    server_do(&server, "HSET", P "stats:t", "enqueued", "many");
    expect_fault("append", chunk, WEIR_ECONFIG, "");
    assert_answer("1", "DBSIZE");
    server_do(&server, "FLUSHALL");
    server_do(&server, "HSET", P "batch:b", "total", "many");
    expect_fault("append", named, WEIR_ECONFIG, "");
    expect_fault("enqueue", one, WEIR_ECONFIG, "");
    assert_answer("1", "DBSIZE");
    server_do(&server, "FLUSHALL");
    server_do(&server, "RPUSH", P "unique:k", "foreign");
    expect_fault("enqueue", one, WEIR_ECONFIG, "");
    assert_answer("1", "DBSIZE");
    server_do(&server, "FLUSHALL");
    server_do(&server, "RPUSH", P "id:i", "foreign");
    expect_fault("enqueue", one, WEIR_ECONFIG, "");
}

/* A plain job is written without a look before: what was written before the step that fails is taken back. */
TEST_WITH(test_foreign_keys_of_a_plain_job, client_flush, NULL)
{
    static const char *const keys[] = {P "queue:q", P "queues", P "types", P "stats:t"};

    for (size_t i = 0; i < COUNT(keys); i++) {
        server_do(&server, "SET", keys[i], "foreign");
        expect_fault("enqueue", PLAIN, WEIR_ECONFIG, keys[i]);
        assert_answer(keys[i], "KEYS", "*");
        server_do(&server, "FLUSHALL");
    }
    server_do(&server, "RPUSH", P "id:i", "foreign");
    expect_fault("enqueue", PLAIN, WEIR_ECONFIG, "");
    assert_answer(P "id:i", "KEYS", "*");
    server_do(&server, "FLUSHALL");
    server_do(&server, "HSET", P "stats:t", "enqueued", "many");
    expect_fault("enqueue", PLAIN, WEIR_ECONFIG, "");
    assert_answer(P "stats:t", "KEYS", "*");
    assert_answer("many", "HGET", P "stats:t", "enqueued");
}

/* The same where others of its type and queue were there before. */
TEST_WITH(test_foreign_queues_behind_others, client_flush, NULL)
{
    server_do(&server, "HSET", P "stats:t", "enqueued", "7");
    server_do(&server, "RPUSH", P "queue:q", "first");
    server_do(&server, "SET", P "queues", "foreign");
    expect_fault("enqueue", PLAIN, WEIR_ECONFIG, P "queues");
    assert_answer("7", "HGET", P "stats:t", "enqueued");
    assert_answer("first", "LRANGE", P "queue:q", "0", "-1");
    assert_answer("3", "DBSIZE");
}

/* A known queue gets jobs without a look before. Where something foreign stands there, it is left alone, the id is free again, and the type's count
 * is what it was: of a type that is new, and of another. */
static void try_foreign_queue(const char *script, const char *words, int count)
{
    static const char *const counts[] = {"0", "7"};
    struct redisReply *reply;

    for (size_t i = 0; i < COUNT(counts); i++) {
        server_do(&server, "FLUSHALL");
        server_do(&server, "SADD", P "queues", "q");
        server_do(&server, "SET", P "queue:q", "foreign");
        if (i > 0)
            server_do(&server, "HSET", P "stats:t", "enqueued", counts[i]);
        expect_fault(script, words, WEIR_ECONFIG, P "queue:q");
        assert_answer(counts[i], "HGET", P "stats:t", "enqueued");
        assert_answer("foreign", "GET", P "queue:q");
        assert_answer("3", "DBSIZE");
        server_do(&server, "DEL", P "queue:q");
        assert_int_equal(call_script(script, words, &reply), 0);
        freeReplyObject(reply);
        assert_int_equal(server_number(&server, "HGET", P "stats:t", "enqueued", NULL),
                         atoi(counts[i]) + count);
        assert_int_equal(server_number(&server, "LLEN", P "queue:q", NULL), count);
        assert_int_equal(server_number(&server, "HEXISTS", P "types", "t", NULL), i == 0);
    }
}

TEST_WITH(test_a_foreign_queue_that_is_known, client_flush, NULL)
{
    try_foreign_queue("enqueue", PLAIN, 1);
    try_foreign_queue("append", "b|1000|0|2|s|s|seed||1|t|2|1|q|2|" BODY "|" BODY, 2);
    assert_answer("2\ns", "HMGET", P "batch:b", "next", "sum");
}

/* A queue that a chunk is the first to name is listed, though its type is known. */
TEST_WITH(test_a_new_queue_of_a_chunk, client_flush, NULL)
{
    struct redisReply *reply;

    server_do(&server, "HSET", P "stats:t", "enqueued", "7");
    assert_int_equal(call_script("append", "b|1000|0|1|s|s|seed||1|t|1|1|q|1|" BODY, &reply), 0);
    freeReplyObject(reply);
    assert_answer("q", "SMEMBERS", P "queues");
    assert_answer("8", "HGET", P "stats:t", "enqueued");
}

/* ---- One job */

TEST_WITH(test_enqueue_at_once, client_flush, NULL)
{
    struct weir_job_spec spec = {
        .type = "t", .args = "[1]", .id = "mine", .key = "k", .queue = "q", .max_attempts = 2};
    char id[WEIR_ID_SIZE];
    enum enqueue_result result;

    assert_int_equal(enqueue_job(w, &spec, id, &result), 0);
    assert_string_equal(id, "mine");
    assert_int_equal(result, ENQUEUE_NEW);
    assert_answer("{\"id\":\"mine\",\"type\":\"t\",\"key\":\"k\",\"args\":[1],\"max_attempts\":2}", "LRANGE",
                  P "queue:q", "0", "-1");
    assert_answer("enqueued\n1", "HGETALL", P "stats:t");
    assert_answer("q", "SMEMBERS", P "queues");
    assert_answer("t", "HKEYS", P "types");
    assert_true(server_number(&server, "PTTL", P "id:mine", NULL) > 86390000);

    spec.args = "[2]";
    assert_int_equal(enqueue_job(w, &spec, id, &result), 0);
    assert_string_equal(id, "mine");
    assert_int_equal(result, ENQUEUE_KNOWN);
    assert_int_equal(length(P "queue:q"), 1);
    assert_answer("1", "HGET", P "stats:t", "enqueued");
}

/* Above what its limit can ever let start at once: refused, and nothing is written. */
TEST_WITH(test_enqueue_cost, client_flush, NULL)
{
    struct weir_job_spec spec = {.type = "t", .queue = "q", .id = "i", .cost = 5};
    char id[WEIR_ID_SIZE];

    assert_int_equal(weir_rate_set(w, "t", "100/1m,burst=5"), 0);
    assert_int_equal(weir_enqueue(w, &spec, id), 0);
    assert_answer("{\"id\":\"i\",\"type\":\"t\",\"cost\":5}", "LRANGE", P "queue:q", "0", "-1");
    spec.cost = 6;
    spec.id = "j";
    assert_int_equal(weir_enqueue(w, &spec, id), WEIR_EINPUT);
    assert_non_null(strstr(weir_message(w), "limit t"));
    assert_int_equal(length(P "queue:q"), 1);
    assert_int_equal(server_number(&server, "EXISTS", P "id:j", NULL), 0);
    spec.type = "unlimited";
    spec.cost = 1000000000;
    assert_int_equal(weir_enqueue(w, &spec, id), 0);
}

TEST_WITH(test_enqueue_made_ids, client_flush, NULL)
{
    char one[WEIR_ID_SIZE], other[WEIR_ID_SIZE];
    long long ttl_ms;

    assert_int_equal(weir_enqueue(w, &(struct weir_job_spec){.type = "t"}, one), 0);
    assert_int_equal(weir_enqueue(w, &(struct weir_job_spec){.type = "t"}, other), 0);
    assert_int_equal(weir_enqueue(w, &(struct weir_job_spec){.type = "t"}, NULL), 0);
    assert_string_not_equal(one, other);
    assert_int_equal(length(P "queue:default"), 3);
    ttl_ms = server_number(&server, "PTTL", textf(P "id:%s", one), NULL);
    assert_true(ttl_ms > 50000 && ttl_ms <= 60000);
}

/* ---- Later */

static void enqueue_at(int64_t now_us, const char *id, int64_t delay_us, int64_t at_us)
{
    struct enqueue job = {.queue = {"q", 1},
                          .type = {"t", 1},
                          .id = {id, strlen(id)},
                          .keep_ms = 60000,
                          .tag = "tag",
                          .delay_us = delay_us,
                          .at_us = at_us};
    struct redisReply *reply;
    enum enqueue_result result;
    struct span answered;
    struct args a = {0};

    job.body = span_str(textf("{\"id\":\"%s\",\"type\":\"t\"}", id));
    enqueue_request(&a, P, now_us, &job);
    assert_int_equal(client_call(w, &a, &reply, NULL), 0);
    assert_int_equal(enqueue_reply(reply, &job, &result, &answered, &error), 0);
    assert_int_equal(result, ENQUEUE_NEW);
    freeReplyObject(reply);
    args_free(&a);
}

/* ---- When jobs were enqueued */

#define FAR_US INT64_C(4102444700000000) /* 2099-12-31 */

static int64_t enqueued_us(const char *entry)
{
    return entry_enqueued_us(span_str(entry));
}

/* Since when it waits, where that is later. */
static int64_t due_us(const char *entry)
{
    struct lease lease;

    assert_true(lease_read_entry(span_str(entry), &lease));
    return stamp_read(lease_attr(lease.attrs, 'd'));
}

/* Each way in writes it: one by one, in bulks, in batches; a scheduled job says when it is due, too. */
TEST_WITH(test_entries_say_when, client_flush, NULL)
{
    struct weir_job_spec spec = {.type = "t"};
    struct weir_bulk *b;
    int64_t begin_us = clock_wall_us() - 10000;
    char id[WEIR_ID_SIZE], *text, *rest, *entry;
    int entries = 0;

    assert_int_equal(weir_enqueue(w, &spec, id), 0);
    spec.unique = "k";
    assert_int_equal(weir_enqueue(w, &spec, id), 0);
    spec.unique = NULL;
    for (int named = 0; named <= 1; named++) {
        assert_int_equal(weir_bulk_open(w, named ? "b" : NULL, &b), 0);
        assert_int_equal(weir_bulk_add(b, &spec), 0);
        assert_int_equal(weir_bulk_add(b, &spec), 0);
        assert_int_equal(weir_bulk_close(b, NULL), 0);
    }
    rest = text = server_ask(&server, "LRANGE", P "queue:default", "0", "-1", NULL);
    for (; (entry = strsep(&rest, "\n")); entries++)
        assert_in_range(enqueued_us(entry), begin_us, clock_wall_us());
    assert_int_equal(entries, 6);
    free(text);
    enqueue_at(NOW_US, "later", 1500000, -1);
    enqueue_at(NOW_US, "at", -1, NOW_US + 3000000);
    enqueue_at(NOW_US, "far", -1, FAR_US);
    enqueue_at(NOW_US, "past", -1, NOW_US - 3000000);
    rest = text = server_ask(&server, "ZRANGE", P "later", "0", "-1", NULL);
    strsep(&rest, "\n");
    entry = strsep(&rest, "\n");
    assert_int_equal(enqueued_us(entry), NOW_US - 1);
    assert_int_equal(due_us(entry), NOW_US - 1 + 1500000);
    strsep(&rest, "\n");
    entry = strsep(&rest, "\n");
    assert_int_equal(enqueued_us(entry), NOW_US - 1);
    assert_int_equal(due_us(entry), NOW_US - 1 + 3000000);
    strsep(&rest, "\n");
    assert_int_equal(due_us(strsep(&rest, "\n")), FAR_US);
    free(text);
    text = server_ask(&server, "LINDEX", P "queue:q", "-1", NULL);
    assert_int_equal(enqueued_us(text), NOW_US - 1);
    free(text);
}

TEST_WITH(test_enqueue_later, client_flush, NULL)
{
    enqueue_at(NOW_US, "b", 1500000, -1);
    assert_answer("q b.tag q t\n{\"id\":\"b\",\"type\":\"t\"}\n1795000001500001", "ZRANGE", P "later", "0",
                  "-1", "WITHSCORES");
    assert_answer("scheduled\n1", "HGETALL", P "stats:t");
    assert_answer("q", "SMEMBERS", P "queues");
    assert_answer("t", "HKEYS", P "types");
    assert_int_equal(length(P "queue:q"), 0);

    enqueue_at(NOW_US, "c", -1, NOW_US + 1);
    assert_answer("q c.tag q t\n{\"id\":\"c\",\"type\":\"t\"}", "ZRANGE", P "later", "0", "0");
    enqueue_at(NOW_US, "d", -1, NOW_US); /* that is now */
    enqueue_at(NOW_US, "e", 0, -1);
    enqueue_at(NOW_US, "f", -1, 5);
    assert_int_equal(length(P "queue:q"), 3);
    assert_int_equal(server_number(&server, "PTTL", P "id:f", NULL), -1); /* a virtual clock */
}

/* Who keeps the timer hears of a job that is due before all others, and of no other. */
TEST_WITH(test_enqueue_later_rings, client_flush, NULL)
{
    server_do(&server, "HSET", P "duty", "g", "worker 1795000002000000 p,q");
    enqueue_at(NOW_US, "a", 5000000, -1);
    assert_int_equal(length(P "bell:g"), 1);
    server_do(&server, "DEL", P "bell:g");
    enqueue_at(NOW_US, "b", 6000000, -1);
    assert_int_equal(length(P "bell:g"), 0);
    enqueue_at(NOW_US, "c", 4000000, -1);
    assert_int_equal(length(P "bell:g"), 1);
}

TEST_WITH(test_enqueue_delay, client_flush, NULL)
{
    long long now_s, score;
    char *score_text;

    assert_int_equal(weir_enqueue(w, &(struct weir_job_spec){.type = "t", .delay_s = 100.5}, NULL), 0);
    score_text = server_ask(&server, "ZRANGE", P "later", "0", "0", "WITHSCORES", NULL);
    score = atoll(strrchr(score_text, '\n') + 1);
    free(score_text);
    score_text = server_ask(&server, "TIME", NULL);
    now_s = atoll(score_text);
    free(score_text);
    assert_in_range(score / 1000000 - now_s, 80, 101);
}

TEST_WITH(test_enqueue_refuses, client_flush, NULL)
{
    static const struct {
        struct weir_job_spec spec;
        int status;
    } cases[] = {
        {{.type = NULL}, WEIR_EINPUT},
        {{.type = "a:b"}, WEIR_EINPUT},
        {{.type = "t", .args = "{a"}, WEIR_EINPUT},
        {{.type = "t", .delay_s = -1}, WEIR_EINPUT},
        {{.type = "t", .delay_s = NAN}, WEIR_EINPUT},
        {{.type = "t", .delay_s = INFINITY}, WEIR_EINPUT},
        {{.type = "t", .at_s = -5}, WEIR_EINPUT},
        {{.type = "t", .at_s = 1e12}, WEIR_EINPUT},
        {{.type = "t", .at_s = 1e9, .delay_s = 1}, WEIR_EUSAGE},
        {{.type = "t", .batch = "a b"}, WEIR_EINPUT},
        {{.type = "t", .unique = ""}, WEIR_EINPUT},
        {{.type = "t", .unique = "a b"}, WEIR_EINPUT},
        {{.type = "t", .unique = "k:"}, WEIR_EINPUT},
        {{.type = "t", .unique = "k:soon"}, WEIR_EINPUT},
        {{.type = "t", .unique = "k:0s"}, WEIR_EINPUT},
        {{.type = "t", .unique = "k:4000d"}, WEIR_EINPUT},
        {{.type = "t", .unique = "k:waiting:1s"}, WEIR_EINPUT},
        {{.type = "t", .meta = "{"}, WEIR_EINPUT},
        {{.type = "t", .traceparent = ""}, WEIR_EINPUT},
        {{.type = "t", .traceparent = "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01"},
         WEIR_EINPUT},
        {{.type = "t", .traceparent = "00-00000000000000000000000000000000-b7ad6b7169203331-01"},
         WEIR_EINPUT},
        {{.type = "t", .traceparent = "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01"},
         WEIR_EINPUT},
        {{.type = "t", .traceparent = "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
         WEIR_EINPUT},
        {{.type = "t", .traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\""},
         WEIR_EINPUT},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(weir_enqueue(w, &cases[i].spec, NULL), cases[i].status);
        assert_true(strlen(weir_message(w)) > 10);
    }
    assert_answer("0", "DBSIZE");
}

/* ---- Faults */

/* The request or the answer is lost: the job arrives once, and is new to its caller. */
TEST_WITH(test_enqueue_lost_connection, client_flush, NULL)
{
    struct proxy *proxy = proxy_start(&server);
    struct weir *through = weir_new(proxy_url(proxy), NULL);
    char id[WEIR_ID_SIZE];
    long long jobs = 0;
    enum enqueue_result result;
    int partitions;

    assert_int_equal(client_learn(through, &partitions), 0);
    for (int given = 0; given < 2; given++)
        for (enum proxy_side side = PROXY_REQUESTS; side <= PROXY_REPLIES; side++) {
            struct weir_job_spec spec = {.type = "t",
                                         .id = given ? (side == PROXY_REPLIES ? "a" : "b") : NULL,
                                         .unique = side == PROXY_REPLIES ? given ? "k" : "l:waiting" : NULL,
                                         .batch = "b"};

            assert_int_equal(weir_enqueue(through, &(struct weir_job_spec){.type = "warm"}, NULL), 0);
            proxy_cut_before(proxy, side, 1);
            assert_int_equal(enqueue_job(through, &spec, id, &result), 0);
            assert_true(proxy_has_cut(proxy));
            assert_int_equal(result, ENQUEUE_NEW);
            jobs += 2;
            assert_int_equal(length(P "queue:default"), jobs);
        }
    assert_int_equal(server_number(&server, "HGET", P "batch:b", "total", NULL), 4);
    weir_free(through);
    proxy_stop(proxy);
}

TEST_WITH(test_enqueue_unreachable, client_flush, NULL)
{
    struct weir *nowhere = weir_new("unix:///nonexistent/redis.sock", NULL);
    struct weir *wrong = weir_new("http://x", NULL);

    assert_int_equal(weir_enqueue(nowhere, &(struct weir_job_spec){.type = "t"}, NULL), WEIR_EUNREACHABLE);
    assert_int_equal(weir_enqueue(wrong, &(struct weir_job_spec){.type = "t"}, NULL), WEIR_ECONFIG);
    weir_free(nowhere);
    weir_free(wrong);
}

TEST_WITH(test_enqueue_full, client_flush, NULL)
{
    assert_int_equal(weir_enqueue(w, &(struct weir_job_spec){.type = "t"}, NULL), 0);
    server_do(&server, "CONFIG", "SET", "maxmemory", "1");
    assert_int_equal(weir_enqueue(w, &(struct weir_job_spec){.type = "t"}, NULL), WEIR_ENOTNOW);
    assert_non_null(strstr(weir_message(w), "maxmemory"));
    server_do(&server, "CONFIG", "SET", "maxmemory", "0");
    assert_int_equal(length(P "queue:default"), 1);
    assert_int_equal(weir_enqueue(w, &(struct weir_job_spec){.type = "t"}, NULL), 0);
}

TESTS(client_start, client_stop)

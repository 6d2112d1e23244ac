/* Partitions of a namespace: the rule that says where a name lives, in C and in Lua; what a client learns; calls that follow. */
#include <hiredis/hiredis.h>

#include "core/client/answer.h"
#include "core/redis/cluster.h"
#include "core/script/script.h"
#include "producer/bulk.h"
#include "queue/queues/divide.h"
#include "tests/client.h"
#include "tests/proxy.h"
#include "tests/test.h"

#define assert_answer(expected, ...)                                                                         \
    do {                                                                                                     \
        char *answer = server_ask(&server, __VA_ARGS__, NULL);                                               \
        assert_string_equal(answer, expected);                                                               \
        free(answer);                                                                                        \
    } while (0)

/* ---- The rule */

TEST(test_crc16)
{
    static const struct {
        const char *text;
        unsigned crc;
    } known[] = {{"", 0}, {"123456789", 0x31c3}, {"foo", 0xaf96}, {"bar", 0x93c5}, {"\xff\x80", 0x9277}};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_int_equal(partition_crc16(known[i].text, strlen(known[i].text)), known[i].crc);
    assert_int_equal(partition_slot(0), CLUSTER_SLOT);
}

TEST(test_prefix)
{
    char prefix[PREFIX_SIZE] = "weir:{0}:";

    partition_prefix(prefix, 63, prefix);
    assert_string_equal(prefix, "weir:{63}:");
    partition_prefix(prefix, 0, prefix);
    assert_string_equal(prefix, "weir:{0}:");
}

/* Up to the first dot. */
static size_t prefix_len(const char *name)
{
    return strcspn(name, ".");
}

TEST(test_names_that_begin_alike)
{
    for (int count = 2; count <= PARTITIONS_MOST; count++) {
        int home = (int)(partition_crc16("mail", 4) % (unsigned)count);

        assert_int_equal(partition_home("mail", 4, count), home);
        assert_int_equal(partition_home("mail.bulk", 9, count), home);
        assert_int_equal(partition_home("mail.a.b", 8, count), home);
        assert_int_equal(partition_home("mail.", 5, count), home);
        assert_int_equal(partition_home("mailing", 4, count), home); /* as long as is asked for */
        assert_int_equal(partition_home(".mail", 5, count), 0);
    }
    assert_int_not_equal(partition_home("mailing", 7, 4), partition_home("mail", 4, 4));
    assert_int_equal(partition_home("mail", 4, 1), 0);
    assert_int_equal(partition_home("mail", 4, 0), 0);
}

TEST(test_refusals_are_learned)
{
    static const char *const wrong[] = {"",
                                        "WRONG-PARTITION",
                                        "WRONG-PARTITION 1",
                                        "WRONG-PARTITION 4 4 mail",
                                        "WRONG-PARTITION -1 4 mail",
                                        "WRONG-PARTITION 1 65 mail",
                                        "WEIR enqueue: no"};
    int p, count;

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(partition_learn(wrong[i], &p, &count));
    assert_true(partition_learn("WRONG-PARTITION 3 4 mail: lives elsewhere", &p, &count));
    assert_int_equal(p, 3);
    assert_int_equal(count, 4);
}

/* ---- Calls */

static void set_count(const char *count)
{
    for (int p = 0; p < atoi(count); p++)
        server_do(&server, "HSET", textf("weir:{%d}:about", p), "partitions", count);
    server_do(&server, "FUNCTION", "FLUSH"); /* it keeps the number of the test before */
}

/* So many jobs wait in the usual queue of a partition. */
static long long waiting(int p)
{
    return server_number(&server, "LLEN", textf("weir:{%d}:queue:default", p), NULL);
}

static void enqueue(const char *type)
{
    struct weir_job_spec spec = {.type = type};

    fail_if(weir_enqueue(w, &spec, NULL) != 0, "%s", weir_message(w));
}

TEST_WITH(test_lua_agrees, client_begin, client_end)
{
    static const char *const counts[] = {"2", "7", "64"};
    static const char *const names[] = {
        "a", "mail", "mail.bulk", "mail.urgent.eu", ".mail", "mail.", "A_b-c.9", "..", "x-1", "0"};
    char name[129];

    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        set_count(counts[c]);
        for (int i = 0; i < 40; i++) {
            const char *type = i < 10 ? names[i] : name;
            int home, before;

            name[3 * i] = i > 20 ? '.' : (char)('A' + i);
            home = (int)(partition_crc16(type, prefix_len(type)) % (unsigned)atoi(counts[c]));
            before = (int)waiting(home);
            enqueue(type);
            assert_int_equal(waiting(home), before + 1);
            assert_int_equal(partition_home(type, strlen(type), atoi(counts[c])), home);
        }
    }
}

TEST_WITH(test_one_partition_is_asked_once, client_begin, client_end)
{
    long long before;

    enqueue("mail");
    before = server_calls(&server, "fcall");
    enqueue("mail");
    assert_int_equal(server_calls(&server, "fcall"), before + 1);
    assert_int_equal(waiting(0), 2);
}

/* The first call learns how many there are, and by the second one each name is asked at its home. */
TEST_WITH(test_a_call_follows, client_begin, client_end)
{
    long long before;

    set_count("4");
    enqueue("mail");
    assert_int_equal(waiting(3), 1);
    assert_int_equal(client_count(w), 4);
    before = server_calls(&server, "fcall");
    enqueue("mail");
    enqueue("a.b");
    enqueue("b");
    assert_int_equal(server_calls(&server, "fcall"), before + 3);
    assert_int_equal(waiting(3), 3);
}

/* One partition has lost how many there are: it sends back, and no job comes. */
TEST_WITH(test_a_circle_ends, client_begin, client_end)
{
    struct weir_job_spec spec = {.type = "mail"};

    set_count("2");
    server_do(&server, "HDEL", "weir:{1}:about", "partitions");
    assert_int_equal(weir_enqueue(w, &spec, NULL), WEIR_ENOTNOW);
    assert_non_null(strstr(weir_message(w), "another partition"));
    assert_int_equal(waiting(0) + waiting(1), 0);
}

TEST_WITH(test_count, client_begin, client_end)
{
    json_t *answer;
    struct args a = {0};
    int count;

    assert_int_equal(client_count(w), 1);
    set_count("5");
    script_begin(&a, "status", w->prefix, -1);
    fail_if(client_ask(w, "status", &a, &answer) != 0, "%s", weir_message(w));
    json_decref(answer);
    assert_int_equal(client_count(w), 5);
    weir_free(w);

    w = weir_new(server.url, NULL);
    assert_int_equal(client_learn(w, &count), 0);
    assert_int_equal(count, 5);
    assert_int_equal(client_at(w, 4), 0);
    assert_string_equal(w->prefix, "weir:{4}:");

    server_do(&server, "HDEL", "weir:{4}:about",
              "partitions"); /* a partition that has lost its data says nothing */
    script_begin(&a, "rate_log", w->prefix, -1);
    fail_if(client_ask(w, "rate_log", &a, &answer) != 0, "%s", weir_message(w));
    json_decref(answer);
    assert_int_equal(client_count(w), 5);
}

/* ---- Bulks */

#define TYPES 40
#define JOBS 4000

static void type_name(char type[24], int i)
{
    snprintf(type, 24, i % 2 ? "type-%d" : "type-%d.even", i % TYPES);
}

/* All jobs of a bulk through that client, each once and on the partition of its type, in their order. */
static void bulk_through(struct weir *through)
{
    struct weir_bulk_counts counts;
    struct weir_bulk *b;
    char type[24], args[24];

    assert_int_equal(weir_bulk_open(through, NULL, &b), 0);
    for (int i = 0; i < JOBS; i++) {
        type_name(type, i);
        snprintf(args, sizeof args, "%d", i);
        if (weir_bulk_add(
                b, &(struct weir_job_spec){.type = type, .args = args, .cost = i % 997 ? 0 : 1 + i % 2}))
            fail_msg("%s", weir_message(through));
    }
    fail_if(weir_bulk_close(b, &counts), "%s", weir_message(through));
    assert_int_equal(counts.accepted, JOBS);
}

/* Each of the jobs stands once, at the home of its type, behind those of its type that were added before. */
static void assert_all_there(int partitions)
{
    int last[TYPES], found = 0;

    memset(last, -1, sizeof last);
    for (int p = 0; p < partitions; p++) {
        char *jobs, *at;

        jobs = server_ask(&server, "LRANGE", textf("weir:{%d}:queue:default", p), "0", "-1", NULL);
        for (at = jobs; (at = strstr(at, "\"type\":\"")); found++) {
            const char *type = at + strlen("\"type\":\"");
            size_t len = strcspn(type, "\"");
            int args = atoi(strstr(type, "\"args\":") + strlen("\"args\":")), *before = &last[args % TYPES];

            assert_int_equal(p, partition_home(type, len, partitions));
            assert_true(args > *before);
            *before = args;
            at = (char *)type;
        }
        free(jobs);
    }
    assert_int_equal(found, JOBS);
}

TEST_WITH(test_bulk_over_partitions, client_begin, client_end)
{
    set_count("4");
    bulk_through(w);
    assert_all_there(4);
}

/* It ends, with nothing taken, and the next one goes where its jobs live. */
TEST_WITH(test_a_bulk_into_what_was_parted_meanwhile, client_begin, client_end)
{
    struct weir_bulk *b;

    server_do(&server, "SADD", "weir:{0}:queues", "default"); /* both are known there */
    server_do(&server, "HSET", "weir:{0}:stats:mail", "enqueued", "7");
    assert_int_equal(weir_bulk_open(w, NULL, &b), 0);
    set_count("3");
    for (int i = 0; i < 10; i++)
        assert_int_equal(weir_bulk_add(b, &(struct weir_job_spec){.type = "mail"}), 0);
    assert_int_equal(weir_bulk_close(b, NULL), WEIR_ENOTNOW);
    assert_non_null(strstr(weir_message(w), "lives on another partition; try again"));
    assert_int_equal(waiting(0) + waiting(2), 0);
    bulk_through(w);
    assert_all_there(3);

    server_do(&server, "FLUSHALL"); /* and into one that is not parted any more */
    server_do(&server, "FUNCTION", "FLUSH");
    assert_int_equal(weir_bulk_open(w, NULL, &b), 0);
    assert_int_equal(weir_bulk_add(b, &(struct weir_job_spec){.type = "mail"}), 0);
    assert_int_equal(weir_bulk_close(b, NULL), WEIR_ENOTNOW);
    bulk_through(w);
    assert_all_there(1);
}

TEST_WITH(test_bulk_through_cuts, client_begin, client_end)
{
    struct proxy *proxy = proxy_start(&server);

    for (enum proxy_side side = PROXY_REQUESTS; side <= PROXY_REPLIES; side++)
        for (unsigned n = 3; n < 14; n += 3) {
            struct weir *through = weir_new(proxy_url(proxy), NULL);
            int count;

            set_count("3");
            assert_int_equal(client_learn(through, &count), 0);
            proxy_cut_before(proxy, side, n);
            bulk_through(through);
            proxy_cut_before(proxy, side, 0);
            assert_all_there(3);
            server_do(&server, "FLUSHALL");
            weir_free(through);
        }
    proxy_stop(proxy);
}

/* Of four partitions "mail" and "e" live on 3, "b" and "c" elsewhere. */
TEST_WITH(test_batch_has_one_partition, client_begin, client_end)
{
    struct weir_bulk_counts counts;
    struct weir_bulk *b;
    char args[24];

    set_count("4");
    for (int run = 0; run < 2; run++) { /* the second one resumes what the first one began */
        assert_int_equal(weir_bulk_open(w, "letters", &b), 0);
        for (int i = 0; i < 1500 + 500 * run; i++) {
            snprintf(args, sizeof args, "%d", i);
            if (weir_bulk_add(b, &(struct weir_job_spec){.type = "mail", .args = args}))
                fail_msg("%s", weir_message(w));
        }
        if (run == 0)
            assert_int_equal(bulk_flush(b), 0);
        assert_int_equal(weir_bulk_add(b, &(struct weir_job_spec){.type = "b"}), WEIR_EINPUT);
        assert_non_null(strstr(weir_message(w), "a batch has one partition"));
        if (run == 0)
            weir_bulk_abandon(b);
        else
            assert_int_equal(weir_bulk_close(b, &counts), 0);
    }
    assert_int_equal(counts.resumed, 1500);
    assert_int_equal(counts.accepted, 500);
    assert_int_equal(waiting(3), 2000);
    assert_answer("2000", "HGET", "weir:{3}:batch:letters", "total");
    assert_answer("0", "EXISTS", "weir:{0}:batch:letters", "weir:{1}:batch:letters");
}

/* One that is filled job by job. */
TEST_WITH(test_batch_of_single_jobs, client_begin, client_end)
{
    set_count("4");
    assert_int_equal(weir_enqueue(w, &(struct weir_job_spec){.type = "mail", .batch = "letters"}, NULL), 0);
    assert_int_equal(weir_enqueue(w, &(struct weir_job_spec){.type = "e", .batch = "letters"}, NULL), 0);
    assert_int_equal(weir_enqueue(w, &(struct weir_job_spec){.type = "c", .batch = "letters"}, NULL),
                     WEIR_EINPUT);
    assert_non_null(strstr(weir_message(w), "a batch has one partition"));
    assert_answer("2", "HGET", "weir:{3}:batch:letters", "total");
}

/* ---- How many there are */

static int divide_by(int count, bool *was)
{
    struct weir *other = weir_new(server.url, NULL);
    int status = divide(other, count, was);

    weir_free(other);
    return status;
}

/* What the library keeps of the number for a moment is forgotten. */
TEST_WITH(test_divided_now, client_begin, client_end)
{
    int count;
    bool was;
    const char *function = textf("weir_%s_fits", script_digest);

    assert_int_equal(client_learn(w, &count), 0); /* loads the library */
    assert_answer("\n", "FCALL_RO", function, "1", "weir:{0}:", "", "mail", "1");
    assert_int_equal(divide_by(7, &was), 0);
    assert_answer("(error) WRONG-PARTITION 3 7 mail", "FCALL_RO", function, "1", "weir:{0}:", "", "mail",
                  "1");
}

/* It died on the way: the others know, partition 0 does not. */
TEST_WITH(test_half_divided, client_begin, client_end)
{
    bool was;

    server_do(&server, "HSET", "weir:{3}:about", "partitions", "4");
    server_do(&server, "HSET", "weir:{2}:about", "partitions", "4");
    assert_int_equal(divide_by(3, &was), 0); /* with another number at last */
    assert_false(was);
    for (int p = 0; p < 3; p++)
        assert_answer("3", "HGET", textf("weir:{%d}:about", p), "partitions");
    server_do(&server, "HDEL", "weir:{1}:about", "partitions"); /* lost */
    assert_int_equal(divide_by(3, &was), 0);
    assert_true(was);
    assert_answer("3", "HGET", "weir:{1}:about", "partitions");
    assert_int_equal(divide_by(4, &was), WEIR_ECONFIG);
    assert_answer("4", "HGET", "weir:{3}:about", "partitions");
}

/* All is lost right behind a call for which the library has asked for the number: within one transaction. */
TEST_WITH(test_the_number_is_restored_at_once, client_begin, client_end)
{
    static const char info[] = "{\"partitions\":3}";
    redisContext *c = redisConnectUnix(server.socket);

    set_count("3");
    enqueue("mail"); /* loads the library */
    freeReplyObject(redisCommand(c, "MULTI"));
    freeReplyObject(redisCommand(c, "FCALL_RO weir_%s_fits 1 weir:{0}: %s mail 1", script_digest, ""));
    freeReplyObject(redisCommand(c, "FLUSHALL"));
    freeReplyObject(
        redisCommand(c, "FCALL weir_%s_adopt 1 weir:{0}:role:worker %s w %s g 30000000 %s %s 0 1 default",
                     script_digest, "", "", info, ""));
    freeReplyObject(redisCommand(c, "EXEC"));
    assert_answer("3", "HGET", "weir:{0}:about", "partitions");
    redisFree(c);
}

TEST_WITH(test_in_use, client_begin, client_end)
{
    bool was;

    enqueue("mail");
    assert_int_equal(divide_by(2, &was), WEIR_ECONFIG);
    assert_int_equal(divide_by(1, &was), 0);
    assert_true(was);
    server_do(&server, "FLUSHALL");
    server_do(&server, "RPUSH", "weir:{1}:later", "x"); /* somebody's */
    assert_int_equal(divide_by(2, &was), WEIR_ECONFIG);
    assert_answer("(nil)", "HGET", "weir:{0}:about", "partitions");
    assert_int_equal(divide_by(1, &was), 0);
    assert_false(was);
}

TESTS(client_start_server, client_stop)

/* Partitions of a namespace: the rule that says where a name lives, in C and in Lua; what a client learns; calls that follow. */
#include <hiredis/hiredis.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/client/answer.h"
#include "core/redis/cluster.h"
#include "core/script/script.h"
#include "tests/server.h"

static struct server server;
static struct weir *w;

static int set_up_group(void **state)
{
    (void)state;
    server_start(&server, false);
    return 0;
}

static int tear_down_group(void **state)
{
    (void)state;
    server_stop(&server);
    return 0;
}

static int set_up(void **state)
{
    (void)state;
    free(server_ask(&server, "FLUSHALL", NULL));
    w = weir_new(server.url, NULL);
    return w ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    weir_free(w);
    return 0;
}

#define assert_answer(expected, ...)                                                                         \
    do {                                                                                                     \
        char *answer = server_ask(&server, __VA_ARGS__, NULL);                                               \
        assert_string_equal(answer, expected);                                                               \
        free(answer);                                                                                        \
    } while (0)

/* ---- The rule */

static void test_crc16(void **state)
{
    static const struct {
        const char *text;
        unsigned crc;
    } known[] = {{"", 0}, {"123456789", 0x31c3}, {"foo", 0xaf96}, {"bar", 0x93c5}, {"\xff\x80", 0x9277}};

    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_int_equal(partition_crc16(known[i].text, strlen(known[i].text)), known[i].crc);
    assert_int_equal(partition_slot(0), CLUSTER_SLOT);
}

static void test_prefix(void **state)
{
    char prefix[PREFIX_SIZE] = "weir:{0}:";

    (void)state;
    partition_prefix(prefix, 63, prefix);
    assert_string_equal(prefix, "weir:{63}:");
    partition_prefix(prefix, 0, prefix);
    assert_string_equal(prefix, "weir:{0}:");
}

static void test_refusals_are_learned(void **state)
{
    static const char *const wrong[] = {"",
                                        "WRONG-PARTITION",
                                        "WRONG-PARTITION 1 4",
                                        "WRONG-PARTITION 4 4 mail",
                                        "WRONG-PARTITION -1 4 mail",
                                        "WRONG-PARTITION 1 65 mail",
                                        "WEIR enqueue: no"};
    struct partitions known = {0};
    char text[64];
    int p;

    (void)state;
    assert_int_equal(partitions_home(&known, "mail", 4), 0);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(partitions_learn(&known, wrong[i], &p));
    assert_int_equal(known.count, 0);

    assert_true(partitions_learn(&known, "WRONG-PARTITION 3 4 mail: lives elsewhere", &p));
    assert_int_equal(p, 3);
    assert_int_equal(known.count, 4);
    assert_int_equal(partitions_home(&known, "mail", 4), 3);
    assert_int_equal(partitions_home(&known, "mailing", 4), 3); /* as long as is asked for */
    assert_int_equal(partitions_home(&known, "mai", 3), (int)(partition_crc16("mai", 3) % 4));
    for (int i = 0; i < 300; i++) { /* more than are remembered */
        snprintf(text, sizeof text, "WRONG-PARTITION %d 4 t%d", (int)(partition_crc16(text, 2) + 1) % 4, i);
        assert_true(partitions_learn(&known, text, &p));
    }
    assert_true(partitions_learn(&known, "WRONG-PARTITION 0 1 mail", &p)); /* another namespace by now */
    assert_int_equal(partitions_home(&known, "mail", 4), 0);
    partitions_free(&known);
}

/* ---- Calls */

static void divide(const char *count)
{
    for (int p = 0; p < atoi(count); p++) {
        char key[PREFIX_SIZE];

        snprintf(key, sizeof key, "weir:{%d}:about", p);
        free(server_ask(&server, "HSET", key, "partitions", count, NULL));
    }
}

/* So many jobs wait in the usual queue of a partition. */
static long long waiting(int p)
{
    char key[PREFIX_SIZE + 16];

    snprintf(key, sizeof key, "weir:{%d}:queue:default", p);
    return server_number(&server, "LLEN", key, NULL);
}

static void enqueue(const char *type)
{
    struct weir_job_spec spec = {.type = type};

    if (weir_enqueue(w, &spec, NULL) != 0)
        fail_msg("%s", weir_message(w));
}

static long long calls(void)
{
    char *info = server_ask(&server, "INFO", "commandstats", NULL),
         *at = strstr(info, "cmdstat_fcall:calls=");
    long long n = at ? atoll(at + strlen("cmdstat_fcall:calls=")) : 0;

    free(info);
    return n;
}

static void test_lua_agrees(void **state)
{
    char type[24];

    (void)state;
    divide("7");
    for (int i = 0; i < 50; i++) {
        int home;
        long long before, calls_before = calls();

        snprintf(type, sizeof type, "%c.type-%d", 'a' + i % 26, i * i);
        home = (int)(partition_crc16(type, strlen(type)) % 7);
        before = waiting(home);
        enqueue(type);
        assert_int_equal(waiting(home), before + 1);
        assert_true(i == 0 || calls() == calls_before + 1);
    }
}

static void test_one_partition_is_asked_once(void **state)
{
    long long before;

    (void)state;
    enqueue("mail");
    before = calls();
    enqueue("mail");
    assert_int_equal(calls(), before + 1);
    assert_int_equal(waiting(0), 2);
}

static void test_a_call_follows(void **state)
{
    long long before;

    (void)state;
    divide("4");
    free(server_ask(&server, "HSET", "weir:{0}:homes", "mail", "2", NULL));
    free(server_ask(&server, "HSET", "weir:{2}:homes", "mail", "3", NULL)); /* it moved on */
    free(server_ask(&server, "HSET", "weir:{3}:homes", "mail", "3", NULL));
    enqueue("mail");
    assert_int_equal(waiting(3), 1);
    assert_int_equal(partitions_home(&w->known, "mail", 4), 3);
    before = calls();
    enqueue("mail");
    assert_int_equal(waiting(3), 2);
    assert_int_equal(calls(), before + 1);
}

static void test_a_circle_ends(void **state)
{
    struct weir_job_spec spec = {.type = "mail"};

    (void)state;
    divide("2");
    free(server_ask(&server, "HSET", "weir:{0}:homes", "mail", "1", NULL));
    free(server_ask(&server, "HSET", "weir:{1}:homes", "mail", "0", NULL));
    assert_int_equal(weir_enqueue(w, &spec, NULL), WEIR_ENOTNOW);
    assert_non_null(strstr(weir_message(w), "another partition"));
    assert_int_equal(waiting(0) + waiting(1), 0);
}

static void test_count(void **state)
{
    json_t *answer;
    struct args a;
    int count;

    (void)state;
    assert_int_equal(client_count(w), 1);
    divide("5");
    args_init(&a);
    script_begin(&a, "status", w->prefix, -1);
    if (client_ask(w, "status", &a, &answer) != 0)
        fail_msg("%s", weir_message(w));
    json_decref(answer);
    assert_int_equal(client_count(w), 5);
    weir_free(w);

    w = weir_new(server.url, NULL);
    assert_int_equal(client_learn(w, &count), 0);
    assert_int_equal(count, 5);
    assert_int_equal(client_at(w, 4), 0);
    assert_string_equal(w->prefix, "weir:{4}:");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crc16),
        cmocka_unit_test(test_prefix),
        cmocka_unit_test(test_refusals_are_learned),
        cmocka_unit_test_setup_teardown(test_lua_agrees, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_one_partition_is_asked_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_call_follows, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_circle_ends, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_count, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, set_up_group, tear_down_group);
}

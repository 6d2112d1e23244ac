/* Limits in Redis: setting and removing them, what wakes then, reading them. */
#include <hiredis/hiredis.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/client.h"
#include "core/script.h"
#include "tests/server.h"
#include "throttle/limit.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define BEGIN_US INT64_C(1795000000000000)
#define PREFIX "weir:{0}:"

static struct server server;
static struct weir *w;
static struct error error;

static int setup(void **state)
{
    (void)state;
    server_start(&server, false);
    w = weir_new(server.url, NULL);
    assert_non_null(w);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    weir_free(w);
    server_stop(&server);
    return 0;
}

static int flush(void **state)
{
    (void)state;
    free(server_ask(&server, "FLUSHALL", NULL));
    return 0;
}

static void expect(const char *expected, char *answer)
{
    assert_string_equal(answer, expected);
    free(answer);
}

static int set_at(int64_t now_us, const char *name, const char *rule, bool *existed)
{
    struct redisReply *reply = NULL;
    struct args a;
    int status;

    args_init(&a);
    rate_set_request(&a, PREFIX, now_us, name, rule);
    status = redis_call(w->redis, &a, &reply, NULL, &error);
    if (status == 0) {
        status = rate_set_reply(reply, existed, &error);
        freeReplyObject(reply);
    }
    args_free(&a);
    return status;
}

static int list_at(int64_t now_us, const char *name, struct limit_list *list)
{
    struct redisReply *reply = NULL;
    struct args a;
    int status;

    args_init(&a);
    rate_list_request(&a, PREFIX, now_us, name);
    status = redis_call(w->redis, &a, &reply, NULL, &error);
    if (status == 0) {
        status = rate_list_reply(reply, list, &error);
        freeReplyObject(reply);
    }
    args_free(&a);
    return status;
}

/* ---- Setting */

static void test_set_and_remove(void **state)
{
    bool existed;

    (void)state;
    assert_int_equal(set_at(BEGIN_US, "mail", "100/60000000/20", &existed), 0);
    assert_false(existed);
    expect("100/60000000/20", server_ask(&server, "HGET", PREFIX "limits", "mail", NULL));
    assert_int_equal(set_at(BEGIN_US, "mail", "10/1000000/10", &existed), 0);
    assert_true(existed);
    expect("10/1000000/10", server_ask(&server, "HGET", PREFIX "limits", "mail", NULL));
    assert_int_equal(set_at(BEGIN_US, "mail", "", &existed), 0);
    assert_true(existed);
    assert_int_equal(set_at(BEGIN_US, "mail", "", &existed), 0);
    assert_false(existed);
    assert_int_equal(server_number(&server, "DBSIZE", NULL), 0);
}

static void add_waiting(void)
{
    free(server_ask(&server, "SADD", PREFIX "queues", "default", "high", "idle", NULL));
    free(server_ask(&server, "ZADD", PREFIX "wake:default", "1795000100000000", "mail", "1795000200000000",
                    "sms", NULL));
    free(server_ask(&server, "ZADD", PREFIX "wake:high", "+inf", "mail", NULL));
    free(server_ask(&server, "HSET", PREFIX "duty", "a", "w1 1795000001000000 default", "b",
                    "w2 1795000001000000 x,high", "old", "w3 1794900000000000 default", "odd", "?", NULL));
}

static void test_what_waits_is_looked_at_again(void **state)
{
    static const char *const rules[] = {"1000/1000000/1", ""};
    bool existed;

    (void)state;
    for (size_t i = 0; i < COUNT(rules); i++) {
        free(server_ask(&server, "FLUSHALL", NULL));
        add_waiting();
        assert_int_equal(set_at(BEGIN_US, "mail", rules[i], &existed), 0);
        expect("1795000000000000", server_ask(&server, "ZSCORE", PREFIX "wake:default", "mail", NULL));
        expect("1795000200000000", server_ask(&server, "ZSCORE", PREFIX "wake:default", "sms", NULL));
        expect("1795000000000000", server_ask(&server, "ZSCORE", PREFIX "wake:high", "mail", NULL));
        assert_int_equal(server_number(&server, "EXISTS", PREFIX "wake:idle", NULL), 0);
        assert_int_equal(server_number(&server, "LLEN", PREFIX "bell:a", NULL), 1);
        assert_int_equal(server_number(&server, "LLEN", PREFIX "bell:b", NULL), 1);
        assert_true(server_number(&server, "PTTL", PREFIX "bell:b", NULL) > 50000);
        expect("2", server_ask(&server, "HLEN", PREFIX "duty", NULL)); /* those of long ago are forgotten */
        assert_int_equal(server_number(&server, "EXISTS", PREFIX "bell:old", PREFIX "bell:odd", NULL), 0);
    }
}

static void test_a_bell_is_rung_once_and_only_where_something_waits(void **state)
{
    bool existed;

    (void)state;
    add_waiting();
    assert_int_equal(set_at(BEGIN_US, "fax", "1/1000000/1", &existed), 0);
    assert_int_equal(server_number(&server, "EXISTS", PREFIX "bell:a", NULL), 0);
    assert_int_equal(set_at(BEGIN_US, "mail", "1/1000000/1", &existed), 0);
    assert_int_equal(set_at(BEGIN_US, "sms", "1/1000000/1", &existed), 0);
    assert_int_equal(server_number(&server, "LLEN", PREFIX "bell:a", NULL), 1);
}

static void read_part(const char *path, char *out, size_t size)
{
    FILE *f = fopen(path, "r");

    if (!f)
        fail_msg("%s: cannot be opened; tests run in the project's folder", path);
    out[fread(out, 1, size - 1, f)] = '\0';
    fclose(f);
}

static void test_a_bell_of_one_queue(void **state)
{
    static char base[4096], time[4096], bell[4096], source[3 * 4096 + 64];

    (void)state;
    read_part("core/base.lua", base, sizeof base);
    read_part("core/now.lua", time, sizeof time);
    read_part("core/bell.lua", bell, sizeof bell);
    snprintf(source, sizeof source, "%s%s%sbell_ring('high')", base, time, bell);
    add_waiting();
    expect("(nil)", server_ask(&server, "EVAL", source, "1", PREFIX, "1795000000000000", NULL));
    assert_int_equal(server_number(&server, "LLEN", PREFIX "bell:b", NULL), 1);
    assert_int_equal(server_number(&server, "EXISTS", PREFIX "bell:a", NULL), 0);
}

static void test_a_duty_of_another_kind_fails_nobody(void **state)
{
    bool existed;

    (void)state;
    add_waiting();
    free(server_ask(&server, "SET", PREFIX "duty", "x", NULL));
    assert_int_equal(set_at(BEGIN_US, "mail", "1/1000000/1", &existed), 0);
    expect("1/1000000/1", server_ask(&server, "HGET", PREFIX "limits", "mail", NULL));
}

static void test_wrong_arguments_change_nothing(void **state)
{
    static const struct {
        const char *script;
        const char *words[4];
    } calls[] = {
        {"rate_set", {NULL}},
        {"rate_set", {"mail", NULL}},
        {"rate_set", {"mail", "1/1000000/1", "more", NULL}},
        {"rate_set", {"", "1/1000000/1", NULL}},
        {"rate_set", {"a b", "1/1000000/1", NULL}},
        {"rate_set", {"a/b", "", NULL}},
        {"rate_set", {"mail", "1/s", NULL}},
        {"rate_set", {"mail", "0/1000000/1", NULL}},
        {"rate_list", {NULL}},
        {"rate_list", {"", "more", NULL}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(calls); i++) {
        struct redisReply *reply;
        struct args a;

        args_init(&a);
        script_begin(&a, calls[i].script, PREFIX, BEGIN_US);
        for (size_t j = 0; calls[i].words[j]; j++)
            args_add(&a, calls[i].words[j]);
        assert_int_equal(redis_call(w->redis, &a, &reply, NULL, &error), WEIR_EINPUT);
        if (strncmp(error.text, calls[i].script, strlen(calls[i].script)) != 0)
            fail_msg("call %zu: %s", i, error.text);
        args_free(&a);
    }
    assert_int_equal(server_number(&server, "DBSIZE", NULL), 0);
}

static void test_keys_of_another_kind_change_nothing(void **state)
{
    static const char *const keys[] = {PREFIX "limits", PREFIX "queues", PREFIX "wake:default"};
    bool existed;

    (void)state;
    for (size_t i = 0; i < COUNT(keys); i++) {
        long long before;

        free(server_ask(&server, "FLUSHALL", NULL));
        add_waiting();
        free(server_ask(&server, "SET", keys[i], "x", NULL));
        before = server_number(&server, "DBSIZE", NULL);
        assert_int_equal(set_at(BEGIN_US, "mail", "1/1000000/1", &existed), WEIR_ECONFIG);
        assert_int_equal(server_number(&server, "DBSIZE", NULL), before);
        expect("inf", server_ask(&server, "ZSCORE", PREFIX "wake:high", "mail", NULL));
    }
}

/* ---- Reading */

static void test_the_list(void **state)
{
    struct limit_list list;

    (void)state;
    free(server_ask(&server, "HSET", PREFIX "limits", "sms", "7/1000000/1", "mail", "100/60000000/20", "odd",
                    "7/s", NULL));
    free(server_ask(&server, "SET", PREFIX "gate:mail#0",
                    "1795000012000000 0 1795000000000000 0 100/60000000/20", NULL));
    free(server_ask(&server, "SADD", PREFIX "queues", "default", "high", NULL));
    free(server_ask(&server, "RPUSH", PREFIX "lane:default/mail/", "a", "b", "c", NULL));
    free(server_ask(&server, "RPUSH", PREFIX "lane:high/mail/", "d", NULL));
    assert_int_equal(list_at(BEGIN_US, "", &list), 0);
    assert_int_equal(list.count, 3);
    assert_string_equal(list.at[0].name, "mail");
    assert_true(list.at[0].readable);
    assert_int_equal(list.at[0].parked, 4);
    assert_int_equal(limit_slots(&list.at[0]), 0);
    assert_int_equal(limit_next_start(&list.at[0]), BEGIN_US + 600000);
    assert_int_equal(limit_last_start(&list.at[0]), BEGIN_US + 4 * 600000);
    assert_string_equal(list.at[1].name, "odd");
    assert_string_equal(list.at[1].stored, "7/s");
    assert_false(list.at[1].readable);
    assert_string_equal(list.at[2].name, "sms");
    assert_int_equal(limit_slots(&list.at[2]), 1);
    assert_int_equal(limit_next_start(&list.at[2]), BEGIN_US);
    assert_int_equal(limit_last_start(&list.at[2]), 0);
    limit_list_free(&list);
    assert_int_equal(list_at(BEGIN_US, "sms", &list), 0);
    assert_int_equal(list.count, 1);
    limit_list_free(&list);
    assert_int_equal(list_at(BEGIN_US, "nobody", &list), 0);
    assert_int_equal(list.count, 0);
    limit_list_free(&list);
}

static void test_a_pause_shows(void **state)
{
    struct limit_list list;

    (void)state;
    free(server_ask(&server, "HSET", PREFIX "limits", "mail", "10/1000000/1", NULL));
    free(server_ask(&server, "SET", PREFIX "gate:mail#0",
                    "1795000000000000 0 1795000000000000 1795000009000000 10/1000000/1", NULL));
    free(server_ask(&server, "SADD", PREFIX "queues", "default", NULL));
    free(server_ask(&server, "RPUSH", PREFIX "lane:default/mail/", "a", "b", NULL));
    assert_int_equal(list_at(BEGIN_US, "mail", &list), 0);
    assert_int_equal(limit_slots(&list.at[0]), 0);
    assert_int_equal(limit_next_start(&list.at[0]), BEGIN_US + 9000000);
    assert_int_equal(limit_last_start(&list.at[0]), BEGIN_US + 9100000);
    limit_list_free(&list);
}

static void test_the_list_changes_nothing(void **state)
{
    const char *gate = "8999999999999999 0 1795000000000000 0 9/1000000/5"; /* to be cut and rescaled */
    struct limit_list list;

    (void)state;
    free(server_ask(&server, "HSET", PREFIX "limits", "mail", "10/1000000/1", NULL));
    free(server_ask(&server, "SET", PREFIX "gate:mail#0", gate, NULL));
    assert_int_equal(list_at(BEGIN_US, "", &list), 0);
    limit_list_free(&list);
    expect(gate, server_ask(&server, "GET", PREFIX "gate:mail#0", NULL));
    assert_int_equal(server_number(&server, "DBSIZE", NULL), 2);
}

/* ---- The library */

static void test_weir_rate(void **state)
{
    struct limit_list list;

    (void)state;
    assert_int_equal(weir_rate_set(w, "mail", "100/1m,burst=20"), 0);
    assert_int_equal(limit_read(w, NULL, &list), 0);
    assert_int_equal(list.count, 1);
    assert_int_equal(list.at[0].gate.rule.burst, 20);
    limit_list_free(&list);
    assert_int_equal(weir_rate_set(w, "mail", "100"), WEIR_EINPUT);
    assert_int_equal(weir_rate_set(w, "a mail", "100/1m"), WEIR_EINPUT);
    assert_int_equal(weir_rate_remove(w, ""), WEIR_EINPUT);
    assert_int_equal(weir_rate_remove(w, "mail"), 0);
    assert_int_equal(weir_rate_remove(w, "mail"), WEIR_ENOTFOUND);
    assert_string_equal(weir_message(w), "limit mail: there is none; weir rate list shows them");
    assert_int_equal(limit_read(w, "mail", &list), WEIR_ENOTFOUND);
    assert_int_equal(limit_read(w, "a mail", &list), WEIR_EINPUT);
    assert_int_equal(limit_read(w, NULL, &list), 0);
    assert_int_equal(list.count, 0);
    limit_list_free(&list);
}

/* What was used under the old rule stays used; with the state goes its lifetime. */
static void test_a_new_rule_applies_at_once(void **state)
{
    struct weir_take t;

    (void)state;
    assert_int_equal(weir_rate_set(w, "mail", "2/1d"), 0);
    assert_int_equal(weir_take(w, "mail", NULL, 2, 0, &t), 0);
    assert_int_equal(t.allowed, 1);
    assert_int_equal(weir_rate_set(w, "mail", "10/1h"), 0);
    assert_int_equal(weir_take(w, "mail", NULL, 1, 0, &t), 0);
    assert_int_equal(t.allowed, 1);
    assert_int_equal(t.remaining, 7);
    assert_int_equal(weir_rate_set(w, "mail", "1/1h"), 0);
    assert_int_equal(weir_take(w, "mail", NULL, 1, 0, &t), 0);
    assert_int_equal(t.allowed, 0);
    assert_true(t.retry_after_s > 3590 && t.retry_after_s <= 3600);
    assert_int_equal(weir_rate_set(w, "mail", "1000/1s"), 0);
    assert_int_equal(weir_take(w, "mail", NULL, 1, 0, &t), 0);
    assert_int_equal(t.allowed, 1);
    assert_true(server_number(&server, "PTTL", PREFIX "gate:mail#0", NULL) <= 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_set_and_remove, flush),
        cmocka_unit_test_setup(test_what_waits_is_looked_at_again, flush),
        cmocka_unit_test_setup(test_a_bell_is_rung_once_and_only_where_something_waits, flush),
        cmocka_unit_test_setup(test_a_bell_of_one_queue, flush),
        cmocka_unit_test_setup(test_a_duty_of_another_kind_fails_nobody, flush),
        cmocka_unit_test_setup(test_wrong_arguments_change_nothing, flush),
        cmocka_unit_test_setup(test_keys_of_another_kind_change_nothing, flush),
        cmocka_unit_test_setup(test_the_list, flush),
        cmocka_unit_test_setup(test_a_pause_shows, flush),
        cmocka_unit_test_setup(test_the_list_changes_nothing, flush),
        cmocka_unit_test_setup(test_weir_rate, flush),
        cmocka_unit_test_setup(test_a_new_rule_applies_at_once, flush),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}

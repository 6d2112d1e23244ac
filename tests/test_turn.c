/* Turns on the wire: what claim_reply makes of leases, and what a settle says, word by word. */
#include <hiredis/hiredis.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "queue/turn/turn.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static struct claim claim;
static struct error error;

static struct redisReply text(const char *words)
{
    return (struct redisReply){.type = REDIS_REPLY_STRING, .str = (char *)words, .len = strlen(words)};
}

/* claim_reply of one lease, and of the limits of one type. */
static int read_lease(const char *token, const char *entry, const char *limits)
{
    struct redisReply words[] = {text(token), text(entry), text("mail"), text(limits)};
    struct redisReply *lease[] = {&words[0], &words[1]}, *limit[] = {&words[2], &words[3]};
    struct redisReply number = {.type = REDIS_REPLY_INTEGER, .integer = 1},
                      none = {.type = REDIS_REPLY_ARRAY};
    struct redisReply causes = text("");
    struct redisReply leases = {.type = REDIS_REPLY_ARRAY, .elements = 2, .element = lease};
    struct redisReply list = {.type = REDIS_REPLY_ARRAY, .elements = 2, .element = limit};
    struct redisReply *all[] = {&number, &number, &number, &number, &number, &leases,
                                &list,   &none,   &none,   &none,   &none,   &number,
                                &number, &number, &none,   &causes, &none,   &number};
    struct redisReply reply = {.type = REDIS_REPLY_ARRAY, .elements = COUNT(all), .element = all};

    return claim_reply(&reply, &claim, &error);
}

static void assert_span(struct span s, const char *expected)
{
    assert_int_equal(s.len, strlen(expected));
    assert_memory_equal(s.at, expected, s.len);
}

static void test_tokens(void **state)
{
    static const struct {
        const char *token, *type, *key;
        int64_t slot_us, cost;
    } cases[] = {
        {"7.-0/default/mail/", "mail", "", 0, 1},
        {"7.-0@1795000000000001/default/mail/", "mail", "", 1795000000000001, 1},
        {"7.-0*12/default/mail/k", "mail", "k", 0, 12},
        {"7.-0@1795000000000001*1000000000/q/mail/-", "mail", "-", 1795000000000001, 1000000000},
        {"7.-0@5/q/mail/h.3f~acct#1,acct#0/h.3f", "mail", "h.3f", 5, 1},
        {"7.-0@5*2/q.w/m.m/~acct#1", "m.m", "", 5, 2},
        {"7.-0@5*2/q!/mail/k~acct#1", "mail", "k", 5, 2},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(read_lease(cases[i].token, "{}", ""), 0);
        assert_int_equal(claim.lease_count, 1);
        assert_span(claim.leases[0].token, cases[i].token);
        assert_span(claim.leases[0].type, cases[i].type);
        assert_span(claim.leases[0].key, cases[i].key);
        assert_int_equal(claim.leases[0].slot_us, cases[i].slot_us);
        assert_int_equal(claim.leases[0].cost, cases[i].cost);
    }
}

static void test_no_tokens(void **state)
{
    static const char *const cases[] = {"", "7.-0", "7.-0/q", "7.-0/q/mail", "7.-0@5*2/q/mail~k"};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(read_lease(cases[i], "{}", ""), WEIR_EINTERNAL);
}

/* Heads come from outside too: one that cannot be read is part of the body, which its reader finds wrong. */
static void test_wrong_heads(void **state)
{
    static const char *const cases[] = {"",
                                        "@",
                                        "@1,2;{}",
                                        "@1,2,3",
                                        "@1,2,3x;{}",
                                        "@x,2,3;{}",
                                        "@,,;{}",
                                        "@2147483647,0,0;{}",
                                        "@1,4294967297,0;{}",
                                        "@1,0,99999999999999999999;{}"};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(read_lease("7.-0/q/mail/", cases[i], ""), 0);
        assert_span(claim.leases[0].body, cases[i]);
        assert_span(claim.leases[0].attrs, "");
        assert_int_equal(claim.leases[0].attempts, 0);
    }
}

static void test_entries_and_limits(void **state)
{
    static const char limits[] = "mail=gcra:100/60000000/20|acct=concurrency:5,by=key gcra:1/1000000/1";

    (void)state;
    assert_int_equal(read_lease("7.-0/q/mail/", "@1,2,3;{\"id\":\"i\"}", limits), 0);
    assert_span(claim.leases[0].body, "{\"id\":\"i\"}");
    assert_int_equal(claim.leases[0].attempts, 1);
    assert_int_equal(claim.leases[0].interrupted, 2);
    assert_int_equal(claim.leases[0].throttled, 3);
    assert_span(claim.leases[0].attrs, "");
    assert_int_equal(claim.limit_count, 2);
    assert_span(claim.limits[0], "mail");
    assert_span(claim.limits[1], limits);
}

static void test_attrs(void **state)
{
    (void)state;
    assert_int_equal(read_lease("7.-0/q/mail/", "@1,2,3,bweek,ulock,e5:no%3B;{\"id\":\"i;j\"}", ""), 0);
    assert_span(claim.leases[0].body, "{\"id\":\"i;j\"}");
    assert_span(lease_attr(claim.leases[0].attrs, 'b'), "week");
    assert_span(lease_attr(claim.leases[0].attrs, 'u'), "lock");
    assert_span(lease_attr(claim.leases[0].attrs, 'e'), "5:no%3B");
    assert_null(lease_attr(claim.leases[0].attrs, 'w').at);
}

static void test_settle(void **state)
{
    static const char token[] = "7.-0@5*2/q/mail/k~acct#1/k";
    static const char *const expected[] = {"cost", token, "3",    "",    "throttled", token,
                                           "-1",   "",    "dead", token, "0",         "why"};
    struct span span = {token, strlen(token)};
    struct args a;
    size_t begin = 0;

    (void)state;
    args_init(&a);
    settle_cost(&a, span, 3);
    settle_end(&a, SETTLE_THROTTLED, span, SETTLE_NO_TIME, NULL);
    settle_end(&a, SETTLE_DEAD, span, 0, "why");
    assert_int_equal(a.count, COUNT(expected));
    for (size_t i = 0; i < a.count; begin = a.ends[i++])
        assert_span((struct span){a.bytes + begin, a.ends[i] - begin}, expected[i]);
    args_free(&a);
}

static int tear_down(void **state)
{
    (void)state;
    claim_free(&claim);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokens),      cmocka_unit_test(test_no_tokens),
        cmocka_unit_test(test_wrong_heads), cmocka_unit_test(test_entries_and_limits),
        cmocka_unit_test(test_attrs),       cmocka_unit_test(test_settle),
    };

    return cmocka_run_group_tests_name("turn", tests, NULL, tear_down);
}

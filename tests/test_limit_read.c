/* Limits read: what rate_list and status say of them, a page a call, and when what waits starts. */
#include "core/client/pages.h"
#include "queue/limits/rate.h"
#include "queue/status/status.h"
#include "tests/client.h"
#include "tests/test.h"

static struct error e;

/* As if each type had executors for all of its jobs. */
static void list_at(int64_t now_us, struct limits *limits)
{
    assert_int_equal(status_limits(w, now_us, limits), 0);
    for (size_t i = 0; i < limits->type_count; i++) {
        limits->types[i].served = true;
        limits->types[i].free = INT64_MAX;
    }
}

/* ---- The list */

/* Counters of a type: so many in queues, so many in lanes. */
static void add_backlog(const char *type, int waiting, int parked)
{
    server_do(&server, "HSET", textf(PREFIX "stats:%s", type), "enqueued", textf("%d", waiting + parked),
              "parked", textf("%d", parked));
    server_do(&server, "HSETNX", PREFIX "types", type, "");
}

TEST_WITH(test_the_list, client_flush, NULL)
{
    struct limits limits;

    server_do(&server, "HSET", PREFIX "limits", "sms", "gcra:7/1000000/1 concurrency:5,by=key", "mail",
              "gcra:100/60000000/20", "odd", "7/s");
    client_send("SET", "gate:mail#0", "1795000000000000 0 - - gcra:100/60000000/20 1795000012000000 0", NULL);
    add_backlog("mail", 10, 4);
    client_send("HSET", "types", "fax", "use=mail,gone,sms cost=2");
    list_at(BEGIN_US, &limits);
    assert_int_equal(limits.count, 3);
    assert_string_equal(limits.at[0].name, "mail");
    assert_true(limits.at[0].readable);
    assert_int_equal(limits_parked(&limits, "mail"), 4);
    assert_int_equal(limit_slots(&limits.at[0], 0), 0);
    assert_int_equal(limits_next_start(&limits, &limits.at[0]), BEGIN_US + 600000);
    assert_int_equal(limit_nth_start(&limits.at[0], 0, 4), BEGIN_US + 4 * 600000);
    assert_string_equal(limits.at[1].name, "odd");
    assert_false(limits.at[1].readable);
    assert_string_equal(limits.at[2].name, "sms");
    assert_int_equal(limits.at[2].set.count, 2);
    assert_int_equal(limit_slots(&limits.at[2], 0), 1);
    assert_int_equal(limit_nth_start(&limits.at[2], 0, 1), BEGIN_US);
    assert_int_equal(limits_next_start(&limits, &limits.at[2]), GATE_NEVER); /* a fax costs too much */
    assert_int_equal(limits.type_count, 2);
    assert_string_equal(limits.types[0].name, "fax");
    assert_int_equal(limits.types[0].cost, 2);
    assert_int_equal(limits.types[0].limit_count, 2);
    assert_string_equal(limits.types[0].limits[1]->name, "sms");
    assert_int_equal(limits.types[1].waiting, 10);
    limits_free(&limits);
}

TEST_WITH(test_a_pause_of_a_gate_shows, client_flush, NULL)
{
    struct limits limits;

    client_send("HSET", "limits", "mail", "gcra:10/1000000/1,adapt=500..1000");
    client_send(
        "SET", "gate:mail#0",
        "1795000000000000 1795000009000000 - 640,1795000000000000 gcra:10/1000000/1 1795000000000000 0",
        NULL);
    list_at(BEGIN_US, &limits);
    assert_int_equal(limit_slots(&limits.at[0], 0), 1);
    assert_int_equal(limits_next_start(&limits, &limits.at[0]), BEGIN_US + 9000000);
    assert_int_equal(limit_nth_start(&limits.at[0], 0, 2), BEGIN_US + 9156250);
    assert_int_equal(limits.at[0].factor[0], 640);
    limits_free(&limits);
}

/* It is closed to all but its holder, until the hold ends; a clock that stepped back takes that along. */
TEST_WITH(test_a_hold_of_a_gate_shows, client_flush, NULL)
{
    struct limits limits;

    client_send("HSET", "limits", "mail", "gcra:10/1000000/5");
    client_send(
        "SET", "gate:mail#0",
        "1795000001000000 0 1794999999000000,1795000001080000,fax - gcra:10/1000000/5 1795000000000000 0",
        NULL);
    list_at(BEGIN_US, &limits);
    assert_int_equal(limits.at[0].held_until_us[0], BEGIN_US + 80000);
    assert_int_equal(limit_slots(&limits.at[0], 0), 0);
    assert_int_equal(limits_next_start(&limits, &limits.at[0]), BEGIN_US + 80000);
    limits_free(&limits);
    list_at(BEGIN_US + 1080000, &limits);
    assert_int_equal(limits.at[0].held_until_us[0], 0);
    assert_int_equal(limit_slots(&limits.at[0], 0), 5);
    limits_free(&limits);
}

TEST_WITH(test_the_list_changes_nothing, client_flush, NULL)
{
    const char *gate =
        "1795000000000000 0 - - gcra:9/1000000/5 8999999999999999 0"; /* to be cut and rescaled */
    struct limits limits;
    char *kept;

    client_send("HSET", "limits", "mail", "gcra:10/1000000/1");
    client_send("SET", "gate:mail#0", gate, NULL);
    list_at(BEGIN_US, &limits);
    limits_free(&limits);
    kept = server_ask(&server, "GET", PREFIX "gate:mail#0", NULL);
    assert_string_equal(kept, gate);
    free(kept);
    assert_int_equal(server_number(&server, "DBSIZE", NULL), 2);
}

/* ---- When a backlog has started */

static struct forecast forecast_of(const char *type, const char *limit, const char *rules)
{
    struct forecast out = {0};
    struct limits limits;
    struct limit after = {0};
    bool found = false;

    list_at(BEGIN_US, &limits);
    if (rules) {
        struct rule_set kept;

        assert_int_equal(rate_set(w, limit, rules, true, &kept, NULL, NULL), 0);
        assert_int_equal(limit_change(limits_find(&limits, limit), limit, &kept, BEGIN_US, &after, &e), 0);
    }
    for (size_t i = 0; i < limits.type_count; i++)
        if (strcmp(limits.types[i].name, type) == 0) {
            assert_int_equal(forecast_type(&limits, &limits.types[i], rules ? &after : NULL, &out, &e), 0);
            found = true;
        }
    assert_true(found);
    limit_free(&after);
    limits_free(&limits);
    return out;
}

static void expect_forecast(int line, struct forecast f, int64_t after_us, bool earliest)
{
    fail_if(f.last_us - BEGIN_US != after_us || (f.because != 0) != earliest, "line %d: %lld us%s", line,
            (long long)(f.last_us - BEGIN_US), f.because ? ", earliest" : "");
}

TEST_WITH(test_forecasts, client_flush, NULL)
{
    client_send("HSET", "limits", "mail", "gcra:10/1000000/1");
    add_backlog("mail", 1001, 0);
    expect_forecast(__LINE__, forecast_of("mail", NULL, NULL), 100 * 1000000, false);
    expect_forecast(__LINE__, forecast_of("mail", "mail", "100/s,burst=1"), 10 * 1000000, false);
    expect_forecast(__LINE__, forecast_of("mail", "mail", "concurrency=5"), GATE_NEVER - BEGIN_US, true);
    expect_forecast(__LINE__, forecast_of("mail", "mail", "10/s,burst=1 5/s,by=key"), 100 * 1000000, true);
    expect_forecast(__LINE__, forecast_of("mail", "mail", "10/s,burst=1,adapt=0.5..1"), 100 * 1000000, true);
    /* 600 in the first hour, one every tenth of a second; 401 in the next one */
    expect_forecast(__LINE__, forecast_of("mail", "mail", "10/s,burst=1 600/1h,algorithm=sliding-log"),
                    INT64_C(3600000000) + 400 * 100000, false);
    client_send("HSET", "limits", "acct", "gcra:1/1000000/1");
    client_send("HSET", "types", "mail", "use=acct");
    expect_forecast(__LINE__, forecast_of("mail", NULL, NULL), 1000 * INT64_C(1000000), false);
    expect_forecast(__LINE__, forecast_of("mail", "acct", "2/s,burst=1"), 500 * INT64_C(1000000), false);
    client_send("HSET", "types", "sms", "use=acct");
    expect_forecast(__LINE__, forecast_of("mail", NULL, NULL), 1000 * INT64_C(1000000), false);
    add_backlog("sms", 1, 0);
    expect_forecast(__LINE__, forecast_of("mail", NULL, NULL), 1000 * INT64_C(1000000), true);
    expect_forecast(__LINE__, forecast_of("sms", "sms", "1/1h"), 0, true);
}

/* A gate that would let all of them start at once is not gone through start by start; one whose slots are granted ahead counts. */
TEST_WITH(test_forecasts_leave_out_gates_that_do_not_decide, client_flush, NULL)
{
    client_send("HSET", "limits", "mail", "gcra:10/1000000/1");
    add_backlog("mail", 2000000, 0);
    expect_forecast(__LINE__, forecast_of("mail", "mail", "10/s,burst=1 5000000/1d"),
                    1999999 * INT64_C(100000), false);
    expect_forecast(__LINE__, forecast_of("mail", "mail", "5000000/1d 10/s,burst=1"),
                    1999999 * INT64_C(100000), false);
    expect_forecast(__LINE__, forecast_of("mail", "mail", "5000000/1d 5000000/1h"), 0, false);
    client_send("HSET", "limits", "sms", "fixed-window:5/1000000/0 gcra:10/1000000/10");
    client_send("SET", "gate:sms#0", "1795000000000000 0 - - fixed-window:5/1000000/0 1795000000500000 1",
                NULL);
    add_backlog("sms", 2, 0);
    expect_forecast(__LINE__, forecast_of("sms", NULL, NULL), 500000, false);
}

TEST_WITH(test_forecasts_of_a_type_with_a_cost, client_flush, NULL)
{
    client_send("HSET", "limits", "mail", "gcra:10/1000000/10 pause:1795000060000000/1795000000000000");
    add_backlog("mail", 11, 0);
    client_send("SADD", "queues", "default", NULL);
    client_send("HSET", "types", "mail", "cost=5");
    expect_forecast(__LINE__, forecast_of("mail", NULL, NULL), 60000000 + 9 * 500000, false);
}

/* Slots a second are what costs delay; concurrency counts jobs, and a type without a limit has no forecast.
 */
TEST_WITH(test_forecasts_of_jobs_with_costs_of_their_own, client_flush, NULL)
{
    static const struct {
        const char *rules;
        bool earliest;
        int64_t after_us;
    } cases[] = {{"10/s,burst=1", true, 1000000}, {"1000/s 2000/s", true, 0}, {"", false, 0}};
    struct forecast f;

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct type_status type = {
            .name = "mail", .cost = 1, .parked = 11, .own_costs = true, .served = true, .free = 11};
        struct limits limits = {.now_us = BEGIN_US};
        struct limit after = {0};

        if (*cases[i].rules) {
            struct rule_set kept = client_rules(cases[i].rules);

            assert_int_equal(limit_change(NULL, "mail", &kept, BEGIN_US, &after, &e), 0);
        }
        assert_int_equal(forecast_type(&limits, &type, after.readable ? &after : NULL, &f, &e), 0);
        expect_forecast(__LINE__, f, cases[i].after_us, cases[i].earliest);
        limit_free(&after);
    }
}

/* What was used stays used in the outlook too. */
TEST_WITH(test_a_forecast_goes_on_with_the_gate, client_flush, NULL)
{
    client_send("HSET", "limits", "mail", "gcra:10/1000000/10");
    client_send("SET", "gate:mail#0", "1795000000000000 0 - - gcra:10/1000000/10 1795000001000000 0", NULL);
    add_backlog("mail", 1, 0);
    expect_forecast(__LINE__, forecast_of("mail", NULL, NULL), 100000, false);
    expect_forecast(__LINE__, forecast_of("mail", "mail", "10/1m"), 6000000, false);
    expect_forecast(__LINE__, forecast_of("mail", "mail", "10/s 1/1m"), 100000, false);
    client_send("HSET", "limits", "mail", "gcra:1/60000000/1 gcra:10/1000000/10");
    client_send("RENAME", "gate:mail#0", PREFIX "gate:mail#1", NULL);
    expect_forecast(__LINE__, forecast_of("mail", "mail", "10/s"), 100000,
                    false); /* it moves to the first place */
}

/* ---- Many of them */

/* The types of each limit are those that it holds, each once and in order. */
static void expect_holds(const struct limits *limits)
{
    for (size_t i = 0; i < limits->count; i++) {
        size_t count, met = 0;
        const struct hold *holds = limits_holds(limits, limits->at[i].name, &count);

        for (size_t t = 0; t < limits->type_count; t++)
            if (limit_holds(&limits->types[t], limits->at[i].name)) {
                assert_true(met < count);
                assert_ptr_equal(holds[met++].type, &limits->types[t]);
            }
        assert_int_equal(met, count);
    }
}

/* One call answers a part; all together are what there is, once each and in order. */
TEST_WITH(test_many_limits_and_types, client_flush, NULL)
{
    enum { MANY = 700 };
    struct limits limits;
    char name[24];

    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "m%03d", i);
        client_send("HSET", "limits", name, i % 2 ? "gcra:1/1000000/1" : "gcra:2/1000000/1");
        client_send("HSET", "types", name, i == 3 ? "use=m650" : "");
        client_send("SADD", "queues", name, NULL);
    }
    client_send("ZADD", "held:m600", "1", "m500");
    client_send("HSET", "stats:m500", "parked", "3");
    client_send("ZADD", "sleep:m001", "1", "x");
    client_send("ZADD", "sleep:m699", "1", "x");
    assert_int_equal(status_limits(w, -1, &limits), 0);
    assert_int_equal(limits.count, MANY);
    assert_int_equal(limits.type_count, MANY);
    assert_int_equal(limits.asleep, 2);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "m%03d", i);
        assert_string_equal(limits.at[i].name, name);
        assert_int_equal(limits.at[i].set.at[0].count, i % 2 ? 1 : 2);
        assert_string_equal(limits.types[i].name, name);
        assert_int_equal(limits.types[i].limit_count, i == 3 ? 2 : 1);
        assert_int_equal(limits.types[i].held, i == 500 ? 3 : 0);
    }
    expect_holds(&limits);
    assert_int_equal(limits_parked(&limits, "gone"), 0);
    limits_free(&limits);
}

/* A call looks at a part, whatever there is; all together say what there is. */
static int check_page(const json_t *page, void *arg)
{
    int *pages = arg;

    assert_true(json_object_size(json_object_get(page, "types")) <= 400);
    assert_true(json_object_size(json_object_get(page, "queues")) <= 150);
    assert_true(json_object_size(json_object_get(page, "held")) <= 1100);
    ++*pages;
    return 0;
}

TEST_WITH(test_status_of_many, client_flush, NULL)
{
    enum { TYPES = 2500, QUEUES = 300 };
    int pages = 0;
    json_t *place = json_pack("[s, s]", "types", "0");
    const struct pages walk = {.w = w, .script = "status", .now_us = -1, .arg = &pages, .take = check_page},
                       types = {.w = w,
                                .script = "status",
                                .now_us = -1,
                                .arg = &pages,
                                .take = check_page,
                                .place = place};
    struct limits limits;
    struct status status;
    char name[24];

    for (int i = 0; i < TYPES; i++) {
        snprintf(name, sizeof name, "t%04d", i);
        client_send("HSET", "types", name, i == 3 ? "use=t0004 cost=2" : "");
        client_send("ZADD", i == 7 ? "held:q002" : "held:q001", "1", name);
        snprintf(name, sizeof name, "stats:t%04d", i);
        client_send("HSET", name, "parked", "2");
    }
    for (int i = 0; i < QUEUES; i++) {
        snprintf(name, sizeof name, "q%03d", i);
        client_send("SADD", "queues", name, NULL);
        snprintf(name, sizeof name, "queue:q%03d", i);
        client_send("RPUSH", name, "{\"id\":\"x\",\"type\":\"t0005\",\"cost\":2}", NULL);
    }
    server_do(&server, "HSET", PREFIX "stats:t0009", "returned", "3", "served", "1");
    client_send("HSET", "halted", "q/q299", "1795000000000000");
    client_send("HSET", "limits", "t0003", "gcra:1/1000000/1");
    client_send("HSET", "limits", "t0004", "gcra:1/1000000/1");
    assert_int_equal(pages_walk(&walk), 0);
    assert_int_equal(pages_walk(&types), 0);
    assert_true(pages > 10);
    json_decref(place);
    assert_int_equal(status_read(w, &status), 0);
    assert_int_equal(status.type_count, TYPES);
    assert_int_equal(status.queue_count, QUEUES);
    assert_true(status.queues[299].paused_us > 0);
    for (int i = 0; i < TYPES; i++) {
        assert_int_equal(status.types[i].held, i == 9 ? 4 : 2);
        assert_int_equal(status.types[i].own_costs, i == 5);
        assert_int_equal(status.types[i].in_pause, i == 5);
    }
    status_free(&status);
    assert_int_equal(status_limits(w, -1, &limits), 0);
    assert_int_equal(limits.type_count, TYPES);
    assert_int_equal(limits.types[3].limit_count, 2);
    assert_int_equal(limits.types[3].cost, 2);
    assert_int_equal(limits.types[5].limit_count, 0);
    expect_holds(&limits);
    limits_free(&limits);
}

/* What happens while the page behind one that is taken is asked for. */
struct meanwhile {
    const char *words[4]; /* a command, its words; NULL: the walk ends there */
    int pages;
    json_int_t types; /* that the pages named */
};

static int take_meanwhile(const json_t *page, void *arg)
{
    struct meanwhile *m = arg;

    m->types += (json_int_t)json_object_size(json_object_get(page, "types"));
    if (json_array_size(json_object_get(page, "next")) == 0 || m->pages++ != 1)
        return 0;
    if (!m->words[0])
        return WEIR_ENOTFOUND;
    server_do(&server, m->words[0], m->words[1], m->words[2], m->words[3]);
    return 0;
}

/* A walk that asks ahead. Returns what it did; afterwards the connection has no answer left that somebody else would take. */
static int walk_ahead(struct meanwhile *m)
{
    json_t *place = json_pack("[s, s]", "types", "0");
    const struct pages walk = {.w = w,
                               .script = "status",
                               .now_us = -1,
                               .arg = m,
                               .take = take_meanwhile,
                               .place = place,
                               .here = true,
                               .ahead = true};
    int64_t took_us;
    struct status status;
    int rc = pages_walk(&walk);

    json_decref(place);
    assert_int_equal(client_ping(w, &took_us), 0);
    assert_int_equal(status_read(w, &status), 0);
    assert_int_equal(status.type_count, 3000);
    status_free(&status);
    return rc;
}

TEST_WITH(test_pages_asked_ahead, client_flush, NULL)
{
    struct meanwhile ends = {.pages = 0}, cut = {.words = {"CLIENT", "KILL", "TYPE", "normal"}},
                     bare = {.words = {"FUNCTION", "FLUSH"}};

    for (int i = 0; i < 3000; i++)
        client_send("HSET", "types", textf("t%04d", i), "");
    assert_int_equal(walk_ahead(&ends), WEIR_ENOTFOUND);
    assert_int_equal(walk_ahead(&cut), 0);
    assert_int_equal(walk_ahead(&bare), 0);
    assert_in_range(cut.pages, 4, 3000);
    assert_int_equal(cut.types, 3000);
    assert_int_equal(bare.types, 3000);
}

TESTS(client_start, client_stop)

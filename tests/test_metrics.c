/* GET /metrics: its format, what it counts, and its bounds. */
#include <hiredis/hiredis.h>

#include "core/client/client.h"
#include "queue/status/status.h"
#include "queue/turn/record.h"
#include "serve/metrics.h"
#include "serve/page/page.h"
#include "tests/stage.h"

/* ---- The text; until the next one */

static char shown[1 << 20];

static void read_metrics_of(struct stage *s, struct page_cache *cache)
{
    struct text out = {0};

    assert_int_equal(metrics_write(s->client, cache, &out), 0);
    assert_true(out.len < sizeof shown);
    memcpy(shown, out.at, out.len);
    shown[out.len] = '\0';
    text_free(&out);
}

static void read_metrics(struct stage *s)
{
    read_metrics_of(s, NULL);
}

/* The number behind a row; -1: there is none. */
static double number_of(const char *row)
{
    const char *at;
    const char *line = textf("\n%s ", row);

    at = strstr(shown, line);
    return at ? atol(at + strlen(line)) : -1;
}

static int count_of(const char *text)
{
    int count = 0;

    for (const char *at = strstr(shown, text); at; at = strstr(at + 1, text))
        count++;
    return count;
}

/* Every row belongs to the family before it, and each family comes once. */
static void check_families(void)
{
    char *copy = strdup(shown), *rest = copy, family[100] = "";

    for (char *line; (line = strsep(&rest, "\n")) && *line;) {
        if (strncmp(line, "# HELP ", 7) == 0) {
            sscanf(line, "# HELP %99s", family);
            assert_int_equal(count_of(textf("# TYPE %s ", family)), 1);
        } else if (*line != '#' && strncmp(line, family, strlen(family)) != 0) {
            fail_msg("not of %s: %s", family, line);
        }
    }
    free(copy);
}

/* ---- What a worker reports */

static void send(struct stage *s, struct args *a)
{
    struct redisReply *reply;

    assert_int_equal(client_call(s->client, a, &reply, NULL), 0);
    freeReplyObject(reply);
    args_free(a);
}

static void report(struct stage *s)
{
    int64_t run_us = 2500000, wait_us = 90000000;
    struct args a = {0};

    record_request(&a, s->client->prefix, -1);
    record_row(&a, RECORD_TYPE, span_str("mail"));
    record_count(&a, 's', 7);
    record_bucket(&a, 'R', record_bucket_of(3000), 4);
    record_bucket(&a, 'R', record_bucket_of(900000), 2);
    record_bucket(&a, 'R', record_bucket_of(INT64_C(1) << 50), 1);
    record_spent(&a, 'R', &run_us);
    record_bucket(&a, 'A', record_bucket_of(60000000), 7);
    record_spent(&a, 'A', &wait_us);
    record_row(&a, RECORD_LIMIT, span_str("mail"));
    record_count(&a, 'g', 7);
    record_count(&a, 'e', 3);
    record_reason(&a, "say \"stop\"\\\xff", 2);
    send(s, &a);
    assert_int_equal(run_us + wait_us, 0);
}

/* ---- */

TEST_WITH(an_empty_namespace, stage_setup, stage_teardown)
{
    read_metrics(*state);
    check_families();
    assert_true(number_of("weir_types") == 0);
    assert_true(number_of("weir_last_heartbeat_timestamp_seconds") == -1);
    assert_true(number_of("weir_last_claim_timestamp_seconds") == -1);
    assert_true(number_of("weir_workers{state=\"working\"}") == 0);
}

TEST_WITH(jobs_and_limits, stage_setup, stage_teardown)
{
    struct stage *s = *state;

    stage_rate(s, "mail", "2/1s concurrency=3");
    stage_enqueue(s, "mail", NULL, 0, 5);
    read_metrics(s);
    check_families();
    assert_true(number_of("weir_jobs{type=\"mail\",state=\"waiting\"}") == 5);
    assert_true(number_of("weir_jobs_all{state=\"waiting\"}") == 5);
    assert_true(number_of("weir_queue_jobs{queue=\"default\"}") == 5);
    assert_in_range((long)number_of("weir_queue_oldest_age_seconds{queue=\"default\"}"), 0, 60);
    assert_in_range((long)number_of("weir_type_oldest_age_seconds{type=\"mail\"}"), 0, 60);
    assert_true(number_of("weir_limit_rate{limit=\"mail\",rule=\"2/1s\"}") == 2);
    assert_true(number_of("weir_type_rate_limit{type=\"mail\"}") == 2);
    assert_true(number_of("weir_limit_paused{limit=\"mail\"}") == 0);
    assert_true(number_of("weir_job_wait_seconds_count{type=\"mail\",cause=\"pause\"}") == 0);
}

/* Buckets grow to the count, and totals to all that was ever reported. */
STAGE_TEST(what_workers_report)
{
    stage_rate(s, "mail", "2/1s");
    stage_enqueue(s, "mail", NULL, 0, 1);
    report(s);
    report(s);
    read_metrics(s);
    check_families();
    assert_true(number_of("weir_job_starts_total{type=\"mail\"}") == 14);
    assert_true(number_of("weir_job_run_seconds_bucket{type=\"mail\",le=\"0.001\"}") == 0);
    assert_true(number_of("weir_job_run_seconds_bucket{type=\"mail\",le=\"0.004\"}") == 8);
    assert_true(number_of("weir_job_run_seconds_bucket{type=\"mail\",le=\"1.024\"}") == 12);
    assert_true(number_of("weir_job_run_seconds_bucket{type=\"mail\",le=\"1073741.824\"}") == 12);
    assert_true(number_of("weir_job_run_seconds_bucket{type=\"mail\",le=\"+Inf\"}") == 14);
    assert_true(number_of("weir_job_run_seconds_count{type=\"mail\"}") == 14);
    assert_true(number_of("weir_job_run_seconds_sum{type=\"mail\"}") == 5);
    assert_true(number_of("weir_job_wait_seconds_count{type=\"mail\",cause=\"rate\"}") == 14);
    assert_true(number_of("weir_job_wait_seconds_sum{type=\"mail\",cause=\"rate\"}") == 180);
    assert_true(number_of("weir_limit_slots_granted_total{limit=\"mail\"}") == 14);
    assert_true(number_of("weir_limit_slots_wasted_total{limit=\"mail\",reason=\"no_executor\"}") == 6);
    assert_true(number_of("weir_limit_throttled_total{limit=\"mail\",reason=\"say \\\"stop\\\"\\\\?\"}") ==
                4);
}

/* Scripts count these; sums of all types. */
STAGE_TEST(what_scripts_count)
{
    stage_enqueue(s, "mail", NULL, 0, 1);
    stage_enqueue(s, "news", NULL, 1, 1);
    stage_do(s, "HSET", stage_key(s, "stats:mail"), "reaped", "3", "stale", "1", "dead", "2");
    stage_do(s, "HSET", stage_key(s, "stats:news"), "reaped", "4", "dead", "5");
    stage_do(s, "HSET", stage_key(s, "about"), "claimed", "1795000000500000");
    read_metrics(s);
    check_families();
    assert_true(number_of("weir_reaped_jobs_total") == 7);
    assert_true(number_of("weir_stale_ends_total") == 1);
    assert_true(number_of("weir_job_ends_all_total{outcome=\"dead\"}") == 7);
    assert_int_equal(count_of("weir_last_claim_timestamp_seconds 1795000000.5\n"), 1);
    assert_true(number_of("weir_type_waits_for{type=\"news\",what=\"worker\",gate=\"\",limit=\"\"}") == 1);
}

/* What pages have read serves metrics too: nothing is read for them, and nothing of it is changed. */
STAGE_TEST(pages_and_metrics_share_a_reading)
{
    struct page_cache *cache = page_cache_new();
    struct page_reading before, after;

    stage_enqueue(s, "b", NULL, 0, 1);
    stage_enqueue(s, "c", NULL, 1, 3);
    assert_int_equal(page_cache_read(s->client, cache, &before), 0);
    stage_enqueue(s, "a", NULL, 4, 1);
    read_metrics_of(s, cache);
    check_families();
    assert_true(number_of("weir_types") == 2);
    assert_int_equal(count_of("\nweir_status_age_seconds "), 1);
    assert_int_equal(page_cache_read(s->client, cache, &after), 0);
    assert_ptr_equal(after.status->types, before.status->types);
    assert_non_null(status_type(after.status, "b"));
    page_cache_drop(cache);
    read_metrics_of(s, cache);
    assert_true(number_of("weir_types") == 3);
    page_cache_free(cache);
}

/* However many types there are: rows for 200, those with the most jobs, and sums of all. */
TEST_WITH(rows_are_bounded, stage_setup, stage_teardown)
{
    enum { TYPES = 300 };
    struct stage *s = *state;

    for (int i = 0; i < TYPES; i++)
        stage_enqueue(s, textf("t%d", i), NULL, 2 * i, i == TYPES - 1 ? 2 : 1);
    read_metrics(s);
    check_families();
    assert_true(number_of("weir_types") == TYPES);
    assert_int_equal(count_of("state=\"parked\"") - 1, METRICS_ROWS);
    assert_true(number_of("weir_jobs{type=\"t299\",state=\"waiting\"}") == 2);
    assert_true(number_of("weir_jobs_all{state=\"waiting\"}") == TYPES + 1);
}

/* Names of metrics as they stand in a file are those of families; _bucket, _sum and _count are parts of one. */
static void expect_known(const char *file)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz_";
    char family[200], *text = NULL;
    size_t size = 0, len;
    FILE *from = fopen(file, "r");

    assert_non_null(from);
    assert_true(getdelim(&text, &size, '\0', from) > 0);
    for (const char *at = text; (at = strstr(at, "weir_")); at += len) {
        static const char *const parts[] = {"_bucket ", "_sum ", "_count "};

        len = strspn(at, letters);
        if (at[len - 1] == '_') /* of several */
            continue;
        snprintf(family, sizeof family, "\n# TYPE %.*s ", (int)len, at);
        for (size_t i = 0; i < 3 && !strstr(shown, family); i++)
            if (strstr(family, parts[i]))
                strcpy(strstr(family, parts[i]), " ");
        if (!strstr(shown, family))
            fail_msg("%s: no such metric: %.*s", file, (int)len, at);
    }
    free(text);
    fclose(from);
}

STAGE_TEST(examples_and_documents_name_what_there_is)
{
    stage_do(s, "HSET", stage_key(s, "about"), "claimed", "1795000000500000");
    stage_do(s, "HSET", stage_key(s, "active:w"), "@", "{\"lease\":1}");
    stage_do(s, "ZADD", stage_key(s, "workers"), "1795000000500000", "w");
    read_metrics(s);
    expect_known("doc/metrics.md");
    expect_known("examples/monitoring/weir.rules.yml");
    expect_known("examples/monitoring/weir.rules.test.yml");
    expect_known("examples/monitoring/grafana.json");
}

STAGE_TEST(redis_is_away)
{
    server_kill(&s->server);
    read_metrics(s);
    check_families();
    assert_int_equal(count_of("weir_redis_up 0\n"), 1);
    assert_int_equal(count_of("weir_types"), 0);
    server_restart(&s->server);
}

TESTS(NULL, NULL)

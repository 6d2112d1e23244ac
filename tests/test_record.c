/* What workers record of what they do, from end to end: history says what happened. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "core/clock.h"
#include "queue/inspect/history.h"
#include "queue/job/stamp.h"
#include "tests/stage.h"
#include "worker/parts/counts.h"

static struct stage root;

/* The last hours: no minute ends in between. The caller's. */
static json_t *look(struct stage *s, const char *name, bool of_limit)
{
    json_t *history;
    const struct history_call call = {name, of_limit, true, HISTORY_HOURS};

    if (history_ask(s->client, -1, &call, &history) != 0)
        fail_msg("%s", weir_message(s->client));
    return history;
}

/* All numbers below a member, in all slots; of a histogram those of its bins: "wait.rate". */
static int64_t sum(const json_t *value)
{
    const char *name;
    json_t *member;
    int64_t n = json_integer_value(value);
    size_t i;

    json_object_foreach((json_t *)value, name, member)
    {
        n += sum(member);
    }
    json_array_foreach(value, i, member)
    {
        n += answer_int_at(member, 1);
    }
    return n;
}

static int64_t count_of(struct stage *s, const char *name, bool of_limit, const char *path)
{
    json_t *history = look(s, name, of_limit), *slot;
    int64_t n = 0;
    size_t i;

    json_array_foreach(json_object_get(history, "slots"), i, slot)
    {
        char text[64], *rest = text;
        json_t *value = slot;

        snprintf(text, sizeof text, "%s", path);
        for (char *word; value && (word = strsep(&rest, "."));)
            value = json_object_get(value, word);
        n += sum(value);
    }
    json_decref(history);
    return n;
}

static int64_t of_type(struct stage *s, const char *type, const char *path)
{
    return count_of(s, type, false, path);
}

static int64_t of_limit(struct stage *s, const char *limit, const char *path)
{
    return count_of(s, limit, true, path);
}

static int64_t starts_now(struct stage *s, const char *limit)
{
    json_t *history = look(s, limit, true);
    int64_t n = sum(json_object_get(history, "starts_now"));

    json_decref(history);
    return n;
}

static void expect_type(struct stage *s, const char *type, const char *path, int64_t n)
{
    int64_t found = of_type(s, type, path);

    if (found != n)
        fail_msg("%s of %s: %ld, not %ld", path, type, (long)found, (long)n);
}

static void touch(struct stage *s, const char *name)
{
    char path[200];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", s->server.folder, name);
    file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
}

static void each_end_is_counted(void **state)
{
    struct stage s;

    (void)state;
    stage_branch(&root, "ends", &s);
    stage_enqueue(&s, "mark", NULL, 0, 3);
    stage_enqueue(&s, "mark", "{\"fail\":1,\"after\":0}", 3, 1);
    stage_enqueue(&s, "mark", "{\"dead\":\"it is\"}", 4, 1);
    stage_enqueue(&s, "other", "{\"sleep\":0.02}", 5, 2);
    program_end(stage_actor(&s, "worker", "types=mark,other", "executors=4", "drain=1", NULL));
    expect_type(&s, "mark", "starts", 6);
    expect_type(&s, "mark", "done", 4);
    expect_type(&s, "mark", "retried", 1);
    expect_type(&s, "mark", "dead", 1);
    expect_type(&s, "mark", "throttled", 0);
    expect_type(&s, "mark", "run", 6);
    expect_type(&s, "other", "starts", 2);
    expect_type(&s, "other", "run", 2);
    assert_int_equal(of_limit(&s, "mark", "granted"), 0);
    stage_close(&s);
}

static void slots_and_throttled_jobs_are_counted_at_limits(void **state)
{
    struct stage s;
    pid_t worker;

    (void)state;
    stage_branch(&root, "limits", &s);
    stage_rate(&s, "mark", "1000/s");
    stage_enqueue(&s, "mark", NULL, 0, 5);
    stage_enqueue(&s, "mark", "{\"throttled\":0.01}", 5, 1);
    worker = stage_actor(&s, "worker", "executors=4", "drain=1", NULL);
    await(history_count(&s, "begin", 5) >= 2); /* it was throttled */
    touch(&s, "j5.open");
    assert_int_equal(program_end(worker), 0);
    expect_type(&s, "mark", "done", 6);
    assert_true(of_type(&s, "mark", "throttled") >= 1);
    assert_int_equal(of_limit(&s, "mark", "throttled"), of_type(&s, "mark", "throttled"));
    assert_int_equal(of_limit(&s, "mark", "granted"), of_type(&s, "mark", "starts"));
    assert_int_equal(starts_now(&s, "mark"), of_type(&s, "mark", "starts"));
    stage_close(&s);
}

/* Once, though it runs when counts are sent, and at its end too. */
static void a_start_is_counted_while_the_job_runs(void **state)
{
    struct stage s;
    pid_t worker;

    (void)state;
    stage_branch(&root, "runs", &s);
    stage_enqueue(&s, "mark", "{\"wait\":\"go\"}", 0, 1);
    worker = stage_actor(&s, "worker", "executors=2", "lease=2", NULL);
    await(of_type(&s, "mark", "starts") == 1);
    expect_type(&s, "mark", "run", 0);
    touch(&s, "go");
    await(history_count(&s, "effect", 0) == 1);
    assert_int_equal(stage_end(worker), 0);
    expect_type(&s, "mark", "starts", 1);
    expect_type(&s, "mark", "done", 1);
    stage_close(&s);
}

/* Its counts of the last seconds are lost, and no job. */
static void a_killed_worker_loses_counts_only(void **state)
{
    struct stage s;
    pid_t worker;

    (void)state;
    stage_branch(&root, "killed", &s);
    stage_enqueue(&s, "mark", NULL, 0, 20);
    stage_enqueue(&s, "mark", "{\"kill\":\"before\"}", 20, 1);
    worker = stage_actor(&s, "worker", "executors=2", "lease=1", "fragile=1", NULL);
    assert_int_equal(program_end(worker), 1000 + SIGKILL);
    worker = stage_actor(&s, "second", "executors=2", "lease=1", NULL);
    assert_int_equal(stage_await_done(&s, 21).done, 21);
    assert_int_equal(stage_end(worker), 0);
    assert_in_range(of_type(&s, "mark", "done"), 1, 21);
    assert_in_range(stage_stat(&s, "mark", "reaped"), 1, 21);
    stage_close(&s);
}

static void a_key_of_another_kind_is_logged_once(void **state)
{
    struct stage s;
    char command[300];

    (void)state;
    stage_branch(&root, "foreign", &s);
    free(server_ask(&s.server, "SET", stage_key(&s, "minutes:t/mark"), "mine", NULL));
    stage_enqueue(&s, "mark", NULL, 0, 3);
    stage_enqueue(&s, "other", NULL, 3, 3);
    program_end(stage_actor(&s, "worker", "types=mark,other", "executors=4", "drain=1", NULL));
    expect_type(&s, "other", "done", 3);
    snprintf(command, sizeof command, "grep -q 'not recorded: .*minutes:t/mark is a string' %s/worker.err",
             s.server.folder);
    assert_int_equal(system(command), 0);
    stage_close(&s);
}

/* Of two partitions "b" and "d" live on 0, "a" and "c" on 1. */
static void each_partition_has_its_own(void **state)
{
    struct stage s;

    (void)state;
    stage_branch(&root, "parts", &s);
    for (int p = 1; p >= 0; p--) {
        char key[64];

        snprintf(key, sizeof key, "parts:{%d}:about", p);
        server_number(&s.server, "HSET", key, "partitions", "2", NULL);
    }
    stage_rate(&s, "a", "1000/s");
    stage_enqueue(&s, "a", NULL, 0, 5);
    stage_enqueue(&s, "b", NULL, 5, 7);
    program_end(stage_actor(&s, "worker", "types=a,b", "executors=4", "drain=1", NULL));
    expect_type(&s, "a", "done", 5);
    expect_type(&s, "b", "done", 7);
    assert_int_equal(of_limit(&s, "a", "granted"), 5);
    assert_int_equal(
        server_number(&s.server, "EXISTS", "parts:{1}:minutes:t/a", "parts:{0}:minutes:t/b", NULL), 2);
    stage_close(&s);
}

/* ---- What held jobs, and slots that were lost */

/* Job number n of that type, enqueued so long ago. */
static void push_at(struct stage *s, int64_t ago_us, const char *type, int n, const char *args)
{
    char text[300], head[STAMP_HEAD_LEN + 1];
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    stamp_head(now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000 - ago_us, head);
    snprintf(text, sizeof text, "%s{\"id\":\"j%d\",\"type\":\"%s\",\"key\":\"k\",\"args\":%s}", head, n, type,
             args ? args : "{}");
    stage_push_text(s, text);
}

static void weir(struct stage *s, const char *line)
{
    struct outcome o;

    if (program_weir(&o, s->server.folder, s->server.url, s->ns, line) != 0)
        fail_msg("%s: %s", line, o.err);
}

static void waits_are_split_by_what_held_jobs(void **state)
{
    struct stage s;

    (void)state;
    stage_branch(&root, "waits", &s);
    stage_rate(&s, "rate", "5/s,burst=1");
    stage_rate(&s, "key", "5/s,burst=1,by=key");
    stage_rate(&s, "flight", "concurrency=1");
    stage_rate(&s, "paused", "1000/s,burst=1000");
    weir(&s, "rate pause paused 500ms");
    for (int i = 0; i < 3; i++) {
        push_at(&s, 3600 * INT64_C(1000000), "free", i, NULL);
        push_at(&s, 0, "rate", 10 + i, NULL);
        push_at(&s, 0, "key", 20 + i, NULL);
        push_at(&s, 0, "flight", 30 + i, "{\"sleep\":0.05}");
        push_at(&s, 0, "paused", 40 + i, NULL);
    }
    stage_push(&s, "free", NULL, 50, 2); /* nobody knows when they came */
    program_end(
        stage_actor(&s, "worker", "types=free,rate,key,flight,paused", "executors=9", "drain=1", NULL));
    expect_type(&s, "free", "starts", 5);
    expect_type(&s, "free", "wait.executor", 3);
    expect_type(&s, "key", "wait.key", 2);
    expect_type(&s, "key", "wait.executor", 1);
    expect_type(&s, "flight", "wait.concurrency", 2);
    expect_type(&s, "paused", "wait.pause", 3);
    expect_type(&s, "rate", "wait", 3);
    assert_in_range(of_type(&s, "rate", "wait.rate"), 1, 2); /* a machine that is busy claims late */
    stage_close(&s);
}

/* An hour is 2^22 ms, about. */
static void a_wait_is_as_long_as_it_was(void **state)
{
    struct stage s;
    json_t *history;

    (void)state;
    stage_branch(&root, "long", &s);
    push_at(&s, 3600 * INT64_C(1000000), "mark", 0, NULL);
    push_at(&s, 3600 * INT64_C(1000000), "mark", 1,
            "{\"fail\":1,\"after\":0}"); /* its second start does not count */
    program_end(stage_actor(&s, "worker", "executors=2", "drain=1", NULL));
    expect_type(&s, "mark", "starts", 3);
    expect_type(&s, "mark", "wait", 2);
    history = look(&s, "mark", false);
    assert_int_equal(
        answer_int_at(
            json_array_get(
                json_object_get(json_object_get(json_array_get(json_object_get(history, "slots"), 0), "wait"),
                                "executor"),
                0),
            0),
        1 << 22);
    json_decref(history);
    stage_close(&s);
}

/* Of each type two jobs: the second takes a slot some tenths of a second after the first. */
static void lost_slots_have_a_reason(void **state)
{
    struct stage s;
    pid_t worker;

    (void)state;
    stage_branch(&root, "lost", &s);
    stage_rate(&s, "late", "concurrency=1 100/s,burst=1");
    stage_rate(&s, "held", "4/s,burst=1,by=key 100/s,burst=1");
    stage_rate(&s, "idle", "100/s,burst=1");
    for (int i = 0; i < 2; i++) {
        push_at(&s, 0, "late", i, "{\"sleep\":0.2}");
        push_at(&s, 0, "held", 2 + i, NULL);
    }
    push_at(&s, 0, "idle", 4, NULL);
    worker = stage_actor(&s, "worker", "types=late,held,idle", "executors=9", NULL);
    await(history_count(&s, "effect", -1) == 5);
    push_at(&s, 0, "idle", 5, NULL);
    await(history_count(&s, "effect", 5) == 1);
    assert_int_equal(stage_end(worker), 0);
    assert_true(of_limit(&s, "late", "wasted.late") >= 15);
    assert_true(of_limit(&s, "held", "wasted.held") >= 15);
    assert_true(of_limit(&s, "idle", "wasted.no_job") >= 15);
    assert_int_equal(of_limit(&s, "idle", "wasted.held") + of_limit(&s, "idle", "wasted.late"), 0);
    assert_int_equal(of_limit(&s, "late", "wasted.held") + of_limit(&s, "held", "wasted.late"), 0);
    stage_close(&s);
}

/* Its only executor is busy while slots pass. Whether a job says when it was enqueued or not, that is why. */
static void slots_are_lost_for_want_of_an_executor(void **state)
{
    struct outcome o;
    struct stage s;

    (void)state;
    stage_branch(&root, "want", &s);
    stage_rate(&s, "stamped", "100/s,burst=1");
    stage_rate(&s, "plain", "100/s,burst=1");
    for (int i = 0; i < 2; i++)
        push_at(&s, 0, "stamped", i, "{\"sleep\":0.2}");
    stage_push(&s, "plain", "{\"sleep\":0.2}", 2, 2);
    program_end(stage_actor(&s, "worker", "types=stamped,plain", "executors=1", "drain=1", NULL));
    assert_int_equal(program_weir(&o, s.server.folder, s.server.url, s.ns, "rate show stamped"), 0);
    if (!strstr(o.out, "last hour:   2 granted, ") || !strstr(o.out, " no executor\n"))
        fail_msg("%s", o.out);
    assert_true(of_limit(&s, "stamped", "wasted.no_executor") >= 15);
    assert_true(of_limit(&s, "plain", "wasted.no_executor") >= 15);
    stage_close(&s);
}

/* ---- Counts without Redis */

static void slots_given_back_too_late(void **state)
{
    struct counts c = {0};
    struct args a;
    char words[400] = "";

    (void)state;
    counts_open(&c, 1);
    counts_hold(&c, 0, span_str("mail=gcra:1/1000000/1|other=gcra:1/1000000/1"));
    counts_late(&c, 0, 2);
    counts_lost(&c, span_str("mail"), LOST_NO_EXECUTOR, 3500);
    counts_lost(&c, span_str("mail"), LOST_NO_EXECUTOR, 700);
    counts_lost(&c, span_str("other"), LOST_NO_JOB, 500);
    args_init(&a);
    counts_write(&c, (const char *[]){"t"}, &a);
    counts_lost(&c, span_str("mail"), LOST_NO_EXECUTOR, 900); /* parts of slots add up */
    counts_lost(&c, span_str("other"), LOST_NO_JOB, 500);
    counts_write(&c, (const char *[]){"t"}, &a);
    for (size_t i = 0, begin = 0; i < a.count; begin = a.ends[i++])
        snprintf(words + strlen(words), sizeof words - strlen(words), "%.*s ", (int)(a.ends[i] - begin),
                 a.bytes + begin);
    assert_string_equal(words, "l mail e 2 l 2  l mail e 1  l other n 1  ");
    args_free(&a);
    counts_free(&c);
}

static int open_root(void **state)
{
    (void)state;
    stage_open(&root, false);
    return 0;
}

static int close_root(void **state)
{
    (void)state;
    stage_close(&root);
    return 0;
}

int main(int argc, char **argv)
{
    int rc = stage_actor_main(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_end_is_counted),
        cmocka_unit_test(slots_and_throttled_jobs_are_counted_at_limits),
        cmocka_unit_test(a_start_is_counted_while_the_job_runs),
        cmocka_unit_test(a_killed_worker_loses_counts_only),
        cmocka_unit_test(a_key_of_another_kind_is_logged_once),
        cmocka_unit_test(each_partition_has_its_own),
        cmocka_unit_test(waits_are_split_by_what_held_jobs),
        cmocka_unit_test(a_wait_is_as_long_as_it_was),
        cmocka_unit_test(lost_slots_have_a_reason),
        cmocka_unit_test(slots_are_lost_for_want_of_an_executor),
        cmocka_unit_test(slots_given_back_too_late),
    };

    if (rc >= 0)
        return rc;
    return cmocka_run_group_tests_name("record", tests, open_root, close_root);
}

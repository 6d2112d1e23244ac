/* What workers record of what they do, from end to end: history says what happened. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/clock.h"
#include "queue/inspect/history.h"
#include "tests/stage.h"

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
    await(history_count(&s, "begin", 5) >= 1);
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
    };

    if (rc >= 0)
        return rc;
    return cmocka_run_group_tests_name("record", tests, open_root, close_root);
}

/* What workers record of what they do, from end to end: history says what happened. */
#include <signal.h>

#include "core/clock.h"
#include "queue/history/history.h"
#include "tests/stage_group.h"
#include "worker/parts/counts.h"

/* The last hours: no minute ends in between. The caller's. */
static json_t *look(struct stage *s, const char *name, bool of_limit)
{
    json_t *history;
    const struct history_call call = {name, of_limit, true, HISTORY_HOURS};

    fail_if(history_ask(s->client, -1, &call, &history) != 0, "%s", weir_message(s->client));
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
        n += sum(member);
    json_array_foreach(value, i, member)
        n += answer_int_at(member, 1);
    return n;
}

static int64_t count_of(struct stage *s, const char *name, bool of_limit, const char *path)
{
    json_t *history = look(s, name, of_limit), *slot;
    int64_t n = 0;
    size_t i;

    json_array_foreach(json_object_get(history, "slots"), i, slot) {
        char *rest = textf("%s", path);
        json_t *value = slot;

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

/* Of a list of the last minute. */
static int64_t sum_now(struct stage *s, const char *limit, const char *member)
{
    json_t *history = look(s, limit, true);
    int64_t n = sum(json_object_get(history, member));

    json_decref(history);
    return n;
}

/* Of the last minute, second by second. */
static int64_t sum_wasted_now(struct stage *s, const char *limit, const char *reason)
{
    json_t *history = look(s, limit, true), *loss;
    int64_t n = 0;
    size_t i;

    json_array_foreach(json_object_get(history, "wasted_now"), i, loss) {
        const char *why = json_string_value(json_array_get(loss, 1));

        n += why && strcmp(why, reason) == 0 ? answer_int_at(loss, 2) : 0;
    }
    json_decref(history);
    return n;
}

/* "starts 6, wait.rate 1": these numbers of a type. */
static void expect_type(struct stage *s, const char *type, const char *numbers)
{
    char *rest = textf("%s", numbers), path[32];

    for (char *one; (one = strsep(&rest, ","));) {
        int number;
        int64_t found;

        assert_int_equal(sscanf(one, " %31s %d", path, &number), 2);
        found = of_type(s, type, path);
        fail_if(found != number, "%s of %s: %ld, not %d", path, type, (long)found, number);
    }
}

static void touch(struct stage *s, const char *name)
{
    FILE *file;

    file = fopen(textf("%s/%s", s->server.folder, name), "w");
    assert_non_null(file);
    fclose(file);
}

BRANCH_TEST(each_end_is_counted, "ends")
{
    stage_enqueue(s, "mark", NULL, 0, 3);
    stage_enqueue(s, "mark", "{\"fail\":1,\"after\":0}", 3, 1);
    stage_enqueue(s, "mark", "{\"dead\":\"it is\"}", 4, 1);
    stage_enqueue(s, "other", "{\"sleep\":0.02}", 5, 2);
    program_end(stage_actor(s, "worker", "types=mark,other", "executors=4", "drain=1", NULL));
    expect_type(s, "mark", "starts 6, done 4, retried 1, dead 1, throttled 0, run 6");
    expect_type(s, "other", "starts 2, run 2");
    assert_int_equal(of_limit(s, "mark", "granted"), 0);
}

BRANCH_TEST(slots_and_throttled_jobs_are_counted_at_limits, "limits")
{
    pid_t worker;

    stage_rate(s, "mark", "1000/s");
    stage_enqueue(s, "mark", NULL, 0, 5);
    stage_enqueue(s, "mark", "{\"throttled\":0.01}", 5, 1);
    worker = stage_actor(s, "worker", "executors=4", "drain=1", NULL);
    await(history_count(s, "begin", 5) >= 2); /* it was throttled */
    touch(s, "j5.open");
    assert_int_equal(program_end(worker), 0);
    expect_type(s, "mark", "done 6");
    assert_true(of_type(s, "mark", "throttled") >= 1);
    assert_int_equal(of_limit(s, "mark", "throttled"), of_type(s, "mark", "throttled"));
    assert_int_equal(of_limit(s, "mark", "granted"), of_type(s, "mark", "starts"));
    assert_int_equal(sum_now(s, "mark", "starts_now"), of_type(s, "mark", "starts"));
}

/* Once, though it runs when counts are sent, and at its end too. */
BRANCH_TEST(a_start_is_counted_while_the_job_runs, "runs")
{
    pid_t worker;

    stage_enqueue(s, "mark", "{\"wait\":\"go\"}", 0, 1);
    worker = stage_actor(s, "worker", "executors=2", "lease=2", NULL);
    await(of_type(s, "mark", "starts") == 1);
    expect_type(s, "mark", "run 0");
    touch(s, "go");
    await(history_count(s, "effect", 0) == 1);
    assert_int_equal(stage_end(worker), 0);
    expect_type(s, "mark", "starts 1, done 1");
}

/* Its counts of the last seconds are lost, and no job. */
BRANCH_TEST(a_killed_worker_loses_counts_only, "killed")
{
    pid_t worker;

    stage_enqueue(s, "mark", NULL, 0, 20);
    stage_enqueue(s, "mark", "{\"kill\":\"before\"}", 20, 1);
    worker = stage_actor(s, "worker", "executors=2", "lease=1", "fragile=1", NULL);
    assert_int_equal(program_end(worker), 1000 + SIGKILL);
    worker = stage_actor(s, "second", "executors=2", "lease=1", NULL);
    assert_int_equal(stage_await_done(s, 21).done, 21);
    assert_int_equal(stage_end(worker), 0);
    assert_in_range(of_type(s, "mark", "done"), 1, 21);
    assert_in_range(stage_stat(s, "mark", "reaped"), 1, 21);
}

BRANCH_TEST(a_key_of_another_kind_is_logged_once, "foreign")
{
    stage_do(s, "SET", stage_key(s, "minutes:t/mark"), "mine");
    stage_enqueue(s, "mark", NULL, 0, 3);
    stage_enqueue(s, "other", NULL, 3, 3);
    program_end(stage_actor(s, "worker", "types=mark,other", "executors=4", "drain=1", NULL));
    expect_type(s, "other", "done 3");
    assert_int_equal(
        system(textf("grep -q 'not recorded: .*minutes:t/mark is a string' %s/worker.err", s->server.folder)),
        0);
}

/* More types than one record has room for: a worker that leaves sends them all. */
BRANCH_TEST(a_worker_that_leaves_records_everything, "many")
{
    enum { TYPES = 500 };
    char types[16 * TYPES] = "types=", name[24];
    const char *names[TYPES];
    int64_t starts = 0;

    for (int i = 0; i < TYPES; i++) {
        snprintf(name, sizeof name, "type%d", i);
        sprintf(types + strlen(types), "%s%s", i ? "," : "", name);
        names[i] = strdup(name);
        stage_enqueue(s, name, NULL, i, 1);
    }
    program_end(stage_actor(s, "worker", types, "executors=50", "drain=1", NULL));
    for (int first = 0; first < TYPES; first += 100) {
        json_t *rows;

        assert_int_equal(history_totals(s->client, false, names + first, 100, &rows), 0);
        for (size_t i = 0; i < 100; i++)
            starts += answer_int(json_array_get(rows, i), "starts");
        json_decref(rows);
    }
    assert_int_equal(starts, TYPES);
    for (int i = 0; i < TYPES; i++)
        free((char *)names[i]);
}

/* Of two partitions "b" and "d" live on 0, "a" and "c" on 1. */
BRANCH_TEST(each_partition_has_its_own, "parts")
{
    for (int p = 1; p >= 0; p--)
        stage_number(s, "HSET", textf("parts:{%d}:about", p), "partitions", "2");
    stage_rate(s, "a", "1000/s");
    stage_enqueue(s, "a", NULL, 0, 5);
    stage_enqueue(s, "b", NULL, 5, 7);
    program_end(stage_actor(s, "worker", "types=a,b", "executors=4", "drain=1", NULL));
    expect_type(s, "a", "done 5");
    expect_type(s, "b", "done 7");
    assert_int_equal(of_limit(s, "a", "granted"), 5);
    assert_int_equal(stage_number(s, "EXISTS", "parts:{1}:minutes:t/a", "parts:{0}:minutes:t/b"), 2);
}

/* ---- What held jobs, and slots that were lost */

/* Job number n of that type, enqueued so long ago. */
static void push_at(struct stage *s, int64_t ago_us, const char *type, int n, const char *args)
{
    stage_push_stamped(
        s, clock_wall_us() - ago_us,
        textf("{\"id\":\"j%d\",\"type\":\"%s\",\"key\":\"k\",\"args\":%s}", n, type, args ? args : "{}"));
}

static void weir(struct stage *s, const char *line)
{
    struct outcome o;

    fail_if(program_weir(&o, s->server.folder, s->server.url, s->ns, line) != 0, "%s: %s", line, o.err);
}

/* A job that was granted and whose worker is late goes back. What holds it then is what it waited for, rightly. To
 * resume a limit gives back what was granted ahead, too: so nothing else runs by then. */
TRIAL_WITH(waits_are_split_by_what_held_jobs, stage_setup, stage_teardown)
{
    static const char *const types[] = {"free", "rate", "key", "flight", "paused"};
    struct stage *s = *state;
    pid_t worker;

    stage_rate(s, "rate", "5/s,burst=1");
    stage_rate(s, "key", "5/s,burst=1,by=key");
    stage_rate(s, "flight", "concurrency=1");
    stage_rate(s, "paused", "1000/s,burst=1000");
    weir(s, "rate pause paused 1h");
    for (int i = 0; i < 3; i++) {
        push_at(s, 3600 * SECOND, "free", i, NULL);
        push_at(s, 0, "rate", 10 + i, NULL);
        push_at(s, 0, "key", 20 + i, NULL);
        push_at(s, 0, "flight", 30 + i, "{\"sleep\":0.05}");
        push_at(s, 0, "paused", 40 + i, NULL);
    }
    stage_push(s, "free", NULL, 50, 2); /* nobody knows when they came */
    worker = stage_actor(s, "worker", "types=free,rate,key,flight,paused", "executors=9", NULL);
    await(history_count(s, "effect", -1) == 14);
    assert_int_equal(stage_stat(s, "paused", "parked"), 3);
    weir(s, "rate resume paused");
    await(history_count(s, "effect", -1) == 17);
    assert_int_equal(stage_end(worker), 0);
    expect_type(s, "free", "starts 5");
    expect_type(s, "rate", "wait 3");
    expect_type(s, "key", "wait 3");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (stage_stat(s, types[i], "back") > 0) {
            stage_late("jobs of type %s went back", types[i]);
            return;
        }
    expect_type(s, "free", "wait.executor 3");
    expect_type(s, "flight", "wait.concurrency 2");
    expect_type(s, "paused", "wait.pause 3");
    assert_in_range(of_type(s, "key", "wait.key"), 1, 2); /* a machine that is busy claims late */
    assert_in_range(of_type(s, "rate", "wait.rate"), 1, 2);
}

/* An hour is 2^22 ms, about. */
BRANCH_TEST(a_wait_is_as_long_as_it_was, "long")
{
    json_t *history;

    push_at(s, 3600 * SECOND, "mark", 0, NULL);
    push_at(s, 3600 * SECOND, "mark", 1, "{\"fail\":1,\"after\":0}"); /* its second start does not count */
    program_end(stage_actor(s, "worker", "executors=2", "drain=1", NULL));
    expect_type(s, "mark", "starts 3, wait 2");
    history = look(s, "mark", false);
    assert_int_equal(
        answer_int_at(
            json_array_get(
                json_object_get(json_object_get(json_array_get(json_object_get(history, "slots"), 0), "wait"),
                                "executor"),
                0),
            0),
        1 << 22);
    json_decref(history);
}

/* Of each type two jobs: the second takes a slot some tenths of a second after the first. */
BRANCH_TEST(lost_slots_have_a_reason, "lost")
{
    pid_t worker;

    stage_rate(s, "late", "concurrency=1 100/s,burst=1");
    stage_rate(s, "held", "4/s,burst=1,by=key 100/s,burst=1");
    stage_rate(s, "idle", "100/s,burst=1");
    for (int i = 0; i < 2; i++) {
        push_at(s, 0, "late", i, "{\"sleep\":0.2}");
        push_at(s, 0, "held", 2 + i, NULL);
    }
    push_at(s, 0, "idle", 4, NULL);
    worker = stage_actor(s, "worker", "types=late,held,idle", "executors=9", NULL);
    await(history_count(s, "effect", -1) == 5);
    push_at(s, 0, "idle", 5, NULL);
    await(history_count(s, "effect", 5) == 1);
    assert_int_equal(stage_end(worker), 0);
    assert_true(of_limit(s, "late", "wasted.late") >= 15);
    assert_true(of_limit(s, "held", "wasted.held") >= 15);
    assert_true(of_limit(s, "idle", "wasted.no_job") >= 15);
    assert_int_equal(sum_wasted_now(s, "idle", "no_job"), of_limit(s, "idle", "wasted.no_job"));
    assert_int_equal(of_limit(s, "idle", "wasted.held") + of_limit(s, "late", "wasted.held"),
                     0); /* late: whoever the machine lets wait */
}

/* Its only executor is busy while slots pass. Whether a job says when it was enqueued or not, that is why. */
BRANCH_TEST(slots_are_lost_for_want_of_an_executor, "want")
{
    struct outcome o;

    stage_rate(s, "stamped", "100/s,burst=1");
    stage_rate(s, "plain", "100/s,burst=1");
    for (int i = 0; i < 2; i++)
        push_at(s, 0, "stamped", i, "{\"sleep\":0.2}");
    stage_push(s, "plain", "{\"sleep\":0.2}", 2, 2);
    program_end(stage_actor(s, "worker", "types=stamped,plain", "executors=1", "drain=1", NULL));
    assert_int_equal(program_weir(&o, s->server.folder, s->server.url, s->ns, "rate show stamped"), 0);
    fail_if(!strstr(o.out, "last hour:   2 granted, ") || !strstr(o.out, " no executor"), "%s", o.out);
    assert_true(of_limit(s, "stamped", "wasted.no_executor") >= 15);
    assert_true(of_limit(s, "plain", "wasted.no_executor") >= 15);
}

/* ---- Counts without Redis, of one type */

static struct counts c;
static struct args a; /* what was written of them */

static int begin(void **state)
{
    return 0;
}

static int end(void **state)
{
    args_free(&a);
    counts_free(&c);
    return 0;
}
#define COUNTS_TEST(name) TEST_WITH(name, begin, end)

static void write_counts(void)
{
    counts_write(&c, (const char *[]){"t"}, &a);
}

/* All that was written, as it stands. */
static const char *written(void)
{
    return textf("%.*s", (int)a.len, a.bytes);
}

COUNTS_TEST(slots_given_back_too_late)
{
    char words[400] = "";

    counts_hold(&c, 0, span_str("mail=gcra:1/1000000/1|other=gcra:1/1000000/1"));
    counts_back(&c, 0, BACK_LATE, 2, false);
    counts_lost(&c, span_str("mail"), LOST_NO_EXECUTOR,
                &(struct count_loss){3500, 100 * SECOND, 103 * SECOND});
    counts_lost(&c, span_str("mail"), LOST_NO_EXECUTOR,
                &(struct count_loss){700, 103 * SECOND, 103 * SECOND});
    counts_lost(&c, span_str("other"), LOST_NO_JOB, &(struct count_loss){500, 103 * SECOND, 103 * SECOND});
    write_counts();
    /* parts of slots add up */
    counts_lost(&c, span_str("mail"), LOST_NO_EXECUTOR,
                &(struct count_loss){900, 104 * SECOND, 105 * SECOND});
    counts_lost(&c, span_str("other"), LOST_NO_JOB, &(struct count_loss){500, 104 * SECOND, 104 * SECOND});
    write_counts();
    for (size_t i = 0, begin = 0; i < a.count; begin = a.ends[i++])
        snprintf(words + strlen(words), sizeof words - strlen(words), "%.*s ", (int)(a.ends[i] - begin),
                 a.bytes + begin);
    assert_string_equal(words, "l mail  v2 e2 l2 s mail  L101=1 E103=2 L103=1 l other  v2 "
                               "l mail  e1 s mail  E105=1 l other  n1 s other  N104=1 ");
}

/* One that was recorded as granted before it came back is taken from those that are granted later. */
COUNTS_TEST(slots_given_back_were_not_granted)
{
    const struct count_start start = {.at_us = 100 * SECOND, .slots = 2, .wait_us = -1};

    counts_hold(&c, 0, span_str("mail=gcra:1/1000000/1"));
    for (int i = 0; i < 3; i++) {
        counts_start(&c, 0, &start);
        write_counts();
        if (i == 0)
            counts_back(&c, 0, BACK_NO_HANDLER, 2, true);
        if (i == 0)
            counts_back(&c, 0, BACK_WRONG_JOB, 1, false);
    }
    assert_string_equal(written(), "lmail g2smail 1000=1tt s1lmail f2 w1tt s1lmail g2smail 1000=2tt s1");
}

/* The idle seconds of a limit of 100/s are lost evenly, the oldest of more than a minute are not kept. */
COUNTS_TEST(lost_slots_are_spread_over_their_seconds)
{
    int seconds = 0;

    counts_lost(&c, span_str("mail"), LOST_NO_JOB,
                &(struct count_loss){6400000, 1000 * SECOND, 1090 * SECOND});
    write_counts();
    for (const char *at = written(); (at = strstr(at, " N")); at++) {
        assert_in_range(atoi(at + 2), 1027, 1090);
        assert_memory_equal(strchr(at, '='), "=100", 4);
        seconds++;
    }
    assert_int_equal(seconds, 64);
}

/* Redis said so, or its clock does. */
COUNTS_TEST(none_is_lost_before_all_times)
{
    counts_lost(&c, span_str("mail"), LOST_NO_JOB, &(struct count_loss){6400000, -1000 * SECOND, 0});
    write_counts();
    assert_null(memmem(a.bytes, a.ends[a.count - 1], "N0", 2));
}

/* Does it say something of this name? */
static bool names(const char *what, const char *name)
{
    bool found = false;

    for (size_t i = 0; i + 2 < a.count; i++)
        found |= a.ends[i + 1] - a.ends[i] == strlen(name) &&
                 memcmp(a.bytes + a.ends[i], name, strlen(name)) == 0 && a.bytes[a.ends[i] - 1] == *what;
    return found;
}

/* However much there is of the first limits and types, the last ones are written in time. */
COUNTS_TEST(none_waits_for_ever)
{
    enum { MANY = 40, TENTHS = 60, ROUNDS = 16 };
    const char **types = numbered("name", MANY);
    bool seen[2 * MANY] = {false};

    counts_free(&c);
    for (int i = 0; i < MANY; i++)
        counts_hold(&c, i, span_str(textf("name%d=gcra:1/1000000/1", i)));
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < MANY * TENTHS; i++)
            counts_start(
                &c, i / TENTHS,
                &(struct count_start){(round * 100 + i % TENTHS) * INT64_C(100000), 1, -1, CAUSE_EXECUTOR});
        args_clear(&a);
        args_add(&a, "record");
        counts_write(&c, types, &a);
        assert_true(a.count < 4000);
        for (int i = 0; i < MANY; i++) {
            seen[i] |= names("l", types[i]);
            seen[MANY + i] |= names("t", types[i]);
        }
    }
    for (int i = 0; i < 2 * MANY; i++)
        fail_if(!seen[i], "%s was never written: %s", i < MANY ? "limit" : "type", types[i % MANY]);
}

STAGE_TESTS(stage_start, stage_stop)

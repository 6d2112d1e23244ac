/* Schedules: what each script does, under virtual time; which occurrences run, by the policy on missed ones;
 * the command; and workers that keep them. */
#include "queue/schedule/schedule.h"

#include <signal.h>
#include <time.h>

#include "core/clock.h"
#include "core/script/script.h"
#include "tests/play.h"
#include "tests/scene.h"
#include "tests/stage.h"

#define MINUTE_US (60 * SECOND_US)
#define FIRST_US (BEGIN_US + 20 * SECOND_US) /* a whole minute */
#define FIRST_S (FIRST_US / SECOND_US)
#define LATER PREFIX "later"
#define SCHEDULES PREFIX "schedules"
#define RECORD(name) "s " name "\n"

static struct weir *w;

static int start_all(void **state)
{
    turns_start(state);
    w = weir_new(turns.server.url, NULL);
    return 0;
}

static int stop_all(void **state)
{
    weir_free(w);
    return turns_stop(state);
}

/* ---- Steps */

static int begin(void **state)
{
    scene_begin(state);
    turns.now_us = FIRST_US;
    return 0;
}

/* The definition of a schedule of type t; the caller's to free. */
static char *definition(const char *name, const char *when, enum weir_missed missed, const char *args)
{
    struct weir_job_spec job = {.type = "t", .args = args};
    struct schedule s;
    struct error e;
    char *text;

    fail_if(schedule_make(name, when, "UTC", missed, &job, &s, &text, &e) != 0, "%s", e.text);
    schedule_free(&s);
    return text;
}

/* schedule_add as it stands; returns its answer: was there one? */
static bool put(const char *name, const char *text, int64_t next_us, bool keep)
{
    must(turns_ask("schedule_add",
                   WORDS(name, text, textf("%lld", (long long)next_us), keep ? "1" : "0", "t", "")));
    return json_is_true(json_object_get(turns.answer, "known"));
}

/* A schedule that is due at due_us. */
static void add(const char *name, const char *when, enum weir_missed missed, int64_t due_us)
{
    char *text = definition(name, when, missed, NULL);

    put(name, text, due_us, false);
    free(text);
}

/* Due schedules, as a worker keeps them between promote and schedule_fire. */
struct told {
    char name[129], text[400];
    int64_t due_us, now_us;
};

/* promote; the first schedule that it names, which must be there. */
static struct told told_of(int64_t moved)
{
    struct told told = {.now_us = turns.now_us};
    const struct due_schedule *due;

    promote(moved);
    assert_int_equal(turns.promoted.now_us, turns.now_us);
    assert_true(turns.promoted.due_count > 0);
    due = &turns.promoted.due[0];
    snprintf(told.name, sizeof told.name, "%.*s", (int)due->name.len, due->name.at);
    snprintf(told.text, sizeof told.text, "%.*s", (int)due->definition.len, due->definition.at);
    told.due_us = due->due_us;
    return told;
}

/* schedule_fire, as a worker calls it: 1, 0, or the error. */
static int fire(const struct told *told)
{
    struct span name = {told->name, strlen(told->name)}, text = {told->text, strlen(told->text)};
    struct schedule_plan plan;
    struct schedule s;
    struct error e;
    struct args a = {0};
    bool fired;
    int rc = schedule_read(name, text, &s, &e);

    if (rc == 0)
        schedule_make_plan(&s, told->due_us, told->now_us, &plan);
    schedule_fire_request(&a, PREFIX, turns.now_us, name, text, told->due_us, rc == 0 ? &s : NULL, &plan);
    schedule_free(&s);
    rc = turns_send(&a);
    if (rc == 0)
        rc = schedule_fire_reply(turns.reply, &fired, &turns.error);
    return rc ? rc : fired;
}

/* promote and schedule_fire until nothing is due; returns how often. */
static int fire_all(void)
{
    int times = 0;

    for (promote(0); turns.promoted.due_count > 0; times++) {
        struct told told = told_of(0);

        assert_int_equal(fire(&told), 1);
        promote(0);
    }
    return times;
}

static void assert_due(const char *name, int64_t at_us)
{
    assert_int_equal(redis_number("ZSCORE", LATER, textf("s %s\n", name)), at_us);
}

/* A job that `schedule run` enqueued is there, so that the command has not failed, though its run cannot be noted. */
TEST_WITH(test_a_run_that_cannot_be_noted_is_enqueued, begin, NULL)
{
    struct weir_job_spec job = {.type = "t", .args = "{}"};
    struct schedule s;
    struct error e;
    char id[WEIR_ID_SIZE], *text;

    fail_if(schedule_make("tick", "* * * * *", "UTC", WEIR_MISSED_ONCE, &job, &s, &text, &e) != 0, "%s",
            e.text);
    redis_do("SET", PREFIX "fired", "x");
    assert_int_equal(schedule_enqueue(w, &s, id), 0);
    assert_int_equal(redis_number("LLEN", PREFIX "queue:default"), 1);
    free(text);
    schedule_free(&s);
}

/* Due schedules that nobody fires keep no job waiting, and not all of them are named at once. */
TEST_WITH(test_many_schedules_keep_nobody_waiting, begin, NULL)
{
    int64_t moved;

    for (int i = 0; i < 300; i++)
        add(textf("s%d", i), "every 1m", WEIR_MISSED_ONCE, FIRST_US);
    for (int i = 0; i < 30; i++)
        must(turns_enqueue("default", "t", textf("j%d", i), 1));
    turns.now_us += 1;
    must(turns_promote(10, &moved));
    assert_int_equal(moved, 10);
    must(turns_promote(50, &moved));
    assert_int_equal(moved, 20);
    assert_int_equal(turns.promoted.due_count, 200);
    assert_int_equal(redis_number("ZCARD", LATER), 300);
}

/* Large definitions come a few at a time. */
TEST_WITH(test_an_answer_of_promote_is_bounded, begin, NULL)
{
    size_t size = 1000 * 1000;
    char *args = malloc(size + 3), *text;
    int64_t moved;

    memset(args, 'x', size + 2);
    args[0] = args[size + 1] = '"';
    args[size + 2] = '\0';
    for (int i = 0; i < 8; i++) {
        const char *name = textf("s%d", i);

        text = definition(name, "every 1m", WEIR_MISSED_ALL, args);
        put(name, text, FIRST_US, false);
        free(text);
    }
    must(turns_promote(10, &moved));
    assert_int_equal(turns.promoted.due_count, 1);
    free(args);
}

/* ---- Firing */

TEST_WITH(test_many_missed_ones_come_in_parts, begin, NULL)
{
    char id[64];

    add("tick", "every 1s", WEIR_MISSED_ALL, FIRST_US + SECOND_US);
    turns.now_us += 2500 * SECOND_US;
    assert_int_equal(fire_all(), 3);
    assert_int_equal(redis_number("LLEN", QUEUE), 2500);
    for (int i = 0; i < 2500; i += 833) { /* in order, none twice */
        char at[16], *body;

        snprintf(at, sizeof at, "%d", i);
        snprintf(id, sizeof id, "{\"id\":\"tick.%lld\"", (long long)(FIRST_S + 1 + i));
        body = unstamped(redis_text("LINDEX", QUEUE, at));
        assert_int_equal(strncmp(body, id, strlen(id)), 0);
        free(body);
    }
    assert_due("tick", FIRST_US + 2501 * SECOND_US);
    turns_check();
}

/* Large jobs come a few at a time. */
TEST_WITH(test_a_fire_is_bounded_in_bytes, begin, NULL)
{
    struct schedule s = {.job = {NULL, 1000 * 1000}, .missed = WEIR_MISSED_ALL, .cron = {.every_s = 1}};
    struct schedule_plan plan;

    schedule_make_plan(&s, FIRST_US, FIRST_US + 100 * SECOND_US, &plan);
    assert_int_equal(plan.count, 5);
    assert_int_equal(plan.next_s, FIRST_S + 5);
}

#define DEFINITION_TEXT(when, missed, queue, job)                                                            \
    "{\"when\":\"" when "\",\"zone\":\"UTC\",\"missed\":\"" missed "\",\"queue\":\"" queue                   \
    "\",\"job\":\"" job "\"}"
#define DEFINITION(when, missed, queue, job) (DEFINITION_TEXT(when, missed, queue, job))
#define GOOD_JOB "{\\\"id\\\":\\\"a\\\",\\\"type\\\":\\\"t\\\"}"

TEST_WITH(test_one_that_nobody_can_read_is_not_due_any_more, begin, NULL)
{
    static const char *const garbage[] = {
        "x",
        "{}",
        "[]",
        "{\"when\":\"every 1m\"}",
        DEFINITION("every", "once", "q", GOOD_JOB),
        DEFINITION("every 1m", "never", "q", GOOD_JOB),
        DEFINITION("every 1m", "once", "a/b", GOOD_JOB),
        DEFINITION("every 1m", "once", "q", "{\\\"type\\\":\\\"t\\\"}"),
        DEFINITION("every 1m", "once", "q", "{\\\"type\\\":\\\"t\\\",\\\"id\\\":\\\"a\\\"}"),
    };

    static const char good[] = DEFINITION_TEXT("every 1m", "once", "q", GOOD_JOB);
    struct schedule readable;
    struct error ignored;

    assert_int_equal(schedule_read((struct span){"tick", 4}, span_str(good), &readable, &ignored), 0);
    schedule_free(&readable);
    for (size_t i = 0; i < COUNT(garbage); i++) {
        struct span name = {"tick", 4}, text = {garbage[i], strlen(garbage[i])};
        struct schedule s;
        struct error e;

        fail_if(schedule_read(name, text, &s, &e) != WEIR_ECONFIG, "%s: taken", garbage[i]);
        assert_string_equal(e.text,
                            "schedule tick: its definition cannot be read; add it again: weir schedule add");
        schedule_free(&s);
        put("tick", garbage[i], FIRST_US, false);
        assert_int_equal(fire_all(), 1);
        assert_int_equal(redis_number("EXISTS", LATER), 0);
        assert_int_equal(redis_number("EXISTS", QUEUE), 0);
        expect_text(garbage[i], "HGET", SCHEDULES, "tick");
    }
}

TEST_WITH(test_wrong_arguments_change_nothing, begin, NULL)
{
    must(turns_rate("t", "10/60000000/10"));
    add("tick", "every 1m", WEIR_MISSED_ONCE, FIRST_US);
    expect_refused(
        WORDS("schedule_add", "schedule_add tick {} 1795000060000000 0 | t | t _ more",
              "schedule_add | ti/ck {} 1795000060000000 0 t _ | _ {} 1795000060000000 0 t _",
              "schedule_add "
              "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
              "aaaaaaa {} 1795000060000000 0 t _",
              "schedule_add tick | _ 1795000060000000 0 t _ | {} _ 0 t _ | {} nan 0 t _ | {} 1.5 0 t _",
              "schedule_add tick {} | 0 0 t _ | 1795000060000000 2 t _ | 1795000060000000 0 t/t _",
              "schedule_add tick {} 1795000060000000 0 t | x | 0 | 999", "schedule_remove",
              "schedule_remove | ti/ck | tick more", "schedule_list",
              "schedule_list | ti/ck | _ x | _ -1 | _ _ | _ 0 0", "schedule_fire",
              "schedule_fire | tick {} 1795000000000000 | ti/ck {} 1795000000000000 _ | tick {} _ _",
              "schedule_fire tick {} | nan _ | 1795000000000000 1795000000000000",
              "schedule_fire tick {} 1795000000000000 | 1794999999999999 | nan | _ default | _ default t",
              "schedule_fire tick {} 1795000000000000 _ de/fault t {\"id\":\"tick.1\",\"type\":\"t\"}",
              "schedule_fire tick {} 1795000000000000 _ default t/t {\"id\":\"tick.1\",\"type\":\"t\"}",
              "schedule_fire tick {} 1795000000000000 _ default t {\"id\":\"tock.1\",\"type\":\"t\"}",
              "schedule_fire tick {} 1795000000000000 _ default t {\"type\":\"t\"}"));
}

static int note_row(struct schedule_row *row, void *arg)
{
    bool *met = arg;
    int i = atoi(row->name + 1);

    assert_in_range(i, 0, 349);
    assert_int_equal(row->status, 0);
    assert_int_equal(row->due_us, i == 7 ? -1 : FIRST_US + i);
    assert_int_equal(row->s.missed, WEIR_MISSED_SKIP);
    met[i] = true;
    return 0;
}

TEST_WITH(test_the_list_has_all_of_them, begin, NULL)
{
    bool met[350] = {false};

    for (int i = 0; i < 350; i++)
        add(textf("s%03d", i), "every 1m", WEIR_MISSED_SKIP, FIRST_US + i);
    redis_do("ZREM", LATER, RECORD("s007"));
    assert_int_equal(schedule_each(w, note_row, met), 0);
    for (int i = 0; i < 350; i++)
        assert_true(met[i]);
}

/* ---- The library */

TEST_WITH(test_specs_that_are_refused, begin, NULL)
{
    static const struct {
        const char *name;
        struct weir_job_spec job;
        int status;
        const char *why;
    } cases[] = {
        {"a b",
         {.type = "t"},
         WEIR_EINPUT,
         "schedule 'a b': not a valid name; use 1 to 100 of A-Z a-z 0-9 _ . -"},
        {"", {.type = "t"}, WEIR_EINPUT, "schedule '': not a valid name; "},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
         "aa",
         {.type = "t"},
         WEIR_EINPUT,
         "not a valid name; "},
        {"a", {.type = NULL}, WEIR_EINPUT, "its type is missing"},
        {"a", {.type = "t/t"}, WEIR_EINPUT, "its type must be 1 to 128 of A-Z a-z 0-9 _ . -"},
        {"a", {.type = "t", .queue = "q/q"}, WEIR_EINPUT, "queue 'q/q': not a valid name; "},
        {"a", {.type = "t", .args = "{x"}, WEIR_EINPUT, "wrong args, not JSON"},
        {"a", {.type = "t", .id = "i"}, WEIR_EUSAGE, "have no id, time, unique key or batch of their own; "},
        {"a", {.type = "t", .delay_s = 1}, WEIR_EUSAGE, "leave them out"},
        {"a", {.type = "t", .at_s = 1}, WEIR_EUSAGE, "leave them out"},
        {"a", {.type = "t", .unique = "u"}, WEIR_EUSAGE, "leave them out"},
        {"a", {.type = "t", .batch = "b"}, WEIR_EUSAGE, "leave them out"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        int status = weir_schedule_add(w, cases[i].name, "@daily", NULL, WEIR_MISSED_ONCE, &cases[i].job);

        if (status != cases[i].status || !strstr(weir_message(w), cases[i].why))
            fail_msg("%d %s, not %s", status, weir_message(w), cases[i].why);
    }
    assert_int_equal(weir_schedule_add(w, "a", "@daily", NULL, 3, &cases[4].job), WEIR_EUSAGE);
    assert_int_equal(redis_number("DBSIZE"), 0);
}

/* Nothing of a job's text changes on its way. */
TEST_WITH(test_args_are_kept_byte_for_byte, begin, NULL)
{
    static const char args[] =
        "{\"a\":[], \"b\" : 12345678901234567890123.50, \"\\u00e4\":\"\xc3\xa4/\\/\", \"a\":{}}";
    struct weir_job_spec job = {.type = "t", .args = args, .key = "k", .cost = 2, .timeout_s = 1.5};

    assert_int_equal(weir_schedule_add(w, "a", "every 1m", NULL, WEIR_MISSED_ONCE, &job), 0);
    redis_do("ZADD", LATER, "1795000000000000", RECORD("a"));
    assert_int_equal(fire_all(), 1);
    expect_text(textf("{\"id\":\"a.1795000000\",\"type\":\"t\",\"key\":\"k\",\"cost\":2,\"args\":%s,"
                      "\"timeout\":1.500000}",
                      args),
                "LINDEX", QUEUE, "0");
}

/* ---- The command. What it prints is in tests/transcripts/schedules.txt. */

static struct outcome o;

static int weir(struct stage *s, const char *line)
{
    return program_weir(&o, s->server.folder, s->server.url, NULL, line);
}

/* The occurrences of "0 9 * * MON" in Berlin: Mondays at nine, a week apart. */
STAGE_TEST(test_the_next_occurrences)
{
    struct zone *berlin;
    struct error e;
    json_t *doc, *next;
    double before = 0;

    assert_int_equal(weir(s, "schedule add weekly 0~9~*~*~MON sum --tz Europe/Berlin --json"), 0);
    assert_int_equal(zone_open("Europe/Berlin", &berlin, &e), 0);
    doc = json_loads(o.out, 0, NULL);
    next = json_object_get(doc, "next");
    assert_int_equal(json_array_size(next), 5);
    for (size_t i = 0; i < 5; i++) {
        double at_s = json_number_value(json_array_get(next, i));
        struct tm day = {0};
        char text[40];

        zone_format(berlin, (int64_t)at_s, text);
        assert_non_null(strptime(text, "%Y-%m-%dT09:00:00", &day));
        timegm(&day);
        assert_int_equal(day.tm_wday, 1);
        assert_true(i == 0 || (at_s > before && at_s - before < 8 * 86400));
        before = at_s;
    }
    json_decref(doc);
    zone_free(berlin);
}

/* With all that a job may have, and another id. */
STAGE_TEST(test_one_of_its_jobs_now)
{
    char expected[200], *body;

    assert_int_equal(
        weir(s, "schedule add a @daily sum {\"a\":[]} --queue low --key k --cost 2 --max-attempts 3 "
                "--timeout 5m"),
        0);
    assert_int_equal(weir(s, "schedule run a"), 0);
    assert_int_equal(strlen(o.out), strlen("a.") + 17);
    snprintf(expected, sizeof expected,
             "{\"id\":\"%.18s\",\"type\":\"sum\",\"key\":\"k\",\"cost\":2,\"args\":{\"a\":[]},"
             "\"max_attempts\":3,\"timeout\":300.000000}",
             o.out);
    body = server_ask(&s->server, "LINDEX", stage_key(s, "queue:low"), "0", NULL);
    assert_string_equal(unstamped(body), expected);
    free(body);
    assert_int_equal(stage_number(s, "ZCARD", stage_key(s, "later")), 1);
    assert_int_equal(weir(s, "schedule remove a"), 0);
    assert_int_equal(stage_number(s, "EXISTS", stage_key(s, "later")), 0);
}

/* Runs of schedule a by its document, the newest first: "waiting done ...". */
static char *how_they_ended(struct stage *s)
{
    json_t *doc, *runs;
    char text[200] = "";

    assert_int_equal(weir(s, "schedule show a --json"), 0);
    doc = json_loads(o.out, 0, NULL);
    runs = json_object_get(doc, "runs");
    for (size_t i = 0; i < json_array_size(runs); i++) {
        const json_t *run = json_array_get(runs, i);
        const char *outcome = json_string_value(json_object_get(run, "outcome"));

        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? " " : "",
                 outcome ? outcome : json_string_value(json_object_get(run, "state")));
    }
    json_decref(doc);
    return textf("%s", text);
}

/* By where its jobs are, and what is kept of them; those of a schedule of nearly the same name are others. */
STAGE_TEST(test_how_its_last_runs_ended)
{
    char gone[19], line[64];
    pid_t worker;

    assert_int_equal(weir(s, "schedule add a @daily ends --max-attempts 1"), 0);
    assert_int_equal(weir(s, "schedule add a.b @daily ends"), 0);
    assert_string_equal(how_they_ended(s), "");
    assert_int_equal(weir(s, "schedule run a"), 0);
    worker = stage_weir(s, "fails", "--exec", "ends=/bin/false", NULL);
    await(stage_stat(s, "ends", "dead") == 1);
    stage_end(worker);
    assert_int_equal(weir(s, "schedule run a"), 0);
    worker = stage_weir(s, "keeps", "--exec", "ends=/bin/true", "--keep", "ends=1h", NULL);
    await(stage_stat(s, "ends", "done") == 1);
    stage_end(worker);
    assert_int_equal(weir(s, "schedule run a"), 0);
    snprintf(gone, sizeof gone, "%.18s", o.out);
    assert_int_equal(weir(s, "schedule run a"), 0);
    assert_int_equal(weir(s, "schedule run a.b"), 0);
    snprintf(line, sizeof line, "job cancel %s", gone);
    assert_int_equal(weir(s, line), 0);
    assert_string_equal(how_they_ended(s), "waiting gone done dead");

    assert_int_equal(weir(s, "job list schedule:a state:waiting,dead --json"), 0);
    assert_null(strstr(o.out, "a.b."));
    assert_non_null(strstr(o.out, "\"state\":\"waiting\""));
    assert_non_null(strstr(o.out, "\"state\":\"dead\""));

    stage_do(s, "DEL", stage_key(s, "id:%s", gone));
    snprintf(line, sizeof line, "job show %s", gone); /* that it was enqueued is known all the same */
    assert_int_equal(weir(s, line), 66);
    assert_non_null(strstr(o.err, "no such job here any more"));
}

/* On a terminal it asks; elsewhere, or with --yes, it does not. */
STAGE_TEST(test_removing_asks_on_a_terminal)
{
    const char *words[] = {built("weir"), "schedule", "--redis", s->server.url, "--namespace",
                           s->ns,         "remove",   "a",       NULL,          NULL};
    char text[2048];

    assert_int_equal(weir(s, "schedule add a @daily t"), 0);
    assert_int_equal(program_on_terminal(words, "n\n", text, sizeof text), 75);
    assert_non_null(strstr(text, "remove schedule a? [y/N]"));
    assert_non_null(strstr(text, "schedule remove: nothing was changed"));
    assert_int_equal(program_on_terminal(words, "y\n", text, sizeof text), 0);
    assert_non_null(strstr(text, "schedule a removed"));
    assert_int_equal(weir(s, "schedule add a @daily t"), 0);
    words[8] = "-y";
    assert_int_equal(program_on_terminal(words, "", text, sizeof text), 0);
    assert_null(strstr(text, "[y/N]"));
    assert_int_equal(weir(s, "schedule show a"), 66);
}

/* ---- With workers */

/* The ids that workers have noted, one a line, in any order; returns how many there are. */
static int read_ids(struct stage *s, long long ids[], int most)
{
    char text[8192], *rest = text, *line;
    int count = 0;

    if (!read_text(s->server.folder, "ids", text, sizeof text))
        return 0;
    while (count < most && (line = strsep(&rest, "\n")))
        if (sscanf(line, "tick.%lld", &ids[count]) == 1)
            count++;
    return count;
}

static int by_number(const void *a, const void *b)
{
    long long x = *(const long long *)a, y = *(const long long *)b;

    return (x > y) - (x < y);
}

static pid_t noting_worker(struct stage *s, const char *name)
{
    write_text(s->server.folder, "note", "#!/bin/sh\necho $WEIR_JOB_ID >>ids\n");
    assert_int_equal(program_end(program_start(s->server.folder, "chmod",
                                               (const char *const[]){"/bin/chmod", "+x", "note", NULL})),
                     0);
    return stage_weir(s, name, "--exec", "t=./note", NULL);
}

STAGE_TEST(test_two_workers_run_each_occurrence_once)
{
    pid_t one = noting_worker(s, "one"), two = noting_worker(s, "two");
    long long ids[64];
    int count;

    stage_await_workers(s, 2);
    assert_int_equal(weir(s, "schedule add tick every~1s t --missed all"), 0);
    await(read_ids(s, ids, 64) >= 3);
    assert_int_equal(stage_end(one), 0); /* the other one goes on */
    count = read_ids(s, ids, 64);
    await(read_ids(s, ids, 64) >= count + 3);
    assert_int_equal(weir(s, "schedule remove tick"), 0);
    await(stage_stat(s, "t", "done") == stage_stat(s, "t", "enqueued"));
    assert_int_equal(stage_end(two), 0);
    count = read_ids(s, ids, 64);
    qsort(ids, (size_t)count, sizeof ids[0], by_number);
    for (int i = 1; i < count; i++)
        assert_int_equal(ids[i], ids[i - 1] + 1);
}

/* What is due needs no free executor, and none of the workers in particular. */
STAGE_TEST(test_busy_workers_promote)
{
    pid_t workers[2];
    int64_t count;

    for (int i = 0; i < 2; i++) {
        workers[i] = stage_actor(s, i ? "two" : "one", "executors=1", "lease=120", NULL);
        stage_enqueue(s, "mark", "{\"wait\":\"go\"}", i, 1);
        await(history_count(s, "begin", i) == 1);
    }
    assert_int_equal(weir(s, "enqueue t --in 1s"), 0);
    assert_int_equal(weir(s, "schedule add tick every~1s t"), 0);
    await(stage_stat(s, "t", "enqueued") >= 2);
    kill(workers[0], SIGKILL);
    assert_int_equal(program_end(workers[0]), 1000 + SIGKILL);
    count = stage_stat(s, "t", "enqueued");
    await(stage_stat(s, "t", "enqueued") >= count + 2);
    assert_int_equal(history_count(s, "effect", -1), 0);
    write_text(s->server.folder, "go", "");
}

/* Nor a claim that succeeds. */
STAGE_TEST(test_refused_claims_keep_nothing_in_later)
{
    stage_do(s, "SET", stage_key(s, "halted"), "x");
    stage_actor(s, "worker", "lease=120", NULL);
    await_text(s->server.folder, "worker.err", "halted is a string");
    assert_int_equal(weir(s, "enqueue t --in 1s"), 0);
    await(stage_stat(s, "t", "enqueued") == 1);
}

/* A worker without the tz database leaves the schedule to others, and runs jobs meanwhile. */
STAGE_TEST(test_a_worker_that_does_not_know_the_zone)
{
    long long ids[4];
    int64_t begun_us;

    setenv("TZDIR", "/nonexistent", 1);
    noting_worker(s, "without");
    unsetenv("TZDIR");
    stage_await_workers(s, 1);
    assert_int_equal(weir(s, "schedule add tick 0~0~1~1~* t --tz Europe/Berlin"), 0);
    stage_do(s, "ZADD", stage_key(s, "later"), "1795000000000000", RECORD("tick"));
    stage_do(s, "RPUSH", stage_key(s, "bell:x"), "1");
    await_text(
        s->server.folder, "without.err",
        "time zone 'Europe/Berlin': this machine's tz database has none of that name; write one such as "
        "Europe/Berlin, or UTC, and see that tzdata is installed; its occurrences are left to other "
        "workers");
    begun_us = clock_mono_us();
    stage_enqueue(s, "t", NULL, 0, 20);
    await(stage_stat(s, "t", "done") == 20);
    assert_true(clock_mono_us() - begun_us < 60 * SECOND_US);
    assert_int_equal(read_ids(s, ids, 4), 0);
    noting_worker(s, "with");
    await(read_ids(s, ids, 4) == 1);
    assert_int_equal(ids[0], 1795000000);
}

/* One that nobody can read is told once and keeps no job waiting. */
STAGE_TEST(test_a_worker_tells_what_it_cannot_read)
{
    noting_worker(s, "worker");
    stage_await_workers(s, 1);
    assert_int_equal(weir(s, "schedule add tick every~1h t"), 0);
    stage_do(s, "HSET", stage_key(s, "schedules"), "tick", "{}");
    stage_do(s, "ZADD", stage_key(s, "later"), "1795000000000000", RECORD("tick"));
    await_text(
        s->server.folder, "worker.err",
        "schedule tick: its definition cannot be read; add it again: weir schedule add; it is not due any "
        "more");
    await(stage_number(s, "EXISTS", stage_key(s, "later")) == 0);
    stage_enqueue(s, "t", NULL, 0, 1);
    await(stage_stat(s, "t", "done") == 1);
}

PLAY("schedule")

STAGE_TESTS(start_all, stop_all)

/* weir dead from outside: each way to die end to end, with its reason and its bytes; types that nobody knows;
 * jobs in bulk; what is asked, what is refused. */
#include "tests/stage_group.h"

#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"

static int branches;

static int open_stage(void **state)
{
    struct stage *s = calloc(1, sizeof *s);

    stage_branch(&stage, textf("dead%d", branches++), s);
    *state = s;
    return 0;
}

static int close_stage(void **state)
{
    stage_close(*state);
    free(*state);
    return 0;
}

static struct outcome said;

/* "weir dead" with these words, as program_weir() has them, ends with that code. */
static void dead(struct stage *s, int code, const char *line)
{
    if (program_weir(&said, NULL, s->server.url, s->ns, textf("dead %s", line)) != code)
        fail_msg("%s: exit %d, out: %s err: %s", line, said.code, said.out, said.err);
}

static void expect(struct stage *s, const char *line, const char *out)
{
    dead(s, 0, line);
    assert_string_equal(said.out, out);
    assert_string_equal(said.err, "");
}

static long long dead_count(struct stage *s)
{
    return stage_number(s, "ZCARD", stage_key(s, "dead"));
}

/* count dead jobs of a type, ids type0, type1 ..., the first one longest dead; each third for another reason.
 */
static void bury(struct stage *s, const char *type, int count)
{
    stage_do(s, "EVAL",
             "for i = 0, ARGV[2] - 1 do\n"
             "  redis.call('ZADD', KEYS[1], string.format('%d', 1700000000000000 + i),\n"
             "    'w:' .. ARGV[1] .. i .. ' default/' .. ARGV[1] .. '/ exit ' .. (i % 3 == 0 and 2 or "
             "1) .. ': no luck\\n'\n"
             "    .. '@24,0,0;{\"id\":\"' .. ARGV[1] .. i .. '\",\"type\":\"' .. ARGV[1] .. "
             "'\",\"args\":{}}')\n"
             "end",
             "1", stage_key(s, "dead"), type, textf("%d", count));
}

/* ---- The ways to die */

#define WRONG_KEY ":dead is a string, not a zset; weir doctor --repair puts it aside, or says what to do"
#define NO_HANDLER "no handler for its type: no worker has run it for a minute"
#define BODY(id, rest) "{\"id\":\"" id "\",\"type\":" rest "}"

static const struct death {
    const char *id; /* NULL: it has none */
    const char *type;
    const char *body, *reason;
} deaths[] = {
    {NULL, "-", "{no JSON \x01\xff\\", "unreadable: no JSON: "},
    {NULL, "-", "[1]", "unreadable: no JSON object"},
    {"typeless", "-", BODY("typeless", "7"), "unreadable: its type is missing or no name"},
    {"good", "mark", BODY("good", "\"mark\",\"args\":{\"dead\":\"no such customer\"}"), "no such customer"},
    {"used", "mark", BODY("used", "\"mark\",\"max_attempts\":2,\"args\":{\"fail\":9,\"after\":0}"),
     "attempt 2 failed"},
    {"dear", "dear", BODY("dear", "\"dear\",\"cost\":5"), "its cost of 5 can never fit limit dear"},
    {"odd", "odd", BODY("odd", "\"odd\",\n  \"args\":[1.0, 12345678901234567]"), NO_HANDLER},
    {"poison", "mark", BODY("poison", "\"mark\",\"args\":{\"kill\":\"before\"}"), "its worker died 3 times"},
};
#define DEATHS ((int)COUNT(deaths))

/* What is said of it as JSON; its id, which is raw:... when it has none. */
static void check_death(struct stage *s, const struct death *d, const json_t *doc)
{
    const char *id = json_string_value(json_object_get(doc, "id")),
               *type = json_string_value(json_object_get(doc, "type"));
    char line[200];

    assert_string_equal(type ? type : "-", d->type);
    assert_int_equal(strncmp(id, d->id ? d->id : "raw:", d->id ? 200 : 4), 0);
    assert_true((d != deaths) == (json_object_get(doc, "body") != NULL)); /* the first is no JSON */
    assert_true((d == deaths) == json_is_string(json_object_get(doc, "raw")));
    assert_true(json_number_value(json_object_get(doc, "since")) > 1.7e9);
    snprintf(line, sizeof line, "show %s", id);
    dead(s, 0, line);
    assert_non_null(strstr(said.out, d->reason));
    snprintf(line, sizeof line, "show %s --raw", id);
    expect(s, line, d->body);
}

static void check_deaths(struct stage *s)
{
    char list[sizeof said.out], *rest = list, *line;
    int met = 0;

    dead(s, 0, "list --json");
    strcpy(list, said.out);
    while ((line = strsep(&rest, "\n")) && *line) {
        json_t *doc = json_loads(line, 0, NULL);
        const char *reason = json_string_value(json_object_get(doc, "reason"));
        int i = 0;

        while (i < DEATHS && !strstr(reason, deaths[i].reason))
            i++;
        if (i == DEATHS)
            fail_msg("%s", line);
        check_death(s, &deaths[i], doc);
        met |= 1 << i;
        json_decref(doc);
    }
    assert_int_equal(met, (1 << DEATHS) - 1);
}

/* No worker has run it for two minutes. */
static void make_unknown(struct stage *s, const char *type)
{
    stage_do(s, "ZADD", stage_key(s, "runs"), textf("%" PRId64, clock_wall_us() - 120 * INT64_C(1000000)),
             type);
}

STAGE_TEST_WITH(each_death_with_its_reason_and_its_bytes, open_stage, close_stage)
{
    pid_t worker;

    make_unknown(s, "odd");
    stage_rate(s, "dear", "10/s,burst=2");
    for (int i = DEATHS - 1; i >= 0; i--)
        stage_push_text(s, deaths[i].body);
    for (int i = 0; i < 3; i++)
        assert_int_equal(program_end(stage_actor(s, "victim", "types=mark,dear", "executors=1", "lease=1",
                                                 "unknown_dead=1", "fragile=1", NULL)),
                         1000 + SIGKILL);
    worker = stage_actor(s, "last", "types=mark,dear", "executors=1", "lease=1", "unknown_dead=1",
                         "fragile=1", NULL);
    await(dead_count(s) == DEATHS);
    assert_int_equal(stage_end(worker), 0);

    check_deaths(s);
    dead(s, 0, "show odd --json"); /* its numbers as they were */
    assert_non_null(strstr(said.out, "\"args\":[1.0, 12345678901234567]}}\n"));
    dead(s, 0, "show odd");
    assert_non_null(strstr(said.out, ",\\x0a  \"args\""));
    dead(s, 0, "list --json --reason unreadable:~no~JSON:~");
    assert_non_null(strstr(said.out, "\"raw\":\"e25vIEpTT04gAf9c\"}\n"));
}

/* ---- Types that nobody knows */

STAGE_TEST_WITH(unknown_types_are_held_for_who_knows_them, open_stage, close_stage)
{
    stage_actor(s, "first", "types=mark", NULL);
    stage_enqueue(s, "odd", NULL, 0, 3);
    stage_enqueue(s, "mark", NULL, 3, 1);
    await(history_count(s, "effect", 3) == 1);
    await(stage_number(s, "ZCARD", stage_key(s, "held:default")) == 1);
    assert_int_equal(dead_count(s), 0);
    stage_actor(s, "second", "types=odd", NULL);
    assert_int_equal(stage_await_done(s, 4).twice, 0);
}

/* A worker that has no handler leaves them to the one that has, though that one is slow. */
STAGE_TEST_WITH(types_of_other_workers_are_not_unknown, open_stage, close_stage)
{
    stage_actor(s, "first", "types=mark", "unknown_dead=1", NULL);
    stage_actor(s, "second", "types=odd", "executors=1", NULL);
    await(stage_number(s, "ZCARD", stage_key(s, "runs")) == 2);
    stage_enqueue(s, "odd", NULL, 0, 2000);
    assert_int_equal(stage_await_done(s, 2000).twice, 0);
    assert_int_equal(dead_count(s), 0);
}

STAGE_TEST_WITH(unknown_types_are_dead_until_retried, open_stage, close_stage)
{
    pid_t first;

    make_unknown(s, "odd");
    first = stage_weir(s, "first", "--exec", "mark=true", "--unknown", "dead", NULL);
    stage_enqueue(s, "odd", NULL, 0, 3);
    await(dead_count(s) == 3);
    dead(s, 0, "list --type odd --json --limit 1");
    assert_non_null(strstr(said.out, "\"id\":\"j0\",\"type\":\"odd\""));
    assert_non_null(strstr(said.out, "\"reason\":\"" NO_HANDLER "\",\"attempts\":0"));
    assert_int_equal(stage_end(first), 0);
    stage_actor(s, "second", "types=odd", "unknown_dead=1", NULL);
    expect(s, "retry --reason no~handler", "3 dead jobs retried\n");
    assert_int_equal(stage_await_done(s, 3).twice, 0);
}

/* ---- In bulk */

STAGE_TEST_WITH(many_are_counted_retried_and_removed, open_stage, close_stage)
{
    pid_t worker;

    bury(s, "mark", 3000);
    bury(s, "other", 1000);
    stage_do(s, "ZADD", stage_key(s, "dead"), "1", "junk");
    expect(s, "retry --all --dry-run",
           " jobs  type   reason\n"
           "2,000  mark   exit 1: no luck\n"
           "1,000  mark   exit 2: no luck\n"
           "  666  other  exit 1: no luck\n"
           "  334  other  exit 2: no luck\n"
           "    1  -      this record cannot be read\n"
           "4,000 dead jobs would be retried\n1 without a queue would stay: name one with --into QUEUE\n");
    expect(
        s, "remove --type other --dry-run --json",
        "{\"dry_run\":true,\"jobs\":1000,\"without_queue\":0,\"batch_cancelled\":0,\"reasons\":[{\"type\":"
        "\"other\",\"reason\":"
        "\"exit 1: no "
        "luck\",\"jobs\":666,\"first_at\":1700000000.000001,\"last_at\":1700000000.000998,\"id\":"
        "\"other1\"},{\"type\":\"other\",\"reason\":\"exit 2: no "
        "luck\",\"jobs\":334,\"first_at\":1700000000.0,\"last_at\":1700000000.000999,\"id\":\"other0\"}]}\n");
    assert_int_equal(dead_count(s), 4001);
    expect(s, "retry --type mark --reason exit~2 --json",
           "{\"action\":\"retry\",\"jobs\":1000,\"without_queue\":0,\"batch_cancelled\":0}\n");
    dead(s, 64, "remove --type other");
    assert_int_equal(dead_count(s), 3001);
    expect(s, "remove --type other -y", "1,000 dead jobs removed\n");
    expect(s, "retry --all", "2,000 dead jobs retried\n1 without a queue left: name one with --into QUEUE\n");
    worker = stage_actor(s, "worker", "executors=4", NULL);
    await(stage_stat(s, "mark", "done") == 3000);
    assert_int_equal(stage_end(worker), 0);
    assert_int_equal(dead_count(s), 1);
    expect(s, "retry --all --into default", "1 dead job retried\n");
    assert_int_equal(dead_count(s), 0);
    assert_int_equal(stage_stat(s, "mark", "revived"), 3000);
    assert_int_equal(stage_stat(s, "other", "removed"), 1000);
}

/* One worker would keep ten, one a day: both keep to the namespace, and say so. */
STAGE_TEST_WITH(no_worker_decides_what_is_kept, open_stage, close_stage)
{
    pid_t few, many;

    few = stage_actor(s, "few", "types=mark", "executors=8", "lease=1", "dead_most=10", NULL);
    many = stage_actor(s, "many", "types=mark", "executors=8", "lease=1", "dead_age=1e5", NULL);
    await_text(s->server.folder, "few.err",
               "--dead-most: this worker was started with 10 dead jobs, and the namespace keeps 100000 dead "
               "jobs: that holds; weir dead keep --most changes it");
    await_text(s->server.folder, "many.err",
               "dead-age: this worker was started with 100000 s, and the namespace keeps 15552000 s");
    stage_enqueue(s, "mark", "{\"dead\":\"again\"}", 0, 2000);
    await(dead_count(s) == 2000);
    assert_int_equal(stage_end(few), 0);
    assert_int_equal(stage_end(many), 0);
    assert_int_equal(dead_count(s), 2000);
}

/* Nothing is forgotten before it was said how many, and somebody agreed. */
STAGE_TEST_WITH(what_is_kept_is_asked_for, open_stage, close_stage)
{
    expect(s, "keep --age 360d --json",
           "{\"keep_jobs\":100000,\"keep_bytes\":268435456,\"keep_age\":31104000.0,\"jobs\":0,\"bytes\":0,"
           "\"oldest_at\":null,\"forgets\":0,\"dry_run\":false}\n");
    dead(s, 0, "keep --age 3650d");
    bury(s, "old", 2000);
    dead(s, 0, "keep --most 12 --dry-run");
    assert_int_equal(
        strncmp(said.out, "nothing was changed; it would be:\njobs:   2,000 of at most 12\n", 60), 0);
    assert_non_null(strstr(said.out, "\n1,988 of 2,000 dead jobs would be forgotten\n"));
    dead(s, 64, "keep --most 12");
    stage_actor(s, "worker", "types=mark", "lease=1", NULL);
    await(stage_number(s, "HEXISTS", stage_key(s, "dead_bytes"), "bytes") == 1);
    await(stage_number(s, "HEXISTS", stage_key(s, "dead_bytes"), "score") == 0);
    dead(s, 0, "keep");
    assert_non_null(strstr(said.out, "jobs:   2,000 of at most 100,000\nbytes:  1"));
    program_weir(&said, NULL, s->server.url, s->ns, "status");
    assert_non_null(strstr(said.out, "\n2,000 dead jobs, 1"));
    dead(s, 0, "keep --most 12 --yes");
    await(dead_count(s) == 12);
}

/* Workers forget the oldest, keep up with jobs that go on dying, and say so. */
STAGE_TEST_WITH(workers_keep_the_number_of_the_dead, open_stage, close_stage)
{
    bury(s, "old", 3000);
    stage_do(s, "HSET", stage_key(s, "settings"), "dead_most", "50", "dead_age_us", "1000000000000000");
    stage_actor(s, "worker", "types=mark", "executors=8", "lease=1", NULL);
    await_text(s->server.folder, "worker.err", " oldest dead jobs were forgotten");
    stage_enqueue(s, "mark", "{\"dead\":\"again\"}", 0, 500);
    await(stage_stat(s, "mark", "dead") == 500);
    await(dead_count(s) == 50);
    assert_int_equal(stage_stat(s, "old", "forgotten"), 3000);
    assert_int_equal(stage_stat(s, "mark", "forgotten"), 450);
}

/* ---- One by one, and what is refused */

STAGE_TEST_WITH(fifty_are_listed, open_stage, close_stage)
{
    bury(s, "mark", 60);
    dead(s, 0, "list --limit 60 --json");
    assert_string_equal(said.err, "");
    dead(s, 0, "list");
    assert_string_equal(said.err, "50 dead jobs shown, the oldest; --limit N shows more\n");
    assert_non_null(strstr(said.out, "  mark  mark49  "));
    assert_null(strstr(said.out, "  mark  mark50  "));
}

STAGE_TEST_WITH(no_registry_of_the_dead, open_stage, close_stage)
{
    static const struct misuse wrong_key[] = {
        {"dead list", 78, WRONG_KEY},
        {"dead retry --all", 78, WRONG_KEY},
        {"dead remove --all", 78, WRONG_KEY},
        {"dead keep", 78, WRONG_KEY},
        {NULL, 0, NULL},
    };
    static const struct misuse unreachable[] = {{"dead retry --all", 69, "/nonexistent/redis.sock"},
                                                {NULL, 0, NULL}};

    bury(s, "mark", 1);
    program_misuses(NULL, "/nonexistent/redis.sock", NULL, unreachable);
    stage_do(s, "SET", stage_key(s, "dead"), "somebody's");
    program_misuses(NULL, s->server.url, s->ns, wrong_key);
}

/* Runs "weir dead remove --all" and words on a terminal, types answer, and returns the exit code. */
static int on_terminal(struct stage *s, const char *answer, const char *word, char *text, size_t size)
{
    const char *words[] = {built("weir"), "dead",   "--redis", s->server.url, "--namespace",
                           s->ns,         "remove", "--all",   word,          NULL};

    return program_on_terminal(words, answer, text, size);
}

STAGE_TEST_WITH(removing_asks_on_a_terminal, open_stage, close_stage)
{
    char text[4096];

    bury(s, "mark", 7);
    assert_int_equal(on_terminal(s, "n\n", NULL, text, sizeof text), 75);
    assert_non_null(strstr(text, "   4  mark  exit 1: no luck"));
    assert_non_null(strstr(text, "remove 7 dead jobs for good? [y/N]"));
    assert_non_null(strstr(text, "nothing was changed"));
    assert_int_equal(on_terminal(s, "\n", NULL, text, sizeof text), 75);
    assert_int_equal(dead_count(s), 7);
    assert_int_equal(on_terminal(s, "y\n", NULL, text, sizeof text), 0);
    assert_non_null(strstr(text, "7 looked at  7 removed"));
    assert_non_null(strstr(text, "7 dead jobs removed"));
    assert_int_equal(dead_count(s), 0);
    bury(s, "mark", 7);
    assert_int_equal(on_terminal(s, "", "--yes", text, sizeof text), 0);
    assert_null(strstr(text, "[y/N]"));
    assert_int_equal(dead_count(s), 0);
}

/* A list that is too long to be held is one table: one head, and the widths of its first rows. */
STAGE_TEST_WITH(a_long_list_is_one_table, open_stage, close_stage)
{
    static struct outcome o;
    char folder[64], *line, *rest = o.out;
    size_t lines = 0, reason_at = 0;

    folder_make(folder);
    bury(s, "mark", 2345);
    run_in(&o, folder, "/bin/sh", "-c",
           "\"$0\" dead list --limit 2340 --redis \"$1\" --namespace \"$2\" >list; wc -l <list; "
           "head -n 2 list; sed -n '1001,1003p;2001,2003p' list; tail -n 1 list; grep -c died list",
           built("weir"), s->server.url, s->ns, NULL);
    assert_int_equal(o.code, 0);
    assert_string_equal(o.err, "2,340 dead jobs shown, the oldest; --limit N shows more\n");
    assert_int_equal(strtol(strsep(&rest, "\n"), NULL, 10), 2341);
    reason_at = (size_t)(strstr(rest, "reason") - rest);
    assert_non_null(strsep(&rest, "\n"));
    for (; (line = strsep(&rest, "\n")) && strstr(line, "mark"); lines++)
        assert_int_equal(strstr(line, "exit ") - line, reason_at);
    assert_int_equal(lines, 8);
    assert_string_equal(line, "1");
    folder_remove(folder);
}

STAGE_TESTS(stage_start, stage_stop)

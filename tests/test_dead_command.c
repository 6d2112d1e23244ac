/* weir dead from outside: each way to die end to end, with its reason and its bytes; types that nobody knows;
 * jobs in bulk; what is asked, what is refused. */
#include "tests/stage.h"

#include <inttypes.h>
#include <jansson.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/clock.h"

static struct stage root;
static int branches;

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

static int open_stage(void **state)
{
    struct stage *s = calloc(1, sizeof *s);
    char name[24];

    snprintf(name, sizeof name, "dead%d", branches++);
    stage_branch(&root, name, s);
    *state = s;
    return 0;
}

static int close_stage(void **state)
{
    stage_close(*state);
    free(*state);
    return 0;
}

/* "weir dead" with these words, ended by NULL. */
static void dead(struct outcome *o, struct stage *s, ...) __attribute__((sentinel));
static void dead(struct outcome *o, struct stage *s, ...)
{
    const char *words[WORDS_MAX + 1] = {built("weir"), "dead",        "--redis",
                                        s->server.url, "--namespace", s->ns};
    va_list rest;

    va_start(rest, s);
    for (int i = 6; i < WORDS_MAX && (words[i] = va_arg(rest, const char *)); i++)
        ;
    va_end(rest);
    program_run(o, NULL, words);
}

static void expect(const struct outcome *o, int code, const char *out, const char *err)
{
    if (o->code != code || (out && strcmp(o->out, out) != 0) || (err && !strstr(o->err, err)))
        fail_msg("exit %d, out: %s err: %s", o->code, o->out, o->err);
}

static long long dead_count(struct stage *s)
{
    return server_number(&s->server, "ZCARD", stage_key(s, "dead"), NULL);
}

/* count dead jobs of a type, ids type0, type1 ..., the first one longest dead; each third for another reason.
 */
static void bury(struct stage *s, const char *type, int count)
{
    char number[16];

    snprintf(number, sizeof number, "%d", count);
    free(server_ask(&s->server, "EVAL",
                    "for i = 0, ARGV[2] - 1 do\n"
                    "  redis.call('ZADD', KEYS[1], string.format('%d', 1700000000000000 + i),\n"
                    "    'w:' .. ARGV[1] .. i .. ' default/' .. ARGV[1] .. '/ exit ' .. (i % 3 == 0 and 2 or "
                    "1) .. ': no luck\\n'\n"
                    "    .. '@24,0,0;{\"id\":\"' .. ARGV[1] .. i .. '\",\"type\":\"' .. ARGV[1] .. "
                    "'\",\"args\":{}}')\n"
                    "end",
                    "1", stage_key(s, "dead"), type, number, NULL));
}

/* ---- The ways to die */

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
#define DEATHS ((int)(sizeof deaths / sizeof *deaths))

/* The line of the list that has that reason; it goes on to the end of the text. */
static char *line_of(char *list, const char *reason)
{
    char *at = strstr(list, reason);

    if (!at)
        fail_msg("%s: not listed: %s", reason, list);
    while (at > list && at[-1] != '\n')
        at--;
    return at;
}

/* Of its line, "when  type  id  n attempts  reason": what stands as id. */
static void check_line(char *list, const struct death *d, char id[200])
{
    char type[200];

    assert_int_equal(sscanf(line_of(list, d->reason), "%*s %199s %199s", type, id), 2);
    assert_string_equal(type, d->type);
    if (d->id)
        assert_string_equal(id, d->id);
    else
        assert_memory_equal(id, "raw:", 4);
}

static void check_json(struct stage *s, const struct death *d, const char *id)
{
    struct outcome o;
    json_t *doc;

    dead(&o, s, "show", id, "--json", NULL);
    expect(&o, 0, NULL, "");
    doc = json_loads(o.out, 0, NULL);
    if (!doc)
        fail_msg("%s: no JSON: %s", id, o.out);
    assert_non_null(strstr(json_string_value(json_object_get(doc, "reason")), d->reason));
    assert_string_equal(json_string_value(json_object_get(doc, "id")), id);
    assert_true((d != deaths) == (json_object_get(doc, "body") != NULL)); /* the first is no JSON */
    assert_true((d == deaths) == json_is_string(json_object_get(doc, "raw")));
    assert_true(json_number_value(json_object_get(doc, "since")) > 1.7e9);
    json_decref(doc);
}

static void check_shown(struct stage *s, const struct death *d, const char *id)
{
    struct outcome o;

    dead(&o, s, "show", id, NULL);
    expect(&o, 0, NULL, "");
    assert_non_null(strstr(o.out, d->reason));
    assert_non_null(strstr(o.out, id));
    dead(&o, s, "show", id, "--raw", NULL);
    expect(&o, 0, d->body, "");
    check_json(s, d, id);
}

/* No worker has run it for two minutes. */
static void make_unknown(struct stage *s, const char *type)
{
    char us[24];

    snprintf(us, sizeof us, "%" PRId64, clock_wall_us() - 120 * INT64_C(1000000));
    free(server_ask(&s->server, "ZADD", stage_key(s, "runs"), us, type, NULL));
}

static void each_death_with_its_reason_and_its_bytes(void **state)
{
    struct stage *s = *state;
    struct outcome list;
    char id[200];
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

    dead(&list, s, "list", NULL);
    expect(&list, 0, NULL, "");
    for (int i = 0; i < DEATHS; i++) {
        char copy[sizeof list.out];

        memcpy(copy, list.out, sizeof copy);
        check_line(copy, &deaths[i], id);
        check_shown(s, &deaths[i], id);
    }
    dead(&list, s, "show", "odd", "--json", NULL); /* its numbers as they were */
    assert_non_null(strstr(list.out, "\"args\":[1.0, 12345678901234567]}}\n"));
    dead(&list, s, "show", "odd", NULL);
    assert_non_null(strstr(list.out, ",\\x0a  \"args\""));
    dead(&list, s, "list", "--json", "--reason", "unreadable: no JSON: ", NULL);
    assert_non_null(strstr(list.out, "\"raw\":\"e25vIEpTT04gAf9c\"}\n"));
}

/* ---- Types that nobody knows */

static void unknown_types_are_held_for_who_knows_them(void **state)
{
    struct stage *s = *state;
    pid_t first, second;

    first = stage_actor(s, "first", "types=mark", NULL);
    stage_enqueue(s, "odd", NULL, 0, 3);
    stage_enqueue(s, "mark", NULL, 3, 1);
    await(history_count(s, "effect", 3) == 1);
    await(server_number(&s->server, "ZCARD", stage_key(s, "held:default"), NULL) == 1);
    assert_int_equal(dead_count(s), 0);
    second = stage_actor(s, "second", "types=odd", NULL);
    assert_int_equal(stage_await_done(s, 4).twice, 0);
    assert_int_equal(stage_end(first), 0);
    assert_int_equal(stage_end(second), 0);
}

/* A worker that has no handler leaves them to the one that has, though that one is slow. */
static void types_of_other_workers_are_not_unknown(void **state)
{
    struct stage *s = *state;
    pid_t first, second;

    first = stage_actor(s, "first", "types=mark", "unknown_dead=1", NULL);
    second = stage_actor(s, "second", "types=odd", "executors=1", NULL);
    await(server_number(&s->server, "ZCARD", stage_key(s, "runs"), NULL) == 2);
    stage_enqueue(s, "odd", NULL, 0, 2000);
    assert_int_equal(stage_await_done(s, 2000).twice, 0);
    assert_int_equal(dead_count(s), 0);
    assert_int_equal(stage_end(first), 0);
    assert_int_equal(stage_end(second), 0);
}

static void unknown_types_are_dead_until_retried(void **state)
{
    struct stage *s = *state;
    struct outcome o;
    pid_t first, second;

    make_unknown(s, "odd");
    first = stage_weir(s, "first", "--exec", "mark=true", "--unknown", "dead", NULL);
    stage_enqueue(s, "odd", NULL, 0, 3);
    await(dead_count(s) == 3);
    dead(&o, s, "list", "--type", "odd", NULL);
    assert_non_null(strstr(o.out, "  odd  j0  0 attempts  " NO_HANDLER "\n"));
    assert_int_equal(stage_end(first), 0);
    second = stage_actor(s, "second", "types=odd", "unknown_dead=1", NULL);
    dead(&o, s, "retry", "--reason", "no handler", NULL);
    expect(&o, 0, "3 dead jobs retried\n", "");
    assert_int_equal(stage_await_done(s, 3).twice, 0);
    assert_int_equal(stage_end(second), 0);
}

/* ---- In bulk */

static void many_are_counted_retried_and_removed(void **state)
{
    struct stage *s = *state;
    struct outcome o;
    pid_t worker;

    bury(s, "mark", 3000);
    bury(s, "other", 1000);
    free(server_ask(&s->server, "ZADD", stage_key(s, "dead"), "1", "junk", NULL));
    dead(&o, s, "retry", "--all", "--dry-run", NULL);
    expect(&o, 0,
           "     2,000  mark                  exit 1: no luck\n"
           "     1,000  mark                  exit 2: no luck\n"
           "       666  other                 exit 1: no luck\n"
           "       334  other                 exit 2: no luck\n"
           "         1  -                     this record cannot be read\n"
           "4,000 dead jobs would be retried\n1 without a queue would stay: name one with --into QUEUE\n",
           "");
    dead(&o, s, "remove", "--type", "other", "--dry-run", "--json", NULL);
    expect(&o, 0,
           "{\"dry_run\":true,\"jobs\":1000,\"without_queue\":0,\"reasons\":[{\"type\":\"other\",\"reason\":"
           "\"exit 1: no luck\",\"jobs\":666},{\"type\":\"other\",\"reason\":\"exit 2: no "
           "luck\",\"jobs\":334}]}\n",
           "");
    assert_int_equal(dead_count(s), 4001);
    dead(&o, s, "retry", "--type", "mark", "--reason", "exit 2", "--json", NULL);
    expect(&o, 0, "{\"action\":\"retry\",\"jobs\":1000,\"without_queue\":0}\n", "");
    dead(&o, s, "remove", "--type", "other", NULL);
    expect(&o, 64, "", "       666  other                 exit 1: no luck\n");
    expect(&o, 64, "",
           "weir: dead remove: would remove 1,000 dead jobs for good, and nobody can be asked here;");
    assert_int_equal(dead_count(s), 3001);
    dead(&o, s, "remove", "--type", "other", "-y", NULL);
    expect(&o, 0, "1,000 dead jobs removed\n", "");
    dead(&o, s, "retry", "--all", NULL);
    expect(&o, 0, "2,000 dead jobs retried\n1 without a queue left: name one with --into QUEUE\n", "");
    worker = stage_actor(s, "worker", "executors=4", NULL);
    await(stage_stat(s, "mark", "done") == 3000);
    assert_int_equal(stage_end(worker), 0);
    assert_int_equal(dead_count(s), 1);
    dead(&o, s, "retry", "--all", NULL);
    expect(&o, 65, NULL, "name one with --into QUEUE");
    dead(&o, s, "retry", "--all", "--into", "default", NULL);
    expect(&o, 0, "1 dead job retried\n", "");
    assert_int_equal(dead_count(s), 0);
    assert_int_equal(stage_stat(s, "mark", "revived"), 3000);
    assert_int_equal(stage_stat(s, "other", "removed"), 1000);
}

/* One worker would keep ten, one a day: both keep to the namespace, and say so. */
static void no_worker_decides_what_is_kept(void **state)
{
    struct stage *s = *state;
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
static void what_is_kept_is_asked_for(void **state)
{
    struct stage *s = *state;
    struct outcome o;
    pid_t worker;

    dead(&o, s, "keep", NULL);
    expect(&o, 0, "jobs    0 of at most 100,000\nbytes   0 bytes of at most 256 MiB\nage     at most 180d\n",
           "");
    dead(&o, s, "keep", "--age", "360d", "--json", NULL);
    expect(&o, 0,
           "{\"keep_jobs\":100000,\"keep_bytes\":268435456,\"keep_age\":31104000.0,\"jobs\":0,\"bytes\":0,"
           "\"oldest_at\":null,\"forgets\":0,\"dry_run\":false}\n",
           "");
    dead(&o, s, "keep", "--age", "3650d", NULL);
    expect(&o, 0, NULL, "");
    bury(s, "old", 2000);
    dead(&o, s, "keep", "--most", "12", "--dry-run", NULL);
    expect(&o, 0, NULL, "");
    assert_non_null(strstr(o.out, "\n1,988 of 2,000 dead jobs would be forgotten\n"));
    dead(&o, s, "keep", "--most", "12", NULL);
    expect(&o, 64, "",
           "weir: dead keep: would forget 1,988 of 2,000 dead jobs for good, and nobody can be asked here;");
    dead(&o, s, "keep", NULL);
    expect(&o, 0, NULL, "");
    assert_non_null(
        strstr(o.out, "jobs    2,000 of at most 100,000\nbytes   not counted yet of at most 256 MiB\n"));
    worker = stage_actor(s, "worker", "types=mark", "lease=1", NULL);
    await(server_number(&s->server, "HEXISTS", stage_key(s, "dead_bytes"), "bytes", NULL) == 1);
    await(server_number(&s->server, "HEXISTS", stage_key(s, "dead_bytes"), "score", NULL) == 0);
    program_run(
        &o, NULL,
        (const char *[]){built("weir"), "status", "--redis", s->server.url, "--namespace", s->ns, NULL});
    assert_non_null(strstr(o.out, "\n2,000 dead jobs, 1"));
    assert_int_equal(dead_count(s), 2000);
    dead(&o, s, "keep", "--most", "12", "--yes", NULL);
    expect(&o, 0, NULL, "");
    assert_non_null(
        strstr(o.out, "\n1,988 of 2,000 dead jobs are forgotten by the next heartbeats of workers\n"));
    await(dead_count(s) == 12);
    assert_int_equal(stage_end(worker), 0);
}

/* Workers forget the oldest, keep up with jobs that go on dying, and say so. */
static void workers_keep_the_number_of_the_dead(void **state)
{
    struct stage *s = *state;
    pid_t worker;

    bury(s, "old", 3000);
    free(server_ask(&s->server, "HSET", stage_key(s, "settings"), "dead_most", "50", "dead_age_us",
                    "1000000000000000", NULL));
    worker = stage_actor(s, "worker", "types=mark", "executors=8", "lease=1", NULL);
    await_text(s->server.folder, "worker.err", " oldest dead jobs were forgotten");
    stage_enqueue(s, "mark", "{\"dead\":\"again\"}", 0, 500);
    await(stage_stat(s, "mark", "dead") == 500);
    await(dead_count(s) == 50);
    assert_int_equal(stage_stat(s, "old", "forgotten"), 3000);
    assert_int_equal(stage_stat(s, "mark", "forgotten"), 450);
    assert_int_equal(stage_end(worker), 0);
}

/* ---- One by one, and what is refused */

static void lists_say_that_there_is_more(void **state)
{
    struct stage *s = *state;
    struct outcome o;

    dead(&o, s, "list", NULL);
    expect(&o, 0, "", "no dead jobs there");
    bury(s, "mark", 60);
    dead(&o, s, "list", "--limit", "60", NULL);
    expect(&o, 0, NULL, "");
    assert_string_equal(o.err, "");
    dead(&o, s, "list", NULL);
    expect(&o, 0, NULL, "the oldest 50 are shown; --limit N shows more");
    assert_non_null(strstr(o.out, "  mark  mark49  "));
    assert_null(strstr(o.out, "  mark  mark50  "));
    dead(&o, s, "list", "--json", "--limit", "2", NULL);
    assert_non_null(strstr(o.out, "\n{\"since\":1700000000.000001,\"id\":\"mark1\",\"type\":\"mark\","));
}

static void ids_that_are_not_there(void **state)
{
    struct stage *s = *state;
    struct outcome o;

    bury(s, "mark", 5);
    dead(&o, s, "show", "mark9", NULL);
    expect(&o, 66, "", "weir: dead show mark9: not among the dead jobs");
    dead(&o, s, "retry", "mark9", "--dry-run", NULL);
    expect(&o, 66, "0 dead jobs would be retried\n", "weir: dead retry mark9: not among the dead jobs;");
    dead(&o, s, "remove", "mark9", "mark2", "mark8", "--dry-run", "--json", NULL);
    expect(&o, 66, NULL, "weir: dead remove mark9: not among the dead jobs, and 1 more are not");
    assert_non_null(strstr(o.out, "{\"dry_run\":true,\"jobs\":1,"));
    dead(&o, s, "retry", "mark1", "mark2", "--dry-run", NULL);
    expect(&o, 0, NULL, "");
    dead(&o, s, "retry", "mark0", "mark9", "mark1", NULL);
    expect(&o, 66, "2 dead jobs retried\n", "weir: dead retry mark9: not among the dead jobs;");
    dead(&o, s, "remove", "mark9", "mark2", "mark0", "--yes", NULL);
    expect(&o, 66, "1 dead job removed\n",
           "weir: dead remove mark9: not among the dead jobs, and 1 more are not");
    dead(&o, s, "remove", "mark3", "mark4", "--yes", NULL);
    expect(&o, 0, "2 dead jobs removed\n", "");
    assert_int_equal(dead_count(s), 0);
}

static void wrong_usage(void **state)
{
    static const struct {
        const char *words[4];
        int code;
        const char *says;
    } cases[] = {
        {{NULL}, 64, "dead: what to do is missing; there are list, show, retry, remove and keep"},
        {{"lst"}, 64, "dead lst: unknown; did you mean dead list?"},
        {{"bury"}, 64, "dead bury: unknown; there are"},
        {{"list", "j1"}, 64, "dead list: it takes no ID"},
        {{"list", "--all"}, 64, "dead list: it takes no --all"},
        {{"list", "--limit", "-1"}, 64, "below 1"},
        {{"list", "--older", "soon"}, 64, "--older"},
        {{"list", "--newer", "0s"}, 64, "dead --newer: no time at all"},
        {{"remove", "--type", ""}, 64, "dead --type: its value is empty"},
        {{"show"}, 64, "dead show: which one?"},
        {{"show", "a", "b"}, 64, "dead show: more than 1 IDs"},
        {{"show", "a", "--type", "t"}, 64, "dead show: it takes no --type"},
        {{"show", "a", "--raw", "--json"},
         64,
         "the bytes of the body and nothing else; leave out --json or --raw"},
        {{"retry"}, 64, "dead retry: which ones?"},
        {{"retry", "--dry-run"}, 64, "dead retry: which ones?"},
        {{"retry", "--all", "--yes"}, 64, "dead retry: it takes no --yes"},
        {{"retry", "--all", "j1"}, 64, "dead retry --all: means all of them"},
        {{"retry", "--all", "--type", "t"}, 64, "dead retry --all: means all of them"},
        {{"retry", "--all", "--into", "a b"}, 64, "dead retry --into a b: no queue"},
        {{"remove"}, 64, "dead remove: which ones?"},
        {{"remove", "--all", "--limit", "5"}, 64, "dead remove: it takes no --limit"},
        {{"remove", "--tpye", "t"}, 64, "did you mean --type?"},
        {{"remove", "--most", "5"}, 64, "dead remove: it takes no --most"},
        {{"keep", "j1"}, 64, "dead keep: it takes no ID"},
        {{"keep", "--all"}, 64, "dead keep: it takes no --all"},
        {{"keep", "--most", "0"}, 64, "dead keep --most 0: out of range; give 1 to 1000000000"},
        {{"keep", "--most", "-1"}, 64, "dead keep --most -1: out of range"},
        {{"keep", "--age", "0s"}, 64, "dead keep --age: out of range; give 1s to 3650d"},
        {{"keep", "--age", "4000d"}, 64, "dead keep --age: out of range"},
        {{"keep", "--bytes", "12"},
         64,
         "dead keep --bytes 12: no size, or out of range; give 2MiB to 1024GiB"},
        {{"keep", "--bytes", "1MiB"}, 64, "dead keep --bytes 1MiB: no size"},
        {{"keep", "--bytes", "1025GiB"}, 64, "dead keep --bytes 1025GiB: no size"},
        {{"keep", "--bytes", "99999999999999999999GiB"}, 64, "no size"},
    };
    struct stage *s = *state;
    struct outcome o;

    bury(s, "mark", 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const *words = cases[i].words;

        dead(&o, s, words[0], words[0] ? words[1] : NULL, words[0] && words[1] ? words[2] : NULL,
             words[0] && words[1] && words[2] ? words[3] : NULL, NULL);
        expect(&o, cases[i].code, "", cases[i].says);
        assert_ptr_equal(strchr(o.err, '\n'), o.err + strlen(o.err) - 1);
    }
    assert_int_equal(dead_count(s), 1);
    dead(&o, s, "retry", "--all", "--redis", "/nonexistent/redis.sock", NULL);
    expect(&o, 69, "", "/nonexistent/redis.sock");
    free(server_ask(&s->server, "SET", stage_key(s, "dead"), "somebody's", NULL));
    for (int i = 0; i < 4; i++) {
        dead(&o, s,
             i == 0   ? "list"
             : i == 1 ? "retry"
             : i == 2 ? "remove"
                      : "keep",
             i % 3 ? "--all" : NULL, NULL);
        expect(&o, 78, "",
               ":dead is a string, not a zset; weir doctor names it: delete it, or choose another namespace");
        assert_ptr_equal(strchr(o.err, '\n'), o.err + strlen(o.err) - 1);
    }
}

/* Runs "weir dead remove --all" and words on a terminal, types answer, and returns the exit code. */
static int on_terminal(struct stage *s, const char *answer, const char *word, char *text, size_t size)
{
    const char *words[] = {built("weir"), "dead",   "--redis", s->server.url, "--namespace",
                           s->ns,         "remove", "--all",   word,          NULL};

    return program_on_terminal(words, answer, text, size);
}

static void removing_asks_on_a_terminal(void **state)
{
    struct stage *s = *state;
    char text[4096];

    bury(s, "mark", 7);
    assert_int_equal(on_terminal(s, "n\n", NULL, text, sizeof text), 75);
    assert_non_null(strstr(text, "         4  mark                  exit 1: no luck"));
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

#define ON_STAGE(test) cmocka_unit_test_setup_teardown(test, open_stage, close_stage)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        ON_STAGE(each_death_with_its_reason_and_its_bytes),
        ON_STAGE(unknown_types_are_held_for_who_knows_them),
        ON_STAGE(types_of_other_workers_are_not_unknown),
        ON_STAGE(unknown_types_are_dead_until_retried),
        ON_STAGE(many_are_counted_retried_and_removed),
        ON_STAGE(no_worker_decides_what_is_kept),
        ON_STAGE(what_is_kept_is_asked_for),
        ON_STAGE(workers_keep_the_number_of_the_dead),
        ON_STAGE(lists_say_that_there_is_more),
        ON_STAGE(ids_that_are_not_there),
        ON_STAGE(wrong_usage),
        ON_STAGE(removing_asks_on_a_terminal),
    };
    int rc = stage_actor_main(argc, argv);

    return rc >= 0 ? rc : cmocka_run_group_tests_name("dead command", tests, open_root, close_root);
}

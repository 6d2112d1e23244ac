/* What --json prints: all commands, every member by the name and kind that doc/json.md gives it. */
#include "tests/scene.h"

#include <glob.h>
#include <jansson.h>
#include <signal.h>

#include "core/clock.h"
#include "tests/program.h"

#define MEMBERS_MOST 300

/* The list of doc/json.md. */
static struct member {
    char name[40], kind[40];
    bool seen;
} members[MEMBERS_MOST];
static size_t member_count;

static struct outcome said;
static const char *asked;
static char walked[20000]; /* all that was asked, a line each */

/* ---- The list */

static const char *trimmed(char *text)
{
    while (*text == ' ')
        text++;
    for (size_t len = strlen(text); len > 0 && text[len - 1] == ' '; len--)
        text[len - 1] = '\0';
    return text;
}

/* "- `a`, `b`: text; number?: what": one kind for all names, or one for each of them. */
static void read_row(char *row)
{
    char *names = strsep(&row, ":"), *kinds = strsep(&row, ":"), *kind;

    assert_non_null(kinds);
    kinds[strcspn(kinds, "\n")] = '\0';
    kind = strsep(&kinds, ";");
    for (char *name; (name = strsep(&names, ","));) {
        struct member *m = &members[member_count++];

        assert_true(member_count < MEMBERS_MOST);
        assert_int_equal(sscanf(trimmed(name), "`%39[a-z0-9_]`", m->name), 1);
        snprintf(m->kind, sizeof m->kind, "%s", trimmed(kind));
        kind = kinds ? strsep(&kinds, ";") : kind;
    }
}

static void read_list(void)
{
    FILE *file = fopen("doc/json.md", "r");
    char line[1000];

    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        if (strncmp(line, "- `", 3) == 0)
            read_row(line + 2);
    fclose(file);
    assert_true(member_count > 100);
}

static struct member *find_member(const char *name)
{
    for (size_t i = 0; i < member_count; i++)
        if (strcmp(members[i].name, name) == 0)
            return &members[i];
    fail_msg("%s: '%s' is not in doc/json.md", asked, name);
    return NULL;
}

/* ---- What is printed */

static bool is_number(const json_t *value)
{
    return json_is_number(value);
}

static bool is_time(const json_t *value)
{
    return json_is_number(value) && (json_number_value(value) == 0 || json_number_value(value) > 1e9);
}

static bool is_text(const json_t *value)
{
    return json_is_string(value);
}

static bool is_boolean(const json_t *value)
{
    return json_is_boolean(value);
}

static bool is_true(const json_t *value)
{
    return json_is_true(value);
}

static bool is_list(const json_t *value)
{
    return json_is_array(value);
}

static bool is_object(const json_t *value)
{
    return json_is_object(value);
}

static bool is_anything(const json_t *value)
{
    return value != NULL;
}

static const struct {
    const char *name;
    bool (*holds)(const json_t *value);
} kinds[] = {
    {"text", is_text}, {"number", is_number}, {"time", is_time},      {"seconds", is_number},
    {"list", is_list}, {"object", is_object}, {"by name", is_object}, {"bool", is_boolean},
    {"true", is_true}, {"any", is_anything},
};

static bool is_of_kind(const json_t *value, const char *kind)
{
    size_t len = strcspn(kind, "?");

    if (kind[len] && json_is_null(value))
        return true;
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (strlen(kinds[i].name) == len && strncmp(kind, kinds[i].name, len) == 0)
            return kinds[i].holds(value);
    fail_msg("doc/json.md: '%s' is no kind", kind);
    return false;
}

/* The objects in a value whose own kind was checked; no deeper than one in another can stand here. */
static void check_inside(json_t *value, bool by_name, int depth)
{
    const char *name;
    json_t *inner;

    assert_true(depth < 8);
    for (size_t i = 0; i < json_array_size(value); i++)
        check_inside(json_array_get(value, i), false, depth + 1);
    json_object_foreach(value, name, inner) {
        struct member *m = by_name ? NULL : find_member(name);

        if (m && !is_of_kind(inner, m->kind))
            fail_msg("%s: '%s' is not %s: %s", asked, name, m->kind, said.out);
        if (m)
            m->seen = true;
        if (!m || strcmp(m->kind, "any") != 0)
            check_inside(inner, m && strcmp(m->kind, "by name") == 0, depth + 1);
    }
}

/* Each line is one document. */
static void check_documents(char *text)
{
    int count = 0;

    for (char *line; (line = strsep(&text, "\n"));) {
        json_error_t why;
        json_t *doc;

        if (!*line)
            continue;
        doc = json_loads(line, 0, &why);
        if (!json_is_object(doc))
            fail_msg("%s: no document: %s: %s", asked, why.text, line);
        check_inside(doc, false, 0);
        json_decref(doc);
        count++;
    }
    if (count == 0)
        fail_msg("%s: no document: %s", asked, said.err);
}

/* weir with the words of a line, as program_weir() has them, which ends with that code. */
static void weir(const char *line, int code)
{
    program_weir(&said, turns.server.folder, turns.server.url, NULL, line);
    asked = line;
    snprintf(walked + strlen(walked), sizeof walked - strlen(walked), "\n%s", line);
    if (said.code != code)
        fail_msg("%s: %d: %s%s", line, said.code, said.out, said.err);
}

static void check_ends(const char *line, int code)
{
    char out[sizeof said.out];

    weir(textf("%s --json", line), code);
    strcpy(out, said.out);
    check_documents(out);
}

static void check(const char *line)
{
    check_ends(line, 0);
}

static void check_all(const char *const *lines, size_t count)
{
    for (size_t i = 0; i < count; i++)
        check(lines[i]);
}
#define CHECK_ALL(...)                                                                                       \
    check_all((const char *const[]){__VA_ARGS__}, COUNT(((const char *const[]){__VA_ARGS__})))

/* Something about what a worker that is alive says of itself. */
static void begin_worker(void)
{
    char until[32];

    start("w");
    snprintf(until, sizeof until, "%lld", (long long)clock_wall_us() + 600 * SECOND_US);
    redis_do(
        "HSET", ACTIVE "w", "@",
        "{\"instance\":\"i\",\"host\":\"h\",\"pid\":1,\"executors\":10,\"lease\":30,\"queues\":[\"default\"],"
        "\"types\":[\"t\",\"slow\"]}");
    redis_do("ZADD", PREFIX "workers", until, "w");
}

/* ---- The commands */

static void check_limits(void)
{
    CHECK_ALL("version", "config", "report", "acl viewer", "init --partitions 1",
              "plan 10/s 1000/1d --count 50", "rate set slow 1/1m,burst=1 100/1d,algorithm=fixed-window",
              "rate set keyed 10/s,of=jobs,by=key,adapt=0.5..1", "rate set own 5/s,adapt=0.5..1",
              "rate set busy concurrency=3", "rate use t own busy --cost 2", "rate unuse t busy --dry-run",
              "rate unuse t busy --yes", "rate use t busy", "rate weight keyed a 3", "rate pause own 1h",
              "export", "rate show own", "rate resume own", "rate log", "log", "rate set gone 1/s",
              "rate remove gone --dry-run", "rate remove gone --yes", "take slow --cost 1 --peek",
              "take login/a --rule 5/1m", "rate show slow", "rate show keyed", "rate show busy");
    redis_do("HSET", PREFIX "hold:busy", "a", "1795933224000000 1 30000000 2 k 0a busy#0 me@here");
    redis_do("ZADD", PREFIX "holds", "8000000000000000", "busy~a");
    check("rate show busy");
    redis_do("DEL", PREFIX "hold:busy", PREFIX "holds");
    redis_do("HSET", PREFIX "limits", "broken", "x");
    check("rate list");
    redis_do("HDEL", PREFIX "limits", "broken");
    write_text(turns.server.folder, "apply.conf", "[limit applied]\nrules = 1/s\n");
    check(textf("apply %s/apply.conf", turns.server.folder));
    write_text(turns.server.folder, "targets", "slow\nslow/x\nslow 1 2\n");
    check_ends("take --from targets", 65);
    check_ends("take slow --cost 5", 65);
    run_in(&said, NULL, built("weir"), "take", "slow", "--on-error", "allow", "--json", "--redis",
           "unix:///nowhere/s", NULL);
    assert_int_equal(said.code, 0);
    check_documents(said.out);
}

static void check_jobs(void)
{
    write_text(turns.server.folder, "jobs",
               "{\"id\":\"s1\",\"type\":\"slow\"}\n\n{\"id\":\"s2\",\"type\":\"slow\"}\n");
    CHECK_ALL("enqueue t {\"a\":[1]} --id a --unique k --timeout 5s", "enqueue t --id a",
              "enqueue --from jobs --batch b --then after", "enqueue t --id later --in 1h", "status",
              "rate set slow 2/1m,burst=1 --dry-run", "rate show slow", "why a", "why s2", "why later",
              "job show a", "job show later", "queue list", "queue pause default", "queue pause default",
              "queue list", "status", "why a", "job show a", "queue resume default", "type pause t --for 1h",
              "type list", "type show t", "why a", "type resume t", "type pause new --create",
              "type resume new", "type remove new", "batch list", "batch show b", "batch pause b",
              "batch resume b", "batch cancel b --dry-run", "job list", "job list type:t --limit 1",
              "job run later", "job show later", "job run type:t --dry-run", "job cancel later",
              "queue purge default --type t --dry-run", "enqueue x --batch open", "batch seal open",
              "batch cancel open --yes", "schedule add day 0~9~*~*~* t {\"n\":1}",
              "schedule add day @daily t", "schedule pause day --for 1h", "schedule list",
              "schedule resume day", "schedule run day", "schedule show day", "schedule list",
              "enqueue keyed --id p --key p", "rate pause keyed/p", "rate pause keyed/q --for 1h", "why p",
              "status", "rate keys keyed", "rate keys keyed/q --top 5", "rate show keyed",
              "rate resume keyed/p", "rate resume keyed/q", "rate set keyed/p 1/1h --dry-run",
              "rate set keyed/p 1/1h --for 1h --else closed", "why p", "rate set keyed/p 2/1h", "why p",
              "rate show keyed/p", "rate list keyed --keys", "rate remove keyed/p", "job cancel p");
    check("enqueue t --unique k");
    redis_do("HSET", PREFIX "schedules", "odd", "{}");
    check("schedule list");
    CHECK_ALL("schedule remove odd", "schedule remove day");
}

/* In a worker's hands, parked, aside, held. */
static void check_at_work(void)
{
    size_t count;

    begin_worker();
    turns.now_us = clock_wall_us();
    count = claim("w", 10, 0);
    assert_true(count > 1);
    CHECK_ALL("status", "why a", "job show a", "why s2", "job show s2", "report", "job list", "job run s2",
              "job cancel a", "job run type:slow --state parked",
              "job cancel type:slow --state parked --dry-run", "batch show b", "rate list", "rate show slow",
              "queue list", "worker list", "worker quiet w");
    for (size_t i = 0; i < count; i++)
        settle("w", SETTLE_RETRY, tokens[i], SECOND_US * 3600, "bad");
    CHECK_ALL("job show s1", "why s1", "status", "doctor");
    CHECK_ALL("rate set full concurrency=1", "enqueue full --id f");
    turns.now_us = clock_wall_us();
    must(turns_script("hold", WORDS("wait", "", "full", "", "1", "", "a", "0", "600000000", "me")));
    CHECK_ALL("why f", "job cancel f");
    redis_do("DEL", ACTIVE "w", PREFIX "workers");
}

/* What a worker leaves: finished and dead jobs, a trace. */
static void check_ended(void)
{
    enqueue("default", "odd", "o");
    push("default", "no job");
    weir("enqueue t --id fine", 0);
    weir("enqueue bad --id worse --max-attempts 1 --unique w", 0);
    weir("batch cancel b --yes", 0);
    weir("worker --exec t=true --exec slow=true --exec bad=false --keep t=1h --trace trace --drain --unknown "
         "dead",
         0);
    CHECK_ALL("job show fine", "why fine", "job show worse", "why worse", "dead list", "job list fine",
              "job list state:dead", "dead show worse", "dead keep", "dead keep --most 1000 --dry-run",
              "dead list --group --limit 1", "dead retry --all --dry-run", "dead retry worse",
              "dead remove --all --dry-run", "dead remove --all --yes", "doctor", "verify trace",
              "batch show b");
}

/* Two starts of a key that has one a second. */
static void check_violations(void)
{
    static const char start[] =
        "{\"slot\":1795242599627053,\"start\":1795242599628312,\"type\":\"news\",\"key\":\"k\",\"id\":\"a\","
        "\"limits\":\"mail=gcra:1/1000000/1,by=key\",\"by\":\"x\"}\n";

    write_text(turns.server.folder, "violated", textf("%s%s", start, start));
    check_ends("verify violated", 65);
}

/* A Redis of its own, in this folder. */
static void check_dev(void)
{
    const char *const words[] = {built("weir"), "dev", "--json", NULL};
    pid_t dev = program_start(turns.server.folder, "dev", words);
    char text[1000];

    await_text(turns.server.folder, "dev.out", "\n");
    assert_true(read_text(turns.server.folder, "dev.out", text, sizeof text));
    asked = "dev --json";
    check_documents(text);
    kill(dev, SIGTERM);
    assert_int_equal(program_end(dev), 0);
}

/* weir help has "  name  what it does" for each; these print no JSON, or are walked by themselves. */
static void expect_all_commands_walked(void)
{
    static const char *const silent[] = {"worker", "serve", "hold", "dev", "help", "top"};
    char *text, name[32];

    run_in(&said, NULL, built("weir"), "help", NULL);
    text = said.out;
    for (char *row; (row = strsep(&text, "\n"));) {
        bool walks = strncmp(row, "  ", 2) == 0 && sscanf(row, " %31[a-z]", name) == 1;

        for (size_t i = 0; i < COUNT(silent); i++)
            walks = walks && strcmp(name, silent[i]) != 0;
        if (walks && !strstr(walked, textf("\n%s ", name)))
            fail_msg("weir %s --json was not looked at", name);
    }
}

SCENE_TEST(test_every_member_is_in_the_list)
{
    read_list();
    check_limits();
    check_jobs();
    check_at_work();
    check_ended();
    check_violations();
    check_dev();
    expect_all_commands_walked();
    for (size_t i = 0; i < member_count; i++)
        if (!members[i].seen)
            fail_msg("doc/json.md has '%s', which no command prints", members[i].name);
}

SCENE_TEST(test_who_prints_no_document_says_so)
{
    weir("worker --exec t=true --json", 64);
    assert_string_equal(said.err,
                        "{\"error\":\"worker --json: it prints no document; leave it out\",\"exit\":64}\n");
    weir("serve --json", 64);
    assert_string_equal(said.err,
                        "{\"error\":\"serve --json: it prints no document; leave it out\",\"exit\":64}\n");
    weir("hold slow --json -- true", 64);
    assert_string_equal(said.err,
                        "{\"error\":\"hold --json: it prints no document; leave it out\",\"exit\":64}\n");
    assert_null(strstr((weir("serve --help", 0), said.out), "--json"));
}

SCENE_TEST(test_the_page_of_commands_is_what_is_printed)
{
    run_in(&said, NULL, "/bin/sh", "-c", "\"$0\" help --markdown | diff doc/cli.md - | head -20",
           built("weir"), NULL);
    if (*said.out)
        fail_msg("doc/cli.md differs from what build/weir help --markdown prints now:\n%s", said.out);
}

#define SUMMARY_MOST 67 /* weir help shows it behind a name, in 80 columns */

/* "$ weir NAME ..." */
static bool is_example_of(const char *line, const char *command)
{
    size_t len = strlen(command);

    return strncmp(line, "$ weir ", 7) == 0 && strncmp(line + 7, command, len) == 0 &&
           strchr(" ", line[7 + len]) != NULL;
}

static void check_help_text(const char *path, char *text)
{
    char command[32] = "";
    bool example = true, is_page;
    int number = 0;

    sscanf(path, "cli/help/%31[a-z]", command);
    is_page = strcmp(command, "connection") == 0 || strstr(path, "weir.conf"); /* of no command */
    for (char *line; (line = strsep(&text, "\n"));) {
        number++;
        if (number == 1 && !is_example_of(line, !is_page                    ? command
                                                : strstr(path, "weir.conf") ? "config"
                                                                            : "status"))
            fail_msg("%s: does not begin with an example", path);
        if (number == 2 && (strlen(line) > SUMMARY_MOST || line[strlen(line) - 1] != '.'))
            fail_msg("%s:2: no summary of one line, %d characters and a full stop", path, SUMMARY_MOST);
        if (number > 2 && !strchr("#$", *line) && strlen(line) > 78)
            fail_msg("%s:%d: longer than 78 characters", path, number);
        if (*line == '#' && !example)
            fail_msg("%s:%d: the form before it has no example", path, number);
        example = *line == '#' ? false : example || is_example_of(line, command);
    }
    if (!example)
        fail_msg("%s: its last form has no example", path);
}

SCENE_TEST(test_each_form_has_an_example)
{
    static char text[16384];
    glob_t files;

    assert_int_equal(glob("cli/help/*.txt", 0, NULL, &files), 0);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        assert_true(read_text(".", files.gl_pathv[i], text, sizeof text));
        check_help_text(files.gl_pathv[i], text);
    }
    globfree(&files);
}

TESTS(turns_start, turns_stop)

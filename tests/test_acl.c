/* weir acl: a worker does all of its work on a real Redis with exactly the rights that it prints, and what a role may not do is refused before
 * anything is changed. Redis writes each refusal into its ACL LOG. The other roles at work: transcripts/acl.txt. */
#include <signal.h>

#include "core/clock.h"
#include "core/script/script.h"
#include "tests/http.h"
#include "tests/stage.h"

enum { JOBS = 73 };

static struct outcome o;

/* Makes the user that weir acl prints, and forgets what was refused before. */
static void make_user(struct stage *s, const char *role)
{
    assert_int_equal(
        system(textf(
            "%s acl %s --user it --namespace %s | sed 's/PASSWORD/pw/' | redis-cli -s %s | grep -v '^OK$'",
            built("weir"), role, s->ns, s->server.socket)),
        256); /* grep has found no other line */
    stage_do(s, "ACL", "LOG", "RESET");
}

static const char *user_url(struct stage *s)
{
    static char url[300];

    snprintf(url, sizeof url, "unix://it:pw@%s", s->server.socket);
    return url;
}

static void must_all(struct stage *s, const char *const *lines)
{
    for (; *lines; lines++)
        if (program_weir(&o, s->server.folder, user_url(s), s->ns, *lines) != 0)
            fail_msg("%s: %d: %s%s", *lines, o.code, o.out, o.err);
}

static void expect_no_refusal(struct stage *s)
{
    char *log = server_ask(&s->server, "ACL", "LOG", NULL);

    assert_string_equal(log, "");
    free(log);
}

/* ---- What is refused */

static char *raw(struct stage *s, const char *script, const char *key)
{
    run_in(&o, s->server.folder, "/bin/sh", "-c",
           "echo \"$2\" | redis-cli -s \"$1\" --user it --pass pw --no-auth-warning", "sh", s->server.socket,
           textf("FCALL %s 1 %s '' w 1 1 1 1 1 1 1", textf("weir_%s_%s", script_digest, script), key), NULL);
    return o.out;
}

/* None of the scripts that write and are not the role's own can be called, whatever key is named, and nothing is changed. */
static void expect_others_refused(struct stage *s, const char *role)
{
    char *before = server_ask(&s->server, "DEBUG", "DIGEST", NULL), *after;
    int others = 0;

    for (const struct script *script = scripts; script->name; script++) {
        char its_key[100], own_key[100];

        if (strcmp(script->role, role) == 0 || strcmp(script->role, SCRIPT_VIEWER) == 0)
            continue;
        others++;
        snprintf(its_key, sizeof its_key, "%s:{0}:role:%s", s->ns, script->role);
        snprintf(own_key, sizeof own_key, "%s:{0}:role:%s", s->ns, role);
        if (!strstr(raw(s, script->name, its_key), "NOPERM"))
            fail_msg("%s: %d %s%s", script->name, o.code, o.out, o.err);
        assert_non_null(strstr(raw(s, script->name, own_key),
                               strcmp(role, SCRIPT_VIEWER) == 0 ? "NOPERM" : "its first key must be"));
        assert_non_null(strstr(raw(s, script->name, stage_key(s, "%s", "")), "NOPERM"));
    }
    assert_true(others > 10);
    after = server_ask(&s->server, "DEBUG", "DIGEST", NULL);
    assert_string_equal(before, after);
    free(before);
    free(after);
}

STAGE_TEST(scripts_of_others_are_refused)
{
    static const char *const roles[] = {"producer", "taker", "viewer", "worker"};

    stage_rate(s, "mail", "10/s"); /* loads the functions */
    for (size_t i = 0; i < COUNT(roles); i++) {
        make_user(s, roles[i]);
        expect_others_refused(s, roles[i]);
    }
}

/* ---- A worker */

/* A limit of each kind, keys, weights; retries, dead jobs, throttled ones; a batch with a job that follows; a schedule; a
 * worker that is killed, and one whose connections are cut. */
static void prepare_work(struct stage *s)
{
    static const char *const lines[] = {"rate set keyed 200/s,burst=20,by=args.k concurrency=2,by=args.k",
                                        "rate set mark 500/s,adapt=0.5..1",
                                        "rate weight keyed 1 3",
                                        "rate pause keyed/99 1h",
                                        "enqueue mark --id j70 --batch b",
                                        "batch seal b --then after",
                                        "enqueue mark --id j71 --unique k",
                                        "enqueue mark --id j72 --in 1s",
                                        "schedule add often @hourly after",
                                        NULL};

    make_user(s, "operator");
    must_all(s, lines);
    for (int i = 0; i < 60; i++) {
        const char *args = textf("{\"k\":%d,\"sleep\":0.02}", i % 5);

        stage_enqueue(s, "keyed", args, i, 1);
    }
    stage_enqueue(s, "mark", "{\"fail\":1,\"after\":0.1}", 60, 5);
    stage_enqueue(s, "mark", "{\"throttled\":0.1}", 65, 1);
    write_text(s->server.folder, "j65.open", "");
    stage_enqueue(s, "mark", "{\"spent\":3}", 66, 1);
    stage_push(s, "mark", NULL, 67, 3);
    stage_push_text(s, "no job");
    assert_int_equal(stage_number(s, "ZADD", stage_key(s, "later"), "XX", "CH",
                                  textf("%lld000000", (long long)(clock_wall_us() / 1000000 / 3600 * 3600)),
                                  "s often\n"),
                     1);
}

static bool no_key(struct stage *s, const char *pattern)
{
    char *keys = server_ask(&s->server, "KEYS", stage_key(s, "%s", pattern), NULL);
    bool none = *keys == '\0';

    free(keys);
    return none;
}

static void cancel_one_that_runs(struct stage *s)
{
    stage_enqueue(s, "mark", "{\"wait\":\"go\"}", JOBS, 1);
    await(history_count(s, "begin", JOBS) == 1);
    assert_int_equal(weir_cancel(s->client, "j73"), 0);
    await(no_key(s, "told:*"));
    write_text(s->server.folder, "go", "");
}

STAGE_TEST(a_worker)
{
    pid_t first, second;
    char url[320];

    prepare_work(s);
    make_user(s, "worker");
    snprintf(url, sizeof url, "url=%s", user_url(s));
    first = stage_actor(s, "first", url, "types=mark,keyed", "executors=4", "lease=1", NULL);
    await(history_count(s, "effect", -1) > 5);
    second = stage_actor(s, "second", url, "types=mark,keyed", "executors=4", "lease=1", NULL);
    stage_await_workers(s, 2);
    kill(first, SIGKILL);
    assert_int_equal(program_end(first), 1000 + SIGKILL);
    await(history_count(s, "effect", -1) > 40);
    stage_do(s, "CLIENT", "KILL", "TYPE", "normal");
    await(history_count(s, "effect", -1) >= JOBS);
    await(stage_number(s, "ZCARD", stage_key(s, "workers")) == 1);
    await(stage_stat(s, "after", "enqueued") == 2); /* what follows the batch, and what the schedule has */
    cancel_one_that_runs(s);
    assert_int_equal(program_end(stage_actor(s, "third", url, "drain=1", "queues=default,o*", NULL)), 0);
    assert_int_equal(stage_end(second), 0);
    expect_no_refusal(s);
}

/* It asks for what is there at the next heartbeat, and hears behind it that all is lost. */
STAGE_TEST(an_idle_worker_writes_lost_limits_again)
{
    char *limits, *again;

    stage_rate(s, "mark", "7/s");
    make_user(s, "worker");
    stage_actor(s, "idle", textf("url=%s", user_url(s)), "types=mark", "executors=2", "lease=1", NULL);
    stage_await_workers(s, 1);
    stage_await_blocked(s, 2);
    limits = server_ask(&s->server, "HGETALL", stage_key(s, "limits"), NULL);
    stage_do(s, "FLUSHALL");
    await_text(s->server.folder, "idle.err", "had lost are written again: limit mark");
    again = server_ask(&s->server, "HGETALL", stage_key(s, "limits"), NULL);
    assert_string_equal(again, limits);
    expect_no_refusal(s);
    free(limits);
    free(again);
}

/* ---- What each role may do with Redis itself */

#define ALWAYS " auth hello quit reset " /* nobody is kept from these */
#define OF_ALL ALWAYS "fcall fcall_ro info ping select role cluster|slots time "

/* All that a role may run of what does not name a key, or names one that is not Weir's. */
static const struct {
    const char *role, *commands;
} beyond[] = {
    {"producer", OF_ALL},
    {"taker", OF_ALL},
    {"viewer", OF_ALL "scan acl|whoami function|list "},
    {"worker", OF_ALL "scan acl|whoami function|load "},
    {"operator", OF_ALL "scan acl|whoami function|list function|load function|delete slowlog|get "},
};

/* All that those roles may do with one of Weir's keys that are trusted with the least. */
static const struct {
    const char *role, *key, *commands;
} within[] = {
    {"producer", "queue:q", " type rpush "},
    {"producer", "later", " type zadd zcount "},
    {"producer", "dead", " "},
    {"producer", "lane:q/t/", " "},
    {"producer", "active:w", " "},
    {"producer", "cancelled", " "},
    {"producer", "workers", " "},
    {"producer", "schedules", " "},
    {"producer", "changes", " "},
    {"producer", "acts", " "},
    {"producer", "revisions", " "},
    {"producer", "limits", " type hget hmget hexists "},
    {"producer", "types", " type hget hscan hsetnx "},
    {"producer", "gate:l#0", " type "},
    {"producer", "halted", " hexists "},
    {"producer", "duty", " hget hgetall "},
    {"producer", "queues", " type sadd sismember "},
    {"producer", "batches", " type zadd "},
    {"producer", "about", " type hget hsetnx "},
    {"taker", "queue:q", " "},
    {"taker", "later", " "},
    {"taker", "dead", " "},
    {"taker", "limits", " hget "},
    {"taker", "types", " "},
    {"taker", "gate:l#0", " get set type "},
    {"viewer", "queue:q", NULL}, /* it reads, and that alone */
};

static bool has_word(const char *words, const char *word)
{
    const char *mark = textf(" %s ", word);

    return strstr(words, mark) != NULL;
}

/* Returns which of a command's words says how many keys follow; -1: none does. */
static int count_place(const char *command)
{
    return strcmp(command, "zunion") == 0 ? 0 : strcmp(command, "zunionstore") == 0 ? 1 : -1;
}

/* Would Redis let the user run it on that key, with whatever number of arguments it takes? */
static bool may_run(struct stage *s, char *command, const char *key)
{
    char *sub = strchr(command, '|'), *answer = NULL;
    bool wrong = true, allowed;

    if (sub)
        *sub = '\0';
    for (int n = 0; n < 5 && wrong; n++) {
        const char *words[10] = {"ACL", "DRYRUN", "it", command};
        size_t at = 4;

        if (sub)
            words[at++] = sub + 1;
        for (int i = 0; i < n; i++)
            words[at++] = i == count_place(command) ? "1" : key;
        free(answer);
        answer = server_ask(&s->server, "ACL", "DRYRUN", "it", words[3], words[4], words[5], words[6],
                            words[7], words[8], NULL);
        wrong = strstr(answer, "wrong number") != NULL;
    }
    allowed = strcmp(answer, "OK") == 0;
    free(answer);
    if (sub)
        *sub = '|';
    return allowed;
}

/* A role may run it there only if one of these names it. */
static void expect_runs(struct stage *s, const char *role, char *command, const char *key,
                        const char *commands, const char *others)
{
    if (may_run(s, command, key) && !has_word(commands, command) && !has_word(others, command))
        fail_msg("a %s may run %s on %s", role, command, key);
}

static void try_command(struct stage *s, size_t role, char *command, const char *writes)
{
    expect_runs(s, beyond[role].role, command, "session:1", beyond[role].commands, "");
    for (size_t k = 0; k < COUNT(within); k++)
        if (strcmp(within[k].role, beyond[role].role) == 0 &&
            (within[k].commands || has_word(writes, command)))
            expect_runs(s, beyond[role].role, command, stage_key(s, "%s", within[k].key),
                        within[k].commands ? within[k].commands : "", beyond[role].commands);
}

/* The commands of a category, each with a blank before and behind it. */
static char *category(struct stage *s, const char *name)
{
    char *names = server_ask(&s->server, "ACL", "CAT", name, NULL), *words;

    for (char *c = names; *c; c++)
        *c = *c == '\n' ? ' ' : *c;
    assert_true(asprintf(&words, " %s ", names) > 0);
    free(names);
    return words;
}

/* No command of Redis shows or loses more than the role is for. */
STAGE_TEST(no_command_does_more)
{
    static const char *const all[] = {"slow", "fast"};
    char *writes = category(s, "write");
    int count = 0;

    for (size_t i = 0; i < COUNT(beyond); i++) {
        make_user(s, beyond[i].role);
        for (size_t n = 0; n < 2; n++) {
            char *commands = category(s, all[n]), *rest = commands, *command;

            while ((command = strsep(&rest, " ")))
                if (*command) {
                    try_command(s, i, command, writes);
                    count++;
                }
            free(commands);
        }
    }
    assert_true(count > 5 * 300);
    free(writes);
}

/* ---- Where it comes from */

static bool may(struct stage *s, const char *right, const char *command)
{
    int place = count_place(command);
    const char *first = place == 0 ? "1" : "k", *second = place == 1 ? "1" : "k",
               *third = place == 1 ? "k" : "1";
    bool wrong = true, allowed;
    char *answer = NULL;

    stage_do(s, "ACL", "SETUSER", "tried", "reset", "+@all", right);
    for (int n = 0; n < 4 && wrong; n++) {
        free(answer);
        answer = server_ask(&s->server, "ACL", "DRYRUN", "tried", command, first, n > 0 ? second : NULL,
                            n > 1 ? third : NULL, n > 2 ? "1" : NULL, NULL);
        wrong = strstr(answer, "wrong number") != NULL;
    }
    allowed = strcmp(answer, "OK") == 0;
    if (!allowed && !strstr(answer, "has no permissions"))
        fail_msg("%s: %s", command, answer);
    free(answer);
    return allowed;
}

/* rights.awk knows what each command does with its keys; Redis knows it too. */
STAGE_TEST(commands_need_what_the_source_says)
{
    static const struct {
        const char *list;
        bool with_read, with_write;
    } kinds[] = {
        {"plain", true, true}, {"reads", true, false}, {"writes", false, true}, {"both", false, false}};
    char source[16384], *at, *rest, *end;
    int count = 0;

    assert_true(read_text("core/script", "rights.awk", source, sizeof source));
    rest = strstr(source, "split(\"");
    for (size_t i = 0; i < COUNT(kinds); i++) {
        at = rest + strlen("split(\"");
        end = strstr(at, kinds[i].list);
        assert_non_null(end);
        rest = strstr(end, "split(\"");
        *end = '\0';
        while ((at = strtok_r(at, "\" ,\\\n", &end))) {
            if (may(s, "%R~k", at) != kinds[i].with_read || may(s, "%W~k", at) != kinds[i].with_write ||
                !may(s, "~k", at))
                fail_msg("%s is not one of the %s", at, kinds[i].list);
            count++;
            at = NULL;
        }
    }
    assert_true(count > 50);
}

STAGE_TESTS(NULL, NULL)

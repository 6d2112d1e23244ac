/* The command weir doctor: what it says of a Redis that lacks commands, and of INFO; and what it
 * does while workers run. */
#include "core/clock.h"
#include "queue/doctor/settings.h"
#include "tests/program.h"
#include "tests/scene.h"
#include "tests/stage.h"

/* ---- Redis itself, and the command */

struct stand {
    struct server server;
    struct outcome o;
};

static void weir(struct stand *s, const char *url, const char *line)
{
    const char *words[WORDS_MAX + 1] = {built("weir"), "doctor", "--redis", url};
    char text[300], *rest = text;
    int count = 4;

    snprintf(text, sizeof text, "%s", line);
    while (count < WORDS_MAX && rest && *rest)
        words[count++] = strsep(&rest, " ");
    program_run(&s->o, s->server.folder, words);
}

static void expect_line(struct stand *s, int code, const char *line)
{
    if (s->o.code != code || !strstr(s->o.out, line))
        fail_msg("exit %d (not %d), without '%s': %s%s", s->o.code, code, line, s->o.out, s->o.err);
}

static bool is_cluster_up(struct server *s)
{
    char *info = server_ask(s, "CLUSTER", "INFO", NULL);
    bool up = strstr(info, "cluster_state:ok") != NULL;

    free(info);
    return up;
}

TEST(test_cluster)
{
    struct stand s;

    server_start_with(&s.server, false, (const char *const[]){"--cluster-enabled", "yes", NULL});
    stage_do(&s, "CLUSTER", "ADDSLOTSRANGE", "0", "16383");
    await(is_cluster_up(&s.server)); /* two seconds after its start */
    weir(&s, s.server.url, "");
    expect_line(&s, 0, "ok: cluster: a node of a cluster; addresses must begin with redis+cluster://");
    server_stop(&s.server);
}

/* rename-command: who asks is told what is missing, and the doctor names it. */
TEST(test_a_missing_command)
{
    static const struct {
        const char *command, *line;
        int code, worker;
    } cases[] = {
        {"TIME", "wrong: commands: Redis has no time, which Weir calls; take rename-command out of", 78, 78},
        {"TYPE", "wrong: commands: Redis has no type, which Weir calls; take rename-command out of", 78, 78},
        {"SCAN", "wrong: commands: Redis has no scan, which Weir calls; take rename-command out of", 78, 0},
        {"KEYS", "ok: permissions:", 0, 0},
        {"INFO", "warning: info: cannot be asked: Redis has no info; take rename-command out of", 0, 0},
        {"BLMOVE", "wrong: commands: Redis has no blmove, which Weir calls; take rename-command", 78, 0},
    };
    struct outcome o;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const options[] = {"--rename-command", cases[i].command, "HIDDEN", NULL};
        struct stand s;

        server_start_with(&s.server, false, options);
        weir(&s, s.server.url, "");
        expect_line(&s, cases[i].code, cases[i].line);
        run_in(&o, s.server.folder, built("weir"), "worker", "--exec", "t=true", "--drain", "--redis",
               s.server.url, NULL);
        if (o.code != cases[i].worker)
            fail_msg("%s: worker: %d: %s", cases[i].command, o.code, o.err);
        run_in(&o, s.server.folder, built("weir"), "enqueue", "t", "--redis", s.server.url, NULL);
        assert_null(strstr(o.err, "unexpected error"));
        server_stop(&s.server);
    }
}

/* ---- While workers run */

TEST(test_no_false_alarm_under_load)
{
    struct stage s;
    pid_t workers[2];
    struct stand stand;

    stage_open(&s, false);
    stand.server = s.server;
    stage_rate(&s, "a", "400/1s,burst=5,by=key");
    stage_rate(&s, "b", "concurrency=3");
    stage_rate(&s, "c", "150/1s,burst=3");
    for (int i = 0; i < 900; i++) {
        stage_push_text(&s, textf("{\"id\":\"j%d\",\"type\":\"%c\",\"key\":\"k%d\",\"args\":{}}", i,
                                  "abc"[i % 3], i % 40));
    }
    workers[0] = stage_actor(&s, "one", "types=a,b,c", "executors=8", NULL);
    workers[1] = stage_actor(&s, "two", "types=a,b,c", "executors=8", NULL);
    stage_await_workers(&s, 2); /* until then nobody knows the queue */
    for (int i = 0; i < 8; i++) {
        weir(&stand, s.server.url, "");
        expect_line(&stand, 0, "they agree");
    }
    stage_await_done(&s, 900);
    weir(&stand, s.server.url, "");
    expect_line(&stand, 0, "they agree");
    assert_int_equal(stage_end(workers[0]), 0);
    assert_int_equal(stage_end(workers[1]), 0);
    stage_close(&s);
}

/* Puts something else in the place of a key while jobs wait by it, and repairs; then they run by themselves.
 */
static void spoil_and_repair(struct stage *s, struct stand *stand, const char *name, int number)
{
    static const char spoil[] = "redis.call('DEL', KEYS[1])\n"
                                "if ARGV[1] == 'gate' then redis.call('RPUSH', KEYS[1], 'x') else "
                                "redis.call('SET', KEYS[1], 'x') end";
    const char *key = textf(PREFIX "%s", name);
    const char *told = textf("repaired: keys: %s is a ", key);

    stage_enqueue(s, "b", NULL, 20 * number, 20);
    await(stage_stat(s, "b", "done") > 20 * number);
    stage_do(s, "EVAL", spoil, "1", key, strncmp(name, "gate", 4) ? "" : "gate");
    weir(stand, s->server.url, "--repair");
    expect_line(stand, 0, told);
    await(stage_stat(s, "b", "done") == 20 * (number + 1));
}

TEST(test_workers_go_on_after_a_repair)
{
    static const char *const names[] = {"gate:b#0", "ring:default/b", "wait:default/b#0", "wake:default"};
    struct stage s;
    struct stand stand;
    pid_t workers[2];

    stage_open(&s, false);
    stand.server = s.server;
    stage_rate(&s, "b", "50/1s,burst=1");
    workers[0] = stage_actor(&s, "one", "types=b", "executors=2", NULL);
    workers[1] = stage_actor(&s, "two", "types=b", "executors=2", NULL);
    stage_await_workers(&s, 2);
    for (size_t i = 0; i < COUNT(names); i++)
        spoil_and_repair(&s, &stand, names[i], (int)i);
    assert_int_equal(stage_end(workers[0]), 0);
    assert_int_equal(stage_end(workers[1]), 0);
    stage_close(&s);
}

/* ---- What INFO says */

TEST(test_settings)
{
    static const struct {
        const char *info, *terms;
        bool hold;
    } cases[] = {
        {"", "", true},
        {"a:1\r\n", "a", true},
        {"a:1\r\n", "b", false},
        {"a:1\r\n", "-b", true},
        {"a:1\r\n", "-a", false},
        {"b:on\r\na:7.0.15\r\n", "a=7.0. b=on", true},
        {"b:on\r\na:7.2.4\r\n", "b=on a=7.0.", false},
        {"a:7.2.4\r\n", "a!7.0.", true},
        {"", "a!7.0.", false},
        {"a:6.2.14\r\n", "a<7", true},
        {"a:10.1\r\n", "a<7", false},
        {"", "a<7", false},
        {"a:95\r\nb:100\r\n", "a>90%b", true},
        {"a:90\r\nb:100\r\n", "a>90%b", false},
        {"a:0\r\nb:1\r\n", "a<b", true},
        {"a:0\r\n", "a<b", false},
        {"aof_enabled:0\r\n", REDIS_HAS_NO_AOF, true},
        {"aof_enabled:1\r\n", REDIS_HAS_NO_AOF, false},
        {"maxmemory:5\r\nmaxmemory_policy:volatile-ttl\r\n", REDIS_EVICTS, true},
        {"maxmemory:5\r\nmaxmemory_policy:noeviction\r\n", REDIS_EVICTS, false},
        {"maxmemory:0\r\nmaxmemory_policy:volatile-ttl\r\n", REDIS_EVICTS, false},
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        if (settings_hold(cases[i].info, cases[i].terms) != cases[i].hold)
            fail_msg("%s", cases[i].terms);
}

STAGE_TESTS(NULL, NULL)

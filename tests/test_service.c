/* Services: those without functions are refused by name by whoever comes first, a command or a worker. Where
 * CONFIG and ACL are forbidden, the doctor says where else to change what is wrong. */
#include "tests/service.h"

#include "core/wire/service.h"
#include "tests/program.h"
#include "tests/scene.h"

struct stand {
    struct server server;
    struct fake_service service;
    struct outcome o;
};

static void begin(struct stand *s, const struct service_kind *kind)
{
    server_start(&s->server, false);
    service_start(&s->service, &s->server, kind);
}

static void end(struct stand *s)
{
    service_stop(&s->service);
    server_stop(&s->server);
}

static void doctor(struct stand *s)
{
    run_in(&s->o, s->server.folder, built("weir"), "doctor", "--redis", s->service.url, NULL);
}

static void worker(struct stand *s)
{
    run_in(&s->o, s->server.folder, built("weir"), "worker", "--exec", "t=true", "--drain", "--redis",
           s->service.url, NULL);
}

static void expect(const struct stand *s, int code, const char *line)
{
    if (s->o.code != code || (!strstr(s->o.out, line) && !strstr(s->o.err, line)))
        fail_msg("exit %d (not %d), without '%s': %s%s", s->o.code, code, line, s->o.out, s->o.err);
}

static void expect_not(const struct stand *s, const char *text)
{
    if (strstr(s->o.out, text) || strstr(s->o.err, text))
        fail_msg("'%s' is in: %s%s", text, s->o.out, s->o.err);
}

TEST(test_services_without_functions_are_refused_by_name)
{
    static const struct {
        struct service_kind kind;
        const char *refusal, *told;
    } cases[] = {
        {{"# Server\r\nredis_version:7.4.0\r\ndragonfly_version:df-v1.40.1\r\n", NULL, NULL,
          "ERR wrong number of arguments for 'function' command"},
         "Redis: Dragonfly df-v1.40.1 has no functions, which Weir consists of; use Redis 7.0 or later, or "
         "Valkey",
         "wrong: version: Dragonfly has no functions, which Weir consists of; use Redis 7.0"},
        {{"# Server\r\nredis_version:7.4.3\r\ngarnet_version:1.0.84\r\n", NULL, NULL,
          "ERR unknown command 'FUNCTION'"},
         "Redis: Garnet 1.0.84 has no functions",
         "wrong: version: Garnet has no functions"},
        {{"# Server\r\nredis_version:6.2.6\r\nos:Amazon ElastiCache\r\n", NULL, NULL,
          "ERR unknown command 'FUNCTION'"},
         "Redis: Amazon ElastiCache 6.2.6 has no functions",
         "Redis: Amazon ElastiCache 6.2.6 has no functions"},
        {{"# Server\r\nredis_version:6.2.14\r\n", NULL, NULL,
          "ERR unknown command `FUNCTION`, with args beginning with: `LOAD`"},
         "Redis: version 6.2.14 has no functions",
         "wrong: version: Redis 6.2.14 has no functions"},
        {{NULL, " INFO FCALL ", NULL, "ERR unknown command 'FUNCTION'"},
         "Redis: has no functions (ERR unknown command 'FUNCTION'), which Weir consists of; use Redis 7.0 or "
         "later, or Valkey, without a proxy",
         "weir: Redis: has no functions (ERR unknown command 'FUNCTION')"},
    };
    struct stand s;

    for (size_t i = 0; i < COUNT(cases); i++) {
        begin(&s, &cases[i].kind);
        run_in(&s.o, s.server.folder, built("weir"), "enqueue", "t", "--redis", s.service.url, NULL);
        expect(&s, 78, cases[i].refusal);
        assert_null(strchr(s.o.err, '\n')[1] ? s.o.err : NULL); /* one line */
        worker(&s);
        expect(&s, 78, cases[i].refusal);
        doctor(&s);
        expect(&s, 78, cases[i].told);
        end(&s);
    }
}

/* Says no more than it must where all is well but for what users cannot change by commands. */
TEST(test_settings_of_a_service_are_in_its_console)
{
    static const struct {
        struct service_kind kind;
        const char *version, *aof, *eviction, *latency;
    } cases[] = {
        {{"# Server\r\nos:Amazon ElastiCache\r\n", " CONFIG ACL SLOWLOG ", NULL, NULL},
         "ok: version: Amazon ElastiCache, as Redis 7.",
         "runs others twice; set appendonly yes in its parameter group",
         "set maxmemory-policy noeviction in its parameter group",
         "ok: latency: not checked: Amazon ElastiCache has no slowlog|get"},
        {{"# Server\r\nrlec_version:7.4.2-54\r\n", " CONFIG ", NULL, NULL},
         "ok: version: Redis Cloud or Enterprise, as Redis 7.",
         "runs others twice; set appendonly yes in the settings of the database in its console",
         "set maxmemory-policy noeviction in the settings of the database in its console",
         "ok: latency: none of Weir's calls"},
        {{NULL, " CONFIG ACL ", NULL, NULL},
         "ok: version: Redis 7.0",
         "runs others twice; set appendonly yes in the console of your service, which has no CONFIG",
         "in silence",
         "ok: latency: none"},
        {{NULL, " CONFIG ", "NOPERM this user has no permissions to run", NULL},
         "ok: version: Redis 7.0",
         "redis-cli CONFIG SET appendonly yes, and the same in redis.conf; at a managed service, in its "
         "console",
         "in silence",
         "ok: latency: none"},
    };
    struct stand s;

    for (size_t i = 0; i < COUNT(cases); i++) {
        begin(&s, &cases[i].kind);
        doctor(&s);
        expect(&s, 0, cases[i].version);
        expect(&s, 0, cases[i].aof);
        expect(&s, 0, cases[i].latency);
        expect(&s, 0, "\n1 warning\n");
        worker(&s);
        expect(&s, 0, "Redis keeps no AOF");
        stage_do(&s, "CONFIG", "SET", "maxmemory-policy", "volatile-lru");
        stage_do(&s, "CONFIG", "SET", "maxmemory", "100mb");
        doctor(&s);
        expect(&s, 78, cases[i].eviction);
        worker(&s);
        expect(&s, 78, cases[i].eviction);
        end(&s);
    }
}

/* A service refuses ACL SETUSER too. */
TEST(test_rights_are_given_where_the_service_gives_them)
{
    static const struct service_kind kind = {"# Server\r\nos:Amazon ElastiCache\r\n", " CONFIG ACL SLOWLOG ",
                                             NULL, NULL};
    struct stand s;
    char url[300];

    begin(&s, &kind);
    doctor(&s); /* loads the functions */
    stage_do(&s, "ACL", "SETUSER", "poor", "on", ">pw", "~*", "+@all", "-zrandmember");
    snprintf(url, sizeof url, "unix://poor:pw@%s", s.service.socket);
    run_in(&s.o, s.server.folder, built("weir"), "doctor", "--redis", url, NULL);
    expect(&s, 77, "lacks rights; give the user in its user group: +zrandmember\n");
    expect_not(&s, "redis-cli ACL");
    end(&s);
}

TEST(test_names)
{
    char text[8];

    assert_true(info_text("a:1\r\nab:two\r\nb:x", "ab", text, sizeof text));
    assert_string_equal(text, "two");
    assert_false(info_text("a:1\r\n", "b", text, sizeof text));
    assert_string_equal(text, "");
    assert_int_equal(info_number("# A\r\na:12\r\n", "a", -1), 12);
    assert_int_equal(info_number("a:1x\r\n", "a", -1), -1);
    assert_int_equal(info_number("", "a", -1), -1);
    assert_null(service_of("redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.1\r\n"));
    assert_null(service_of("os:Linux 6.1.0-13-amd64 x86_64\r\n"));
    assert_string_equal(service_of("os:Amazon MemoryDB\r\n")->name, "Amazon MemoryDB");
    assert_string_equal(service_of("upstash_version:1.13.3\r\nredis_version:6.2.6\r\n")->name, "Upstash");
}

TESTS(NULL, NULL)

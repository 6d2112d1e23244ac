/* The weir command from outside: help, exit codes, and one clear line for whatever is wrong. */
#include <signal.h>
#include <unistd.h>

#include "core/clock.h"
#include "tests/stage.h"

#define NOWHERE "/nonexistent/redis.sock"

static void assert_misuses(const struct misuse *m)
{
    program_misuses(NULL, NULL, NULL, m);
}

/* Does the line of a help text name a flag that takes a value? Then which. */
static bool reads_value(const char *line, char name[64])
{
    size_t len;

    if (strncmp(line, "      --", 8) != 0 &&
        (strncmp(line, "  -", 3) != 0 || strncmp(line + 4, ", --", 4) != 0))
        return false;
    len = strcspn(line + 6, " [");
    snprintf(name, 64, "%.*s", (int)len, line + 6);
    return line[6 + len] == '[' || (line[6 + len] == ' ' && line[7 + len] != ' ');
}

/* What a script writes whose variable is not set: "--type $TYPE" must not mean all types. */
TEST(test_empty_values)
{
    static const char *const commands[] = {
        "enqueue", "worker", "job",  "queue",  "batch", "dead", "schedule", "rate", "take", "report",
        "status",  "why",    "plan", "verify", "serve", "dev",  "doctor",   "acl",  "init"};
    struct outcome help, o;
    int flags = 0;

    for (size_t i = 0; i < COUNT(commands); i++) {
        char *rest = help.out, *line, name[64], word[80];

        run_in(&help, NULL, built("weir"), commands[i], "--help", NULL);
        while ((line = strsep(&rest, "\n")))
            if (reads_value(line, name)) {
                snprintf(word, sizeof word, "%s=", name);
                run_in(&o, NULL, built("weir"), commands[i], word, NULL);
                if (o.code != 64 || !strstr(o.err, ": its value is empty; give one, or leave the flag out"))
                    fail_msg("%s %s: exit %d: %s", commands[i], word, o.code, o.err);
                flags++;
            }
    }
    assert_true(flags > 70);
    run_in(&o, NULL, built("weir"), "dead", "remove", "--type", "", NULL);
    assert_int_equal(o.code, 64);
    run_in(&o, NULL, built("weir"), "queue", "purge", "default", "--type", "", NULL);
    assert_int_equal(o.code, 64);
}

/* Every command that needs a Redis, and one that works where there is one. */
static const char *const needing_redis[] = {"enqueue a", "rate set a 1/s", "rate list",
                                            "take a",    "status",         NULL};

static void assert_all(const char *flags, int code, const char *says)
{
    for (int i = 0; needing_redis[i]; i++) {
        assert_misuses(
            (const struct misuse[]){{textf("%s %s", needing_redis[i], flags), code, says}, {NULL, 0, NULL}});
    }
}

TEST(test_no_redis)
{
    assert_all("--redis " NOWHERE, 69, NOWHERE);
    assert_all("--redis redis://127.0.0.1:1", 69, "127.0.0.1:1");
    assert_all("--redis http://127.0.0.1", 78, "it begins with none of");
    assert_all("--redis " NOWHERE " --namespace a/b", 78, "namespace");
}

TEST(test_wrong_password)
{
    const char *const options[] = {"--requirepass", "secret", NULL};
    struct server s;
    struct outcome o;
    char url[256];

    server_start_with(&s, false, options);
    assert_all(textf("--redis %s", s.socket), 77,
               "wants a password (NOAUTH Authentication required.); name --password-file");
    snprintf(url, sizeof url, "unix://:wrong@%s", s.socket);
    setenv("REDIS_URL", url, 1);
    assert_all("", 77, "check user and password");
    snprintf(url, sizeof url, "unix://:secret@%s", s.socket);
    setenv("REDIS_URL", url, 1);
    program_weir(&o, NULL, NULL, NULL, "rate list");
    unsetenv("REDIS_URL");
    assert_int_equal(o.code, 0);
    assert_string_equal(o.err, "no limits yet; weir rate set NAME RULE sets one\n");
    server_stop(&s);
}

/* What ps shows of a process; the words are separated by NUL. */
static size_t arguments_of(pid_t pid, char *text, size_t size)
{
    FILE *file;
    size_t len;

    file = fopen(textf("/proc/%d/cmdline", (int)pid), "r");
    assert_non_null(file);
    len = fread(text, 1, size, file);
    fclose(file);
    return len;
}

TEST(test_password_in_the_arguments)
{
    static const char warning[] = "weir: --redis: the password is visible in the process list; use REDIS_URL "
                                  "or --password-file instead\n";
    const char *const options[] = {"--requirepass", "secret", NULL};
    const char *words[] = {built("weir"), "worker", "--exec", "a=true", "--redis", NULL, NULL};
    struct server s;
    char text[1024];
    size_t len;
    pid_t pid;

    server_start_with(&s, false, options);
    words[5] = textf("unix://default:secret@%s", s.socket);
    pid = program_start(s.folder, "worker", words);
    await_text(s.folder, "worker.err", warning);
    len = arguments_of(pid, text, sizeof text);
    assert_non_null(memmem(text, len, s.socket, strlen(s.socket)));
    assert_null(memmem(text, len, "secret", strlen("secret")));
    await_text(s.folder, "worker.err", "Redis keeps no AOF"); /* it has logged in */
    kill(pid, SIGTERM);
    assert_int_equal(program_end(pid), 0);
    server_stop(&s);
}

TEST(test_the_sentinels_password_in_the_arguments)
{
    const char *words[] = {built("weir"), "worker", "--exec", "a=true", "--redis", NULL, NULL};
    char folder[64], text[1024];
    pid_t pid;
    size_t len;

    folder_make(folder);
    words[5] = "redis+sentinel://127.0.0.1:1/name?sentinel-password=s3cret&db=1";
    pid = program_start(folder, "worker", words);
    await_text(folder, "worker.err", "no Sentinel answers");
    len = arguments_of(pid, text, sizeof text);
    assert_non_null(memmem(text, len, "&db=1", strlen("&db=1")));
    assert_null(memmem(text, len, "s3cret", strlen("s3cret")));
    kill(pid, SIGTERM);
    program_end(pid);
    folder_remove(folder);
}

/* What is opened while 0, 1 or 2 are closed must not become standard input, output or error. */
TEST(test_closed_streams)
{
    struct server s;
    struct outcome o;
    char line[1024];
    pid_t pid;

    server_start(&s, false);
    setenv("REDIS_URL", s.url, 1);
    snprintf(line, sizeof line, "exec '%s' enqueue mail - <&-", built("weir"));
    run_in(&o, NULL, "/bin/sh", "-c", line, NULL);
    assert_int_equal(o.code, 65);
    assert_string_equal(o.err, "weir: standard input: cannot be read: Bad file descriptor; give the args as "
                               "a word, or pipe them in\n");
    snprintf(line, sizeof line, "exec timeout -k 1 20 '%s' enqueue --from - mail <&-", built("weir"));
    run_in(&o, NULL, "/bin/sh", "-c", line, NULL);
    assert_int_equal(o.code, 65);
    assert_non_null(strstr(o.err, "standard input: cannot be read: Bad file descriptor"));
    snprintf(line, sizeof line, "exec '%s' enqueue mail 1 --id x >&-", built("weir"));
    run_in(&o, NULL, "/bin/sh", "-c", line, NULL);
    assert_int_equal(o.code, 70);
    assert_non_null(strstr(o.err, "standard output: Bad file descriptor"));
    snprintf(line, sizeof line, "exec '%s' worker --exec mail=true <&- >&- 2>&-", built("weir"));
    pid = program_start(s.folder, "worker", (const char *const[]){"/bin/sh", "-c", line, NULL});
    await(server_number(&s, "HEXISTS", "weir:{0}:stats:mail", "done", NULL) == 1);
    for (int fd = 0; fd < 3; fd++) {
        char file[64] = "";

        assert_true(readlink(textf("/proc/%d/fd/%d", (int)pid, fd), file, sizeof file - 1) > 0);
        assert_string_equal(file, "/dev/null");
    }
    kill(pid, SIGTERM);
    assert_int_equal(program_end(pid), 0);
    unsetenv("REDIS_URL");
    server_stop(&s);
}

TEST(test_version_and_help)
{
    static const char *const commands[] = {"enqueue", "worker", "rate", "take",    "status",
                                           "verify",  "serve",  "dev",  "version", NULL};
    struct outcome o, same;
    char line[64];

    program_weir(&o, NULL, NULL, NULL, "--version");
    assert_string_equal(o.out, "weir " WEIR_VERSION "\n");
    program_weir(&o, NULL, NULL, NULL, "version --json");
    assert_string_equal(o.out, "{\"version\":\"" WEIR_VERSION "\"}\n");
    program_weir(&o, NULL, NULL, NULL, "");
    assert_int_equal(o.code, 64);
    assert_string_equal(o.out, "");
    program_weir(&same, NULL, NULL, NULL, "--help");
    assert_int_equal(same.code, 0);
    assert_string_equal(same.out, o.err);
    for (int i = 0; commands[i]; i++) {
        assert_non_null(strstr(same.out, commands[i]));
        snprintf(line, sizeof line, "help %s", commands[i]);
        program_weir(&o, NULL, NULL, NULL, line);
        assert_int_equal(o.code, 0);
        assert_int_equal(strncmp(o.out, "Example: weir ", 14), 0);
        assert_non_null(strstr(o.out, "--namespace NAME"));
        snprintf(line, sizeof line, "%s --utc -h", commands[i]);
        program_weir(&o, NULL, NULL, NULL, line);
        assert_int_equal(o.code, 0);
        assert_string_equal(o.err, "");
    }
}

static void expect_output_fails(const char *line, const char *why)
{
    struct outcome o;
    const char *text = textf("exec '%s' %s", built("weir"), line);
    const char *says = textf("weir: standard output: %s; what was to be printed is not complete\n", why);

    run_in(&o, NULL, "/bin/sh", "-c", text, NULL);
    assert_int_equal(o.code, 70);
    assert_string_equal(o.err, says);
}

TEST(test_full_output)
{
    expect_output_fails("version >/dev/full", "No space left on device");
    expect_output_fails("help >/dev/full", "No space left on device");
    expect_output_fails("help rate >/dev/full", "No space left on device");
    expect_output_fails("rate --help >&-", "Bad file descriptor");
}

TEST(test_files_that_cannot_be_read)
{
    struct outcome o;
    char path[3001];

    assert_misuses((const struct misuse[]){
        {"enqueue --from ./no-such-file a", 65,
         "No such file or directory; name another file, or - for standard input"},
        {"take --from ./no-such-file", 65,
         "No such file or directory; name another file, or - for standard input"},
        {"take --from /", 65, "weir: /: cannot be read: Is a directory; name another file, or -"},
        {NULL, 0, NULL},
    });
    memset(path, '/', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    run_in(&o, NULL, built("weir"), "take", "--from", path, NULL);
    assert_int_equal(o.code, 65);
    assert_non_null(strstr(o.err, "/: cannot be read: Is a directory; name another file"));
}

TEST(test_redis_url)
{
    struct server s;
    struct outcome o;

    server_start(&s, false);
    setenv("REDIS_URL", s.url, 1);
    program_weir(&o, NULL, NULL, NULL, "rate set a 5/s --json");
    unsetenv("REDIS_URL");
    assert_int_equal(o.code, 0);
    assert_string_equal(o.err, "");
    assert_int_equal(server_number(&s, "HEXISTS", "weir:{0}:limits", "a", NULL), 1);
    setenv("REDIS_URL", NOWHERE, 1);
    run_in(&o, NULL, built("weir"), "rate", "--redis", s.url, "set", "--namespace=other", "a", "5/s", NULL);
    unsetenv("REDIS_URL");
    assert_int_equal(o.code, 0);
    assert_int_equal(server_number(&s, "HEXISTS", "other:{0}:limits", "a", NULL), 1);
    program_weir(&o, s.folder, NULL, NULL, "rate show a --redis ./redis.sock");
    assert_int_equal(o.code, 0);
    program_weir(&o, s.folder, NULL, NULL, "rate show a --redis ./none.sock");
    assert_int_equal(o.code, 69);
    assert_non_null(strstr(o.err, "redis ./none.sock (--redis): no such socket"));
    server_stop(&s);
}

int main(void)
{

    unsetenv("REDIS_URL");
    unsetenv("WEIR_NAMESPACE");
    return tests_run(NULL, NULL);
}

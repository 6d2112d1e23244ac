/* weir dev from outside: what it starts, who may start it, and what is left when it has ended, however it
 * ended. */
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/program.h"
#include "tests/test.h"

#define READY "Redis is ready at unix://"

static pid_t start_dev(const char *folder, const char *flag, const char *value)
{
    const char *words[] = {built("weir"), "dev", flag, value, NULL};
    pid_t pid = program_start(folder, "dev", words);

    await_text(folder, "dev.out", READY);
    return pid;
}

static void end_dev(pid_t pid, int signal_number)
{
    kill(pid, signal_number);
    assert_int_equal(program_end(pid), 0);
}

static bool exists(const char *folder, const char *name)
{
    struct stat status;
    const char *path = textf("%s/%s", folder, name);

    return lstat(path, &status) == 0;
}

TEST(test_one_per_folder)
{
    char folder[64];
    struct outcome o;
    pid_t pid;

    folder_make(folder);
    pid = start_dev(folder, NULL, NULL);
    await_text(folder, "dev.out", "No worker runs: start some in this folder");
    run_in(&o, folder, built("weir"), "dev", NULL);
    assert_int_equal(o.code, 75);
    assert_non_null(
        strstr(o.err, textf("weir: dev: already running in this folder, process %d, ", (int)pid)));
    end_dev(pid, SIGINT);
    assert_false(exists(folder, ".weir/redis.sock"));
    folder_remove(folder);
}

TEST(test_commands_find_it_and_data_stays)
{
    char folder[64];
    struct outcome o;
    pid_t pid;

    folder_make(folder);
    pid = start_dev(folder, NULL, NULL);
    run_in(&o, folder, built("weir"), "rate", "set", "mail", "5/s", NULL);
    assert_int_equal(o.code, 0);
    assert_non_null(strstr(o.err, "weir: Redis is that of weir dev in this folder, unix://"));
    end_dev(pid, SIGTERM);
    pid = start_dev(folder, NULL, NULL);
    run_in(&o, folder, built("weir"), "rate", "show", "mail", NULL);
    assert_int_equal(o.code, 0);
    end_dev(pid, SIGINT);
    folder_remove(folder);
}

TEST(test_worker)
{
    char folder[64];
    struct outcome o;
    pid_t pid;

    folder_make(folder);
    pid = start_dev(folder, "--exec", "mark=touch marked");
    run_in(&o, folder, built("weir"), "enqueue", "mark", NULL);
    assert_int_equal(o.code, 0);
    await_text(folder, "marked", "");
    end_dev(pid, SIGINT);
    folder_remove(folder);
}

/* The worker prints no document: --json is for dev alone. */
TEST(test_json_with_a_worker)
{
    char folder[64];
    struct outcome o;
    pid_t pid;

    folder_make(folder);
    pid = program_start(
        folder, "dev", (const char *[]){built("weir"), "dev", "--json", "--exec", "mark=touch marked", NULL});
    await_text(folder, "dev.out", "}\n");
    run_in(&o, folder, built("weir"), "enqueue", "mark", NULL);
    assert_int_equal(o.code, 0);
    await_text(folder, "marked", "");
    end_dev(pid, SIGINT);
    folder_remove(folder);
}

/* Whoever starts it may have blocked and ignored signals. */
TEST(test_inherited_signals)
{
    sigset_t stops, before;
    char folder[64];
    struct outcome o;
    pid_t pid;

    folder_make(folder);
    sigemptyset(&stops);
    sigaddset(&stops, SIGTERM);
    sigaddset(&stops, SIGINT);
    sigprocmask(SIG_BLOCK, &stops, &before);
    signal(SIGCHLD, SIG_IGN);
    pid = start_dev(folder, "--exec", "mark=touch marked");
    signal(SIGCHLD, SIG_DFL);
    sigprocmask(SIG_SETMASK, &before, NULL);
    run_in(&o, folder, built("weir"), "enqueue", "mark", NULL);
    assert_int_equal(o.code, 0);
    await_text(folder, "marked", "");
    end_dev(pid, SIGTERM);
    folder_remove(folder);
}

TEST(test_ends_with_its_worker)
{
    char folder[64];
    struct outcome o;

    folder_make(folder);
    run_in(&o, folder, built("weir"), "dev", "--exec", "mark=true", "--drain", NULL);
    assert_int_equal(o.code, 0);
    assert_false(exists(folder, ".weir/redis.sock"));
    run_in(&o, folder, built("weir"), "dev", "--load", "/nonexistent.so", NULL);
    assert_int_equal(o.code, 78);
    assert_non_null(strstr(o.err, "/nonexistent.so"));
    assert_false(exists(folder, ".weir/redis.sock"));
    folder_remove(folder);
}

TEST(test_killed)
{
    char folder[64];
    pid_t pid;

    folder_make(folder);
    pid = start_dev(folder, "--exec", "mark=true");
    kill(pid, SIGKILL);
    assert_int_equal(program_end(pid), 1000 + SIGKILL);
    pid = start_dev(folder, NULL, NULL);
    end_dev(pid, SIGINT);
    folder_remove(folder);
}

TEST(test_stale_files)
{
    char folder[64];
    pid_t pid;

    folder_make(folder);
    mkdir(textf("%s/.weir", folder), 0700);
    write_text(folder, ".weir/lock", "1\n");
    write_text(folder, ".weir/redis.sock", "");
    pid = start_dev(folder, NULL, NULL);
    end_dev(pid, SIGINT);
    folder_remove(folder);
}

TEST(test_deep_folder)
{
    char folder[64], deep[512];
    struct outcome o;
    pid_t pid;

    folder_make(folder);
    snprintf(deep, sizeof deep, "%s/%0100d", folder, 0);
    mkdir(deep, 0700);
    pid = start_dev(deep, "--exec", "mark=touch marked");
    run_in(&o, deep, built("weir"), "enqueue", "mark", NULL);
    assert_int_equal(o.code, 0);
    await_text(deep, "marked", "");
    end_dev(pid, SIGINT);
    folder_remove(folder);
}

TEST(test_redis_ends)
{
    char folder[64], line[256] = "";
    int redis;
    pid_t pid;

    folder_make(folder);
    pid = program_start(folder, "dev", (const char *[]){built("weir"), "dev", "--json", NULL});
    await_text(folder, "dev.out", "}\n");
    read_text(folder, "dev.out", line, sizeof line);
    assert_int_equal(sscanf(strstr(line, "\"pid\":"), "\"pid\":%d", &redis), 1);
    kill(redis, SIGKILL);
    assert_int_equal(program_end(pid), 69);
    await_text(folder, "dev.err", "weir: dev: redis-server has ended; .weir/redis.log says why");
    folder_remove(folder);
}

TEST(test_cannot_start)
{
    char folder[64], path[4096];
    struct outcome o;

    folder_make(folder);
    snprintf(path, sizeof path, "%s", getenv("PATH"));
    setenv("PATH", folder, 1);
    run_in(&o, folder, built("weir"), "dev", NULL);
    setenv("PATH", path, 1);
    assert_int_equal(o.code, 78);
    assert_non_null(strstr(o.err, "weir: dev: redis-server: not found in the PATH; install it"));
    folder_remove(folder);
    folder_make(folder);
    write_text(folder, ".weir", "");
    run_in(&o, folder, built("weir"), "dev", NULL);
    assert_int_equal(o.code, 78);
    assert_non_null(strstr(o.err, "weir: dev .weir/lock: Not a directory"));
    folder_remove(folder);
}

int main(void)
{

    unsetenv("REDIS_URL");
    unsetenv("WEIR_NAMESPACE");
    return tests_run(NULL, NULL);
}

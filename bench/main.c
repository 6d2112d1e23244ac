#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/crew.h"
#include "core/clock.h"

static const struct group {
    const char *name;
    void (*run)(void);
} groups[] = {
    {"bulk", bench_bulk},       {"lines", bench_lines},       {"run", bench_run},
    {"limited", bench_limited}, {"aof", bench_aof},           {"latency", bench_latency},
    {"sparse", bench_sparse},   {"memory", bench_memory},     {"pace", bench_pace},
    {"million", bench_million}, {"fast", bench_fast},         {"flood", bench_flood},
    {"growth", bench_growth},   {"behind", bench_behind},     {"keys", bench_keys},
    {"take", bench_take},       {"protocol", bench_protocol}, {"unique", bench_unique},
    {"pipe", bench_pipe},       {"exec", bench_exec},         {"async", bench_async},
    {"tls", bench_tls},         {"far", bench_far},           {"bytes", bench_bytes},
    {"idle", bench_idle},       {"look", bench_look},         {"queues", bench_queues},
};
#define GROUPS (sizeof groups / sizeof *groups)

static const char usage[] = "usage: weir-bench [--quick] [--only GROUP[,GROUP]...]\n"
                            "Measures Weir on a redis-server of its own; about ten minutes, with --quick "
                            "(a tenth of the jobs) two.\n"
                            "A group that compares with another measures that one too. Groups:";

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
    (void)number;
    stopped = 1;
}

struct bench bench;

void bench_check(void)
{
    if (stopped)
        fail("stopped");
}

void bench_rest(double seconds)
{
    int64_t end_us = clock_mono_us() + (int64_t)(seconds * 1e6);

    for (int64_t now_us; (now_us = clock_mono_us()) < end_us; bench_check())
        clock_sleep_until(end_us - now_us > 50000 ? now_us + 50000 : end_us);
    bench_check();
}

size_t bench_size(size_t full)
{
    return bench.quick ? full / 10 : full;
}

struct weir *client_open(const char *url)
{
    struct weir *w = weir_new(url, NULL);

    if (!w)
        fail("out of memory");
    return w;
}

void client_must(struct weir *w, int rc)
{
    if (rc < 0)
        fail("%s", weir_message(w));
}

int bench_compare_us(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static void print_usage(FILE *to)
{
    fputs(usage, to);
    for (size_t i = 0; i < GROUPS; i++)
        fprintf(to, " %s", groups[i].name);
    fputc('\n', to);
}

/* Marks the groups that are named, separated by commas. */
static int choose(char *names, bool chosen[GROUPS])
{
    for (char *name; (name = strsep(&names, ","));) {
        size_t i = 0;

        while (i < GROUPS && strcmp(groups[i].name, name) != 0)
            i++;
        if (i == GROUPS) {
            fprintf(stderr, "weir-bench: --only: no group %s; see --help\n", name);
            return WEIR_EUSAGE;
        }
        chosen[i] = true;
    }
    return 0;
}

/* 1: go on; else what to exit with. */
static int read_options(bool chosen[GROUPS], int argc, char **argv)
{
    static const struct option options[] = {{"quick", no_argument, NULL, 'q'},
                                            {"only", required_argument, NULL, 'o'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    bool only = false;
    int c;

    while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (c == 'q')
            bench.quick = true;
        else if (c == 'o' && choose(optarg, chosen) == 0)
            only = true;
        else if (c == 'h')
            return print_usage(stdout), 0;
        else
            return c == 'o' ? -WEIR_EUSAGE : (print_usage(stderr), -WEIR_EUSAGE);
    }
    for (size_t i = 0; i < GROUPS && !only; i++)
        chosen[i] = true;
    return 1;
}

/* build/weir, beside our own folder. */
static void find_command(void)
{
    char self[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);

    self[len > 0 ? len : 0] = '\0';
    for (int i = 0; i < 2; i++)
        if (strrchr(self, '/'))
            *strrchr(self, '/') = '\0';
    snprintf(bench.command, sizeof bench.command, "%.500s/weir", self);
}

static void set_surroundings(void)
{
    struct sigaction action = {.sa_handler = on_signal};

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    unsetenv("REDIS_URL");
    unsetenv("WEIR_NAMESPACE");
    setenv("WEIR_LOG", "warn", 0);
}

/* Runs a group to its end. Whether it has succeeded. */
static bool run_group(const struct group *group)
{
    pid_t parent = getpid(), pid = fork();
    int status = 1;

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent)
            exit(1);
        running = group->name;
        group->run();
        exit(0);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0)
        kill(pid, SIGTERM); /* a signal has stopped us */
    return status == 0;
}

int main(int argc, char **argv)
{
    bool chosen[GROUPS] = {false};
    int failed = 0, rc = read_options(chosen, argc, argv);

    if (rc != 1)
        return rc;
    set_surroundings();
    find_command();
    bench.results = shared_new(FIGURES * sizeof *bench.results);
    if (!bench.results)
        fail("out of memory");
    server_start(&bench.server, false);
    server_version(&bench.server, bench.redis_version, sizeof bench.redis_version);
    report_begin();
    for (size_t i = 0; i < GROUPS && !stopped; i++)
        failed += chosen[i] && !run_group(&groups[i]);
    report_end();
    return stopped ? 130 : failed > 0 ? -WEIR_EINTERNAL : 0;
}

/* demo: a bulk of weekly summaries through three workers at one global rate, from nothing to a table of what
 * came out.
 *
 *   build/examples/demo [--businesses 2000] [--rate 200] [--burst 20] [--keep]
 *
 * In a new temporary folder: makes the week's transactions, starts weir dev (a private Redis) and three
 * workers, sets the rate, enqueues one summary a business, and meanwhile enqueues a receipt, a type without a
 * limit, fifty times a second: each must start at once although it stands behind the backlog. Then everything
 * is checked: every file against the transactions, the rate by weir verify. Exits 0 when all is right, else
 * 1; the folder then stays and is named. Nothing is left running either way.
 *
 * What happens is seen from outside, in the workers' trace files, so that watching costs Redis nothing. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "weir.h"

#define WORKERS 3
#define EXECUTORS "10"
#define RECEIPT_EVERY_US 20000
#define SHOW_EVERY_US 100000
#define SHOW_EVERY_NO_TERMINAL_US 2000000
#define START_LIMIT_US 15000000 /* for a process to be ready, or to end */
#define LEFT_LIMIT_US 2000000
#define BACKLOG_LIMIT_US 30000000 /* beyond the time that the rate needs */
#define KEPT_LEAST 0.98
#define KEPT_MOST 1.000001
#define LATENCY_MOST_MS 100.0
#define DENIALS_MOST 1.0   /* a job is moved aside once */
#define COMMANDS_MOST 25.0 /* a job that is put back and tried again costs hundreds */
#define ROWS_MAX 16
#define PATH_SIZE 4096

struct receipt {
    int64_t enqueued_us, started_us; /* wall clock; 0: not yet */
};

struct row {
    char what[48], found[48], wanted[48];
    bool good;
};

struct demo {
    long businesses, rate, burst;
    bool keep;
    char bin[PATH_SIZE]; /* where weir and the examples are: build */
    char *folder;        /* everything of this run, and where it runs; NULL: none yet */
    char url[256];
    pid_t dev, workers[WORKERS]; /* 0: not running */
    FILE *traces[WORKERS];
    int64_t *starts_us; /* of the summaries */
    long start_count;
    struct receipt *receipts;
    long receipts_max, receipt_count, receipts_started;
    json_t *verified;
    long long commands, denials, mails, mails_right, receipt_lines;
    bool left_running;
    struct row rows[ROWS_MAX];
    int row_count;
    char failure[512]; /* the first one; empty: none */
};

static volatile sig_atomic_t interrupted;

static void on_signal(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

static int64_t clock_us(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static int64_t mono_us(void)
{
    return clock_us(CLOCK_MONOTONIC);
}

static void sleep_until(int64_t us)
{
    struct timespec t = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};

    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

/* Remembers the first failure; always false. */
static bool fail(struct demo *d, const char *fmt, ...) WEIR_PRINTF(2, 3);
static bool fail(struct demo *d, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    if (!*d->failure)
        vsnprintf(d->failure, sizeof d->failure, fmt, args);
    va_end(args);
    return false;
}

static bool go_on(struct demo *d)
{
    return interrupted ? fail(d, "interrupted") : true;
}

/* ---- Processes */

/* In the child: ends when the demo does, in a process group of its own so that Ctrl-C is the demo's to
 * handle. */
static void become_child(int out, const char *log)
{
    int fd;

    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    signal(SIGPIPE, SIG_DFL);
    if (out >= 0)
        dup2(out, STDOUT_FILENO);
    if (!log)
        return;
    fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0666);
    if (fd < 0)
        _exit(70);
    dup2(fd, STDERR_FILENO);
}

/* Starts a program of ours, its standard output to out unless that is -1, its standard error to log unless
 * that is NULL. */
static pid_t start(struct demo *d, int out, const char *log, char *const *arguments)
{
    char program[PATH_SIZE + 64];
    pid_t pid;

    snprintf(program, sizeof program, "%s/%s", d->bin, arguments[0]);
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        become_child(out, log);
        execv(program, arguments);
        fprintf(stderr, "demo: %s: %s\n", program, strerror(errno));
        _exit(70);
    }
    if (pid < 0)
        fail(d, "%s: %s", arguments[0], strerror(errno));
    return pid < 0 ? 0 : pid;
}

/* The exit code; -1: killed by a signal. */
static int await_exit(pid_t pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Tells *pid to end; kills it when it does not. It must exit with 0. */
static bool stop(struct demo *d, pid_t *pid, const char *name)
{
    int64_t limit = mono_us() + START_LIMIT_US;
    siginfo_t ended;
    int code;

    if (!*pid)
        return true;
    kill(*pid, SIGTERM);
    do {
        ended.si_pid = 0;
        waitid(P_PID, (id_t)*pid, &ended, WEXITED | WNOHANG | WNOWAIT);
        if (!ended.si_pid)
            sleep_until(mono_us() + 5000);
    } while (!ended.si_pid && mono_us() < limit);
    if (!ended.si_pid)
        kill(*pid, SIGKILL);
    code = await_exit(*pid);
    *pid = 0;
    return code == 0 ? true : fail(d, "%s: ended with %d when told to stop", name, code);
}

/* Runs a program of ours to its end and hands its output to the caller, who frees it. NULL: it could not be
 * run. */
static char *run_captured(struct demo *d, int *code, char *const *arguments)
{
    char *text = NULL;
    size_t len = 0;
    ssize_t got = 1;
    int out[2];
    pid_t pid;

    *code = -1;
    if (pipe2(out, O_CLOEXEC) < 0)
        return NULL;
    pid = start(d, out[1], NULL, arguments);
    close(out[1]);
    while (pid && got > 0) {
        char *grown = realloc(text, len + 65537);

        text = grown ? grown : text;
        got = grown ? read(out[0], text + len, 65536) : 0;
        if (got < 0 && errno == EINTR)
            got = 1;
        else if (got > 0)
            len += (size_t)got;
    }
    close(out[0]);
    *code = pid ? await_exit(pid) : -1;
    if (text)
        text[len] = '\0';
    return text;
}

static json_t *run_json(struct demo *d, int *code, char *const *arguments)
{
    char *text = run_captured(d, code, arguments);
    json_t *json = text ? json_loads(text, JSON_DISABLE_EOF_CHECK, NULL) : NULL;

    free(text);
    return json;
}

/* Shows a command as one would type it, and runs it. */
static bool run_shown(struct demo *d, char *const *arguments)
{
    int code;
    pid_t pid;

    printf("$ %s", arguments[0]);
    for (int i = 1; arguments[i]; i++) {
        if (strcmp(arguments[i], "--redis") == 0 && arguments[i + 1])
            i++;
        else
            printf(" %s", arguments[i]);
    }
    printf("\n");
    pid = start(d, -1, NULL, arguments);
    code = pid ? await_exit(pid) : -1;
    return code == 0 ? true : fail(d, "%s %s: exit code %d", arguments[0], arguments[1], code);
}

/* ---- Setting up */

static bool find_build(struct demo *d)
{
    ssize_t len = readlink("/proc/self/exe", d->bin, sizeof d->bin - 1);

    if (len < 0)
        return fail(d, "/proc/self/exe: %s", strerror(errno));
    d->bin[len] = '\0';
    for (int up = 0; up < 2; up++) /* build/examples/demo */
        *strrchr(d->bin, '/') = '\0';
    return true;
}

static bool make_folder(struct demo *d)
{
    const char *parent = getenv("TMPDIR");
    char path[PATH_SIZE];

    snprintf(path, sizeof path, "%s/weir-demo.XXXXXX", parent && *parent ? parent : "/tmp");
    if (!mkdtemp(path))
        return fail(d, "%s: %s", path, strerror(errno));
    d->folder = realpath(path, NULL);
    return d->folder && chdir(d->folder) == 0 ? true : fail(d, "%s: %s", path, strerror(errno));
}

static bool make_input(struct demo *d)
{
    char count[24];

    snprintf(count, sizeof count, "%ld", d->businesses);
    return run_shown(d, (char *[]){"examples/weekly_summary", ".", "--businesses", count, NULL});
}

/* weir dev says where its Redis is once that answers. */
static bool start_redis(struct demo *d)
{
    char line[512] = "";
    json_t *said;
    int out[2];

    if (pipe2(out, O_CLOEXEC) < 0)
        return fail(d, "pipe: %s", strerror(errno));
    printf("$ weir dev\n");
    d->dev = start(d, out[1], "dev.log", (char *[]){"weir", "dev", "--json", NULL});
    close(out[1]);
    while (read(out[0], line, sizeof line - 1) < 0 && errno == EINTR && !interrupted)
        ;
    close(out[0]);
    said = json_loads(line, 0, NULL);
    snprintf(d->url, sizeof d->url, "%s", said ? json_string_value(json_object_get(said, "redis")) : "");
    json_decref(said);
    return *d->url ? go_on(d) : fail(d, "weir dev: no Redis; see %s/dev.log", d->folder);
}

static bool start_worker(struct demo *d, int i)
{
    char handler[PATH_SIZE + 64], trace[32], log[32];

    snprintf(handler, sizeof handler, "%s/examples/weekly_summary_handler.so", d->bin);
    snprintf(trace, sizeof trace, "trace-%d.ndjson", i + 1);
    snprintf(log, sizeof log, "worker-%d.log", i + 1);
    d->traces[i] = fopen(trace, "w+e");
    if (!d->traces[i])
        return fail(d, "%s: %s", trace, strerror(errno));
    d->workers[i] = start(d, -1, log,
                          (char *[]){"weir", "worker", "--redis", d->url, "--load", handler, "-c", EXECUTORS,
                                     "--trace", trace, "--grace", "5s", NULL});
    return d->workers[i];
}

static long workers_seen(struct demo *d)
{
    int code;
    json_t *status = run_json(d, &code, (char *[]){"weir", "status", "--json", "--redis", d->url, NULL});
    long count = status ? (long)json_array_size(json_object_get(status, "workers")) : 0;

    json_decref(status);
    return count;
}

static bool start_workers(struct demo *d)
{
    int64_t limit = mono_us() + START_LIMIT_US;

    printf("$ weir worker --load weekly_summary_handler.so -c %s --trace trace-N.ndjson    (%d times)\n",
           EXECUTORS, WORKERS);
    for (int i = 0; i < WORKERS; i++)
        if (!start_worker(d, i))
            return false;
    while (workers_seen(d) < WORKERS) {
        if (mono_us() > limit)
            return fail(d, "the workers did not come up; see %s/worker-1.log", d->folder);
        if (!go_on(d))
            return false;
        sleep_until(mono_us() + 20000);
    }
    return true;
}

static bool set_rate(struct demo *d)
{
    char rule[64];

    snprintf(rule, sizeof rule, "%ld/s,burst=%ld", d->rate, d->burst);
    return run_shown(d, (char *[]){"weir", "rate", "set", "weekly_summary", rule, "--redis", d->url, NULL});
}

static bool enqueue_summaries(struct demo *d)
{
    return run_shown(d, (char *[]){"weir", "enqueue", "--from", "jobs.ndjson", "--redis", d->url, NULL});
}

/* ---- What Redis says, asked over a socket of its own */

/* The answer to a command, written inline; NUL-terminated, cut at size. Empty when there is none. */
static void ask_redis(struct demo *d, const char *command, char *answer, size_t size)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = 0, end = 1;
    ssize_t got = 1;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s", d->url + strlen("unix://"));
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
        send(fd, command, strlen(command), MSG_NOSIGNAL) > 0)
        while (len < end && got > 0 && (got = recv(fd, answer + len, size - 1 - len, 0)) > 0) {
            len += (size_t)got;
            answer[len] = '\0';
            if (*answer == '$' && strchr(answer, '\n')) /* "$<bytes>\r\n<bytes>\r\n" */
                end = (size_t)(strchr(answer, '\n') + 1 - answer) + (size_t)atol(answer + 1) + 2;
        }
    answer[len] = '\0';
    close(fd);
}

/* All commands so far, those inside scripts too. */
static long long count_commands(struct demo *d)
{
    static char answer[65536];
    long long sum = 0;

    ask_redis(d, "INFO commandstats\r\n", answer, sizeof answer);
    for (const char *at = answer; (at = strstr(at, ":calls=")); at++)
        sum += atoll(at + strlen(":calls="));
    return sum;
}

/* How often a summary was moved to its lane. */
static long long count_denials(struct demo *d)
{
    char answer[128];
    const char *value;

    ask_redis(d, "HGET weir:{0}:stats:weekly_summary parked\r\n", answer, sizeof answer);
    value = strchr(answer, '\n');
    return value ? atoll(value + 1) : 0;
}

/* ---- While it runs */

static void note_start(struct demo *d, const char *line)
{
    json_t *start = json_loads(line, 0, NULL);
    const char *type, *id;
    json_int_t at_us;
    long number;

    if (json_unpack(start, "{s:s, s:s, s:I}", "type", &type, "id", &id, "start", &at_us) == 0) {
        if (strcmp(type, "weekly_summary") == 0 && d->start_count < d->businesses)
            d->starts_us[d->start_count++] = at_us;
        else if (sscanf(id, "receipt-%ld", &number) == 1 && number >= 0 && number < d->receipt_count &&
                 !d->receipts[number].started_us) {
            d->receipts[number].started_us = at_us;
            d->receipts_started++;
        }
    }
    json_decref(start);
}

/* The lines that came since the last look; a half one is left for the next. */
static void read_traces(struct demo *d)
{
    for (int i = 0; i < WORKERS; i++) {
        char line[1024];
        long at;

        clearerr(d->traces[i]);
        while (at = ftell(d->traces[i]), fgets(line, sizeof line, d->traces[i])) {
            if (!strchr(line, '\n')) {
                fseek(d->traces[i], at, SEEK_SET);
                break;
            }
            note_start(d, line);
        }
    }
}

static bool enqueue_receipt(struct demo *d, struct weir *w)
{
    char id[32], args[96];
    long number = d->receipt_count;

    if (number == d->receipts_max)
        return true;
    snprintf(id, sizeof id, "receipt-%ld", number);
    snprintf(args, sizeof args, "{\"business_id\":\"b%06ld\",\"amount_cents\":%ld}", number % d->businesses,
             100 + number * 37 % 9000);
    d->receipts[number].enqueued_us = clock_us(CLOCK_REALTIME);
    d->receipt_count++;
    if (weir_enqueue(w, &(struct weir_job_spec){.type = "receipt", .id = id, .args = args}, NULL) < 0)
        return fail(d, "receipt %ld: %s", number, weir_message(w));
    return true;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Of the receipts that have started, how many milliseconds they waited; -1: none has. */
static double receipt_latency_ms(const struct demo *d, double share)
{
    double *ms = calloc((size_t)d->receipt_count + 1, sizeof *ms), answer = -1;
    long count = 0;

    for (long i = 0; ms && i < d->receipt_count; i++)
        if (d->receipts[i].started_us)
            ms[count++] = (double)(d->receipts[i].started_us - d->receipts[i].enqueued_us) / 1e3;
    if (count) {
        qsort(ms, (size_t)count, sizeof *ms, by_value);
        answer = ms[(long)((double)(count - 1) * share)];
    }
    free(ms);
    return answer;
}

static int started_lately(const struct demo *d)
{
    int64_t since = clock_us(CLOCK_REALTIME) - 1000000;
    int count = 0;

    for (long i = 0; i < d->start_count; i++)
        count += d->starts_us[i] > since;
    return count;
}

static void show_progress(const struct demo *d, int64_t began_us, bool on_terminal)
{
    static const char bar[] = "##############################";
    int filled = (int)(d->start_count * (long)(sizeof bar - 1) / d->businesses);

    if (on_terminal)
        fprintf(stderr, "\r\033[K[%-30.*s] ", filled, bar);
    fprintf(stderr,
            "%5.1f s  %ld of %ld summaries, %d in the last second; %ld of %ld receipts, p99 %.1f ms%s",
            (double)(mono_us() - began_us) / 1e6, d->start_count, d->businesses, started_lately(d),
            d->receipts_started, d->receipt_count, receipt_latency_ms(d, 0.99), on_terminal ? "" : "\n");
}

static bool all_started(const struct demo *d)
{
    return d->start_count == d->businesses && d->receipts_started == d->receipt_count;
}

/* Enqueues receipts as long as summaries wait, and looks on until all has started. */
static bool run_backlog(struct demo *d, struct weir *w, bool on_terminal)
{
    int64_t began_us = mono_us(), receipt_us = began_us, shown_us = began_us;
    int64_t limit_us = began_us + d->businesses * 1000000 / d->rate + BACKLOG_LIMIT_US;
    int64_t every_us = on_terminal ? SHOW_EVERY_US : SHOW_EVERY_NO_TERMINAL_US;
    bool good = true;

    while (good && !all_started(d)) {
        if (d->start_count < d->businesses)
            good = enqueue_receipt(d, w);
        read_traces(d);
        if (mono_us() - shown_us >= every_us) {
            show_progress(d, began_us, on_terminal);
            shown_us += every_us;
        }
        if (mono_us() > limit_us)
            good = fail(d, "not done in time: %ld of %ld summaries and %ld of %ld receipts have started",
                        d->start_count, d->businesses, d->receipts_started, d->receipt_count);
        receipt_us += RECEIPT_EVERY_US;
        sleep_until(receipt_us);
        good = good && go_on(d);
    }
    show_progress(d, began_us, on_terminal);
    if (on_terminal)
        fputc('\n', stderr);
    return good;
}

/* All jobs of both types are done by Redis's own count, none of them after a retry. */
static bool all_done(struct demo *d)
{
    int code;
    json_t *status = run_json(d, &code, (char *[]){"weir", "status", "--json", "--redis", d->url, NULL});
    json_t *types = json_object_get(status, "types");
    json_t *summaries = json_object_get(types, "weekly_summary"),
           *receipts = json_object_get(types, "receipt");
    bool done = json_integer_value(json_object_get(summaries, "done")) == d->businesses &&
                json_integer_value(json_object_get(receipts, "done")) == d->receipt_count;

    json_decref(status);
    return done;
}

static bool await_done(struct demo *d)
{
    int64_t limit = mono_us() + START_LIMIT_US;

    while (!all_done(d)) {
        if (mono_us() > limit)
            return fail(d, "all jobs have started, but weir status does not show them all done");
        if (!go_on(d))
            return false;
        sleep_until(mono_us() + 50000);
    }
    return true;
}

static bool run_jobs(struct demo *d)
{
    struct weir *w = weir_new(d->url, NULL);
    long long before = count_commands(d);
    bool good = w ? enqueue_summaries(d) : fail(d, "out of memory");

    if (good)
        printf("and meanwhile a receipt every %d ms, a type without a limit, behind the backlog\n",
               RECEIPT_EVERY_US / 1000);
    good = good && run_backlog(d, w, isatty(STDERR_FILENO)) && await_done(d);
    d->commands = count_commands(d) - before;
    d->denials = count_denials(d);
    weir_free(w);
    return good;
}

/* ---- Checking the files, without the code that wrote them */

struct sums {
    long long spent_cents, refunded_cents, transactions;
};

static bool sum_transactions(const char *business_id, struct sums *sums)
{
    char path[64], line[512];
    long long cents;
    FILE *file;

    *sums = (struct sums){0};
    snprintf(path, sizeof path, "transactions/%s.ndjson", business_id);
    file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "{\"at\":\"%*[^\"]\",\"merchant\":\"%*[^\"]\",\"amount_cents\":%lld", &cents) == 1) {
            *(cents < 0 ? &sums->refunded_cents : &sums->spent_cents) += llabs(cents);
            sums->transactions++;
        }
    if (file)
        fclose(file);
    return file;
}

/* The number in the mail's line that begins with label, dots and commas left out; -1: there is no such line.
 */
static long long number_in_mail(const char *mail, const char *label)
{
    char begin[32];
    long long number = 0;
    const char *at;

    snprintf(begin, sizeof begin, "\n%s ", label);
    at = strstr(mail, begin);
    if (!at)
        return -1;
    for (at += strlen(begin); *at && *at != '\n'; at++)
        if (*at >= '0' && *at <= '9')
            number = number * 10 + (*at - '0');
    return number;
}

static bool mail_is_right(const char *business_id)
{
    char path[64], mail[8192];
    struct sums sums;
    size_t len;
    FILE *file;

    snprintf(path, sizeof path, "mail/%s.eml", business_id);
    file = fopen(path, "re");
    if (!file)
        return false;
    len = fread(mail, 1, sizeof mail - 1, file);
    mail[len] = '\0';
    fclose(file);
    return sum_transactions(business_id, &sums) && number_in_mail(mail, "Spent") == sums.spent_cents &&
           number_in_mail(mail, "Refunded") == sums.refunded_cents &&
           number_in_mail(mail, "Total") == llabs(sums.spent_cents - sums.refunded_cents) &&
           number_in_mail(mail, "Transactions") == sums.transactions && strstr(mail, "\nTop merchants\n1. ");
}

static long long count_files(const char *name)
{
    struct dirent *entry;
    long long count = 0;
    DIR *dir = opendir(name);

    while (dir && (entry = readdir(dir)))
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    if (dir)
        closedir(dir);
    return count;
}

static long long count_lines(const char *name)
{
    FILE *file = fopen(name, "re");
    long long count = 0;
    int c;

    while (file && (c = getc(file)) != EOF)
        count += c == '\n';
    if (file)
        fclose(file);
    return count;
}

static void check_files(struct demo *d)
{
    for (long i = 0; i < d->businesses; i++) {
        char id[32];

        snprintf(id, sizeof id, "b%06ld", i);
        d->mails_right += mail_is_right(id);
    }
    d->mails = count_files("mail");
    d->receipt_lines = count_lines("receipts.ndjson");
}

/* ---- Ending, and the table */

/* What the children left running has become ours (PR_SET_CHILD_SUBREAPER); it may still be about to end. */
static bool is_left_running(void)
{
    int64_t limit = mono_us() + LEFT_LIMIT_US;
    pid_t pid;

    while ((pid = waitpid(-1, NULL, WNOHANG)) >= 0 && mono_us() < limit)
        if (pid == 0)
            sleep_until(mono_us() + 5000);
    return pid >= 0;
}

static void stop_all(struct demo *d)
{
    for (int i = 0; i < WORKERS; i++)
        stop(d, &d->workers[i], "weir worker");
    stop(d, &d->dev, "weir dev");
    d->left_running = is_left_running();
    if (d->left_running)
        fail(d, "a process was left running");
}

static void verify(struct demo *d)
{
    char paths[WORKERS][32];
    char *arguments[3 + WORKERS + 1] = {"weir", "verify", "--json"};
    int code;

    for (int i = 0; i < WORKERS; i++) {
        snprintf(paths[i], sizeof paths[i], "trace-%d.ndjson", i + 1);
        arguments[3 + i] = paths[i];
    }
    d->verified = run_json(d, &code, arguments);
    if (code != 0)
        fail(d, "weir verify: exit code %d", code);
}

static struct row *add_row(struct demo *d, const char *what, bool good)
{
    struct row *row = &d->rows[d->row_count++];

    snprintf(row->what, sizeof row->what, "%s", what);
    row->good = good;
    return row;
}

static void row_count(struct demo *d, const char *what, long long found, long long wanted)
{
    struct row *row = add_row(d, what, found == wanted);

    snprintf(row->found, sizeof row->found, "%lld", found);
    snprintf(row->wanted, sizeof row->wanted, "%lld", wanted);
}

static void row_most(struct demo *d, const char *what, int digits, double found, double most)
{
    struct row *row = add_row(d, what, found >= 0 && found <= most);

    snprintf(row->found, sizeof row->found, "%.*f", digits, found);
    snprintf(row->wanted, sizeof row->wanted, "at most %.*f", digits, most);
}

/* The most starts that GCRA allows in any window of that length. */
static int64_t most_allowed(const struct demo *d, int64_t window_us)
{
    return (window_us * d->rate - 1 + (d->burst - 1) * 1000000) / 1000000 + 1;
}

static void rows_of_rate(struct demo *d)
{
    json_t *rule = json_array_get(json_object_get(d->verified, "rules"), 0), *window; /* there is one limit */
    double rate = json_number_value(json_object_get(rule, "rate_kept")), kept = rate / (double)d->rate;
    struct row *row = add_row(d, "rate kept beyond the first burst", kept >= KEPT_LEAST && kept <= KEPT_MOST);
    size_t i;

    snprintf(row->found, sizeof row->found, "%.2f/s, %.4f of it", rate, kept);
    snprintf(row->wanted, sizeof row->wanted, "%ld/s, %.2f to 1", d->rate, KEPT_LEAST);
    json_array_foreach(json_object_get(rule, "windows"), i, window)
    {
        int64_t window_us = llround(json_number_value(json_object_get(window, "window")) * 1e6);

        if (i == 2) /* the rule's own period: a second again */
            break;
        row_most(d, window_us < 500000 ? "most starts in any 100 ms" : "most starts in any second", 0,
                 json_number_value(json_object_get(window, "most")), (double)most_allowed(d, window_us));
    }
    row_count(d, "starts before their time (weir verify)",
              d->verified ? json_integer_value(json_object_get(d->verified, "violations")) : -1, 0);
}

static void row_of_latency(struct demo *d)
{
    double p50 = receipt_latency_ms(d, 0.5), p99 = receipt_latency_ms(d, 0.99);
    struct row *row = add_row(d, "receipts, enqueue to start: p50, p99", p99 >= 0 && p99 < LATENCY_MOST_MS);

    snprintf(row->found, sizeof row->found, "%.1f ms, %.1f ms", p50, p99);
    snprintf(row->wanted, sizeof row->wanted, "p99 under %.0f ms", LATENCY_MOST_MS);
}

static void make_table(struct demo *d)
{
    long jobs = d->businesses + d->receipt_count;

    row_count(d, "summaries done", d->start_count, d->businesses);
    row_count(d, "files written", d->mails, d->businesses);
    row_count(d, "files with the right totals", d->mails_right, d->businesses);
    row_count(d, "receipts done", d->receipt_lines, d->receipt_count);
    rows_of_rate(d);
    row_most(d, "denials per summary", 3, (double)d->denials / (double)d->businesses, DENIALS_MOST);
    row_most(d, "Redis commands per job", 2, (double)d->commands / (double)jobs, COMMANDS_MOST);
    row_of_latency(d);
    row_count(d, "left running", d->left_running, 0);
}

static void print_table(struct demo *d)
{
    printf("\n%-40s %20s   %s\n", "", "found", "wanted");
    for (int i = 0; i < d->row_count; i++) {
        const struct row *row = &d->rows[i];

        printf("%-40s %20s   %-18s %s\n", row->what, row->found, row->wanted, row->good ? "ok" : "WRONG");
        if (!row->good)
            fail(d, "%s: %s, wanted %s", row->what, row->found, row->wanted);
    }
    putchar('\n');
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void)status, (void)kind, (void)walk;
    return remove(path);
}

/* Everything that the demo made, unless it is to be looked at. */
static void tidy(struct demo *d)
{
    for (int i = 0; i < WORKERS; i++)
        if (d->traces[i])
            fclose(d->traces[i]);
    if (d->folder && (d->keep || (*d->failure && !interrupted)))
        printf("kept for you to look at: %s\n", d->folder);
    else if (d->folder)
        nftw(d->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(d->folder);
    json_decref(d->verified);
    free(d->starts_us);
    free(d->receipts);
}

/* ---- The whole */

static bool allocate(struct demo *d)
{
    d->receipts_max = (d->businesses * 1000000 / d->rate + BACKLOG_LIMIT_US) / RECEIPT_EVERY_US + 1;
    d->starts_us = calloc((size_t)d->businesses, sizeof *d->starts_us);
    d->receipts = calloc((size_t)d->receipts_max, sizeof *d->receipts);
    return d->starts_us && d->receipts ? true : fail(d, "out of memory");
}

static void run(struct demo *d)
{
    bool good = allocate(d) && find_build(d) && make_folder(d) && make_input(d) && start_redis(d) &&
                set_rate(d) && start_workers(d) && run_jobs(d);

    stop_all(d);
    if (!good)
        return;
    verify(d);
    check_files(d);
    make_table(d);
    print_table(d);
}

static bool parse_number(const char *text, long most, long *number)
{
    char *end;

    *number = strtol(text, &end, 10);
    return end != text && !*end && *number >= 1 && *number <= most;
}

static bool parse_options(int argc, char **argv, struct demo *d)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        bool good;

        if (strcmp(argv[i], "--keep") == 0) {
            d->keep = true;
            continue;
        }
        if (strcmp(argv[i], "--businesses") == 0)
            good = parse_number(value, 999999, &d->businesses);
        else if (strcmp(argv[i], "--rate") == 0)
            good = parse_number(value, 100000, &d->rate);
        else
            good = strcmp(argv[i], "--burst") == 0 && parse_number(value, 100000, &d->burst);
        if (!good)
            return false;
        i++;
    }
    return true;
}

int main(int argc, char **argv)
{
    struct demo d = {.businesses = 2000, .rate = 200, .burst = 20};
    struct sigaction action = {.sa_handler = on_signal};

    if (!parse_options(argc, argv, &d)) {
        fprintf(stderr, "usage: demo [--businesses 2000] [--rate 200] [--burst 20] [--keep]\n");
        return 64;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    unsetenv("WEIR_NAMESPACE");
    unsetenv("WEEKLY_SUMMARY_DIR");
    run(&d);
    tidy(&d);
    if (*d.failure)
        fprintf(stderr, "demo: %s\n", d.failure);
    else
        printf("all is right\n");
    return interrupted ? 130 : *d.failure ? 1 : 0;
}

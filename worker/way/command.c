/* Runs a command for a job: one process in a process group of its own, no shell. The job as JSON goes to its
 * standard input and its metadata to the environment; its exit code decides:
 *
 *    0              done
 *    75             throttled; the last line of standard output is how long its limit is paused: a number, of
 *                   seconds, or a duration
 *    65             dead
 *    anything else  retry; a signal too, but for TERM where the worker is told to stop at the same time
 *
 * WEIR_REPORT names an empty file where the type is kept or limits hold the job. {"spent":COST}, which the command has written there, is what the
 * job cost in truth; with "result" beside it that is the job's result, as any other JSON is, when it is done.
 *
 * The last lines of standard error are the reason. The command has ended when its process has: a grandchild
 * that keeps a pipe open is not waited for. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/decimal.h"
#include "core/duration.h"
#include "core/log/log.h"
#include "core/spawn.h"
#include "queue/job/json.h"
#include "worker/way/way.h"
#include "worker/way/weir_job.h"

#define EXIT_THROTTLED 75
#define EXIT_DEAD 65
#define STOP_HEARD_US 100000 /* between the TERM of a command and that of its worker, at most */

struct command {
    struct task *task;
    struct process process;
    char front[FRONT_SIZE];
    struct iovec left[2]; /* what is not yet written of the front, and of the rest of the body */
    struct tail out_tail, err_tail;
    char report[256]; /* the path of the file for its result; "": none */
};

/* ---- Starting */

/* Variables of a job are "NAME=value" each; one whose value the job has not is left out. */
#define VARIABLES_MOST 9
#define VARIABLE_SIZE 640
struct variables {
    char text[VARIABLES_MOST][VARIABLE_SIZE];
    char *at[VARIABLES_MOST];
    size_t count;
};

static void add_variable(struct variables *v, const char *name, struct span value)
{
    if (value.len > 0 && value.len < VARIABLE_SIZE - 32) {
        snprintf(v->text[v->count], VARIABLE_SIZE, "%s=%.*s", name, (int)value.len, value.at);
        v->at[v->count] = v->text[v->count];
        v->count++;
    }
}

static void make_variables(struct variables *v, const struct task *task, const char *report)
{
    const char *queue = memchr(task->token.at, '/', task->token.len);
    char attempt[24], enqueued[ENQUEUED_SIZE];

    snprintf(attempt, sizeof attempt, "%d", task->attempts + 1);
    task_enqueued(task, enqueued);
    v->count = 0;
    add_variable(v, "WEIR_JOB_ID", task->view.id);
    add_variable(v, "WEIR_JOB_TYPE", task->view.type);
    add_variable(v, "WEIR_JOB_ATTEMPT", span_str(attempt));
    add_variable(v, "WEIR_JOB_ENQUEUED_AT", span_str(enqueued));
    add_variable(v, "WEIR_JOB_KEY", task->view.key);
    add_variable(v, "WEIR_JOB_BATCH", task->batch);
    add_variable(v, "WEIR_JOB_QUEUE", (struct span){queue + 1, strcspn(queue + 1, "!/")});
    add_variable(v, "TRACEPARENT", task->view.traceparent);
    add_variable(v, "WEIR_REPORT", span_str(report));
}

/* ---- Its result */

/* A command runs without the file where none can be made, which is logged. */
static void open_report(struct command *c)
{
    const char *folder = getenv("TMPDIR");
    int fd;

    c->report[0] = '\0';
    if (c->task->handler->keep_us == 0 && c->task->slot_us == 0)
        return;
    snprintf(c->report, sizeof c->report, "%s/weir-report-XXXXXX", folder && *folder ? folder : "/tmp");
    if ((fd = mkostemp(c->report, O_CLOEXEC)) >= 0) {
        close(fd);
        return;
    }
    task_log(LOG_LEVEL_WARN, c->task, "no WEIR_REPORT: cannot make %s: %s", c->report, strerror(errno));
    c->report[0] = '\0';
}

static void close_report(const struct command *c)
{
    if (c->report[0])
        unlink(c->report);
}

/* Finds what the job cost in an object that says that, and its result; at NULL: it is none of these objects, and all of it is the result. */
static struct span find_spent(struct span report, struct span *result)
{
    struct json_members m = {.at = m.few, .capacity = JSON_MEMBERS_FEW};
    struct span spent = {NULL, 0};
    struct json j;
    const char *at;

    json_begin(&j, report.at, report.len);
    at = json_space(&j, report.at);
    if (at != j.end && *at == '{' && (at = json_members(&j, at, &m)) && json_end(&j, at)) {
        spent = json_member(&m, "spent");
        *result = json_member(&m, "result");
        if (m.count != (spent.at != NULL) + (size_t)(result->at != NULL))
            spent.at = NULL;
    }
    json_members_free(&m);
    return spent;
}

static void hear_report(struct task *task, struct span report)
{
    struct span result = report, spent = find_spent(report, &result);

    if (spent.at)
        task_spent_json(task, spent);
    else
        result = report;
    if (result.at && task->end == END_DONE && task->handler->keep_us > 0)
        task_result(task, result);
}

static void read_report(struct command *c)
{
    char *text = malloc(RESULT_MOST + 1);
    int fd = open(c->report, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    size_t len = 0;
    ssize_t n = 1;

    while (text && fd >= 0 && len <= RESULT_MOST && (n = read(fd, text + len, RESULT_MOST + 1 - len)) > 0)
        len += (size_t)n;
    if (len > 0)
        hear_report(c->task, (struct span){text, len});
    if (fd >= 0)
        close(fd);
    free(text);
}

/* Returns an errno. */
static int start(struct command *c)
{
    struct variables variables;
    int rc;

    make_variables(&variables, c->task, c->report);
    rc = process_start(&c->process, c->task->handler->runner->state, variables.at, variables.count);
    if (rc != 0)
        return rc;
    atomic_store(&c->task->process, c->process.pid);
    if (atomic_load(&c->task->asked) != ASKED_NOTHING)
        kill(-c->process.pid, SIGTERM); /* the task was asked to end before there was a process */
    return 0;
}

/* ---- Talking to it */

/* Reads what a pipe of the command holds now, and closes it at its end. */
static void read_some(int *fd, struct tail *tail)
{
    char bytes[16 * 1024];
    ssize_t n = read(*fd, bytes, sizeof bytes);

    if (n > 0)
        tail_keep(tail, bytes, (size_t)n);
    else if (n == 0 || errno != EAGAIN)
        close_fd(fd);
}

static void read_rest(int *fd, struct tail *tail)
{
    for (int i = 0; i < 64 && *fd >= 0; i++) { /* a grandchild may hold the pipe and write for ever */
        struct pollfd p = {.fd = *fd, .events = POLLIN};

        if (poll(&p, 1, 0) <= 0)
            break;
        read_some(fd, tail);
    }
    close_fd(fd);
}

static void write_some(struct command *c)
{
    ssize_t n = writev(c->process.in, c->left, 2);
    size_t written = n > 0 ? (size_t)n : 0;

    for (int i = 0; i < 2; i++) {
        size_t part = written < c->left[i].iov_len ? written : c->left[i].iov_len;

        c->left[i].iov_base = (char *)c->left[i].iov_base + part;
        c->left[i].iov_len -= part;
        written -= part;
    }
    if (c->left[1].iov_len == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        close_fd(&c->process.in); /* a command need not read its job */
}

static void begin_writing(struct command *c)
{
    struct span rest = task_front(c->task, c->front);

    c->left[0] = (struct iovec){.iov_base = c->front, .iov_len = strlen(c->front)};
    c->left[1] = (struct iovec){.iov_base = (char *)rest.at, .iov_len = rest.len};
}

/* Feeds the command and reads what it writes, until it has ended. Without pidfd (an old kernel) its pipes show its end. */
static void converse(struct command *c)
{
    while (c->process.pidfd >= 0 || c->process.out >= 0 || c->process.err >= 0) {
        struct pollfd fds[] = {{.fd = c->process.pidfd, .events = POLLIN},
                               {.fd = c->process.in, .events = POLLOUT},
                               {.fd = c->process.out, .events = POLLIN},
                               {.fd = c->process.err, .events = POLLIN}};

        if (poll(fds, 4, -1) < 0)
            continue;
        if (fds[1].revents)
            write_some(c);
        if (fds[2].revents)
            read_some(&c->process.out, &c->out_tail);
        if (fds[3].revents)
            read_some(&c->process.err, &c->err_tail);
        if (fds[0].revents)
            break;
    }
    read_rest(&c->process.out, &c->out_tail);
    read_rest(&c->process.err, &c->err_tail);
    close_fd(&c->process.in);
    close_fd(&c->process.pidfd);
}

/* ---- Ending */

/* Reads the last line of standard output, a number of seconds or a duration. -1: there is none, or it is neither, which is logged. */
static double asked_pause_s(struct command *c)
{
    struct tail *t = &c->out_tail;
    char line[64], *end;
    size_t from;
    struct error e;
    int64_t us;
    double value;

    while (t->len > 0 && strchr(" \t\r\n", t->at[t->len - 1]))
        t->len--;
    for (from = t->len; from > 0 && t->at[from - 1] != '\n';)
        from--;
    if (t->len == from)
        return -1;
    snprintf(line, sizeof line, "%.*s", (int)(t->len - from), t->at + from);
    value = decimal_read(line, &end);
    if (*end == '\0' && isfinite(value) && value >= 0)
        return value;
    if (duration_parse(line, &us, &e) == 0)
        return (double)us / 1e6;
    task_log(
        LOG_LEVEL_WARN, c->task,
        "wrong answer: its last line must be a number of seconds, 0 or more, or a duration such as 30s, and "
        "counts as left out: %s",
        line);
    return -1;
}

/* Notes that TERM has ended the command. Where it came to a whole group, the worker is told to stop a moment later: that is awaited. */
static void hear_terminated(struct task *task)
{
    task->terminated = true;
    clock_sleep_until(clock_mono_us() + STOP_HEARD_US);
}

static void end(struct command *c, int status)
{
    char reason[END_REASON_SIZE];
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;

    process_reason(reason, status, &c->err_tail);
    if (process_was_terminated(status) && atomic_load(&c->task->asked) == ASKED_NOTHING)
        hear_terminated(c->task);
    if (code == 0)
        task_finish(c->task, END_DONE, -1, reason);
    else if (code == EXIT_THROTTLED)
        task_finish(c->task, END_THROTTLED, asked_pause_s(c), reason);
    else
        task_finish(c->task, code == EXIT_DEAD ? END_DEAD : END_RETRY, -1, reason);
}

/* Held while a process is waited for and its number forgotten: behind waitpid() the number may be another process's, which must get no signal. */
static pthread_mutex_t process_lock = PTHREAD_MUTEX_INITIALIZER;

static int await_end(struct command *c)
{
    siginfo_t info;
    int status;

    while (waitid(P_PID, (id_t)c->process.pid, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR)
        ;
    pthread_mutex_lock(&process_lock);
    atomic_store(&c->task->process, 0);
    status = process_wait(c->process.pid);
    pthread_mutex_unlock(&process_lock);
    return status;
}

static void run(struct task *task)
{
    struct command c = {.task = task, .process = {.pidfd = -1, .in = -1, .out = -1, .err = -1}};
    char **argv = task->handler->runner->state;
    char why[END_REASON_SIZE];
    int rc;

    if (runner_rests(task->handler->runner)) {
        task_uncall(task);
        return;
    }
    if (!task_call(task))
        return;
    open_report(&c);
    if ((rc = start(&c)) != 0) {
        close_report(&c);
        snprintf(why, sizeof why, "cannot run %.512s: %s", argv[0], strerror(rc));
        task_unable(task, why);
        return;
    }
    runner_works(task->handler->runner);
    begin_writing(&c);
    converse(&c);
    end(&c, await_end(&c));
    if (c.report[0])
        read_report(&c);
    close_report(&c);
}

static void end_group(struct task *task, bool force)
{
    pid_t pid;

    pthread_mutex_lock(&process_lock);
    pid = atomic_load(&task->process);
    if (pid > 0)
        kill(-pid, force ? SIGKILL : SIGTERM);
    pthread_mutex_unlock(&process_lock);
}

static const struct way command_way = {.name = "exec", .run = run, .end = end_group, .free = free};

int command_add(struct handlers *h, const char *type, const char *command, struct error *e)
{
    char **argv = command_split(type, command, e);

    return argv ? handlers_add(h, type, &command_way, argv, e) : e->status;
}

/* The children of --pipe are stood in for by ones that answer with the lines of the input. */
#include "core/clock.h"
#include "tests/fuzz/fuzz.h"
#include "worker/way/pipe_child.h"
#include "worker/way/way.h"

#define TASKS 6
#define IN_FLIGHT 2
#define CHILDREN_MOST 64

struct child {
    const struct child_events *events;
    void *arg;
    char *line;
    uint64_t sent;
    bool ended;
};

static struct child *children[CHILDREN_MOST];
static struct task *tasks[TASKS];
static int left;

/* ---- In place of worker/way/pipe_child.c and the pool */

struct child *__wrap_child_start(struct ev_loop *loop, const char *name, char *const argv[],
                                 int64_t kill_after_us, const struct child_events *events, void *arg,
                                 int *rc);
void __wrap_child_free(struct child *c);
char *__wrap_child_line(struct child *c, size_t len);
void __wrap_child_send(struct child *c, size_t len);
uint64_t __wrap_child_sent(const struct child *c);
uint64_t __wrap_child_taken(const struct child *c);
void __wrap_child_close(struct child *c);
void __wrap_child_end(struct child *c, bool force);
void __wrap_child_distrust(struct child *c, const char *why);
bool __wrap_child_is_ending(const struct child *c);
bool __wrap_child_wait(struct child *c, int64_t until_us);
int __wrap_child_pid(const struct child *c);
bool __wrap_child_was_terminated(const struct child *c);
void __wrap_task_ended(struct task *task);
void __wrap_runner_rest(struct runner *runner, double most_s);

struct child *__wrap_child_start(struct ev_loop *loop, const char *name, char *const argv[],
                                 int64_t kill_after_us, const struct child_events *events, void *arg, int *rc)
{
    struct child *c;

    (void)loop, (void)name, (void)argv, (void)kill_after_us;
    for (size_t i = 0; i < CHILDREN_MOST; i++)
        if (!children[i]) {
            c = calloc(1, sizeof *c);
            must_hold(c != NULL);
            c->events = events;
            c->arg = arg;
            return children[i] = c;
        }
    *rc = WEIR_ENOTNOW;
    return NULL;
}

void __wrap_child_free(struct child *c)
{
    for (size_t i = 0; c && i < CHILDREN_MOST; i++)
        if (children[i] == c)
            children[i] = NULL;
    if (c)
        free(c->line);
    free(c);
}

char *__wrap_child_line(struct child *c, size_t len)
{
    free(c->line);
    return c->line = malloc(len);
}

void __wrap_child_send(struct child *c, size_t len)
{
    must_hold(c->line[len - 1] == '\n' && memchr(c->line, '\n', len) == c->line + len - 1);
    c->sent += len;
}

uint64_t __wrap_child_sent(const struct child *c)
{
    return c->sent;
}

uint64_t __wrap_child_taken(const struct child *c)
{
    return c->sent / 2;
}

void __wrap_child_close(struct child *c)
{
    c->ended = true;
}

void __wrap_child_end(struct child *c, bool force)
{
    (void)force;
    c->ended = true;
}

void __wrap_child_distrust(struct child *c, const char *why)
{
    fuzz_touch(why, strlen(why));
    c->ended = true;
}

bool __wrap_child_is_ending(const struct child *c)
{
    return c->ended;
}

bool __wrap_child_wait(struct child *c, int64_t until_us)
{
    (void)c, (void)until_us;
    return true;
}

bool __wrap_child_was_terminated(const struct child *c)
{
    (void)c;
    return false;
}

int __wrap_child_pid(const struct child *c)
{
    (void)c;
    return 1;
}

void __wrap_runner_rest(struct runner *runner, double most_s)
{
    (void)most_s;
    atomic_fetch_add(&runner->rest.failures, 1);
    atomic_store(&runner->rest.on, true);
}

static void free_task(struct task *task)
{
    task_free(task);
    left--;
}

void __wrap_task_ended(struct task *task)
{
    must_hold(task->spent >= -1 && (!task->reason || strlen(task->reason) < 2000));
    for (int i = 0; i < TASKS; i++)
        if (tasks[i] == task)
            tasks[i] = NULL;
    free_task(task);
}

/* ---- */

static void start_tasks(struct handler *handler)
{
    static struct conditions conditions = {.lease_end_us = INT64_MAX};

    for (int i = 0; i < TASKS; i++) {
        char body[64];
        int len = snprintf(body, sizeof body, "{\"id\":\"j%d\",\"type\":\"t\",\"args\":[1,\n2]}", i);
        struct lease lease = {
            .token = span_str("1.00/q/t/"), .body = {body, (size_t)len}, .interrupted = i == 0};
        struct error e;

        lease.attrs = span_str("");
        lease.key = (struct span){lease.token.at + lease.token.len, 0};
        tasks[i] = task_new(&lease, handler, &conditions, span_str(""));
        must_hold(tasks[i] && job_read(tasks[i]->body.at, tasks[i]->body.len, &tasks[i]->view, &e) == 0);
        left++;
        handler->runner->way->start(tasks[i]);
    }
}

/* One line of a child; an empty one is its death. The next line is the next child's. */
static void hear(size_t turn, const char *line, size_t len)
{
    struct child *c = NULL;

    for (size_t i = 0; i < CHILDREN_MOST && !c; i++)
        c = children[(turn + i) % CHILDREN_MOST];
    if (!c)
        return;
    if (len == 0 || c->ended) {
        c->events->on_end(c->arg, "exit 1");
    } else {
        char *copy = malloc(len + 1); /* so that a sanitizer sees what is read behind it */

        must_hold(copy != NULL);
        memcpy(copy, line, len);
        copy[len] = '\n';
        c->events->on_line(c->arg, copy, len);
        free(copy);
    }
}

static void finish(struct handlers *handlers)
{
    handlers->runners->way->close(handlers->runners);
    for (int i = 0; i < TASKS; i++)
        if (tasks[i])
            free_task(tasks[i]);
    memset(tasks, 0, sizeof tasks);
    must_hold(left == 0);
    handlers_free(handlers);
}

int fuzz_pipe(const uint8_t *data, size_t size)
{
    static struct ev_loop *loop;
    struct handlers *handlers = calloc(1, sizeof *handlers);
    const char *at = (const char *)data, *end = at + size;
    struct error e;

    setenv("WEIR_LOG", "error", 0);
    loop = loop ? loop : ev_loop_new(0);
    must_hold(loop && handlers && pipe_add(handlers, "t", "/bin/true", IN_FLIGHT, &e) == 0);
    handlers->runners->host = (struct way_host){.loop = loop, .executors = TASKS};
    must_hold(handlers->runners->way->open(handlers->runners, &e) == 0);
    start_tasks(*handlers->at);
    for (size_t turn = 0; at < end; turn++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at)), *line_end = newline ? newline : end;

        hear(turn, at, (size_t)(line_end - at));
        at = newline ? newline + 1 : end;
    }
    finish(handlers);
    return 0;
}

/* --pipe: children that stay. A job is one line to a child, its answer one line from it:
 *
 *   {"attempt":1,"id":"...", ...}     the job as it is, blanks for its newlines. "attempt" is put in front
 *                                     unless the job has a member of that name
 *   {"id":"...","status":"done|retry|dead|throttled","after":s,"reason":"...","spent":{...},"result":any}     in any order; an id
 *                                     that is a number is that of the one job whose id reads as that number
 *
 * Children are started when jobs need them, at most as many as the executors can fill. A job goes to an idle
 * child, else to the one with the fewest jobs, else to a new one.
 *
 * When a child dies, the jobs whose lines it had not yet taken are given back as they are, with their slots; those
 * that it had are counted as interrupted. Who was interrupted before runs alone in its child, so that the innocent do
 * not die with the guilty. If the child died without reason to think that the next one does better, the type rests.
 * After that the next child gets one job at first.
 *
 * A line that is no answer is logged; a child that writes only such lines is ended. A wrong member
 * of an answer is logged too and counts as left out: the job has run, and its status stands. An answer that
 * cannot be read from behind the id on is a failure of that job: it waits for no other. To end one job, its
 * child is ended. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/log/log.h"
#include "queue/job/json.h"
#include "worker/way/pipe_answer.h"
#include "worker/way/pipe_child.h"
#include "worker/way/way.h"
#include "worker/way/weir_job.h"

#define WRONG_MOST 100 /* lines in a row that are no answers; more would only fill the log */

/* A job that waits for a child, or is in one. */
struct flight {
    struct flight *prev, *next;
    struct flights *in; /* NULL: it has ended */
    struct task *task;
    struct member *member; /* NULL: it waits */
    uint64_t begin;        /* how many bytes its child was sent before its line */
};

struct flights {
    struct flight *head, *tail; /* the first one sent is the head */
    int count;
};

struct member {
    struct member *next;
    struct pipe *pipe;
    struct child *child;
    struct flights flights;
    bool alone;   /* its job was interrupted before, and has the child to itself */
    bool ordered; /* we have told it to end */
    bool answered;
    int wrong;
};

struct pipe {
    struct runner *runner;
    char **argv;
    int in_flight, most;
    struct member *members;
    int count;
    struct flights waiting;
};

/* ---- Flights */

static void add(struct flights *to, struct flight *flight)
{
    flight->in = to;
    flight->next = NULL;
    flight->prev = to->tail;
    *(to->tail ? &to->tail->next : &to->head) = flight;
    to->tail = flight;
    to->count++;
}

static void take_out(struct flight *flight)
{
    struct flights *from = flight->in;

    assert(from);
    *(flight->prev ? &flight->prev->next : &from->head) = flight->next;
    *(flight->next ? &flight->next->prev : &from->tail) = flight->prev;
    from->count--;
    flight->in = NULL;
    flight->member = NULL;
}

static void end_flight(struct flight *flight, enum task_end end, double after_s, const char *reason)
{
    struct task *task = flight->task;

    take_out(flight);
    task_finish(task, end, after_s, reason);
    task_ended(task);
}

/* Ends a flight whose handler was not called, with the end that its task has been given. */
static void end_uncalled(struct flight *flight)
{
    struct task *task = flight->task;

    take_out(flight);
    task_ended(task);
}

static void give_back(struct flight *flight)
{
    task_uncall(flight->task);
    end_uncalled(flight);
}

static void give_back_waiting(struct pipe *p)
{
    while (p->waiting.head)
        give_back(p->waiting.head);
}

/* ---- A job as a line */

/* Sends a job, or ends it where it is not to begin any more or memory is short. */
static void send_job(struct member *member, struct flight *flight)
{
    struct task *task = flight->task;
    char front[FRONT_SIZE], *line = child_line(member->child, task->body.len + FRONT_SIZE);
    struct span rest;
    size_t len;

    if (!line)
        task_unable(task, "out of memory");
    if (!line || !task_call(task)) {
        end_uncalled(flight);
        return;
    }
    rest = task_front(task, front);
    len = strlen(front);
    memcpy(line, front, len);
    memcpy(line + len, rest.at, rest.len);
    len += rest.len;
    json_one_line(line, len);
    line[len++] = '\n';
    flight->begin = child_sent(member->child);
    child_send(member->child, len);
    take_out(flight);
    add(&member->flights, flight);
    flight->member = member;
    member->alone = task->interrupted > 0;
}

/* ---- Which child gets it */

static const struct child_events member_events;

static struct member *new_member(struct pipe *p)
{
    const struct way_host *host = &p->runner->host;
    struct member *member = calloc(1, sizeof *member);
    int rc = 0;

    if (member)
        member->child = child_start(host->loop, p->runner->types, p->argv, host->kill_after_us,
                                    &member_events, member, &rc);
    if (!member || !member->child) {
        runner_log(LOG_LEVEL_ERROR, p->runner, "cannot run %s: %s; its jobs are given back", p->argv[0],
                   member ? strerror(rc) : "out of memory");
        free(member);
        runner_rest(p->runner, REST_START_MOST_S);
        return NULL;
    }
    member->pipe = p;
    member->next = p->members;
    p->members = member;
    p->count++;
    return member;
}

static bool can_take(const struct member *member, bool suspect)
{
    bool unproven = atomic_load(&member->pipe->runner->rest.failures) > 0 && !member->answered;
    int room = unproven || suspect ? 1 : member->pipe->in_flight;

    return !child_is_ending(member->child) && !member->alone && member->flights.count < room;
}

static struct member *find_member(struct pipe *p, bool suspect)
{
    struct member *best = NULL;

    for (struct member *m = p->members; m; m = m->next)
        if (can_take(m, suspect) && (!best || m->flights.count < best->flights.count))
            best = m;
    if (!best && p->count < p->most && !runner_rests(p->runner))
        best = new_member(p);
    return best;
}

/* True when there is, or soon will be, a child for those that wait. */
static bool has_hope(const struct pipe *p)
{
    const struct member *m = p->members;

    while (m && child_is_ending(m->child))
        m = m->next;
    return m || !runner_rests(p->runner);
}

static void hand_out(struct pipe *p)
{
    while (p->waiting.head) {
        struct flight *first = p->waiting.head;
        struct member *member = find_member(p, first->task->interrupted > 0);

        if (!member)
            break;
        send_job(member, first);
    }
    if (!has_hope(p))
        give_back_waiting(p);
}

/* ---- Answers */

/* Finds the first flight of that id, from flight on. */
static struct flight *find_id(struct flight *flight, struct span id)
{
    while (flight && !span_is(flight->task->view.id, id))
        flight = flight->next;
    return flight;
}

/* Finds the first flight, from flight on, whose id is the number of an answer. */
static struct flight *find_number(struct flight *flight, const struct pipe_answer *answer)
{
    while (flight && !pipe_answer_means(answer, flight->task->view.id))
        flight = flight->next;
    return flight;
}

/* Finds the flight of an answer that was sent first. *ambiguous: the handler wrote a number, and other jobs may be meant. */
static struct flight *find_flight(const struct member *member, const struct pipe_answer *answer,
                                  bool *ambiguous)
{
    struct flight *flight = find_id(member->flights.head, answer->id);

    if (flight)
        return flight;
    flight = find_number(member->flights.head, answer);
    *ambiguous = flight && find_number(flight->next, answer);
    return flight;
}

static void complain(struct member *member, const char *what, struct span line)
{
    runner_log(LOG_LEVEL_WARN, member->pipe->runner, "child %d: wrong answer: %s: %.*s",
               child_pid(member->child), what, (int)(line.len < 200 ? line.len : 200), line.at);
    if (++member->wrong == WRONG_MOST)
        child_distrust(member->child, "it wrote 100 lines in a row that are no answers");
}

static bool is_blank(const char *line, size_t len)
{
    return len == 0 || (len == 1 && *line == '\r');
}

/* A child that gets no more jobs and has none is ended, when it does not end by itself. */
static void let_go(struct member *member)
{
    if (member->ordered && member->flights.count == 0)
        child_end_soon(member->child);
}

/* Ends the task of a flight by an answer. wrong: why the line is none; NULL: it is one. */
static void end_answered(struct member *member, struct flight *flight, const struct pipe_answer *answer,
                         const char *wrong)
{
    char text[sizeof(struct error) + 32], *reason = NULL;
    enum task_end end = END_RETRY;
    double after_s = -1;

    member->alone = false;
    if (wrong) {
        complain(member, wrong, answer->line);
        snprintf(text, sizeof text, "its handler's answer is %s", wrong);
        end_flight(flight, END_RETRY, -1, text);
    } else if (!pipe_answer_end(answer, &end)) {
        complain(member, "no such status", answer->line);
        end_flight(flight, END_RETRY, -1,
                   "its handler answered without a status of done, retry, dead, throttled");
    } else {
        member->answered = true;
        member->wrong = 0;
        runner_works(member->pipe->runner);
        pipe_answer_take(answer, flight->task, end, &after_s, &reason);
        end_flight(flight, end, after_s, reason);
        free(reason);
    }
    let_go(member);
    hand_out(member->pipe);
}

static void on_line(void *arg, const char *line, size_t len)
{
    struct member *member = arg;
    struct flight *flight;
    struct pipe_answer answer;
    struct error e = {0};
    bool ambiguous = false;

    if (is_blank(line, len))
        return;
    if (!pipe_answer_read(&answer, (struct span){line, len}, &e)) {
        complain(member, "not a JSON object", answer.line);
        return;
    }
    flight = find_flight(member, &answer, &ambiguous);
    if (ambiguous)
        error_set(&e, WEIR_EINPUT,
                  "ambiguous: several jobs have that number as id; write it as it came, a string");
    if (flight)
        end_answered(member, flight, &answer, e.status ? e.text : NULL);
    else
        complain(member, e.status ? "not a JSON object" : "no job of that id waits for one", answer.line);
    pipe_answer_free(&answer);
}

/* ---- The end of a child */

static void unlink_member(struct member *member)
{
    struct member **at = &member->pipe->members;

    while (*at != member)
        at = &(*at)->next;
    *at = member->next;
    member->pipe->count--;
}

static bool was_asked(const struct flight *flight)
{
    return atomic_load(&flight->task->asked) != ASKED_NOTHING;
}

/* Takes back the last jobs, which the child had not yet taken. A job that is over its time has failed: it had that long for being read. */
static void take_back(struct member *member, const char *reason)
{
    uint64_t taken = child_taken(member->child);
    struct flight *last;

    while ((last = member->flights.tail) && last->begin >= taken) {
        if (atomic_load(&last->task->asked) == ASKED_OVER_TIME)
            end_flight(last, END_RETRY, -1, reason);
        else
            give_back(last);
    }
}

/* Interrupts the jobs that the child had. Returns how many were interrupted. */
static int interrupt(struct member *member, const char *reason)
{
    int count = 0;

    while (member->flights.head) {
        struct flight *flight = member->flights.head;

        count += !was_asked(flight);
        flight->task->terminated = child_was_terminated(member->child);
        end_flight(flight, was_asked(flight) ? END_RETRY : END_INTERRUPTED, -1, reason);
    }
    return count;
}

static void on_end(void *arg, const char *reason)
{
    struct member *member = arg;
    struct pipe *p = member->pipe;
    int pid = child_pid(member->child);
    int begun;

    unlink_member(member);
    take_back(member, reason);
    begun = interrupt(member, reason);
    if (!member->ordered && (begun > 0 || !member->answered)) {
        runner_log(LOG_LEVEL_WARN, p->runner, "child %d died with %d jobs: %s", pid, begun, reason);
        runner_rest(p->runner, REST_CHILD_MOST_S);
    } else if (begun > 0) {
        runner_log(LOG_LEVEL_WARN, p->runner, "child %d was ended with %d other jobs", pid, begun);
    }
    child_free(member->child);
    free(member);
    hand_out(p);
}

static const struct child_events member_events = {on_line, on_end};

static void rested(struct runner *runner)
{
    hand_out(runner->state);
}

/* ---- The way */

static void start(struct task *task)
{
    struct pipe *p = task->handler->runner->state;
    struct flight *flight = calloc(1, sizeof *flight);

    task->state = flight;
    if (!flight) {
        task_unable(task, "out of memory");
        task_ended(task);
        return;
    }
    flight->task = task;
    add(&p->waiting, flight);
    hand_out(p);
}

static void end(struct task *task, bool force)
{
    struct flight *flight = task->state;

    if (!flight || !flight->in)
        return;
    if (!flight->member) {
        task_finish(task, END_BACK, 0, NULL);
        end_uncalled(flight);
        return;
    }
    flight->member->ordered = true;
    child_end(flight->member->child, force);
}

static void release(struct task *task)
{
    free(task->state);
}

static int open_pipe(struct runner *runner, struct error *e)
{
    struct pipe *p = runner->state;

    (void)e;
    p->runner = runner;
    p->most = (runner->host.executors + p->in_flight - 1) / p->in_flight;
    return 0;
}

/* Closes the inputs of all children, as no more jobs come: a child that reads the end of its input may end by itself. */
static void stop(struct runner *runner)
{
    struct pipe *p = runner->state;

    give_back_waiting(p);
    for (struct member *m = p->members; m; m = m->next) {
        m->ordered = true;
        child_close(m->child);
        let_go(m);
    }
}

static bool lives(const struct runner *runner)
{
    return ((const struct pipe *)runner->state)->members;
}

/* Ends the children that have not ended by themselves. The loop does not run any more. */
static void close_pipe(struct runner *runner)
{
    struct pipe *p = runner->state;
    const struct way_host *host = &runner->host;
    int64_t until_us = clock_mono_us() + host->kill_after_us;
    struct member *member;

    for (struct member *m = p->members; m; m = m->next) {
        child_close(m->child);
        if (m->flights.count > 0)
            child_end(m->child, false);
    }
    for (struct member *m = p->members; m; m = m->next)
        if (!child_wait(m->child, until_us))
            child_end(m->child, false);
    while ((member = p->members)) {
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): unlink_member() took the one that was freed out */
        child_wait(member->child, until_us + host->kill_after_us);
        while (member->flights.head)
            take_out(member->flights.head);
        unlink_member(member);
        child_free(member->child);
        free(member);
    }
    while (p->waiting.head)
        take_out(p->waiting.head);
}

static void free_state(void *state)
{
    struct pipe *p = state;

    free(p->argv);
    free(p);
}

static const struct way pipe_way = {
    .name = "pipe",
    .start = start,
    .end = end,
    .release = release,
    .open = open_pipe,
    .rested = rested,
    .stop = stop,
    .lives = lives,
    .close = close_pipe,
    .free = free_state,
};

int pipe_add(struct handlers *h, const char *type, const char *command, int in_flight, struct error *e)
{
    struct pipe *p;

    if (in_flight < 0 || in_flight > PIPE_IN_FLIGHT_MOST)
        return error_set(e, WEIR_EUSAGE, "handler: %d jobs in flight in a child; use 1 to %d", in_flight,
                         PIPE_IN_FLIGHT_MOST);
    if (!(p = calloc(1, sizeof *p)))
        return error_set(e, WEIR_EINTERNAL, "handler: out of memory");
    p->in_flight = in_flight ? in_flight : 1;
    if (!(p->argv = command_split(type, command, e))) {
        free(p);
        return e->status;
    }
    return handlers_add(h, type, &pipe_way, p, e);
}

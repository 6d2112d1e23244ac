#include "tests/chaos/judge.h"

#include "queue/inspect/cancel.h"
#include "tests/program.h"

#define RECONNECT_US (1 * SECOND) /* what a lost connection adds to a silence */
#define GRACE_US (1 * SECOND)
#define PRINTED_MOST 40

void judge_wrong(struct verdict *v, const char *fmt, ...)
{
    va_list args;

    if (v->wrong++ >= PRINTED_MOST || v->quiet)
        return;
    va_start(args, fmt);
    printf("WRONG: ");
    vprintf(fmt, args);
    printf("\n");
    va_end(args);
}

FILE *judge_open(const struct run *run, const char *name)
{
    char path[128];

    snprintf(path, sizeof path, "%s/%s", run->server.folder, name);
    return fopen(path, "r");
}

long long judge_ms(const struct run *run, int64_t at_us)
{
    return at_us ? (long long)(at_us - run->begun_us) / 1000 : 0;
}

/* ---- Reading the history */

struct event {
    char id[32], ending; /* ending 0: a start */
    int worker, n;
    pid_t pid;
    int64_t at_us;
};

static bool read_event(const char *line, struct event *e)
{
    char kind, ending = 0;
    long long at_us;
    int pid,
        n = sscanf(line, "%c %31s %d.%d %d %lld %c", &kind, e->id, &e->worker, &e->n, &pid, &at_us, &ending);

    e->ending = kind == 'E' ? ending : 0;
    e->pid = pid;
    e->at_us = at_us;
    return (kind == 'S' && n == 6) || (kind == 'E' && n == 7);
}

static int by_id(const void *a, const void *b)
{
    const struct event *one = a, *other = b;
    int order = strcmp(one->id, other->id);

    return order ? order : (one->at_us > other->at_us) - (one->at_us < other->at_us);
}

static struct event *read_events(struct judge *j, int *count)
{
    struct event *events = NULL;
    FILE *f = judge_open(j->run, "history");
    char line[256];

    *count = 0;
    while (f && fgets(line, sizeof line, f)) {
        events = run_more(events, *count, sizeof *events);
        if (read_event(line, &events[*count]))
            ++*count;
        else
            judge_wrong(j->v, "the history has the line %s", line);
    }
    if (f)
        fclose(f);
    if (*count > 0)
        qsort(events, (size_t)*count, sizeof *events, by_id);
    return events;
}

static int type_of_id(const struct judge *j, const char *id, int job)
{
    if (job >= 0)
        return j->run->plan.jobs[job].type;
    return strstr(id, ".then") ? TYPE_REPORT : TYPE_TICK;
}

/* The start that this is the end of: the last one of the job by the same process that has none. */
static void take_end(struct judge *j, const struct event *e)
{
    for (int i = j->start_count - 1; i >= 0 && strcmp(j->starts[i].id, e->id) == 0; i--) {
        struct start *s = &j->starts[i];

        if (s->pid == e->pid && s->worker == e->worker && s->n == e->n && !s->ended_us) {
            s->ended_us = e->at_us;
            s->ending = e->ending;
            return;
        }
    }
    judge_wrong(j->v, "%s ended in %d.%d where it had not begun", e->id, e->worker, e->n);
}

static void take_start(struct judge *j, const struct event *e)
{
    struct start *last = j->start_count ? &j->starts[j->start_count - 1] : NULL;
    int job = plan_number(&j->run->plan, e->id);

    if (last && strcmp(last->id, e->id) == 0)
        last->next_us = e->at_us;
    j->starts = run_more(j->starts, j->start_count, sizeof *j->starts);
    j->starts[j->start_count++] = (struct start){
        .id = e->id,
        .job = job,
        .type = type_of_id(j, e->id, job),
        .worker = e->worker,
        .n = e->n,
        .pid = e->pid,
        .at_us = e->at_us,
    };
}

/* ---- Reading the answers */

static void mark_step(struct judge *j, int step, bool in)
{
    const struct step *s = &j->run->plan.steps[step];

    for (int i = s->first; i < s->first + s->count; i++) {
        j->answers[i].in = j->answers[i].in || in;
        j->answers[i].maybe = !j->answers[i].in;
    }
}

static void take_cancel(struct judge *j, const char *line)
{
    char id[32], result[16];
    int job;
    long long from_us, to_us;
    struct answer *a;

    if (sscanf(line, "cancel %31s %15s %lld %lld", id, result, &from_us, &to_us) != 4)
        return;
    job = plan_number(&j->run->plan, id);
    if (job < 0)
        return;
    a = &j->answers[job];
    if (!a->cancel_asked || from_us < a->cancel_us)
        a->cancel_us = from_us;
    a->cancel_asked = true;
    if (strcmp(result, "removed") == 0 || strcmp(result, "marked") == 0)
        a->stopped_us = to_us;
}

static void read_answers(struct judge *j)
{
    FILE *f = judge_open(j->run, "answers");
    char line[256], id[32];
    int number;

    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "in %d", &number) == 1)
            mark_step(j, number, true);
        else if (sscanf(line, "maybe %d", &number) == 1)
            mark_step(j, number, false);
        else if (sscanf(line, "cancelled %d", &number) == 1)
            j->batch_cancelled[number] = true;
        else if (sscanf(line, "held %31s", id) == 1)
            j->answers[plan_number(&j->run->plan, id)].held = true;
        else
            take_cancel(j, line);
    }
    if (f)
        fclose(f);
}

void judge_read_history(struct judge *j)
{
    int count;

    j->events = read_events(j, &count);
    read_answers(j);
    for (int i = 0; i < count; i++)
        if (j->events[i].ending)
            take_end(j, &j->events[i]);
        else
            take_start(j, &j->events[i]);
}

int judge_first_of(const struct judge *j, const char *id)
{
    int low = 0, high = j->start_count;

    while (low < high) {
        int middle = (low + high) / 2;

        if (strcmp(j->starts[middle].id, id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* ---- Who was silent, and until when it counts */

bool life_says(const struct run *run, const struct life *life, const char *text)
{
    static char log[1 << 20];
    char name[32];

    snprintf(name, sizeof name, "worker%d.%d.err", life->worker, life->n);
    return read_text(run->server.folder, name, log, sizeof log) && strstr(log, text);
}

const struct life *start_life(const struct judge *j, const struct start *s)
{
    for (int i = 0; i < j->run->life_count; i++)
        if (j->run->lives[i].worker == s->worker && j->run->lives[i].n == s->n)
            return &j->run->lives[i];
    fail_msg("worker %d.%d was never started", s->worker, s->n);
    return NULL;
}

bool start_was_hit(const struct incident *i, const struct start *s)
{
    bool is_link = i->kind >= FAULT_PARTITION && i->kind <= FAULT_CUT;

    return i->worker < 0 || (i->worker == s->worker && (is_link || i->n == s->n));
}

/* How long that kept a worker from Redis. */
static int64_t silence_us(const struct incident *i)
{
    switch (i->kind) {
    case FAULT_STOP_WORKER:
    case FAULT_PARTITION:
    case FAULT_STALL:
    case FAULT_STOP_REDIS:
    case FAULT_KILL_REDIS:
        return i->to_us - i->from_us + RECONNECT_US;
    case FAULT_CUT:
        return RECONNECT_US;
    case FAULT_STARVED:
        return i->to_us - i->from_us;
    default:
        return 0;
    }
}

int64_t start_lease_us(const struct start *s)
{
    return worker_plans[s->worker].lease_s * SECOND;
}

/* A heartbeat is a quarter of a lease old at most when a silence begins. */
int64_t start_silent_us(const struct judge *j, const struct start *s, int64_t until_us)
{
    int64_t all_us = 0, first_us = 0;

    for (int i = 0; i < j->run->incident_count; i++) {
        const struct incident *in = &j->run->incidents[i];

        if (!start_was_hit(in, s) || silence_us(in) == 0 || in->from_us > until_us ||
            in->from_us + silence_us(in) + start_lease_us(s) < s->at_us)
            continue;
        all_us += silence_us(in);
        if (!first_us)
            first_us = in->from_us;
    }
    return all_us * 4 >= start_lease_us(s) * 3 ? first_us + start_lease_us(s) / 2 : 0;
}

int64_t start_told_us(const struct judge *j, const struct start *s, int64_t until_us)
{
    for (int i = 0; i < j->run->incident_count; i++) {
        const struct incident *in = &j->run->incidents[i];

        if ((in->kind == FAULT_TERM_WORKER || in->kind == FAULT_FORCE_WORKER) && start_was_hit(in, s) &&
            in->from_us <= until_us)
            return in->kind == FAULT_TERM_WORKER ? in->from_us + GRACE_US : in->from_us;
    }
    return 0;
}

int64_t start_died_us(const struct judge *j, const struct start *s, int64_t until_us)
{
    for (int i = 0; i < j->run->incident_count; i++) {
        const struct incident *in = &j->run->incidents[i];
        bool is_child = in->kind == FAULT_KILL_CHILD && in->pid && start_was_hit(in, s);

        if ((is_child || in->kind == FAULT_KILL_ENDPOINT) && in->from_us >= s->at_us &&
            in->from_us <= until_us)
            return in->from_us;
    }
    return 0;
}

bool start_was_killed(const struct judge *j, const struct start *s)
{
    for (int i = 0; i < j->run->incident_count; i++) {
        const struct incident *in = &j->run->incidents[i];

        if (in->kind == FAULT_KILL_CHILD && in->pid == s->pid && start_was_hit(in, s) &&
            in->from_us >= s->at_us && in->from_us <= s->next_us)
            return true;
    }
    return false;
}

int64_t start_cancelled_us(const struct judge *j, const struct start *s, int64_t until_us)
{
    for (int i = 0; i < j->start_count; i++) {
        const struct start *other = &j->starts[i];
        const struct answer *a = other->job >= 0 ? &j->answers[other->job] : NULL;

        if (other->pid == s->pid && other->worker == s->worker && other->n == s->n && !other->ended_us && a &&
            a->cancel_asked && a->cancel_us <= until_us && (other == s || s->pid != start_life(j, s)->pid))
            return a->cancel_us;
    }
    return 0;
}

static int64_t earlier(int64_t a_us, int64_t b_us)
{
    return b_us && b_us < a_us ? b_us : a_us;
}

int64_t start_released_us(const struct judge *j, const struct start *s)
{
    const struct life *life = start_life(j, s);
    int64_t end_us = s->ended_us ? s->ended_us : s->next_us ? s->next_us : INT64_MAX;

    end_us = earlier(end_us, life->ended_us);
    end_us = earlier(end_us, start_silent_us(j, s, end_us));
    end_us = earlier(end_us, start_told_us(j, s, end_us));
    if (!s->ended_us)
        end_us = earlier(end_us, start_died_us(j, s, end_us));
    if (!s->ended_us)
        end_us = earlier(end_us, start_cancelled_us(j, s, end_us));
    return end_us > s->at_us ? end_us : s->at_us;
}

#include "tests/chaos/checker.h"

#include <inttypes.h>
#include <signal.h>

#include "core/client/client.h"
#include "core/clock.h"
#include "queue/inspect/cancel.h"
#include "tests/chaos/deed.h"
#include "tests/invariants.h"
#include "tests/program.h"
#include "tests/test.h"

#define MS INT64_C(1000)
#define SECOND INT64_C(1000000)
#define LATE_US (50 * MS)
#define EARLY_US (3 * MS)         /* two clocks that are read one after the other */
#define RECONNECT_US (1 * SECOND) /* what a lost connection adds to a silence */
#define ENDED_US (400 * MS)       /* what a busy machine needs to end a handler */
#define GRACE_US (1 * SECOND)
#define PRINTED_MOST 40

const char *const cause_names[CAUSES] = {
    "asked for", "worker died", "worker silent", "worker ended", "handler died", "no cause",
};

/* ---- What is known */

struct event {
    char id[32], ending; /* ending 0: a start */
    int worker, n;
    pid_t pid;
    int64_t at_us;
};

/* A start and what became of it. */
struct start {
    const char *id;
    int job, type, worker, n;
    pid_t pid;
    int64_t at_us, ended_us; /* ended: 0: it never said so */
    char ending;
    int64_t released_us; /* no longer counted as running */
    int64_t next_us;     /* the job's next start; 0: none */
    bool traced;
    int64_t slot_us;   /* monotonic; 0: not known, or it needed none */
    int64_t called_us; /* by the trace */
    int epoch, slot_cost;
};

struct answer {
    bool in, maybe, held, cancel_asked;
    int64_t cancel_us; /* when that was first asked */
    bool done;
    int64_t stopped_us; /* it must not begin after this; 0: it may */
};

struct judge {
    struct run *run;
    struct verdict *v;
    struct start *starts; /* by id, then time */
    int start_count;
    struct answer *answers; /* by job */
    bool *batch_cancelled;
    int64_t wall_us; /* the machine's clock is before the monotonic one; read once, for it moves */
};

WEIR_PRINTF(2, 3) static void wrong(struct verdict *v, const char *fmt, ...)
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

static FILE *open_file(const struct run *run, const char *name)
{
    char path[128];

    snprintf(path, sizeof path, "%s/%s", run->server.folder, name);
    return fopen(path, "r");
}

/* Milliseconds since the run began, for those who read. */
static long long ms(const struct run *run, int64_t at_us)
{
    return at_us ? (long long)(at_us - run->begun_us) / 1000 : 0;
}

/* ---- Reading the history */

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

static struct event *read_history(struct judge *j, int *count)
{
    struct event *events = NULL;
    FILE *f = open_file(j->run, "history");
    char line[256];

    *count = 0;
    while (f && fgets(line, sizeof line, f)) {
        events = run_more(events, *count, sizeof *events);
        if (read_event(line, &events[*count]))
            ++*count;
        else
            wrong(j->v, "the history has the line %s", line);
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
    wrong(j->v, "%s ended in %d.%d where it had not begun", e->id, e->worker, e->n);
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
    FILE *f = open_file(j->run, "answers");
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

/* ---- Who was silent, and until when it counts */

static bool log_has(const struct run *run, const struct life *life, const char *text)
{
    static char log[1 << 20];
    char name[32];

    snprintf(name, sizeof name, "worker%d.%d.err", life->worker, life->n);
    return read_text(run->server.folder, name, log, sizeof log) && strstr(log, text);
}

static const struct life *life_of(const struct judge *j, const struct start *s)
{
    for (int i = 0; i < j->run->life_count; i++)
        if (j->run->lives[i].worker == s->worker && j->run->lives[i].n == s->n)
            return &j->run->lives[i];
    fail_msg("worker %d.%d was never started", s->worker, s->n);
    return NULL;
}

static bool hit(const struct incident *i, const struct start *s)
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

static int64_t lease_us(const struct start *s)
{
    return worker_plans[s->worker].lease_s * SECOND;
}

/* When a worker that had begun s at that time may have lost its lease by silence, before until_us; 0: it had
 * no reason to. A heartbeat is a quarter of a lease old at most when a silence begins. */
static int64_t silent_from_us(const struct judge *j, const struct start *s, int64_t until_us)
{
    int64_t all_us = 0, first_us = 0;

    for (int i = 0; i < j->run->incident_count; i++) {
        const struct incident *in = &j->run->incidents[i];

        if (!hit(in, s) || silence_us(in) == 0 || in->from_us > until_us ||
            in->from_us + silence_us(in) + lease_us(s) < s->at_us)
            continue;
        all_us += silence_us(in);
        if (!first_us)
            first_us = in->from_us;
    }
    return all_us * 4 >= lease_us(s) * 3 ? first_us + lease_us(s) / 2 : 0;
}

/* When the worker of s was asked to end after s began; 0: it was not, before until_us. */
static int64_t asked_to_end_us(const struct judge *j, const struct start *s, int64_t until_us)
{
    for (int i = 0; i < j->run->incident_count; i++) {
        const struct incident *in = &j->run->incidents[i];

        if ((in->kind == FAULT_TERM_WORKER || in->kind == FAULT_FORCE_WORKER) && hit(in, s) &&
            in->from_us <= until_us)
            return in->kind == FAULT_TERM_WORKER ? in->from_us + GRACE_US : in->from_us;
    }
    return 0;
}

/* When the process of the handler was killed; 0: not. */
static int64_t handler_died_us(const struct judge *j, const struct start *s, int64_t until_us)
{
    for (int i = 0; i < j->run->incident_count; i++) {
        const struct incident *in = &j->run->incidents[i];
        bool is_child = in->kind == FAULT_KILL_CHILD && in->pid && hit(in, s);

        if ((is_child || in->kind == FAULT_KILL_ENDPOINT) && in->from_us >= s->at_us &&
            in->from_us <= until_us)
            return in->from_us;
    }
    return 0;
}

/* Was its own process killed, perhaps when the job had ended? */
static bool process_was_killed(const struct judge *j, const struct start *s)
{
    for (int i = 0; i < j->run->incident_count; i++) {
        const struct incident *in = &j->run->incidents[i];

        if (in->kind == FAULT_KILL_CHILD && in->pid == s->pid && hit(in, s) && in->from_us >= s->at_us &&
            in->from_us <= s->next_us)
            return true;
    }
    return false;
}

/* When a job was cancelled that its process ran and has not ended: the process is ended, with all that it
 * runs; 0: none was. */
static int64_t cancelled_us(const struct judge *j, const struct start *s, int64_t until_us)
{
    for (int i = 0; i < j->start_count; i++) {
        const struct start *other = &j->starts[i];
        const struct answer *a = other->job >= 0 ? &j->answers[other->job] : NULL;

        if (other->pid == s->pid && other->worker == s->worker && other->n == s->n && !other->ended_us && a &&
            a->cancel_asked && a->cancel_us <= until_us && (other == s || s->pid != life_of(j, s)->pid))
            return a->cancel_us;
    }
    return 0;
}

static int64_t earlier(int64_t a_us, int64_t b_us)
{
    return b_us && b_us < a_us ? b_us : a_us;
}

/* Until when s counts as running, for rules of concurrency. */
static int64_t released_us(const struct judge *j, const struct start *s)
{
    const struct life *life = life_of(j, s);
    int64_t end_us = s->ended_us ? s->ended_us : s->next_us ? s->next_us : INT64_MAX;

    end_us = earlier(end_us, life->ended_us);
    end_us = earlier(end_us, silent_from_us(j, s, end_us));
    end_us = earlier(end_us, asked_to_end_us(j, s, end_us));
    if (!s->ended_us)
        end_us = earlier(end_us, handler_died_us(j, s, end_us));
    if (!s->ended_us)
        end_us = earlier(end_us, cancelled_us(j, s, end_us));
    return end_us > s->at_us ? end_us : s->at_us;
}

/* ---- Nothing is lost, nothing twice */

/* A worker that has lost leases says so, unless it was killed before it could. */
static bool says_it_was_silent(const struct judge *j, const struct life *life)
{
    static const char *const words[] = {"silent for longer than", "were given to others",
                                        "leases were no longer ours"};
    bool says = life->code == 1000 + SIGKILL;

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        says = says || log_has(j->run, life, words[i]);
    return says;
}

/* Why the job of s began again at s->next_us. */
static enum cause cause_of_again(const struct judge *j, const struct start *s)
{
    const struct life *life = life_of(j, s);

    if (s->ending && s->ending != DEED_DONE)
        return CAUSE_ASKED;
    if (life->ended_us && life->ended_us <= s->next_us && life->code == 1000 + SIGKILL)
        return CAUSE_DIED;
    if (silent_from_us(j, s, s->next_us) && says_it_was_silent(j, life))
        return CAUSE_SILENT;
    if (asked_to_end_us(j, s, s->next_us))
        return CAUSE_FORCED;
    if (!s->ending && (handler_died_us(j, s, s->next_us) || cancelled_us(j, s, s->next_us)))
        return CAUSE_CHILD;
    if (process_was_killed(j, s))
        return CAUSE_CHILD;
    return CAUSE_NONE;
}

/* What was called before s and began after it is late: what happened to its own worker in between is the cause. s is not the
 * last start of its job, so the next one is behind it. */
static enum cause cause_of_next(const struct judge *j, const struct start *s)
{
    struct start called = s[1];

    if (!called.called_us || called.called_us >= s->at_us)
        return cause_of_again(j, s);
    called.next_us = called.at_us;
    called.at_us = called.called_us;
    called.ending = 0;
    return cause_of_again(j, &called);
}

static void print_starts(const struct judge *j, const char *id)
{
    for (int i = 0; i < j->start_count; i++) {
        const struct start *s = &j->starts[i];

        if (strcmp(s->id, id) == 0)
            printf("    %s: %s in %d.%d called %lld ms, at %lld ms, ended %lld ms %c\n", id,
                   type_plans[s->type].name, s->worker, s->n, ms(j->run, s->called_us), ms(j->run, s->at_us),
                   ms(j->run, s->ended_us), s->ending ? s->ending : ' ');
    }
}

static void check_start(struct judge *j, const struct start *s)
{
    struct answer *a = s->job >= 0 ? &j->answers[s->job] : NULL;
    enum cause cause;

    j->v->starts++;
    if (a && ((!a->in && !a->maybe) || a->held))
        wrong(j->v, "%s ran though %s", s->id, a->held ? "its key was held" : "nobody enqueued it");
    if (a && a->stopped_us && s->at_us > a->stopped_us)
        wrong(j->v, "%s began %lld ms after its cancel was answered", s->id,
              (long long)(s->at_us - a->stopped_us) / 1000);
    if (a && s->ending == DEED_DONE)
        a->done = true;
    if (!s->next_us)
        return;
    cause = cause_of_next(j, s);
    j->v->again[cause]++;
    if (cause == CAUSE_NONE) {
        wrong(j->v, "%s was begun again without a cause:", s->id);
        if (!j->v->quiet)
            print_starts(j, s->id);
    }
}

/* Can its worker end it? */
static bool can_be_ended(const struct start *s)
{
    enum way way = plan_way(&worker_plans[s->worker], s->type);

    return way != WAY_LOOP && way != WAY_HTTP;
}

/* Nothing begins in a worker that is cut off for longer than its lease, and what ran there has been ended. */
static void check_cut_off(struct judge *j, const struct start *s)
{
    for (int i = 0; i < j->run->incident_count; i++) {
        const struct incident *in = &j->run->incidents[i];
        int64_t lost_us = in->sure_us + lease_us(s);

        if (in->kind != FAULT_PARTITION || !hit(in, s))
            continue;
        if ((s->at_us > lost_us + LATE_US && s->at_us < in->to_us) ||
            (can_be_ended(s) && s->at_us < lost_us && s->ended_us > lost_us + ENDED_US &&
             s->ended_us < in->to_us))
            wrong(j->v, "%s began in %d.%d at %lld ms and ended at %lld ms, cut off since %lld ms", s->id,
                  s->worker, s->n, ms(j->run, s->at_us), ms(j->run, s->ended_us), ms(j->run, in->from_us));
    }
}

static bool may_be_cancelled(const struct judge *j, int job)
{
    const struct step *step = plan_step_of(&j->run->plan, job);

    return j->answers[job].cancel_asked || (step->batch >= 0 && j->batch_cancelled[step->batch]);
}

static void check_jobs(struct judge *j)
{
    struct verdict *v = j->v;

    for (int i = 0; i < j->start_count; i++) {
        check_start(j, &j->starts[i]);
        check_cut_off(j, &j->starts[i]);
    }
    for (int i = 0; i < j->run->plan.job_count; i++) {
        const struct answer *a = &j->answers[i];

        v->accepted += a->in && !a->held;
        v->maybe += a->maybe;
        v->held += a->held;
        v->done += a->done;
        if (a->in && !a->held && !a->done && may_be_cancelled(j, i))
            v->cancelled++;
        else if (a->in && !a->held && !a->done && ++v->lost)
            wrong(v, "j%d is lost: %s, enqueued and never done", i,
                  type_plans[j->run->plan.jobs[i].type].name);
    }
}

/* ---- Rates */

/* Redis's clock between two steps of it. */
struct epoch {
    int64_t from_us, shift_us;
};

static struct epoch *read_epochs(const struct run *run, int *count)
{
    struct epoch *epochs = run_more(NULL, 0, sizeof *epochs);

    epochs[0] = (struct epoch){INT64_MIN, 0};
    *count = 1;
    for (int i = 0; i < run->incident_count; i++) {
        if (run->incidents[i].kind != FAULT_STEP_CLOCK)
            continue;
        epochs = run_more(epochs, *count, sizeof *epochs);
        epochs[(*count)++] = (struct epoch){run->incidents[i].from_us, run->incidents[i].shift_us};
    }
    return epochs;
}

/* The slot by our clock: of the step behind which it was granted, the one by which it comes nearest to the
 * start. */
static void place_slot(struct start *s, int64_t slot_us, const struct epoch *epochs, int count)
{
    int64_t nearest_us = INT64_MAX;

    for (int i = 0; i < count; i++) {
        int64_t at_us = slot_us - epochs[i].shift_us, away_us = llabs(s->at_us - at_us);

        if (epochs[i].from_us <= at_us + EARLY_US && away_us <= nearest_us) {
            nearest_us = away_us;
            s->slot_us = at_us;
            s->epoch = i;
        }
    }
}

/* The index of the first start of that id, or of what comes behind it. */
static int first_of(const struct judge *j, const char *id)
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

/* The start that a line is of: the first one of the job in that life of the worker that came after it was written. A line before
 * it was of a call that no handler has seen. */
static struct start *start_of_line(struct judge *j, int worker, const char *id, int64_t at_us)
{
    for (int i = first_of(j, id); i < j->start_count && strcmp(j->starts[i].id, id) == 0; i++) {
        struct start *s = &j->starts[i];

        if (s->worker == worker && life_of(j, s)->begun_us <= at_us &&
            s->at_us >= (s->traced ? at_us : at_us - EARLY_US))
            return s;
    }
    return NULL;
}

static void read_trace(struct judge *j, int worker, const struct epoch *epochs, int count)
{
    char name[32], line[4096], id[32];
    long long slot_us, start_us;
    struct start *s;
    FILE *f;

    snprintf(name, sizeof name, "trace%d", worker);
    f = open_file(j->run, name);
    while (f && fgets(line, sizeof line, f)) {
        const char *at = strstr(line, "\"id\":\"");

        if (!at || sscanf(line, "{\"slot\":%lld,\"start\":%lld", &slot_us, &start_us) != 2 ||
            sscanf(at, "\"id\":\"%31[^\"]", id) != 1 ||
            !(s = start_of_line(j, worker, id, start_us - j->wall_us)))
            continue;
        s->traced = true;
        s->called_us = start_us - j->wall_us;
        if (slot_us)
            place_slot(s, slot_us - j->wall_us, epochs, count);
    }
    if (f)
        fclose(f);
}

static void read_traces(struct judge *j)
{
    int count;
    struct epoch *epochs = read_epochs(j->run, &count);

    for (int i = 0; i < PLAN_WORKERS; i++)
        read_trace(j, i, epochs, count);
    free(epochs);
}

/* A process that ended well has written down every start: what is not there was begun behind its back. */
static void check_traces(struct judge *j)
{
    for (int i = 0; i < j->start_count; i++) {
        const struct start *s = &j->starts[i];

        if (s->traced)
            continue;
        j->v->untraced++;
        if (life_of(j, s)->code == 0)
            wrong(j->v, "%s began in %d.%d at %lld ms, and its worker knows nothing of it", s->id, s->worker,
                  s->n, ms(j->run, s->at_us));
    }
}

static bool holds(const struct limit_plan *limit, int type)
{
    return type_plans[type].limit && strcmp(type_plans[type].limit, limit->name) == 0;
}

static int by_slot(const void *a, const void *b)
{
    const struct start *one = *(struct start *const *)a, *other = *(struct start *const *)b;

    if (one->epoch != other->epoch)
        return one->epoch - other->epoch;
    return (one->slot_us > other->slot_us) - (one->slot_us < other->slot_us);
}

static int by_time(const void *a, const void *b)
{
    const struct start *one = *(struct start *const *)a, *other = *(struct start *const *)b;

    return (one->at_us > other->at_us) - (one->at_us < other->at_us);
}

/* The starts at one gate: of a limit, and of a key where it has those. */
static struct start **starts_at(const struct judge *j, const struct limit_plan *limit, int key, int *count)
{
    struct start **starts = NULL;

    *count = 0;
    for (int i = 0; i < j->start_count; i++) {
        struct start *s = &j->starts[i];

        if (!holds(limit, s->type) || (limit->by_key && j->run->plan.jobs[s->job].key != key))
            continue;
        starts = run_more(starts, *count, sizeof *starts);
        starts[(*count)++] = s;
    }
    return starts;
}

static int cost_of(const struct start *s)
{
    return s->type == TYPE_RIGHT ? 2 : 1;
}

/* GCRA, in parts of 1/count us; each step of the clock may let one burst through. */
static void replay_gcra(struct judge *j, const struct limit_plan *limit, struct start **starts, int count)
{
    int64_t tat = 0, burst = limit->burst * limit->period_us;
    int epoch = -1;

    for (int i = 0; i < count; i++) {
        const struct start *s = starts[i];
        int64_t at = s->slot_us * limit->count, cost = cost_of(s) * limit->period_us;

        if (s->epoch != epoch)
            tat = at;
        epoch = s->epoch;
        if (at + limit->count < tat - burst + cost)
            wrong(j->v, "%s: %s has a slot %lld us too early, at %lld ms", limit->name, s->id,
                  (long long)((tat - burst + cost - at) / limit->count), ms(j->run, s->slot_us));
        tat = (at > tat ? at : tat) + cost;
    }
}

static void replay_log(struct judge *j, const struct limit_plan *limit, struct start **starts, int count)
{
    for (int i = (int)limit->count; i < count; i++) {
        const struct start *s = starts[i], *before = starts[i - limit->count];

        if (s->epoch == before->epoch && s->slot_us < before->slot_us + limit->period_us)
            wrong(j->v, "%s: %s has a slot within a period of %d others, at %lld ms", limit->name, s->id,
                  (int)limit->count, ms(j->run, s->slot_us));
    }
}

/* By the handlers' clocks: those that begin at most LATE_US after their slot are no more, in any time that is
 * so much shorter than a period, than the rule lets into the period. */
static void check_period(struct judge *j, const struct limit_plan *limit, struct start **starts, int count)
{
    int64_t most = limit->count + (limit->burst ? limit->burst - 1 : 0), in_period = 0;
    int *peak = &j->v->in_period[limit - limit_plans], first = 0;

    qsort(starts, (size_t)count, sizeof(struct start *), by_time);
    for (int i = 0; i < count; i++) {
        for (; starts[first]->at_us <= starts[i]->at_us - limit->period_us + LATE_US ||
               starts[first]->epoch != starts[i]->epoch;
             first++)
            in_period -= cost_of(starts[first]);
        in_period += cost_of(starts[i]);
        *peak = in_period > *peak ? (int)in_period : *peak;
        if (in_period > most)
            wrong(j->v, "%s: %d slots until %s began, within a period less 50 ms, at %lld ms", limit->name,
                  (int)in_period, starts[i]->id, ms(j->run, starts[i]->at_us));
    }
}

/* Leaves those that are not late. */
static int look_at_lateness(struct judge *j, struct start **starts, int count)
{
    struct verdict *v = j->v;
    int in_time = 0;

    for (int i = 0; i < count; i++) {
        struct start *s = starts[i];
        int64_t late_us = s->at_us - s->slot_us, called_us = s->called_us - s->slot_us;

        if (late_us < -EARLY_US)
            wrong(v, "%s began %lld us before its slot", s->id, (long long)-late_us);
        v->latest_us = late_us > v->latest_us ? late_us : v->latest_us;
        v->late += late_us > LATE_US;
        v->called_late += called_us > LATE_US;
        v->called_latest_us = called_us > v->called_latest_us ? called_us : v->called_latest_us;
        if (late_us <= LATE_US)
            starts[in_time++] = s;
    }
    return in_time;
}

static void check_rate(struct judge *j, const struct limit_plan *limit, struct start **starts, int count)
{
    int known = 0;

    for (int i = 0; i < count; i++)
        if (starts[i]->slot_us)
            starts[known++] = starts[i];
    j->v->slots += known;
    qsort(starts, (size_t)known, sizeof(struct start *), by_slot);
    if (limit->burst)
        replay_gcra(j, limit, starts, known);
    else
        replay_log(j, limit, starts, known);
    check_period(j, limit, starts, look_at_lateness(j, starts, known));
}

/* ---- Concurrency */

static int by_release(const void *a, const void *b)
{
    int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;

    return (one > other) - (one < other);
}

static void check_concurrency(struct judge *j, const struct limit_plan *limit, struct start **starts,
                              int count, int *peak)
{
    int64_t *released = run_more(NULL, 0, sizeof *released);
    int gone = 0;

    for (int i = 0; i < count; i++) {
        released = run_more(released, i, sizeof *released);
        released[i] = released_us(j, starts[i]);
    }
    qsort(released, (size_t)count, sizeof *released, by_release);
    qsort(starts, (size_t)count, sizeof(struct start *), by_time);
    for (int i = 0; i < count; i++) {
        while (gone < count && released[gone] <= starts[i]->at_us)
            gone++;
        if (i + 1 - gone > *peak)
            *peak = i + 1 - gone;
        if (i + 1 - gone > limit->most)
            wrong(j->v, "%s: %s is one of %d at a time, at %lld ms", limit->name, starts[i]->id, i + 1 - gone,
                  ms(j->run, starts[i]->at_us));
    }
    free(released);
}

static void check_limits(struct judge *j)
{
    int count;

    for (int i = 0; i < PLAN_LIMITS; i++) {
        const struct limit_plan *limit = &limit_plans[i];

        for (int key = 0; key < (limit->by_key ? PLAN_KEYS : 1); key++) {
            struct start **starts = starts_at(j, limit, key, &count);

            if (limit->most && count > 0)
                check_concurrency(j, limit, starts, count, &j->v->at_once[i]);
            if (limit->count && count > 0)
                check_rate(j, limit, starts, count);
            free(starts);
        }
    }
}

/* A trace does not tell when Redis's clock was set. */
static bool trace_tells_all(const struct run *run)
{
    bool tells = true;

    for (int i = 0; i < run->incident_count; i++)
        tells &= run->incidents[i].kind != FAULT_STEP_CLOCK;
    return tells;
}

/* The product's own judge, which knows all rules. */
static void check_verify(struct judge *j)
{
    const char *words[PLAN_WORKERS + 3] = {built("weir"), "verify"};
    char names[PLAN_WORKERS][24];
    struct outcome *o = malloc(sizeof *o);

    assert_non_null(o);
    for (int i = 0; i < PLAN_WORKERS; i++) {
        snprintf(names[i], sizeof names[i], "trace%d", i);
        words[2 + i] = names[i];
    }
    program_run(o, j->run->server.folder, words);
    if (o->code != 0 && trace_tells_all(j->run))
        wrong(j->v, "weir verify ends with %d: %.800s", o->code, o->err);
    free(o);
}

/* ---- Schedules and batches */

static void check_schedule_job(struct judge *j, const struct start *s)
{
    int i = 0;
    const char *at = NULL;

    for (; !at && i < PLAN_SCHEDULES; i++) {
        size_t len = strlen(schedule_plans[i].name);

        if (strncmp(s->id, schedule_plans[i].name, len) == 0 && s->id[len] == '.')
            at = s->id + len + 1;
    }
    if (!at || atoll(at) % schedule_plans[i - 1].every_s != 0)
        wrong(j->v, "%s is no occurrence of a schedule", s->id);
    if (!s->next_us && s->ending != DEED_DONE)
        wrong(j->v, "%s was not done", s->id);
    j->v->schedule_jobs += !s->next_us;
}

/* What follows a batch comes when each of its jobs has ended at least once, or was cancelled. */
static void check_follower(struct judge *j, const struct start *s)
{
    const struct plan *plan = &j->run->plan;
    int batch = atoi(s->id + strlen("batch"));
    const struct step *step = plan->steps;
    char id[16];

    while (step < plan->steps + plan->step_count && step->batch != batch)
        step++;
    j->v->batches += !s->next_us;
    for (int job = step->first; job < step->first + step->count; job++) {
        bool ended = false;

        plan_id(job, id);
        for (int i = first_of(j, id); i < j->start_count && strcmp(j->starts[i].id, id) == 0; i++)
            ended |= j->starts[i].ended_us && j->starts[i].ended_us <= s->at_us &&
                     (j->starts[i].ending == DEED_DONE || j->starts[i].ending == DEED_DEAD);
        if (!ended && !may_be_cancelled(j, job))
            wrong(j->v, "%s began before %s had ended", s->id, id);
    }
}

static void check_made_jobs(struct judge *j)
{
    for (int i = 0; i < j->start_count; i++) {
        if (j->starts[i].type == TYPE_TICK)
            check_schedule_job(j, &j->starts[i]);
        else if (j->starts[i].type == TYPE_REPORT)
            check_follower(j, &j->starts[i]);
    }
}

/* ---- Every end was settled once */

static bool may_end_so(const struct judge *j, const struct start *s)
{
    return s->job >= 0 && may_be_cancelled(j, s->job);
}

/* Redis counts as done each job that a handler has done; of those that were cancelled too, either. */
static void check_settled(struct judge *j)
{
    long long done[TYPE_COUNT] = {0}, perhaps[TYPE_COUNT] = {0};

    for (int i = 0, next; i < j->start_count; i = next) {
        bool is_done = false;

        for (next = i; next < j->start_count && strcmp(j->starts[next].id, j->starts[i].id) == 0; next++)
            is_done |= j->starts[next].ending == DEED_DONE;
        done[j->starts[i].type] += is_done;
        perhaps[j->starts[i].type] += is_done && may_end_so(j, &j->starts[i]);
    }
    for (int i = 0; i < TYPE_COUNT; i++) {
        char key[64];
        char *text;

        snprintf(key, sizeof key, "weir:{0}:stats:%s", type_plans[i].name);
        text = server_ask(&j->run->server, "HGET", key, "done", NULL);
        if (atoll(text) > done[i] || atoll(text) < done[i] - perhaps[i])
            wrong(j->v, "%s: %lld were done, %lld of them perhaps cancelled before, and Redis counts %s",
                  type_plans[i].name, done[i], perhaps[i], text);
        free(text);
    }
}

/* ---- Workers */

/* A worker ends because it was told to, or says why. */
static bool ran_nothing(const struct judge *j, const struct life *life)
{
    for (int i = 0; i < j->start_count; i++)
        if (j->starts[i].worker == life->worker && j->starts[i].n == life->n)
            return false;
    return true;
}

static bool may_end_with_its_code(const struct judge *j, const struct life *life)
{
    switch (life->code) {
    case 0:
    case 1000 + SIGKILL:
        return life->asked;
    case 1000 + SIGTERM: /* asked before its main() was there */
        return life->asked && ran_nothing(j, life);
    case 69: /* asked while it was cut off */
        return life->asked && log_has(j->run, life, "they return when their lease ends");
    case 70:
        return log_has(j->run, life, "silent for longer than its lease");
    default:
        return false;
    }
}

static void check_lives(struct judge *j)
{
    for (int i = 0; i < j->run->life_count; i++) {
        const struct life *life = &j->run->lives[i];

        if (log_has(j->run, life, "please report"))
            wrong(j->v, "worker %d.%d says 'please report'", life->worker, life->n);
        if (!may_end_with_its_code(j, life))
            wrong(j->v, "worker %d.%d ended with %d", life->worker, life->n, life->code);
    }
}

void check_history(struct run *run, struct verdict *v)
{
    struct judge j = {.run = run, .v = v, .wall_us = run_wall_ahead()};
    int event_count;
    struct event *events = read_history(&j, &event_count);

    j.answers = calloc((size_t)run->plan.job_count + 1, sizeof *j.answers);
    j.batch_cancelled = calloc((size_t)run->plan.batch_count + 1, sizeof *j.batch_cancelled);
    if (!j.answers || !j.batch_cancelled)
        abort();
    read_answers(&j);
    for (int i = 0; i < event_count; i++)
        if (events[i].ending)
            take_end(&j, &events[i]);
        else
            take_start(&j, &events[i]);
    read_traces(&j);
    check_traces(&j);
    check_jobs(&j);
    check_limits(&j);
    check_made_jobs(&j);
    if (run->server.pid > 0) { /* else it is made up */
        check_settled(&j);
        check_verify(&j);
    }
    check_lives(&j);
    free(events);
    free(j.starts);
    free(j.answers);
    free(j.batch_cancelled);
}

/* ---- Redis */

static void check_invariants(struct run *run, struct verdict *v)
{
    const char *broken = invariants_broken(run->client->redis, run->client->prefix, -1, 0, NULL);

    if (broken)
        wrong(v, "Redis: %s", broken);
}

static void check_doctor(struct run *run, struct verdict *v)
{
    struct outcome o;

    setenv("REDIS_URL", run->server.url, 1);
    run_in(&o, NULL, built("weir"), "doctor", NULL);
    if (o.code == 0)
        return;
    wrong(v, "weir doctor ends with %d:", o.code);
    printf("%s%s\n", o.out, o.err);
}

/* Where jobs are, or wait, or are held: nothing of it may be there when no job is. */
static void check_keys(struct run *run, struct verdict *v)
{
    static const char *const gone[] = {
        "queue:", "lane:",  "ring:",     "wait:", "wake:",  "sleep:",    "held:",   "credit:",
        "later",  "halted", "cancelled", "told:", "aside:", "schedules", "unique:",
    };
    char *keys = server_ask(&run->server, "KEYS", "*", NULL), *rest = keys, *key;

    while ((key = strsep(&rest, "\n")) && *key) {
        bool left = strncmp(key, "weir:{0}:", 9) != 0;

        for (size_t i = 0; !left && i < sizeof gone / sizeof *gone; i++)
            left = strncmp(key + 9, gone[i], strlen(gone[i])) == 0;
        if (left)
            wrong(v, "left in Redis: %s", key);
    }
    free(keys);
}

/* The numbers of a hash's fields in all keys of that pattern, added up. */
static long long sum_of(struct run *run, const char *pattern, const char *field)
{
    static const char script[] = "local sum = 0\n"
                                 "for _, key in ipairs(redis.call('KEYS', ARGV[1])) do\n"
                                 "    sum = sum + (redis.call('HGET', key, ARGV[2]) or 0)\n"
                                 "end\n"
                                 "return sum";

    return stage_number(run, "EVAL", script, "0", pattern, field);
}

/* Dead jobs of cancelled batches are not retried; all others were, until none was dead. */
static void check_batches(struct run *run, struct verdict *v)
{
    static const char all[] = "weir:{0}:batch:batch*";
    long long total = sum_of(run, all, "total"), done = sum_of(run, all, "done"),
              dead = sum_of(run, all, "dead"), cancelled = sum_of(run, all, "cancelled"),
              left = stage_number(run, "ZCARD", "weir:{0}:dead");

    if (dead != left || done + dead + cancelled != total)
        wrong(v, "batches: %lld jobs, but %lld done, %lld dead, %lld cancelled; %lld are dead", total, done,
              dead, cancelled, left);
}

void check_redis(struct run *run, struct verdict *v)
{
    check_invariants(run, v);
    check_doctor(run, v);
    check_keys(run, v);
    check_batches(run, v);
}

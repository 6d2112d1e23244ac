#include "tests/chaos/actors.h"

#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "queue/batch/batch.h"
#include "queue/inspect/cancel.h"
#include "queue/queues/queues.h"
#include "tests/chaos/handlers.h"
#include "tests/chaos/plan.h"
#include "weir.h"

#define AGAIN_US 50000 /* after a refusal */

struct actor {
    struct plan plan;
    int64_t begun_us; /* the run, monotonic */
    struct weir *client;
    int answers;
};

static const char *setting(const char *name)
{
    const char *value = getenv(name);

    return value ? value : "";
}

static void begin_actor(struct actor *a)
{
    char path[256];

    plan_make(&a->plan, strtoull(setting("CHAOS_SEED"), NULL, 10), atoi(setting("CHAOS_TIME")));
    a->begun_us = atoll(setting("CHAOS_BEGUN"));
    a->client = weir_new(NULL, NULL);
    snprintf(path, sizeof path, "%s/answers", setting("CHAOS_FOLDER"));
    a->answers = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (!a->client || a->answers < 0)
        abort();
}

static void end_actor(struct actor *a)
{
    weir_free(a->client);
    plan_free(&a->plan);
    close(a->answers);
}

WEIR_PRINTF(2, 3) static void note(struct actor *a, const char *fmt, ...)
{
    char line[256];
    va_list args;
    int len;

    va_start(args, fmt);
    len = vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    if (write(a->answers, line, (size_t)len) != len)
        abort();
}

/* What is said of a failure, for those who look for what happened. */
static void complain(struct actor *a, const char *what, int number)
{
    fprintf(stderr, "%lld %s %d: %s\n", (long long)clock_mono_us(), what, number, weir_message(a->client));
    clock_sleep_until(clock_mono_us() + AGAIN_US);
}

/* Will the same call do, later? */
static bool is_passing(int status)
{
    return status != 0 && status != WEIR_ENOTFOUND && status != WEIR_EINPUT;
}

/* ---- Producers */

static struct weir_job_spec spec_of(const struct actor *a, int job, char id[16], char key[8], char args[40],
                                    char unique[16])
{
    const struct planned_job *planned = &a->plan.jobs[job];

    plan_id(job, id);
    plan_args(planned, args);
    snprintf(key, 8, "k%d", planned->key);
    snprintf(unique, 16, "u%d", planned->unique);
    return (struct weir_job_spec){
        .type = type_plans[planned->type].name,
        .queue = queue_names[planned->queue],
        .id = id,
        .key = key,
        .args = args,
        .unique = planned->unique >= 0 ? unique : NULL,
    };
}

static void enqueue_one(struct actor *a, int number, const struct step *step)
{
    char id[16], key[8], args[40], unique[16], answer[WEIR_ID_SIZE];
    struct weir_job_spec spec = spec_of(a, step->first, id, key, args, unique);

    spec.delay_s = step->delay_ms / 1e3;
    while (weir_enqueue(a->client, &spec, answer) != 0)
        complain(a, "enqueue", number);
    if (strcmp(answer, id) != 0)
        note(a, "held %s %s\n", id, answer);
    else
        note(a, "in %d %" PRId64 "\n", number, clock_mono_us());
}

static int send_bulk(struct actor *a, const struct step *step)
{
    char name[PLAN_BATCH_SIZE], id[16], key[8], args[40], unique[16];
    struct weir_bulk *bulk;
    int status;

    plan_batch_name(step->batch, name);
    status = weir_bulk_open(a->client, step->batch >= 0 ? name : NULL, &bulk);
    if (status != 0)
        return status;
    for (int i = step->first; status == 0 && i < step->first + step->count; i++) {
        struct weir_job_spec spec = spec_of(a, i, id, key, args, unique);

        status = weir_bulk_add(bulk, &spec);
    }
    if (status == 0 && step->batch >= 0)
        status = weir_bulk_then(bulk, type_plans[TYPE_REPORT].name);
    if (status == 0)
        return weir_bulk_close(bulk, NULL);
    weir_bulk_abandon(bulk);
    return status;
}

static void enqueue_bulk(struct actor *a, int number, const struct step *step)
{
    int status;

    if (step->batch < 0)
        note(a, "maybe %d\n", number); /* until it is answered; the next process does not try it again */
    while ((status = send_bulk(a, step)) != 0) {
        complain(a, "bulk", number);
        if (step->batch >= 0 && is_passing(status))
            continue;
        if (step->batch >= 0)
            note(a, "maybe %d\n", number); /* it was cancelled */
        return;
    }
    note(a, "in %d %" PRId64 "\n", number, clock_mono_us());
}

static redisContext *dial(void)
{
    const struct timeval patience = {.tv_sec = 5};
    const char *url = setting("REDIS_URL");
    redisContext *c = redisConnectUnix(url + strlen("unix://"));

    if (c && c->err == 0 && redisSetTimeout(c, patience) == REDIS_OK)
        return c;
    if (c)
        redisFree(c);
    return NULL;
}

/* false: whether it is there is not known. */
static bool push(redisContext *c, const struct actor *a, int job)
{
    char id[16], key[8], args[40], unique[16];
    struct weir_job_spec spec = spec_of(a, job, id, key, args, unique);
    redisReply *reply =
        redisCommand(c, "RPUSH weir:{0}:queue:%s {\"id\":\"%s\",\"type\":\"%s\",\"key\":\"%s\",\"args\":%s}",
                     spec.queue, id, spec.type, key, args);
    bool pushed = reply && reply->type == REDIS_REPLY_INTEGER;

    freeReplyObject(reply);
    return pushed;
}

static void enqueue_by_push(struct actor *a, int number, const struct step *step)
{
    redisContext *c = dial();
    bool pushed = c != NULL;

    note(a, "maybe %d\n", number);
    for (int i = step->first; pushed && i < step->first + step->count; i++)
        pushed = push(c, a, i);
    if (pushed)
        note(a, "in %d %" PRId64 "\n", number, clock_mono_us());
    if (c)
        redisFree(c);
}

/* The first step that the process before this one has not ended; *again: that one has begun it and may not do
 * it twice. */
static int first_step(const struct actor *a, int part, bool *again)
{
    char path[256], line[256];
    int next = part, number;
    FILE *f;

    *again = false;
    snprintf(path, sizeof path, "%s/answers", setting("CHAOS_FOLDER"));
    if (!(f = fopen(path, "r")))
        abort();
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "done %d", &number) == 1 && number % PLAN_PRODUCERS == part)
            next = number + PLAN_PRODUCERS, *again = false;
        else if (sscanf(line, "maybe %d", &number) == 1 && number == next)
            *again = true;
    }
    fclose(f);
    return next < a->plan.step_count ? next : a->plan.step_count;
}

static int run_producer(int part)
{
    struct actor a;
    bool skip;
    int at;

    begin_actor(&a);
    for (at = first_step(&a, part, &skip); at < a.plan.step_count; at += PLAN_PRODUCERS, skip = false) {
        const struct step *step = &a.plan.steps[at];

        clock_sleep_until(a.begun_us + step->at_us);
        if (step->way == IN_SINGLE || step->way == IN_LATER)
            enqueue_one(&a, at, step);
        else if (step->way == IN_PUSH && !skip)
            enqueue_by_push(&a, at, step);
        else if (!skip)
            enqueue_bulk(&a, at, step);
        note(&a, "done %d\n", at);
    }
    end_actor(&a);
    return 0;
}

/* ---- The operator */

static void cancel_planned_job(struct actor *a, int job)
{
    json_t *cancelled;
    char id[16];
    int64_t from_us = clock_mono_us();
    int status;

    plan_id(job, id);
    note(a, "cancel %s asked %" PRId64 " 0\n", id, from_us); /* it may have worked, whatever the answer */
    while (is_passing(status = cancel_job(a->client, -1, id, NULL, &cancelled)))
        complain(a, "cancel", job);
    if (status == 0)
        note(a, "cancel %s %s %" PRId64 " %" PRId64 "\n", id, answer_text(cancelled, "result"), from_us,
             clock_mono_us());
    json_decref(cancelled);
}

static void halt_batch(struct actor *a, const struct act *act)
{
    const struct pausing how = {.for_us = RATE_ENDLESS, .create = true};
    struct batch_change change;
    char name[PLAN_BATCH_SIZE];
    json_t *answer;

    plan_batch_name(act->what, name);
    if (act->kind == ACT_CANCEL_BATCH) {
        note(a, "cancelled %d\n", act->what);
        while (is_passing(batch_cancel(a->client, name, false, &change)))
            complain(a, "cancel batch", act->what);
        return;
    }
    while (is_passing(batch_pause(a->client, name, &how, &answer)))
        complain(a, "pause batch", act->what);
    json_decref(answer);
    clock_sleep_until(clock_mono_us() + act->for_us);
    while (is_passing(batch_resume(a->client, name, &change)))
        complain(a, "resume batch", act->what);
}

static void pause_queue(struct actor *a, const struct act *act)
{
    const struct pausing pause = {.for_us = RATE_ENDLESS, .create = true},
                         resume = {.for_us = RATE_RESUME, .create = true};
    const char *queue = queue_names[act->what];
    json_t *before;

    while (is_passing(queue_pause(a->client, queue, &pause, &before)))
        complain(a, "pause queue", act->what);
    json_decref(before);
    clock_sleep_until(clock_mono_us() + act->for_us);
    while (is_passing(queue_pause(a->client, queue, &resume, &before)))
        complain(a, "resume queue", act->what);
    json_decref(before);
}

static void pause_limit(struct actor *a, const struct act *act)
{
    while (weir_rate_pause(a->client, limit_plans[act->what].name, (double)act->for_us / 1e6) != 0)
        complain(a, "pause limit", act->what);
}

static void move_limit(struct actor *a, const struct act *act)
{
    while (weir_rate_set(a->client, "moved", moved_rules[act->what]) != 0)
        complain(a, "rate set", act->what);
}

static int run_operator(void)
{
    struct actor a;

    begin_actor(&a);
    for (int i = 0; i < a.plan.act_count; i++) {
        const struct act *act = &a.plan.acts[i];

        clock_sleep_until(a.begun_us + act->at_us);
        if (act->kind == ACT_CANCEL_JOB)
            cancel_planned_job(&a, act->what);
        else if (act->kind == ACT_PAUSE_QUEUE)
            pause_queue(&a, act);
        else if (act->kind == ACT_PAUSE_LIMIT)
            pause_limit(&a, act);
        else if (act->kind == ACT_MOVE_LIMIT)
            move_limit(&a, act);
        else
            halt_batch(&a, act);
    }
    end_actor(&a);
    return 0;
}

/* ---- Workers of our own */

static struct weir_worker *own;

static void on_stop(int number)
{
    (void)number;
    weir_worker_stop(own);
}

static int add_handlers(void)
{
    static const struct {
        const char *variable, *kind;
    } kinds[] = {{"CHAOS_EXEC", "exec"}, {"CHAOS_PIPE", "pipe"}, {"CHAOS_HTTP", "http"}};
    const struct weir_type_options options = {.backoff_first_s = 0.1, .backoff_most_s = 0.5};
    char command[300], names[512], *rest, *name;
    int status = weir_register(own);

    for (int i = 0; status == 0 && i < 3; i++) {
        snprintf(names, sizeof names, "%s", setting(kinds[i].variable));
        rest = names;
        snprintf(command, sizeof command, "%s %s", setting("CHAOS_CHILD"), kinds[i].kind);
        while (status == 0 && (name = strsep(&rest, ",")) && *name)
            status = i == 0   ? weir_worker_exec(own, name, command)
                     : i == 1 ? weir_worker_pipe(own, name, command, 4)
                              : weir_worker_http(own, name, setting("CHAOS_URL"));
    }
    for (int i = 0; status == 0 && i < TYPE_COUNT; i++)
        status = weir_worker_type(own, type_plans[i].name, &options);
    return status;
}

static int run_worker(void)
{
    int status;

    own = weir_worker_new(&(struct weir_worker_options){
        .queues = setting("CHAOS_QUEUES"),
        .executors = atoi(setting("CHAOS_EXECUTORS")),
        .lease_s = atof(setting("CHAOS_LEASE")),
        .grace_s = atof(setting("CHAOS_GRACE")),
        .trace_file = setting("CHAOS_TRACE"),
    });
    if (!own)
        return 70;
    signal(SIGTERM, on_stop);
    status = add_handlers();
    if (status == 0)
        status = weir_worker_run(own);
    if (status != 0) {
        fprintf(stderr, "%s\n", weir_worker_message(own));
        _exit(-status); /* a function may still run */
    }
    weir_worker_free(own);
    return 0;
}

int actor_main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "worker") == 0)
        return run_worker();
    if (argc > 2 && strcmp(argv[1], "producer") == 0)
        return run_producer(atoi(argv[2]));
    if (argc > 1 && strcmp(argv[1], "operator") == 0)
        return run_operator();
    return -1;
}

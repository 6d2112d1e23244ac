/* weir job: what is known of one job, and its end before it has ended by itself. */
#include <inttypes.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/document/json.h"
#include "cli/document/text.h"
#include "cli/rate/rate.h"
#include "queue/inspect/cancel.h"

#define ARGS_SHOWN 2000 /* bytes of args that are printed for a person; --json has all */

static int run_job(struct cli *cli, int argc, char **argv);

const struct command command_job = {.name = "job", .run = run_job};

/* ---- JSON */

static void add_place_json(json_t *doc, const struct found_job *job)
{
    json_object_set_new(doc, "place", json_integer(job->before + 1));
    json_object_set_new(doc, "of", json_integer(job->length));
}

static void add_state_json(json_t *doc, const struct found_job *job)
{
    switch (job->state) {
    case JOB_WAITING:
    case JOB_PARKED:
    case JOB_ASIDE:
        add_place_json(doc, job);
        break;
    case JOB_RUNNING:
        json_object_set_new(doc, "worker",
                            json_pack("{s:o, s:o, s:I}", "name", text_word(job->worker), "host",
                                      text_json(span_str(job->host)), "pid", (json_int_t)job->pid));
        json_object_set_new(doc, "since", json_time(job->at_us));
        json_object_set_new(doc, "lease_until", json_time(job->lease_us));
        break;
    case JOB_SCHEDULED:
    case JOB_RETRY:
        json_object_set_new(doc, "start", json_time(job->at_us));
        break;
    case JOB_DEAD:
        json_object_set_new(doc, "since", json_time(job->at_us));
        json_object_set_new(doc, "reason", text_json(span_str(job->reason)));
        break;
    case JOB_FINISHED:
        json_object_set_new(doc, "since", json_time(job->at_us));
        json_object_set_new(doc, "outcome", text_word(job->outcome));
        json_object_set_new(doc, "worker", json_pack("{s:o}", "name", text_word(job->worker)));
        break;
    }
}

static json_t *lock_json(const struct found_job *job)
{
    return *job->lock ? json_string(job->lock_until_start ? "start" : "end") : json_null();
}

/* What keeps it from starting, besides limits. */
static void add_halt_json(json_t *doc, const struct found_job *job)
{
    json_object_set_new(doc, "cancelled_at", json_time(job->cancelled_us));
    json_object_set_new(doc, "queue_paused_since", json_since(job->queue_paused_us));
    json_object_set_new(doc, "batch_paused_since", json_since(job->batch_paused_us));
    json_object_set_new(doc, "batch_cancelled_at", json_time(job->batch_cancelled_us));
    json_object_set_new(doc, "unreadable", text_json(span_str(job->wrong)));
}

static json_t *job_json(const char *id, const struct found_job *job, const struct job_view *view)
{
    json_t *doc = json_pack(
        "{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:b, s:I, s:o, s:o, s:o}", "id", id, "state",
        found_job_word(job), "queue", text_json(span_str(job->queue)), "type", text_json(span_str(job->type)),
        "key", text_json(span_str(job->key)), "batch", text_json(span_str(job->batch)), "unique",
        text_json(span_str(job->lock)), "unique_until", lock_json(job), "attempts", (json_int_t)job->attempts,
        "max_attempts", (json_int_t)view->max_attempts, "interrupted", (json_int_t)job->interrupted, "alone",
        job->alone, "throttled", (json_int_t)job->throttled, "timeout",
        view->timeout_us > 0 ? json_seconds(view->timeout_us) : json_null(), "failed_at",
        json_time(job->failed_us), "failure", text_json(span_str(job->failure)));

    add_halt_json(doc, job);
    add_state_json(doc, job);
    return doc;
}

/* ---- Text */

static void print_time(const char *what, int64_t us)
{
    char when[40];

    if (us <= 0)
        return;
    cli_format_time(us, when);
    output("%-11s %s\n", what, when);
}

static void print_words(const char *what, const char *text)
{
    output("%-11s ", what);
    text_print(span_str(text), 0);
    putchar('\n');
}

static void print_running(const struct found_job *job)
{
    char when[96];

    output("%-11s %s", "worker", job->worker);
    if (*job->host)
        output(", process %" PRId64 " on %s", job->pid, job->host);
    putchar('\n');
    print_time("since", job->at_us);
    if (job->lease_us > job->now_us) {
        rate_format_when(job->now_us, job->lease_us, when);
        output("%-11s %s, unless its worker prolongs it\n", "lease to", when);
    } else {
        output("%-11s over: its worker is silent, and another one takes the job back\n", "lease");
    }
}

static void print_place(const struct found_job *job)
{
    static const char *const lists[] = {
        [JOB_WAITING] = "in its queue", [JOB_PARKED] = "in its lane", [JOB_ASIDE] = "of those aside"};

    output("%-11s %" PRId64 " of %" PRId64 " %s\n", "place", job->before + 1, job->length, lists[job->state]);
    if (job->held)
        output("%-11s by its type: no worker that looked can run it; start one that has a handler for %s\n",
               "held", job->type);
    if (job->queue_paused_us > 0)
        print_time("paused", job->queue_paused_us);
    if (job->queue_paused_us > 0)
        output("%-11s weir queue resume %s\n", "", job->queue);
    if (job->batch_paused_us > 0)
        output("%-11s batch %s is paused; weir batch resume %s\n", "waits for", job->batch, job->batch);
}

static void print_state(const struct found_job *job)
{
    char when[96];

    switch (job->state) {
    case JOB_WAITING:
    case JOB_PARKED:
    case JOB_ASIDE:
        print_place(job);
        break;
    case JOB_RUNNING:
        print_running(job);
        break;
    case JOB_SCHEDULED:
    case JOB_RETRY:
        rate_format_when(job->now_us, job->at_us, when);
        output("%-11s %s, at the earliest\n", "starts", when);
        break;
    case JOB_DEAD:
        print_time("since", job->at_us);
        print_words("reason", job->reason);
        break;
    case JOB_FINISHED:
        print_time(job->outcome, job->at_us);
        output("%-11s %s\n", "worker", job->worker);
        break;
    }
}

static void print_past(const struct found_job *job, const struct job_view *view)
{
    output("%-11s %" PRId64 " of %d used\n", "attempts", job->attempts, view->max_attempts);
    if (job->interrupted > 0)
        output("%-11s %d times, by the death of its worker or handler%s\n", "interrupted", job->interrupted,
               job->alone ? "; alone in its worker from now on" : "");
    if (job->throttled > 0)
        output("%-11s %d times\n", "throttled", job->throttled);
    print_time("failed last", job->failed_us);
    if (job->failed_us > 0)
        print_words("as", job->failure);
    if (view->timeout_us > 0)
        output("%-11s %g s\n", "timeout", (double)view->timeout_us / 1e6);
}

static bool is_over(const struct found_job *job)
{
    return job->state == JOB_DEAD || job->state == JOB_FINISHED;
}

static void print_cancelled(const struct found_job *job)
{
    print_time("cancelled", job->cancelled_us);
    if (job->cancelled_us > 0)
        output("%-11s %s\n", "",
               job->state == JOB_RUNNING ? "its worker is told" : "it ends when a worker comes to it");
    if (job->batch_cancelled_us > 0)
        print_time("batch ended", job->batch_cancelled_us);
}

/* As they stand; all of a body that is no job. */
static void print_args(const struct found_job *job, struct span args)
{
    struct span shown = *job->wrong ? job->body : args;

    if (!shown.at)
        return;
    output("%-11s ", *job->wrong ? "body" : "args");
    if (text_print(shown, ARGS_SHOWN))
        output("\n%-11s cut here; --json has all", "");
    putchar('\n');
}

static void print_job(const char *id, const struct found_job *job, const struct job_view *view)
{
    output("%-11s %s\n%-11s %s\n", "job", id, "state", found_job_word(job));
    output("%-11s %s", "type", *job->type ? job->type : "-");
    if (*job->key)
        output(", key %s", job->key);
    if (*job->queue)
        output(", queue %s", job->queue);
    putchar('\n');
    if (*job->batch)
        output("%-11s %s\n", "batch", job->batch);
    if (*job->lock)
        output("%-11s %s, until it %s\n", "unique", job->lock, job->lock_until_start ? "starts" : "ends");
    print_state(job);
    if (*job->wrong && !is_over(job))
        output("%-11s %s\n%-11s it ends among the dead when a worker comes to it\n", "unreadable", job->wrong,
               "");
    print_cancelled(job);
    print_past(job, view);
    print_args(job, view->args);
}

/* ---- The actions */

static int run_show(struct cli *cli, struct weir *w, const char *id)
{
    struct found_job job;
    struct job_view view;
    struct error ignored;
    int status = 0;

    if (find_job(w, -1, id, &job) < 0) {
        found_job_free(&job);
        return cli_failed(cli, w);
    }
    if (job_read(job.body.at, job.body.len, &view, &ignored) < 0)
        view = (struct job_view){.max_attempts = JOB_MAX_ATTEMPTS};
    if (cli->json)
        status = text_print_with_body(cli, job_json(id, &job, &view), job.body);
    else
        print_job(id, &job, &view);
    found_job_free(&job);
    return status;
}

/* What was done, and what happens now. */
static void print_cancel(const char *id, const struct cancel *cancel, const char *lock)
{
    const struct found_job *job = &cancel->job;

    switch (cancel->result) {
    case CANCEL_REMOVED:
        output("job %s is cancelled: it was %s and is gone\n", id,
               job->state == JOB_RETRY ? "to be retried" : "scheduled");
        break;
    case CANCEL_MARKED:
    case CANCEL_BEFORE:
        output("job %s %s cancelled: it is %s in queue %s, and ends there when %s\n", id,
               cancel->result == CANCEL_MARKED ? "is" : "was already", job_state_name(job->state), job->queue,
               job->state == JOB_ASIDE ? "its batch is resumed or cancelled" : "a worker comes to it");
        break;
    case CANCEL_TOLD:
        output("job %s runs on worker %s, which is told: a command gets TERM, a function sees it\n", id,
               job->worker);
        break;
    case CANCEL_UNLOCKED:
        output("job %s is nowhere; its unique key %s is free\n", id, lock);
        break;
    }
}

static json_t *cancel_json(const char *id, const struct cancel *cancel)
{
    static const char *const results[] = {[CANCEL_REMOVED] = "removed",
                                          [CANCEL_MARKED] = "marked",
                                          [CANCEL_BEFORE] = "already",
                                          [CANCEL_TOLD] = "told",
                                          [CANCEL_UNLOCKED] = "unlocked"};

    return json_pack(
        "{s:s, s:s, s:o, s:o}", "id", id, "result", results[cancel->result], "state",
        cancel->result == CANCEL_UNLOCKED ? json_null() : json_string(found_job_word(&cancel->job)), "worker",
        *cancel->job.worker ? json_pack("{s:o}", "name", text_word(cancel->job.worker)) : json_null());
}

static int run_cancel(struct cli *cli, struct weir *w, const char *id, const char *lock)
{
    struct cancel cancel;
    int status = cancel_job(w, -1, id, lock, &cancel);

    if (status < 0)
        status = cli_failed(cli, w);
    else if (cli->json)
        status = json_print(cli, cancel_json(id, &cancel));
    else
        print_cancel(id, &cancel, lock);
    cancel_free(&cancel);
    return status;
}

static int check_words(struct cli *cli, int operands, char **argv)
{
    static const struct {
        const char *name, *flags;
    } actions[] = {{"show", ""}, {"cancel", "unique"}};

    if (cli_choose(cli, operands ? argv[0] : NULL, actions, sizeof *actions, 2) < 0)
        return cli->error.status;
    if (operands != 2)
        return error_set(&cli->error, WEIR_EUSAGE, "job %s: wants the id of one job; weir enqueue prints it",
                         argv[0]);
    return 0;
}

static int run_job(struct cli *cli, int argc, char **argv)
{
    const char *lock = NULL;
    const struct flag flags[] = {{.name = "unique",
                                  .kind = FLAG_TEXT,
                                  .value = "KEY",
                                  .help = "cancel: free this key when ID holds it and is nowhere",
                                  .target = &lock},
                                 {.name = NULL}};
    struct weir *w;
    int operands, status = cli_parse(cli, flags, argc, argv, &operands);

    if (status == 0)
        status = check_words(cli, operands, argv);
    if (status != 0)
        return status;
    if (!(w = cli_client(cli)))
        return cli->error.status;
    status = strcmp(argv[0], "show") == 0 ? run_show(cli, w, argv[1]) : run_cancel(cli, w, argv[1], lock);
    weir_free(w);
    return status;
}

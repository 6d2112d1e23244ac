/* weir status: queues, types, workers. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "cli/command/commands.h"
#include "cli/json.h"
#include "cli/outlook.h"
#include "queue/inspect/status.h"

static int run_status(struct cli *cli, int argc, char **argv);

const struct command command_status = {.name = "status", .run = run_status};

/* ---- JSON */

static json_t *type_json(const struct type_status *t)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:f, s:o, s:o, s:b}",
                     "waiting", (json_int_t)t->waiting, "parked", (json_int_t)t->parked, "held",
                     (json_int_t)t->held, "running", (json_int_t)t->running, "scheduled",
                     (json_int_t)t->scheduled, "done", (json_int_t)t->done, "retried", (json_int_t)t->retried,
                     "dead", (json_int_t)t->dead, "cancelled", (json_int_t)t->cancelled, "aside",
                     (json_int_t)t->aside, "keyless", (json_int_t)t->keyless.jobs, "rate",
                     t->rate > 0 ? json_real(t->rate) : json_null(), "rate_now", t->rate_now, "next_start",
                     json_time(t->next_start_us), "finish_at", json_time(t->finish_us), "at_the_earliest",
                     t->because != 0);
}

static json_t *status_json(const struct status *s)
{
    json_t *queues = json_object(), *types = json_object(), *workers = json_array();

    for (size_t i = 0; i < s->queue_count; i++)
        json_object_set_new(queues, s->queues[i].name,
                            json_pack("{s:I, s:o}", "waiting", (json_int_t)s->queues[i].waiting,
                                      "paused_since", json_since(s->queues[i].paused_us)));
    for (size_t i = 0; i < s->type_count; i++)
        json_object_set_new(types, s->types[i].name, type_json(&s->types[i]));
    for (size_t i = 0; i < s->worker_count; i++) {
        const struct worker_status *w = &s->workers[i];

        json_array_append_new(workers,
                              json_pack("{s:s, s:s, s:I, s:I, s:o}", "name", w->name, "host", w->host, "pid",
                                        (json_int_t)w->pid, "running", (json_int_t)w->running, "seen_at",
                                        json_seconds(w->seen_us)));
    }
    return json_pack("{s:o, s:o, s:o, s:{s:I, s:o}}", "queues", queues, "types", types, "workers", workers,
                     "kept_dead", "jobs", (json_int_t)s->dead, "bytes",
                     s->dead_bytes < 0 ? json_null() : json_integer(s->dead_bytes));
}

/* ---- Text */

static void print_types(const struct status *s)
{
    output("%-24s %9s %9s %7s %7s %8s %9s %10s %8s %6s %10s %9s  %s\n", "type", "waiting", "parked", "held",
           "aside", "running", "scheduled", "done", "retried", "dead", "rate", "now", "ends");
    for (size_t i = 0; i < s->type_count; i++) {
        const struct type_status *t = &s->types[i];
        char rate_now[40], ends[40] = "-";

        if (t->finish_us >= 0)
            cli_format_time(t->finish_us, ends);
        output("%-24s %9" PRId64 " %9" PRId64 " %7" PRId64 " %7" PRId64 " %8" PRId64 " %9" PRId64
               " %10" PRId64 " %8" PRId64 " %6" PRId64 " %10s %9s  %s%s\n",
               t->name, t->waiting, t->parked, t->held, t->aside, t->running, t->scheduled, t->done,
               t->retried, t->dead, *t->rule ? t->rule : "-", per_second(t->rate_now, rate_now), ends,
               t->because && t->finish_us >= 0 ? " at the earliest" : "");
    }
}

static void print_queue(const struct queue_status *q)
{
    char since[40] = "";

    if (q->paused_us < 0)
        strcpy(since, "an unknown time");
    else if (q->paused_us > 0)
        cli_format_time(q->paused_us, since);
    output("%-24s %9" PRId64 "%s%s\n", q->name, q->waiting, *since ? "  paused since " : "", since);
}

static void print_keyless(const struct status *s)
{
    for (size_t i = 0; i < s->type_count; i++)
        if (keyless_most(&s->types[i].keyless))
            keyless_print(stdout, s->types[i].name, &s->types[i].keyless);
}

static void print_cancelled(const struct status *s)
{
    int64_t cancelled = 0;

    for (size_t i = 0; i < s->type_count; i++)
        cancelled += s->types[i].cancelled;
    if (cancelled > 0)
        output("\n%" PRId64 " jobs were cancelled\n", cancelled);
}

static void print_status(const struct status *s)
{
    char bytes[32];

    if (s->type_count == 0)
        output("no jobs yet; enqueue one with weir enqueue TYPE\n");
    else
        print_types(s);
    print_keyless(s);
    if (s->queue_count > 0)
        output("\n%-24s %9s\n", "queue", "waiting");
    for (size_t i = 0; i < s->queue_count; i++)
        print_queue(&s->queues[i]);
    if (s->worker_count == 0)
        output("\nno workers; start one with weir worker\n");
    else
        output("\n%-24s %-20s %8s %8s  %s\n", "worker", "host", "pid", "running", "seen");
    for (size_t i = 0; i < s->worker_count; i++) {
        const struct worker_status *w = &s->workers[i];

        output("%-24s %-20.20s %8" PRId64 " %8" PRId64 "  %.1f s ago\n", w->name, w->host, w->pid, w->running,
               (double)(s->now_us - w->seen_us) / 1e6);
    }
    if (s->dead > 0)
        output("\n%" PRId64 " dead jobs, %s\n", s->dead,
               s->dead_bytes < 0 ? "bytes not counted yet" : sized(s->dead_bytes, bytes));
    print_cancelled(s);
}

static int show(struct cli *cli, struct weir *w)
{
    struct status status;
    int rc = status_read(w, &status);

    if (rc != 0)
        rc = cli_failed(cli, w);
    else if (cli->json)
        rc = json_print(cli, status_json(&status));
    else
        print_status(&status);
    status_free(&status);
    return rc;
}

static int run_status(struct cli *cli, int argc, char **argv)
{
    bool watch = false;
    const struct flag flags[] = {
        {.name = "watch", .kind = FLAG_BOOL, .help = "again every second", .target = &watch}, {.name = NULL}};
    struct weir *w;
    int operands, rc = cli_parse(cli, flags, argc, argv, &operands);

    if (rc != 0)
        return rc;
    if (operands > 0)
        return error_set(&cli->error, WEIR_EUSAGE, "status: it takes no '%s'; see weir status --help",
                         argv[0]);
    if (!(w = cli_client(cli)))
        return cli->error.status;
    do {
        if (watch && !cli->json && cli_is_terminal(stdout))
            output("\033[H\033[2J");
        rc = show(cli, w);
        fflush(stdout);
        if (watch && rc == 0)
            sleep(1);
    } while (watch && rc == 0);
    weir_free(w);
    return rc;
}

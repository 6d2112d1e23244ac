#include "view/workers.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "queue/inspect/order.h"
#include "queue/limits/rate.h"
#include "view/format.h"
#include "view/output.h"
#include "view/text.h"

#define WHICH_SIZE 300

const char *worker_state(const struct worker_status *w)
{
    if (w->silent)
        return "silent";
    if (!*w->order)
        return "working";
    if (strcmp(w->order, "resume") == 0)
        return "resume ordered";
    if (strcmp(w->order, "stop") == 0)
        return w->heard ? "stopping" : "stop ordered";
    return w->heard ? "quiet" : "quiet ordered";
}

static json_t *words(const json_t *list)
{
    json_t *words = json_array(), *word;
    size_t i;

    json_array_foreach((json_t *)list, i, word)
        json_array_append_new(words, text_word(json_string_value(word) ? json_string_value(word) : ""));
    return words;
}

void worker_put_types(FILE *to, int64_t count, const json_t *patterns)
{
    size_t known = json_array_size(patterns);
    char text[32];

    if (count > (int64_t)known || known == 0)
        output_to(to, "%s%s", grouped((uint64_t)count - known, text), known ? ", " : "");
    for (size_t i = 0; i < known; i++)
        output_to(to, "%s%s", i ? ", " : "", json_string_value(json_array_get(patterns, i)));
}

json_t *worker_document(const struct worker_status *w)
{
    return json_pack("{s:o, s:o, s:I, s:s, s:o, s:I, s:I, s:o, s:I, s:o, s:o, s:o}", "name",
                     text_word(w->name), "host", text_word(w->host), "pid", (json_int_t)w->pid, "state",
                     worker_state(w), "ordered_at", json_time(w->ordered_us), "executors",
                     (json_int_t)w->executors, "running", (json_int_t)w->running, "serves", words(w->queues),
                     "type_count", (json_int_t)w->type_count, "patterns", words(w->patterns), "version",
                     *w->version ? text_word(w->version) : json_null(), "seen_at", json_seconds(w->seen_us));
}

json_t *workers_document(const struct status *status)
{
    json_t *workers = json_array();

    for (size_t i = 0; i < status->worker_count; i++)
        json_array_append_new(workers, worker_document(&status->workers[i]));
    return workers;
}

int view_workers(struct weir *w, json_t **doc)
{
    struct status status;
    int rc = status_workers(w, &status);

    *doc = NULL;
    if (rc == 0)
        rc = document_done(w, workers_document(&status), doc);
    status_free(&status);
    return rc;
}

/* ---- Orders */

static json_t *order_document(const struct worker_status *w, const char *order)
{
    return json_pack("{s:o, s:o, s:I, s:s, s:f}", "name", text_word(w->name), "host", text_word(w->host),
                     "pid", (json_int_t)w->pid, "order", order, "within", (double)w->lease_us / 4e6);
}

static bool is_meant(const struct worker_status *worker, const char *which)
{
    char process[WHICH_SIZE];

    snprintf(process, sizeof process, "%s:%" PRId64, worker->host, worker->pid);
    return !worker->silent && (strcmp(which, "all") == 0 || strcmp(which, worker->name) == 0 ||
                               strcmp(which, process) == 0 || strcmp(which, worker->host) == 0);
}

static int order_one(struct weir *w, const struct worker_status *worker, const char *order, json_t *ordered)
{
    if (!*worker->instance)
        return error_set(&w->error, WEIR_ENOTNOW,
                         "worker %s %s: an older version, which hears no orders; send %s to process %" PRId64
                         " of %s",
                         order, worker->name, strcmp(order, "quiet") == 0 ? "SIGTSTP" : "SIGTERM",
                         worker->pid, worker->host);
    if (worker_order(w, worker->instance, order) < 0)
        return w->error.status;
    json_array_append_new(ordered, order_document(worker, order));
    return 0;
}

int view_worker_orders(struct weir *w, const char *which, const char *order, json_t **doc)
{
    struct error deaf = {0}; /* of the last one that hears no orders */
    struct status status;
    int rc = status_workers(w, &status), found = 0;

    *doc = json_array();
    for (size_t i = 0; rc == 0 && i < status.worker_count; i++) {
        if (!is_meant(&status.workers[i], which))
            continue;
        found++;
        rc = order_one(w, &status.workers[i], order, *doc);
        if (rc == WEIR_ENOTNOW) {
            deaf = w->error;
            rc = 0;
        }
    }
    if (rc == 0 && deaf.status != 0) {
        w->error = deaf;
        rc = deaf.status;
    }
    if (rc == 0 && found == 0)
        rc = error_set(&w->error, WEIR_ENOTFOUND,
                       "worker %.200s: there is none that runs; weir worker list shows them", which);
    if (json_array_size(*doc) > 0)
        rate_note(w, "worker %s %s: %zu", order, which, json_array_size(*doc));
    status_free(&status);
    return rc;
}

int view_workers_busy(struct weir *w, const char *which)
{
    struct status status;
    int rc = status_workers(w, &status), busy = 0;

    for (size_t i = 0; rc == 0 && i < status.worker_count; i++) {
        const struct worker_status *worker = &status.workers[i];

        busy += is_meant(worker, which) && *worker->order && (worker->running > 0 || !worker->heard);
    }
    status_free(&status);
    return rc < 0 ? rc : busy;
}

/* What the protocol (doc/protocol.md) costs Redis, beside the same by libweir, one call after the other on one connection. CPU time of Redis, the
 * least of some rounds in which they take turns: so much it takes on a machine that others use too. */
#include <stdio.h>
#include <string.h>

#include "bench/bench.h"
#include "queue/call/call.h"

#define ROUNDS 5
#define CALLS 20000 /* in a round */
#define LINES 1000  /* of a bulk */
#define ARGS "{\"business_id\":42}"

enum way { ENQUEUE, ENQUEUE_CALL_VERB, TAKE, TAKE_CALL_VERB, BULK_CALL_VERB, WAYS };

static struct text answer, lines;

static int call(struct weir *w, const char *verb, const char *document, size_t len, const char *says)
{
    bool lost;
    int rc;

    answer.len = 0;
    rc = call_verb(w, verb, (struct span){document, len}, &answer, &lost);
    if (rc == 0 && (answer.len < strlen(says) || memcmp(answer.at, says, strlen(says)) != 0))
        return error_set(&w->error, WEIR_EINTERNAL, "%s: %.*s", verb, (int)answer.len, answer.at);
    return rc;
}

static int enqueue_by_protocol(struct weir *w)
{
    char document[200], id[17];

    job_make_id(id);
    snprintf(document, sizeof document, "{\"remember\":60,\"id\":\"%s\",\"type\":\"noop\",\"args\":" ARGS "}",
             id);
    return call(w, "enqueue", document, strlen(document), "{\"id\":");
}

static int bulk_by_protocol(struct weir *w, size_t i)
{
    int rc = 0;

    lines.len = 0;
    for (size_t line = 0; line <= LINES && rc == 0; line++) {
        char text[100];

        if (line == 0)
            snprintf(text, sizeof text, "{\"batch\":\"b\",\"type\":\"noop\",\"offset\":%zu}\n", i * LINES);
        else
            snprintf(text, sizeof text, "{\"business_id\":%zu}\n", line);
        rc = text_add(&lines, text, strlen(text), &w->error);
    }
    return rc == 0 ? call(w, "bulk", lines.at, lines.len, "{\"taken\":true") : rc;
}

static int call_once(struct weir *w, enum way way, size_t i)
{
    struct weir_take take;

    switch (way) {
    case ENQUEUE:
        return weir_enqueue(w, &(struct weir_job_spec){.type = "noop", .args = ARGS}, NULL);
    case ENQUEUE_CALL_VERB:
        return enqueue_by_protocol(w);
    case TAKE:
        return weir_take(w, "api", NULL, 1, 0, &take);
    case TAKE_CALL_VERB:
        return call(w, "take", "{\"limit\":\"api\"}", 15, "{\"allowed\":true");
    default:
        return bulk_by_protocol(w, i);
    }
}

/* redis_us: for each call. */
static int run_way(struct bench *b, enum way way, double *least_us)
{
    size_t calls = bench_size(b, CALLS) / (way == BULK_CALL_VERB ? 100 : 1);
    struct weir *w = weir_new(b->server.url, NULL);
    struct stopwatch watch;
    struct speed speed;
    int rc = server_ask(&b->server, NULL, &b->error, "FLUSHALL", NULL);

    if (rc == 0 && (!w || weir_rate_set(w, "api", NEVER_REACHED) < 0 || call_once(w, ENQUEUE, 0) < 0))
        rc = error_set(&b->error, WEIR_EINTERNAL, "%.400s", weir_message(w));
    if (rc == 0)
        rc = stopwatch_start(b, &b->server, &watch);
    for (size_t i = 0; rc == 0 && i < calls; i++)
        if (call_once(w, way, i) < 0)
            rc = error_set(&b->error, WEIR_EINTERNAL, "%.400s", weir_message(w));
    if (rc == 0)
        rc = stopwatch_stop(b, &b->server, &watch, calls, &speed);
    if (rc == 0 && (*least_us == 0 || speed.redis_us < *least_us))
        *least_us = speed.redis_us;
    weir_free(w);
    return rc == 0 ? bench_check(b) : rc;
}

int bench_protocol(struct bench *b)
{
    double us[WAYS] = {0};
    int rc = 0;

    for (int round = 0; round < ROUNDS && rc == 0; round++)
        for (enum way way = 0; way < WAYS && rc == 0; way++)
            rc = run_way(b, way, &us[way]);
    text_free(&answer);
    text_free(&lines);
    if (rc != 0)
        return rc;
    report(b, PROTOCOL_ENQUEUE, us[ENQUEUE_CALL_VERB] / us[ENQUEUE], 0, "%.1f us, %.1f us by libweir",
           us[ENQUEUE_CALL_VERB], us[ENQUEUE]);
    report(b, PROTOCOL_TAKE, us[TAKE_CALL_VERB] / us[TAKE], 0, "%.1f us, %.1f us by libweir",
           us[TAKE_CALL_VERB], us[TAKE]);
    report(b, PROTOCOL_BULK, LINES * 1e6 / us[BULK_CALL_VERB], 0, "of a batch, %.0f us a text",
           us[BULK_CALL_VERB]);
    return 0;
}

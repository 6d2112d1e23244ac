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

static void call(struct weir *w, const char *verb, const char *document, size_t len, const char *says)
{
    bool lost;

    answer.len = 0;
    client_must(w, call_verb(w, verb, (struct span){document, len}, &answer, &lost));
    if (answer.len < strlen(says) || memcmp(answer.at, says, strlen(says)) != 0)
        fail("%s: %.*s", verb, (int)answer.len, answer.at);
}

static void enqueue_by_protocol(struct weir *w)
{
    char document[200], id[17];

    job_make_id(id);
    snprintf(document, sizeof document, "{\"remember\":60,\"id\":\"%s\",\"type\":\"noop\",\"args\":" ARGS "}",
             id);
    call(w, "enqueue", document, strlen(document), "{\"id\":");
}

static void bulk_by_protocol(struct weir *w, size_t i)
{
    lines.len = 0;
    for (size_t line = 0; line <= LINES; line++) {
        char text[100];

        if (line == 0)
            snprintf(text, sizeof text, "{\"batch\":\"b\",\"type\":\"noop\",\"offset\":%zu}\n", i * LINES);
        else
            snprintf(text, sizeof text, "{\"business_id\":%zu}\n", line);
        must(text_add(&lines, text, strlen(text), &failure));
    }
    call(w, "bulk", lines.at, lines.len, "{\"taken\":true");
}

static void call_once(struct weir *w, enum way way, size_t i)
{
    struct weir_take take;

    if (way == ENQUEUE)
        client_must(w, weir_enqueue(w, &(struct weir_job_spec){.type = "noop", .args = ARGS}, NULL));
    else if (way == ENQUEUE_CALL_VERB)
        enqueue_by_protocol(w);
    else if (way == TAKE)
        client_must(w, weir_take(w, "api", NULL, 1, 0, &take));
    else if (way == TAKE_CALL_VERB)
        call(w, "take", "{\"limit\":\"api\"}", 15, "{\"allowed\":true");
    else
        bulk_by_protocol(w, i);
}

/* Returns the CPU of Redis for each call, us. */
static double run_way(enum way way)
{
    size_t calls = bench_size(CALLS) / (way == BULK_CALL_VERB ? 100 : 1);
    struct weir *w = client_open(bench.server.url);
    struct stopwatch watch;

    empty();
    client_must(w, weir_rate_set(w, "api", NEVER_REACHED));
    call_once(w, ENQUEUE, 0);
    watch = stopwatch_start(&bench.server);
    for (size_t i = 0; i < calls; i++)
        call_once(w, way, i);
    weir_free(w);
    bench_check();
    return stopwatch_stop(&bench.server, &watch, calls).redis_us;
}

void bench_protocol(void)
{
    double us[WAYS];

    for (int round = 0; round < ROUNDS; round++)
        for (enum way way = 0; way < WAYS; way++) {
            double one_us = run_way(way);

            us[way] = round > 0 && us[way] < one_us ? us[way] : one_us;
        }
    text_free(&answer);
    text_free(&lines);
    report(PROTOCOL_ENQUEUE, us[ENQUEUE_CALL_VERB] / us[ENQUEUE], 0, "%.1f us, %.1f us by libweir",
           us[ENQUEUE_CALL_VERB], us[ENQUEUE]);
    report(PROTOCOL_TAKE, us[TAKE_CALL_VERB] / us[TAKE], 0, "%.1f us, %.1f us by libweir", us[TAKE_CALL_VERB],
           us[TAKE]);
    report(PROTOCOL_BULK, LINES * 1e6 / us[BULK_CALL_VERB], 0, "of a batch, %.0f us a text",
           us[BULK_CALL_VERB]);
}

#include "serve/post_hold.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "core/clock.h"
#include "core/decimal.h"
#include "core/duration.h"
#include "queue/call/call.h"
#include "queue/job/job_cost.h"
#include "serve/fields.h"

#define WAIT_MOST_US INT64_C(60000000)
#define SECONDS_DIGITS 15 /* of a time below 10^9 s to the microsecond */

const struct resource hold_resources[] = {
    {"/hold", THREAD_LOOK, "limit key cost wait ttl tag who place leave", NULL, {.word = "hold"}},
    {"/hold/*/renew", THREAD_LOOK, "", NULL, {.word = "renew"}},
    {"/hold/*/end", THREAD_LOOK, "spent", NULL, {.word = "end"}},
    {.path = NULL},
};

/* ---- Fields */

/* A number of seconds, or a time such as 30s. */
static int read_span(const char *name, const char *text, int64_t *us, struct error *e)
{
    struct error why;
    char *end;
    double seconds = decimal_read(text, &end);

    if (*text >= '0' && *text <= '9' && !*end && seconds < 1e9)
        *us = llround(seconds * 1e6);
    else if (duration_parse(text, us, &why) < 0)
        return error_set(e, WEIR_EINPUT, "%s: must be seconds, or a time such as 30s", name);
    return 0;
}

/* A cost as the protocol has it; a text that is none is refused there. */
static json_t *cost_member(const char *text)
{
    char json[COST_JSON_SIZE];
    struct job_cost cost;
    struct error ignored;

    if (cost_read(text, COST_TRUE, &cost, &ignored) < 0)
        return json_string(text);
    cost_write_json(&cost, json);
    return json_loads(json, JSON_DECODE_ANY, NULL);
}

/* A member as the protocol has it; what is wrong with it the protocol says. */
static json_t *member_of(const char *name, const char *text)
{
    if (strcmp(name, "cost") == 0 || strcmp(name, "spent") == 0)
        return cost_member(text);
    return strcmp(name, "leave") == 0 && strcmp(text, "true") == 0 ? json_true() : json_string(text);
}

static int read_member(struct post_hold *p, const char *name, const char *text, struct error *e)
{
    int64_t us;
    bool waits = strcmp(name, "wait") == 0;

    if (!waits && strcmp(name, "ttl") != 0) {
        json_object_set_new(p->document, name, member_of(name, text));
        return 0;
    }
    if (read_span(name, text, &us, e) < 0)
        return e->status;
    if (waits && us > WAIT_MOST_US)
        return error_set(e, WEIR_EINPUT, "wait: must be at most 60 seconds; ask again then");
    if (waits)
        p->until_us += us;
    json_object_set_new(p->document, name, json_real((double)us / 1e6));
    return 0;
}

int post_hold_read(struct post_hold *p, const struct resource *row, const char *name, const json_t *fields,
                   const char *visitor, struct error *e)
{
    const char *field;
    json_t *value;

    p->document = json_object();
    p->until_us = clock_mono_us();
    if (fields_check(fields, row->fields, e) < 0)
        return e->status;
    json_object_foreach((json_t *)fields, field, value)
        if (strcmp(field, "back") != 0 && read_member(p, field, json_string_value(value), e) < 0)
            return e->status;
    if (strcmp(row->path, "/hold") != 0)
        json_object_set_new(p->document, "token", json_string(name));
    else if (*visitor && !json_object_get(p->document, "who"))
        json_object_set_new(p->document, "who", json_string(visitor));
    return 0;
}

/* ---- Asking */

/* True when nobody reads the answer any more. */
static bool is_gone(int peer)
{
    char byte;
    ssize_t n = recv(peer, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

    return n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

static int ask(struct weir *w, const char *verb, const json_t *document, json_t **answer, bool *lost)
{
    char *text = json_dumps(document, JSON_COMPACT | JSON_REAL_PRECISION(SECONDS_DIGITS));
    struct text reply = {0};
    int status = text ? call_verb(w, verb, (struct span){text, strlen(text)}, &reply, lost)
                      : error_no_memory(&w->error, verb);

    *answer = status == 0 ? json_loadb(reply.at, reply.len, 0, NULL) : NULL;
    if (status == 0 && !*answer)
        status = error_no_memory(&w->error, verb);
    free(text);
    text_free(&reply);
    return status;
}

/* Gives back what somebody who has gone was granted, or the place in line. What comes of it does not matter: both end by themselves. */
static void give_back(struct weir *w, const struct post_hold *p, const json_t *answer)
{
    json_t *token = json_object_get(answer, "token"), *place = json_object_get(p->document, "place"),
           *ignored = NULL, *document = token ? json_pack("{s:O}", "token", token) : json_copy(p->document);
    bool lost;

    if (!token)
        json_object_set_new(document, "leave", json_true());
    if (document && (token || place) && ask(w, token ? "end" : "hold", document, &ignored, &lost) == 0)
        json_decref(ignored);
    json_decref(document);
}

int post_hold_ask(struct post_hold *p, struct weir *w, const char *verb, json_t **answer, int64_t *again_us,
                  bool *lost)
{
    json_t *place, *rest;
    int64_t now_us = clock_mono_us();
    int status;

    *again_us = 0;
    if (json_object_get(p->document, "wait"))
        json_object_set_new(p->document, "wait",
                            json_real(p->until_us > now_us ? (double)(p->until_us - now_us) / 1e6 : 0));
    status = ask(w, verb, p->document, answer, lost);
    if (status < 0)
        return status;
    place = json_object_get(*answer, "place");
    rest = json_object_get(*answer, "ask_after");
    if (place) {
        json_object_set(p->document, "place", place);
        *again_us = clock_mono_us() + (int64_t)(json_number_value(rest) * 1e6);
    }
    if (strcmp(verb, "hold") == 0 && is_gone(p->peer)) {
        give_back(w, p, *answer);
        *again_us = 0;
    }
    return 0;
}

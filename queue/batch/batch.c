#include "queue/batch/batch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/client/client.h"
#include "core/client/pages.h"
#include "core/client/reply.h"
#include "core/given.h"
#include "core/likely.h"
#include "core/number.h"
#include "core/script/script.h"
#include "queue/inspect/job_act.h"
#include "queue/limits/rate.h"
#include "queue/status/status_parts.h"

#define PAGE "500"      /* jobs set aside that one script looks at */
#define NAMES_MOST 1000 /* of other batches that a name may be close to */
#define LISTED "weir batch list names them"

/* ---- Requests and answers */

static int not_found(const char *name, const char *more, struct error *e)
{
    return error_set(e, WEIR_ENOTFOUND, "batch %s: there is none, or it ended over 30 days ago; %s", name,
                     more);
}

static bool is_word(const struct redisReply *r, const char *word)
{
    return r->type == REDIS_REPLY_STRING && strcmp(r->str, word) == 0;
}

/* Reads "queue type". */
static void read_follower(const char *text, struct batch *out)
{
    const char *blank = strchr(text, ' ');

    if (!blank || !name_is_valid(text, (size_t)(blank - text)) ||
        !name_is_valid(blank + 1, strlen(blank + 1)))
        return;
    snprintf(out->queue, sizeof out->queue, "%.*s", (int)(blank - text), text);
    snprintf(out->type, sizeof out->type, "%s", blank + 1);
}

/* Reads "mail 300 news 20 * 5"; jobs at * are of types that are not counted apart. */
static void read_types(const char *text, struct batch *out)
{
    char name[LIMIT_NAME_SIZE];
    int64_t jobs;
    int len;

    while (out->type_count < BATCH_TYPES_MOST &&
           sscanf(text, "%128[A-Za-z0-9_.-] %" SCNd64 " %n", name, &jobs, &len) == 2) {
        struct batch_type *t = &out->types[out->type_count++];

        snprintf(t->name, sizeof t->name, "%s", name);
        t->jobs = positive(jobs);
        text += len;
    }
}

static enum batch_phase phase_of(const struct batch *b, const json_t *row)
{
    if (answer_int(row, "cancel"))
        return BATCH_CANCELLED;
    if (b->sealed_us && b->left == 0)
        return BATCH_ENDED;
    if (strcmp(answer_text(row, "halted"), "paused") == 0)
        return BATCH_PAUSED;
    return BATCH_RUNNING;
}

void batch_row(const json_t *row, int64_t now_us, struct batch *out)
{
    int64_t ended;

    *out = (struct batch){.now_us = now_us,
                          .total = answer_int(row, "total"),
                          .done = answer_int(row, "done"),
                          .dead = answer_int(row, "dead"),
                          .cancelled = answer_int(row, "cancelled"),
                          .failed = answer_int(row, "failed"),
                          .running = -1,
                          .aside = answer_int(row, "aside"),
                          .halted_us = answer_int(row, "since"),
                          .pause = json_incref(json_object_get(row, "pause")),
                          .created_us = answer_int(row, "created"),
                          .sealed_us = answer_int(row, "sealed"),
                          .ended_us = answer_int(row, "ended"),
                          .fired_us = answer_int(row, "fired"),
                          .finish_us = -1};
    ended = out->done + out->dead + out->cancelled;
    out->left = positive(out->total - ended);
    out->rate = status_rate(row, ended, now_us);
    snprintf(out->name, sizeof out->name, "%s", answer_text(row, "name"));
    read_follower(answer_text(row, "then"), out);
    read_types(answer_text(row, "types"), out);
    out->phase = phase_of(out, row);
    if (out->phase == BATCH_ENDED && out->ended_us > out->created_us) /* of its whole life */
        out->rate = (double)ended / ((double)(out->ended_us - out->created_us) / 1e6);
}

void batch_seal_request(struct args *a, const char *prefix, int64_t now_us, const char *name, bool create,
                        const char *queue, const char *type)
{
    script_begin(a, "batch_seal", prefix, now_us);
    args_add(a, name);
    args_add_int(a, create);
    args_add(a, type ? queue : "");
    args_add(a, type ? type : "");
}

int batch_seal_reply(const struct redisReply *r, const char *name, struct batch_sealed *sealed,
                     struct error *e)
{
    int status = reply_array(r, 1, "batch_seal", e);

    if (status)
        return status;
    if (is_word(r->element[0], "none"))
        return not_found(name, LISTED, e);
    if (r->elements < 3)
        return reply_unexpected("batch_seal", e);
    *sealed = (struct batch_sealed){reply_int(r->element[1], 0), reply_int(r->element[2], 0)};
    return 0;
}

/* ---- Asking Redis */

static const char *const phases[] = {[BATCH_RUNNING] = "running",
                                     [BATCH_PAUSED] = "paused",
                                     [BATCH_CANCELLED] = "cancelled",
                                     [BATCH_ENDED] = "ended"};

const char *batch_phase_name(enum batch_phase phase)
{
    return phases[phase];
}

struct names_of {
    const char *name[NAMES_MOST + 1]; /* ended by NULL */
    size_t count;
    json_t *kept;
};

static int add_name(const struct batch *b, void *arg)
{
    struct names_of *names = arg;
    json_t *name = json_string(b->name);

    if (json_array_append_new(names->kept, name) < 0)
        return 1;
    names->name[names->count++] = json_string_value(name);
    return names->count == NAMES_MOST;
}

/* Fills w->error with the batch that the name is close to, where there is one. */
static int no_batch(struct weir *w, const char *name)
{
    struct names_of names = {.kept = json_array()};
    char more[LIMIT_NAME_SIZE + 20];
    const char *likely = batch_each(w, false, add_name, &names) < 0 ? NULL : likely_word(name, names.name);

    snprintf(more, sizeof more, "did you mean %s?", likely ? likely : "");
    not_found(name, likely ? more : LISTED, &w->error);
    json_decref(names.kept);
    return w->error.status;
}

/* A change of a batch has its script, and makes the call of it. */
struct change {
    const char *script, *name;
    void (*ask)(struct args *a, const char *prefix, const struct change *change);
    const void *arg;
};

/* Asks one partition after the other, until one has the batch; *was: what it was. */
static int ask_change(struct weir *w, const struct change *c, enum batch_phase *was, json_t **answer)
{
    const char *word = "";
    int status = limit_name_check("batch", c->name, &w->error);

    *answer = NULL;
    if (!status)
        status = client_at(w, w->at);
    if (status)
        return status;
    do {
        struct args a = {0};

        json_decref(*answer);
        c->ask(&a, w->prefix, c);
        status = client_ask(w, c->script, &a, answer);
        word = answer_text(*answer, "was");
    } while (!*word && client_at_next(w, &status));
    for (size_t i = 0; status == 0 && i < sizeof phases / sizeof *phases; i++)
        if (strcmp(phases[i], word) == 0) {
            *was = (enum batch_phase)i;
            return 0;
        }
    if (status == 0)
        status = *word ? reply_unexpected(c->script, &w->error) : no_batch(w, c->name);
    json_decref(*answer);
    *answer = NULL;
    return status;
}

static int add_running(const json_t *page, void *arg)
{
    ((struct batch *)arg)->running += answer_int(page, "running");
    return 0;
}

/* Adds those of one worker to out->running. */
static int count_running(struct weir *w, const char *worker, struct batch *out)
{
    return pages_walk(&(struct pages){.w = w,
                                      .script = "batch_running",
                                      .now_us = -1,
                                      .arg = out,
                                      .words = ASK_WORDS(out->name, worker),
                                      .take = add_running,
                                      .here = true});
}

int batch_read(struct weir *w, const char *name, struct batch *out)
{
    json_t *answer = NULL, *worker;
    size_t i;
    int status;

    *out = (struct batch){.finish_us = -1};
    if (limit_name_check("batch", name, &w->error) < 0 || client_at(w, 0) < 0)
        return w->error.status;
    do {
        json_decref(answer);
        status = client_ask_words(w, -1, "batch_show", ASK_WORDS(name), &answer);
    } while (!json_object_get(answer, "batch") && client_at_next(w, &status));
    if (!status && !json_object_get(answer, "batch"))
        status = no_batch(w, name);
    if (!status) {
        batch_row(json_object_get(answer, "batch"), answer_int(answer, "now"), out);
        out->running = 0;
    }
    json_array_foreach(json_object_get(answer, "workers"), i, worker)
        if (!status)
            status = count_running(w, json_string_value(worker), out);
    json_decref(answer);
    return status;
}

struct each {
    int (*take)(const struct batch *b, void *arg);
    void *arg;
};

static int take_list(const json_t *page, void *arg)
{
    const json_t *rows = json_object_get(page, "batches");
    const struct each *each = arg;
    int status = 0;

    for (size_t i = 0; status == 0 && i < json_array_size(rows); i++) {
        struct batch b;

        batch_row(json_array_get(rows, i), answer_int(page, "now"), &b);
        status = each->take(&b, each->arg);
        batch_free(&b);
    }
    return status;
}

int batch_each(struct weir *w, bool aside, int (*take)(const struct batch *b, void *arg), void *arg)
{
    return pages_walk(&(struct pages){.w = w,
                                      .script = "batch_list",
                                      .now_us = -1,
                                      .arg = &(struct each){take, arg},
                                      .words = ASK_WORDS(aside ? "aside" : "all"),
                                      .take = take_list,
                                      .rows = "batches",
                                      .by = "created"});
}

static void ask_pause(struct args *a, const char *prefix, const struct change *c)
{
    pause_request(a, c->script, prefix, -1, "batch ", c->name, c->arg);
}

int batch_pause(struct weir *w, const char *name, const struct pausing *how, json_t **answer)
{
    enum batch_phase was;
    int status = client_at(w, 0);

    *answer = NULL;
    if (!status)
        status = ask_change(w, &(struct change){"batch_pause", name, ask_pause, how}, &was, answer);
    if (!status)
        status = rate_apply(w, *answer);
    if (status == WEIR_ENOTFOUND && how->create && client_count(w) > 1)
        error_set(&w->error, status,
                  "batch %s: there is none yet, and where its first job will be is not known; "
                  "pause it once it has one",
                  name);
    if (status) {
        json_decref(*answer);
        *answer = NULL;
    }
    return status;
}

/* Pages of what is aside, until none is left; *dropped: how many. */
static int drop_aside(struct weir *w, const char *name, int64_t *dropped)
{
    int64_t left = INT64_MAX, before;
    int status;

    *dropped = 0;
    do {
        json_t *answer;

        before = left;
        status = client_ask_words(w, -1, "batch_drop", ASK_WORDS(name, PAGE), &answer);
        *dropped += answer_int(answer, "dropped");
        left = answer_int(answer, "aside");
        json_decref(answer);
    } while (!status && left > 0 && left < before);
    return status;
}

/* Ends jobs that claims do not come to at once, so that their unique keys are free. */
static int end_unmet(struct weir *w, const char *name, bool unmet)
{
    static const struct job_bounds all = {.looked_at = INT64_MAX, .jobs = JOB_BOUND_MOST};
    struct job_search search = {.count = 0};
    json_t *result = NULL;
    int status = job_search_add(&search, "batch", name, &w->error);

    if (!status)
        status = job_search_add(&search, "state",
                                unmet ? "scheduled,retry,waiting,parked,held" : "scheduled,retry", &w->error);
    if (!status)
        status = job_actions(w, -1, &search, "cancel", NULL, &all, &result);
    json_decref(result);
    return status;
}

static void ask_cancel(struct args *a, const char *prefix, const struct change *c)
{
    script_begin(a, c->script, prefix, -1);
    args_add(a, c->name);
    args_add_int(a, *(const bool *)c->arg);
}

int batch_cancel(struct weir *w, const char *name, bool dry, struct batch_change *change)
{
    json_t *answer = NULL;
    bool unmet;
    int status = client_at(w, 0);

    if (!status)
        status =
            ask_change(w, &(struct change){"batch_cancel", name, ask_cancel, &dry}, &change->was, &answer);
    if (!status)
        status = rate_apply(w, answer);
    change->left = answer_int(answer, "left");
    change->aside = answer_int(answer, "aside");
    unmet = json_is_true(json_object_get(answer, "unmet"));
    json_decref(answer);
    if (status || dry || change->was == BATCH_ENDED)
        return status;
    if (change->aside > 0)
        status = drop_aside(w, name, &change->aside);
    rate_note(w, "batch cancel %s: %" PRId64, name, change->left);
    return status ? status : end_unmet(w, name, unmet);
}

static void ask_resume(struct args *a, const char *prefix, const struct change *c)
{
    script_begin(a, c->script, prefix, -1);
    args_add(a, c->name);
    args_add(a, PAGE);
    job_add_seed(a);
}

int batch_resume(struct weir *w, const char *name, struct batch_change *change)
{
    const struct change call = {"batch_resume", name, ask_resume, NULL};
    int64_t left = INT64_MAX, before;
    enum batch_phase was = BATCH_RUNNING;
    bool first = true;
    int status;

    *change = (struct batch_change){0};
    if (client_at(w, 0) < 0)
        return w->error.status;
    do {
        json_t *answer = NULL;

        before = left;
        status = ask_change(w, &call, &was, &answer);
        if (first)
            change->was = was;
        first = false;
        change->aside += answer_int(answer, "returned");
        left = answer_int(answer, "aside");
        json_decref(answer);
    } while (!status && was != BATCH_CANCELLED && left > 0 && left < before);
    if (!status && (change->was == BATCH_PAUSED || change->aside > 0))
        rate_note(w, "batch resume %s: %" PRId64, name, change->aside);
    return status;
}

/* True when the batch was not found and there is another partition to ask. A reply that is no document does not say how many there are. */
static bool is_elsewhere(struct weir *w, int *status)
{
    struct error not_found = w->error;
    int count;

    if (*status != WEIR_ENOTFOUND)
        return false;
    *status = client_learn(w, &count);
    if (client_at_next(w, status))
        return true;
    if (*status == 0) {
        w->error = not_found;
        *status = not_found.status;
    }
    return false;
}

int batch_seal(struct weir *w, const char *name, const char *queue, const char *type,
               struct batch_sealed *sealed)
{
    int status;

    if (limit_name_check("batch", name, &w->error) < 0)
        return w->error.status;
    if (type && !name_is_valid(type, strlen(type)))
        return error_set(&w->error, WEIR_EINPUT,
                         "type '%.60s' to follow: not a valid name; use 1 to 128 of A-Z a-z 0-9 _ . -", type);
    status = client_at(w, 0);
    do {
        struct redisReply *reply = NULL;
        struct args a = {0};

        batch_seal_request(&a, w->prefix, -1, name, false, queue, type);
        if (!status)
            status = client_call(w, &a, &reply, NULL);
        if (!status)
            status = batch_seal_reply(reply, name, sealed, &w->error);
        args_free(&a);
        freeReplyObject(reply);
    } while (is_elsewhere(w, &status));
    return status == WEIR_ENOTFOUND ? no_batch(w, name) : status;
}

int weir_batch_seal(struct weir *w, const char *batch, const char *then_type)
{
    struct batch_sealed sealed;

    if (GIVEN(w, PASSED(batch)) < 0)
        return WEIR_EUSAGE;
    return batch_seal(w, batch, "default", then_type, &sealed);
}

int batch_place(struct weir *w, const char *name, int p, int *place)
{
    struct redisReply *reply = NULL;
    struct args a = {0};
    int status = client_at_home(w, name, strlen(name));

    if (status)
        return status;
    script_begin(&a, "batch_place", w->prefix, -1);
    args_add(&a, name);
    if (p < 0)
        args_add(&a, "");
    else
        args_add_int(&a, p);
    status = client_call(w, &a, &reply, NULL);
    if (!status)
        status = reply_array(reply, 1, "batch_place", &w->error);
    if (!status)
        *place = (int)reply_int(reply->element[0], -1);
    if (!status && *place >= client_count(w))
        *place = -1;
    freeReplyObject(reply);
    args_free(&a);
    return status;
}

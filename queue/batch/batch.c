#include "queue/batch/batch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/redis/client.h"
#include "core/redis/reply.h"
#include "core/redis/script.h"
#include "queue/limits/rate.h"

#define PAGE 500 /* jobs aside or leases that one script looks at */
#define LIST_PAGE 100
#define LIVELY_US 2000000 /* a batch whose counts move is marked every second */
#define MARKS_MOST_US 10000000

/* ---- Requests and answers */

/* As the scripts have them, behind the name, the halt and the number aside. */
enum field {
    TOTAL,
    DONE,
    DEAD,
    CANCELLED,
    FAILED,
    CREATED,
    SEALED,
    ENDED,
    THEN,
    FIRED,
    CANCEL,
    MARK_US,
    MARK,
    LAST_US,
    LAST,
    TYPES,
    FIELDS
};
#define ROW_HEAD 3

static int unexpected(const char *script, struct error *e)
{
    return error_set(e, WEIR_EINTERNAL, "%s: unexpected answer from Redis; is another version at work?",
                     script);
}

static int not_found(const char *name, struct error *e)
{
    return error_set(e, WEIR_ENOTFOUND,
                     "batch %s: there is none, or it ended over 30 days ago; weir batch list "
                     "names them",
                     name);
}

static int bad_name(const char *name, struct error *e)
{
    return error_set(e, WEIR_EINPUT, "batch '%.60s': no name; use 1 to 128 of A-Z a-z 0-9 _ . -", name);
}

static bool is_word(const struct redisReply *r, const char *word)
{
    return r->type == REDIS_REPLY_STRING && strcmp(r->str, word) == 0;
}

static int64_t positive(int64_t n)
{
    return n > 0 ? n : 0;
}

/* "queue type" */
static void read_follower(const char *text, struct batch *out)
{
    const char *blank = strchr(text, ' ');

    if (!blank || !name_is_valid(text, (size_t)(blank - text)) ||
        !name_is_valid(blank + 1, strlen(blank + 1)))
        return;
    snprintf(out->queue, sizeof out->queue, "%.*s", (int)(blank - text), text);
    snprintf(out->type, sizeof out->type, "%s", blank + 1);
}

/* "mail 300 news 20 * 5"; those of * are of types that are not counted apart. */
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

/* Since the mark before last, which is one to two seconds old while jobs end. */
static double rate_of(const int64_t *n, int64_t ended, int64_t now_us)
{
    bool lively = now_us - n[MARK_US] < LIVELY_US && n[LAST_US] > 0 && now_us - n[LAST_US] < MARKS_MOST_US;
    int64_t since_us = lively ? n[LAST_US] : n[MARK_US], before = lively ? n[LAST] : n[MARK];

    if (n[MARK_US] == 0 || now_us <= since_us)
        return 0;
    return (double)positive(ended - before) / ((double)(now_us - since_us) / 1e6);
}

static enum batch_phase phase_of(const struct batch *b, const int64_t *n, const char *halted)
{
    if (n[CANCEL])
        return BATCH_CANCELLED;
    if (b->sealed_us && b->left == 0)
        return BATCH_ENDED;
    if (strcmp(halted, "paused") == 0)
        return BATCH_PAUSED;
    return b->sealed_us ? BATCH_SEALED : BATCH_OPEN;
}

int batch_row(const struct redisReply *row, int64_t now_us, struct batch *out, struct error *e)
{
    int64_t n[FIELDS], ended;

    if (row->type != REDIS_REPLY_ARRAY || row->elements < ROW_HEAD + FIELDS)
        return unexpected("batch", e);
    for (size_t i = 0; i < ROW_HEAD + FIELDS; i++)
        if (row->element[i]->type != REDIS_REPLY_STRING)
            return unexpected("batch", e);
    for (int i = 0; i < FIELDS; i++)
        n[i] = reply_int(row->element[ROW_HEAD + i], 0);
    ended = n[DONE] + n[DEAD] + n[CANCELLED];
    *out = (struct batch){.now_us = now_us,
                          .total = n[TOTAL],
                          .done = n[DONE],
                          .dead = n[DEAD],
                          .cancelled = n[CANCELLED],
                          .left = positive(n[TOTAL] - ended),
                          .failed = n[FAILED],
                          .running = -1,
                          .aside = reply_int(row->element[2], 0),
                          .created_us = n[CREATED],
                          .sealed_us = n[SEALED],
                          .ended_us = n[ENDED],
                          .fired_us = n[FIRED],
                          .finish_us = -1,
                          .rate = rate_of(n, ended, now_us)};
    snprintf(out->name, sizeof out->name, "%s", row->element[0]->str);
    read_follower(row->element[ROW_HEAD + THEN]->str, out);
    read_types(row->element[ROW_HEAD + TYPES]->str, out);
    out->phase = phase_of(out, n, row->element[1]->str);
    return 0;
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
        return not_found(name, e);
    if (r->elements < 3)
        return unexpected("batch_seal", e);
    *sealed = (struct batch_sealed){reply_int(r->element[1], 0), reply_int(r->element[2], 0)};
    return 0;
}

static const struct word {
    const char *text;
    enum batch_phase phase;
} words[] = {
    {"open", BATCH_OPEN}, {"paused", BATCH_PAUSED}, {"cancelled", BATCH_CANCELLED}, {"ended", BATCH_ENDED}};

/* [ what it was, a number, a number ], or [ "none" ] */
static int read_change(const struct redisReply *r, const char *name, const char *script,
                       enum batch_phase *was, int64_t numbers[2], struct error *e)
{
    int status = reply_array(r, 1, script, e);

    if (status)
        return status;
    if (is_word(r->element[0], "none"))
        return not_found(name, e);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (r->elements < 3 || !is_word(r->element[0], words[i].text))
            continue;
        *was = words[i].phase;
        numbers[0] = reply_int(r->element[1], 0);
        numbers[1] = reply_int(r->element[2], 0);
        return 0;
    }
    return unexpected(script, e);
}

/* ---- Asking Redis */

/* Sends a and frees it. */
static int ask(struct weir *w, struct args *a, struct redisReply **reply)
{
    int status = client_call(w, a, reply, NULL);

    args_free(a);
    return status;
}

static void begin(struct weir *w, struct args *a, const char *script, const char *name)
{
    args_init(a);
    script_begin(a, script, w->prefix, -1);
    args_add(a, name);
}

/* Adds those of one worker to out->running, page by page. */
static int count_running(struct weir *w, const char *worker, struct batch *out)
{
    char from[32] = "";
    int status = 0;

    do {
        struct redisReply *reply = NULL;
        struct args a;

        begin(w, &a, "batch_running", out->name);
        args_add(&a, worker);
        args_add(&a, from);
        args_add_int(&a, PAGE);
        status = ask(w, &a, &reply);
        if (!status)
            status = reply_array(reply, 2, "batch_running", &w->error);
        if (!status) {
            out->running += reply_int(reply->element[1], 0);
            snprintf(from, sizeof from, "%s",
                     reply->element[0]->type == REDIS_REPLY_STRING ? reply->element[0]->str : "");
        }
        freeReplyObject(reply);
    } while (!status && *from);
    return status;
}

static int read_workers(struct weir *w, const struct redisReply *workers, struct batch *out)
{
    int status = workers->type == REDIS_REPLY_ARRAY ? 0 : unexpected("batch_show", &w->error);

    out->running = 0;
    for (size_t i = 0; !status && i < workers->elements; i++)
        if (workers->element[i]->type == REDIS_REPLY_STRING)
            status = count_running(w, workers->element[i]->str, out);
    return status;
}

int batch_read(struct weir *w, const char *name, struct batch *out)
{
    struct redisReply *reply = NULL;
    struct args a;
    int status;

    if (!name_is_valid(name, strlen(name)))
        return bad_name(name, &w->error);
    begin(w, &a, "batch_show", name);
    status = ask(w, &a, &reply);
    if (!status)
        status = reply_array(reply, 1, "batch_show", &w->error);
    if (!status && reply->elements < 3)
        status = not_found(name, &w->error);
    if (!status)
        status = batch_row(reply->element[1], reply_int(reply->element[0], 0), out, &w->error);
    if (!status)
        status = read_workers(w, reply->element[2], out);
    freeReplyObject(reply);
    return status;
}

/* Appends the rows of a page. */
static int read_page(struct weir *w, const struct redisReply *reply, struct batch **batches, size_t *count)
{
    size_t rows = reply->elements - 2;
    struct batch *grown = realloc(*batches, (*count + rows + 1) * sizeof *grown);

    if (!grown)
        return error_set(&w->error, WEIR_EINTERNAL, "batch list: out of memory");
    *batches = grown;
    for (size_t i = 0; i < rows; i++) {
        int status =
            batch_row(reply->element[i + 2], reply_int(reply->element[0], 0), &grown[*count], &w->error);

        if (status)
            return status;
        ++*count;
    }
    return 0;
}

int batch_list(struct weir *w, struct batch **batches, size_t *count)
{
    int64_t from = 0;
    int status = 0;

    *batches = NULL;
    *count = 0;
    while (!status && from >= 0) {
        struct redisReply *reply = NULL;
        struct args a;

        args_init(&a);
        script_begin(&a, "batch_list", w->prefix, -1);
        args_add_int(&a, from);
        args_add_int(&a, LIST_PAGE);
        status = ask(w, &a, &reply);
        if (!status)
            status = reply_array(reply, 2, "batch_list", &w->error);
        if (!status) {
            from = reply_int(reply->element[1], -1);
            status = read_page(w, reply, batches, count);
        }
        freeReplyObject(reply);
    }
    return status;
}

/* The lanes that sleep in the queues that the answer names from element first on. */
static int apply_all(struct weir *w, const struct redisReply *r, size_t first)
{
    int status = 0;

    for (size_t i = first; status == 0 && i < r->elements; i++)
        if (r->element[i]->type == REDIS_REPLY_STRING)
            status = rate_apply(w, r->element[i]->str);
    return status;
}

static int halt(struct weir *w, const char *name, const char *verb, bool dry, struct batch_change *change)
{
    struct redisReply *reply = NULL;
    struct args a;
    int64_t n[2] = {0, 0};
    int status;

    if (!name_is_valid(name, strlen(name)))
        return bad_name(name, &w->error);
    begin(w, &a, "batch_halt", name);
    args_add(&a, verb);
    args_add_int(&a, dry);
    status = ask(w, &a, &reply);
    if (!status)
        status = read_change(reply, name, "batch_halt", &change->was, n, &w->error);
    if (!status)
        status = apply_all(w, reply, 3);
    change->left = n[0];
    change->aside = n[1];
    freeReplyObject(reply);
    return status;
}

int batch_pause(struct weir *w, const char *name, struct batch_change *change)
{
    return halt(w, name, "pause", false, change);
}

/* Pages of what is aside, until none is left; *moved: how many. */
static int drop_aside(struct weir *w, const char *name, int64_t *moved)
{
    int64_t left = INT64_MAX, before;
    int status;

    *moved = 0;
    do {
        struct redisReply *reply = NULL;
        struct args a;

        before = left;

        begin(w, &a, "batch_drop", name);
        args_add_int(&a, PAGE);
        status = ask(w, &a, &reply);
        if (!status)
            status = reply_array(reply, 2, "batch_drop", &w->error);
        if (!status) {
            *moved += reply_int(reply->element[0], 0);
            left = reply_int(reply->element[1], 0);
        }
        freeReplyObject(reply);
    } while (!status && left > 0 && left < before);
    return status;
}

int batch_cancel(struct weir *w, const char *name, bool dry, struct batch_change *change)
{
    int status = halt(w, name, "cancel", dry, change);

    if (!status && !dry && change->aside > 0)
        status = drop_aside(w, name, &change->aside);
    return status;
}

int batch_resume(struct weir *w, const char *name, struct batch_change *change)
{
    int64_t n[2] = {0, INT64_MAX}, moved = 0, before;
    enum batch_phase was;
    bool first = true;
    int status;

    if (!name_is_valid(name, strlen(name)))
        return bad_name(name, &w->error);
    do {
        struct redisReply *reply = NULL;
        struct args a;

        before = n[1];
        begin(w, &a, "batch_resume", name);
        args_add_int(&a, PAGE);
        job_add_seed(&a);
        status = ask(w, &a, &reply);
        if (!status)
            status = read_change(reply, name, "batch_resume", &was, n, &w->error);
        freeReplyObject(reply);
        if (!status && first)
            change->was = was;
        first = false;
        moved += n[0];
    } while (!status && was != BATCH_CANCELLED && n[1] > 0 && n[1] < before);
    change->left = 0;
    change->aside = moved;
    return status;
}

int batch_seal(struct weir *w, const char *name, const char *queue, const char *type,
               struct batch_sealed *sealed)
{
    struct redisReply *reply = NULL;
    struct args a;
    int status;

    if (!name_is_valid(name, strlen(name)))
        return bad_name(name, &w->error);
    if (type && !name_is_valid(type, strlen(type)))
        return error_set(&w->error, WEIR_EINPUT,
                         "type '%.60s' to follow: no name; use 1 to 128 of A-Z a-z 0-9 _ . -", type);
    args_init(&a);
    batch_seal_request(&a, w->prefix, -1, name, false, queue, type);
    status = ask(w, &a, &reply);
    if (!status)
        status = batch_seal_reply(reply, name, sealed, &w->error);
    freeReplyObject(reply);
    return status;
}

int weir_batch_seal(struct weir *w, const char *batch, const char *then_type)
{
    struct batch_sealed sealed;

    return batch_seal(w, batch, "default", then_type, &sealed);
}

#include "queue/schedule/schedule.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/client/pages.h"
#include "core/client/reply.h"
#include "core/likely.h"
#include "core/script/script.h"
#include "queue/enqueue/enqueue.h"

#define FIRE_BYTES (4 * 1024 * 1024) /* bodies in one fire, one more or less */
#define ID_BEGIN "{\"id\":\""
#define KEEP_MS (60 * 1000) /* of an id that is made here and not used again */
#define SECONDS_MOST 16     /* bytes that the time of an occurrence adds to an id */

static const char *const missed_names[] = {
    [WEIR_MISSED_ONCE] = "once", [WEIR_MISSED_SKIP] = "skip", [WEIR_MISSED_ALL] = "all"};
#define MISSED_COUNT (sizeof missed_names / sizeof *missed_names)

const char *missed_name(enum weir_missed missed)
{
    return missed_names[missed];
}

bool missed_read(const char *name, enum weir_missed *missed)
{
    for (size_t i = 0; i < MISSED_COUNT; i++)
        if (strcmp(missed_names[i], name) == 0) {
            *missed = (enum weir_missed)i;
            return true;
        }
    return false;
}

/* ---- Definitions */

void schedule_free(struct schedule *s)
{
    zone_free(s->zone);
    json_decref(s->document);
    json_decref(s->pause);
    json_decref(s->fired);
    *s = (struct schedule){0};
}

/* Finds the texts of its document; false: they are not all there. */
static bool find_texts(struct schedule *s)
{
    const char *missed;
    struct error e;

    return json_unpack(s->document, "{s:s, s:s, s:s, s:s, s:s%}", "when", &s->when, "zone", &s->zone_name,
                       "missed", &missed, "queue", &s->queue, "job", &s->job.at, &s->job.len) == 0 &&
           missed_read(missed, &s->missed) && name_is_valid(s->queue, strlen(s->queue)) &&
           cron_parse(s->when, &s->cron, &e) == 0 && job_read(s->job.at, s->job.len, &s->view, &e) == 0 &&
           s->view.id.at == s->job.at + strlen(ID_BEGIN) &&
           memcmp(s->job.at, ID_BEGIN, strlen(ID_BEGIN)) == 0;
}

int schedule_read(struct span name, struct span definition, struct schedule *s, struct error *e)
{
    *s = (struct schedule){0};
    s->document = json_loadb(definition.at, definition.len, 0, NULL);
    if (!find_texts(s))
        return error_set(e, WEIR_ECONFIG,
                         "schedule %.*s: its definition cannot be read; add it again: weir schedule add",
                         (int)name.len, name.at);
    return zone_open(s->zone_name, &s->zone, e);
}

static int check_spec(const char *name, const struct weir_job_spec *job, struct error *e)
{
    if (!name_is_valid(name, strlen(name)) || strlen(name) > SCHEDULE_NAME_MOST)
        return error_set(e, WEIR_EINPUT,
                         "schedule '%.60s': not a valid name; use 1 to %d of A-Z a-z 0-9 _ . -", name,
                         SCHEDULE_NAME_MOST);
    if (job->id || job->delay_s != 0 || job->at_s != 0 || job->unique || job->batch)
        return error_set(e, WEIR_EUSAGE,
                         "schedule %s: its jobs have no id, time, unique key or batch of their own; leave "
                         "them out",
                         name);
    if (job->queue && !name_is_valid(job->queue, strlen(job->queue)))
        return error_set(e, WEIR_EINPUT, "queue '%.60s': not a valid name; use 1 to 128 of A-Z a-z 0-9 _ . -",
                         job->queue);
    return 0;
}

static int make_document(const char *name, const char *when, const char *zone, enum weir_missed missed,
                         const struct weir_job_spec *job, struct schedule *s, struct error *e)
{
    struct weir_job_spec named = *job;
    struct text body = {0};
    int status;

    named.id = name;
    status = job_write(&body, &named, NULL, e);
    if (status == 0 && body.len > JOB_BODY_MAX - SECONDS_MOST)
        status =
            error_set(e, WEIR_EINPUT,
                      "schedule %s: its args are too long; keep large data elsewhere and say where", name);
    if (status == 0)
        s->document =
            json_pack("{s:s, s:s, s:s, s:s, s:s%}", "when", when, "zone", zone, "missed", missed_name(missed),
                      "queue", job->queue ? job->queue : "default", "job", body.at, body.len);
    text_free(&body);
    return status == 0 && !s->document ? error_no_memory(e, "schedule") : status;
}

int schedule_make(const char *name, const char *when, const char *zone, enum weir_missed missed,
                  const struct weir_job_spec *job, struct schedule *s, char **text, struct error *e)
{
    int status;

    *s = (struct schedule){0};
    *text = NULL;
    zone = zone ? zone : "UTC";
    if ((unsigned)missed >= MISSED_COUNT)
        return error_set(e, WEIR_EUSAGE, "schedule %.60s: no such policy on missed occurrences", name);
    if ((status = check_spec(name, job, e)) != 0 || (status = cron_parse(when, &s->cron, e)) != 0 ||
        (status = zone_open(zone, &s->zone, e)) != 0 ||
        (status = make_document(name, when, zone, missed, job, s, e)) != 0)
        return status;
    if (!find_texts(s))
        return error_set(e, WEIR_EINPUT, "schedule %s: its texts must be UTF-8", name);
    *text = json_dumps(s->document, JSON_COMPACT);
    return *text ? 0 : error_no_memory(e, "schedule");
}

int64_t schedule_next(const struct schedule *s, int64_t after_us)
{
    return cron_next(&s->cron, s->zone, after_us / 1000000);
}

/* ---- Firing */

void schedule_make_plan(const struct schedule *s, int64_t due_us, int64_t now_us, struct schedule_plan *plan)
{
    int64_t at_s = due_us / 1000000, now_s = now_us / 1000000;
    int most = (int)(1 + FIRE_BYTES / s->job.len);

    plan->count = 0;
    if (s->missed == WEIR_MISSED_SKIP && now_us - due_us > SCHEDULE_LATE_US)
        at_s = schedule_next(s, now_us - SCHEDULE_LATE_US - 1);
    if (s->missed == WEIR_MISSED_ONCE) {
        plan->at_s[plan->count++] = at_s;
        at_s = schedule_next(s, now_us);
    }
    while (at_s <= now_s && plan->count < most && plan->count < SCHEDULE_FIRE_MOST) {
        plan->at_s[plan->count++] = at_s;
        at_s = cron_next(&s->cron, s->zone, at_s);
    }
    plan->next_s = at_s;
}

/* Makes the body of a schedule's job with that id; the caller frees it. NULL: out of memory. */
static char *make_body(const struct schedule *s, const char *id, size_t *len)
{
    const char *rest = s->view.id.at + s->view.id.len;
    size_t id_len = strlen(id), rest_len = (size_t)(s->job.at + s->job.len - rest);
    char *body = malloc(strlen(ID_BEGIN) + id_len + rest_len), *at = body;

    if (!body)
        return NULL;
    at = mempcpy(at, ID_BEGIN, strlen(ID_BEGIN));
    at = mempcpy(at, id, id_len);
    at = mempcpy(at, rest, rest_len);
    *len = (size_t)(at - body);
    return body;
}

static void add_jobs(struct args *a, struct span name, const struct schedule *s,
                     const struct schedule_plan *plan, int64_t now_us)
{
    char head[STAMP_HEAD_LEN + 1];

    stamp_head(now_us, head);
    args_add(a, s->queue);
    args_add_bytes(a, s->view.type.at, s->view.type.len);
    for (int i = 0; i < plan->count; i++) {
        char id[WEIR_ID_SIZE], *body;
        size_t len;

        snprintf(id, sizeof id, "%.*s.%" PRId64, (int)name.len, name.at, plan->at_s[i]);
        body = make_body(s, id, &len);
        args_add(a, head);
        if (body)
            args_extend(a, body, len);
        else
            a->failed = true; /* it is not sent */
        free(body);
    }
}

void schedule_fire_request(struct args *a, const char *prefix, int64_t now_us, struct span name,
                           struct span definition, int64_t due_us, const struct schedule *s,
                           const struct schedule_plan *plan)
{
    script_begin(a, "schedule_fire", prefix, now_us);
    args_add_bytes(a, name.at, name.len);
    args_add_bytes(a, definition.at, definition.len);
    args_add_int(a, due_us);
    if (s && plan->next_s != CRON_NEVER)
        args_add_int(a, plan->next_s * 1000000);
    else
        args_add(a, "");
    if (s && plan->count > 0)
        add_jobs(a, name, s, plan, stamp_now(now_us));
}

int schedule_fire_reply(const struct redisReply *reply, bool *fired, struct error *e)
{
    if (!reply || reply->type != REDIS_REPLY_INTEGER)
        return reply_array(reply, SIZE_MAX, "schedule_fire", e);
    *fired = reply->integer == 1;
    return 0;
}

/* ---- Looking */

struct look {
    const char *name; /* "": all */
    int (*take)(struct schedule_row *row, void *arg);
    void *arg;
    int64_t now_us;
};

static void ask_page(struct args *a, void *arg)
{
    args_add(a, ((const struct look *)arg)->name);
}

static void read_row(const json_t *answered, int64_t now_us, struct schedule_row *row)
{
    const json_t *definition = json_object_get(answered, "definition");
    const char *name = answer_text(answered, "name");

    *row = (struct schedule_row){.due_us = answer_int_or(answered, "due", -1), .now_us = now_us};
    snprintf(row->name, sizeof row->name, "%s", name);
    row->status = schedule_read(span_str(name),
                                (struct span){json_string_value(definition), json_string_length(definition)},
                                &row->s, &row->why);
    row->s.pause = json_incref(json_object_get(answered, "pause"));
    row->s.fired = json_incref(json_object_get(answered, "fired"));
}

static int take_page(const json_t *page, void *arg)
{
    const json_t *rows = json_object_get(page, "schedules");
    struct look *look = arg;
    int status = 0;

    look->now_us = answer_int(page, "now");
    for (size_t i = 0; status == 0 && i < json_array_size(rows); i++) {
        struct schedule_row row;

        read_row(json_array_get(rows, i), look->now_us, &row);
        status = look->take(&row, look->arg);
        schedule_free(&row.s);
    }
    return status;
}

static int look_at(struct weir *w, struct look *look)
{
    return pages_walk(&(struct pages){
        .w = w, .script = "schedule_list", .now_us = -1, .arg = look, .ask = ask_page, .take = take_page});
}

int schedule_each(struct weir *w, int (*take)(struct schedule_row *row, void *arg), void *arg)
{
    return look_at(w, &(struct look){.name = "", .take = take, .arg = arg});
}

struct near {
    const char *name;
    char likely[SCHEDULE_NAME_MOST + 1];
};

static int take_near(struct schedule_row *row, void *arg)
{
    struct near *near = arg;

    if (!*near->likely && likely_word(near->name, (const char *const[]){row->name, NULL}))
        strcpy(near->likely, row->name);
    return 0;
}

/* Fills w->error with the schedule that the name is close to, where there is one. */
static int no_schedule(struct weir *w, const char *name)
{
    struct near near = {.name = name};
    const char *likely = schedule_each(w, take_near, &near) == 0 ? near.likely : "";

    return error_set(&w->error, WEIR_ENOTFOUND, "schedule %.100s: there is none; %s%s%s", name,
                     *likely ? "did you mean " : "weir schedule list shows them", likely, *likely ? "?" : "");
}

/* Takes a row, which is kept. */
static int take_one(struct schedule_row *row, void *arg)
{
    struct schedule_row *one = arg;

    schedule_free(&one->s);
    *one = *row;
    row->s = (struct schedule){0};
    return 0;
}

int schedule_find(struct weir *w, const char *name, struct schedule_row *row)
{
    struct look look = {.name = name, .take = take_one, .arg = row};
    int status;

    *row = (struct schedule_row){0};
    if (!name_is_valid(name, strlen(name)))
        return no_schedule(w, name);
    status = look_at(w, &look);
    row->now_us = look.now_us;
    return status == 0 && !*row->name ? no_schedule(w, name) : status;
}

/* ---- Changing */

/* Asks one that says whether there was such a schedule. */
static int ask_known(struct weir *w, const char *script, struct args *a, bool *known)
{
    json_t *answer;
    int status = client_ask(w, script, a, &answer);

    *known |= json_is_true(json_object_get(answer, "known"));
    json_decref(answer);
    return status;
}

struct removal {
    const char *name;
    int kept_at; /* that partition keeps it; -1: none */
    bool known;  /* it was there */
};

static int remove_here(struct weir *w, void *arg)
{
    struct removal *removal = arg;
    struct args a = {0};

    if (w->at == removal->kept_at)
        return 0;
    script_begin(&a, "schedule_remove", w->prefix, -1);
    args_add(&a, removal->name);
    return ask_known(w, "schedule_remove", &a, &removal->known);
}

int schedule_put(struct weir *w, const char *name, const struct schedule *s, const char *text,
                 int64_t next_us, bool keep, bool *known)
{
    struct removal removal = {.name = name};
    char text_of_cost[COST_TEXT_SIZE];
    struct job_cost cost;
    struct args a = {0};
    int status = client_at_home(w, s->view.type.at, s->view.type.len);

    if (status < 0)
        return status;
    script_begin(&a, "schedule_add", w->prefix, -1);
    args_add(&a, name);
    args_add(&a, text);
    args_add_int(&a, next_us);
    args_add_int(&a, keep);
    args_add_bytes(&a, s->view.type.at, s->view.type.len);
    job_cost_of(&s->view, &cost);
    cost_write(&cost, text_of_cost);
    args_add(&a, text_of_cost);
    status = ask_known(w, "schedule_add", &a, &removal.known);
    removal.kept_at = w->at;
    if (status == 0 && client_count(w) > 1) /* where its jobs were of another type before */
        status = client_change_all(w, remove_here, &removal);
    *known = removal.known;
    return status;
}

int schedule_take_out(struct weir *w, const char *name)
{
    struct removal removal = {.name = name, .kept_at = -1};
    int status;

    if (!name_is_valid(name, strlen(name)))
        return no_schedule(w, name);
    status = client_change_all(w, remove_here, &removal);
    return status == 0 && !removal.known ? no_schedule(w, name) : status;
}

static int send_job(struct weir *w, const struct enqueue *job)
{
    struct redisReply *reply = NULL;
    struct args a = {0};
    enum enqueue_result result;
    struct span answered;
    int status = client_at_home(w, job->type.at, job->type.len);

    enqueue_request(&a, w->prefix, -1, job);
    if (status == 0)
        status = client_call(w, &a, &reply, NULL);
    if (status == 0)
        status = enqueue_reply(reply, job, &result, &answered, &w->error);
    freeReplyObject(reply);
    args_free(&a);
    return status;
}

/* Lets it be among the schedule's last runs. The job is enqueued: where this fails, the list of runs lacks one. */
static void note_run(struct weir *w, const struct schedule *s, const char *id)
{
    struct args a = {0};
    bool known = false;

    script_begin(&a, "schedule_ran", w->prefix, -1);
    args_add_bytes(&a, s->view.id.at, s->view.id.len);
    args_add(&a, s->queue);
    args_add_bytes(&a, s->view.type.at, s->view.type.len);
    args_add(&a, id);
    ask_known(w, "schedule_ran", &a, &known);
}

int schedule_enqueue(struct weir *w, const struct schedule *s, char id[WEIR_ID_SIZE])
{
    struct job_cost cost;
    struct enqueue job = {.queue = {s->queue, strlen(s->queue)},
                          .type = s->view.type,
                          .cost = &cost,
                          .keep_ms = KEEP_MS,
                          .tag = id,
                          .delay_us = -1,
                          .at_us = -1};
    char made[17], *body;
    int status;

    job_cost_of(&s->view, &cost);
    job_make_id(made);
    job.id = (struct span){
        id, (size_t)snprintf(id, WEIR_ID_SIZE, "%.*s.%s", (int)s->view.id.len, s->view.id.at, made)};
    if (!(body = make_body(s, id, &job.body.len)))
        return error_no_memory(&w->error, "schedule");
    job.body.at = body;
    status = send_job(w, &job);
    free(body);
    if (status == 0)
        note_run(w, s, id);
    return status;
}

/* The first line names a reader, what follows are the answers that it is given (tests/fuzz/fake_redis.h).
 * What it makes of them is read once. */
#include "core/client/answer.h"
#include "core/wire/handshake.h"
#include "queue/batch/batch.h"
#include "queue/dead/dead.h"
#include "queue/doctor/doctor.h"
#include "queue/doctor/doctor_access.h"
#include "queue/doctor/settings.h"
#include "queue/enqueue/enqueue.h"
#include "queue/history/history.h"
#include "queue/inspect/cancel.h"
#include "queue/inspect/find_job.h"
#include "queue/inspect/why.h"
#include "queue/limits/known.h"
#include "queue/limits/limits.h"
#include "queue/limits/rate.h"
#include "queue/queues/queues.h"
#include "queue/schedule/schedule.h"
#include "queue/status/status.h"
#include "queue/turn/record.h"
#include "queue/turn/turn.h"
#include "tests/fuzz/fake_redis.h"
#include "tests/fuzz/fuzz.h"
#include "throttle/take/take.h"

#define NOW_US INT64_C(1795000000000000)
#define JOBS_MOST 1000

static const char *at, *end;
static struct weir *w;
static struct error e;

void __wrap_clock_sleep_until(int64_t until_us);

void __wrap_clock_sleep_until(int64_t until_us)
{
    (void)until_us;
}

static struct redisReply *next_answer(const struct args *asked)
{
    fuzz_touch(asked->bytes, asked->len);
    return fake_read(&at, end);
}

static void touch(struct span s)
{
    fuzz_touch(s.at, s.len);
}

static void touch_text(const char *text)
{
    if (text)
        fuzz_touch(text, strlen(text));
}

/* ---- The pairs of requests and replies: each is given the same answer twice, as a worker reuses its arrays
 */

static void read_claim(const struct redisReply *r)
{
    static struct claim claim;

    if (claim_reply(r, &claim, &e) < 0)
        return;
    for (size_t i = 0; i < claim.lease_count; i++) {
        const struct lease *l = &claim.leases[i];

        touch(l->token), touch(l->type), touch(l->key), touch(l->body), touch(l->attrs);
    }
    touch(claim.causes);
    for (size_t i = 0; i < claim.loss_count; i++)
        touch(claim.losses[i].limit), touch(claim.leases[claim.losses[i].lease].token);
    for (size_t i = 0; i < claim.limit_count; i++)
        touch(claim.limits[i]);
    for (size_t i = 0; i < claim.held_count; i++)
        touch(claim.held[i]);
    for (size_t i = 0; i < claim.broken_count; i++)
        touch(claim.broken[i]);
    for (size_t i = 0; i < claim.paused_count; i++)
        touch(claim.paused[i]);
}

static void read_settle(const struct redisReply *r)
{
    int64_t stale;

    (void)!settle_reply(r, &stale, &e);
}

static void read_promote(const struct redisReply *r)
{
    struct promoted promoted;

    if (promote_reply(r, &promoted, &e) == 0)
        for (size_t i = 0; i < promoted.due_count; i++) {
            struct schedule_plan plan;
            struct schedule s;

            touch(promoted.due[i].name), touch(promoted.due[i].definition);
            if (schedule_read(promoted.due[i].name, promoted.due[i].definition, &s, &e) == 0)
                schedule_make_plan(&s, promoted.due[i].due_us, NOW_US, &plan);
            schedule_free(&s);
        }
    promoted_free(&promoted);
}

static void read_adopt(const struct redisReply *r)
{
    struct adopt adopt = {0};

    if (adopt_reply(r, 2, &adopt, &e) == 0) {
        touch(adopt.birth);
        for (int i = 0; i < 5; i++)
            touch(adopt.keys[i]);
        for (size_t i = 0; i < adopt.lost_count; i++)
            touch(adopt.lost[i]);
    }
    adopt_free(&adopt);
}

static void read_reap(const struct redisReply *r)
{
    struct reaped reaped;
    struct reaped_job job;

    if (reap_reply(r, &reaped, &e) != 0)
        return;
    for (size_t i = 0; i < reaped.wrong_count; i++)
        touch(reaped.wrong[i]);
    for (size_t i = 0; reap_job(r, i, &job); i++) {
        touch(job.id);
        touch(job.type);
        touch(job.attempt);
    }
}

static void read_record(const struct redisReply *r)
{
    struct span wrong;

    if (record_reply(r, &wrong, &e) == 0)
        touch(wrong);
}

static void read_drained(const struct redisReply *r)
{
    struct drained drained;

    (void)!drained_reply(r, &drained, &e);
}

static void read_enqueue(const struct redisReply *r)
{
    struct enqueue job = {.id = {"id", 2}};
    enum enqueue_result result;
    struct span id;

    if (enqueue_reply(r, &job, &result, &id, &e) == 0)
        touch(id);
}

static void read_append(const struct redisReply *r)
{
    struct batch_state state;
    bool accepted;

    (void)!append_reply(r, &state, &accepted, &e);
    (void)!batch_reply(r, &state, &e);
}

static void read_fits(const struct redisReply *r)
{
    struct keyed_by by;

    if (fits_reply(r, span_str("mial"), &by, &e) == 0)
        touch_text(by.path), touch_text(by.limit), touch_text(by.likely);
}

static void read_seal(const struct redisReply *r)
{
    struct batch_sealed sealed;

    (void)!batch_seal_reply(r, "batch", &sealed, &e);
}

/* Whatever the gates and counters say, the forecasts have an end. */
static void use_limits(struct limits *limits)
{
    for (size_t i = 0; i < limits->count; i++) {
        const struct limit *limit = &limits->at[i];

        touch_text(limit->name);
        for (size_t k = 0; limit->readable && k < limit->set.count; k++)
            if (!*limit->set.at[k].by)
                (void)limit_slots(limit, k), (void)limit_nth_start(limit, k, 1000);
        if (limit->readable)
            (void)limits_next_start(limits, limit);
    }
    for (size_t i = 0; i < limits->type_count; i++) {
        struct type_status *type = &limits->types[i];
        struct forecast forecast;

        type->waiting %= JOBS_MOST; /* many are gone through for half a second */
        type->parked %= JOBS_MOST;
        type->held %= JOBS_MOST;
        (void)!forecast_type(limits, type, NULL, &forecast, &e);
    }
}

static void read_known(const struct redisReply *r)
{
    struct known_limits known = {0};
    char written[100];

    if (rate_known_reply(r, &known, &e) == 0)
        touch_text(known.newest);
    if (rate_again_reply(r, &known, written, sizeof written, &e) == 0)
        touch_text(written);
    known_limits_free(&known);
}

static void read_fire(const struct redisReply *r)
{
    bool fired;

    (void)!schedule_fire_reply(r, &fired, &e);
}

static void read_settings(const struct redisReply *r)
{
    struct settings settings;
    struct access access;
    struct redis_address address = {.finder = REDIS_NAMED};

    (void)!settings_reply(r, &settings, &e);
    if (access_reply(r, "weir:{0}:", &access, &e) == 0) {
        touch_text(access.rule);
        touch_text(access.missing);
    }
    (void)!access_check(r, "weir:{0}:", "", &e);
    for (int step = HANDSHAKE_AUTH; step <= HANDSHAKE_LOAD; step++)
        (void)!handshake_reply(&address, (enum handshake_step)step, r, &e);
}

static void read_take_wait(const struct redisReply *r)
{
    struct take_wait wait = {.rules = ""};
    struct weir_take take;

    if (take_wait_reply(r, &wait, &take, &e) == 0)
        touch_text(wait.place), touch_text(wait.bell);
}

static void read_take(const struct redisReply *r)
{
    if (take_reply(r, 3, &e) == 0)
        for (size_t i = 0; i < 3; i++) {
            struct weir_take take;
            const char *why = NULL;

            (void)!take_answer(r, i, &take, &why);
            touch_text(why);
        }
}

/* ---- What asks Redis itself */

static void ask_status(void)
{
    struct status status;

    if (status_read(w, &status) == 0) {
        for (size_t i = 0; i < status.queue_count; i++)
            touch_text(status.queues[i].name);
        for (size_t i = 0; i < status.worker_count; i++)
            touch_text(status.workers[i].name), touch_text(status.workers[i].host);
        must_hold(status.type_count == 0 || status_type(&status, status.types[0].name));
    }
    status_free(&status);
}

static void ask_limits(void)
{
    struct limits limits;

    if (status_limits(w, -1, &limits) == 0)
        use_limits(&limits);
    limits_free(&limits);
}

static int touch_page(const json_t *page, void *arg)
{
    int *pages = arg;

    touch_text(answer_text(page, "looked_at"));
    return ++*pages == 10;
}

static void ask_dead(void)
{
    static const char *const verbs[] = {"list", "count", "retry"};
    struct dead_bounds bounds = {.bytes = 1};
    json_t *kept;
    int64_t beyond;

    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        int pages = 0;

        (void)!dead_walk(&(struct dead_walk){
            .w = w, .now_us = -1, .verb = verbs[i], .body_bytes = 100, .take = touch_page, .arg = &pages});
    }
    if (dead_keep(w, -1, &bounds, false, &kept) == 0)
        (void)!dead_count_beyond(w, -1, kept, &beyond);
    json_decref(kept);
}

static void touch_document(json_t *doc)
{
    char *text = json_dumps(doc, JSON_ENCODE_ANY);

    touch_text(text);
    free(text);
    json_decref(doc);
}

static void ask_job(void)
{
    json_t *job;

    if (find_job(w, -1, "j", &job) == 0)
        touch(found_body(job));
    touch_document(job);
}

static void ask_why(void)
{
    json_t *why;

    (void)!why_read(w, -1, "j", &why);
    touch_document(why);
}

static void ask_history(void)
{
    const struct history_call call = {.name = "mail", .of_limit = true, .slots = 60};
    json_t *history;

    if (history_ask(w, -1, &call, &history) == 0)
        (void)history_sum(history);
    touch_document(history);
}

static void ask_cancel(void)
{
    json_t *job;

    (void)!cancel_job(w, -1, "j", "k", &job);
    touch_document(job);
}

static int touch_batch(const struct batch *b, void *arg)
{
    (void)arg;
    touch_text(b->name), touch_text(b->type);
    return 0;
}

static void ask_batches(void)
{
    struct batch_change change;
    struct batch one;
    json_t *answer;

    (void)!batch_each(w, false, touch_batch, NULL);
    if (batch_read(w, "night", &one) == 0 && batch_forecast(w, &one) == 0)
        touch_text(one.name);
    batch_free(&one);
    (void)!batch_pause(w, "night", &(struct pausing){.for_us = RATE_ENDLESS}, &answer);
    json_decref(answer);
    (void)!batch_resume(w, "night", &change);
    (void)!batch_cancel(w, "night", false, &change);
}

static void ask_queues(void)
{
    struct queue_jobs jobs;
    json_t *rows;

    (void)!queues_read(w, &rows);
    touch_document(rows);
    (void)!queue_count(w, -1, "q", NULL, &jobs);
    (void)!queue_purge(w, -1, "q", "t", 100, &jobs);
}

static int touch_schedule(struct schedule_row *row, void *arg)
{
    (void)arg;
    touch_text(row->name), touch_text(row->why.text);
    return 0;
}

static void ask_schedules(void)
{
    struct schedule_row row;

    (void)!schedule_each(w, touch_schedule, NULL);
    if (schedule_find(w, "s", &row) == 0)
        touch_schedule(&row, NULL);
    schedule_free(&row.s);
}

static void ask_changes(void)
{
    struct rule_set kept;
    json_t *changes;

    (void)!rate_set(w, "mail", "10/s", false, &kept, NULL, NULL);
    (void)!rate_use(w, "mail", true, "acct", NULL);
    (void)!rate_pause(w, "mail", NULL, &(struct pausing){.for_us = RATE_RESUME}, NULL);
    (void)!rate_remove(w, "mail", true);
    if (rate_log_read(w, true, &changes) == 0)
        for (size_t i = 0; i < json_array_size(changes); i++)
            touch_text(json_string_value(json_array_get(changes, i)));
    json_decref(changes);
}

static void ask_doctor(void)
{
    struct doctor doctor;

    (void)!doctor_run(w, NOW_US, true, &doctor);
    for (size_t i = 0; i < json_array_size(doctor.checks); i++)
        touch_text(answer_text(json_array_get(doctor.checks, i), "text"));
    doctor_free(&doctor);
}

static const struct {
    const char *name;
    void (*read)(const struct redisReply *r); /* one of these */
    void (*ask)(void);
} readers[] = {
    {"claim", read_claim, NULL},     {"settle", read_settle, NULL},
    {"promote", read_promote, NULL}, {"adopt", read_adopt, NULL},
    {"reap", read_reap, NULL},       {"drained", read_drained, NULL},
    {"record", read_record, NULL},   {"enqueue", read_enqueue, NULL},
    {"append", read_append, NULL},   {"fits", read_fits, NULL},
    {"seal", read_seal, NULL},       {"rate_set", read_known, NULL},
    {"fire", read_fire, NULL},       {"settings", read_settings, NULL},
    {"take", read_take, NULL},       {"take_wait", read_take_wait, NULL},
    {"status", NULL, ask_status},    {"limit", NULL, ask_limits},
    {"dead", NULL, ask_dead},        {"job", NULL, ask_job},
    {"why", NULL, ask_why},          {"history", NULL, ask_history},
    {"cancel", NULL, ask_cancel},    {"batches", NULL, ask_batches},
    {"queues", NULL, ask_queues},    {"schedules", NULL, ask_schedules},
    {"log", NULL, ask_changes},      {"doctor", NULL, ask_doctor},
};

static void run_reader(size_t i)
{
    struct redisReply *r;

    if (readers[i].ask) {
        fake_redis(next_answer);
        readers[i].ask();
        return;
    }
    r = fake_read(&at, end);
    if (!r)
        return;
    readers[i].read(r);
    readers[i].read(r);
    freeReplyObject(r);
}

int fuzz_replies(const uint8_t *data, size_t size)
{
    size_t name = 0;

    if (!w)
        w = weir_new("/nowhere", NULL);
    at = (const char *)data;
    end = at + size;
    while (name < size && data[name] != '\n')
        name++;
    at += name < size ? name + 1 : name;
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
        if (strlen(readers[i].name) == name && memcmp(readers[i].name, data, name) == 0)
            run_reader(i);
    return 0;
}

#include "tests/sim_acts.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/client/client.h"
#include "core/script/script.h"
#include "queue/batch/batch.h"
#include "queue/enqueue/enqueue.h"
#include "queue/inspect/cancel.h"
#include "queue/inspect/job_act.h"
#include "queue/limits/rate_request.h"

struct acts_totals acts_totals;
static struct weir *w;
static int favourite; /* which act this world has most of */

static bool is_broken_off(void)
{
    bool broken_off = sim_chance(5);

    acts_totals.broken_off += broken_off;
    return broken_off;
}

static int any_queue(void)
{
    return (int)sim_pick(0, sim.queue_count - 1);
}

static int any_type(void)
{
    return (int)sim_pick(0, sim.type_count - 1);
}

static struct sim_batch *any_batch(void)
{
    return &sim.batches[sim_pick(0, SIM_BATCHES - 1)];
}

enum { ACTS = 28 };

void acts_begin(void)
{
    favourite = (int)sim_pick(0, ACTS - 1);
    for (int i = 0; i < SIM_BATCHES; i++) {
        struct sim_batch *b = &sim.batches[i];

        b->follower = sim_new_job(any_queue(), any_type(), 0);
        snprintf(b->name, sizeof b->name, "j%d", b->follower);
        sim_jobs[b->follower].follows = true;
        sim_jobs[b->follower].batch_followed = i;
        for (int path = 0; path < SIM_PATHS; path++)
            sim_jobs[b->follower].values[path] = 0; /* there is nothing at any of them */
    }
    if (!w)
        w = weir_new(turns.server.url, NULL);
}

void acts_stop(void)
{
    weir_free(w);
    w = NULL;
}

/* ---- Jobs in */

static bool is_closed(const struct sim_batch *b)
{
    return b->sealed || b->cancelled;
}

/* A job with a batch, a lock, or a delay; maybe none of them. */
static int make_job(int queue, int type)
{
    int64_t most = sim_cost_most(type);
    int n = sim_new_job(queue, type, sim_chance(3) ? sim_pick(1, most < 4 ? most : 4) : 0);

    sim_jobs[n].in_order = true;
    return n;
}

static void fill_in(struct enqueue *out, int n, const char *id, const char *body, const char *lock)
{
    static struct job_cost cost;
    const struct sim_job *job = &sim_jobs[n];

    cost = cost_of(job->cost ? job->cost : COST_UNSAID);
    *out = (struct enqueue){.queue = span_str(sim_queue_names[job->queue]),
                            .type = span_str(sim_type_names[job->type]),
                            .id = span_str(id),
                            .body = span_str(body),
                            .cost = &cost,
                            .keep_ms = 1000,
                            .tag = "tag",
                            .delay_us = sim_chance(4) ? sim_pick(1, 3000000) : -1,
                            .at_us = -1};
    if (job->batch >= 0)
        out->batch = span_str(sim.batches[job->batch].name);
    if (job->lock >= 0) {
        out->unique = span_str(lock);
        out->lock_ms = job->lock_until_start ? LOCK_UNTIL_START : LOCK_UNTIL_END;
    }
}

static int send_enqueue(const struct enqueue *enqueue, enum enqueue_result *result, struct span *id)
{
    struct args a = {0};
    int rc;

    enqueue_request(&a, PREFIX, turns.now_us, enqueue);
    rc = turns_send(&a);
    return rc ? rc : enqueue_reply(turns.reply, enqueue, result, id, &turns.error);
}

static void enters(int n, const struct enqueue *enqueue)
{
    struct sim_job *job = &sim_jobs[n];

    acts_totals.enqueued++;
    if (job->batch >= 0) {
        sim.batches[job->batch].there = true;
        sim.batches[job->batch].total++;
    }
    if (job->lock >= 0)
        sim.locks[job->lock] = n;
    sim_enqueued(job, enqueue->delay_us);
    if (enqueue->delay_us < 0) {
        sim_to_queue(n);
        return;
    }
    job->place = SIM_LATER;
    job->scheduled = true;
    job->due_us = turns.now_us + enqueue->delay_us;
}

/* Sometimes sent again, as after a lost answer: nothing more happens. */
static void enqueue_one(void)
{
    int n = make_job(any_queue(), any_type());
    struct sim_job *job = &sim_jobs[n];
    char id[24], holder[24] = "", body[400], lock[16];
    struct enqueue enqueue;
    enum enqueue_result result;
    struct span answered;
    bool held, closed;

    job->batch = sim_chance(3) ? -1 : (int)sim_pick(0, SIM_BATCHES - 1);
    job->lock = sim_chance(3) ? (int)sim_pick(0, SIM_LOCKS - 1) : -1;
    job->lock_until_start = job->lock >= 0 && sim_chance(3);
    snprintf(lock, sizeof lock, "lock%d", job->lock);
    sim_body(n, body, sizeof body);
    fill_in(&enqueue, n, sim_id(n, id), body, lock);
    held = job->lock >= 0 && sim.locks[job->lock] >= 0;
    closed = !held && job->batch >= 0 && is_closed(&sim.batches[job->batch]);
    if (held)
        sim_id(sim.locks[job->lock], holder);
    for (int64_t i = sim_pick(0, 4) / 4; i >= 0; i--) {
        int rc = send_enqueue(&enqueue, &result, &answered);

        if ((rc != 0) != closed)
            sim_fail("enqueue of job %d: %s", n, rc ? turns.error.text : "its batch takes no more");
        if (!closed && (result != (held ? ENQUEUE_HELD : ENQUEUE_NEW) ||
                        strncmp(answered.at, held ? holder : id, answered.len) != 0))
            sim_fail("enqueue of job %d: %d, %.*s", n, result, (int)answered.len, answered.at);
    }
    acts_totals.refused += held || closed;
    if (held || closed)
        job->batch = job->lock = -1;
    else
        enters(n, &enqueue);
}

/* The next chunk of a batch: jobs of one queue. */
static void append_some(struct sim_batch *b)
{
    struct name_count types[SIM_TYPES], queue = {.count = (uint64_t)sim_pick(1, 6)};
    struct append chunk = {.batch = b->name, .types = types, .queues = &queue, .queue_count = 1};
    char bodies[6][500];
    int first = sim.job_count, q = any_queue();
    bool closed = is_closed(b), accepted;

    queue.name = span_str(sim_queue_names[q]);
    chunk.before = (struct batch_state){b->lines, b->lines ? b->sum : CHECKSUM_NONE};
    chunk.after = (struct batch_state){b->lines + queue.count, (uint64_t)sim_pick(1, INT64_MAX - 1)};
    for (uint64_t i = 0; i < queue.count; i++) {
        int n = make_job(q, any_type());
        size_t t = 0;

        sim_body(n, bodies[i], sizeof bodies[i]);
        while (t < chunk.type_count &&
               strncmp(types[t].name.at, sim_type_names[sim_jobs[n].type], types[t].name.len) != 0)
            t++;
        if (t == chunk.type_count)
            types[chunk.type_count++] = (struct name_count){span_str(sim_type_names[sim_jobs[n].type]), 0};
        types[t].count++;
    }
    for (int times = (int)sim_pick(1, 4) / 4, i = 0; i <= times; i++) {
        struct batch_state state;
        struct args a = {0};
        int rc;

        append_request(&a, PREFIX, turns.now_us, &chunk);
        for (uint64_t k = 0; k < queue.count; k++)
            append_job(&a, &chunk, span_str(bodies[k]));
        rc = turns_send(&a);
        if ((rc != 0) != closed)
            sim_fail("append to %s: %s", b->name, rc ? turns.error.text : "it takes no more");
        if (closed)
            return;
        sim_must(append_reply(turns.reply, &state, &accepted, &turns.error), "append");
        sim_fail_if(accepted != (i == 0), "append to %s: accepted %d", b->name, accepted);
    }
    b->there = true;
    b->total += (int64_t)queue.count;
    b->lines = chunk.after.lines;
    b->sum = chunk.after.sum;
    for (int n = first; n < sim.job_count; n++) {
        sim_jobs[n].batch = (int)(b - sim.batches);
        sim_enqueued(&sim_jobs[n], 0);
        sim_to_queue(n);
    }
}

/* ---- Batches */

static void seal(struct sim_batch *b, bool create)
{
    const struct sim_job *follower = &sim_jobs[b->follower];
    bool follows = sim_chance(2), refused = follows && b->sealed && !b->has_follower;
    struct batch_sealed sealed;
    struct args a = {0};
    int rc;

    batch_seal_request(&a, PREFIX, turns.now_us, b->name, create,
                       follows ? sim_queue_names[follower->queue] : "",
                       follows ? sim_type_names[follower->type] : "");
    rc = turns_send(&a);
    if (rc == 0)
        rc = batch_seal_reply(turns.reply, b->name, &sealed, &turns.error);
    if ((rc != 0) != (refused || (!b->there && !create)))
        sim_fail("batch seal %s: %s", b->name, rc ? turns.error.text : "it cannot be followed");
    if (rc != 0)
        return;
    b->there = true;
    b->has_follower |= follows;
    if (!b->sealed)
        sim_seal(b);
}

static int64_t left_of(const struct sim_batch *b)
{
    return b->total - b->ends[SIM_DONE] - b->ends[SIM_DEAD] - b->ends[SIM_CANCELLED];
}

static const char *state_of(const struct sim_batch *b)
{
    if (!b->there)
        return "";
    if (b->cancelled)
        return "cancelled";
    if (b->sealed && left_of(b) == 0)
        return "ended";
    return b->halt == SIM_PAUSED ? "paused" : "running";
}

static void drop_aside(struct sim_batch *b, bool whole)
{
    while (b->aside.count > 0 && (whole || !is_broken_off())) {
        int most = (int)(sim_chance(2) ? sim_pick(1, 4) : 500);
        int count = most < b->aside.count ? most : b->aside.count;

        sim_must(turns_ask("batch_drop", (const char *[]){b->name, textf("%d", most)}, 2), "batch_drop");
        sim_fail_if(answer_int(turns.answer, "dropped") != count ||
                        answer_int(turns.answer, "aside") != b->aside.count - count,
                    "batch_drop %s: %lld, %lld left", b->name, (long long)answer_int(turns.answer, "dropped"),
                    (long long)answer_int(turns.answer, "aside"));
        for (int i = 0; i < count; i++) {
            int n = b->aside.at[b->aside.count - 1];

            sim_list_remove(&b->aside, b->aside.count - 1, 1);
            sim.aside[sim_jobs[n].type]--;
            sim_end_job(n, SIM_CANCELLED);
        }
    }
}

static void halt(struct sim_batch *b, const char *verb)
{
    bool cancels = strcmp(verb, "cancel") == 0;
    const char *was = state_of(b), *dry = cancels && sim_chance(8) ? "1" : "0";

    if (!b->there && !cancels) { /* a pause begins it */
        was = "running";
        b->there = true;
    }
    if (cancels)
        sim_must(turns_ask("batch_cancel", (const char *[]){b->name, dry}, 2), "batch_cancel");
    else
        sim_must(turns_ask("batch_pause", (const char *[]){b->name, "", "", "1", "pause", "sim"}, 6),
                 "batch_pause");
    if (strcmp(answer_text(turns.answer, "was"), was) != 0)
        sim_fail("batch %s %s: it was %s, not %s", verb, b->name, answer_text(turns.answer, "was"), was);
    if (b->there && (answer_int(turns.answer, "left") != left_of(b) ||
                     answer_int(turns.answer, "aside") != b->aside.count))
        sim_fail("batch %s %s: %lld left, %lld aside", verb, b->name,
                 (long long)answer_int(turns.answer, "left"), (long long)answer_int(turns.answer, "aside"));
    if (*dry == '0' && (strcmp(was, "running") == 0 || (cancels && strcmp(was, "paused") == 0))) {
        b->halt = cancels ? SIM_HALTED : SIM_PAUSED;
        b->cancelled = cancels;
        if (cancels)
            sim_seal(b);
        sim_must(turns_apply_all("", false, NULL, 0), "what halting it left to do");
    }
    if (b->cancelled)
        drop_aside(b, false);
}

/* The last ones of the list, so that all stand in their order in the end. */
static void resume_page(struct sim_batch *b, int most)
{
    const char *was = b->halt == SIM_PAUSED ? "paused" : "running";

    sim_must(turns_ask("batch_resume", (const char *[]){b->name, textf("%d", most), "seed"}, 3),
             "batch_resume");
    if (!b->there || b->cancelled) {
        if (strcmp(answer_text(turns.answer, "was"), b->there ? "cancelled" : "") != 0)
            sim_fail("batch resume %s: %s", b->name, answer_text(turns.answer, "was"));
        return;
    }
    if (strcmp(answer_text(turns.answer, "was"), was) != 0)
        sim_fail("batch resume %s: it was %s, not %s", b->name, answer_text(turns.answer, "was"), was);
    for (; most > 0 && b->aside.count > 0; most--) {
        sim.aside[sim_jobs[b->aside.at[b->aside.count - 1]].type]--;
        sim_to_head(b->aside.at[b->aside.count - 1]);
        b->aside.count--;
    }
    sim_resume(b);
}

static void resume(struct sim_batch *b, bool whole)
{
    do
        resume_page(b, (int)(sim_chance(2) ? sim_pick(1, 4) : 500));
    while (b->there && !b->cancelled && b->aside.count > 0 && (whole || !is_broken_off()));
}

/* ---- Queues */

static void pause_queue(int q, bool pauses)
{
    sim_must(turns_pausing("queue_pause", sim_queue_names[q], pauses ? RATE_ENDLESS : RATE_RESUME),
             "queue_pause");
    if (json_is_object(json_object_get(turns.answer, "before")) != sim.paused[q] ||
        json_is_object(json_object_get(turns.answer, "pause")) != pauses)
        sim_fail("queue_pause: %s was paused: %d", sim_queue_names[q], !sim.paused[q]);
    sim.paused[q] = pauses;
}

static int length_of(const struct snapshot *all, int q, int type, int key)
{
    const struct item *lane;

    lane = snapshot_item(all,
                         textf("lane:%s/%s/%s", sim_queue_names[q], sim_type_names[type], sim_key_text(key)));
    return lane ? (int)lane->count : 0;
}

/* What a page took from the heads of lanes; q: the line; type: -1 any. */
static int64_t take_from_lanes(int q, int type)
{
    struct snapshot *all = snapshot_read(turns.redis, PREFIX, &turns.error);
    int64_t taken = 0;

    for (int t = 0; t < sim.type_count; t++)
        for (int key = 0; key <= SIM_KEYS && (type < 0 || t == type); key++) {
            struct sim_list *lane = &sim.lanes[q][t][key];
            int gone = lane->count > 0 ? lane->count - length_of(all, q, t, key) : 0;

            for (int i = 0; i < gone; i++)
                sim_end_job(lane->at[i], SIM_CANCELLED);
            if (gone > 0)
                sim_list_remove(lane, 0, gone);
            taken += gone;
        }
    snapshot_free(all);
    return taken;
}

/* What follows a batch that ends by that goes too, if it comes into the same queue. */
static int64_t take_from_queue(int q, int most)
{
    struct sim_list *queue = &sim.queues[q];
    int64_t taken = 0;

    while (taken < most && queue->count > 0) {
        int n = queue->at[0];

        sim_list_remove(queue, 0, 1);
        sim_end_job(n, SIM_CANCELLED);
        taken++;
    }
    return taken;
}

enum { PLACES = 3 + SIM_TYPES, PAGES_MOST = 500 };

/* One page, of what *next says; it is what the page says then. */
static void purge_page(int q, int type, json_t **next)
{
    int most = (int)(sim_chance(2) ? sim_pick(1, 6) : 500);
    int64_t jobs = 0, taken;
    char number[8];
    const char *words[4 + 2 * PLACES] = {sim_queue_names[q], "remove", type < 0 ? "" : sim_type_names[type],
                                         number};
    size_t count = json_array_size(*next);

    sim_fail_if(count > 2 * PLACES, "queue_purge: %zu places", count / 2);
    snprintf(number, sizeof number, "%d", most);
    for (size_t i = 0; i < count; i++)
        words[4 + i] = json_string_value(json_array_get(*next, i));
    sim_must(turns_ask("queue_purge", words, 4 + count), "queue_purge");
    if (strcmp(words[4], "queue") != 0)
        jobs = take_from_lanes(q, type);
    else if (q < SIM_QUEUES && type < 0)
        jobs = take_from_queue(q, most); /* one type of it is job_act's */
    json_decref(*next);
    *next = json_incref(json_object_get(turns.answer, "next"));
    if (json_object_get(turns.answer, "missing"))
        return;
    taken = answer_int(turns.answer, "waiting") + answer_int(turns.answer, "parked");
    sim_fail_if(taken != jobs, "queue_purge: %lld jobs, not %lld", (long long)taken, (long long)jobs);
    acts_totals.purged += jobs;
}

/* since: the calls before it; a job that has followed a batch meanwhile may stand behind what was looked at.
 */
static void check_purged(int q, int type, int since)
{
    for (int t = 0; t < sim.type_count; t++)
        for (int key = 0; key <= SIM_KEYS && (type < 0 || t == type); key++)
            sim_fail_if(sim.lanes[q][t][key].count > 0, "%s/%s/%s is left by a purge", sim_queue_names[q],
                        sim_type_names[t], sim_key_text(key));
    for (int i = 0; q < SIM_QUEUES && type < 0 && i < sim.queues[q].count; i++)
        if (sim_jobs[sim.queues[q].at[i]].fired_call <= since)
            sim_fail("job %d in %s is left by a purge", sim.queues[q].at[i], sim_queue_names[q]);
}

static void purge_line(int q, int type)
{
    json_t *next = json_pack("[s, s, s, s, s, s]", "queue", "", "rings", "", "sleep", "");
    int pages = 0, since = turns.calls;

    while (json_array_size(next) > 0 && !is_broken_off()) {
        if (++pages > PAGES_MOST)
            sim_fail("queue_purge: %s, page by page", json_string_value(json_array_get(next, 0)));
        purge_page(q, type, &next);
        sim_look();
    }
    if (json_array_size(next) == 0)
        check_purged(q, type, since);
    json_decref(next);
}

static void purge(int q, int type)
{
    purge_line(q, type);
    purge_line(q + SIM_QUEUES, type);
}

/* ---- Jobs out */

static int any_job(void)
{
    int n = (int)sim_pick(0, sim.job_count - 1);

    for (int i = 0; i < 5 && (sim_jobs[n].place == SIM_DONE || sim_jobs[n].place == SIM_CANCELLED); i++)
        n = (int)sim_pick(0, sim.job_count - 1);
    return n;
}

static struct sim_list *list_of(int n)
{
    struct sim_list *queue = &sim.queues[sim_jobs[n].queue];

    if (sim_jobs[n].place == SIM_ASIDE)
        return &sim.batches[sim_jobs[n].batch].aside;
    return sim_list_find(queue, n) >= 0 ? queue : sim_lane_of(n);
}

static void is_cancelled(int n)
{
    struct sim_job *job = &sim_jobs[n];
    struct sim_list *list;

    if (job->place == SIM_LEASED) {
        job->cancelled = true;
        sim_tell(n);
        return;
    }
    if (job->place != SIM_LATER) {
        list = list_of(n);
        sim_list_remove(list, sim_list_find(list, n), 1);
        sim.aside[job->type] -= job->place == SIM_ASIDE;
    }
    sim_end_job(n, SIM_CANCELLED);
}

/* A claim would end it, as it was cancelled, alone or with its batch; a dead job comes back no more once its batch was. */
static bool is_over(int n)
{
    const struct sim_job *job = &sim_jobs[n];
    const struct sim_batch *b = job->batch >= 0 ? &sim.batches[job->batch] : NULL;

    if (job->place == SIM_DEAD)
        return b && b->cancelled;
    return job->place != SIM_LEASED && (job->marked || (b && b->halt == SIM_HALTED));
}

/* As weir job cancel does it. */
static void cancel(int n)
{
    struct sim_job *job = &sim_jobs[n];
    bool waits = job->place == SIM_WAITING || job->place == SIM_ASIDE;
    int expected = waits || job->place == SIM_LEASED || job->place == SIM_LATER ? 0
                   : job->place == SIM_DEAD || job->remembered                  ? WEIR_EINPUT
                                                                                : WEIR_ENOTFOUND;
    const char *result = job->place == SIM_LEASED ? "told" : "removed";
    json_t *out;
    char id[24];
    int rc = cancel_job(w, turns.now_us, sim_id(n, id), NULL, &out);

    if (rc != expected || (rc == 0 && strcmp(answer_text(out, "result"), result) != 0))
        sim_fail("cancel of job %d in place %d: %d, %s: %s", n, job->place, rc, answer_text(out, "result"),
                 rc ? w->error.text : "");
    json_decref(out);
    acts_totals.cancels += rc == 0;
    if (rc == 0)
        is_cancelled(n);
}

/* Into a queue that only a foreign client knows nobody looks. */
static bool is_known_in(const struct snapshot *all, int q)
{
    const struct item *queues = snapshot_item(all, "queues");

    for (size_t i = 0; queues && i < queues->count; i++)
        if (strcmp(queues->at[i]->str, sim_queue_names[q]) == 0)
            return true;
    return false;
}

static bool is_known(int q)
{
    return sim.all && is_known_in(sim.all, q);
}

static void cancel_some(void)
{
    int n = any_job();

    if ((sim_jobs[n].place == SIM_LEASED && sim.told_count == SIM_TOLD) || !is_known(sim_jobs[n].queue))
        return;
    cancel(n);
}

/* It waits since now; nobody knows when foreign jobs were enqueued. */
static void waits_again(struct sim_job *job)
{
    if (job->enqueued_us)
        job->since_us = sim_stamp(turns.now_us);
}

static void becomes_first(struct sim_list *list, int n)
{
    int at = sim_list_find(list, n);

    for (int i = at; i > 0; i--)
        list->at[i] = list->at[i - 1];
    list->at[0] = n;
}

/* One that waits, or of later. */
static void is_run(int n)
{
    struct sim_job *job = &sim_jobs[n];

    if (job->place == SIM_WAITING) {
        becomes_first(list_of(n), n);
        return;
    }
    if (!job->scheduled) {
        sim_return(&n, 1);
        return;
    }
    waits_again(job);
    sim_to_head(n);
}

/* As weir job run does it. */
static void run(int n)
{
    struct sim_job *job = &sim_jobs[n];
    bool lies = job->place == SIM_WAITING, later = job->place == SIM_LATER;
    bool moved = later || (lies && sim_list_find(list_of(n), n) > 0);
    int expected = is_over(n) && (lies || later) ? WEIR_EINPUT
                   : lies || later               ? 0
                   : job->place == SIM_DONE || job->place == SIM_CANCELLED || job->place == SIM_REMOVED
                       ? job->remembered ? WEIR_EINPUT : WEIR_ENOTFOUND
                       : WEIR_EINPUT;
    json_t *out;
    char id[24];
    int rc = job_run(w, turns.now_us, sim_id(n, id), &out);

    if (rc != expected || (rc == 0 && strcmp(answer_text(out, "result"), moved ? "moved" : "first") != 0))
        sim_fail("run of job %d in place %d: %d, %s: %s", n, job->place, rc, answer_text(out, "result"),
                 rc ? w->error.text : "");
    json_decref(out);
    acts_totals.runs += rc == 0 && moved;
    if (rc == 0 && moved)
        is_run(n);
}

static void run_some(void)
{
    int n = any_job();

    if (is_known(sim_jobs[n].queue))
        run(n);
}

/* ---- The dead */

struct filter {
    int type, queue, batch, id; /* -1: any */
    const char *text;
    char id_text[24];
};

static struct filter any_filter(void)
{
    struct filter f = {-1, -1, -1, -1, "", ""};

    switch (sim_pick(0, 5)) {
    case 0:
        f.type = any_type();
        break;
    case 1:
        f.queue = any_queue();
        break;
    case 2:
        f.batch = (int)sim_pick(0, SIM_BATCHES - 1);
        break;
    case 3:
        f.id = any_job();
        sim_id(f.id, f.id_text);
        break;
    case 4:
        f.text = "died";
        break;
    default:
        break;
    }
    return f;
}

static bool is_wanted(const struct filter *f, int n, const char *record)
{
    const struct sim_job *job = &sim_jobs[n];

    return (f->type < 0 || job->type == f->type) && (f->queue < 0 || job->queue == f->queue) &&
           (f->batch < 0 || job->batch == f->batch) && (f->id < 0 || n == f->id) &&
           (!*f->text || strcspn(record, "\n") > strlen(f->text)) &&
           (!*f->text || (strstr(record, f->text) && strstr(record, f->text) < strchr(record, '\n')));
}

static void revive(int n, int into)
{
    struct sim_job *job = &sim_jobs[n];

    if (into >= 0)
        job->queue = into;
    job->attempts = job->interrupted = job->throttled = 0;
    job->together = 0;
    job->failure[0] = '\0';
    job->marked = false;
    if (job->batch >= 0) {
        sim.batches[job->batch].ends[SIM_DEAD]--;
        sim.batches[job->batch].ended = false;
    }
    if (job->lock >= 0 && sim.locks[job->lock] < 0)
        sim.locks[job->lock] = n;
    sim_to_queue(n);
    waits_again(job);
    sim_totals.revived++;
}

/* One page of the dead, as it stood before; returns how many of it were wanted. */
static int64_t follow_page(const struct filter *f, const struct item *dead, size_t first, size_t looked_at,
                           bool retries, int into)
{
    int64_t moved = 0;

    for (size_t i = first; i < first + looked_at; i++) {
        const char *record = dead->at[2 * i]->str;
        int n = sim_job_in((struct span){record, dead->at[2 * i]->len});

        if (!is_wanted(f, n, record) || (retries && is_over(n)))
            continue;
        moved++;
        if (retries)
            revive(n, into);
        else
            sim_jobs[n].place = SIM_REMOVED;
    }
    return moved;
}

/* The order of `dead` is that of the last look. */
static void walk_dead(struct filter f, bool retries)
{
    int into = retries && sim_chance(4) ? any_queue() : -1;
    struct snapshot *all = snapshot_read(turns.redis, PREFIX, &turns.error);
    const struct item *dead = snapshot_item(all, "dead");
    json_t *place = NULL;
    char record[2000];
    size_t seen = 0;

    do {
        const char *number = textf("%d", (int)(sim_chance(2) ? sim_pick(1, 4) : 200));
        const char *words[16] = {retries ? "retry" : "remove",
                                 number,
                                 f.type < 0 ? "" : sim_type_names[f.type],
                                 f.queue < 0 ? "" : sim_queue_names[f.queue],
                                 f.batch < 0 ? "" : sim.batches[f.batch].name,
                                 f.text,
                                 "",
                                 "",
                                 into < 0 ? "" : sim_queue_names[into],
                                 "seed",
                                 f.id < 0 ? "0" : "1",
                                 f.id_text};
        size_t count = f.id < 0 ? 11 : 12;
        int64_t looked_at;

        for (size_t i = 0; i < json_array_size(place); i++) /* till, score; the record */
            words[count++] = i < 2 ? json_string_value(json_array_get(place, i)) : record;
        sim_must(turns_ask("dead", words, count), "dead");
        json_decref(place);
        place = json_incref(json_object_get(turns.answer, "next"));
        snprintf(record, sizeof record, "%s",
                 place ? json_string_value(json_array_get(json_object_get(turns.answer, "raw"), 0)) : "");
        looked_at = answer_int(turns.answer, "looked_at");
        if (seen + (size_t)looked_at > (dead ? dead->count / 2 : 0))
            sim_fail("dead: looked at %lld more than %zu", (long long)looked_at, seen);
        if (follow_page(&f, dead, seen, (size_t)looked_at, retries, into) != answer_int(turns.answer, "jobs"))
            sim_fail("dead: not %lld jobs", (long long)answer_int(turns.answer, "jobs"));
        seen += (size_t)looked_at;
    } while (place && !is_broken_off());
    sim_fail_if(!place && seen != (dead ? dead->count / 2 : 0), "dead: %zu were looked at, not all", seen);
    json_decref(place);
    snapshot_free(all);
}

/* ---- What a search is for */

enum { CANCEL, RUN, RETRY, REMOVE, ACTIONS };
static const char *const action_names[ACTIONS] = {"cancel", "run", "retry", "remove"};

/* With the jobs of a search something is done. */
struct action {
    int type, queue, batch; /* -1: any */
    int what;
    int met[SIM_JOBS], count; /* those jobs, also where there is nothing to do */
    int place
        [SIM_JOBS]; /* of those that are run: in its list before, LATER, or NONE: it is not one of them */
    int64_t done;
};
enum { LATER = -1, NONE = -2 };

static bool is_state(int what, enum sim_place place)
{
    bool waits = place == SIM_WAITING || place == SIM_LATER;

    if (what == CANCEL)
        return waits || place == SIM_LEASED || place == SIM_ASIDE;
    return what == RUN ? waits : place == SIM_DEAD;
}

static void meet(struct action *act, const struct snapshot *all, int n)
{
    const struct sim_job *job = &sim_jobs[n];

    if (!is_state(act->what, job->place) ||
        (job->place == SIM_WAITING && act->queue < 0 && !is_known_in(all, job->queue)) ||
        (act->what != CANCEL && act->what != REMOVE && is_over(n)) ||
        (act->type >= 0 && job->type != act->type) || (act->queue >= 0 && job->queue != act->queue) ||
        (act->batch >= 0 && job->batch != act->batch))
        return;
    act->met[act->count++] = n;
}

/* In the order in which dead jobs are met; others in any. */
static void meet_all(struct action *act)
{
    struct snapshot *all = snapshot_read(turns.redis, PREFIX, &turns.error);
    const struct item *dead = snapshot_item(all, "dead");

    for (size_t i = dead ? dead->count / 2 : 0; i-- > 0;)
        meet(act, all, sim_job_in((struct span){dead->at[2 * i]->str, dead->at[2 * i]->len}));
    for (int n = 0; n < sim.job_count; n++)
        if (sim_jobs[n].place != SIM_DEAD)
            meet(act, all, n);
    snapshot_free(all);
}

/* Some others of its list are run, which stand behind it. */
static bool is_passed(const struct action *act, int n)
{
    for (int i = 0; i < act->count; i++)
        if (act->met[i] != n && sim_jobs[act->met[i]].place == SIM_WAITING &&
            list_of(act->met[i]) == list_of(n))
            return true;
    return false;
}

static bool has_to_do(const struct action *act, int n)
{
    const struct sim_job *job = &sim_jobs[n];

    if (act->what == CANCEL)
        return job->place != SIM_LEASED || !job->cancelled;
    if (act->what == RUN && job->place == SIM_WAITING)
        return sim_list_find(list_of(n), n) > 0 || is_passed(act, n);
    return true;
}

static bool fits_told(const struct action *act)
{
    int leased = 0;

    for (int i = 0; i < act->count; i++)
        leased += sim_jobs[act->met[i]].place == SIM_LEASED;
    return sim.told_count + leased <= SIM_TOLD;
}

static void act_on(const struct action *act, int n)
{
    if (act->what == CANCEL)
        is_cancelled(n);
    else if (act->what == RUN)
        is_run(n);
    else if (act->what == RETRY)
        revive(n, -1);
    else
        sim_jobs[n].place = SIM_REMOVED;
}

/* In calls that each look at some, or in one. */
static void send_action(const struct action *act)
{
    const struct job_bounds most = {.looked_at = sim_chance(2) ? sim_pick(1, 40) : INT64_MAX,
                                    .jobs = SIM_JOBS};
    struct job_search search = {.count = 0};
    json_t *out = NULL;
    int64_t done = 0;
    int calls = 0;

    if (act->type >= 0)
        sim_must(job_search_add(&search, "type", sim_type_names[act->type], &turns.error), "search");
    if (act->queue >= 0)
        sim_must(job_search_add(&search, "queue", sim_queue_names[act->queue], &turns.error), "search");
    if (act->batch >= 0)
        sim_must(job_search_add(&search, "batch", sim.batches[act->batch].name, &turns.error), "search");
    do {
        json_t *before = out;

        if (job_actions(w, turns.now_us, &search, action_names[act->what],
                        before ? answer_text(before, "next") : NULL, &most, &out) != 0 ||
            ++calls > PAGES_MOST)
            sim_fail("%s by a search: %s", action_names[act->what], w->error.text);
        json_decref(before);
        done += answer_int(out, "jobs");
    } while (json_object_get(out, "next"));
    json_decref(out);
    sim_fail_if(done != act->done, "%s by a search: %lld jobs, not %lld", action_names[act->what],
                (long long)done, (long long)act->done);
}

static void note_places(struct action *act)
{
    for (int n = 0; n < sim.job_count; n++)
        act->place[n] = NONE;
    for (int i = 0; i < act->count; i++) {
        int n = act->met[i];

        act->place[n] = sim_jobs[n].place == SIM_LATER ? LATER : sim_list_find(list_of(n), n);
    }
}

/* Those that were run stand first, and of those that waited the earlier ones before the later ones. Where those of later stand among them,
 * Redis says. */
static void follow_order(const struct action *act, const struct snapshot *all, const char *name,
                         struct sim_list *list)
{
    const struct item *item = list->count > 0 ? snapshot_item(all, name) : NULL;
    int last = -1;

    for (int i = 0; item && i < list->count && (size_t)i < item->count; i++) {
        int n = sim_job_in((struct span){item->at[i]->str, item->at[i]->len}), at = sim_list_find(list, n);

        if (at < i || act->place[n] == NONE)
            return; /* the others stand as before: whoever looks compares them */
        if (act->place[n] != LATER && act->place[n] < last)
            sim_fail("%s: job %d was run, and stands behind a later one", name, n);
        last = act->place[n] != LATER ? act->place[n] : last;
        list->at[at] = list->at[i];
        list->at[i] = n;
    }
}

static void follow_orders(const struct action *act)
{
    struct snapshot *all = snapshot_read(turns.redis, PREFIX, &turns.error);

    for (int q = 0; q < sim.queue_count; q++)
        follow_order(act, all, textf("queue:%s", sim_queue_names[q]), &sim.queues[q]);
    for (int q = 0; q < SIM_LINES; q++)
        for (int t = 0; t < sim.type_count; t++)
            for (int key = 0; key <= SIM_KEYS; key++) {
                follow_order(act, all,
                             textf("lane:%s/%s/%s", sim_queue_names[q], sim_type_names[t], sim_key_text(key)),
                             &sim.lanes[q][t][key]);
            }
    snapshot_free(all);
}

static void act_by_search(void)
{
    static struct action act;
    int by = (int)sim_pick(0, 3);

    act.type = by == 0 || by == 3 ? any_type() : -1;
    act.queue = by == 1 || by == 3 ? any_queue() : -1;
    act.batch = by == 2 ? (int)sim_pick(0, SIM_BATCHES - 1) : -1;
    act.what = (int)sim_pick(0, ACTIONS - 1);
    act.count = 0;
    act.done = 0;
    meet_all(&act);
    if (act.what == CANCEL && !fits_told(&act))
        return;
    for (int i = 0; i < act.count; i++)
        act.done += has_to_do(&act, act.met[i]);
    acts_totals.by_search += act.done;
    note_places(&act);
    send_action(&act);
    for (int i = 0; i < act.count; i++)
        if (act.what == RUN || has_to_do(&act, act.met[i]))
            act_on(&act, act.met[i]);
    if (act.what == RUN)
        follow_orders(&act);
}

/* ---- */

void acts_do(bool may_add_jobs)
{
    switch (sim_chance(3) ? favourite : (int)sim_pick(0, ACTS - 1)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
        for (int64_t i = may_add_jobs ? sim_pick(1, 5) : 0; i > 0; i--)
            enqueue_one();
        break;
    case 5:
    case 6:
        if (may_add_jobs)
            append_some(any_batch());
        break;
    case 7:
        seal(any_batch(), sim_chance(4));
        break;
    case 8:
    case 9:
    case 10:
        halt(any_batch(), sim_chance(10) ? "cancel" : "pause");
        break;
    case 11:
    case 12:
        resume(any_batch(), false);
        break;
    case 13:
    case 14:
        pause_queue(any_queue(), sim_chance(2));
        break;
    case 15:
        if (sim_chance(2))
            purge(any_queue(), sim_chance(2) ? any_type() : -1);
        break;
    case 16:
    case 17:
    case 18:
        walk_dead(any_filter(), sim_chance(2));
        break;
    case 19:
    case 20:
        run_some();
        break;
    case 21:
    case 22:
        act_by_search();
        break;
    default:
        cancel_some();
    }
}

void acts_retry_dead(void)
{
    walk_dead((struct filter){-1, -1, -1, -1, "", ""}, true);
}

void acts_finish(void)
{
    for (int q = 0; q < sim.queue_count; q++)
        if (sim.paused[q])
            pause_queue(q, false);
    for (int i = 0; i < SIM_BATCHES; i++) {
        struct sim_batch *b = &sim.batches[i];

        if (b->cancelled)
            drop_aside(b, true);
        else if (b->there)
            resume(b, true);
        if (b->there)
            seal(b, false);
        if (b->there && !b->sealed)
            seal(b, false);
    }
    if (sim_chance(2))
        walk_dead(any_filter(), sim_chance(2));
}

void acts_check_end(void)
{
    for (int n = 0; n < sim.job_count; n++)
        sim_fail_if(sim_jobs[n].marked, "the mark of job %d is never forgotten", n);
    for (int i = 0; i < SIM_BATCHES; i++) {
        const struct sim_batch *b = &sim.batches[i];

        if (b->there && (!b->ended || left_of(b) != 0 || b->fired != (b->has_follower && !b->cancelled)))
            if (!b->cancelled || !b->fired) /* it was cancelled after it had ended and been followed */
                sim_fail("batch %s: ended %d, %lld left, followed %d", b->name, b->ended,
                         (long long)left_of(b), b->fired);
    }
}

/* The model's part of what is more than a job that waits and runs: batches, unique locks, marks of jobs that
 * were cancelled, what is paused, the last failure. All of it is compared with Redis at each look. Where one
 * script ends several batches, the jobs that follow them may stand in any order. */
#include "tests/sim.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the claim that is being looked at: jobs that are still in a queue or lane or were leased by it, those
 * that are newly aside, and for those that left a lane the job that stood before them. */
static bool seen[SIM_JOBS], newly_aside[SIM_JOBS];
static struct sim_list before;

void sim_life_begin(void)
{
    for (int i = 0; i < SIM_LOCKS; i++)
        sim.locks[i] = -1;
}

void sim_life_end(void)
{
    for (int i = 0; i < SIM_BATCHES; i++) {
        free(sim.batches[i].aside.at);
        sim.batches[i].aside = (struct sim_list){0};
    }
    free(before.at);
    before = (struct sim_list){0};
}

/* ---- Jobs */

const char *sim_id(int n, char out[24])
{
    snprintf(out, 24, sim_jobs[n].follows ? "j%d.then" : "j%d", n);
    return out;
}

static const struct {
    const char *text, *escaped;
} reasons[] = {{"", ""}, {"refused", "refused"}, {"a, b; 5%\nand so on", "a%2C b%3B 5%25%0Aand so on"}};

const char *sim_reason(int i)
{
    return reasons[i].text;
}

void sim_fails(int n, int reason, bool is_attempt)
{
    struct sim_job *job = &sim_jobs[n];

    if (reason > 0 || is_attempt) {
        char former[SIM_FAILURES];
        int kept = 0;

        memcpy(former, job->failure, sizeof former);
        for (char *at = former; (at = strstr(at, ",e")); at += 2)
            if (++kept == 10)
                *at-- = '\0';
        kept = snprintf(job->failure, sizeof job->failure, ",e%lld@%s:%s%s", (long long)turns.now_us,
                        sim_ids[job->owner].name, reasons[reason].escaped, former);
        assert_in_range(kept, 1, sizeof job->failure - 1);
    }
}

void sim_attrs(int n, char out[SIM_ATTRS])
{
    const struct sim_job *job = &sim_jobs[n];
    char batch[20] = "", lock[20] = "";

    if (job->batch >= 0)
        snprintf(batch, sizeof batch, ",b%s", sim.batches[job->batch].name);
    if (job->lock >= 0)
        snprintf(lock, sizeof lock, ",%clock%d", job->lock_until_start ? 'w' : 'u', job->lock);
    snprintf(out, SIM_ATTRS, "%s%s%s", batch, lock, job->failure);
}

int64_t sim_stamp(int64_t at_us)
{
    return at_us - at_us % 10000;
}

void sim_enqueued(struct sim_job *job, int64_t delay_us)
{
    job->enqueued_us = sim_stamp(turns.now_us);
    job->since_us = sim_stamp(turns.now_us + (delay_us > 0 ? delay_us : 0));
}

enum sim_stop sim_stops(int n)
{
    const struct sim_job *job = &sim_jobs[n];
    enum sim_halt halt = job->batch >= 0 ? sim.batches[job->batch].halt : SIM_GOES_ON;

    if (halt == SIM_HALTED || job->marked)
        return SIM_ENDS;
    return halt == SIM_PAUSED ? SIM_STANDS_ASIDE : SIM_RUNS;
}

static void unlock(int n)
{
    if (sim_jobs[n].lock >= 0 && sim.locks[sim_jobs[n].lock] == n)
        sim.locks[sim_jobs[n].lock] = -1;
}

void sim_started(int n)
{
    if (sim_jobs[n].lock_until_start)
        unlock(n);
}

static void fire(struct sim_batch *b)
{
    struct sim_job *job = &sim_jobs[b->follower];
    char id[24];

    b->fired = true;
    snprintf(
        b->body, sizeof b->body,
        "{\"id\":\"%s\",\"type\":\"%s\",\"args\":{\"batch\":\"%s\",\"total\":%lld,\"done\":%lld,\"dead\":%"
        "lld,\"cancelled\":%lld}}",
        sim_id(b->follower, id), sim_type_names[job->type], b->name, (long long)b->total,
        (long long)b->ends[SIM_DONE], (long long)b->ends[SIM_DEAD], (long long)b->ends[SIM_CANCELLED]);
    job->fired_call = turns.calls;
    sim_enqueued(job, 0);
    sim_to_queue(b->follower);
    sim_totals.fired++;
}

static void look_for_end(struct sim_batch *b)
{
    if (!b->sealed || b->ends[SIM_DONE] + b->ends[SIM_DEAD] + b->ends[SIM_CANCELLED] < b->total)
        return;
    b->ended = true;
    b->halt = SIM_GOES_ON;
    if (b->has_follower && !b->fired && !b->cancelled)
        fire(b);
}

/* A producer ends no pause: one that is paused ends as it is resumed. */
void sim_seal(struct sim_batch *b)
{
    b->sealed = true;
    if (b->halt != SIM_PAUSED)
        look_for_end(b);
}

void sim_resume(struct sim_batch *b)
{
    bool was_paused = b->halt == SIM_PAUSED;

    b->halt = SIM_GOES_ON;
    if (was_paused)
        look_for_end(b);
}

void sim_end_job(int n, enum sim_place as)
{
    struct sim_job *job = &sim_jobs[n];

    job->place = as;
    job->cancelled = false;
    unlock(n);
    if (as == SIM_CANCELLED) {
        job->marked = false;
        sim.cancelled[job->type]++;
        sim_totals.cancelled++;
    }
    if (job->batch >= 0) {
        sim.batches[job->batch].ends[as]++;
        look_for_end(&sim.batches[job->batch]);
    }
}

bool sim_ends_cancelled(int n)
{
    bool cancelled = sim_jobs[n].cancelled;

    if (cancelled)
        sim_end_job(n, SIM_CANCELLED);
    return cancelled;
}

void sim_untell(int id, int to)
{
    int kept = 0;

    for (int i = 0; i < sim.told_count; i++)
        if (sim.told[i].id != id)
            sim.told[kept++] = sim.told[i];
    sim.told_count = kept;
    for (int n = 0; n < sim.job_count && to >= 0; n++)
        if (sim_jobs[n].place == SIM_LEASED && sim_jobs[n].owner == to && sim_jobs[n].cancelled)
            sim_tell(n);
}

void sim_tell(int n)
{
    struct sim_told *told = &sim.told[sim.told_count];

    sim_fail_if(sim.told_count++ == SIM_TOLD, "too many tokens are told");
    told->id = sim_jobs[n].owner;
    snprintf(told->token, sizeof told->token, "%s", sim_jobs[n].token);
}

bool sim_is_new_follower(int n)
{
    return sim_jobs[n].follows && !sim.batches[sim_jobs[n].batch_followed].fired;
}

bool sim_may_swap(int n, int other)
{
    return sim_jobs[n].follows && sim_jobs[other].follows &&
           sim_jobs[n].fired_call == sim_jobs[other].fired_call;
}

/* ---- Claims */

static struct span text_of(const struct redisReply *r)
{
    return (struct span){r->str, r->len};
}

static const struct item *item_of(const struct snapshot *all, const char *kind, const char *name)
{
    return snapshot_item(all, textf("%s:%s", kind, name));
}

static void see_all(const struct snapshot *all)
{
    memset(seen, 0, sizeof seen);
    memset(newly_aside, 0, sizeof newly_aside);
    before.count = 0;
    for (size_t i = 0; i < all->count; i++) {
        const struct item *item = &all->items[i];

        for (size_t k = 0; k < item->count &&
                           (strncmp(item->name, "queue:", 6) == 0 || strncmp(item->name, "lane:", 5) == 0);
             k++)
            seen[sim_job_in(text_of(item->at[k]))] = true;
    }
    for (size_t i = 0; i < turns.claim.lease_count; i++)
        seen[sim_job_in(turns.claim.leases[i].body)] = true;
}

static bool was_queued(int n, const struct sim_list *from_queue)
{
    return sim_list_find(from_queue, n) >= 0;
}

/* It left its lane without starting, as what stood before it must have done, or has started. */
static void leave_lane(int n, const struct sim_list *from_queue)
{
    struct sim_list *lane = sim_lane_of(n);
    int place = sim_list_find(lane, n);

    if (place > 0 && !was_queued(n, from_queue))
        sim_list_add(&before, lane->at[place - 1]);
    sim_list_remove(lane, place, 1);
}

static struct span lane_text(struct span record)
{
    const char *end = memchr(record.at, '\n', record.len);

    return (struct span){record.at, end ? (size_t)(end - record.at) : 0};
}

/* What stood in a queue may come before what waited in its lane, which comes when that has its turn. */
static void set_aside(struct sim_batch *b, int n, struct span lane, const struct sim_list *from_queue)
{
    const struct sim_job *job = &sim_jobs[n];
    struct sim_list *list = sim_lane_of(n);
    int place = sim_list_find(list, n), len;
    char text[64];

    len = snprintf(text, sizeof text, "%s/%s/", sim_queue_names[job->queue], sim_type_names[job->type]);
    if (lane.len < (size_t)len || memcmp(lane.at, text, (size_t)len) != 0)
        sim_fail("job %d is aside as of %.*s", n, (int)lane.len, lane.at);
    if (job->place != SIM_WAITING || place < 0 || job->batch != b - sim.batches ||
        sim_stops(n) != SIM_STANDS_ASIDE)
        sim_fail("job %d is aside of %s", n, b->name);
    for (int i = 0; i < place; i++)
        if (newly_aside[list->at[i]] && was_queued(list->at[i], from_queue) == was_queued(n, from_queue))
            sim_fail("job %d is aside before job %d of its lane", n, list->at[i]);
    leave_lane(n, from_queue);
    sim_jobs[n].place = SIM_ASIDE;
    sim_jobs[n].together = 0;
    newly_aside[n] = false;
    sim_list_add(&b->aside, n);
    sim.aside[job->type]++;
    sim_totals.aside++;
}

static void absorb_aside(const struct snapshot *all, struct sim_batch *b, const struct sim_list *from_queue)
{
    const struct item *aside = item_of(all, "aside", b->name);
    size_t old = (size_t)b->aside.count;

    for (size_t i = old; aside && i < aside->count; i++)
        newly_aside[sim_job_in(text_of(aside->at[i]))] = true;
    for (size_t i = old; aside && i < aside->count; i++)
        set_aside(b, sim_job_in(text_of(aside->at[i])), lane_text(text_of(aside->at[i])), from_queue);
}

void sim_absorb_halted(const struct snapshot *all, const struct sim_list *from_queue)
{
    int count = sim.job_count;

    see_all(all);
    for (int i = 0; i < SIM_BATCHES; i++)
        absorb_aside(all, &sim.batches[i], from_queue);
    for (int n = 0; n < count; n++) {
        if (sim_jobs[n].place != SIM_WAITING || seen[n])
            continue;
        sim_fail_if(sim_stops(n) != SIM_ENDS, "job %d is nowhere", n);
        leave_lane(n, from_queue);
        sim_end_job(n, SIM_CANCELLED);
    }
}

void sim_check_halted(void)
{
    for (int i = 0; i < before.count; i++)
        if (sim_jobs[before.at[i]].place == SIM_WAITING)
            sim_fail("a job behind job %d left their lane, and that one waits", before.at[i]);
    before.count = 0;
}

/* ---- Redis against the model */

static int count_items(const struct snapshot *all, const char *kind)
{
    int count = 0;

    for (size_t i = 0; i < all->count; i++)
        count += strncmp(all->items[i].name, kind, strlen(kind)) == 0;
    return count;
}

static void check_number(const struct item *hash, const char *field, int64_t n)
{
    const char *text = item_value(hash, field);

    sim_fail_if((text ? atoll(text) : 0) != n, "%s: %s is %s, not %lld", hash ? hash->name : "nothing", field,
                text ? text : "not there", (long long)n);
}

static void check_flag(const struct item *hash, const char *field, bool flag)
{
    if ((item_value(hash, field) != NULL) != flag)
        sim_fail("%s: %s %s there", hash ? hash->name : "nothing", field, flag ? "is not" : "is");
}

static void check_aside(const struct snapshot *all, const struct sim_batch *b)
{
    const struct item *aside = item_of(all, "aside", b->name);

    if ((aside ? (int)aside->count : 0) != b->aside.count)
        sim_fail("%d jobs of %s are aside, not %d", aside ? (int)aside->count : 0, b->name, b->aside.count);
    for (int i = 0; i < b->aside.count; i++)
        if (sim_job_in(text_of(aside->at[i])) != b->aside.at[i])
            sim_fail("aside of %s in place %d is %s, not job %d", b->name, i, aside->at[i]->str,
                     b->aside.at[i]);
}

static void check_batch(const struct snapshot *all, const struct sim_batch *b)
{
    const struct item *hash = item_of(all, "batch", b->name);
    int64_t ended = b->ends[SIM_DONE] + b->ends[SIM_DEAD] + b->ends[SIM_CANCELLED];

    sim_fail_if((hash != NULL) != b->there, "batch %s %s there", b->name, b->there ? "is not" : "is");
    if (ended > b->total)
        sim_fail("batch %s: %lld of %lld have ended", b->name, (long long)ended, (long long)b->total);
    check_aside(all, b);
    check_number(hash, "total", b->total);
    check_number(hash, "done", b->ends[SIM_DONE]);
    check_number(hash, "dead", b->ends[SIM_DEAD]);
    check_number(hash, "cancelled", b->ends[SIM_CANCELLED]);
    check_number(hash, "failed", b->failed);
    check_number(hash, "next", (int64_t)b->lines);
    check_flag(hash, "sealed", b->sealed);
    check_flag(hash, "ended", b->ended);
    check_flag(hash, "fired", b->fired);
    check_flag(hash, "cancel", b->cancelled);
    check_flag(hash, "then", b->has_follower);
    check_flag(snapshot_item(all, "batches"), b->name, b->there);
}

static void check_halted(const struct snapshot *all)
{
    static const char *const words[] = {[SIM_PAUSED] = "paused ", [SIM_HALTED] = "cancelled "};
    const struct item *halted = snapshot_item(all, "halted");
    size_t count = 0;
    char field[80];

    for (int q = 0; q < sim.queue_count; q++) {
        snprintf(field, sizeof field, "q/%s", sim_queue_names[q]);
        check_flag(halted, field, sim.paused[q]);
        count += sim.paused[q];
    }
    for (int i = 0; i < SIM_BATCHES; i++) {
        const struct sim_batch *b = &sim.batches[i];

        snprintf(field, sizeof field, "b/%s", b->name);
        check_flag(halted, field, b->halt != SIM_GOES_ON);
        count += b->halt != SIM_GOES_ON;
        if (b->halt != SIM_GOES_ON &&
            strncmp(item_value(halted, field), words[b->halt], strlen(words[b->halt])) != 0)
            sim_fail("halted: %s is %s, not %s", field, item_value(halted, field), words[b->halt]);
    }
    if (halted && halted->count != 2 * count)
        sim_fail("halted has %zu fields, not %zu", halted->count / 2, count);
}

/* Heartbeats forget the mark of a job that does not wait. */
static void check_marks(const struct snapshot *all)
{
    const struct item *marks = snapshot_item(all, "cancelled");
    size_t count = 0;
    char id[24];

    for (int n = 0; n < sim.job_count; n++) {
        const char *mark = item_value(marks, sim_id(n, id));
        enum sim_place place = sim_jobs[n].place;

        if (!mark && place != SIM_WAITING && place != SIM_ASIDE)
            sim_jobs[n].marked = false;
        if ((mark != NULL) != sim_jobs[n].marked)
            sim_fail("cancelled: the mark of job %d is %s", n, mark ? mark : "not there");
        count += mark != NULL;
    }
    if (marks && marks->count != 2 * count)
        sim_fail("cancelled has %zu marks, not %zu", marks->count / 2, count);
}

static void check_locks(const struct snapshot *all)
{
    int held = 0;

    for (int i = 0; i < SIM_LOCKS; i++) {
        char id[24];
        const struct item *lock;
        const char *name = textf("lock%d", i);

        lock = item_of(all, "unique", name);
        if (!lock && sim.locks[i] < 0)
            continue;
        if (!lock || sim.locks[i] < 0 || strcmp(lock->at[0]->str, sim_id(sim.locks[i], id)) != 0)
            sim_fail("%s is held by %s; by the model, by job %d", name, lock ? lock->at[0]->str : "nobody",
                     sim.locks[i]);
        held++;
    }
    if (count_items(all, "unique:") != held)
        sim_fail("%d unique keys are held, not %d", count_items(all, "unique:"), held);
}

/* In any order: of what a worker takes along it is told in that of its leases. */
static void check_told(const struct snapshot *all)
{
    size_t told = 0;

    for (size_t i = 0; i < all->count; i++)
        for (size_t k = 0; strncmp(all->items[i].name, "told:", 5) == 0 && k < all->items[i].count; k++)
            told += strcmp(all->items[i].at[k]->str, "*") != 0; /* that is to give back what is early */
    if (told != (size_t)sim.told_count)
        sim_fail("workers are told of %zu tokens, not %d", told, sim.told_count);
    for (int k = 0; k < sim.told_count; k++) {
        const struct item *item = item_of(all, "told", sim_ids[sim.told[k].id].name);
        size_t at = 0;

        while (item && at < item->count && strcmp(item->at[at]->str, sim.told[k].token) != 0)
            at++;
        if (!item || at == item->count)
            sim_fail("%s is not told of %s", sim_ids[sim.told[k].id].name, sim.told[k].token);
    }
}

static void check_remembered(const struct snapshot *all)
{
    int count = 0;
    char id[24];

    for (int n = 0; n < sim.job_count; n++)
        if (sim_jobs[n].remembered) {
            count++;
            sim_fail_if(!item_of(all, "finished", sim_id(n, id)), "nobody remembers job %d", n);
        }
    if (count_items(all, "finished:") != count)
        sim_fail("%d finished jobs are remembered, not %d", count_items(all, "finished:"), count);
}

static void check_dead(const struct snapshot *all)
{
    const struct item *dead = snapshot_item(all, "dead");

    for (size_t i = 0; dead && i < dead->count; i += 2) {
        int n = sim_job_in(text_of(dead->at[i]));

        if (sim_jobs[n].place != SIM_DEAD)
            sim_fail("job %d is dead; by the model it is in place %d", n, sim_jobs[n].place);
    }
}

void sim_check_life(const struct snapshot *all)
{
    for (int i = 0; i < SIM_BATCHES; i++)
        check_batch(all, &sim.batches[i]);
    check_halted(all);
    check_marks(all);
    check_locks(all);
    check_told(all);
    check_remembered(all);
    check_dead(all);
    for (int t = 0; t < sim.type_count; t++) {
        const struct item *stats = item_of(all, "stats", sim_type_names[t]);

        check_number(stats, "cancelled", sim.cancelled[t]);
        check_number(stats, "set_aside", sim.aside[t]);
    }
}

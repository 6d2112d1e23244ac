#include "queue/inspect/job_act.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "queue/dead/dead.h"
#include "queue/inspect/find_job.h"
#include "queue/inspect/why.h"
#include "queue/job/job.h"
#include "queue/limits/rate.h"
#include "throttle/limit.h"

#define LOOKS 20       /* it may move between a look and what is then done to it */
#define NEAR_MOST 5000 /* entries in which one is looked for where it was just now */
#define ENOUGH 1       /* ends a walk */

/* ---- Many */

struct acting {
    struct weir *w;
    int64_t now_us;
    const struct job_search *search;
    const char *action;
    const struct job_bounds *most;
    json_t *states, *next, *first, *batch; /* first, batch: as the last page that has it */
    int64_t looked_before, looked_at, done, left, marked;
};

static void ask_page(struct args *a, void *arg)
{
    const struct acting *act = arg;

    args_add(a, act->action);
    args_add_int(a, job_page_most(act->search));
    args_add_int(a, act->most->jobs - act->done);
    job_add_seed(a);
    job_search_args(act->search, a);
}

static void add_count(json_t *sums, const char *member, const json_t *counts)
{
    json_object_set_new(sums, member, json_integer(answer_int(sums, member) + answer_int(counts, member)));
}

static void add_states(struct acting *act, json_t *states)
{
    const char *state;
    json_t *counts;

    json_object_foreach(states, state, counts) {
        if (!json_object_get(act->states, state))
            json_object_set_new(act->states, state, json_object());
        add_count(json_object_get(act->states, state), "jobs", counts);
        add_count(json_object_get(act->states, state), "left", counts);
        act->done += answer_int(counts, "jobs");
        act->left += answer_int(counts, "left");
    }
}

static int take_page(const json_t *page, void *arg)
{
    struct acting *act = arg;
    int status = dead_send_home(act->w, act->now_us, page);

    if (status < 0)
        return status;
    act->looked_at += answer_int(page, "looked_at");
    add_states(act, json_object_get(page, "states"));
    act->marked += answer_int(page, "marked");
    job_keep_member(&act->first, page, "first");
    job_keep_member(&act->batch, page, "batch");
    if (act->looked_at < act->most->looked_at && act->done < act->most->jobs)
        return 0;
    act->next = job_cursor(act->w, page, act->looked_before + act->looked_at);
    return ENOUGH;
}

static struct pages pages_of(struct acting *act)
{
    return (struct pages){.w = act->w,
                          .script = "job_act",
                          .now_us = act->now_us,
                          .arg = act,
                          .ask = ask_page,
                          .take = take_page,
                          .rests = true};
}

static const struct action {
    const char *name;
    const char *states; /* in which it does something */
} actions[] = {
    {"cancel", "waiting,parked,held,aside,running,scheduled,retry"},
    {"run", "waiting,parked,held,scheduled,retry"},
    {"retry", "dead"},
    {"remove", "dead"},
};

/* Where a search says no state, it is for jobs with which the action does something; one by its id is for that job. */
static int narrow(struct weir *w, const char *action, const struct job_search *s, struct job_search *narrowed)
{
    if (s->count == 0)
        return error_set(&w->error, WEIR_EINPUT,
                         "job %.20s: the search has no term, and would mean all jobs; name some, such as "
                         "type:mail",
                         action);
    if (job_search_has(s, "state", "finished") && !job_search_value(s, "id"))
        return error_set(
            &w->error, WEIR_EINPUT,
            "job %.20s state:finished: they are done, and nothing is done to them; leave that state out",
            action);
    *narrowed = *s;
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
        if (strcmp(action, actions[i].name) == 0)
            return job_search_value(s, "state") || job_search_value(s, "id")
                       ? 0
                       : job_search_add(narrowed, "state", actions[i].states, &w->error);
    return error_set(&w->error, WEIR_EINPUT,
                     "job %.20s: no such action; there are cancel, run, retry and remove", action);
}

/* As jobs come to these, so that they are printed alike each time. */
static json_t *in_order(const json_t *states)
{
    static const char *const order[] = {"waiting",   "parked", "held", "aside",   "running",
                                        "scheduled", "retry",  "dead", "finished"};
    json_t *ordered = json_object();

    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (json_object_get(states, order[i]))
            json_object_set(ordered, order[i], json_object_get(states, order[i]));
    return ordered;
}

int job_batch_over(const char *what, const char *batch, struct error *e)
{
    return error_set(e, WEIR_EINPUT, "%s: batch %s was cancelled: its jobs do not run any more", what, batch);
}

int job_actions_count_page(struct weir *w, int64_t now_us, const struct job_search *s, const char *action,
                           const char *cursor, const struct job_bounds *most, json_t **page)
{
    struct job_search narrowed;
    int status = narrow(w, action, s, &narrowed);

    *page = NULL;
    narrowed.able = strcmp(action, "run") == 0 || strcmp(action, "retry") == 0 ? action : NULL;
    return status < 0 ? status : job_list_count(w, now_us, &narrowed, cursor, most, page);
}

int job_actions_count(struct weir *w, int64_t now_us, const struct job_search *s, const char *action,
                      int64_t *jobs)
{
    const struct job_bounds all = {.looked_at = INT64_MAX, .jobs = JOB_BOUND_MOST};
    json_t *page;
    int status = job_actions_count_page(w, now_us, s, action, NULL, &all, &page);

    *jobs = answer_int(page, "jobs");
    json_decref(page);
    return status;
}

static void end(struct acting *act)
{
    json_decref(act->states);
    json_decref(act->next);
    json_decref(act->first);
    json_decref(act->batch);
}

void job_actions_note(struct weir *w, const struct job_search *s, const char *action, int64_t jobs)
{
    char terms[300] = "";
    size_t len = 0;

    if (jobs == 0)
        return;
    for (size_t i = 0; i < s->count && len < sizeof terms; i++)
        len += (size_t)snprintf(terms + len, sizeof terms - len, " %s:%s", s->text + s->terms[i].field,
                                s->text + s->terms[i].value);
    rate_note(w, "jobs %s%s: %" PRId64, action, terms, jobs);
}

int job_actions(struct weir *w, int64_t now_us, const struct job_search *s, const char *action,
                const char *cursor, const struct job_bounds *most, json_t **result)
{
    struct job_search narrowed;
    struct acting act = {.w = w,
                         .now_us = now_us,
                         .search = &narrowed,
                         .action = action,
                         .most = most,
                         .states = json_object()};
    struct pages pages = pages_of(&act);
    int status = narrow(w, action, s, &narrowed);

    if (status == 0 && most->jobs > 0)
        status = job_walk(&pages, cursor, &act.looked_before);
    *result =
        status < 0
            ? NULL
            : json_pack("{s:s, s:I, s:I, s:I, s:o, s:O*, s:I, s:O*}", "action", action, "jobs",
                        (json_int_t)act.done, "left", (json_int_t)act.left, "marked", (json_int_t)act.marked,
                        "states", in_order(act.states), "batch", act.batch, "looked_at",
                        (json_int_t)act.looked_before + (json_int_t)act.looked_at, "next", act.next);
    if (status == 0 && !*result)
        status =
            error_set(&w->error, WEIR_EINTERNAL, "job %s: out of memory; free some and try again", action);
    end(&act);
    return status;
}

/* ---- One */

/* One that is run. */
struct run {
    struct weir *w;
    int64_t now_us;
    const char *id;
    json_t *job; /* as it was found last */
    bool moved, over;
};

/* Of one in that state nothing can be run: why. 0: it can. */
static int check_state(const struct run *r)
{
    static const struct {
        const char *state, *why;
    } others[] = {
        {"running", "runs already; there is nothing to do"},
        {"finished", "has finished already; there is nothing to run"},
        {"dead", "is dead and will not run; weir dead retry puts it back"},
        {"aside", "is set aside, as its batch is paused; weir batch resume puts it back"},
    };
    const char *state = answer_text(r->job, "state");
    char what[LIMIT_NAME_SIZE + 8];

    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(state, others[i].state) == 0)
            return error_set(&r->w->error, WEIR_EINPUT, "job %s: %s", r->id, others[i].why);
    snprintf(what, sizeof what, "job %s", r->id);
    if (json_object_get(r->job, "batch_cancelled_at"))
        return job_batch_over(what, answer_text(r->job, "batch"), &r->w->error);
    if (json_object_get(r->job, "cancelled_at"))
        return error_set(&r->w->error, WEIR_EINPUT, "job %s: was cancelled, and will not run", r->id);
    return 0;
}

/* Where a walk meets it: its list, behind those that stand behind it; in `later` its time, behind those that come before it then. */
static json_t *place_of(const json_t *job)
{
    if (json_object_get(job, "list"))
        return json_pack("[s, o]", answer_text(job, "list"),
                         json_sprintf("%" PRId64, answer_int(job, "of") - answer_int(job, "place")));
    return json_pack(
        "[s, o]", "later",
        json_sprintf("%" PRId64 ":%" PRId64, answer_int(job, "start"), answer_int(job, "passed")));
}

int job_act_there(struct weir *w, int64_t now_us, const char *id, const char *action, const json_t *job,
                  struct job_acted *acted)
{
    const struct job_bounds one = {.looked_at = NEAR_MOST, .jobs = 1};
    struct job_search search = {.count = 0};
    struct acting act = {
        .w = w, .now_us = now_us, .search = &search, .action = action, .most = &one, .states = json_object()};
    struct pages pages = pages_of(&act);
    json_t *place = place_of(job);
    int status = job_search_add(&search, "id", id, &w->error);

    pages.here = true;
    pages.place = place;
    if (status == 0)
        status = pages_walk(&pages);
    json_decref(place);
    *acted = (struct job_acted){act.done, act.left, act.marked, json_incref(act.first)};
    end(&act);
    return status < 0 ? status : 0;
}

/* Finds a job again that was moved, or that a worker has taken since. */
static int find_again(struct run *r, const json_t *first)
{
    json_t *job;
    int status =
        find_job_at(r->w, r->now_us, r->id, answer_text(first, "list"), answer_int(first, "of") - 1, &job);

    if (status == WEIR_ENOTFOUND) {
        job = json_pack("{s:s, s:s}", "id", r->id, "state", "running");
        status = 0;
    }
    if (status == 0) {
        json_decref(r->job);
        r->job = job;
    }
    return status;
}

static int run_found(struct run *r)
{
    struct job_acted acted = {0};
    int status = check_state(r);

    if (status == 0)
        status = job_act_there(r->w, r->now_us, r->id, "run", r->job, &acted);
    if (status == 0 && acted.left > 0 && !json_object_get(r->job, "list"))
        status = error_set(&r->w->error, WEIR_EINPUT,
                           "job %s: its record cannot be read; weir doctor names it", r->id);
    r->moved = acted.done > 0;
    r->over = acted.done + acted.left > 0;
    if (status == 0 && r->moved)
        status = find_again(r, acted.first);
    json_decref(acted.first);
    return status;
}

/* Finds it, and moves it. */
static int run_once(struct run *r, char was[32])
{
    int status;

    json_decref(r->job);
    status = find_job(r->w, r->now_us, r->id, &r->job);
    if (status < 0)
        return status;
    snprintf(was, 32, "%s", answer_text(r->job, "state"));
    return run_found(r);
}

int job_run(struct weir *w, int64_t now_us, const char *id, json_t **job)
{
    struct run r = {.w = w, .now_us = now_us, .id = id};
    char was[32];
    int status = 0;

    *job = NULL;
    for (int looks = 0; status == 0 && looks < LOOKS && !r.over; looks++)
        status = run_once(&r, was);
    if (status == 0 && !r.over)
        status = error_set(&w->error, WEIR_ENOTNOW, "job %s: it moves too fast to be run; try again", id);
    if (status == 0)
        status = why_found(w, now_us, NULL, &r.job);
    if (status < 0) {
        json_decref(r.job);
        return status;
    }
    if (r.moved)
        rate_note(w, "job run %s", id);
    json_object_set_new(r.job, "was", json_string(was));
    json_object_set_new(r.job, "result", json_string(r.moved ? "moved" : "first"));
    *job = r.job;
    return 0;
}

#include "queue/inspect/job_act.h"

#include <string.h>

#include "core/client/pages.h"
#include "queue/inspect/find_job.h"
#include "queue/inspect/why.h"
#include "queue/job/job.h"

#define PAGE_MOST 250 /* entries; fewer where they are large */
#define LOOKS 2       /* it may move between places that are looked at one after the other */
#define ENOUGH 1      /* ends a walk */

/* ---- Many */

struct acting {
    struct weir *w;
    const struct job_search *search;
    const char *action;
    const struct job_bounds *most;
    json_t *states, *next;
    int64_t looked_before, looked_at, done, left;
};

static void ask_page(struct args *a, void *arg)
{
    const struct acting *act = arg;

    args_add(a, act->action);
    args_add_int(a, PAGE_MOST);
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

    json_object_foreach(states, state, counts)
    {
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

    act->looked_at += answer_int(page, "looked_at");
    add_states(act, json_object_get(page, "states"));
    if (act->looked_at < act->most->looked_at && act->done < act->most->jobs)
        return 0;
    act->next = job_cursor(act->w, page, act->looked_before + act->looked_at);
    return ENOUGH;
}

static int walk(struct acting *act, int64_t now_us, const char *cursor)
{
    struct pages pages = {
        .w = act->w, .script = "job_act", .now_us = now_us, .arg = act, .ask = ask_page, .take = take_page};
    json_t *place;
    int status = job_cursor_read(cursor, &pages.at, &place, &act->looked_before, &act->w->error);

    pages.place = place;
    if (status == 0)
        status = pages_walk(&pages);
    json_decref(place);
    return status < 0 ? status : 0;
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
    static const char *const order[] = {"waiting", "parked",    "held",  "aside", "moving",
                                        "running", "scheduled", "retry", "dead",  "finished"};
    json_t *ordered = json_object();

    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (json_object_get(states, order[i]))
            json_object_set(ordered, order[i], json_object_get(states, order[i]));
    return ordered;
}

int job_actions_count(struct weir *w, int64_t now_us, const struct job_search *s, const char *action,
                      int64_t *jobs)
{
    struct job_search narrowed;
    int status = narrow(w, action, s, &narrowed);

    *jobs = 0;
    return status < 0 ? status : job_list_count(w, now_us, &narrowed, jobs);
}

int job_actions(struct weir *w, int64_t now_us, const struct job_search *s, const char *action,
                const char *cursor, const struct job_bounds *most, json_t **result)
{
    struct job_search narrowed;
    struct acting act = {
        .w = w, .search = &narrowed, .action = action, .most = most, .states = json_object()};
    int status = narrow(w, action, s, &narrowed);

    if (status == 0 && most->jobs > 0)
        status = walk(&act, now_us, cursor);
    *result = status < 0 ? NULL
                         : json_pack("{s:s, s:I, s:I, s:o, s:I, s:O*}", "action", action, "jobs",
                                     (json_int_t)act.done, "left", (json_int_t)act.left, "states",
                                     in_order(act.states), "looked_at",
                                     (json_int_t)(act.looked_before + act.looked_at), "next", act.next);
    if (status == 0 && !*result)
        status =
            error_set(&w->error, WEIR_EINTERNAL, "job %s: out of memory; free some and try again", action);
    json_decref(act.states);
    json_decref(act.next);
    return status;
}

/* ---- One */

/* Of one that was not moved: why; 0: it is the first already. */
static int check_left(struct weir *w, const char *id, const char *state)
{
    static const struct {
        const char *state, *why;
    } lefts[] = {
        {"running", "runs already; there is nothing to do"},
        {"finished", "has finished already; there is nothing to run"},
        {"dead", "is dead and will not run; weir dead retry puts it back"},
        {"aside", "is set aside, as its batch is paused; weir batch resume puts it back"},
        {"moving", "is on its way to another partition; try again in a moment"},
        {"scheduled", "its record cannot be read; weir doctor names it"},
        {"retry", "its record cannot be read; weir doctor names it"},
    };

    for (size_t i = 0; i < sizeof lefts / sizeof *lefts; i++)
        if (strcmp(state, lefts[i].state) == 0)
            return error_set(&w->error, WEIR_EINPUT, "job %s: %s", id, lefts[i].why);
    return 0;
}

static int run_found(struct weir *w, int64_t now_us, const char *id, const json_t *result, json_t **job)
{
    const char *state = json_object_iter_key(json_object_iter(json_object_get(result, "states")));
    bool done = answer_int(result, "jobs") > 0;
    int status = done ? 0 : check_left(w, id, state);

    if (status == 0)
        status = why_read(w, now_us, id, job);
    if (status == WEIR_ENOTFOUND && done) { /* a worker was quick */
        *job = json_pack("{s:s, s:s}", "id", id, "state", "done");
        status = 0;
    }
    if (status == 0) {
        json_object_set_new(*job, "was", json_string(state));
        json_object_set_new(*job, "result", json_string(done ? "moved" : "first"));
    }
    return status;
}

int job_run(struct weir *w, int64_t now_us, const char *id, json_t **job)
{
    const struct job_bounds one = {.looked_at = INT64_MAX, .jobs = 1};
    struct job_search search = {.count = 0};
    json_t *result = NULL;
    int status = find_check_id(w, id);

    *job = NULL;
    if (status == 0)
        status = job_search_add(&search, "id", id, &w->error);
    for (int look = 0;
         status == 0 && look < LOOKS && json_object_size(json_object_get(result, "states")) == 0; look++) {
        json_decref(result);
        status = job_actions(w, now_us, &search, "run", NULL, &one, &result);
    }
    if (status == 0 && json_object_size(json_object_get(result, "states")) == 0)
        status = find_none(w, id);
    if (status == 0)
        status = run_found(w, now_us, id, result, job);
    json_decref(result);
    return status;
}

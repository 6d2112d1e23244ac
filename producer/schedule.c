/* Adding and removing schedules. */
#include "producer/schedule.h"

#include <stdlib.h>
#include <string.h>

#include "core/client/client.h"
#include "core/given.h"
#include "queue/schedule/schedule.h"

/* True when both come at the same times. */
static bool same_times(const struct schedule *a, const struct schedule *b)
{
    return strcmp(a->when, b->when) == 0 && strcmp(a->zone_name, b->zone_name) == 0;
}

/* Stores a schedule with its next occurrence by Redis's clock. An occurrence that is due and that no worker has seen yet stays due when a
 * schedule is added again, with other args perhaps; one that comes at other times begins anew. */
static int put(struct weir *w, const char *name, const struct schedule *s, const char *text, bool *replaced)
{
    struct schedule_row old;
    int64_t next_s;
    int status = schedule_find(w, name, &old);
    bool keep = status == 0 && old.status == 0 && same_times(&old.s, s);

    if (status == 0 || status == WEIR_ENOTFOUND) {
        next_s = schedule_next(s, old.now_us);
        status = next_s != CRON_NEVER
                     ? schedule_put(w, name, s, text, next_s * 1000000, keep, replaced)
                     : error_set(&w->error, WEIR_EINPUT,
                                 "when '%.60s': never occurs before the year 2100; write a day that exists",
                                 s->when);
    }
    schedule_free(&old.s);
    return status;
}

int schedule_store(struct weir *w, const char *name, const struct schedule *s, bool *replaced)
{
    char *text = json_dumps(s->document, JSON_COMPACT);
    int status = text ? put(w, name, s, text, replaced) : error_no_memory(&w->error, "schedule");

    free(text);
    return status;
}

int schedule_add(struct weir *w, const char *name, const char *when, const char *zone,
                 enum weir_missed missed, const struct weir_job_spec *job, bool *replaced)
{
    struct schedule s;
    char *text;
    int status = schedule_make(name, when, zone, missed, job, &s, &text, &w->error);

    if (status == 0)
        status = put(w, name, &s, text, replaced);
    free(text);
    schedule_free(&s);
    return status;
}

int weir_schedule_add_sized(struct weir *w, const char *name, const char *when, const char *zone,
                            enum weir_missed missed, const struct weir_job_spec *job, size_t size)
{
    struct weir_job_spec own;
    bool replaced;

    if (GIVEN(w, PASSED(name), PASSED(when), PASSED(job)) < 0 || !(job = GIVEN_STRUCT(w, job, size, &own)))
        return WEIR_EUSAGE;
    return schedule_add(w, name, when, zone, missed, job, &replaced);
}

int weir_schedule_remove(struct weir *w, const char *name)
{
    if (GIVEN(w, PASSED(name)) < 0)
        return WEIR_EUSAGE;
    return schedule_take_out(w, name);
}

struct halting {
    const char *name;
    const struct pausing *how;
    json_t *answer; /* of the partition that has it */
};

static int pause_here(struct weir *w, void *arg)
{
    struct halting *halting = arg;
    json_t *answer;
    struct args a = {0};
    int status;

    pause_request(&a, "schedule_pause", w->prefix, -1, "schedule ", halting->name, halting->how);
    status = client_ask(w, "schedule_pause", &a, &answer);
    if (status == 0 && !halting->answer && !json_object_get(answer, "missing"))
        halting->answer = json_incref(answer);
    json_decref(answer);
    return status;
}

int schedule_pause(struct weir *w, const char *name, const struct pausing *how, json_t **answer)
{
    struct halting halting = {.name = name, .how = how};
    struct schedule_row row;
    int status = schedule_find(w, name, &row);

    *answer = NULL;
    schedule_free(&row.s);
    if (status == 0)
        status = client_change_all(w, pause_here, &halting);
    if (status == 0 && halting.answer)
        *answer = halting.answer;
    else
        json_decref(halting.answer);
    return status == 0 && !*answer
               ? error_set(&w->error, WEIR_ENOTNOW, "schedule %s: it was removed meanwhile", name)
               : status;
}

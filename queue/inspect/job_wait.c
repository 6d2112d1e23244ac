#include "queue/inspect/job_wait.h"

#include <string.h>

#include "core/clock.h"
#include "queue/inspect/find_job.h"
#include "queue/inspect/job_list.h"

#define REST_FIRST_US 20000
#define REST_MOST_US 1000000
#define SEARCH_SHARE 20 /* it rests for so many times as long as it searches */
#define LOOKS 2         /* a job that moves may be passed over by one */

static void take(struct job_wait *wait, json_t *job)
{
    const char *state = answer_text(job, "state");

    json_decref(wait->job);
    wait->job = job;
    wait->ended = strcmp(state, "finished") == 0 || strcmp(state, "dead") == 0;
}

static void rest(struct job_wait *wait)
{
    wait->rest_us = wait->rest_us == 0 ? REST_FIRST_US : wait->rest_us * 3 / 2;
    if (wait->rest_us > REST_MOST_US)
        wait->rest_us = REST_MOST_US;
    wait->next_us = clock_mono_us() + wait->rest_us;
}

/* Goes on with a search, or begins one. */
static int search(struct weir *w, const char *id, struct job_wait *wait)
{
    const char *cursor = json_string_value(json_object_get(wait->job, "next"));
    int64_t begun_us = clock_mono_us();
    json_t *job;
    int status = find_job_part(w, -1, id, cursor, begun_us + JOB_LOOK_US, &job);

    if (status == WEIR_ENOTFOUND && ++wait->misses < LOOKS)
        status = find_job_part(w, -1, id, NULL, clock_mono_us() + JOB_LOOK_US, &job);
    wait->misses += status == WEIR_ENOTFOUND;
    wait->took_us += clock_mono_us() - begun_us;
    if (status < 0) {
        rest(wait);
        return status;
    }
    take(wait, job);
    if (found_too_early(job))
        return 0;
    wait->misses = 0;
    wait->seen = true;
    wait->search_us = clock_mono_us() + wait->took_us * SEARCH_SHARE;
    wait->took_us = 0;
    rest(wait);
    return 0;
}

int job_wait_look(struct weir *w, const char *id, struct job_wait *wait)
{
    static const struct find_place ended = {.at = "finished"};
    json_t *job;
    int status;

    if (!wait->seen || clock_mono_us() >= wait->search_us)
        return search(w, id, wait);
    status = find_job_near(w, -1, id, &ended, &job);
    if (status == 0)
        take(wait, job);
    rest(wait);
    return status == WEIR_ENOTFOUND ? 0 : status;
}

void job_wait_free(struct job_wait *wait)
{
    json_decref(wait->job);
    *wait = (struct job_wait){.job = NULL};
}

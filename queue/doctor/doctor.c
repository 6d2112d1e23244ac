#include "queue/doctor/doctor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/client/reply.h"
#include "queue/doctor/settings.h"

void doctor_free(struct doctor *d)
{
    json_decref(d->checks);
}

/* A partition that has lost its data, or an init that broke off: it refuses names that live there. */
static int compare_count(struct weir *w, struct doctor *d)
{
    int count = client_count(w), own;

    if (client_read_count(w, &own) < 0)
        return w->error.status;
    if (own == count)
        return 0;
    d->misconfigured = true;
    doctor_add(d, "partitions", DOCTOR_WRONG, "restart a worker, which restores it",
               "says that there are %d, not %d", own, count);
    return 0;
}

/* Looks at the partition that calls go to. */
static int look_here(struct weir *w, int64_t now_us, bool repair, struct doctor *d)
{
    bool usable;
    int status;

    d->only_wrong = w->at > 0;
    d->looks_at = w->at > 0 ? w : NULL;
    status = doctor_setup(w, now_us, repair, d, &usable);
    d->only_wrong = false;
    d->looks_at = w;
    if (status == 0 && usable && w->at > 0)
        status = compare_count(w, d);
    return status == 0 && usable ? doctor_structures(w, now_us, repair, d) : status;
}

int doctor_run(struct weir *w, int64_t now_us, bool repair, struct doctor *out)
{
    int status = client_at(w, 0);

    *out = (struct doctor){.checks = NULL};
    do {
        if (status == 0)
            status = look_here(w, now_us, repair, out);
    } while (client_at_next(w, &status));
    if (status == 0 && out->no_memory)
        status = error_no_memory(&w->error, "doctor");
    return status;
}

/* ---- At a glance */

/* Of what is no fault yet, only what grows into one by itself: settings are for doctor_run. */
static bool is_telling(const json_t *check)
{
    static const char *const changing[] = {"memory", "clients", "persistence"};

    for (size_t i = 0; i < sizeof changing / sizeof *changing; i++)
        if (strcmp(answer_text(check, "name"), changing[i]) == 0)
            return true;
    return strcmp(answer_text(check, "state"), doctor_states[DOCTOR_WRONG]) == 0;
}

static void take_checks(const json_t *checks, struct doctor *out)
{
    json_t *check;
    size_t i;

    json_array_foreach((json_t *)checks, i, check)
        if (is_telling(check))
            out->no_memory |= json_array_append(out->checks, check) != 0;
}

static int glance_here(struct weir *w, struct doctor *out, bool *in_cluster)
{
    struct doctor d = {.only_wrong = true, .looks_at = w};
    struct redisReply *reply = NULL;
    char growth[SETTINGS_GROWTH], *info;
    struct args a = {0};
    int status;

    args_add(&a, "INFO");
    status = redis_call(w->redis, &a, &reply, NULL, &w->error);
    if (status == 0 && reply->type == REDIS_REPLY_STRING) {
        settings_ask_growth(w->redis, w->prefix, reply->str, growth);
        d.no_memory = asprintf(&info, "%s\n%s", reply->str, growth) < 0;
        if (!d.no_memory)
            doctor_settings(&d, info);
        free(d.no_memory ? NULL : info);
        *in_cluster = !settings_hold(reply->str, "cluster_enabled=0");
    }
    take_checks(d.checks, out);
    out->no_memory |= d.no_memory;
    freeReplyObject(reply);
    doctor_free(&d);
    args_free(&a);
    return status == WEIR_EUNREACHABLE ? status : 0;
}

int doctor_glance(struct weir *w, struct doctor *out)
{
    bool in_cluster = false;
    int status = client_at(w, 0);

    if (!out->checks)
        out->checks = json_array();
    do {
        if (status == 0)
            status = glance_here(w, out, &in_cluster);
    } while (in_cluster && client_at_next(w, &status));
    return status;
}

#include "queue/doctor/doctor.h"

#include "core/client/client.h"

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

/* The partition that calls go to. */
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
        status = error_set(&w->error, WEIR_EINTERNAL, "doctor: out of memory; free some and try again");
    return status;
}

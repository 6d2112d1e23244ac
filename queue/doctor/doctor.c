#include "queue/doctor/doctor.h"

#include "core/client/client.h"

void doctor_free(struct doctor *d)
{
    json_decref(d->checks);
}

int doctor_run(struct weir *w, int64_t now_us, bool repair, struct doctor *out)
{
    bool usable;
    int status;

    *out = (struct doctor){.checks = NULL};
    status = doctor_setup(w, now_us, repair, out, &usable);
    if (status == 0 && usable)
        status = doctor_structures(w, now_us, repair, out);
    if (status == 0 && out->no_memory)
        status = error_set(&w->error, WEIR_EINTERNAL, "doctor: out of memory; free some and try again");
    return status;
}

#include "view/doctor.h"

json_t *doctor_document(const struct doctor *d)
{
    return json_pack("{s:O}", "checks", d->checks);
}

int view_doctor(struct weir *w, json_t **doc)
{
    struct doctor d;
    int status = doctor_run(w, -1, false, &d);

    *doc = NULL;
    if (status == 0)
        status = document_done(w, doctor_document(&d), doc);
    doctor_free(&d);
    return status;
}

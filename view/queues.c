#include "view/queues.h"

static const struct member members[] = {
    MEMBER("name", WORD),    MEMBER("waiting", NUMBER),      MEMBER("parked", NUMBER),
    MEMBER("paused", PAUSE), MEMBER("worker_count", NUMBER), {.name = NULL},
};

int view_queues(struct weir *w, json_t **doc)
{
    json_t *rows;
    int status = queues_read(w, &rows);

    *doc = NULL;
    if (status == 0)
        status = document_done(w, document_list(rows, members), doc);
    json_decref(rows);
    return status;
}

json_t *queue_purge_document(const char *queue, const char *type, bool dry_run, const struct queue_jobs *jobs)
{
    return json_pack("{s:s, s:o, s:b, s:I, s:I, s:I}", "name", queue, "type",
                     type ? json_string(type) : json_null(), "dry_run", dry_run, "waiting",
                     (json_int_t)jobs->waiting, "parked", (json_int_t)jobs->parked, "marked",
                     (json_int_t)jobs->marked);
}

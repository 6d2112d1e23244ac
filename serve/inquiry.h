/* One request as an errand of a Redis thread: what is asked, and the text that answers it. Knows no connection. */
#ifndef SERVE_INQUIRY_H
#define SERVE_INQUIRY_H

#include "queue/job/job.h"
#include "serve/redis_thread.h"
#include "serve/resource.h"

enum inquiry_kind {
    INQUIRY_DOCUMENT, /* GET below /api */
    INQUIRY_METRICS,
    INQUIRY_ACTION, /* POST below /api */
    INQUIRY_JOBS,   /* POST /api/jobs */
    INQUIRY_PAGE
};

struct answer;

struct inquiry {
    struct errand errand; /* the first member */
    enum inquiry_kind kind;
    const struct resource *resource; /* of a document, of an action */
    char names[RESOURCE_NAMES][RESOURCE_NAME_SIZE];
    json_t *fields;     /* of its query; of an action those of its body */
    char *path, *query; /* of a page: decoded, and as it stands */
    bool actions, hide_args;
    int64_t until_us; /* of a search: until then it goes on where it has found nothing; 0: it has not begun */
    bool drop_pages;  /* something was changed since pages were read */
    struct answer *answer; /* of shared.c */
    bool lines;            /* jobs: one in each line of body */
    struct text body;      /* of jobs */

    unsigned status;    /* of HTTP */
    const char *type;   /* of text */
    struct text text;   /* the answer */
    struct error error; /* why it failed; status 0: it did not */
};

/* NULL: out of memory. */
struct inquiry *inquiry_new(enum inquiry_kind kind);
void inquiry_free(struct inquiry *t);
/* The run of its errand. */
void inquiry_run(struct errand *errand, const struct tools *tools);
/* {"error": ...}; status 0: that which goes with the error. */
void inquiry_fail(struct inquiry *t, unsigned status, const struct error *why);

#endif

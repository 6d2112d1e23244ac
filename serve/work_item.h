/* One request as work of a Redis thread: what is asked, and the text that answers it. Knows no connection. */
#pragma once

#include "queue/inspect/job_wait.h"
#include "queue/job/job.h"
#include "serve/post_hold.h"
#include "serve/redis_thread.h"
#include "serve/resource.h"

enum work_item_kind {
    WORK_NONE,
    WORK_LOGIN,    /* of http_request.h: no work for a thread */
    WORK_DOCUMENT, /* GET below /api */
    WORK_METRICS,
    WORK_ACTION, /* POST below /api */
    WORK_JOBS,   /* POST /api/jobs */
    WORK_CALL,   /* POST /api/v1/VERB */
    WORK_HOLD,   /* POST /hold and below */
    WORK_PAGE
};

struct answer;

struct work_item {
    struct work work; /* the first member */
    enum work_item_kind kind;
    const struct resource *resource; /* of a document, of an action */
    char name[RESOURCE_NAME_SIZE];
    json_t *fields;     /* of its query; of an action those of its body */
    char *path, *query; /* of a page: decoded, and as it stands */
    bool actions, hide_args;
    char visitor[64]; /* who has sent an action: the name of its token, which is logged; "": it has none */
    int64_t until_us; /* of a search: until then it goes on where it has found nothing; 0: it has not begun */
    struct job_wait wait; /* of a document that is of a job for whose end somebody waits */
    bool waits;
    struct post_hold hold; /* of WORK_HOLD */
    bool drop_pages;       /* something was changed since pages were read */
    struct answer *answer; /* of shared.c */
    bool lines;            /* jobs: one in each line of body */
    const char *verb;      /* of a call */
    struct text body;      /* of jobs, of a call */

    unsigned status;      /* of HTTP */
    const char *type;     /* of text */
    struct text text;     /* the answer */
    double retry_after_s; /* of a hold that is denied */
    struct error error;   /* why it failed; status 0: it did not */
};

/* NULL: out of memory. */
struct work_item *work_item_new(enum work_item_kind kind);
void work_item_free(struct work_item *item);
/* Runs the work of an item. */
void work_item_run(struct work *work, const struct tools *tools);

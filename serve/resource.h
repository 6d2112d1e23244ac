/* What a path of /api asks for: tables, which documents.c and actions.c have. */
#pragma once

#include <stdbool.h>

#include "core/client/client.h"
#include "view/json.h"

#define JOBS_LOOKED_AT 100000 /* by one request that searches; the next one goes on at the cursor */

#define RESOURCE_NAME_SIZE 512

/* The kind says which thread answers (redis_thread.h): what is quick to read does not wait for what is not, and a change for neither. */
enum redis_thread_kind { THREAD_LOOK, THREAD_SEARCH, THREAD_CHANGE, THREAD_COUNT };

struct ask;
struct pausing;

/* A row; a table ends with a NULL path. */
struct resource {
    const char *path; /* "/api/rates/" and "*" for a name */
    enum redis_thread_kind thread;
    const char *fields; /* the names of those that it takes, with a blank between */
    /* On its thread. *doc begins as NULL, and is the caller's, after a failure too, which w->error says. */
    int (*answer)(struct weir *w, const struct ask *ask, json_t **doc);
    /* what answer() serves several rows by */
    union {
        int (*all)(struct weir *w, json_t **doc);
        int (*one)(struct weir *w, const char *name, json_t **doc);
        int (*pause)(struct weir *w, const char *name, const struct pausing *how, json_t **answer);
        int (*remove)(struct weir *w, const char *name);
        const char *word;
    } by;
};
extern const struct resource
    document_resources[]; /* GET: the documents of view/, which weir prints with --json */
extern const struct resource action_resources[]; /* POST: what changes something */

/* An ask is what came with a request. */
struct ask {
    const struct resource *row;
    const char *name;      /* the part of its path that stands for "*", decoded */
    const json_t *fields;  /* fields.h: of its query, of a POST those of its body */
    bool hide_args;        /* nothing may tell what stands in a payload */
    struct job_wait *wait; /* for the end of the job; NULL: nobody does */
};

/* The field that has a search for jobs (queue/inspect/job_search.h). WEIR_EINPUT, in w->error. */
struct job_search;
WEIR_CHECKED int ask_search(struct weir *w, const struct ask *ask, const char *field,
                            struct job_search *search);

/* The row of a path, which ends at a "?" or its end; name: what stands for "*", decoded. NULL: there is none. */
const struct resource *resource_find(const struct resource *table, const char *path,
                                     char name[RESOURCE_NAME_SIZE]);

/* A request, from its head to its answer. What its files share; http_routes.h says what others call. */
#pragma once

#include "queue/job/job.h"
#include "serve/http_routes.h"
#include "serve/resource.h"
#include "serve/shared.h"

#define FORM_MOST 65536
#define API_V1 "/api/v1/"

struct http_routes {
    const struct http_routes_events *events;
    void *arg;
    struct serve_options options;
    struct access *access;
    struct redis_thread *threads[THREAD_COUNT];
    struct shared *shared;
    size_t waiting, body_bytes;
};

/* A verb of the protocol stands behind POST /api/v1/VERB. */
struct api_verb {
    const char *name;
    unsigned right; /* 0: none is needed */
    enum redis_thread_kind thread;
    size_t body_most;
};

struct http_request {
    struct waiter waiter; /* the first member */
    struct http_routes *routes;
    struct MHD_Connection *connection;
    const char *method;
    char *address;            /* from its first "/" on */
    enum work_item_kind plan; /* WORK_NONE: it is answered */
    const struct resource *resource;
    const struct api_verb *verb; /* of WORK_CALL */
    char name[RESOURCE_NAME_SIZE];
    struct visitor visitor;
    struct text body;
    size_t body_most, body_len; /* body_len: with what was too much and is not kept */
    bool too_many;              /* bodies come in: it was not kept */
    json_t *fields;
    bool asked, suspended;
    unsigned status;               /* of response, or of answer */
    struct MHD_Response *response; /* its own */
    struct answer *answer;         /* one that others may have too */
};

/* ---- serve/http_request_answer.c: what it is answered */

/* Finds a header; NULL: it is not there. */
const char *http_request_header(const struct http_request *r, const char *name);
/* True for a call of the protocol, to which all answers are documents. */
bool http_request_is_call(const struct http_request *r);
enum MHD_Result http_request_send(struct http_request *r);
/* The answer is there. */
void http_request_answer(struct http_request *r, unsigned status, struct MHD_Response *response);
/* {"error": why}; a page to a browser, but of GET below /api/ */
void http_request_refuse(struct http_request *r, unsigned status, const char *why);
void http_request_send_elsewhere(struct http_request *r, const char *location);
/* Shows the form for a token; a note stands above it. */
void http_request_show_login(struct http_request *r, unsigned status, const char *note);

/* ---- serve/http_request_plan.c */

/* What it asks for, and whether it may: its plan, or an answer why not. */
void http_request_plan(struct http_request *r);
/* True when it brings a body of JSON lines. */
bool http_request_is_lines(const struct http_request *r);
bool http_request_brings_body(const struct http_request *r);

/* ---- serve/http_request_audit.c */

/* Logs a line for an action: who did what to what, and what became of it. */
void http_request_audit(const struct http_request *r, unsigned status, const char *problem);

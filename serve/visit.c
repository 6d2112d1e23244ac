#include "serve/visit.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/access.h"
#include "serve/fields.h"
#include "serve/take_url.h"

#define FORM "application/x-www-form-urlencoded"
#define BODIES_MOST (64 * 1024 * 1024) /* bytes of all requests that come in at a time */

/* ---- Bodies */

static bool is_form(const struct visit *v)
{
    const char *type = visit_header(v, MHD_HTTP_HEADER_CONTENT_TYPE);

    return type && strncmp(type, FORM, strlen(FORM)) == 0;
}

/* The fields of the body; of /api/jobs and what has none those of the query. */
static bool read_fields(struct visit *v)
{
    const char *query = strchr(v->address, '?');

    if (v->plan == PLAN_ACTION && v->body.len > 0 && query && query[1]) {
        visit_refuse(v, MHD_HTTP_BAD_REQUEST,
                     "fields in the address and in the body; write all in one of them");
        return false;
    }
    if (v->body.len == 0 || v->plan == PLAN_JOBS)
        v->fields = fields_of_form(query ? query + 1 : "", query ? strlen(query + 1) : 0);
    else if (is_form(v))
        v->fields = fields_of_form(v->body.at, v->body.len);
    else
        v->fields = fields_of_json(v->body.at, v->body.len);
    if (!v->fields)
        visit_refuse(v, MHD_HTTP_BAD_REQUEST,
                     "malformed: write name=value&..., each name once and no %00, or a JSON object of texts "
                     "and whole numbers");
    return v->fields != NULL;
}

/* ---- Logging in */

static bool is_secure(struct visit *v)
{
    const char *scheme = visit_header(v, "X-Forwarded-Proto");

    return scheme && strcasecmp(scheme, "https") == 0;
}

static void log_in(struct visit *v)
{
    const char *token = field_text(v->fields, "token");
    char cookie[TOKEN_MOST + 100];
    struct visitor visitor = {.known = false};

    if (token)
        access_token(v->office->access, token, &visitor);
    if (!visitor.known) {
        visit_show_login(v, MHD_HTTP_UNAUTHORIZED, "That token is not known here.");
        return;
    }
    snprintf(cookie, sizeof cookie, TOKEN_COOKIE "=%.*s; Path=/; HttpOnly; SameSite=Strict%s", TOKEN_MOST,
             token, is_secure(v) ? "; Secure" : "");
    visit_send_elsewhere(v, "/");
    if (v->response)
        MHD_add_response_header(v->response, MHD_HTTP_HEADER_SET_COOKIE, cookie);
}

/* ---- The way back of a form */

/* Returns where a form leads back to: a path of ours; NULL: it was no form. */
static const char *way_back(const struct visit *v)
{
    const char *back = field_text(v->fields, "back");

    if (!back || !is_form(v))
        return NULL;
    for (const char *at = back; *at; at++)
        if (*at <= ' ' || *at >= 0x7f || *at == '\\')
            return "/";
    return back[0] == '/' && back[1] != '/' ? back : "/";
}

/* "/types/mail?problem=..." */
static void send_back(struct visit *v, const char *back, const char *problem)
{
    size_t size = strlen(back) + 3 * strlen(problem) + sizeof "?problem=";
    char *location = malloc(size);
    size_t len;

    if (!location)
        return;
    len = (size_t)sprintf(location, "%s", back);
    if (*problem)
        len += (size_t)sprintf(location + len, "%cproblem=", strchr(back, '?') ? '&' : '?');
    for (const char *at = problem; *at; at++)
        len += (size_t)sprintf(location + len, isalnum((unsigned char)*at) ? "%c" : "%%%02X",
                               (unsigned char)*at);
    visit_send_elsewhere(v, location);
    free(location);
}

/* ---- Answers of desks */

static void on_answer(struct waiter *waiter, const struct inquiry *inquiry, struct answer *answer)
{
    struct visit *v = (struct visit *)waiter;
    bool changes = v->plan == PLAN_ACTION || v->plan == PLAN_JOBS;
    const char *back = changes ? way_back(v) : NULL, *problem = inquiry ? inquiry->error.text : "";

    if (inquiry && changes) {
        visit_audit(v, inquiry->status, problem);
        shared_drop(v->office->shared);
    }
    if (!inquiry) {
        visit_refuse(v, MHD_HTTP_SERVICE_UNAVAILABLE, "weir serve ends; ask again");
    } else if (back) {
        send_back(v, back, problem);
    } else {
        visit_answer(v, inquiry->status, NULL);
        v->answer = answer_hold(answer);
    }
    if (!v->suspended)
        return;
    v->suspended = false;
    v->office->waiting--;
    MHD_resume_connection(v->connection);
    v->office->events->on_resumed(v->office->arg);
}

/* Of a whole job or of Redis it takes a while. */
static bool is_slow(const char *path)
{
    return strncmp(path, "/jobs", strlen("/jobs")) == 0 || strncmp(path, "/dead", strlen("/dead")) == 0 ||
           strcmp(path, "/ask") == 0 || strcmp(path, "/redis") == 0;
}

static struct inquiry *page_inquiry(const struct visit *v, enum desk_kind *desk)
{
    struct inquiry *t = inquiry_new(INQUIRY_PAGE);
    size_t len = strcspn(v->address, "?");

    if (!t)
        return NULL;
    t->actions = v->visitor.rights & RIGHT_ACT;
    t->hide_args = v->office->options.hide_args;
    t->path = malloc(len + 1);
    t->query = strdup(v->address[len] ? v->address + len + 1 : "");
    if (!t->path || !t->query || !url_decode(v->address, len, false, t->path)) {
        inquiry_free(t);
        return NULL;
    }
    *desk = is_slow(t->path) ? DESK_SEARCH : DESK_LOOK;
    return t;
}

static struct inquiry *make_inquiry(struct visit *v, enum desk_kind *desk)
{
    static const enum inquiry_kind kinds[] = {[PLAN_DOCUMENT] = INQUIRY_DOCUMENT,
                                              [PLAN_METRICS] = INQUIRY_METRICS,
                                              [PLAN_ACTION] = INQUIRY_ACTION,
                                              [PLAN_JOBS] = INQUIRY_JOBS};
    const struct office *o = v->office;
    struct inquiry *t;

    if (v->plan == PLAN_PAGE)
        return page_inquiry(v, desk);
    t = inquiry_new(kinds[v->plan]);
    if (!t)
        return NULL;
    *desk = v->plan == PLAN_METRICS ? DESK_LOOK : v->resource ? v->resource->desk : DESK_CHANGE;
    t->resource = v->resource;
    memcpy(t->names, v->names, sizeof t->names);
    t->fields = json_deep_copy(v->fields); /* its thread counts its users */
    t->hide_args = o->options.hide_args;
    t->lines = visit_is_lines(v);
    t->body = v->body;
    v->body = (struct text){0};
    return t;
}

/* Makes the key that all share who ask for the same; NULL: they share nothing. */
static char *shared_key(const struct visit *v)
{
    bool acts = v->visitor.rights & RIGHT_ACT;
    char *key;

    if (v->plan != PLAN_DOCUMENT && v->plan != PLAN_METRICS && v->plan != PLAN_PAGE)
        return NULL;
    return asprintf(&key, "%d %s", v->plan == PLAN_PAGE && acts, v->address) < 0 ? NULL : key;
}

static void ask(struct visit *v)
{
    enum desk_kind desk;
    struct inquiry *inquiry;
    char *key;

    v->asked = true;
    if (v->plan != PLAN_PAGE && !read_fields(v))
        return;
    key = shared_key(v);
    inquiry = make_inquiry(v, &desk);
    v->waiter.on_answer = on_answer;
    if (!inquiry)
        visit_refuse(v, MHD_HTTP_BAD_REQUEST, "malformed address, or out of memory");
    else if (!shared_ask(v->office->shared, desk, key, inquiry, &v->waiter))
        visit_refuse(v, MHD_HTTP_SERVICE_UNAVAILABLE, "too much to do; ask again");
    free(key);
}

/* ---- A visit */

struct visit *visit_new(struct office *office, struct MHD_Connection *connection, const char *method,
                        const char *address)
{
    struct visit *v = calloc(1, sizeof *v);

    if (!v)
        return NULL;
    *v = (struct visit){
        .office = office, .connection = connection, .method = method, .address = strdup(url_path(address))};
    if (v->address)
        return v;
    free(v);
    return NULL;
}

void visit_free(struct visit *v)
{
    if (!v)
        return;
    if (v->response)
        MHD_destroy_response(v->response);
    answer_release(v->answer);
    v->office->body_bytes -= v->body_len;
    json_decref(v->fields);
    text_free(&v->body);
    free(v->address);
    free(v);
}

enum MHD_Result visit_begin(struct visit *v)
{
    visit_plan(v); /* an answer before a body that nobody reads ends the connection */
    return v->plan == PLAN_ANSWERED && visit_brings_body(v) ? visit_send(v) : MHD_YES;
}

enum MHD_Result visit_body(struct visit *v, const char *bytes, size_t len)
{
    struct error e;

    v->body_len += len;
    v->office->body_bytes += len;
    if (v->body_len > 2 * v->body_most + FORM_MOST)
        return MHD_NO;
    v->too_many |= v->office->body_bytes > BODIES_MOST;
    if (v->body_len > v->body_most || v->too_many)
        return MHD_YES; /* read, not kept: it is answered at its end */
    return text_add(&v->body, bytes, len, &e) == 0 ? MHD_YES : MHD_NO;
}

/* What a body begins with that is no text; NULL: it may be one. */
static const char *wrong_body(const struct visit *v)
{
    static const struct {
        const char *begins, *why;
    } marks[] = {
        {"\xef\xbb\xbf", "the body begins with a byte order mark (EF BB BF); send UTF-8 without one"},
        {"\xff\xfe", "the body is UTF-16; send UTF-8"},
        {"\xfe\xff", "the body is UTF-16; send UTF-8"},
        {"\x1f\x8b", "the body is compressed by gzip; send it uncompressed"},
    };

    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (v->body.len >= strlen(marks[i].begins) &&
            memcmp(v->body.at, marks[i].begins, strlen(marks[i].begins)) == 0)
            return marks[i].why;
    return NULL;
}

/* The body is there: what is asked now, or was answered before. */
static void take_up(struct visit *v)
{
    const char *wrong = wrong_body(v);

    if (v->body_len > v->body_most)
        visit_refuse(v, MHD_HTTP_CONTENT_TOO_LARGE, "the body is too large");
    else if (v->too_many)
        visit_refuse(v, MHD_HTTP_SERVICE_UNAVAILABLE, "too many bodies at a time; ask again");
    else if (wrong)
        visit_refuse(v, MHD_HTTP_BAD_REQUEST, wrong);
    else if (v->plan != PLAN_LOGIN)
        ask(v);
    else if (read_fields(v))
        log_in(v);
}

enum MHD_Result visit_go_on(struct visit *v)
{
    if (v->plan != PLAN_ANSWERED && !v->asked)
        take_up(v);
    v->asked = true;
    if (v->plan == PLAN_ANSWERED)
        return visit_send(v);
    v->suspended = true;
    v->office->waiting++;
    MHD_suspend_connection(v->connection);
    return MHD_YES;
}

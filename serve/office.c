#include "serve/office.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log/log.h"
#include "serve/actions.h"
#include "serve/documents.h"
#include "serve/events.h"
#include "serve/fields.h"
#include "serve/page/page.h"
#include "serve/request.h"
#include "serve/response.h"
#include "serve/shared.h"
#include "view/text.h"

#define FORM_MOST 65536
#define ONE_JOB_MOST (JOB_BODY_MAX + 4096)
#define LINES_MOST (16 * 1024 * 1024)
#define BODIES_MOST (64 * 1024 * 1024) /* bytes of all requests that come in at a time */
#define AUDITED 400                    /* bytes of what came with an action */

struct office {
    const struct office_events *events;
    void *arg;
    struct serve_options options;
    struct access *access;
    struct desk *desks[DESK_COUNT];
    struct shared *shared;
    struct events *streams;
    size_t waiting, body_bytes;
};

enum plan {
    PLAN_ANSWERED,
    PLAN_DOCUMENT,
    PLAN_METRICS,
    PLAN_PAGE,
    PLAN_EVENTS,
    PLAN_LOGIN,
    PLAN_ACTION,
    PLAN_JOBS
};

struct visit {
    struct waiter waiter; /* the first member */
    struct office *office;
    struct MHD_Connection *connection;
    const char *method;
    char *address; /* from its first "/" on */
    enum plan plan;
    const struct resource *resource;
    char names[RESOURCE_NAMES][RESOURCE_NAME_SIZE];
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

static const char *header_of(const struct visit *v, const char *name)
{
    return MHD_lookup_connection_value(v->connection, MHD_HEADER_KIND, name);
}

/* ---- Responses */

static enum MHD_Result send_response(struct visit *v)
{
    struct MHD_Response *response = v->answer ? answer_response(v->answer) : v->response;
    enum MHD_Result result = response ? MHD_queue_response(v->connection, v->status, response) : MHD_NO;

    if (v->response)
        MHD_destroy_response(v->response);
    v->response = NULL;
    return result;
}

static void answer_with(struct visit *v, unsigned status, struct MHD_Response *response)
{
    v->plan = PLAN_ANSWERED;
    v->status = status;
    v->response = response;
}

static void refuse(struct visit *v, unsigned status, const char *why)
{
    json_t *doc = json_pack("{s:o}", "error", text_word(why));
    char *text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;

    answer_with(v, status, text ? response_of("application/json", text, strlen(text)) : NULL);
    if (v->response && status == MHD_HTTP_UNAUTHORIZED)
        MHD_add_response_header(v->response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
    if (v->response && status == MHD_HTTP_SERVICE_UNAVAILABLE)
        MHD_add_response_header(v->response, MHD_HTTP_HEADER_RETRY_AFTER, "1");
    if (v->response && status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(v->response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD, POST");
    free(text);
    json_decref(doc);
}

static void send_elsewhere(struct visit *v, const char *location)
{
    answer_with(v, MHD_HTTP_SEE_OTHER, response_of("text/plain", "", 0));
    if (v->response)
        MHD_add_response_header(v->response, MHD_HTTP_HEADER_LOCATION, location);
}

/* ---- Logging in */

static void show_login(struct visit *v, unsigned status, const char *note)
{
    static const char form[] =
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Log in · weir</title>"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
        "<meta name=\"color-scheme\" content=\"light dark\"><link rel=\"stylesheet\" "
        "href=\"/assets/style.css\">"
        "</head><body><main id=\"main\"><h1>Log in</h1><p>%s</p><form method=\"post\" action=\"/login\">"
        "<label>Token <input type=\"password\" name=\"token\" autocomplete=\"current-password\" "
        "required></label> "
        "<button>Log in</button></form></main></body></html>\n";
    char text[sizeof form + 200];
    int len = snprintf(text, sizeof text, form, note);

    answer_with(v, status, response_of("text/html; charset=utf-8", text, (size_t)len));
}

static bool is_secure(struct visit *v)
{
    const char *scheme = header_of(v, "X-Forwarded-Proto");

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
        show_login(v, MHD_HTTP_UNAUTHORIZED, "That token is not known here.");
        return;
    }
    snprintf(cookie, sizeof cookie, TOKEN_COOKIE "=%.*s; Path=/; HttpOnly; SameSite=Strict%s", TOKEN_MOST,
             token, is_secure(v) ? "; Secure" : "");
    send_elsewhere(v, "/");
    if (v->response)
        MHD_add_response_header(v->response, MHD_HTTP_HEADER_SET_COOKIE, cookie);
}

/* ---- What is asked */

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* Is it that path, whatever stands behind a "?"? */
static bool is_path(const struct visit *v, const char *path)
{
    size_t len = strlen(path);

    return begins(v->address, path) && (v->address[len] == '\0' || v->address[len] == '?');
}

static void send_asset(struct visit *v, const char *name)
{
    const struct page_asset *asset = page_asset(name);

    if (!asset)
        refuse(v, MHD_HTTP_NOT_FOUND, "nothing here");
    else
        answer_with(v, MHD_HTTP_OK, response_of(asset->type, asset->text, strlen(asset->text)));
}

/* Has whoever asks that right? Else it is answered why not. */
static bool has_right(struct visit *v, unsigned right)
{
    const struct office *o = v->office;

    if (v->visitor.rights & right)
        return true;
    if (!v->visitor.known && !o->options.token_file)
        refuse(
            v, MHD_HTTP_FORBIDDEN,
            "other machines can reach this address, so it needs tokens; start weir serve with --token-file");
    else if (!v->visitor.known)
        refuse(v, MHD_HTTP_UNAUTHORIZED, "no token that is known here; send Authorization: Bearer TOKEN");
    else if (right == RIGHT_ACT && !o->options.allow_actions)
        refuse(v, MHD_HTTP_FORBIDDEN, "actions are off; start weir serve with --allow-actions");
    else if (right == RIGHT_ENQUEUE && !o->options.allow_enqueue)
        refuse(v, MHD_HTTP_FORBIDDEN, "enqueueing is off; start weir serve with --allow-enqueue");
    else
        refuse(v, MHD_HTTP_FORBIDDEN, "this token has no right to do that");
    return false;
}

static bool is_page(const struct visit *v)
{
    size_t len = strcspn(v->address, "?");
    char *path = malloc(len + 1);
    bool page = path && url_decode(v->address, len, false, path) && page_is(path);

    free(path);
    return page;
}

static void read_get(struct visit *v)
{
    bool page = is_page(v);

    if (page && !v->visitor.known && v->office->options.token_file) {
        show_login(v, MHD_HTTP_UNAUTHORIZED, "It shows itself to those with a token.");
    } else if (page || is_path(v, "/events")) {
        if (has_right(v, RIGHT_LOOK))
            v->plan = page ? PLAN_PAGE : PLAN_EVENTS;
    } else if (is_path(v, "/metrics")) {
        if (has_right(v, RIGHT_LOOK))
            v->plan = PLAN_METRICS;
    } else if ((v->resource = resource_find(document_resources, v->address, v->names))) {
        if (has_right(v, RIGHT_LOOK))
            v->plan = PLAN_DOCUMENT;
    } else if (resource_find(action_resources, v->address, v->names)) {
        refuse(v, MHD_HTTP_METHOD_NOT_ALLOWED, "that is done by POST");
    } else {
        refuse(v, MHD_HTTP_NOT_FOUND,
               "nothing here; ask for /take/NAME, /take/NAME/KEY, /healthz, /api/status or /");
    }
}

static bool is_lines(const struct visit *v)
{
    const char *type = header_of(v, MHD_HTTP_HEADER_CONTENT_TYPE);

    return type && (strcasestr(type, "ndjson") || strcasestr(type, "jsonl"));
}

static void read_post(struct visit *v)
{
    v->body_most = FORM_MOST;
    if (!access_origin_is_ours(v->connection)) {
        refuse(v, MHD_HTTP_FORBIDDEN, "this request comes from a page of another site");
    } else if (is_path(v, "/login")) {
        v->plan = PLAN_LOGIN;
    } else if (is_path(v, "/api/jobs")) {
        v->body_most = is_lines(v) ? LINES_MOST : ONE_JOB_MOST;
        if (has_right(v, RIGHT_ENQUEUE))
            v->plan = PLAN_JOBS;
    } else if ((v->resource = resource_find(action_resources, v->address, v->names))) {
        if (has_right(v, RIGHT_ACT))
            v->plan = PLAN_ACTION;
    } else if (is_page(v) || is_path(v, "/metrics") ||
               resource_find(document_resources, v->address, v->names)) {
        refuse(v, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD are answered here");
    } else {
        refuse(v, MHD_HTTP_NOT_FOUND, "nothing here");
    }
}

/* As its head says. */
static unsigned long long body_size(const struct visit *v)
{
    const char *length = header_of(v, MHD_HTTP_HEADER_CONTENT_LENGTH);

    return length ? strtoull(length, NULL, 10) : 0;
}

static bool brings_body(const struct visit *v)
{
    return body_size(v) > 0 || header_of(v, MHD_HTTP_HEADER_TRANSFER_ENCODING);
}

static void read_visit(struct visit *v)
{
    bool get = strcmp(v->method, MHD_HTTP_METHOD_GET) == 0 || strcmp(v->method, MHD_HTTP_METHOD_HEAD) == 0;

    access_visitor(v->office->access, v->connection, &v->visitor);
    if (!access_host_is_ours(v->office->access, v->connection))
        refuse(v, MHD_HTTP_FORBIDDEN, "Host is no name of this server; start weir serve with --host NAME");
    else if (get && begins(v->address, "/assets/"))
        send_asset(v, v->address + strlen("/assets/"));
    else if (get)
        read_get(v);
    else if (strcmp(v->method, MHD_HTTP_METHOD_POST) == 0)
        read_post(v);
    else
        refuse(v, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET, HEAD and POST are answered");
    if (v->plan != PLAN_ANSWERED && !get && body_size(v) > v->body_most)
        refuse(v, MHD_HTTP_CONTENT_TOO_LARGE, "the body is too large");
}

/* ---- Bodies */

static bool is_form(const struct visit *v)
{
    const char *type = header_of(v, MHD_HTTP_HEADER_CONTENT_TYPE);

    return type && begins(type, "application/x-www-form-urlencoded");
}

/* The fields of the body; of /api/jobs and what has none those of the query. */
static bool read_fields(struct visit *v)
{
    const char *query = strchr(v->address, '?');

    if (v->body.len == 0 || v->plan == PLAN_JOBS)
        v->fields = fields_of_form(query ? query + 1 : "", query ? strlen(query + 1) : 0);
    else if (is_form(v))
        v->fields = fields_of_form(v->body.at, v->body.len);
    else
        v->fields = fields_of_json(v->body.at, v->body.len);
    if (!v->fields)
        refuse(v, MHD_HTTP_BAD_REQUEST,
               "malformed: write name=value&..., each name once, or a JSON object of texts and numbers");
    return v->fields != NULL;
}

/* ---- Actions, told */

/* "127.0.0.1"; "unix" of a unix socket. */
static void format_client(const struct visit *v, char out[64])
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(v->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *address = info ? info->client_addr : NULL;
    const void *at = NULL;

    if (address && address->sa_family == AF_INET)
        at = &((const struct sockaddr_in *)address)->sin_addr;
    else if (address && address->sa_family == AF_INET6)
        at = &((const struct sockaddr_in6 *)address)->sin6_addr;
    if (!at || !inet_ntop(address->sa_family, at, out, 64))
        strcpy(out, "unix");
}

/* One line an action: who did what to what, and what became of it. */
static void audit(const struct visit *v, unsigned status, const char *problem)
{
    char *given = json_dumps(v->fields, JSON_COMPACT), client[64], code[24];
    size_t given_len = given ? strnlen(given, AUDITED) : 0;
    struct log_field fields[] = {
        {"event", v->plan == PLAN_JOBS ? "enqueue" : "action", v->plan == PLAN_JOBS ? 7 : 6, false},
        {"path", v->address, strcspn(v->address, "?"), false},
        {"fields", given ? given : "", given_len, false},
        {"by", v->visitor.name, strlen(v->visitor.name), false},
        {"from", client, 0, false},
        {"status", code, 0, true},
        {"problem", problem, strlen(problem), false},
    };

    format_client(v, client);
    fields[4].len = strlen(client);
    fields[5].len = (size_t)snprintf(code, sizeof code, "%u", status);
    log_fields(v->plan == PLAN_JOBS ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO, fields,
               sizeof fields / sizeof *fields - (*problem == '\0'), "serve: %s",
               status < 400 ? "done" : "not done");
    free(given);
}

/* Where a form leads back to: a path of ours; NULL: it was no form. */
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
    send_elsewhere(v, location);
    free(location);
}

/* ---- Answers of desks */

static void on_answer(struct waiter *waiter, const struct inquiry *inquiry, struct answer *answer)
{
    struct visit *v = (struct visit *)waiter;
    bool changes = v->plan == PLAN_ACTION || v->plan == PLAN_JOBS;
    const char *back = changes ? way_back(v) : NULL, *problem = inquiry ? inquiry->error.text : "";

    if (inquiry && changes) {
        audit(v, inquiry->status, problem);
        shared_drop(v->office->shared);
    }
    if (!inquiry) {
        refuse(v, MHD_HTTP_SERVICE_UNAVAILABLE, "weir serve ends; ask again");
    } else if (back) {
        send_back(v, back, problem);
    } else {
        answer_with(v, inquiry->status, NULL);
        v->answer = answer_hold(answer);
    }
    if (!v->suspended)
        return;
    v->suspended = false;
    v->office->waiting--;
    MHD_resume_connection(v->connection);
    v->office->events->on_resumed(v->office->arg);
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
        return page_inquiry(v->address, false, v->visitor.rights & RIGHT_ACT, o->options.hide_args, desk);
    t = inquiry_new(kinds[v->plan]);
    if (!t)
        return NULL;
    *desk = v->plan == PLAN_METRICS ? DESK_LOOK : v->resource ? v->resource->desk : DESK_CHANGE;
    t->resource = v->resource;
    memcpy(t->names, v->names, sizeof t->names);
    t->fields = json_deep_copy(v->fields); /* its thread counts its users */
    t->hide_args = o->options.hide_args;
    t->lines = is_lines(v);
    t->body = v->body;
    v->body = (struct text){0};
    return t;
}

static void ask(struct visit *v)
{
    bool shares = v->plan == PLAN_DOCUMENT || v->plan == PLAN_METRICS || v->plan == PLAN_PAGE;
    enum desk_kind desk;
    struct inquiry *inquiry;
    char *key = NULL;

    v->asked = true;
    if (v->plan != PLAN_PAGE && !read_fields(v))
        return;
    if (shares &&
        asprintf(&key, "%d %s", v->plan == PLAN_PAGE && v->visitor.rights & RIGHT_ACT, v->address) < 0)
        key = NULL;
    inquiry = make_inquiry(v, &desk);
    v->waiter.on_answer = on_answer;
    if (!inquiry)
        refuse(v, MHD_HTTP_BAD_REQUEST, "malformed address, or out of memory");
    else if (!shared_ask(v->office->shared, desk, key, inquiry, &v->waiter))
        refuse(v, MHD_HTTP_SERVICE_UNAVAILABLE, "too much to do; ask again");
    free(key);
}

/* "page=" of the query. */
static void open_events(struct visit *v)
{
    const char *page = NULL;

    if (read_fields(v))
        page = field_text(v->fields, "page");
    if (!v->fields)
        return;
    if (!page || *page != '/') {
        refuse(v, MHD_HTTP_BAD_REQUEST, "which page? give page=/");
        return;
    }
    answer_with(v, MHD_HTTP_OK,
                events_open(v->office->streams, v->connection, page, v->visitor.rights & RIGHT_ACT));
    if (!v->response)
        refuse(v, MHD_HTTP_SERVICE_UNAVAILABLE, "too many are looking; try again later");
}

/* ---- A visit */

struct visit *visit_new(struct office *office, struct MHD_Connection *connection, const char *method,
                        const char *address)
{
    struct visit *v = calloc(1, sizeof *v);

    if (!v)
        return NULL;
    *v = (struct visit){.office = office,
                        .connection = connection,
                        .method = method,
                        .address = strdup(request_path(address))};
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
    read_visit(v); /* an answer before a body that nobody reads ends the connection */
    return v->plan == PLAN_ANSWERED && brings_body(v) ? send_response(v) : MHD_YES;
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

/* The body is there: what is asked now, or was answered before. */
static void take_up(struct visit *v)
{
    if (v->body_len > v->body_most)
        refuse(v, MHD_HTTP_CONTENT_TOO_LARGE, "the body is too large");
    else if (v->too_many)
        refuse(v, MHD_HTTP_SERVICE_UNAVAILABLE, "too many bodies at a time; ask again");
    else if (v->plan == PLAN_EVENTS)
        open_events(v);
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
        return send_response(v);
    v->suspended = true;
    v->office->waiting++;
    MHD_suspend_connection(v->connection);
    return MHD_YES;
}

/* ---- Beginning and end */

static void on_stream_resumed(void *arg)
{
    const struct office *o = arg;

    o->events->on_resumed(o->arg);
}

static bool open_desks(struct office *o, struct ev_loop *loop)
{
    for (int i = 0; i < DESK_COUNT; i++)
        if (!(o->desks[i] = desk_new(loop, o->options.redis_url, o->options.ns)))
            return false;
    o->shared = shared_new(loop, o->desks);
    if (!o->shared)
        return false;
    o->streams = events_new(loop, &(struct events_options){.shared = o->shared,
                                                           .hide_args = o->options.hide_args,
                                                           .on_resumed = on_stream_resumed,
                                                           .arg = o});
    return o->streams != NULL;
}

int office_new(struct ev_loop *loop, const struct serve_options *options, bool beyond, bool any_host,
               const struct office_events *events, void *arg, struct office **office, struct error *e)
{
    struct office *o = *office = calloc(1, sizeof *o);
    const struct access_options access = {.token_file = options->token_file,
                                          .actions = options->allow_actions,
                                          .enqueue = options->allow_enqueue,
                                          .beyond = beyond,
                                          .any_host = any_host,
                                          .hosts = options->hosts,
                                          .host_count = options->host_count};

    if (!o)
        return error_set(e, WEIR_EINTERNAL, "serve: out of memory");
    *o = (struct office){.events = events, .arg = arg, .options = *options};
    if (access_new(&access, &o->access, e) < 0)
        return e->status;
    if (!open_desks(o, loop))
        return error_set(e, WEIR_EINTERNAL, "serve: cannot begin; free memory and threads");
    return 0;
}

void office_close(struct office *o)
{
    events_close(o->streams);
    for (int i = 0; i < DESK_COUNT; i++)
        desk_close(o->desks[i]);
}

size_t office_waiting(const struct office *o)
{
    return o->waiting;
}

bool office_free(struct office *o)
{
    bool idle = true;

    if (!o)
        return true;
    for (int i = 0; i < DESK_COUNT; i++)
        idle = desk_free(o->desks[i]) && idle;
    if (!idle)
        return false;
    events_free(o->streams);
    shared_free(o->shared);
    access_free(o->access);
    free(o);
    return true;
}

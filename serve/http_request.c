#include "serve/http_request.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/access.h"
#include "serve/fields.h"
#include "serve/response.h"
#include "serve/take_url.h"

#define FORM "application/x-www-form-urlencoded"
#define BODIES_MOST (64 * 1024 * 1024) /* bytes of all requests that come in at a time */

/* ---- Bodies */

static bool is_form(const struct http_request *r)
{
    const char *type = http_request_header(r, MHD_HTTP_HEADER_CONTENT_TYPE);

    return type && strncmp(type, FORM, strlen(FORM)) == 0;
}

/* Reads the fields of the body; of /api/jobs, and of what has none, those of the query. */
static bool read_fields(struct http_request *r)
{
    const char *query = strchr(r->address, '?');

    if (r->plan == WORK_ACTION && r->body.len > 0 && query && query[1]) {
        http_request_refuse(r, MHD_HTTP_BAD_REQUEST,
                            "fields in the address and in the body; write all in one of them");
        return false;
    }
    if (r->body.len == 0 || r->plan == WORK_JOBS)
        r->fields = fields_of_form(query ? query + 1 : "", query ? strlen(query + 1) : 0);
    else if (is_form(r))
        r->fields = fields_of_form(r->body.at, r->body.len);
    else
        r->fields = fields_of_json(r->body.at, r->body.len);
    if (!r->fields)
        http_request_refuse(
            r, MHD_HTTP_BAD_REQUEST,
            "malformed: write name=value&..., each name once and no %00, or a JSON object of texts "
            "and whole numbers");
    return r->fields != NULL;
}

/* ---- Logging in */

static bool is_secure(struct http_request *r)
{
    const char *scheme = http_request_header(r, "X-Forwarded-Proto");

    return scheme && strcasecmp(scheme, "https") == 0;
}

static void log_in(struct http_request *r)
{
    const char *token = field_text(r->fields, "token");
    char cookie[TOKEN_MOST + 100];
    struct visitor visitor = {.known = false};

    if (token)
        access_token(r->routes->access, token, &visitor);
    if (!visitor.known) {
        http_request_show_login(r, MHD_HTTP_UNAUTHORIZED, "That token is not known here.");
        return;
    }
    snprintf(cookie, sizeof cookie, TOKEN_COOKIE "=%.*s; Path=/; HttpOnly; SameSite=Strict%s", TOKEN_MOST,
             token, is_secure(r) ? "; Secure" : "");
    http_request_send_elsewhere(r, "/");
    if (r->response)
        MHD_add_response_header(r->response, MHD_HTTP_HEADER_SET_COOKIE, cookie);
}

/* ---- The way back of a form */

/* Returns where a form leads back to: a path of ours; NULL: it was no form. */
static const char *way_back(const struct http_request *r)
{
    const char *back = field_text(r->fields, "back");

    if (!back || !is_form(r))
        return NULL;
    for (const char *at = back; *at; at++)
        if (*at <= ' ' || *at >= 0x7f || *at == '\\')
            return "/";
    return back[0] == '/' && back[1] != '/' ? back : "/";
}

/* "/types/mail?problem=..." */
static void send_back(struct http_request *r, const char *back, const char *problem)
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
    http_request_send_elsewhere(r, location);
    free(location);
}

/* ---- Answers of Redis threads */

static void on_answer(struct waiter *waiter, const struct work_item *item, struct answer *answer)
{
    struct http_request *r = (struct http_request *)waiter;
    bool changes = r->plan == WORK_ACTION || r->plan == WORK_JOBS ||
                   (r->plan == WORK_CALL && r->verb->right & (RIGHT_ACT | RIGHT_ENQUEUE));
    const char *back = changes && r->fields ? way_back(r) : NULL, *problem = item ? item->error.text : "";

    if (item && changes) {
        http_request_audit(r, item->status, problem);
        shared_drop(r->routes->shared);
    }
    if (!item) {
        http_request_refuse(r, MHD_HTTP_SERVICE_UNAVAILABLE, "weir serve ends; ask again");
    } else if (back) {
        send_back(r, back, problem);
    } else {
        http_request_answer(r, item->status, NULL);
        r->answer = answer_hold(answer);
        if (item->retry_after_s > 0)
            response_retry_after(answer_response(answer), item->retry_after_s);
    }
    if (!r->suspended)
        return;
    r->suspended = false;
    r->routes->waiting--;
    MHD_resume_connection(r->connection);
    r->routes->events->on_resumed(r->routes->arg);
}

/* Of a whole job or of Redis it takes a while. */
static bool is_slow(const char *path)
{
    return strncmp(path, "/jobs", strlen("/jobs")) == 0 || strncmp(path, "/dead", strlen("/dead")) == 0 ||
           strcmp(path, "/ask") == 0 || strcmp(path, "/redis") == 0;
}

static struct work_item *page_item(const struct http_request *r, enum redis_thread_kind *thread)
{
    struct work_item *item = work_item_new(WORK_PAGE);
    size_t len = strcspn(r->address, "?");

    if (!item)
        return NULL;
    item->actions = r->visitor.rights & RIGHT_ACT;
    item->hide_args = r->routes->options.hide_args;
    item->path = malloc(len + 1);
    item->query = strdup(r->address[len] ? r->address + len + 1 : "");
    if (!item->path || !item->query || !url_decode(r->address, len, false, item->path)) {
        work_item_free(item);
        return NULL;
    }
    *thread = is_slow(item->path) ? THREAD_SEARCH : THREAD_LOOK;
    return item;
}

static struct work_item *make_item(struct http_request *r, enum redis_thread_kind *thread)
{
    const struct http_routes *o = r->routes;
    struct work_item *item;

    if (r->plan == WORK_PAGE)
        return page_item(r, thread);
    item = work_item_new(r->plan);
    if (!item)
        return NULL;
    *thread = r->plan == WORK_METRICS ? THREAD_LOOK
              : r->resource           ? r->resource->thread
              : r->verb               ? r->verb->thread
                                      : THREAD_CHANGE;
    item->verb = r->verb ? r->verb->name : NULL;
    item->resource = r->resource;
    strcpy(item->name, r->name);
    item->fields = json_deep_copy(r->fields); /* its thread counts its users */
    item->hide_args = o->options.hide_args;
    snprintf(item->visitor, sizeof item->visitor, "%s", r->visitor.name);
    item->hold.peer = MHD_get_connection_info(r->connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    item->lines = http_request_is_lines(r);
    item->body = r->body;
    r->body = (struct text){0};
    return item;
}

/* Makes the key that all share who ask for the same; NULL: they share nothing. */
static char *shared_key(const struct http_request *r)
{
    bool acts = r->visitor.rights & RIGHT_ACT;
    char *key;

    if (r->plan != WORK_DOCUMENT && r->plan != WORK_METRICS && r->plan != WORK_PAGE)
        return NULL;
    return asprintf(&key, "%d %s", r->plan == WORK_PAGE && acts, r->address) < 0 ? NULL : key;
}

static void ask(struct http_request *r)
{
    enum redis_thread_kind thread;
    struct work_item *item;
    char *key;

    r->asked = true;
    if (r->plan != WORK_PAGE && r->plan != WORK_CALL && !read_fields(r))
        return;
    if (r->plan == WORK_CALL && r->verb->right == RIGHT_ACT) /* for the log */
        r->fields = json_loadb(r->body.at ? r->body.at : "", r->body.len, 0, NULL);
    key = shared_key(r);
    item = make_item(r, &thread);
    r->waiter.on_answer = on_answer;
    if (!item)
        http_request_refuse(r, MHD_HTTP_BAD_REQUEST, "malformed address, or out of memory");
    else if (!shared_ask(r->routes->shared, thread, key, item, &r->waiter))
        http_request_refuse(r, MHD_HTTP_SERVICE_UNAVAILABLE, "too much to do; ask again");
    free(key);
}

/* ---- A request */

struct http_request *http_request_new(struct http_routes *routes, struct MHD_Connection *connection,
                                      const char *method, const char *address)
{
    struct http_request *r = calloc(1, sizeof *r);

    if (!r)
        return NULL;
    *r = (struct http_request){
        .routes = routes, .connection = connection, .method = method, .address = strdup(url_path(address))};
    if (r->address)
        return r;
    free(r);
    return NULL;
}

void http_request_free(struct http_request *r)
{
    if (!r)
        return;
    if (r->response)
        MHD_destroy_response(r->response);
    answer_release(r->answer);
    r->routes->body_bytes -= r->body_len;
    json_decref(r->fields);
    text_free(&r->body);
    free(r->address);
    free(r);
}

enum MHD_Result http_request_begin(struct http_request *r)
{
    http_request_plan(r); /* an answer before a body that nobody reads ends the connection */
    return r->plan == WORK_NONE && http_request_brings_body(r) ? http_request_send(r) : MHD_YES;
}

enum MHD_Result http_request_body(struct http_request *r, const char *bytes, size_t len)
{
    struct error e;

    r->body_len += len;
    r->routes->body_bytes += len;
    if (r->body_len > 2 * r->body_most + FORM_MOST)
        return MHD_NO;
    r->too_many |= r->routes->body_bytes > BODIES_MOST;
    if (r->body_len > r->body_most || r->too_many)
        return MHD_YES; /* read, not kept: it is answered at its end */
    return text_add(&r->body, bytes, len, &e) == 0 ? MHD_YES : MHD_NO;
}

/* What a body begins with that is no text; NULL: it may be one. */
static const char *wrong_body(const struct http_request *r)
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
        if (r->body.len >= strlen(marks[i].begins) &&
            memcmp(r->body.at, marks[i].begins, strlen(marks[i].begins)) == 0)
            return marks[i].why;
    return NULL;
}

/* The body is there: what is asked now, or was answered before. */
static void take_up(struct http_request *r)
{
    const char *wrong = wrong_body(r);

    if (r->body_len > r->body_most)
        http_request_refuse(r, MHD_HTTP_CONTENT_TOO_LARGE, "the body is too large");
    else if (r->too_many)
        http_request_refuse(r, MHD_HTTP_SERVICE_UNAVAILABLE, "too many bodies at a time; ask again");
    else if (wrong)
        http_request_refuse(r, MHD_HTTP_BAD_REQUEST, wrong);
    else if (r->plan != WORK_LOGIN)
        ask(r);
    else if (read_fields(r))
        log_in(r);
}

enum MHD_Result http_request_go_on(struct http_request *r)
{
    if (r->plan != WORK_NONE && !r->asked)
        take_up(r);
    r->asked = true;
    if (r->plan == WORK_NONE)
        return http_request_send(r);
    r->suspended = true;
    r->routes->waiting++;
    MHD_suspend_connection(r->connection);
    return MHD_YES;
}

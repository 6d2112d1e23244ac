#include <stdlib.h>
#include <string.h>

#include "queue/call/call.h"
#include "serve/access.h"
#include "serve/fields.h"
#include "serve/http_request.h"
#include "serve/page/page.h"
#include "serve/response.h"

#define ONE_JOB_MOST (JOB_BODY_MAX + 4096)
#define LINES_MOST (16 * 1024 * 1024)

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* True for that path, whatever stands behind a "?". */
static bool is_path(const struct http_request *r, const char *path)
{
    size_t len = strlen(path);

    return begins(r->address, path) && (r->address[len] == '\0' || r->address[len] == '?');
}

static void send_asset(struct http_request *r, const char *name)
{
    const struct page_asset *asset = page_asset(name);

    if (!asset)
        http_request_refuse(r, MHD_HTTP_NOT_FOUND, "nothing here");
    else
        http_request_answer(r, MHD_HTTP_OK, response_of(asset->type, asset->text, strlen(asset->text)));
}

/* True when whoever asks has that right. Else it answers why not. */
static bool has_right(struct http_request *r, unsigned right)
{
    const struct http_routes *o = r->routes;

    if (r->visitor.rights & right)
        return true;
    if (!r->visitor.known && !o->options.token_file)
        http_request_refuse(
            r, MHD_HTTP_FORBIDDEN,
            "other machines can reach this address, so it needs tokens; start weir serve with --token-file");
    else if (!r->visitor.known)
        http_request_refuse(r, MHD_HTTP_UNAUTHORIZED,
                            "no token that is known here; send Authorization: Bearer TOKEN");
    else if (right == RIGHT_ACT && !o->options.allow_actions)
        http_request_refuse(r, MHD_HTTP_FORBIDDEN, "actions are off; start weir serve with --allow-actions");
    else if (right == RIGHT_ENQUEUE && !o->options.allow_enqueue)
        http_request_refuse(r, MHD_HTTP_FORBIDDEN,
                            "enqueueing is off; start weir serve with --allow-enqueue");
    else
        http_request_refuse(r, MHD_HTTP_FORBIDDEN, "this token has no right to do that");
    return false;
}

static bool is_page(const struct http_request *r)
{
    size_t len = strcspn(r->address, "?");
    char *path = malloc(len + 1);
    bool page = path && url_decode(r->address, len, false, path) && page_is(path);

    free(path);
    return page;
}

static void read_get(struct http_request *r)
{
    bool page = is_page(r);

    if (page && !r->visitor.known && r->routes->options.token_file) {
        http_request_show_login(r, MHD_HTTP_UNAUTHORIZED, "It shows itself to those with a token.");
    } else if (page) {
        if (has_right(r, RIGHT_LOOK))
            r->plan = WORK_PAGE;
    } else if (is_path(r, "/metrics")) {
        if (has_right(r, RIGHT_LOOK))
            r->plan = WORK_METRICS;
    } else if ((r->resource = resource_find(document_resources, r->address, r->name))) {
        if (has_right(r, RIGHT_LOOK))
            r->plan = WORK_DOCUMENT;
    } else if (resource_find(action_resources, r->address, r->name)) {
        http_request_refuse(r, MHD_HTTP_METHOD_NOT_ALLOWED, "that is done by POST");
    } else {
        http_request_refuse(r, MHD_HTTP_NOT_FOUND,
                            "nothing here; ask for /take/NAME, /take/NAME/KEY, /healthz, /api/status or /");
    }
}

bool http_request_is_lines(const struct http_request *r)
{
    const char *type = http_request_header(r, MHD_HTTP_HEADER_CONTENT_TYPE);

    return type && (strcasestr(type, "ndjson") || strcasestr(type, "jsonl"));
}

/* True when the body is said to be other than it stands there. */
static bool is_encoded(const struct http_request *r)
{
    const char *encoding = http_request_header(r, MHD_HTTP_HEADER_CONTENT_ENCODING);

    return encoding && *encoding && strcasecmp(encoding, "identity") != 0;
}

#define CALL_MOST (JOB_BODY_MAX + 4096)

static const struct api_verb api_verbs[] = {
    {"about", 0, THREAD_LOOK, CALL_MOST},
    {"batch", RIGHT_ENQUEUE, THREAD_CHANGE, CALL_MOST},
    {"bulk", RIGHT_ENQUEUE, THREAD_CHANGE, CALL_TEXT_MOST + 4096},
    {"cancel", RIGHT_ACT, THREAD_SEARCH, CALL_MOST},
    {"end", 0, THREAD_LOOK, CALL_MOST},
    {"enqueue", RIGHT_ENQUEUE, THREAD_CHANGE, CALL_MOST},
    {"hold", 0, THREAD_LOOK, CALL_MOST},
    {"job", RIGHT_LOOK, THREAD_SEARCH, CALL_MOST},
    {"rate", 0, THREAD_LOOK, CALL_MOST},
    {"renew", 0, THREAD_LOOK, CALL_MOST},
    {"take", 0, THREAD_LOOK, CALL_MOST},
};

static void read_call(struct http_request *r)
{
    const char *type = http_request_header(r, MHD_HTTP_HEADER_CONTENT_TYPE);

    for (size_t i = 0; i < sizeof api_verbs / sizeof *api_verbs && !r->verb; i++)
        if (strcmp(r->address + strlen(API_V1), api_verbs[i].name) == 0)
            r->verb = &api_verbs[i];
    if (!r->verb) {
        http_request_refuse(r, MHD_HTTP_NOT_FOUND, "no such verb; POST /api/v1/about says which there are");
        return;
    }
    r->body_most = r->verb->body_most;
    if (r->routes->options.hide_args && r->verb->thread == THREAD_SEARCH) {
        http_request_refuse(r, MHD_HTTP_FORBIDDEN,
                            "payloads are hidden here, and this may show keys; ask /api/jobs/ID");
        return;
    }
    if (!type || !strcasestr(type, "json"))
        http_request_refuse(r, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE,
                            "send it as application/json, lines as application/x-ndjson");
    else if (r->verb->right == 0 || has_right(r, r->verb->right))
        r->plan = WORK_CALL;
}

static void read_post(struct http_request *r)
{
    const char *wrong = access_wrong_origin(r->connection);

    r->body_most = FORM_MOST;
    if (wrong) {
        http_request_refuse(r, MHD_HTTP_FORBIDDEN, wrong);
    } else if (is_encoded(r)) {
        http_request_refuse(r, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE,
                            "Content-Encoding: only identity is read here; send the body uncompressed");
    } else if (is_path(r, "/login") && strchr(r->address, '?')) {
        http_request_refuse(
            r, MHD_HTTP_BAD_REQUEST,
            "a token in the address stands in logs and histories: send it in the body, and make a new one");
    } else if (is_path(r, "/login")) {
        r->plan = WORK_LOGIN;
    } else if (is_path(r, "/api/jobs")) {
        r->body_most = http_request_is_lines(r) ? LINES_MOST : ONE_JOB_MOST;
        if (has_right(r, RIGHT_ENQUEUE))
            r->plan = WORK_JOBS;
    } else if (http_request_is_call(r)) {
        read_call(r);
    } else if ((r->resource = resource_find(hold_resources, r->address, r->name))) {
        r->plan = WORK_HOLD;
    } else if ((r->resource = resource_find(action_resources, r->address, r->name))) {
        if (has_right(r, RIGHT_ACT))
            r->plan = WORK_ACTION;
    } else if (is_page(r) || is_path(r, "/metrics") ||
               resource_find(document_resources, r->address, r->name)) {
        http_request_refuse(r, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD are answered here");
    } else {
        http_request_refuse(r, MHD_HTTP_NOT_FOUND, "nothing here");
    }
}

/* As its head says. */
static unsigned long long body_size(const struct http_request *r)
{
    const char *length = http_request_header(r, MHD_HTTP_HEADER_CONTENT_LENGTH);

    return length ? strtoull(length, NULL, 10) : 0;
}

bool http_request_brings_body(const struct http_request *r)
{
    return body_size(r) > 0 || http_request_header(r, MHD_HTTP_HEADER_TRANSFER_ENCODING);
}

void http_request_plan(struct http_request *r)
{
    bool get = strcmp(r->method, MHD_HTTP_METHOD_GET) == 0 || strcmp(r->method, MHD_HTTP_METHOD_HEAD) == 0;
    const char *wrong = access_wrong_host(r->routes->access, r->connection);

    access_visitor(r->routes->access, r->connection, &r->visitor);
    if (wrong)
        http_request_refuse(r, MHD_HTTP_FORBIDDEN, wrong);
    else if (http_request_header(r, MHD_HTTP_HEADER_TRANSFER_ENCODING) && body_size(r) > 0)
        http_request_refuse(r, MHD_HTTP_BAD_REQUEST,
                            "two lengths of one body: a proxy may read it otherwise");
    else if (get && begins(r->address, "/assets/"))
        send_asset(r, r->address + strlen("/assets/"));
    else if (get)
        read_get(r);
    else if (strcmp(r->method, MHD_HTTP_METHOD_POST) == 0)
        read_post(r);
    else
        http_request_refuse(r, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET, HEAD and POST are answered");
    if (r->plan != WORK_NONE && !get && body_size(r) > r->body_most)
        http_request_refuse(r, MHD_HTTP_CONTENT_TOO_LARGE, "the body is too large");
}

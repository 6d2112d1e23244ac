#include <stdlib.h>
#include <string.h>

#include "serve/access.h"
#include "serve/actions.h"
#include "serve/documents.h"
#include "serve/fields.h"
#include "serve/page/page.h"
#include "serve/response.h"
#include "serve/take_url.h"
#include "serve/visit.h"

#define ONE_JOB_MOST (JOB_BODY_MAX + 4096)
#define LINES_MOST (16 * 1024 * 1024)

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* True for that path, whatever stands behind a "?". */
static bool is_path(const struct visit *v, const char *path)
{
    size_t len = strlen(path);

    return begins(v->address, path) && (v->address[len] == '\0' || v->address[len] == '?');
}

static void send_asset(struct visit *v, const char *name)
{
    const struct page_asset *asset = page_asset(name);

    if (!asset)
        visit_refuse(v, MHD_HTTP_NOT_FOUND, "nothing here");
    else
        visit_answer(v, MHD_HTTP_OK, response_of(asset->type, asset->text, strlen(asset->text)));
}

/* True when whoever asks has that right. Else it answers why not. */
static bool has_right(struct visit *v, unsigned right)
{
    const struct office *o = v->office;

    if (v->visitor.rights & right)
        return true;
    if (!v->visitor.known && !o->options.token_file)
        visit_refuse(
            v, MHD_HTTP_FORBIDDEN,
            "other machines can reach this address, so it needs tokens; start weir serve with --token-file");
    else if (!v->visitor.known)
        visit_refuse(v, MHD_HTTP_UNAUTHORIZED,
                     "no token that is known here; send Authorization: Bearer TOKEN");
    else if (right == RIGHT_ACT && !o->options.allow_actions)
        visit_refuse(v, MHD_HTTP_FORBIDDEN, "actions are off; start weir serve with --allow-actions");
    else if (right == RIGHT_ENQUEUE && !o->options.allow_enqueue)
        visit_refuse(v, MHD_HTTP_FORBIDDEN, "enqueueing is off; start weir serve with --allow-enqueue");
    else
        visit_refuse(v, MHD_HTTP_FORBIDDEN, "this token has no right to do that");
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
        visit_show_login(v, MHD_HTTP_UNAUTHORIZED, "It shows itself to those with a token.");
    } else if (page) {
        if (has_right(v, RIGHT_LOOK))
            v->plan = PLAN_PAGE;
    } else if (is_path(v, "/metrics")) {
        if (has_right(v, RIGHT_LOOK))
            v->plan = PLAN_METRICS;
    } else if ((v->resource = resource_find(document_resources, v->address, v->names))) {
        if (has_right(v, RIGHT_LOOK))
            v->plan = PLAN_DOCUMENT;
    } else if (resource_find(action_resources, v->address, v->names)) {
        visit_refuse(v, MHD_HTTP_METHOD_NOT_ALLOWED, "that is done by POST");
    } else {
        visit_refuse(v, MHD_HTTP_NOT_FOUND,
                     "nothing here; ask for /take/NAME, /take/NAME/KEY, /healthz, /api/status or /");
    }
}

bool visit_is_lines(const struct visit *v)
{
    const char *type = visit_header(v, MHD_HTTP_HEADER_CONTENT_TYPE);

    return type && (strcasestr(type, "ndjson") || strcasestr(type, "jsonl"));
}

/* True when the body is said to be other than it stands there. */
static bool is_encoded(const struct visit *v)
{
    const char *encoding = visit_header(v, MHD_HTTP_HEADER_CONTENT_ENCODING);

    return encoding && *encoding && strcasecmp(encoding, "identity") != 0;
}

static void read_post(struct visit *v)
{
    const char *wrong = access_wrong_origin(v->connection);

    v->body_most = FORM_MOST;
    if (wrong) {
        visit_refuse(v, MHD_HTTP_FORBIDDEN, wrong);
    } else if (is_encoded(v)) {
        visit_refuse(v, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE,
                     "Content-Encoding: only identity is read here; send the body uncompressed");
    } else if (is_path(v, "/login") && strchr(v->address, '?')) {
        visit_refuse(
            v, MHD_HTTP_BAD_REQUEST,
            "a token in the address stands in logs and histories: send it in the body, and make a new one");
    } else if (is_path(v, "/login")) {
        v->plan = PLAN_LOGIN;
    } else if (is_path(v, "/api/jobs")) {
        v->body_most = visit_is_lines(v) ? LINES_MOST : ONE_JOB_MOST;
        if (has_right(v, RIGHT_ENQUEUE))
            v->plan = PLAN_JOBS;
    } else if ((v->resource = resource_find(action_resources, v->address, v->names))) {
        if (has_right(v, RIGHT_ACT))
            v->plan = PLAN_ACTION;
    } else if (is_page(v) || is_path(v, "/metrics") ||
               resource_find(document_resources, v->address, v->names)) {
        visit_refuse(v, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD are answered here");
    } else {
        visit_refuse(v, MHD_HTTP_NOT_FOUND, "nothing here");
    }
}

/* As its head says. */
static unsigned long long body_size(const struct visit *v)
{
    const char *length = visit_header(v, MHD_HTTP_HEADER_CONTENT_LENGTH);

    return length ? strtoull(length, NULL, 10) : 0;
}

bool visit_brings_body(const struct visit *v)
{
    return body_size(v) > 0 || visit_header(v, MHD_HTTP_HEADER_TRANSFER_ENCODING);
}

void visit_plan(struct visit *v)
{
    bool get = strcmp(v->method, MHD_HTTP_METHOD_GET) == 0 || strcmp(v->method, MHD_HTTP_METHOD_HEAD) == 0;
    const char *wrong = access_wrong_host(v->office->access, v->connection);

    access_visitor(v->office->access, v->connection, &v->visitor);
    if (wrong)
        visit_refuse(v, MHD_HTTP_FORBIDDEN, wrong);
    else if (visit_header(v, MHD_HTTP_HEADER_TRANSFER_ENCODING) && body_size(v) > 0)
        visit_refuse(v, MHD_HTTP_BAD_REQUEST, "two lengths of one body: a proxy may read it otherwise");
    else if (get && begins(v->address, "/assets/"))
        send_asset(v, v->address + strlen("/assets/"));
    else if (get)
        read_get(v);
    else if (strcmp(v->method, MHD_HTTP_METHOD_POST) == 0)
        read_post(v);
    else
        visit_refuse(v, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET, HEAD and POST are answered");
    if (v->plan != PLAN_ANSWERED && !get && body_size(v) > v->body_most)
        visit_refuse(v, MHD_HTTP_CONTENT_TOO_LARGE, "the body is too large");
}

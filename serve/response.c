#include "serve/response.h"

#include "core/decimal.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define BODY_SIZE 640

static enum MHD_Result add_header(struct MHD_Response *r, const char *name, int64_t value)
{
    char digits[24];

    snprintf(digits, sizeof digits, "%" PRId64, value);
    return MHD_add_response_header(r, name, digits);
}

/* A client that comes back when it was told to must not be early. */
static int64_t whole_seconds(double seconds)
{
    return (int64_t)ceil(seconds);
}

static struct MHD_Response *make(const char *type, const char *body)
{
    struct MHD_Response *r =
        MHD_create_response_from_buffer(strlen(body), (void *)(uintptr_t)body, MHD_RESPMEM_MUST_COPY);

    if (r && MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type) == MHD_YES &&
        MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store") == MHD_YES)
        return r;
    if (r)
        MHD_destroy_response(r);
    return NULL;
}

static enum MHD_Result queue(struct MHD_Connection *connection, unsigned status, struct MHD_Response *r)
{
    enum MHD_Result result = MHD_queue_response(connection, status, r);

    MHD_destroy_response(r);
    return result;
}

enum MHD_Result respond_refusal(struct MHD_Connection *connection, unsigned status, const char *why)
{
    char body[BODY_SIZE];
    struct MHD_Response *r;

    snprintf(body, sizeof body, "{\"error\":\"%s\"}\n", why);
    r = make("application/json", body);
    if (!r)
        return MHD_NO;
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    if (status == MHD_HTTP_SERVICE_UNAVAILABLE)
        add_header(r, MHD_HTTP_HEADER_RETRY_AFTER, 1);
    return queue(connection, status, r);
}

void response_retry_after(struct MHD_Response *r, double seconds)
{
    add_header(r, MHD_HTTP_HEADER_RETRY_AFTER, whole_seconds(seconds));
}

/* ---- Takes */

static void add_limits(struct MHD_Response *r, const struct weir_take *t)
{
    if (!t->assumed) {
        add_header(r, "RateLimit-Limit", t->limit);
        add_header(r, "RateLimit-Remaining", t->remaining);
        add_header(r, "RateLimit-Reset", whole_seconds(t->reset_after_s));
    }
    if (!t->allowed && !t->never) /* what is denied is denied for a moment at least */
        add_header(r, MHD_HTTP_HEADER_RETRY_AFTER,
                   whole_seconds(t->retry_after_s > 0 ? t->retry_after_s : 1));
}

static enum MHD_Result respond_answer(struct MHD_Connection *connection, const struct weir_take *t,
                                      unsigned denied)
{
    unsigned status = t->allowed ? MHD_HTTP_OK : t->never ? MHD_HTTP_BAD_REQUEST : denied;
    char body[BODY_SIZE], retry[32] = "null";
    struct MHD_Response *r;

    if (t->retry_after_s >= 0)
        decimal_print(retry, sizeof retry, "%.6f", t->retry_after_s);
    decimal_print(body, sizeof body,
                  "{\"allowed\":%s,\"limit\":%" PRId64 ",\"remaining\":%" PRId64 ",\"retry_after\":%s,"
                  "\"reset_after\":%.6f%s%s}\n",
                  t->allowed ? "true" : "false", t->limit, t->remaining, retry, t->reset_after_s,
                  t->never ? ",\"never\":true" : "", t->assumed ? ",\"assumed\":true" : "");
    r = make("application/json", body);
    if (!r)
        return MHD_NO;
    add_limits(r, t);
    return queue(connection, status, r);
}

static unsigned status_of(int status)
{
    if (status == WEIR_ENOTFOUND)
        return MHD_HTTP_NOT_FOUND;
    if (status == WEIR_EUNREACHABLE)
        return MHD_HTTP_SERVICE_UNAVAILABLE;
    return status == WEIR_EINPUT ? MHD_HTTP_BAD_REQUEST : MHD_HTTP_INTERNAL_SERVER_ERROR;
}

enum MHD_Result respond_take(struct MHD_Connection *connection, const struct asked *a,
                             enum serve_policy on_error, unsigned denied)
{
    struct weir_take assumed;

    if (a->status == 0)
        return respond_answer(connection, &a->take, denied);
    if (a->status == WEIR_EUNREACHABLE && on_error == SERVE_ERROR)
        return respond_refusal(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "Redis is away; try again");
    if (a->status != WEIR_EUNREACHABLE)
        return respond_refusal(connection, status_of(a->status), a->why);
    take_assume(on_error == SERVE_ALLOW, &assumed);
    return respond_answer(connection, &assumed, denied);
}

/* ---- Health */

enum MHD_Result respond_health(struct MHD_Connection *connection, const struct asked *a)
{
    bool healthy = a->status != WEIR_EUNREACHABLE;
    char body[BODY_SIZE];
    struct MHD_Response *r;

    snprintf(body, sizeof body, "%s\n", healthy ? "ok" : a->why);
    r = make("text/plain", body);
    if (!r)
        return MHD_NO;
    return queue(connection, healthy ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE, r);
}

/* ---- Whatever a browser may show */

void response_secure(struct MHD_Response *r)
{
    static const struct {
        const char *name, *value;
    } headers[] = {
        {"Content-Security-Policy",
         "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
         "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"},
        {"X-Content-Type-Options", "nosniff"},
        {"Referrer-Policy", "same-origin"},
        {"Cache-Control", "no-store"},
    };

    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        MHD_add_response_header(r, headers[i].name, headers[i].value);
}

struct MHD_Response *response_of(const char *type, const char *text, size_t len)
{
    struct MHD_Response *r =
        MHD_create_response_from_buffer(len, (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);

    if (!r)
        return NULL;
    MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    response_secure(r);
    return r;
}

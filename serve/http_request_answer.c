#include "serve/http_request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/page/page.h"
#include "serve/response.h"
#include "view/text.h"

const char *http_request_header(const struct http_request *r, const char *name)
{
    return MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, name);
}

enum MHD_Result http_request_send(struct http_request *r)
{
    struct MHD_Response *response = r->answer ? answer_response(r->answer) : r->response;
    enum MHD_Result result = response ? MHD_queue_response(r->connection, r->status, response) : MHD_NO;

    if (r->response)
        MHD_destroy_response(r->response);
    r->response = NULL;
    return result;
}

void http_request_answer(struct http_request *r, unsigned status, struct MHD_Response *response)
{
    r->plan = WORK_NONE;
    r->status = status;
    r->response = response;
}

/* True when a person looks at the answer. What /api says to GET is JSON for everybody. */
static bool is_looked_at(const struct http_request *r)
{
    const char *accept = http_request_header(r, MHD_HTTP_HEADER_ACCEPT);
    bool api = strncmp(r->address, "/api/", strlen("/api/")) == 0;

    return !http_request_is_call(r) && accept && strcasestr(accept, "text/html") &&
           (!api || strcmp(r->method, MHD_HTTP_METHOD_POST) == 0);
}

static struct MHD_Response *refusal_page(unsigned status, const char *why)
{
    struct error e = {0};
    struct text page = {0};
    struct MHD_Response *response = page_refuse(status, why, &page, &e) == 0
                                        ? response_of("text/html; charset=utf-8", page.at, page.len)
                                        : NULL;

    text_free(&page);
    return response;
}

bool http_request_is_call(const struct http_request *r)
{
    return strncmp(r->address, API_V1, strlen(API_V1)) == 0;
}

/* The kind of a refusal that goes with a status. */
static const char *kind_of(unsigned status)
{
    bool rights = status == MHD_HTTP_UNAUTHORIZED || status == MHD_HTTP_FORBIDDEN;

    return rights ? "rights" : status >= MHD_HTTP_INTERNAL_SERVER_ERROR ? "unavailable" : "invalid";
}

static struct MHD_Response *refusal_document(const struct http_request *r, unsigned status, const char *why)
{
    json_t *doc = http_request_is_call(r)
                      ? json_pack("{s:s, s:o}", "refused", kind_of(status), "why", text_word(why))
                      : json_pack("{s:o}", "error", text_word(why));
    char *text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;
    struct MHD_Response *response = text ? response_of("application/json", text, strlen(text)) : NULL;

    free(text);
    json_decref(doc);
    return response;
}

void http_request_refuse(struct http_request *r, unsigned status, const char *why)
{
    http_request_answer(r, status,
                        is_looked_at(r) ? refusal_page(status, why) : refusal_document(r, status, why));
    if (r->response && status == MHD_HTTP_UNAUTHORIZED)
        MHD_add_response_header(r->response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
    if (r->response && status == MHD_HTTP_SERVICE_UNAVAILABLE)
        MHD_add_response_header(r->response, MHD_HTTP_HEADER_RETRY_AFTER, "1");
    if (r->response && status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(r->response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD, POST");
}

void http_request_send_elsewhere(struct http_request *r, const char *location)
{
    http_request_answer(r, MHD_HTTP_SEE_OTHER, response_of("text/plain", "", 0));
    if (r->response)
        MHD_add_response_header(r->response, MHD_HTTP_HEADER_LOCATION, location);
}

void http_request_show_login(struct http_request *r, unsigned status, const char *note)
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

    http_request_answer(r, status, response_of("text/html; charset=utf-8", text, (size_t)len));
}

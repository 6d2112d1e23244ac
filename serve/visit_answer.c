#include "serve/visit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/page/page.h"
#include "serve/response.h"
#include "view/text.h"

const char *visit_header(const struct visit *v, const char *name)
{
    return MHD_lookup_connection_value(v->connection, MHD_HEADER_KIND, name);
}

enum MHD_Result visit_send(struct visit *v)
{
    struct MHD_Response *response = v->answer ? answer_response(v->answer) : v->response;
    enum MHD_Result result = response ? MHD_queue_response(v->connection, v->status, response) : MHD_NO;

    if (v->response)
        MHD_destroy_response(v->response);
    v->response = NULL;
    return result;
}

void visit_answer(struct visit *v, unsigned status, struct MHD_Response *response)
{
    v->plan = PLAN_ANSWERED;
    v->status = status;
    v->response = response;
}

/* True when a person looks at the answer. What /api says to GET is JSON for everybody. */
static bool is_looked_at(const struct visit *v)
{
    const char *accept = visit_header(v, MHD_HTTP_HEADER_ACCEPT);
    bool api = strncmp(v->address, "/api/", strlen("/api/")) == 0;

    return accept && strcasestr(accept, "text/html") &&
           (!api || strcmp(v->method, MHD_HTTP_METHOD_POST) == 0);
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

static struct MHD_Response *refusal_document(const char *why)
{
    json_t *doc = json_pack("{s:o}", "error", text_word(why));
    char *text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;
    struct MHD_Response *response = text ? response_of("application/json", text, strlen(text)) : NULL;

    free(text);
    json_decref(doc);
    return response;
}

void visit_refuse(struct visit *v, unsigned status, const char *why)
{
    visit_answer(v, status, is_looked_at(v) ? refusal_page(status, why) : refusal_document(why));
    if (v->response && status == MHD_HTTP_UNAUTHORIZED)
        MHD_add_response_header(v->response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
    if (v->response && status == MHD_HTTP_SERVICE_UNAVAILABLE)
        MHD_add_response_header(v->response, MHD_HTTP_HEADER_RETRY_AFTER, "1");
    if (v->response && status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(v->response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD, POST");
}

void visit_send_elsewhere(struct visit *v, const char *location)
{
    visit_answer(v, MHD_HTTP_SEE_OTHER, response_of("text/plain", "", 0));
    if (v->response)
        MHD_add_response_header(v->response, MHD_HTTP_HEADER_LOCATION, location);
}

void visit_show_login(struct visit *v, unsigned status, const char *note)
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

    visit_answer(v, status, response_of("text/html; charset=utf-8", text, (size_t)len));
}

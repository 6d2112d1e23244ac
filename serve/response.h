/* What a request is answered. Each queues one response; MHD_NO closes the connection. denied: the status of a
 * denial. */
#pragma once

#include <microhttpd.h>

#include "serve/serve.h"
#include "serve/take_batcher.h"

enum MHD_Result respond_take(struct MHD_Connection *connection, const struct asked *a,
                             enum serve_policy on_error, unsigned denied);
enum MHD_Result respond_health(struct MHD_Connection *connection, const struct asked *a);
enum MHD_Result respond_refusal(struct MHD_Connection *connection, unsigned status, const char *why);
/* The headers of all that a browser may show: it is kept nowhere, and loads nothing from elsewhere. */
void response_secure(struct MHD_Response *response);
/* Makes a response of text of that type, with these headers. It copies the text. NULL: out of memory. */
struct MHD_Response *response_of(const char *type, const char *text, size_t len);
/* Adds how long a denial stands, in whole seconds. */
void response_retry_after(struct MHD_Response *response, double seconds);

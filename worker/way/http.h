/* --http: a job is a POST to a URL (worker/way/http.c). */
#pragma once

#include "worker/way/handler.h"

/* Jobs of type are sent to url. Errors as handlers_add; WEIR_EUSAGE: no URL of http or https; WEIR_ECONFIG:
 * there is no libcurl on this machine. */
WEIR_CHECKED int http_add(struct handlers *h, const char *type, const char *url, struct error *e);

/* What the address of a take asks: a pure reading of its method, path and arguments. */
#pragma once

#include <microhttpd.h>

#include "throttle/take/take.h"

enum wish { WISH_TAKE, WISH_HEALTH };

struct wanted {
    enum wish wish;
    struct take_question q; /* of a take */
    unsigned denied;        /* the status of a denial: 429 or 403 */
};

/* Returns 200 and *wanted; else the status of a request that asks nothing, and *why is a static text. */
unsigned take_url_read(struct MHD_Connection *connection, const char *method, const char *path,
                       struct wanted *wanted, const char **why);

/* True for the address of a take, or of what is answered beside takes. http_routes.h has all else. */
bool take_url_is(const char *address);
/* Without the "http://HOST" that a client may put in front (RFC 9112, 3.2.2). */
const char *url_path(const char *path);

/* For MHD_OPTION_UNESCAPE_CALLBACK: decodes %XX in place; what stands for a NUL or is malformed stays as it
 * is. */
size_t url_unescape(void *arg, struct MHD_Connection *connection, char *text);

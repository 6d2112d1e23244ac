/* What a request asks: a pure reading of its method, path and arguments. */
#ifndef SERVE_REQUEST_H
#define SERVE_REQUEST_H

#include <microhttpd.h>

#include "throttle/take/take.h"

enum wish { WISH_TAKE, WISH_HEALTH };

struct wanted {
    enum wish wish;
    struct take_question q; /* of a take */
    unsigned denied;        /* the status of a denial: 429 or 403 */
};

/* 200 and *wanted; else the status of a request that asks nothing, and *why is a static text. */
unsigned request_read(struct MHD_Connection *connection, const char *method, const char *path,
                      struct wanted *wanted, const char **why);

/* True for the address of a take, or of what is answered beside takes. The office answers all else. */
bool request_is_take(const char *address);
/* Without the "http://HOST" that a client may put in front (RFC 9112, 3.2.2). */
const char *request_path(const char *path);

/* For MHD_OPTION_UNESCAPE_CALLBACK: decodes %XX in place; what stands for a NUL or is malformed stays as it
 * is. */
size_t request_unescape(void *arg, struct MHD_Connection *connection, char *text);

#endif

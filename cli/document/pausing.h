/* Pausing and resuming, whatever it is: the same flags and the same words. */
#ifndef CLI_DOCUMENT_PAUSING_H
#define CLI_DOCUMENT_PAUSING_H

#include "cli/cli.h"
#include "queue/limits/rate_request.h"

struct json_t; /* jansson */

/* The rows of a command's flags for `pause`, of a struct pausing; PAUSING_FLAGS where it may be created. */
#define PAUSING_TIME_FLAGS(how)                                                                              \
    {"for", 0, FLAG_DURATION, "DURATION", "pause: for that time, else until resume", &(how).for_us},         \
    {                                                                                                        \
        "reason", 0, FLAG_TEXT, "TEXT", "pause: why", &(how).reason                                          \
    }
#define PAUSING_FLAGS(how)                                                                                   \
    PAUSING_TIME_FLAGS(how),                                                                                 \
    {                                                                                                        \
        "create", 0, FLAG_BOOL, NULL, "pause: though there is none of that name", &(how).create              \
    }

/* Completes what the flags have filled: without --for it is RATE_ENDLESS. WEIR_EINPUT: --for 0s. */
WEIR_CHECKED int pausing_read(struct cli *cli, struct pausing *how);
/* Prints the document of a pause or resume (view/pause.h), which it frees, of what has that name in a command. was: it was paused, though not by
 * hand. */
WEIR_CHECKED int pausing_print(struct cli *cli, const char *name, bool was, struct json_t *doc);

/* Pauses or resumes by that call (type_pause() and its like), and prints what came of it. */
WEIR_CHECKED int pausing_change(struct cli *cli, struct weir *w,
                                int (*pause)(struct weir *w, const char *name, const struct pausing *how,
                                             struct json_t **answer),
                                const char *name, const struct pausing *how);

#endif

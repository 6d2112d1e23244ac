/* Pausing and resuming, whatever it is: the same flags and the same words. */
#pragma once

#include "cli/cli.h"
#include "queue/limits/rate_request.h"

struct json_t; /* jansson */

/* The rows of a command's flags for `pause`, which fill pausing_given; PAUSING_CREATE where it may be created. */
#define PAUSING_FLAGS                                                                                        \
    {"for", 0, FLAG_DURATION, "DURATION", "pause: for that time, else until resume", &pausing_given.for_us}, \
    {                                                                                                        \
        "reason", 0, FLAG_TEXT, "TEXT", "pause: why", &pausing_given.reason                                  \
    }
#define PAUSING_CREATE                                                                                       \
    {                                                                                                        \
        "create", 0, FLAG_BOOL, NULL, "pause: though there is none of that name", &pausing_given.create      \
    }
extern struct pausing pausing_given;

/* Checks and completes pausing_given: without --for it is RATE_ENDLESS. WEIR_EINPUT: --for 0s. For struct command. */
WEIR_CHECKED int pausing_check(struct cli *cli);
/* Prints the document of a pause or resume (view/pause.h), which it frees, of what has that name in a command. was: it was paused, though not by
 * hand. */
WEIR_CHECKED int pausing_print(struct cli *cli, const char *name, bool was, struct json_t *doc);

/* Does the action pause or resume by that call (type_pause() and its like), and prints what came of it. */
WEIR_CHECKED int pausing_change(struct cli *cli, struct weir *w,
                                int (*pause)(struct weir *w, const char *name, const struct pausing *how,
                                             struct json_t **answer));

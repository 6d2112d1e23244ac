/* What a worker keeps of the limits of its types, and writes again when Redis has lost them: the requests and
 * answers of rate_known and rate_again. The records mean something to those two scripts only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "core/script/args.h"
#include "queue/turn/turn.h"

/* What rate_known has said so far, of a worker whose types are too many for one call. */
struct known_pages {
    char newest[24]; /* when the first page was read; "": none is */
    struct args records;
    int64_t left_out;
    size_t types, asked; /* so many are done; and were in the last request */
};

struct known_limits {
    char newest[24]; /* revision of what Redis has; "": never asked */
    struct args records;
    int64_t left_out; /* limits and types that did not fit */
    struct known_pages pages;
    /* Where rate_again is: so many records were written, and types checked for the next ones. */
    size_t again;
    char cursor[24], revision[24];
};
void known_limits_free(struct known_limits *known);
/* What is known is in Redis now: the next answer has all that holds there. */
void known_limits_are_written(struct known_limits *known);

/* Asks for the next page, or the first one. birth: that of the data that are known, from adopt; "": none. */
void rate_known_request(struct args *a, const char *prefix, int64_t now_us, struct known_limits *known,
                        const char *birth, struct names types);
/* Behind the last page it is what is known. That stays as it is where nothing has changed or Redis has lost it, and on failure: then the next
 * request begins with the first page. */
WEIR_CHECKED int rate_known_reply(const struct redisReply *reply, struct known_limits *known,
                                  struct error *e);
/* Redis has that revision: is it newer than what is known? "": it may be. Redis may have lost data and have an older one: then there is nothing to learn. */
bool known_limits_are_older(const struct known_limits *known, struct span newest);
/* True when there is another page. */
bool known_limits_asks_more(const struct known_limits *known);
/* The pages so far are forgotten. */
void known_limits_ask_anew(struct known_limits *known);
/* All records are to be written again, by as many requests as known_limits_has_more asks for. */
void known_limits_begin_again(struct known_limits *known);
bool known_limits_has_more(const struct known_limits *known);
/* Writes the next limits again. by: for the log of changes. */
void rate_again_request(struct args *a, const char *prefix, int64_t now_us, const char *by,
                        const struct known_limits *known);
/* What was written, "limit mail, type news", cut to size; "": nothing. */
WEIR_CHECKED int rate_again_reply(const struct redisReply *reply, struct known_limits *known, char *written,
                                  size_t size, struct error *e);

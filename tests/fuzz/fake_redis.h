/* A Redis that is none: what a client asks is answered by a function of the target. It stands in for
 * redis_call and the calls of a pipeline, by the linker's --wrap. */
#pragma once

#include <hiredis/hiredis.h>

#include "core/script/args.h"
#include "queue/job/job.h"

/* The answer to a command; NULL: none, and the connection is refused. */
typedef struct redisReply *fake_answer(const struct args *asked);
void fake_redis(fake_answer *answer);
/* The i-th word of a command. */
struct span fake_word(const struct args *asked, size_t i);

/* Answers as text, each line one element:
 *
 *   [ ]        an array begins, ends                 :12        a number
 *   ~          nil                                   -ERR why   an error
 *   else       a string; in it \x01 stands for a newline; a line that begins with ' stands for what is behind it
 *
 * Reads one and moves *at on; NULL: there is no more. */
struct redisReply *fake_read(const char **at, const char *end);

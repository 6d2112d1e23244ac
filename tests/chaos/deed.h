/* What a handler of a chaos run does with a job, whatever kind of handler it is. Of the C library alone:
 * small programs are made of it too.
 *
 * The args of a job are the text "c:<us>:<endings>": it takes so long, and before it is done it ends in each
 * of these ways, one after the other: r failed, t throttled, d dead. How many of them it has had stands in
 * the file "endings", a byte for each job, which all processes share.
 *
 * The file "history" is what the run is judged by. Each line is one write to its end:
 *
 *     S <id> <who> <pid> <us>              a handler begins
 *     E <id> <who> <pid> <us> <ending>     it is about to say how the job ended; '.': done
 *
 * who: "<worker>.<n>", the n-th process of that worker; us: monotonic. */
#pragma once

#include <stdint.h>

#define DEED_DONE '.'
#define DEED_FAILED 'r'
#define DEED_THROTTLED 't'
#define DEED_DEAD 'd'
#define DEED_AFTER_S 0.2 /* of one that failed, or was throttled, where its handler can say so */

struct deed {
    char id[136], who[16];
    int64_t take_us;
    char endings[8];
};

int64_t deed_now_us(void);
void deed_sleep(int64_t us);

/* Before all else: the run's folder is $CHAOS_FOLDER. Aborts where that is not there. */
void deed_open(void);
/* text has the args somewhere in it; who NULL: $CHAOS_WHO. Notes the start. */
void deed_begin(struct deed *d, const char *id, const char *text, const char *who);
/* Notes the end and returns it. */
char deed_end(const struct deed *d);

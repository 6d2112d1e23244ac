/* What the steps of plays (play.h) share: the words of a step, and how times are read and written. */
#pragma once

#include "tests/play.h"
#include "tests/test.h"

#define WORDS_MOST 40
#define OTHER 1000 /* of a function that runs steps: it is none of these */

extern const char *words[WORDS_MOST]; /* words[0] is the verb; behind the last one "" */
extern int word_count;

bool is(const char *verb);
/* The words from i on, with blanks between them. */
const char *words_from(int i);

/* "1.5s"; of a number alone: microseconds */
int64_t time_of(const char *word);
const char *time_text(int64_t us);
/* What Redis says, with its times as T+1s, in one line. */
void put_text(FILE *out, const char *text);

/* The steps that look with a client (scene_client.h), in play_client.c. */
int play_by_client(FILE *out);
/* Those of schedules, and of what is due; in play_schedule.c. */
int play_schedules(FILE *out);
/* Those of what workers know of limits, which each scene forgets; in play_known.c. */
int play_knowing(FILE *out);
void play_forget_known(void);

/* A scene (scene.h) with a client of its Redis. */
#pragma once

#include "core/client/client.h"
#include "queue/inspect/job_search.h"
#include "tests/scene.h"

extern struct weir *w;       /* of tests/client.c */
extern struct server server; /* the same one as turns.server */

/* Setup and teardown of a group, in place of those of turns.h. */
int scene_start_client(void **state);
int scene_stop_client(void **state);
/* The cursor of these words (queue/inspect/job_list.h); good until the next call. */
const char *scene_cursor(const char *words);

/* A job in each state, named by it. */
void scene_states(void);
struct job_search scene_search(const char *text);
/* The ids of all that a search finds, so many jobs and looks a page, from page to page: good until the next call, as scene_page is, the last
 * page. */
#define SCENE_IDS_SIZE 20000
const char *scene_find(const char *text, int64_t jobs, int64_t looked_at);
extern json_t *scene_page;
/* The words of a text, in order. */
const char *scene_sorted(const char *text);
/* Whatever the size of a page, a search finds these, passes over nothing, has nothing twice, and changes nothing. */
void expect_found(const char *text, const char *ids);
/* Does it to all that a search finds, so many jobs and looks a page: scene_page is the last answer, with "all" that it was done to, and
 * "all_left". looked_at INT64_MAX: one page. */
void scene_act(const char *action, const char *text, int64_t jobs, int64_t looked_at);

/* A scene (scene.h) with a client of its Redis. */
#pragma once

#include "core/client/client.h"
#include "tests/scene.h"

extern struct weir *w;       /* of tests/client.c */
extern struct server server; /* the same one as turns.server */

/* Setup and teardown of a group, in place of those of turns.h. */
int scene_start_client(void **state);
int scene_stop_client(void **state);
/* The cursor of these words (queue/inspect/job_list.h); good until the next call. */
const char *scene_cursor(const char *words);

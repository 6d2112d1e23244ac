/* What the tests of weir doctor share: a populous scene (scene.h) and the doctor, who is asked about it. Each
 * call fails the test when something is not as it must be. */
#pragma once

#include "queue/doctor/doctor.h"
#include "tests/scene_client.h"

extern struct doctor doctor; /* what it said last */

/* Teardown of a group that scene_start_client() began. */
int scene_stop_doctor(void **state);

/* Asks it; it mends what it can if it is to repair. */
void examine(bool repair);
/* What it says besides of Redis itself, "state name text" a line. */
const char *findings(void);
/* That is a part of it. */
bool tells(const char *text);
/* It changes nothing, and says that nothing is broken. */
void expect_health(const char *what);
/* It names it, in these words. */
void expect_finding(const char *what, const char *text);
/* It mends all that is broken. */
void repair(const char *what);

/* A populous state: queues, types, keys that sleep and keys that wait, a held type, leases, scheduled and dead
 * jobs. */
void scene(void);
/* Its first part, without jobs that have ended. other: nobody runs it here. */
void populate(void);
/* Its second part. */
void end_some(void);

void push_keyed(const char *queue, const char *type, const char *id, const char *key);
/* A new worker that can run all, until nothing is left. */
void run_all(const char *what);

/* A Redis of a group of tests, and a client of it. */
#ifndef TESTS_CLIENT_H
#define TESTS_CLIENT_H

#include "tests/server.h"
#include "weir.h"

extern struct server server;
extern struct weir *w;

/* Setup and teardown of the group. */
int client_start(void **state);
int client_stop(void **state);
/* Setup of each test: nothing in Redis. */
int client_flush(void **state);

#endif

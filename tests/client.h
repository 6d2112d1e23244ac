/* A Redis of a group of tests, and a client or a connection of it. Each of these is a setup or teardown of cmocka's, or a part of one. */
#pragma once

#include "core/redis/redis.h"
#include "tests/server.h"
#include "throttle/rule.h"
#include "weir.h"

extern struct server server;
extern struct weir *w;
extern struct redis *redis;

/* Setups of the group: Redis and a client; Redis and a connection; Redis alone. */
int client_start(void **state);
int client_start_redis(void **state);
int client_start_server(void **state);
/* Its teardown, of each. */
int client_stop(void **state);

/* Setup of each test: nothing in Redis, which runs, whatever the last test did to it. */
int client_flush(void **state);
/* The same with a new client, for tests whose clients remember something; and its teardown. */
int client_begin(void **state);
int client_end(void **state);

/* A command on a key of the default namespace; what it answers does not matter. b may be NULL. */
void client_send(const char *command, const char *key, const char *a, const char *b);
/* Rules as people write them, with blanks between. */
struct rule_set client_rules(const char *text);

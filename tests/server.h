/* A private redis-server for a test: a unix socket in a folder of its own, stopped by its process id. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct server {
    char folder[64];  /* removed by server_stop */
    char socket[128]; /* folder/redis.sock */
    char url[160];    /* unix://... */
    pid_t pid;
    bool aof;
    bool shifted; /* its clock goes by folder/clock */
    bool sentinel;
};

/* Starts one and waits until it answers; fails the test otherwise. aof: appendonly yes, appendfsync everysec.
 */
void server_start(struct server *s, bool aof);
/* Sends one setting at start, such as "--requirepass", "secret"; ends with NULL. */
void server_start_with(struct server *s, bool aof, const char *const *options);
/* The same with a wall clock of its own, which is the machine's at first. */
void server_start_shifted(struct server *s, bool aof, const char *const *options);
/* The same as a Sentinel. */
void server_start_sentinel(struct server *s, const char *const *options);
/* Its clock is so far before the machine's from now on, at once and after a restart; below 0: behind it. */
void server_shift_clock(struct server *s, int64_t shift_us);
/* kill -9, and a start over the same folder. */
void server_kill(struct server *s);
void server_restart(struct server *s);
void server_stop(struct server *s);
/* Loads Weir's functions, for which time stands still while one runs, as it does from Redis 7.2 on. A call may end early because it took long, and on a
 * busy machine any call takes long: what is compared with a text must not depend on that. Such a call still ends by what it has looked at. */
void server_hold_clock(struct server *s);

/* A port of this machine that is free now, and that nobody else takes: neither the kernel for a connection, nor another test. */
int server_free_port(void);

/* A proxy before it (proxy.h), in its folder; of the second one before a port of this machine. */
struct proxy *proxy_start(const struct server *s);
struct proxy *proxy_start_to(const struct server *s, int port);

/* One command, words separated by arguments ending with NULL; the answer as text is the caller's to free:
 * strings and numbers as they are, arrays as elements joined by "\n", nil as "(nil)", errors as "(error)
 * ...". */
char *server_ask(struct server *s, const char *word, ...) __attribute__((sentinel));
/* An answer without what says when jobs were enqueued, in heads of entries; and without heads that say nothing else. */
char *unstamped(char *text);
/* As server_ask, NULL when the server closes the connection: a Sentinel has it do so when it changes its role. */
char *server_try(struct server *s, const char *word, ...) __attribute__((sentinel));
/* The same as a number; fails the test when it is none. */
long long server_number(struct server *s, const char *word, ...) __attribute__((sentinel));
/* A command whose answer nobody looks at; and of what has a member server, such as a stage. */
#define server_do(...) free(server_ask(__VA_ARGS__, NULL))
#define stage_do(s, ...) server_do(&(s)->server, __VA_ARGS__)
#define stage_number(s, ...) server_number(&(s)->server, __VA_ARGS__, NULL)
/* How often a command has run since the start, or since CONFIG RESETSTAT, by its name in INFO commandstats: "fcall",
 * "function|load". */
long long server_calls(struct server *s, const char *command);

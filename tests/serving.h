/* weir serve under test, as a process of its own beside a private Redis (client.h), and what tests ask of it. One test program has one. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "tests/http.h"
#include "weir.h"

#define FORM "Content-Type: application/x-www-form-urlencoded\r\n"
#define JSON "Content-Type: application/json\r\n"
#define NDJSON "Content-Type: application/x-ndjson\r\n"

extern struct serving {
    char folder[64]; /* of the tests; its log is serve.err there */
    char where[96];  /* it listens: a socket, or a port of 127.0.0.1 */
    pid_t pid;       /* 0: not running */
    struct http_reply reply;
} serving;

/* Setup and teardown of the group; and setup of each test: nothing in Redis, and no server left of the last test. */
int serving_setup(void **state);
int serving_teardown(void **state);
int serving_flush(void **state);
/* A test beside a server with all that may be allowed. */
#define SERVING_TEST(name)                                                                                   \
    static void name##_served(void);                                                                         \
    TEST_WITH(name, serving_flush, NULL)                                                                     \
    {                                                                                                        \
        serving_start();                                                                                     \
        name##_served();                                                                                     \
        serving_end();                                                                                       \
    }                                                                                                        \
    static void name##_served(void)

/* url NULL: that of the Redis. listen NULL: a unix socket. flags end with NULL. */
void serving_start_at(const char *url, const char *listen, const char *const *flags);
/* With all that may be allowed. */
void serving_start(void);
extern const char *const serving_all_flags[];
/* TERM; it must end with 0 and leave no socket. */
void serving_end(void);
/* The same of one that was told to end. */
void serving_ended(void);

/* Each asks once; the answer stays in serving.reply. */
unsigned serving_status_of(const char *method, const char *path, const char *headers, const char *body);
/* Of an answer 200; the caller's. */
json_t *serving_get(const char *path);
/* An action that succeeds. */
void serving_act(const char *path, const char *form);
void serving_refused(const char *method, const char *path, const char *headers, const char *body,
                     unsigned status, const char *says);
/* The last answer; the caller's. */
json_t *serving_parsed(void);

/* Runs weir with the words of a line, as program_weir() has them; it must end with 0. */
void serving_weir(const char *line);
/* Some of everything: a limit, a job in a batch, one in a paused queue, a schedule. */
void serving_fill(void);
/* Enqueues so many jobs; of type "many". */
void serving_enqueue(const struct weir_job_spec *job, int jobs);
void serving_enqueue_many(int jobs);

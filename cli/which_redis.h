/* Which Redis a command talks to, and where weir dev keeps its own. */
#pragma once

#include <stdbool.h>

struct cli;

#define DEV_FOLDER ".weir"
#define DEV_SOCKET DEV_FOLDER "/redis.sock"
#define DEV_URL_SIZE 128

/* Writes the URL of the Redis of a weir dev in the current folder, running or not. */
void dev_url_here(char url[DEV_URL_SIZE]);

/* True when a weir dev runs in the current folder. */
bool dev_is_here(void);

/* --redis, else $REDIS_URL, else the socket of a running weir dev in ./.weir (said on standard error), else as weir.conf says; static
 * storage. NULL: none of them, so the library's default. */
const char *cli_redis_url(const struct cli *cli);

/* True when a flag was given that stands for a parameter of the address. */
bool cli_describes_redis(const struct cli *cli);

/* Says in an error about an address where that came from, --redis, $REDIS_URL or a line of weir.conf, its login masked. */
void cli_name_source(struct cli *cli);
/* The address without what may be a password. */
#define MASKED_SIZE 200
void redis_mask(const char *url, char out[MASKED_SIZE]);

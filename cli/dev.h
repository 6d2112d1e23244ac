/* Where weir dev keeps what it runs, for the command itself and for cli_redis_url. */
#ifndef CLI_DEV_H
#define CLI_DEV_H

#define DEV_FOLDER ".weir"
#define DEV_SOCKET DEV_FOLDER "/redis.sock"
#define DEV_URL_SIZE 128

/* The URL of the Redis of a weir dev in the current folder, running or not. */
void dev_url_here(char url[DEV_URL_SIZE]);

#endif

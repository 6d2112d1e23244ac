/* address: which Redis, or whom to ask for it, and who we are there. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

/* How the host is found. */
enum redis_finder { REDIS_NAMED, REDIS_BY_SENTINELS, REDIS_BY_CLUSTER };
#define SEEDS_MOST 16
#define REDIS_PASSWORD_SIZE 8192 /* tokens of cloud providers have some 2,000 bytes */

/* Where Redis is and who we are. All strings NUL-terminated; host empty: socket_path is used. */
struct redis_address {
    enum redis_finder finder;
    char seeds
        [1024]; /* "host:port,host:port": the Sentinels, or nodes of the cluster; host is theirs to tell */
    char master[128]; /* as the Sentinels call it */
    char sentinel_user[128], sentinel_password[256];
    char host[256];
    int port;
    char socket_path[108];
    char user[128];
    char password[REDIS_PASSWORD_SIZE];
    int database;
    /* Where the password comes from, at each connect, when it is not here. */
    char password_file[256], password_command[1024];
    /* Files are found as core/wire/credential.h says; each may be empty. */
    bool tls, insecure; /* insecure: whatever certificate the server has */
    char sni[256];      /* the server's name, where it is not the host */
    char cacert[256], cacertdir[256];
    char cert[256], key[256];
    int slot; /* of a cluster: the one that has our keys */
};
/* Of partition 0: CRC16 (XMODEM) of "0", modulo 16,384. */
#define CLUSTER_SLOT 13907

/* Reads redis://[user:pass@]host[:port][/db], redis://:pass@host, unix://[user:pass@]/path[?db=n], or the
 * bare path of a socket that begins with /, ./ or ../; parts of user:pass are percent-decoded, IPv6 hosts
 * stand in brackets. redis+sentinel://host[:port],.../name[/db] and redis+cluster://host[:port],... name Sentinels, or
 * nodes, to be asked at each connection. rediss in place of redis: over TLS. What else the structure has may stand behind a ?, as
 * name=value joined by &, percent-encoded. WEIR_ECONFIG with a line that never shows the password. */
WEIR_CHECKED int redis_address_parse(const char *url, struct redis_address *address, struct error *e);
/* Makes seed number i an address of its own, without a login; false: there are not so many. */
bool redis_address_seed(const struct redis_address *address, int i, struct redis_address *seed);
/* True when both name the same host and port. */
bool redis_address_is_same(const struct redis_address *a, const struct redis_address *b);
#define REDIS_NAME_SIZE 300
/* Writes "redis://host:port/db", "unix:///path" or "./path", without login, for messages. */
void redis_address_format(const struct redis_address *address, char *out, size_t size);

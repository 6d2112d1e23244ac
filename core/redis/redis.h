/* Redis: addresses, error replies, and the blocking connection of producers and commands. */
#ifndef CORE_REDIS_REDIS_H
#define CORE_REDIS_REDIS_H

#include <stdbool.h>

#include "core/error.h"
#include "core/script/args.h"

struct redisReply; /* hiredis */

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
    /* Files are found as core/redis/credential.h says; each may be empty. */
    bool tls, insecure; /* insecure: whatever certificate the server has */
    char sni[256];      /* the server's name, where it is not the host */
    char cacert[256], cacertdir[256];
    char cert[256], key[256];
};

/* Reads redis://[user:pass@]host[:port][/db], redis://:pass@host, unix://[user:pass@]/path[?db=n], or the
 * bare path of a socket that begins with /, ./ or ../; parts of user:pass are percent-decoded, IPv6 hosts
 * stand in brackets. redis+sentinel://host[:port],.../name[/db] and redis+cluster://host[:port],... name Sentinels, or
 * nodes, to be asked at each connection. rediss in place of redis: over TLS. What else the structure has may stand behind a ?, as
 * name=value joined by &, percent-encoded. WEIR_ECONFIG with a line that never shows the password. */
WEIR_CHECKED int redis_address_parse(const char *url, struct redis_address *address, struct error *e);
/* The seed number i, as an address of its own without a login; false: there are not so many. */
bool redis_address_seed(const struct redis_address *address, int i, struct redis_address *seed);
/* Do both name the same host and port? */
bool redis_address_is_same(const struct redis_address *a, const struct redis_address *b);
#define REDIS_NAME_SIZE 300
/* "redis://host:port/db", "unix:///path" or "./path", without login, for messages. */
void redis_address_format(const struct redis_address *address, char *out, size_t size);

/* What kind of failure an error reply is; the first word decides, for "ERR" the text behind it. */
enum redis_fault {
    REDIS_FAULT_NO_FUNCTION, /* load the library, send again */
    REDIS_FAULT_READONLY,    /* a replica (READONLY, MASTERDOWN, UNBLOCKED): connect anew */
    REDIS_FAULT_REPLICAS,    /* a master with fewer replicas in sync than it must have to take writes */
    REDIS_FAULT_LOADING,     /* wait */
    REDIS_FAULT_OOM,         /* over maxmemory */
    REDIS_FAULT_BUSY,        /* somebody's script runs long: wait */
    REDIS_FAULT_DISK,        /* MISCONF: Redis cannot persist */
    REDIS_FAULT_NO_LOGIN,    /* it wants a password and was given none */
    REDIS_FAULT_AUTH,        /* WRONGPASS, DENIED */
    REDIS_FAULT_RIGHTS,      /* NOPERM, "can't run this command" inside scripts */
    REDIS_FAULT_COMMAND,     /* no such command: renamed, or not offered */
    REDIS_FAULT_KILLED,      /* FUNCTION KILL has ended the call, which had written nothing */
    REDIS_FAULT_CLIENTS,     /* maxclients reached */
    REDIS_FAULT_CLUSTER, /* a cluster node that does not hold our keys, or not all of them now; nothing was done */
    REDIS_FAULT_WRONGTYPE, /* a key of ours holds something else */
    REDIS_FAULT_WEIR,      /* our own scripts' refusals: "WEIR ..." */
    REDIS_FAULT_OTHER,
};
enum redis_fault redis_fault(const char *error_text);
/* Makes *e of an error reply: the status that fits and a line that says what to do. Returns the status. */
int redis_fault_error(struct error *e, const char *error_text);

struct redis;

/* A blocking connection that is opened at its first use and, when it was lost, at the next. In the child of a
 * fork() it is closed without a word and opened anew at the first use; what was under way is the parent's.
 * Copies address. NULL only when out of memory. */
struct redis *redis_new(const struct redis_address *address);
/* Another connection to the same Redis, which does without our functions: for looks at one that takes them
 * not, such as a replica. */
struct redis *redis_new_plain(const struct redis *r);
void redis_free(struct redis *r);

/* One command, one answer. Where Sentinels or a cluster are asked, a command that was refused because the keys are elsewhere
 * now, or on their way, is sent again, for some seconds. *reply is the caller's to free (freeReplyObject); error replies become errors and
 * *reply NULL. "Function not found" loads them and sends the command again, once. On WEIR_EUNREACHABLE (also:
 * a replica, a Redis that is loading) the connection is closed; *sent (may be NULL) tells whether the command
 * may have reached Redis unanswered: its outcome is then unknown. */
WEIR_CHECKED int redis_call(struct redis *r, const struct args *a, struct redisReply **reply, bool *sent,
                            struct error *e);

/* Pipelining: append several commands, then read one answer for each, in order. redis_append only buffers;
 * the bytes go out with redis_flush or the first redis_result. An error answer ("Function not found" too:
 * it is not repeated here) is the result's error, and the connection stays usable; WEIR_EUNREACHABLE closes
 * it and loses all that was under way. */
WEIR_CHECKED int redis_append(struct redis *r, const struct args *a, struct error *e);
WEIR_CHECKED int redis_flush(struct redis *r, struct error *e);
WEIR_CHECKED int redis_result(struct redis *r, struct redisReply **reply, struct error *e);
/* Waits until an answer begins to come, or the connection is lost (true), until that time (clock_mono_us) or
 * for a signal (false). */
bool redis_await(const struct redis *r, int64_t until_us);
/* Loads the functions again (after "Function not found" in a pipeline). Nothing may be under way. */
WEIR_CHECKED int redis_load_scripts(struct redis *r, struct error *e);

#endif

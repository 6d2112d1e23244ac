/* What Redis's error replies mean: one table from their first words to a kind, one from the kind to what a
 * person should do. Inside scripts Redis 7 keeps the first word, except for permissions. */
#include "core/wire/fault.h"

#include <string.h>

#include "core/script/script.h"

static const struct {
    const char *words;
    enum redis_fault fault;
} beginnings[] = {
    {"ERR Function not found", REDIS_FAULT_NO_FUNCTION},
    {"READONLY", REDIS_FAULT_READONLY},
    {"MASTERDOWN", REDIS_FAULT_READONLY},
    {"NOREPLICAS", REDIS_FAULT_REPLICAS},
    {"UNBLOCKED", REDIS_FAULT_READONLY}, /* a blocking call when the server became a replica */
    {"LOADING", REDIS_FAULT_LOADING},
    {"OOM", REDIS_FAULT_OOM},
    {"BUSY", REDIS_FAULT_BUSY},
    {"MISCONF", REDIS_FAULT_DISK},
    {"NOAUTH", REDIS_FAULT_NO_LOGIN},
    {"WRONGPASS", REDIS_FAULT_AUTH},
    {"NOPERM", REDIS_FAULT_RIGHTS},
    {"DENIED", REDIS_FAULT_AUTH}, /* protected mode */
    {"ERR The user executing the script", REDIS_FAULT_RIGHTS},
    {"ERR ACL failure in script:", REDIS_FAULT_RIGHTS}, /* Redis 7.2, Valkey */
    {"ERR Unknown Redis command called from script", REDIS_FAULT_COMMAND},
    {"ERR Unknown command called from script", REDIS_FAULT_COMMAND}, /* Valkey */
    {"ERR unknown command", REDIS_FAULT_COMMAND},
    {"ERR Script killed by user", REDIS_FAULT_KILLED},
    {"ERR max number of clients", REDIS_FAULT_CLIENTS},
    {"MOVED", REDIS_FAULT_CLUSTER},
    {"ASK", REDIS_FAULT_CLUSTER},
    {"TRYAGAIN", REDIS_FAULT_CLUSTER},
    {"CROSSSLOT", REDIS_FAULT_CLUSTER},
    {"ERR Script attempted to access a non local key in a cluster node", REDIS_FAULT_CLUSTER},
    {"CLUSTERDOWN", REDIS_FAULT_CLUSTER},
    {"ERR SELECT is not allowed in cluster mode", REDIS_FAULT_CLUSTER},
    {"WRONGTYPE", REDIS_FAULT_WRONGTYPE},
    {"WRONG-PARTITION", REDIS_FAULT_PARTITION},
    {"WEIR", REDIS_FAULT_WEIR},
};

enum redis_fault redis_fault(const char *error_text)
{
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++) {
        size_t len = strlen(beginnings[i].words);

        if (strncmp(error_text, beginnings[i].words, len) == 0 &&
            (error_text[len] == ' ' || !error_text[len]))
            return beginnings[i].fault;
    }
    return REDIS_FAULT_OTHER;
}

bool redis_misses_library(const char *error_text)
{
    enum redis_fault fault = redis_fault(error_text);

    return fault == REDIS_FAULT_NO_FUNCTION ||
           ((fault == REDIS_FAULT_COMMAND || fault == REDIS_FAULT_OTHER) && strcasestr(error_text, "FCALL"));
}

/* People read these lines; %.*s is Redis's own text. */
static const struct {
    int status;
    const char *line;
} advice[] = {
    [REDIS_FAULT_NO_FUNCTION] =
        {WEIR_ENOTNOW, "Redis: loses its functions (%.*s); find who runs FUNCTION FLUSH, try again"},
    [REDIS_FAULT_READONLY] = {WEIR_EUNREACHABLE,
                              "Redis: takes no writes: %.*s; name the address of the master"},
    [REDIS_FAULT_REPLICAS] = {WEIR_EUNREACHABLE,
                              "Redis: takes no writes: fewer replicas are in sync than its "
                              "min-replicas-to-write (%.*s); mend the replicas or their links, or lower it"},
    [REDIS_FAULT_LOADING] = {WEIR_EUNREACHABLE,
                             "Redis: is loading its data after a start; wait and try again"},
    [REDIS_FAULT_OOM] = {WEIR_ENOTNOW, "Redis: over its maxmemory; raise it or drain the queue"},
    [REDIS_FAULT_BUSY] = {WEIR_ENOTNOW, "Redis: busy with a long script, Weir's own or another's; wait, or "
                                        "end it with SCRIPT KILL or FUNCTION KILL"},
    [REDIS_FAULT_DISK] = {WEIR_ENOTNOW, "Redis: cannot write to its disk: %.*s; make room there or mend it"},
    [REDIS_FAULT_NO_LOGIN] =
        {WEIR_EREFUSED, "Redis: wants a password (%.*s); name --password-file, or put it into REDIS_URL: "
                        "redis://[user]:password@host or unix://[user]:password@/path"},
    [REDIS_FAULT_AUTH] = {WEIR_EREFUSED, "Redis: refused: %.*s; check user and password"},
    [REDIS_FAULT_RIGHTS] = {WEIR_EREFUSED,
                            "Redis: the user lacks a right: %.*s; weir doctor prints the ACL rule"},
    [REDIS_FAULT_COMMAND] = {WEIR_ECONFIG,
                             "Redis: lacks a command that Weir calls: %.*s; rename-command took it away, or "
                             "the provider does; weir doctor names it"},
    [REDIS_FAULT_KILLED] = {WEIR_ENOTNOW,
                            "Redis: somebody ended this call by FUNCTION KILL before it changed anything; "
                            "try again"},
    [REDIS_FAULT_WRONGTYPE] = {WEIR_ECONFIG,
                               "Redis: a key of this namespace is somebody else's: %.*s; weir doctor "
                               "--repair puts it aside, or says what to do"},
    [REDIS_FAULT_CLIENTS] = {WEIR_EUNREACHABLE,
                             "Redis: has no room for another client; raise its maxclients"},
    [REDIS_FAULT_CLUSTER] = {WEIR_ECONFIG,
                             "Redis: is part of a cluster (%.*s); write its address as redis+cluster://"
                             "host1:port,host2:port"},
    [REDIS_FAULT_PARTITION] = {WEIR_ENOTNOW, "%.*s: lives on another partition; try again"},
    [REDIS_FAULT_WEIR] = {WEIR_EINPUT, "%.*s"},
    [REDIS_FAULT_OTHER] = {WEIR_EINTERNAL, "Redis: unexpected error: %.*s; please report it"},
};

/* Reports an unexpected error in one of our scripts. */
static int unexpected(struct error *e, const char *error_text, const char *file, int line)
{
    return error_set(e, WEIR_EINTERNAL, "Redis: unexpected error in %s:%d: %s; please report it", file, line,
                     error_text);
}

int redis_fault_error(struct error *e, const char *error_text)
{
    enum redis_fault fault = redis_fault(error_text);
    const char *arguments, *file;
    int line;

    if (fault == REDIS_FAULT_OTHER && (file = script_place(error_text, &line)))
        return unexpected(e, error_text, file, line);
    if (fault == REDIS_FAULT_WEIR && error_text[4] == ' ')
        error_text += 5;
    if (fault == REDIS_FAULT_WEIR && strncmp(error_text, "format: ", strlen("format: ")) == 0)
        return error_set(e, WEIR_ECONFIG, "%s", error_text);
    arguments = fault == REDIS_FAULT_COMMAND ? strstr(error_text, ", with args") : NULL;
    return error_set(e, advice[fault].status, advice[fault].line,
                     arguments ? (int)(arguments - error_text) : (int)strlen(error_text), error_text);
}

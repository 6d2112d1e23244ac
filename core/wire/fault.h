/* fault: what error replies mean, whoever asked. */
#pragma once

#include <stdbool.h>

#include "core/error.h"

/* An error reply belongs to one of these kinds. Its first word decides; for "ERR" the text behind it does. */
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
    REDIS_FAULT_CLUSTER, /* a node of a cluster does not hold our keys, or not all of them now; nothing was done */
    REDIS_FAULT_PARTITION, /* a type or limit that lives on another partition; nothing was done */
    REDIS_FAULT_WRONGTYPE, /* a key of ours holds something else */
    REDIS_FAULT_WEIR,      /* our own scripts' refusals: "WEIR ..." */
    REDIS_FAULT_OTHER,
};
enum redis_fault redis_fault(const char *error_text);
/* True when a call of a function misses our library; also of a Redis without FCALL, which says more when it is to load one. */
bool redis_misses_library(const char *error_text);
/* Makes *e of an error reply: the status that fits and a line that says what to do. Returns the status. */
int redis_fault_error(struct error *e, const char *error_text);

#include "core/wire/handshake.h"

#include <hiredis/hiredis.h>
#include <string.h>

#include "core/script/script.h"
#include "core/wire/fault.h"
#include "core/wire/service.h"

static void auth_request(const struct redis_address *address, struct args *a)
{
    if (!address->password[0])
        return;
    args_add(a, "AUTH");
    if (address->user[0])
        args_add(a, address->user);
    args_add(a, address->password);
}

static void select_request(const struct redis_address *address, struct args *a)
{
    if (!address->database)
        return;
    args_add(a, "SELECT");
    args_add_int(a, address->database);
}

void handshake_request(const struct redis_address *address, enum handshake_step step, struct args *a)
{
    args_clear(a);
    if (step == HANDSHAKE_AUTH) {
        auth_request(address, a);
    } else if (step == HANDSHAKE_SELECT) {
        select_request(address, a);
    } else if (step == HANDSHAKE_ROLE) {
        args_add(a, "ROLE");
    } else if (step == HANDSHAKE_PING) {
        args_add(a, "PING");
    } else if (step == HANDSHAKE_NAME) {
        args_add(a, "INFO");
        args_add(a, "server");
    } else {
        args_add(a, "FUNCTION");
        args_add(a, "LOAD");
        args_add(a, script_library);
    }
}

static bool is_noperm(const char *text)
{
    return strncmp(text, "NOPERM", strlen("NOPERM")) == 0;
}

/* True when the server may be used though it refused that step. A server that Sentinels named must say that it is a master. */
static bool goes_on(const struct redis_address *address, enum handshake_step step, const char *text)
{
    enum redis_fault fault = redis_fault(text);

    if (step == HANDSHAKE_LOAD)
        return strstr(text, "already exists") != NULL;
    if (step != HANDSHAKE_PING && (step != HANDSHAKE_ROLE || address->finder == REDIS_BY_SENTINELS))
        return false;
    return fault != REDIS_FAULT_READONLY && fault != REDIS_FAULT_LOADING && fault != REDIS_FAULT_BUSY &&
           fault != REDIS_FAULT_NO_LOGIN && fault != REDIS_FAULT_AUTH && fault != REDIS_FAULT_CLIENTS;
}

/* An error reply that only this step can get; the others mean what they mean everywhere. */
static int refused(enum handshake_step step, const char *text, struct error *e)
{
    enum redis_fault fault = redis_fault(text);
    const char *arguments = strstr(text, ", with args");

    if (step == HANDSHAKE_LOAD && is_noperm(text))
        return error_set(e, WEIR_EREFUSED,
                         "Redis: has not the functions of this version of Weir and refused to load them: %s; "
                         "give the user +function|load, or run any weir command once as one who has it",
                         text);
    if (step == HANDSHAKE_LOAD && fault == REDIS_FAULT_OOM)
        return error_set(e, WEIR_ENOTNOW,
                         "Redis: over its maxmemory and without the functions of this version of Weir; raise "
                         "it until they are loaded");
    if (fault != REDIS_FAULT_OTHER && fault != REDIS_FAULT_COMMAND)
        return redis_fault_error(e, text);
    if (step == HANDSHAKE_AUTH)
        return error_set(e, WEIR_EREFUSED, "Redis: refused the login: %s; check user and password", text);
    if (step == HANDSHAKE_SELECT)
        return error_set(e, WEIR_ECONFIG, "Redis: refused the database: %s; check the number in the address",
                         text);
    if (fault == REDIS_FAULT_COMMAND)
        return error_set(e, WEIR_ECONFIG,
                         "Redis: has no functions (%.*s), which Weir consists of; use Redis 7.0 or later, or "
                         "Valkey, without a proxy or rename-command that hides FUNCTION",
                         arguments ? (int)(arguments - text) : (int)strlen(text), text);
    return error_set(
        e, WEIR_ECONFIG,
        "Redis: does not take Weir's functions: %s; Redis 7.0 or newer is needed, and FUNCTION under "
        "that name",
        text);
}

/* [ "master", ... ] */
static int role_reply(const struct redis_address *address, const struct redisReply *reply, struct error *e)
{
    bool has_role = reply->type == REDIS_REPLY_ARRAY && reply->elements > 0 &&
                    reply->element[0]->type == REDIS_REPLY_STRING;
    const char *role = has_role ? reply->element[0]->str : "";

    if (address->finder == REDIS_BY_SENTINELS && strcmp(role, "master") != 0)
        return error_set(e, WEIR_EUNREACHABLE,
                         "Redis: the Sentinels name one that is not a master; a failover is under way: wait "
                         "and try again");
    return strcmp(role, "slave") == 0 ? redis_fault_error(e, "READONLY a replica") : 0;
}

int handshake_reply(const struct redis_address *address, enum handshake_step step,
                    const struct redisReply *reply, struct error *e)
{
    if (step == HANDSHAKE_NAME)
        return reply->type == REDIS_REPLY_STRING ? service_check(reply->str, e) : 0;
    if (step == HANDSHAKE_ROLE && reply->type != REDIS_REPLY_ERROR)
        return role_reply(address, reply, e);
    if (reply->type != REDIS_REPLY_ERROR || goes_on(address, step, reply->str))
        return 0;
    return refused(step, reply->str, e);
}

bool handshake_wants_name(enum handshake_step step, int status)
{
    return step == HANDSHAKE_LOAD && status == WEIR_ECONFIG;
}

#include "core/handshake.h"

#include <hiredis/hiredis.h>
#include <strings.h>

#include "core/script.h"

enum { STEP_AUTH, STEP_SELECT };

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

bool handshake_request(const struct redis_address *address, int step, struct args *a)
{
    args_clear(a);
    if (step == STEP_AUTH) {
        auth_request(address, a);
    } else if (step == STEP_SELECT) {
        select_request(address, a);
    } else {
        if (!scripts[step - HANDSHAKE_SCRIPTS].name)
            return false;
        args_add(a, "SCRIPT");
        args_add(a, "LOAD");
        args_add(a, scripts[step - HANDSHAKE_SCRIPTS].source);
    }
    return true;
}

/* An error reply that only this step can get; the others mean what they mean everywhere. */
static int refused(int step, const char *text, struct error *e)
{
    if (redis_fault(text) != REDIS_FAULT_OTHER)
        return redis_fault_error(e, text);
    if (step == STEP_AUTH)
        return error_set(e, WEIR_EREFUSED,
                         "Redis: refused the login: %s; check user and password of the address", text);
    if (step == STEP_SELECT)
        return error_set(e, WEIR_ECONFIG, "Redis: refused the database: %s; check the number in the address",
                         text);
    return error_set(e, WEIR_ECONFIG, "Redis: does not take the script %s: %s; Redis 7.0 or newer is needed",
                     scripts[step - HANDSHAKE_SCRIPTS].name, text);
}

int handshake_reply(int step, const struct redisReply *reply, struct error *e)
{
    const struct script *script = step >= HANDSHAKE_SCRIPTS ? &scripts[step - HANDSHAKE_SCRIPTS] : NULL;

    if (reply->type == REDIS_REPLY_ERROR)
        return refused(step, reply->str, e);
    if (script && (reply->type != REDIS_REPLY_STRING || strcasecmp(reply->str, script->sha1) != 0))
        return error_set(e, WEIR_EINTERNAL,
                         "Redis: gave the script %s another name than its sha1; this build of Weir is broken",
                         script->name);
    return 0;
}

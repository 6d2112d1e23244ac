#include "core/wire/resolve.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* getaddrinfo() answers 0 and the addresses, or its error and errno. */
struct answer {
    int failed, error;
    struct addrinfo *all;
};

static struct answer ask(const struct redis_address *address, int flags)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags};
    struct answer answer = {.all = NULL};
    char port[24];

    snprintf(port, sizeof port, "%d", address->port);
    answer.failed = getaddrinfo(address->host, port, &hints, &answer.all);
    answer.error = errno;
    return answer;
}

bool resolve_at_once(const struct redis_address *address, struct addrinfo **all)
{
    struct answer answer = {.all = NULL};

    if (address->host[0])
        answer = ask(address, AI_NUMERICHOST | AI_NUMERICSERV);
    *all = answer.failed ? NULL : answer.all;
    return !answer.failed;
}

int resolve(const struct redis_address *address, struct addrinfo **all, struct error *e)
{
    struct answer answer;
    char name[REDIS_NAME_SIZE];

    if (resolve_at_once(address, all))
        return 0;
    answer = ask(address, AI_ADDRCONFIG | AI_NUMERICSERV);
    *all = answer.failed ? NULL : answer.all;
    if (!answer.failed)
        return 0;
    redis_address_format(address, name, sizeof name);
    return error_set(e, WEIR_EUNREACHABLE, "redis %s: cannot find the host: %s; check its name", name,
                     answer.failed == EAI_SYSTEM ? strerror(answer.error) : gai_strerror(answer.failed));
}

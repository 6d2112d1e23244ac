#include "tests/client.h"

#include <signal.h>

#include "tests/test.h"

struct server server;
struct weir *w;
struct redis *redis;

int client_start_server(void **state)
{
    server_start(&server, false);
    server_hold_clock(&server);
    return 0;
}

int client_start(void **state)
{
    client_start_server(state);
    w = weir_new(server.url, NULL);
    assert_non_null(w);
    return 0;
}

int client_start_redis(void **state)
{
    struct redis_address address;
    struct error e;

    client_start_server(state);
    assert_int_equal(redis_address_parse(server.url, &address, &e), 0);
    redis = redis_new(&address);
    assert_non_null(redis);
    return 0;
}

int client_stop(void **state)
{
    client_end(state);
    redis_free(redis);
    server_stop(&server);
    return 0;
}

int client_flush(void **state)
{
    if (server.pid)
        kill(server.pid, SIGCONT);
    else
        server_restart(&server);
    server_do(&server, "FLUSHALL");
    return 0;
}

int client_begin(void **state)
{
    client_flush(state);
    w = weir_new(server.url, NULL);
    assert_non_null(w);
    return 0;
}

int client_end(void **state)
{
    weir_free(w);
    w = NULL;
    return 0;
}

void client_send(const char *command, const char *key, const char *a, const char *b)
{
    server_do(&server, command, textf("weir:{0}:%s", key), a, b);
}

struct rule_set client_rules(const char *text)
{
    const char *words[RULES_MAX + 1];
    char copy[1024], *rest = copy;
    struct rule_set set;
    struct error error;
    size_t count = 0;

    snprintf(copy, sizeof copy, "%s", text);
    while (rest && count <= RULES_MAX)
        words[count++] = strsep(&rest, " ");
    if (rule_set_parse(words, count, &set, &error) < 0)
        fail_msg("%s: %s", text, error.text);
    return set;
}

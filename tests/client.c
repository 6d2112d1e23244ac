#include "tests/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

struct server server;
struct weir *w;

int client_start(void **state)
{
    (void)state;
    server_start(&server, false);
    w = weir_new(server.url, NULL);
    assert_non_null(w);
    return 0;
}

int client_stop(void **state)
{
    (void)state;
    weir_free(w);
    server_stop(&server);
    return 0;
}

int client_flush(void **state)
{
    (void)state;
    free(server_ask(&server, "FLUSHALL", NULL));
    return 0;
}

#include "tests/scene_client.h"

int scene_start_client(void **state)
{
    turns_start(state);
    server = turns.server;
    server_hold_clock(&server);
    w = weir_new(turns.server.url, NULL);
    assert_non_null(w);
    return 0;
}

int scene_stop_client(void **state)
{
    weir_free(w);
    return turns_stop(state);
}

#include "tests/scene_client.h"

#include "queue/inspect/job_list.h"

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

const char *scene_cursor(const char *words)
{
    static json_t *cursor;

    json_decref(cursor);
    cursor = job_cursor_seal(words);
    return json_string_value(cursor);
}

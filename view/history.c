#include "view/history.h"

/* Microseconds to seconds, in place. */
static void make_time(json_t *object, const char *member)
{
    json_object_set_new(object, member, json_seconds(answer_int(object, member)));
}

/* [us, n] */
static void make_start(json_t *start)
{
    json_array_set_new(start, 0, json_seconds(answer_int_at(start, 0)));
}

int view_history(struct weir *w, const struct history_call *call, json_t **doc)
{
    json_t *slot, *start;
    size_t i;
    int status = history_ask(w, -1, call, doc);

    if (status != 0)
        return status;
    make_time(*doc, "now");
    make_time(*doc, "step");
    json_object_del(*doc, "partitions");
    json_array_foreach(json_object_get(*doc, "slots"), i, slot)
    {
        make_time(slot, "at");
    }
    json_array_foreach(json_object_get(*doc, "starts_now"), i, start)
    {
        make_start(start);
    }
    return 0;
}

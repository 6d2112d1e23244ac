#include "view/history.h"

/* Turns microseconds into seconds, in place. */
static void make_time(json_t *object, const char *member)
{
    json_object_set_new(object, member, json_seconds(answer_int(object, member)));
}

/* Makes seconds of the times with which the lists of a list begin. */
static void make_firsts(json_t *list)
{
    json_t *row;
    size_t i;

    json_array_foreach(list, i, row)
        json_array_set_new(row, 0, json_seconds(answer_int_at(row, 0)));
}

int view_history(struct weir *w, const struct history_call *call, json_t **doc)
{
    json_t *slot;
    size_t i;
    int status = history_ask(w, -1, call, doc);

    if (status != 0)
        return status;
    make_time(*doc, "now");
    make_time(*doc, "step");
    json_object_del(*doc, "partitions");
    json_array_foreach(json_object_get(*doc, "slots"), i, slot)
        make_time(slot, "at");
    make_firsts(json_object_get(*doc, "starts_now"));
    make_firsts(json_object_get(*doc, "wasted_now"));
    return 0;
}

#include "view/pause.h"

#include "queue/limits/limits.h"
#include "view/format.h"
#include "view/output.h"
#include "view/text.h"

json_t *pause_document(const json_t *pause)
{
    int64_t until_us = answer_int(pause, "until");

    if (!json_is_object(pause))
        return json_null();
    return json_pack("{s:o, s:o, s:o}", "since", json_since(answer_int(pause, "since")), "until",
                     until_us >= PAUSED_ENDLESS_US ? json_null() : json_seconds(until_us), "reason",
                     text_word(answer_text(pause, "reason")));
}

json_t *pausing_document(const char *name, const json_t *answer)
{
    return json_pack("{s:o, s:o, s:o}", "name", text_word(name), "paused",
                     pause_document(json_object_get(answer, "pause")), "before",
                     pause_document(json_object_get(answer, "before")));
}

json_t *pausing_key_document(const char *limit, const char *key, const json_t *answer)
{
    json_t *doc = pausing_document(limit, answer);

    if (doc && key)
        json_object_set_new(doc, "key", text_word(key));
    return doc;
}

void pause_put(FILE *to, const json_t *doc, int64_t now_us)
{
    const char *reason = answer_text(doc, "reason");
    const json_t *until = json_object_get(doc, "until");
    char clock[PHRASE_SIZE] = "an unknown time";

    if (json_number_value(json_object_get(doc, "since")) > 0)
        format_clock(now_us, json_us(json_object_get(doc, "since")), clock);
    output_to(to, "since %s", clock);
    if (json_is_number(until))
        output_to(to, " until %s", format_clock(now_us, json_us(until), clock));
    output_to(to, "%s%s", *reason ? ": " : "", reason);
}

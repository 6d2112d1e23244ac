#include "tests/slots.h"

#include "tests/test.h"

/* False: the line is not of a start. */
static bool read_start(const char *line, struct slot *slot)
{
    const char *type = strstr(line, "\"type\":\""), *id = strstr(line, "\"id\":\"j");
    long long at_us, start_us;

    if (sscanf(line, "{\"slot\":%lld,\"start\":%lld,", &at_us, &start_us) != 2)
        return false;
    fail_if(!type || sscanf(type, "\"type\":\"%15[^\"]", slot->type) != 1 || !id, "the trace says: %s", line);
    fail_if(start_us < at_us, "started before its slot: %s", line);
    slot->at_us = at_us;
    slot->job = atoi(id + strlen("\"id\":\"j"));
    return true;
}

static int by_slot(const void *a, const void *b)
{
    const struct slot *x = a, *y = b;

    return x->at_us != y->at_us ? (x->at_us > y->at_us) - (x->at_us < y->at_us) : x->job - y->job;
}

struct slots slots_read(struct stage *s, const char *name)
{
    struct slots slots = {NULL, 0};
    char line[512];
    FILE *f;

    assert_non_null(f = fopen(textf("%s/%s", s->server.folder, name), "r"));
    while (fgets(line, sizeof line, f)) {
        if (slots.count % 1024 == 0)
            slots.at = realloc(slots.at, (size_t)(slots.count + 1024) * sizeof *slots.at);
        assert_non_null(slots.at);
        slots.count += read_start(line, &slots.at[slots.count]);
    }
    fclose(f);
    qsort(slots.at, (size_t)slots.count, sizeof *slots.at, by_slot);
    return slots;
}

void slots_free(struct slots *slots)
{
    free(slots->at);
    *slots = (struct slots){NULL, 0};
}

static bool counts(const struct slot *slot, const char *types, int64_t since_us)
{
    return strchr(types, *slot->type) && slot->at_us >= since_us;
}

int slots_most_in_a_second(const struct slots *slots, const char *types, int64_t since_us)
{
    int most = 0;

    for (int last = 0, first = 0, n = 0; last < slots->count; last++) {
        n += counts(&slots->at[last], types, since_us);
        for (; slots->at[first].at_us <= slots->at[last].at_us - SECOND; first++)
            n -= counts(&slots->at[first], types, since_us);
        most = n > most ? n : most;
    }
    return most;
}

int slots_overtaken(const struct slots *slots)
{
    int overtaken = 0;

    for (int i = 0, last = 0; i < slots->count; i++)
        if (slots->at[i].job < last)
            overtaken++;
        else
            last = slots->at[i].job;
    return overtaken;
}

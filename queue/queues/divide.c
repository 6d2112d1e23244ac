#include "queue/queues/divide.h"

#include "core/client/answer.h"
#include "core/script/script.h"

struct found {
    int64_t count; /* 0: never set */
    bool used;
};

/* Asks a partition, or tells it how many there are; count 0: only looks. */
static int ask(struct weir *w, int p, int count, struct found *found)
{
    json_t *answer;
    struct args a = {0};
    int status = client_at(w, p);

    if (status)
        return status;
    script_begin(&a, "divide", w->prefix, -1);
    if (count)
        args_add_int(&a, count);
    else
        args_add(&a, "");
    status = client_ask(w, "divide", &a, &answer);
    *found = (struct found){answer_int(answer, "count"), json_is_true(json_object_get(answer, "used"))};
    json_decref(answer);
    return status;
}

static int refuse(struct weir *w, const struct found *found)
{
    char name[PREFIX_SIZE];

    partition_namespace(w->prefix, name);
    if (found->count)
        return error_set(
            &w->error, WEIR_ECONFIG,
            "namespace %s: has %d partitions, as was said before its first use; use another namespace", name,
            (int)found->count);
    return error_set(&w->error, WEIR_ECONFIG,
                     "namespace %s: is in use with one partition; use another namespace", name);
}

/* Writes the number to the last partition first: while partition 0 does not know, nothing goes to the others. */
static int write_all(struct weir *w, int count)
{
    struct found found = {0};
    int status = 0;

    for (int p = count - 1; status == 0 && p >= 0; p--) {
        status = ask(w, p, count, &found);
        if (status == 0 && found.count != count)
            status = refuse(w, &found);
    }
    return status;
}

int divide(struct weir *w, int count, bool *was)
{
    struct found found;
    int status = ask(w, 0, 0, &found);

    *was = status == 0 && (found.count ? found.count : 1) == count && (found.count || found.used);
    if (status == 0 && found.count && found.count != count)
        return refuse(w, &found);
    if (status == 0 && found.used && count > 1)
        return refuse(w, &found);
    return status || count == 1 ? status : write_all(w, count);
}

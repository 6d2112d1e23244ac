#include "queue/inspect/order.h"

#include "core/client/answer.h"
#include "core/script/script.h"

struct order {
    const char *instance, *word;
};

static int order_here(struct weir *w, void *arg)
{
    const struct order *order = arg;
    json_t *answer;
    struct args a;
    int status;

    args_init(&a);
    script_begin(&a, "worker_order", w->prefix, -1);
    args_add(&a, order->instance);
    args_add(&a, order->word);
    status = client_ask(w, "worker_order", &a, &answer);
    json_decref(answer);
    return status;
}

int worker_order(struct weir *w, const char *instance, const char *word)
{
    struct order order = {instance, word};

    return client_change_all(w, order_here, &order);
}

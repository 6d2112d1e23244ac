#include "queue/inspect/order.h"

#include "core/client/answer.h"

static int order_here(struct weir *w, void *words)
{
    json_t *answer;
    int status = client_ask_words(w, -1, "worker_order", words, &answer);

    json_decref(answer);
    return status;
}

int worker_order(struct weir *w, const char *instance, const char *word)
{
    return client_change_all(w, order_here, (void *)ASK_WORDS(instance, word));
}

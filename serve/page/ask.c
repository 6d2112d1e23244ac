/* Asks before something is destroyed: what, and how many. The query: do= one of the deeds below, name=, back=. */
#include <stdio.h>
#include <string.h>

#include "queue/batch/batch.h"
#include "queue/queues/queues.h"
#include "serve/page/data.h"
#include "serve/page/parts.h"
#include "view/format.h"

/* What it concerns, as a phrase; "": nothing more is known. A failure is in p->w->error. */
static int about_queue(struct page *p, const char *name, char out[PHRASE_SIZE])
{
    struct queue_jobs jobs;
    int status = queue_count(p->w, -1, name, NULL, &jobs);

    if (status == 0)
        counted(jobs.waiting + jobs.parked, "job", out);
    return status;
}

static int about_limit(struct page *p, const char *name, char out[PHRASE_SIZE])
{
    const struct limits *limits = data_limits(p, name);
    size_t count;

    if (!limits)
        return p->e->status;
    limits_holds(limits, name, &count);
    counted((int64_t)count, "type", out);
    return limits_find(limits, name)
               ? 0
               : error_set(&p->w->error, WEIR_ENOTFOUND, "limit %.128s: there is none", name);
}

static int about_batch(struct page *p, const char *name, char out[PHRASE_SIZE])
{
    struct batch_change change;
    int status = batch_cancel(p->w, name, true, &change);

    if (status == 0)
        counted(change.left, "job", out);
    return status;
}

static int about_worker(struct page *p, const char *name, char out[PHRASE_SIZE])
{
    const struct status *s = data_status(p);

    for (size_t i = 0; s && i < s->worker_count; i++)
        if (strcmp(s->workers[i].name, name) == 0) {
            counted(s->workers[i].running, "job", out);
            return 0;
        }
    return s ? error_set(&p->w->error, WEIR_ENOTFOUND, "worker %.128s: there is none", name) : p->e->status;
}

static const struct deed {
    const char *name, *title;   /* title: what stands before the name of the thing */
    const char *means;          /* behind the count */
    const char *before, *after; /* the address to post to, around the name */
    const char *button;
    int (*about)(struct page *p, const char *name, char out[PHRASE_SIZE]); /* NULL: one thing */
} deeds[] = {
    {"purge", "Purge queue",
     "in it are removed, those that wait and those in its lanes. Jobs that run go on.", "/api/queues/",
     "/purge", "Remove them", about_queue},
    {"rate-remove", "Remove limit", "held by it then run without it, as fast as workers can.", "/api/rates/",
     "/remove", "Remove the limit", about_limit},
    {"job-cancel", "Cancel job", "It ends without running; when it runs, its worker is asked to stop it.",
     "/api/jobs/", "/cancel", "Cancel it", NULL},
    {"dead-remove", "Remove dead job", "It is gone for good, with its payload and its reason.", "/api/dead/",
     "/remove", "Remove it", NULL},
    {"batch-cancel", "Cancel batch", "of it that have not ended never run. Jobs that run go on.",
     "/api/batches/", "/cancel", "Cancel them", about_batch},
    {"schedule-remove", "Remove schedule", "It fires no more. Jobs that it has enqueued stay.",
     "/api/schedules/", "/remove", "Remove it", NULL},
    {"worker-stop", "Stop worker", "that run there may end first; what does not end in time is handed back.",
     "/api/workers/", "/stop", "Stop it", about_worker},
};

static const struct deed *find_deed(const char *name)
{
    for (size_t i = 0; i < sizeof deeds / sizeof *deeds; i++)
        if (strcmp(deeds[i].name, name) == 0)
            return &deeds[i];
    return NULL;
}

static void write_question(struct page *p, const struct deed *deed, const char *name, const char *about)
{
    char back[1024];

    query_value(p->r->query, "back", back, sizeof back);
    if (back[0] != '/' || strchr("/\\", back[1] ? back[1] : '-'))
        strcpy(back, "/");
    html(p->h, "<h1>%r <bdi>%s</bdi>?</h1><p class=\"note warning\">", deed->title, name);
    if (*about)
        html(p->h, "<b>%s</b> ", about);
    html(p->h,
         "%r</p><form class=\"deeds\" method=\"post\" action=\"%r%u%r\"><input type=\"hidden\" name=\"back\" "
         "value=\"%s\">"
         "<button class=\"danger main\">%r</button><a class=\"button\" href=\"%s\">No, go back</a></form>",
         deed->means, deed->before, name, deed->after, back, deed->button, back);
}

unsigned page_ask(struct page *p, const char *unused)
{
    char word[32], name[512], about[PHRASE_SIZE] = "";
    const struct deed *deed;

    (void)unused;
    query_value(p->r->query, "do", word, sizeof word);
    query_value(p->r->query, "name", name, sizeof name);
    deed = find_deed(word);
    if (!deed || !p->r->actions)
        return page_not_found(p, "action", word);
    if (deed->about && deed->about(p, name, about) < 0)
        return page_failed(p, p->w->error.status ? &p->w->error : p->e);
    snprintf(p->title, sizeof p->title, "%s %.100s?", deed->title, name);
    write_question(p, deed, name, about);
    return 200;
}

/* Asks before something is destroyed: what, and how many. The query: do= one of the questions below, name=, back=. */
#include <stdio.h>
#include <string.h>

#include "queue/batch/batch.h"
#include "queue/inspect/job_act.h"
#include "queue/queues/queues.h"
#include "serve/page/parts.h"
#include "view/format.h"

#define ADDRESS_SIZE 8192

struct question;

/* What it concerns; a failure is in p->w->error. */
struct concerns {
    char text[PHRASE_SIZE]; /* "3 jobs"; "": the thing itself alone */
    int64_t count;
};

static int about_queue(struct page *p, const struct question *question, const char *name, struct concerns *c)
{
    struct queue_jobs jobs;
    int status = queue_count(p->w, -1, name, NULL, &jobs);

    (void)question;
    if (status == 0)
        counted(c->count = jobs.waiting + jobs.parked, "job", c->text);
    return status;
}

static int about_limit(struct page *p, const struct question *question, const char *name, struct concerns *c)
{
    const struct limits *limits = data_limits(p, name);
    size_t count;

    (void)question;
    if (limits && !limits_find(limits, name) && data_is_outdated(p))
        limits = data_limits(p, name);
    if (!limits)
        return p->e->status;
    limits_holds(limits, name, &count);
    counted((int64_t)count, "type", c->text);
    return limits_find(limits, name)
               ? 0
               : error_set(&p->w->error, WEIR_ENOTFOUND, "limit %.128s: there is none", name);
}

static int about_batch(struct page *p, const struct question *question, const char *name, struct concerns *c)
{
    struct batch_change change;
    int status = batch_cancel(p->w, name, true, &change);

    (void)question;
    if (status == 0)
        counted(change.left, "job", c->text);
    return status;
}

static int about_worker(struct page *p, const struct question *question, const char *name, struct concerns *c)
{
    const struct status *s = data_status(p);

    (void)question;
    for (size_t i = 0; s && i < s->worker_count; i++)
        if (strcmp(s->workers[i].name, name) == 0) {
            counted(s->workers[i].running, "job", c->text);
            return 0;
        }
    return s ? error_set(&p->w->error, WEIR_ENOTFOUND, "worker %.128s: there is none", name) : p->e->status;
}

static int about_jobs(struct page *p, const struct question *question, const char *search,
                      struct concerns *c);

static const struct question {
    const char *name, *title;   /* title: what stands before the name of the thing */
    const char *means;          /* behind the count */
    const char *before, *after; /* the address to post to, around the name */
    const char *button;
    int (*about)(struct page *p, const struct question *question, const char *name,
                 struct concerns *c); /* NULL: one thing */
    const char *action; /* done to all jobs that a search is for, which is the name; NULL: to the thing */
    bool names_reasons; /* it is done to dead jobs alone */
} questions[] = {
    {"purge", "Purge queue",
     "in it are removed, those that wait and those in its lanes. Jobs that run go on.", "/api/queues/",
     "/purge", "Remove them", about_queue, NULL, false},
    {"rate-remove", "Remove limit", "held by it then run without it, as fast as workers can.", "/api/rates/",
     "/remove", "Remove the limit", about_limit, NULL, false},
    {"job-cancel", "Cancel job", "It ends without running; when it runs, its worker is asked to stop it.",
     "/api/jobs/", "/cancel", "Cancel it", NULL, NULL, false},
    {"dead-remove", "Remove dead job", "It is gone for good, with its payload and its reason.", "/api/dead/",
     "/remove", "Remove it", NULL, NULL, false},
    {"batch-cancel", "Cancel batch", "of it that have not ended never run. Jobs that run go on.",
     "/api/batches/", "/cancel", "Cancel them", about_batch, NULL, false},
    {"schedule-remove", "Remove schedule", "It fires no more. Jobs that it has enqueued stay.",
     "/api/schedules/", "/remove", "Remove it", NULL, NULL, false},
    {"worker-stop", "Stop worker", "that run there may end first; what does not end in time is handed back.",
     "/api/workers/", "/stop", "Stop it", about_worker, NULL, false},
    {"jobs-run", "Run now all jobs like", "are put first in line. Their limits still hold them.",
     "/api/jobs/actions", "", "Run them", about_jobs, "run", false},
    {"jobs-retry", "Retry all dead jobs like", "go back to their queues, with all of their attempts.",
     "/api/jobs/actions", "", "Retry them", about_jobs, "retry", true},
    {"jobs-cancel", "Cancel all jobs like",
     "never run. Of those that run, the workers are asked to stop them.", "/api/jobs/actions", "",
     "Cancel them", about_jobs, "cancel", false},
    {"jobs-remove", "Remove all dead jobs like", "are gone for good, with their payloads and their reasons.",
     "/api/jobs/actions", "", "Remove them", about_jobs, "remove", true},
};

static int about_jobs(struct page *p, const struct question *question, const char *search, struct concerns *c)
{
    struct job_search s = {.count = 0};
    int status = job_search_read(&s, search, &p->w->error);

    if (status == 0)
        status = job_actions_count(p->w, -1, &s, question->action, &c->count);
    if (status == 0)
        counted(c->count, "job", c->text);
    return status;
}

static const struct question *find_question(const char *name)
{
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++)
        if (strcmp(questions[i].name, name) == 0)
            return &questions[i];
    return NULL;
}

/* Reads where the question leads back to: a path of this server. */
static void read_back(struct page *p, char back[ADDRESS_SIZE])
{
    query_value(p->r->query, "back", back, ADDRESS_SIZE);
    if (back[0] != '/' || strchr("/\\", back[1] ? back[1] : '-'))
        strcpy(back, "/");
}

static void write_form(struct page *p, const struct question *question, const char *name,
                       const struct concerns *c)
{
    char back[ADDRESS_SIZE];

    read_back(p, back);
    html(p->h,
         "<form class=\"buttons\" method=\"post\" action=\"%r%u%r\"><input type=\"hidden\" name=\"back\" "
         "value=\"%s\">",
         question->before, question->action ? "" : name, question->after, back);
    if (question->action)
        html(p->h,
             "<input type=\"hidden\" name=\"search\" value=\"%s\"><input type=\"hidden\" name=\"action\" "
             "value=\"%r\">",
             name, question->action);
    if (c->count > 0) /* not to more than are named here */
        html(p->h, "<input type=\"hidden\" name=\"count\" value=\"%i\">", c->count);
    if (!question->action || c->count > 0)
        html(p->h, "<button class=\"%rmain\">%r</button>", ask_destroys(question->name) ? "danger " : "",
             question->button);
    html(p->h, "<a class=\"button\" href=\"%s\">No, go back</a></form>", back);
}

static int write_reasons(struct page *p, const char *search)
{
    struct job_search s = {.count = 0};
    int status = job_search_read(&s, search, &p->w->error);

    return status < 0 ? status : put_dead_reasons(p, &s);
}

unsigned page_ask(struct page *p, const char *unused)
{
    char word[32], name[JOB_SEARCH_SIZE];
    struct concerns concerns = {.text = ""};
    const struct question *question;

    (void)unused;
    query_value(p->r->query, "do", word, sizeof word);
    query_value(p->r->query, "name", name, sizeof name);
    question = find_question(word);
    if (!question || !p->r->actions)
        return page_not_found(p, "action", word);
    if (question->about && question->about(p, question, name, &concerns) < 0)
        return page_failed(p, p->w->error.status ? &p->w->error : p->e);
    snprintf(p->title, sizeof p->title, "%s %.100s?", question->title, name);
    html(p->h, "<h1>%r <bdi>%s</bdi>?</h1><p class=\"note warning\">", question->title, name);
    if (*concerns.text)
        html(p->h, "<b>%s</b> ", concerns.text);
    html(p->h, "%r</p>", question->means);
    if (question->names_reasons && concerns.count > 0 && write_reasons(p, name) < 0)
        return page_failed(p, &p->w->error);
    write_form(p, question, name, &concerns);
    return 200;
}

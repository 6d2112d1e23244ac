/* The jobs that a search is for: its address can be kept, a page is looked for a moment and may be gone on with, and what matches
 * can be changed as a whole once it was counted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "queue/inspect/job_search.h"
#include "serve/page/parts.h"
#include "view/jobs.h"
#include "view/text.h"

#define ROWS 50

/* ---- Looking */

static void add_args(json_t *rows, const json_t *jobs)
{
    for (size_t i = 0; i < json_array_size(rows); i++) {
        char *args = text_of(text_bytes(json_object_get(json_array_get(jobs, i), "args")));

        if (args)
            json_object_set_new(json_array_get(rows, i), "args", json_string(args));
        free(args);
    }
}

int jobs_look(struct page *p, const struct job_search *search, const char *cursor, int64_t rows,
              struct jobs_found *found)
{
    const struct job_bounds most = {
        .looked_at = INT64_MAX, .jobs = rows, .until_us = clock_mono_us() + JOB_LOOK_US};
    json_t *page;
    int status = job_list_page(p->w, -1, search, *cursor ? cursor : NULL, &most, &page);

    if (status < 0)
        return status;
    found->rows = jobs_document(json_object_get(page, "jobs"));
    add_args(found->rows, json_object_get(page, "jobs"));
    found->looked_at = answer_int(page, "looked_at");
    found->of = answer_int(page, "of");
    p->now_us = answer_int(page, "now") > 0 ? answer_int(page, "now") : p->now_us;
    found->next = json_incref(json_object_get(page, "next"));
    json_decref(page);
    return 0;
}

void jobs_found_free(struct jobs_found *found)
{
    json_decref(found->rows);
    json_decref(found->next);
}

void put_no_search(struct page *p)
{
    html(p->h, "<p class=\"note wrong\" role=\"alert\"><b>Not a search:</b> %s</p>", p->w->error.text);
}

/* With --hide-args nothing may be asked of what is hidden, word by word. */
static int check_hidden(struct page *p, const struct job_search *search)
{
    for (size_t i = 0; p->r->hide_args && i < search->count; i++) {
        const char *field = search->text + search->terms[i].field;

        if (strncmp(field, "args.", 5) == 0 || strcmp(field, "key") == 0 || strcmp(field, "reason") == 0)
            return error_set(&p->w->error, WEIR_EINPUT,
                             "%.40s: jobs are not searched by it here: this server runs with --hide-args",
                             field);
    }
    return 0;
}

/* ---- What is shown */

static void write_row(struct page *p, const json_t *job)
{
    html(p->h, "<tr>");
    put_doc_job(p, job, json_text_of(job, "state"));
    put_doc_link(p, "type", "types", job, "type");
    put_doc_state(p, "state", job);
    put_doc_secret(p, "key", job, "key");
    put_doc_text(p, "queue", job, "queue");
    put_doc_count(p, "attempts", job, "attempts");
    put_doc_time(p, "enqueued", job, "enqueued_at");
    put_doc_time(p, "since", job, json_object_get(job, "start") ? "start" : "since");
    put_doc_secret(p, "args", job, "args");
    put_doc_secret(p, "reason", job, "reason");
    html(p->h, "</tr>");
}

static void write_rows(struct page *p, const struct job_search *search, const struct jobs_found *found)
{
    put_rows(p, "", "Job|Type|State|Key|Queue|#Attempts|#Enqueued|#Since, due|Args|Reason", found->rows,
             write_row,
             found->next ? "None so far."
             : job_search_has(search, "state", "finished") || job_search_value(search, "id")
                 ? "No job is like that."
                 : "No job is like that. <code>state:finished</code> finds those that are done and kept.");
}

static void write_search(struct page *p, const char *q)
{
    html(p->h,
         "<form class=\"filter\" action=\"/jobs\"><label>Jobs like <input type=\"search\" name=\"q\" "
         "value=\"%s\" class=\"mono\" "
         "spellcheck=\"false\" autocomplete=\"off\"></label><button>Find</button></form>"
         "<details class=\"help\" id=\"help\"><summary>How to search</summary><p><code>type:mail</code> "
         "<code>queue:bulk</code> "
         "<code>batch:news</code> <code>state:parked,dead</code> <code>key:42</code> "
         "<code>args.business_id:7</code> "
         "<code>reason:timeout</code> <code>enqueued:&gt;1h</code> <code>enqueued:yesterday</code> "
         "<code>died:&lt;10m</code> "
         "<code>due:&lt;10m</code>: all must hold. A "
         "value with blanks stands in "
         "double quotes. A word alone is the id of a job.</p></details>",
         q);
}

/* Counts the bytes of the term at which a search stands; blanks in quotes are part of it. */
static size_t term_length(const char *q)
{
    bool quoted = false;
    size_t n = 0;

    for (; q[n] && (quoted || q[n] != ' '); n++) {
        if (quoted && q[n] == '\\' && q[n + 1])
            n++;
        else
            quoted ^= q[n] == '"';
    }
    return n;
}

/* Writes a link to the same search with another value of that field, "state:"; on: it has this value, and the link takes it away. */
static void put_chip(struct page *p, const char *q, const char *field, const char *value, bool on)
{
    char to[2 * JOB_SEARCH_SIZE];
    size_t len = 0;

    for (size_t n; *(q += strspn(q, " ")); q += n) {
        n = term_length(q);
        if (strncmp(q, field, strlen(field)) != 0)
            len += (size_t)snprintf(to + len, sizeof to - len, "%.*s ", (int)n, q);
    }
    snprintf(to + len, sizeof to - len, "%s%s", on ? "" : field, on ? "" : value);
    html(p->h, "<a href=\"/jobs?q=%u\"%r><bdi>%s</bdi></a> ", to, on ? " aria-current=\"true\"" : "", value);
}

#define CHIPS_MOST 6 /* types */

/* Writes links that narrow a search: to each state, and to the types that it has found, or away from its own. */
static void write_chips(struct page *p, const char *q, const struct job_search *search, const json_t *rows)
{
    static const char *const states[] = {"waiting",   "parked", "held", "aside",   "running",
                                         "scheduled", "retry",  "dead", "finished"};
    const char *type = job_search_value(search, "type"), *shown[CHIPS_MOST];
    size_t count = 0;

    html(p->h, "<p class=\"chips\">");
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        put_chip(p, q, "state:", states[i], job_search_has(search, "state", states[i]));
    html(p->h, "<br>");
    if (type)
        put_chip(p, q, "type:", type, true);
    for (size_t i = 0; !type && i < json_array_size(rows) && count < CHIPS_MOST; i++) {
        const char *found = json_text_of(json_array_get(rows, i), "type");
        bool again = !*found;

        for (size_t k = 0; k < count; k++)
            again = again || strcmp(shown[k], found) == 0;
        if (again)
            continue;
        shown[count++] = found;
        put_chip(p, q, "type:", found, false);
    }
    html(p->h, "</p>");
}

/* True when the search may find dead jobs, or (dead false) others, which have not ended. */
static bool finds(const struct job_search *search, bool dead)
{
    bool any = true;

    if (job_search_value(search, dead ? "due<" : "died<") ||
        job_search_value(search, dead ? "due>" : "died>"))
        return false;
    for (size_t i = 0; i < search->count; i++) {
        const char *state = search->text + search->terms[i].value;

        if (strcmp(search->text + search->terms[i].field, "state") != 0)
            continue;
        if (strcmp(state, "dead") == 0 ? dead : !dead && strcmp(state, "finished") != 0)
            return true;
        any = false;
    }
    return any;
}

/* Writes what can be done to all jobs that match: not to all there are, and nothing where none was found. */
static void write_buttons(struct page *p, const char *q, const struct job_search *search,
                          const struct jobs_found *found)
{
    if (!p->r->actions || search->count == 0 || json_array_size(found->rows) == 0)
        return;
    html(p->h, "<div class=\"buttons\"><span class=\"pale\">All that match:</span>");
    if (finds(search, false)) {
        put_ask(p, "Run now", "jobs-run", q);
        put_ask(p, "Cancel", "jobs-cancel", q);
    }
    if (finds(search, true)) {
        put_ask(p, "Retry the dead", "jobs-retry", q);
        put_ask(p, "Remove the dead", "jobs-remove", q);
    }
    html(p->h, "</div>");
}

unsigned page_jobs(struct page *p, const char *name)
{
    char q[JOB_SEARCH_SIZE], cursor[CURSOR_SIZE];
    struct job_search search = {.count = 0};
    struct jobs_found found = {.rows = NULL};
    int status;

    (void)name;
    query_value(p->r->query, "q", q, sizeof q);
    snprintf(p->title, sizeof p->title, "Jobs %.100s", q);
    html(p->h, "<h1>Jobs</h1>");
    write_search(p, q);
    status = job_search_read(&search, q, &p->w->error);
    if (status == 0)
        status = check_hidden(p, &search);
    if (status == 0)
        status = query_cursor(p, "at", cursor);
    if (status == 0)
        status = jobs_look(p, &search, cursor, ROWS, &found);
    if (status == 0) {
        write_chips(p, q, &search, found.rows);
        write_buttons(p, q, &search, &found);
        write_rows(p, &search, &found);
        html(p->h, "<div%r>", found.next && json_array_size(found.rows) == 0 ? " data-look-on" : "");
        put_way_on(p, &(struct way_on){found.looked_at, found.of, "/jobs?q=", q,
                                       "&amp;at=", json_string_value(found.next)});
        html(p->h, "</div>");
    } else if (status == WEIR_EINPUT) {
        put_no_search(p);
        status = 0;
    }
    jobs_found_free(&found);
    return status < 0 ? page_failed(p, &p->w->error) : 200;
}

/* The workers. */
#include "view/workers.h"

#include <stdio.h>
#include <string.h>

#include "serve/page/parts.h"
#include "view/json.h"

/* Writes "mail, bulk.*", behind "2, " where so many others have no name here. */
static void write_words(struct page *p, const char *label, int64_t others, const json_t *words)
{
    json_t *word;
    size_t i;

    html(p->h, "<td class=\"wide\" data-label=\"%r\"><span>", label);
    if (others > 0)
        html(p->h, "%n%r", others, json_array_size(words) ? ", " : "");
    json_array_foreach((json_t *)words, i, word)
        html(p->h, "%r<bdi>%t</bdi>", i ? ", " : "", json_string_value(word) ? json_string_value(word) : "");
    html(p->h, "</span></td>");
}

static void write_acts(struct page *p, const char *name, const char *state)
{
    html(p->h, "<td class=\"acts\">");
    if (name_is_valid(name, strlen(name))) {
        if (strcmp(state, "working") == 0)
            put_button(p, &(struct button){"Quiet", "worker", "/api/workers/", name, "/quiet", NULL, NULL});
        if (strncmp(state, "quiet", strlen("quiet")) == 0)
            put_button(p, &(struct button){"Resume", "worker", "/api/workers/", name, "/resume", NULL, NULL});
        if (strcmp(state, "working") == 0 || strncmp(state, "quiet", strlen("quiet")) == 0)
            put_ask(p, "Stop", "worker-stop", name);
    }
    html(p->h, "</td>");
}

static void write_row(struct page *p, const json_t *worker)
{
    const char *name = json_text_of(worker, "name");
    const json_t *ordered = json_object_get(worker, "ordered_at"),
                 *patterns = json_object_get(worker, "patterns");

    html(p->h, "<tr data-key=\"w-%s\"><th scope=\"row\" class=\"mono\"><bdi>%s</bdi></th>", name, name);
    html(p->h, "<td data-label=\"state\"><span>");
    put_state(p, json_text_of(worker, "state"));
    if (json_is_number(ordered)) {
        html(p->h, " since ");
        put_since(p, json_us(ordered));
    }
    html(p->h, "</span></td>");
    html(p->h, "<td class=\"wide\" data-label=\"process\"><span>%i on <bdi>%t</bdi></span></td>",
         json_int_of(worker, "pid"), json_text_of(worker, "host"));
    write_words(p, "queues", 0, json_object_get(worker, "serves"));
    write_words(p, "types", json_int_of(worker, "type_count") - (int64_t)json_array_size(patterns), patterns);
    put_cell(p, "running", false);
    html(p->h, "<span><a href=\"/jobs?q=worker%%3A%u\">%n</a> of %n</span></td>", name,
         json_int_of(worker, "running"), json_int_of(worker, "executors"));
    put_doc_time(p, "last heartbeat", worker, "seen_at");
    if (p->r->actions)
        write_acts(p, name, json_text_of(worker, "state"));
    html(p->h, "</tr>");
}

static void write_workers(struct page *p, const json_t *rows)
{
    put_rows(p, "", "Worker|State|Process|Queues|Types|#Running|#Last heartbeat|!Actions", rows, write_row,
             "No worker is alive: <code>weir worker</code> starts one.");
}

unsigned page_workers(struct page *p, const char *name)
{
    struct status status;
    int rc = status_workers(p->w, &status);
    json_t *rows = rc == 0 ? workers_document(&status) : NULL;

    (void)name;
    if (rc == 0) {
        p->now_us = status.now_us;
        snprintf(p->title, sizeof p->title, "Workers");
        html(p->h, "<h1>Workers <small>%n</small></h1>", (int64_t)json_array_size(rows));
        write_workers(p, rows);
    }
    json_decref(rows);
    status_free(&status);
    return rc < 0 ? page_failed(p, &p->w->error) : 200;
}

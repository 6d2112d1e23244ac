/* The batches, the newest first, and one. */
#include "view/batches.h"

#include <stdio.h>
#include <string.h>

#include "serve/page/parts.h"
#include "view/json.h"

#define ROWS 100

static void fill_parts(const json_t *b, struct part parts[5])
{
    int64_t running = json_int_of(b, "running"), left = json_int_of(b, "left");

    parts[0] = (struct part){"done", json_int_of(b, "done"), "done"};
    parts[1] = (struct part){"dead", json_int_of(b, "dead"), "dead"};
    parts[2] = (struct part){"cancelled", json_int_of(b, "cancelled"), "cancelled"};
    parts[3] = (struct part){"running", running, "running"};
    parts[4] = (struct part){"waiting", left - running, "left"};
}

static void write_row(struct page *p, const json_t *b)
{
    struct part parts[5];

    fill_parts(b, parts);
    html(p->h, "<tr data-key=\"b-%s\"><th scope=\"row\">", json_text_of(b, "name"));
    put_link(p, "batches", json_text_of(b, "name"));
    html(p->h, "</th>");
    put_doc_state(p, "state", b);
    html(p->h, "<td class=\"jobs\" data-label=\"jobs\"><div>");
    put_bar(p, parts, 5);
    put_legend(p, parts, 5);
    html(p->h, "</div></td>");
    put_doc_count(p, "total", b, "total");
    put_doc_time(p, "created", b, "created_at");
    put_doc_time(p, "ended", b, "ended_at");
    html(p->h, "</tr>");
}

unsigned page_batches(struct page *p, const char *name)
{
    int64_t from = query_number(p->r->query, "from", 0), count, shown = 0;
    json_t *rows;

    (void)name;
    if (view_batches(p->w, &rows) < 0)
        return page_failed(p, &p->w->error);
    count = (int64_t)json_array_size(rows);
    snprintf(p->title, sizeof p->title, "Batches");
    html(p->h, "<h1>Batches <small>%n</small></h1>", count);
    put_table(p, "", "Batch|State|Jobs|#Total|#Created|#Ended");
    for (int64_t i = from; i < count && shown < ROWS; i++, shown++)
        write_row(p, json_array_get(rows, (size_t)(count - 1 - i)));
    if (count == 0)
        put_none(p, "No batches: <code>weir enqueue --from FILE --batch NAME</code> makes one.");
    put_table_end(p);
    put_pager(p, "like", "", from, shown, count);
    json_decref(rows);
    return 200;
}

/* ---- One */

static void write_buttons(struct page *p, const char *name, const char *state)
{
    bool paused = strcmp(state, "paused") == 0;

    if (!p->r->actions || (strcmp(state, "running") != 0 && !paused))
        return;
    html(p->h, "<div class=\"buttons\">");
    put_pause(p, "batch", "/api/batches/", name, NULL, paused);
    put_ask(p, "Cancel", "batch-cancel", name);
    html(p->h, "</div>");
}

static void put_time_line(struct page *p, const char *name, const json_t *b, const char *member)
{
    if (!json_is_number(json_object_get(b, member)))
        return;
    put_line(p, name);
    put_start(p, json_us(json_object_get(b, member)), "-");
    put_line_end(p);
}

static void write_follower(struct page *p, const json_t *b)
{
    const json_t *then = json_object_get(b, "then");

    if (!json_is_object(then))
        return;
    put_line(p, "then");
    put_link(p, "types", json_text_of(then, "type"));
    html(p->h, " in queue <bdi>%s</bdi>, %r", json_text_of(then, "queue"),
         json_is_number(json_object_get(then, "enqueued_at")) ? "enqueued " : "when all have ended");
    if (json_is_number(json_object_get(then, "enqueued_at")))
        put_time(p, json_us(json_object_get(then, "enqueued_at")), "");
    put_line_end(p);
}

static void write_sheet(struct page *p, const json_t *b)
{
    const json_t *paused = json_object_get(b, "paused");

    html(p->h, "<section><h2>Progress</h2><dl class=\"sheet\">");
    put_line(p, "left");
    html(p->h, "%n of %n", json_int_of(b, "left"), json_int_of(b, "total"));
    if (json_int_of(b, "aside") > 0)
        html(p->h, ", %n set aside by a pause", json_int_of(b, "aside"));
    put_line_end(p);
    if (json_is_object(paused)) {
        const json_t *until = json_object_get(paused, "until");

        put_line(p, "paused");
        html(p->h, "since ");
        put_since(p, json_us(json_object_get(paused, "since")));
        if (json_is_number(until)) {
            html(p->h, " until ");
            put_time(p, json_us(until), "");
        }
        html(p->h, " <bdi>%s</bdi>", json_text_of(paused, "reason"));
        put_line_end(p);
    }
    put_line(p, "failed attempts");
    html(p->h, "%n", json_int_of(b, "failed"));
    put_line_end(p);
    put_line(p, strcmp(json_text_of(b, "state"), "ended") == 0 ? "ends on average" : "rate of ends");
    put_rate(p, json_number_value(json_object_get(b, "rate")));
    put_line_end(p);
    if (json_is_object(json_object_get(b, "waits_for"))) {
        put_line(p, "state");
        put_waits_document(p, json_object_get(b, "waits_for"));
        put_line_end(p);
    }
    put_time_line(p, "ends", b, "finish_at");
    put_time_line(p, "created", b, "created_at");
    put_time_line(p, "sealed", b, "sealed_at");
    put_time_line(p, "ended", b, "ended_at");
    write_follower(p, b);
    html(p->h, "</dl></section>");
}

unsigned page_batch(struct page *p, const char *name)
{
    struct part parts[5];
    json_t *b;

    if (view_batch(p->w, name, &b) < 0)
        return page_failed(p, &p->w->error);
    fill_parts(b, parts);
    snprintf(p->title, sizeof p->title, "Batch %s", name);
    html(p->h, "<p class=\"crumbs\"><a href=\"/batches\">Batches</a></p><h1><bdi>%s</bdi> <small>", name);
    put_state(p, json_text_of(b, "state"));
    html(p->h, "</small></h1>");
    put_bar(p, parts, 5);
    put_legend(p, parts, 5);
    write_buttons(p, name, json_text_of(b, "state"));
    write_sheet(p, b);
    html(p->h, "<p class=\"more\"><a href=\"/jobs?q=batch%%3A%u\">Its jobs</a></p>", name);
    json_decref(b);
    return 200;
}

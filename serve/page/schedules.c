/* The schedules, and one. */
#include "view/schedules.h"

#include <stdio.h>
#include <string.h>

#include "serve/page/parts.h"
#include "view/json.h"

#define LATE_US 2000000 /* so long after an occurrence a worker that is there has seen it */

static void write_state(struct page *p, const json_t *s)
{
    int64_t due_us = json_us(json_object_get(s, "due_at"));

    if (*json_text_of(s, "error")) {
        put_state(p, "wrong");
        html(p->h, ": %s", json_text_of(s, "error"));
    } else if (json_is_object(json_object_get(s, "paused"))) {
        put_state(p, "paused");
        html(p->h, " <bdi>%s</bdi>", json_text_of(json_object_get(s, "paused"), "reason"));
    } else if (due_us == 0) {
        put_state(p, "ended");
        html(p->h, ": never again; replace it with <code>weir schedule add</code>");
    } else {
        put_state(p, due_us <= p->now_us - LATE_US ? "waiting" : "ok");
        html(p->h, due_us <= p->now_us - LATE_US ? " for a worker" : "");
    }
}

static void write_buttons(struct page *p, const json_t *s)
{
    bool paused = json_is_object(json_object_get(s, "paused"));
    const char *name = json_text_of(s, "name");

    put_pause(p, "schedule", "/api/schedules/", name, NULL, paused);
    put_button(p, &(struct button){"Run", "schedule", "/api/schedules/", name, "/run", NULL, NULL});
    put_ask(p, "Remove", "schedule-remove", name);
}

static void write_row(struct page *p, const json_t *s)
{
    html(p->h,
         "<tr data-key=\"s-%s\"><th scope=\"row\"><a href=\"/schedules/%u\"><bdi>%s</bdi></a></th>"
         "<td class=\"wide\" data-label=\"when\"><span><code>%s</code> <small>%s</small></span></td>",
         json_text_of(s, "name"), json_text_of(s, "name"), json_text_of(s, "name"), json_text_of(s, "when"),
         json_text_of(s, "zone"));
    put_doc_link(p, "type", "types", s, "type");
    put_doc_text(p, "queue", s, "queue");
    put_doc_time(p, "next", s, "due_at");
    html(p->h, "<td class=\"wide\" data-label=\"state\"><span>");
    write_state(p, s);
    html(p->h, "</span></td>");
    if (p->r->actions) {
        html(p->h, "<td class=\"acts\">");
        write_buttons(p, s);
        html(p->h, "</td>");
    }
    html(p->h, "</tr>");
}

unsigned page_schedules(struct page *p, const char *name)
{
    json_t *rows;

    (void)name;
    if (view_schedules(p->w, &rows, &p->now_us) < 0)
        return page_failed(p, &p->w->error);
    snprintf(p->title, sizeof p->title, "Schedules");
    html(p->h, "<h1>Schedules <small>%n</small></h1>", (int64_t)json_array_size(rows));
    put_rows(p, "", "Schedule|When|Type|Queue|#Next|State|!Actions", rows, write_row,
             "No schedules: <code>weir schedule add NAME CRON TYPE</code> adds one.");
    json_decref(rows);
    return 200;
}

/* ---- One */

static void write_sheet(struct page *p, const json_t *s)
{
    const json_t *next = json_object_get(s, "next");

    html(p->h, "<section><h2>Schedule</h2><dl class=\"sheet\">");
    put_line(p, "state");
    write_state(p, s);
    put_line_end(p);
    put_line(p, "when");
    html(p->h, "<code>%s</code> <small>%s</small>", json_text_of(s, "when"), json_text_of(s, "zone"));
    put_line_end(p);
    put_line(p, "missed");
    html(p->h, "%s", json_text_of(s, "missed"));
    put_line_end(p);
    put_line(p, "type");
    put_link(p, "types", json_text_of(s, "type"));
    html(p->h, " in queue <bdi>%s</bdi>", json_text_of(s, "queue"));
    put_line_end(p);
    for (size_t i = 0; i < json_array_size(next); i++) {
        put_line(p, i == 0 ? "next" : "");
        put_time(p, json_us(json_array_get(next, i)), "");
        put_line_end(p);
    }
    html(p->h, "</dl></section>");
}

static void write_run(struct page *p, const json_t *run)
{
    const char *state = json_text_of(run, "state"), *outcome = json_text_of(run, "outcome");

    html(p->h, "<tr><th scope=\"row\">");
    put_time(p, json_us(json_object_get(run, "at")), "");
    html(p->h, "</th>");
    put_doc_job(p, run, state);
    html(p->h, "<td data-label=\"how\"><span>");
    put_state(p, *outcome ? outcome : *state ? state : "unknown");
    html(p->h, strcmp(state, "gone") == 0 ? ": done, cancelled or removed" : "");
    html(p->h, "</span></td>");
    put_doc_time(p, "since", run, "since");
    html(p->h, "</tr>");
}

unsigned page_schedule(struct page *p, const char *name)
{
    struct schedule_row row;
    json_t *s = NULL;
    int status = schedule_find(p->w, name, &row);

    if (status == 0 && row.status != 0) {
        p->w->error = row.why;
        status = row.status;
    }
    if (status == 0)
        status = view_schedule_runs(p->w, &row, &s);
    p->now_us = row.now_us;
    schedule_free(&row.s);
    if (status < 0)
        return page_failed(p, &p->w->error);
    snprintf(p->title, sizeof p->title, "Schedule %s", name);
    html(p->h, "<p class=\"crumbs\"><a href=\"/schedules\">Schedules</a></p><h1><bdi>%s</bdi></h1>", name);
    if (p->r->actions) {
        html(p->h, "<div class=\"buttons\">");
        write_buttons(p, s);
        html(p->h, "</div>");
    }
    write_sheet(p, s);
    put_rows(p, "Last runs", "Due|Job|How it ended|#Since", json_object_get(s, "runs"), write_run,
             "None yet. The last ten are kept.");
    html(p->h, "<p class=\"more\"><a href=\"/jobs?q=schedule%%3A%u\">Its jobs</a></p>", name);
    json_decref(s);
    return 200;
}

/* The schedules. */
#include "view/schedules.h"

#include <stdio.h>
#include <string.h>

#include "serve/page/parts.h"
#include "view/json.h"

#define LATE_US 2000000 /* so long after an occurrence a worker that is there has seen it */

static void write_state(struct page *p, const json_t *s)
{
    int64_t due_us = json_us(json_object_get(s, "due_at"));

    html(p->h, "<td class=\"wide\" data-label=\"state\"><span>");
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
    html(p->h, "</span></td>");
}

static void write_row(struct page *p, const json_t *s)
{
    html(p->h,
         "<tr data-key=\"s-%s\"><th scope=\"row\"><bdi>%s</bdi></th><td class=\"wide\" "
         "data-label=\"when\"><span>"
         "<code>%s</code> <small>%s</small></span></td>",
         json_text_of(s, "name"), json_text_of(s, "name"), json_text_of(s, "when"), json_text_of(s, "zone"));
    put_doc_link(p, "type", "types", s, "type");
    put_doc_text(p, "queue", s, "queue");
    put_doc_time(p, "next", s, "due_at");
    write_state(p, s);
    if (p->r->actions) {
        bool paused = json_is_object(json_object_get(s, "paused"));
        const char *name = json_text_of(s, "name");

        html(p->h, "<td class=\"acts\">");
        put_pause(p, "schedule", "/api/schedules/", name, NULL, paused);
        put_button(p, &(struct button){"Run", "schedule", "/api/schedules/", name, "/run", NULL, NULL});
        put_ask(p, "Remove", "schedule-remove", json_text_of(s, "name"));
        html(p->h, "</td>");
    }
    html(p->h, "</tr>");
}

unsigned page_schedules(struct page *p, const char *name)
{
    static const char *const columns[] = {
        "Schedule", "When", "Type", "Queue", "#Next", "State", "<span class=\"hidden\">Actions</span>"};
    json_t *rows;

    (void)name;
    if (view_schedules(p->w, &rows, &p->now_us) < 0)
        return page_failed(p, &p->w->error);
    snprintf(p->title, sizeof p->title, "Schedules");
    html(p->h, "<h1>Schedules <small>%n</small></h1>", (int64_t)json_array_size(rows));
    put_rows(p, "", columns, p->r->actions ? 7 : 6, rows, write_row,
             "No schedules: <code>weir schedule add NAME CRON TYPE</code> adds one.");
    json_decref(rows);
    return 200;
}

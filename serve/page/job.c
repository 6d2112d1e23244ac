/* One job: where it is, why it waits, what has happened to it, what it is. */
#include "view/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "queue/inspect/find_job.h"
#include "queue/inspect/job_list.h"
#include "queue/inspect/why.h"
#include "serve/page/parts.h"
#include "view/json.h"
#include "view/text.h"

#define BODY_MOST 65536 /* bytes that are shown */

/* ---- What has happened, the oldest first */

static void put_event(struct page *p, const char *state, const char *what, const json_t *at)
{
    html(p->h, "<li><i class=\"mark s-%r\"></i><b>%r</b> ", state, what);
    if (json_is_number(at))
        put_start(p, json_us(at), "");
}

static void put_reason(struct page *p, const char *reason)
{
    if (*reason) {
        html(p->h, "<br><small class=\"mono\">");
        put_secret(p, reason);
        html(p->h, "</small>");
    }
    html(p->h, "</li>");
}

static void put_worker_of(struct page *p, const json_t *failure)
{
    const json_t *worker = json_object_get(failure, "worker");

    if (*json_text_of(worker, "name"))
        html(p->h, " in worker <bdi>%s</bdi>", json_text_of(worker, "name"));
}

static void put_lasted(struct page *p, const char *what, const json_t *failure, const char *member)
{
    if (!json_has(failure, member))
        return;
    html(p->h, "%r", what);
    put_span(p, json_us(json_object_get(failure, member)));
}

static void put_times(struct page *p, const json_t *job, const char *member, const char *state,
                      const char *what)
{
    if (json_int_of(job, member) == 0)
        return;
    put_event(p, state, what, NULL);
    html(p->h, "%n times</li>", json_int_of(job, member));
}

static void write_past(struct page *p, const json_t *job)
{
    const json_t *failures = json_object_get(job, "failures");
    size_t died = strcmp(json_text_of(job, "state"), "dead") == 0; /* that it is dead says the last one */

    put_event(p, "waiting", "enqueued", json_object_get(job, "enqueued_at"));
    html(p->h, json_has(job, "enqueued_at") ? "</li>"
                                            : "<span class=\"pale\">at a time that is not known</span></li>");
    if (json_has(job, "due_at") && json_us(json_object_get(job, "due_at")) <= p->now_us) {
        put_event(p, "waiting", "due", json_object_get(job, "due_at"));
        html(p->h, "</li>");
    }
    put_times(p, job, "throttled", "throttled", "held back by the provider (429)");
    put_times(p, job, "interrupted", "wrong", "interrupted by the death of its worker or handler");
    for (size_t i = json_array_size(failures); i > died; i--) { /* the first one first */
        const json_t *failure = json_array_get(failures, i - 1);

        put_event(p, "dead", "failed", json_object_get(failure, "at"));
        put_worker_of(p, failure);
        put_lasted(p, ", after ", failure, "after");
        put_lasted(p, ", ran ", failure, "ran");
        put_reason(p, json_text_of(failure, "reason"));
    }
}

static void write_present(struct page *p, const json_t *job)
{
    const char *state = json_text_of(job, "state"), *reason = json_text_of(job, "reason");

    if (json_has(job, "cancelled_at")) {
        put_event(p, "cancelled", "cancelled", json_object_get(job, "cancelled_at"));
        html(p->h, "</li>");
    }
    html(p->h, "<li><i class=\"mark s-%s\"></i><b>%s%s%s</b> ", state, state,
         *json_text_of(job, "outcome") ? ": " : "", json_text_of(job, "outcome"));
    if (json_has(job, "since")) {
        html(p->h, "%s", *json_text_of(job, "outcome") ? "" : "since ");
        put_time(p, json_us(json_object_get(job, "since")), "");
    }
    if (strcmp(state, "dead") == 0)
        put_worker_of(p, json_array_get(json_object_get(job, "failures"), 0));
    put_reason(p, reason);
    if (json_has(job, "start")) {
        put_event(p, "scheduled", "starts", json_object_get(job, "start"));
        html(p->h, "%r%s</li>",
             json_is_true(json_object_get(job, "at_the_earliest")) ? " at the earliest: " : "",
             json_text_of(job, "because"));
    }
}

static void write_timeline(struct page *p, const json_t *job)
{
    html(p->h, "<section><h2>What has happened</h2><ol class=\"line-of-time\">");
    write_past(p, job);
    write_present(p, job);
    html(p->h, "</ol></section>");
}

/* ---- What it is */

static void put_text_line(struct page *p, const char *name, const json_t *job, const char *member)
{
    if (!*json_text_of(job, member))
        return;
    put_line(p, name);
    html(p->h, "<bdi>%s</bdi>", json_text_of(job, member));
    put_line_end(p);
}

static void put_link_line(struct page *p, const char *name, const char *page, const json_t *job,
                          const char *member)
{
    if (!*json_text_of(job, member))
        return;
    put_line(p, name);
    put_link(p, page, json_text_of(job, member));
    put_line_end(p);
}

static void put_secret_line(struct page *p, const char *name, const json_t *job, const char *member)
{
    if (!*json_text_of(job, member))
        return;
    put_line(p, name);
    put_secret(p, json_text_of(job, member));
    put_line_end(p);
}

static void write_place(struct page *p, const json_t *job)
{
    if (!json_has(job, "place"))
        return;
    put_line(p, "place");
    html(p->h, "%n of %n", json_int_of(job, "place"), json_int_of(job, "of"));
    if (json_has(job, "ahead"))
        html(p->h, ", %n start before it", json_int_of(job, "ahead"));
    if (json_int_of(job, "turns_before") > 0)
        html(p->h, ", %n other keys have a turn before its own", json_int_of(job, "turns_before"));
    put_line_end(p);
}

static void write_worker(struct page *p, const json_t *job)
{
    const json_t *worker = json_object_get(job, "worker");

    if (!json_is_object(worker))
        return;
    put_line(p, "worker");
    html(p->h, "<span class=\"mono\"><bdi>%s</bdi></span>", json_text_of(worker, "name"));
    if (json_has(worker, "pid")) {
        html(p->h, ", process %i on <bdi>%s</bdi>; its lease ends ", json_int_of(worker, "pid"),
             json_text_of(worker, "host"));
        put_time(p, json_us(json_object_get(job, "lease_until")), "-");
    }
    put_line_end(p);
}

static void put_span_line(struct page *p, const char *name, const json_t *job)
{
    if (!json_has(job, name))
        return;
    put_line(p, name);
    put_span(p, json_us(json_object_get(job, name)));
    put_line_end(p);
}

static void write_cost(struct page *p, const json_t *cost)
{
    char text[COST_TEXT_SIZE];

    if (json_integer_value(cost) < 2 && !json_is_object(cost))
        return;
    put_line(p, "costs");
    html(p->h, "%t%s", text_cost(cost, text), json_is_object(cost) ? "" : " slots");
    put_line_end(p);
}

static void write_sheet(struct page *p, const json_t *job)
{
    html(p->h, "<section><h2>Job</h2><dl class=\"sheet\">");
    put_link_line(p, "type", "types", job, "type");
    put_text_line(p, "queue", job, "queue");
    put_secret_line(p, "key", job, "key");
    put_link_line(p, "batch", "batches", job, "batch");
    put_secret_line(p, "unique", job, "unique");
    write_place(p, job);
    write_worker(p, job);
    put_line(p, "attempts");
    html(p->h, "%n of %n used", json_int_of(job, "attempts"), json_int_of(job, "max_attempts"));
    put_line_end(p);
    write_cost(p, json_object_get(job, "cost"));
    put_span_line(p, "waited", job);
    put_span_line(p, "ran", job);
    put_span_line(p, "took", job);
    put_span_line(p, "timeout", job);
    put_secret_line(p, "unreadable", job, "unreadable");
    html(p->h, "</dl></section>");
}

/* ---- Its gates */

static void write_gate(struct page *p, const json_t *gate)
{
    bool open = json_is_true(json_object_get(gate, "open")),
         holds = json_is_true(json_object_get(gate, "holds_it"));

    html(p->h, "<tr><th scope=\"row\">");
    html(p->h, "<a href=\"/limits/%u\">", json_text_of(gate, "limit_name"));
    put_secret(p, json_text_of(gate, "gate"));
    html(p->h, "</a></th><td class=\"mono\" data-label=\"rule\">%s</td><td data-label=\"state\"><span>",
         json_text_of(gate, "rule"));
    put_state(p, open ? "open" : "waiting");
    html(p->h, holds ? " <b>holds it</b>" : "");
    html(p->h, "</span></td>");
    put_doc_time(p, "opens", gate, "opens_at");
    html(p->h, "</tr>");
}

static void write_gates(struct page *p, const json_t *job)
{
    const json_t *gates = json_object_get(job, "gates");

    if (json_array_size(gates) == 0)
        return;
    put_rows(p, "What it must pass", "Gate|Rule|State|#Opens", gates, write_gate, "");
}

/* ---- Its payload */

/* JSON by lines, each token as it stands. */
static void write_json(struct page *p, struct span body)
{
    bool in_text = false;
    int depth = 0;
    size_t from = 0;

    for (size_t i = 0; i < body.len; i++) {
        char c = body.at[i];
        bool opens = strchr("[{", c) != NULL, closes = strchr("]}", c) != NULL;

        in_text ^= c == '"';
        i += in_text && c == '\\';
        if (in_text || c == '"' || !(opens || closes || c == ','))
            continue;
        depth += opens - closes;
        html_span(p->h, (struct span){body.at + from, i + !closes - from});
        html(p->h, "\n");
        for (int d = 0; d < depth && d < 40; d++)
            html(p->h, "  ");
        from = i + !closes;
    }
    html_span(p->h, (struct span){body.at + from, body.len - from});
}

static void write_body(struct page *p, const char *what, struct span body)
{
    struct span shown = {body.at, body.len < BODY_MOST ? body.len : BODY_MOST};
    struct error ignored;

    html(p->h, "<section><h2>%r <small>%n bytes</small></h2>", what, (int64_t)body.len);
    if (p->r->hide_args) {
        html(p->h, "<p class=\"pale\">Hidden: this server runs with --hide-args.</p></section>");
        return;
    }
    html(p->h, "<pre>");
    if (shown.len == body.len && json_check(body.at, body.len, &ignored) == 0)
        write_json(p, shown);
    else
        html_span(p->h, shown);
    html(p->h, "</pre>%r</section>", shown.len < body.len ? "<p class=\"pale\">Cut: it is longer.</p>" : "");
}

/* ---- The page */

static void write_buttons(struct page *p, const char *id, const char *state)
{
    bool dead = strcmp(state, "dead") == 0,
         later = strcmp(state, "scheduled") == 0 || strcmp(state, "retry") == 0;

    if (!p->r->actions || strcmp(state, "finished") == 0 || !name_is_valid(id, strlen(id)))
        return;
    html(p->h, "<div class=\"buttons\">");
    if (later || strcmp(state, "parked") == 0)
        put_button(p, &(struct button){"Run now", "job", "/api/jobs/", id, "/run", NULL, NULL});
    if (dead)
        put_button(p, &(struct button){"Retry", "job", "/api/dead/", id, "/retry", NULL, NULL});
    if (dead)
        put_ask(p, "Remove", "dead-remove", id);
    else
        put_ask(p, "Cancel", "job-cancel", id);
    html(p->h, "</div>");
}

/* why: what find_job has found. */
static void write_job(struct page *p, const char *id, const json_t *job, const json_t *why)
{
    struct span result = text_bytes(json_object_get(why, "result"));

    html(p->h, "<p class=\"crumbs\"><a href=\"/jobs\">Jobs</a></p><h1 class=\"mono\"><bdi>%s</bdi> <small>",
         id);
    put_state(p, json_text_of(job, "state"));
    html(p->h, "</small></h1>");
    if (json_is_object(json_object_get(job, "waits_for"))) {
        html(p->h, "<p class=\"lead\">");
        put_waits_document(p, json_object_get(job, "waits_for"));
        html(p->h, "</p>");
    }
    write_buttons(p, id, json_text_of(job, "state"));
    html(p->h, "<div class=\"columns\">");
    write_timeline(p, job);
    write_sheet(p, job);
    html(p->h, "</div>");
    write_gates(p, job);
    if (result.len > 0)
        write_body(p, "Result", result);
    write_body(p, "Payload", found_body(why));
}

static void write_found(struct page *p, const char *id, json_t *why)
{
    json_t *job = job_document(why);

    p->now_us = answer_int(why, "now") > 0 ? answer_int(why, "now") : p->now_us;
    write_job(p, id, job, why);
    json_decref(job);
}

/* Returns the limits, which other pages use too: to read them takes longest. */
static const struct limits *limits_of(struct page *p, const char *type)
{
    const struct limits *limits = data_limits(p, type);

    if (limits && !limits_type(limits, type) && data_is_outdated(p))
        limits = data_limits(p, type);
    return limits;
}

/* Near where it was seen; beyond that for a moment, from the cursor on. */
static int look(struct page *p, const char *id, json_t **job)
{
    int64_t until_us = clock_mono_us() + JOB_LOOK_US;
    struct find_place place = {.at = ""};
    char cursor[CURSOR_SIZE];
    int status = query_cursor(p, "cursor", cursor);

    *job = NULL;
    if (status < 0)
        return status;
    query_value(p->r->query, "at", place.at, sizeof place.at);
    query_value(p->r->query, "from", place.from, sizeof place.from);
    if (find_job_near(p->w, -1, id, &place, job) == 0)
        return 0;
    return find_job_part(p->w, -1, id, *cursor ? cursor : NULL, until_us, job);
}

static int read_job(struct page *p, const char *id, json_t **why)
{
    const struct limits *limits = NULL;
    int status = look(p, id, why);

    if (status < 0 || found_too_early(*why))
        return status;
    if (found_in_line(*why)) {
        int at = p->w->at;

        limits = limits_of(p, answer_text(*why, "type"));
        status = limits ? client_at(p->w, at) : p->e->status;
    }
    return status == 0 ? why_found(p->w, -1, limits, why) : status;
}

/* Nobody knows yet whether it is there. page.js goes on by itself. */
static void write_early(struct page *p, const char *id, const json_t *job)
{
    html(p->h,
         "<p class=\"crumbs\"><a href=\"/jobs\">Jobs</a></p><h1 class=\"mono\"><bdi>%s</bdi></h1>"
         "<p class=\"note\">Not found yet. A search that names its type or queue looks at fewer jobs: "
         "<code>type:mail "
         "%s</code></p><div data-look-on>",
         id, id);
    put_way_on(p, &(struct way_on){answer_int(job, "looked_at"), answer_int(job, "of"), "/jobs/", id,
                                   "?cursor=", answer_text(job, "next")});
    html(p->h, "</div>");
}

unsigned page_job(struct page *p, const char *name)
{
    json_t *why = NULL;

    if (read_job(p, name, &why) < 0) {
        json_decref(why);
        return page_failed(p, &p->w->error);
    }
    snprintf(p->title, sizeof p->title, "Job %s", name);
    if (found_too_early(why))
        write_early(p, name, why);
    else
        write_found(p, name, why);
    json_decref(why);
    return 200;
}

/* One type: what it does now, what it did, how long its jobs run and wait, and for what. */
#include <stdio.h>
#include <string.h>

#include "queue/history/history.h"
#include "serve/page/parts.h"
#include "view/json.h"
#include "view/status.h"

/* ---- Now */

static void write_totals(struct page *p, const struct type_status *t)
{
    html(p->h, "<dl class=\"totals\"><div><dt>starts</dt><dd>");
    put_rate(p, t->rate_now);
    html(p->h, " <small>");
    put_set(p, t);
    html(p->h, "</small></dd></div><div><dt>oldest</dt><dd>");
    put_time(p, t->oldest_us, "-");
    html(p->h, "</dd></div><div><dt>next start</dt><dd>");
    put_start(p, t->next_start_us, "-");
    html(p->h, "</dd></div><div><dt>last start</dt><dd>");
    put_start(p, t->finish_us, "-");
    if (t->finish_us > 0 && t->because)
        html(p->h, " <small>at the earliest: %s</small>", forecast_reason(t->because));
    html(p->h, "</dd></div>");
    for (const struct jobs_count *c = jobs_counts; c->name; c++)
        if (c->kind == JOBS_ENDED)
            html(p->h, "<div><dt>%r</dt><dd>%n</dd></div>", c->name, type_number(t, c->at));
    html(p->h, "</dl>");
}

static void write_states(struct page *p, const struct type_status *t)
{
    const struct part parts[] = {
        {"held", t->held, "held"},          {"waiting", t->waiting, "waiting"},
        {"parked", t->parked, "parked"},    {"aside", t->aside, "aside"},
        {"running", t->running, "running"}, {"scheduled", t->scheduled, "scheduled"}};

    html(p->h, "<div class=\"states\">");
    put_bar(p, parts, 6);
    put_legend(p, parts, 6);
    html(p->h, "</div>");
}

/* ---- Its limits */

static void write_limits(struct page *p, const char *name)
{
    const struct limits *limits = data_limits(p, name);
    const struct type_status *type = limits ? limits_type(limits, name) : NULL;
    char rules[RULE_SET_TEXT_SIZE];

    html(p->h, "<p class=\"lead\">");
    for (size_t i = 0; type && i < type->limit_count; i++) {
        const struct limit *limit = type->limits[i];

        rule_set_format(&limit->set, rules);
        html(p->h, "%rheld by ", i ? ", " : "");
        put_link(p, "limits", limit->name);
        html(p->h, " <span class=\"mono\">%s</span>", limit->readable ? rules : "");
    }
    if (type && type->limit_count == 0)
        html(p->h, "no limit holds it");
    html(p->h, "</p>");
    if (type && type->keyless.jobs > 0)
        html(p->h,
             "<p class=\"note warning\"><b>%n of %n jobs have nothing at <bdi>%s</bdi></b>, by which "
             "<bdi>%s</bdi> tells them "
             "apart: they share one rate.</p>",
             type->keyless.jobs, type->keyless.of, type->keyless.path, type->keyless.limit);
}

/* ---- What was */

static void write_slot(struct page *p, const json_t *slot)
{
    html(p->h, "<tr><td>");
    put_time(p, answer_int(slot, "at"), "-");
    html(p->h, "</td>");
    put_count_cell(p, "starts", answer_int(slot, "starts"));
    put_count_cell(p, "done", answer_int(slot, "done"));
    put_count_cell(p, "retried", answer_int(slot, "retried"));
    put_count_cell(p, "dead", answer_int(slot, "dead"));
    put_count_cell(p, "cancelled", answer_int(slot, "cancelled"));
    put_count_cell(p, "throttled", answer_int(slot, "throttled"));
    html(p->h, "</tr>");
}

static void write_slots(struct page *p, const json_t *history)
{
    const json_t *slots = json_object_get(history, "slots");

    html(p->h, "<details id=\"numbers\"><summary>In numbers</summary>");
    put_table(p, "", "From|#Starts|#Done|#Retried|#Dead|#Cancelled|#Throttled");
    for (size_t i = json_array_size(slots); i > 0; i--)
        write_slot(p, json_array_get(slots, i - 1));
    put_table_end(p);
    html(p->h, "</details>");
}

static void write_history(struct page *p, const json_t *history, const char *name, bool by_hours, double most)
{
    html(p->h, "<section><h2>Ends <small>by %r · <a href=\"/types/%u%r\">by %r</a></small></h2>",
         by_hours ? "hour" : "minute", name, by_hours ? "" : "?by=hours", by_hours ? "minute" : "hour");
    if (json_array_size(json_object_get(history, "slots")) == 0) {
        html(p->h, "<p class=\"pale\">Nothing was recorded yet: workers send what they count every few "
                   "seconds.</p></section>");
        return;
    }
    put_outcomes(p, history, by_hours ? HISTORY_HOURS : HISTORY_MINUTES, most);
    write_slots(p, history);
    html(p->h, "</section><section><h2>What its jobs waited for</h2>");
    put_wait_split(p, history);
    html(p->h, "</section><div class=\"columns\"><section><h2>How long they waited</h2>");
    put_histogram(p, history, "wait");
    html(p->h, "</section><section><h2>How long they ran</h2>");
    put_histogram(p, history, "run");
    html(p->h, "</section></div>");
}

/* Writes why the dead jobs of the type died. Without it the page is whole. */
static void write_dead(struct page *p, const struct type_status *t)
{
    if (t->dead_kept == 0)
        return;
    html(p->h, "<section><h2>Its <a href=\"/dead?type=%u\">dead jobs</a></h2>", t->name);
    if (put_dead_of_type(p, t->name) < 0)
        html(p->h, "<p class=\"pale\">%s</p>", weir_message(p->w));
    html(p->h, "</section>");
}

static void write_type(struct page *p, const struct type_status *t, const json_t *history, bool by_hours)
{
    snprintf(p->title, sizeof p->title, "Type %s", t->name);
    html(p->h, "<p class=\"crumbs\"><a href=\"/\">Types</a></p><h1><bdi>%s</bdi></h1>", t->name);
    write_limits(p, t->name);
    if (p->r->actions) {
        html(p->h, "<p class=\"acts\">");
        put_pause(p, "type", "/api/types/", t->name, NULL, t->pause != NULL);
        html(p->h, "</p>");
    }
    if (t->pause && !t->waits_for)
        html(p->h, "<p class=\"lead\">paused: <bdi>%s</bdi></p>", json_text_of(t->pause, "reason"));
    if (t->waits_for) {
        html(p->h, "<p class=\"lead\">");
        put_waits(p, t->waits_for);
        html(p->h, "</p>");
    }
    write_totals(p, t);
    write_states(p, t);
    html(p->h, "<p class=\"more\"><a href=\"/jobs?q=type%%3A%u\">Its jobs</a></p>", t->name);
    write_dead(p, t);
    write_history(p, history, t->name, by_hours, type_rate(t));
}

unsigned page_type(struct page *p, const char *name)
{
    const struct status *s = data_status(p);
    const struct type_status *t = s ? status_type(s, name) : NULL;
    char by[8];
    struct history_call call = {.name = name, .slots = HISTORY_MINUTES};
    json_t *history = NULL;

    if (s && !t && data_is_outdated(p)) {
        s = data_status(p);
        t = s ? status_type(s, name) : NULL;
    }
    if (!s)
        return page_failed(p, p->e);
    if (!t)
        return page_not_found(p, "type", name);
    data_foretell(p, t);
    query_value(p->r->query, "by", by, sizeof by);
    call.by_hours = strcmp(by, "hours") == 0;
    call.slots = call.by_hours ? HISTORY_HOURS : HISTORY_MINUTES;
    if (history_ask(p->w, -1, &call, &history) < 0)
        history = NULL;
    write_type(p, t, history, call.by_hours);
    json_decref(history);
    return 200;
}

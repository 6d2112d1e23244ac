/* The limits: a list, and one: its ribbon, its rules, what another rate would do, what is coming, what was changed. */
#include "queue/limits/rate.h"
#include "queue/status/coming.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/page/parts.h"
#include "throttle/algorithm/calendar.h"
#include "view/hidden.h"
#include "view/limits.h"

#define ROWS 100
#define LOG_ROWS 20
#define NEXT_MOST 20

/* ---- Parts of both */

static bool is_paused(const struct limit *limit)
{
    return limit->pause_until_us > limit->now_us;
}

static void write_rules_text(struct page *p, const struct limit *limit)
{
    char text[RULE_SET_TEXT_SIZE];

    if (limit->readable) {
        rule_set_format(&limit->set, text);
        html(p->h, "<span class=\"mono\">%s</span>", text);
    } else {
        html(p->h, "cannot be read; set it again with <code>weir rate set</code>");
    }
}

static void write_limit_state(struct page *p, const struct limit *limit)
{
    int64_t provider_us = limit_provider_pause(limit);

    if (!limit->readable) {
        put_state(p, "wrong");
    } else if (is_paused(limit) || provider_us) {
        put_state(p, "paused");
        html(p->h, is_paused(limit) ? " by hand, ends " : " for a provider, ends ");
        put_time(p, is_paused(limit) ? limit->pause_until_us : provider_us, "");
    } else {
        put_state(p, "open");
    }
}

static void write_pause(struct page *p, const struct limit *limit)
{
    bool paused = is_paused(limit) || limit_provider_pause(limit);

    put_pause(p, "limit", "/api/rates/", limit->name, NULL, paused);
}

/* ---- All of them */

/* When something that waits starts depends on its key, where no rule for all keys holds it now. */
static bool waits_for_keys(const struct limits *limits, const struct limit *limit)
{
    bool keyed = false;

    for (size_t i = 0; limit->readable && i < limit->set.count; i++)
        keyed |= *limit->set.at[i].by != '\0';
    return keyed && limits_parked(limits, limit->name) > 0 &&
           limits_next_start(limits, limit) <= limits->now_us;
}

static void write_row(struct page *p, const struct limits *limits, const struct limit *limit)
{
    html(p->h, "<tr data-key=\"l-%s\"><th scope=\"row\">", limit->name);
    put_link(p, "limits", limit->name);
    html(p->h, "</th><td class=\"wide\" data-label=\"rules\"><span>");
    write_rules_text(p, limit);
    html(p->h, "</span></td>");
    put_count_cell(p, "parked", limits_parked(limits, limit->name));
    if (waits_for_keys(limits, limit))
        html(p->h, "<td class=\"n\" data-label=\"next start\"><span class=\"pale\">by key</span></td>");
    else
        put_time_cell(p, "next start", limit->readable ? limits_next_start(limits, limit) : 0);
    html(p->h, "<td data-label=\"state\"><span>");
    write_limit_state(p, limit);
    html(p->h, "</span></td>");
    if (p->r->actions) {
        html(p->h, "<td class=\"acts\">");
        write_pause(p, limit);
        html(p->h, "</td>");
    }
    html(p->h, "</tr>");
}

/* Writes a page of the limits with that in their names; returns how many have it. */
static int64_t write_matching(struct page *p, const char *like, int64_t from, int64_t *shown)
{
    int64_t matched = 0;
    int partitions;
    const struct limits *all = data_all_limits(p, &partitions);

    for (int k = 0; k < partitions; k++)
        for (size_t i = 0; i < all[k].count; i++)
            if (strstr(all[k].at[i].name, like) && matched++ >= from && *shown < ROWS) {
                write_row(p, &all[k], &all[k].at[i]);
                ++*shown;
            }
    return matched;
}

static void write_rows(struct page *p, const char *like)
{
    int64_t from = query_number(p->r->query, "from", 0), matched, shown = 0;

    put_table(p, "", "Limit|Rules|#Parked|#Next start|State|!Actions");
    matched = write_matching(p, like, from, &shown);
    if (matched == 0)
        put_none(p, *like ? "No limit has that in its name."
                          : "No limits yet; <code>weir rate set NAME RULE</code> sets one");
    put_table_end(p);
    put_pager(p, "like", like, from, shown, matched);
}

unsigned page_limits(struct page *p, const char *name)
{
    int partitions;
    const struct limits *all = data_all_limits(p, &partitions);
    char like[129];
    size_t count = 0;

    (void)name;
    if (!all)
        return page_failed(p, p->e);
    for (int i = 0; i < partitions; i++)
        count += all[i].count;
    query_value(p->r->query, "like", like, sizeof like);
    snprintf(p->title, sizeof p->title, "Limits");
    html(p->h, "<h1>Limits <small>%n</small></h1>", (int64_t)count);
    put_filter(p, "/limits", "Limits named", like, count);
    write_rows(p, like);
    return 200;
}

/* ---- One: its rules */

static void write_most(struct page *p, const struct rule *rule)
{
    html(p->h, "at most %n ", rule->zone.is_set ? rule->count : rule_most_in_period(rule));
    if (rule->algorithm == ALGORITHM_CONCURRENCY) {
        html(p->h, "at once");
    } else if (rule->zone.is_set) {
        html(p->h, "in a %s of %s", calendar_unit(rule->period_us), rule->zone_name);
    } else {
        html(p->h, "in any ");
        put_span(p, rule->period_us);
    }
    if (*rule->by)
        html(p->h, ", for each <bdi>%s</bdi>", rule->by);
}

static void write_gate_state(struct page *p, const struct limit *limit, size_t i)
{
    const struct gate *gate = &limit->gates[i];

    if (gate->pause_until_us > limit->now_us) {
        put_state(p, "paused");
        html(p->h, " for a provider, ends ");
        put_time(p, gate->pause_until_us, "");
    } else if (limit->held_until_us[i] > limit->now_us) {
        put_state(p, "held");
        html(p->h, " for a job that waits at other gates too");
    } else {
        put_state(p, limit_slots(limit, i) > 0 ? "open" : "closed");
    }
    if (limit->factor[i])
        html(p->h, ", at %i %% of its rate", limit->factor[i] / 10);
}

static void write_rule(struct page *p, const struct limit *limit, size_t i)
{
    const struct rule *rule = &limit->set.at[i];
    char text[RULE_TEXT_SIZE];

    rule_format(rule, text);
    html(p->h, "<tr><th scope=\"row\" class=\"mono\">%s</th><td data-label=\"means\"><span>", text);
    write_most(p, rule);
    html(p->h, "</span></td>");
    if (*rule->by) {
        html(p->h,
             "<td class=\"n\" colspan=\"2\"><a href=\"/keys/%u\">each key has its own</a></td>"
             "<td class=\"nil\"></td></tr>",
             limit->name);
        return;
    }
    put_count_cell(p, "slots left", limit_slots(limit, i));
    put_time_cell(p, "next slot", limit_nth_start(limit, i, 1));
    html(p->h, "<td data-label=\"state\"><span>");
    write_gate_state(p, limit, i);
    html(p->h, "</span></td></tr>");
}

static void write_rules(struct page *p, const struct limit *limit)
{
    put_table(p, "Rules", "Rule|Means|#Slots left|#Next slot|State");
    for (size_t i = 0; limit->readable && i < limit->set.count; i++)
        write_rule(p, limit, i);
    put_table_end(p);
}

/* ---- Who holds slots on lease */

static void write_holder(struct page *p, const json_t *hold)
{
    html(p->h, "<tr><th scope=\"row\" class=\"mono\">%t</th>", json_text_of(hold, "token"));
    put_doc_secret(p, "key", hold, "key");
    put_doc_cost(p, "cost", hold, "cost");
    put_doc_time(p, "since", hold, "since");
    put_doc_time(p, "until", hold, "until");
    put_doc_text(p, "who", hold, "who");
    if (p->r->actions) {
        html(p->h, "<td class=\"acts\">");
        put_button(p, &(struct button){.label = "End",
                                       .kind = "hold",
                                       .before = "/api/holds/",
                                       .name = json_text_of(hold, "token"),
                                       .after = "/end"});
        html(p->h, "</td>");
    }
    html(p->h, "</tr>");
}

static void write_holders(struct page *p, const char *name)
{
    json_t *doc = json_object(), *rows;

    limit_add_holds(p->w, name, doc);
    rows = json_object_get(doc, "held_by");
    if (json_array_size(rows) > 0)
        put_rows(p, "Held by", "Token|Key|#Cost|#Since|#Until|Who|!Actions", rows, write_holder, "");
    json_decref(doc);
}

/* ---- What was changed */

/* Writes what a line of the log says; with --hide-args without a key. */
static void put_what(struct page *p, const char *what)
{
    size_t len = strlen(what), shown = p->r->hide_args ? view_change_shown(what) : len;

    if (shown == len) {
        html(p->h, "%t", what);
        return;
    }
    html_span(p->h, (struct span){what, shown});
    html(p->h, "<span class=\"pale\">hidden</span>");
}

static bool write_change(struct page *p, const char *text, const char *name)
{
    json_t *change = text ? answer_parse(text, strlen(text)) : NULL;
    const char *what = answer_text(change, "what");
    bool of_it = !name || change_names(what, name);

    if (of_it) {
        html(p->h, "<tr><td>");
        put_time(p, (int64_t)(json_number_value(json_object_get(change, "at")) * 1e6), "-");
        html(p->h, "</td><td data-label=\"who\">%t</td><td class=\"wide mono\" data-label=\"what\"><span>",
             answer_text(change, "by"));
        put_what(p, what);
        html(p->h, "</span></td></tr>");
    }
    json_decref(change);
    return of_it;
}

/* name: of the limit; NULL: all that was done. */
static void write_changes(struct page *p, const json_t *changes, const char *name)
{
    int shown = 0;

    put_table(p, name ? "Changes" : "", "When|Who|What");
    for (size_t i = 0; i < json_array_size(changes) && (!name || shown < LOG_ROWS); i++)
        shown += write_change(p, json_string_value(json_array_get(changes, i)), name);
    if (shown == 0)
        put_none(p, "None that is still known.");
    put_table_end(p);
}

/* ---- What comes */

/* Counts the types whose jobs wait there. */
static int64_t waiting_types(const struct limits *limits, const char *name)
{
    size_t count;
    const struct hold *holds = limits_holds(limits, name, &count);
    int64_t types = 0;

    for (size_t i = 0; i < count; i++)
        types += type_backlog(holds[i].type) > 0;
    return types;
}

/* Of the job that comes next, where there is one. */
static int64_t next_start(const struct limits *limits, const struct limit *limit, const json_t *next)
{
    if (json_array_size(next) > 0)
        return answer_int_or(json_array_get(next, 0), "start", GATE_NEVER);
    return limit->readable ? limits_next_start(limits, limit) : 0;
}

static void write_summary(struct page *p, const struct limits *limits, const struct limit *limit,
                          const json_t *next)
{
    struct forecast last = {.last_us = 0};
    int64_t backlog = limits_backlog(limits, limit->name);

    if (limit->readable && backlog > 0 && forecast_limit(limits, limit, &last, p->e) < 0)
        last.last_us = 0;
    html(p->h,
         "<dl class=\"totals\"><div><dt>jobs waiting</dt><dd>%n</dd></div><div><dt>of "
         "types</dt><dd>%n</dd></div>"
         "<div><dt>next start</dt><dd>",
         backlog, waiting_types(limits, limit->name));
    if (limits_are_quiet(limits, limit))
        html(p->h, "<span>when a quiet worker is resumed</span>");
    else
        put_start(p, next_start(limits, limit, next),
                  limits_are_closed(limits, limit) ? "when rules of its keys are set again"
                                                   : "when a job ends");
    html(p->h, "</dd></div><div><dt>last start</dt><dd>");
    put_start(p, last.last_us, backlog ? "not known" : "nothing waits");
    if (last.last_us > 0 && last.because)
        html(p->h, " <small>%r%s</small>",
             last.last_us == GATE_NEVER ? "" : "at the earliest: ", forecast_reason(last.because));
    html(p->h, "</dd></div>");
    if (limit->own_keys > 0)
        html(p->h, "<div><dt>keys with rules of their own</dt><dd>%n</dd></div>", limit->own_keys);
    html(p->h, "<div><dt>state</dt><dd><small>");
    write_limit_state(p, limit);
    html(p->h, "</small></dd></div></dl>");
}

static void write_buttons(struct page *p, const struct limit *limit)
{
    bool keyed = limit->readable && *rule_set_path(&limit->set);

    if (!p->r->actions && !keyed)
        return;
    html(p->h, "<div class=\"buttons\">");
    if (keyed)
        html(p->h, "<a class=\"button\" href=\"/keys/%u\">Keys</a> ", limit->name);
    if (p->r->actions) {
        write_pause(p, limit);
        put_ask(p, "Remove", "rate-remove", limit->name);
    }
    html(p->h, "</div>");
}

unsigned page_limit(struct page *p, const char *name)
{
    const struct limits *limits = data_limits(p, name);
    const struct limit *limit = limits ? limits_find(limits, name) : NULL;
    json_t *changes = NULL, *next = NULL;

    if (limits && !limit && data_is_outdated(p)) {
        limits = data_limits(p, name);
        limit = limits ? limits_find(limits, name) : NULL;
    }
    if (!limits)
        return page_failed(p, p->e);
    if (!limit)
        return page_not_found(p, "limit", name);
    snprintf(p->title, sizeof p->title, "Limit %s", name);
    html(p->h,
         "<p class=\"crumbs\"><a href=\"/limits\">Limits</a></p><h1><bdi>%s</bdi></h1><p class=\"lead\">",
         name);
    write_rules_text(p, limit);
    html(p->h, "</p>");
    if (coming_ask(p->w, -1, limits, limit, NEXT_MOST, &next) < 0)
        next = NULL;
    if (rate_log_read(p->w, false, &changes) < 0)
        changes = NULL;
    write_summary(p, limits, limit, next);
    write_buttons(p, limit);
    write_ribbon(p, limits, limit, changes, next);
    write_change_form(p, limits, limit);
    write_rules(p, limit);
    write_holders(p, name);
    write_changes(p, changes, name);
    json_decref(changes);
    json_decref(next);
    return 200;
}

unsigned page_log(struct page *p, const char *name)
{
    json_t *changes;

    (void)name;
    if (rate_log_read(p->w, true, &changes) < 0)
        return page_failed(p, &p->w->error);
    snprintf(p->title, sizeof p->title, "Log");
    html(p->h,
         "<h1>Log</h1><p class=\"pale\">What was done by commands, pages and the API: the newest 1,000.</p>");
    write_changes(p, changes, NULL);
    json_decref(changes);
    return 200;
}

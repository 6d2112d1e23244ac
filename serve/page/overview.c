/* The overview: what is wrong first, then each type, each queue. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/history/history.h"
#include "serve/page/parts.h"
#include "view/format.h"
#include "view/report.h"
#include "view/status.h"

#define LINES_MOST 30 /* rows of a page that have a line of their past */
#define SPARK_SLOTS 30
#define DAY_HOURS 24
#define ROWS 100 /* types and queues on one page */

/* ---- What is wrong */

static void note_workers(struct page *p, const struct status *s)
{
    if (s->worker_count == 0)
        html(p->h, "<li class=\"wrong\"><b>No worker is alive.</b> Nothing runs until one starts: <code>weir "
                   "worker</code></li>");
}

static void note_unserved(struct page *p, const struct status *s)
{
    char text[PHRASE_SIZE];
    int64_t jobs = 0, types = 0;
    const char *first = NULL;

    for (size_t i = 0; i < s->type_count; i++)
        if (type_is_unserved(&s->types[i])) {
            jobs += type_backlog(&s->types[i]);
            first = types++ ? first : s->types[i].name;
        }
    if (!types || s->worker_count == 0)
        return;
    html(p->h, "<li class=\"wrong\"><b>No worker takes</b> ");
    put_link(p, "types", first);
    if (types > 1)
        html(p->h, " and %n more", types - 1);
    html(p->h, ": %s without one.</li>", counted(jobs, "job", text));
}

static void note_paused_types(struct page *p, const struct status *s)
{
    for (size_t i = 0, shown = 0; i < s->type_count && shown < 5; i++)
        if (s->types[i].pause) {
            html(p->h, "<li class=\"warning\"><b>Type ");
            put_link(p, "types", s->types[i].name);
            html(p->h, " is paused</b>, since ");
            put_since(p, answer_int(s->types[i].pause, "since"));
            html(p->h, " <bdi>%s</bdi></li>", json_text_of(s->types[i].pause, "reason"));
            shown++;
        }
}

static void note_queues(struct page *p, const struct status *s)
{
    char text[PHRASE_SIZE];

    for (size_t i = 0, shown = 0; i < s->queue_count && shown < 5; i++)
        if (s->queues[i].paused_us) {
            html(p->h, "<li class=\"warning\"><b>Queue <bdi>%s</bdi> is paused</b>, since ",
                 s->queues[i].name);
            put_since(p, s->queues[i].paused_us);
            html(p->h, ": %s in it.</li>", counted(s->queues[i].waiting, "job", text));
            shown++;
        }
}

static void note_dead(struct page *p, const struct status *s)
{
    char text[PHRASE_SIZE];

    if (s->dead > 0)
        html(p->h,
             "<li class=\"warning\"><b><a href=\"/dead\">%s</a></b> will not run again by themselves.</li>",
             counted(s->dead, "dead job", text));
}

static void note_verdict(struct page *p, const json_t *report)
{
    char *text = NULL;
    size_t len = 0;
    FILE *to = open_memstream(&text, &len);

    if (to) {
        report_put_verdict(to, report);
        fclose(to);
    }
    html(p->h, "<li class=\"wrong\"><b>%s</b>: %s.</li>", answer_text(report, "verdict"), text ? text : "");
    free(text);
}

/* Notes what the report says: its verdict where somebody must act, and what is wrong besides. */
static void note_report(struct page *p)
{
    const json_t *report = data_report(p), *check;
    const char *verdict = answer_text(report, "verdict");
    size_t i;

    if (!report)
        html(p->h, "<li class=\"warning\"><b>It is not known what is wrong</b>: %s</li>", weir_message(p->w));
    else if (strcmp(verdict, "flowing") != 0 && strcmp(verdict, "idle") != 0)
        note_verdict(p, report);
    json_array_foreach(json_object_get(report, "checks"), i, check)
        html(p->h, "<li class=\"%s\"><b>%s</b>: %s</li>", answer_text(check, "state"),
             answer_text(check, "name"), answer_text(check, "text"));
}

static void write_notes(struct page *p, const struct status *s)
{
    size_t before;

    html(p->h, "<ul class=\"notes\">");
    before = p->h->out.len;
    note_workers(p, s);
    note_unserved(p, s);
    note_paused_types(p, s);
    note_queues(p, s);
    note_dead(p, s);
    note_report(p);
    if (p->h->out.len == before)
        html(p->h, "<li class=\"good\"><b>Nothing is wrong.</b> Workers are alive and every type that waits "
                   "is served.</li>");
    html(p->h, "</ul>");
}

/* ---- Totals */

static void write_total(struct page *p, const char *name, const char *address, int64_t n)
{
    html(p->h, "<div><dt><a href=\"%r\">%r</a></dt><dd>%n</dd></div>", address, name, n);
}

static void write_totals(struct page *p, const struct status *s)
{
    int64_t waiting = 0, parked = 0, running = 0, scheduled = 0;

    for (size_t i = 0; i < s->type_count; i++) {
        waiting += s->types[i].waiting;
        parked += s->types[i].parked + s->types[i].held + s->types[i].aside;
        running += s->types[i].running;
        scheduled += s->types[i].scheduled;
    }
    html(p->h, "<dl class=\"totals\">");
    write_total(p, "waiting", "/jobs?q=state%3Awaiting", waiting);
    write_total(p, "parked", "/jobs?q=state%3Aparked%2Cheld%2Caside", parked);
    write_total(p, "running", "/jobs?q=state%3Arunning", running);
    write_total(p, "scheduled", "/jobs?q=state%3Ascheduled%2Cretry", scheduled);
    write_total(p, "dead", "/dead", s->dead);
    write_total(p, "workers", "/workers", (int64_t)s->worker_count);
    html(p->h, "</dl>");
}

/* ---- Types */

/* Ranks how telling a type is: what no worker takes, then what waits, what runs, what was. */
static int rank_of(const struct type_status *t)
{
    return type_is_unserved(t)                 ? 4
           : type_backlog(t) > 0               ? 3
           : t->running > 0 || t->rate_now > 0 ? 2
                                               : t->scheduled > 0;
}

static int by_telling(const void *a, const void *b)
{
    const struct type_status *x = *(const struct type_status *const *)a,
                             *y = *(const struct type_status *const *)b;
    int64_t more = type_backlog(y) - type_backlog(x);

    if (rank_of(x) != rank_of(y))
        return rank_of(y) - rank_of(x);
    return more ? (more > 0 ? 1 : -1) : strcmp(x->name, y->name);
}

/* What is kept, as a bar, and where the limit is. */
static void put_pace(struct page *p, double kept, double set)
{
    double most = set > kept ? set : kept;

    html(p->h,
         "<svg class=\"pace\" viewBox=\"0 0 102 8\" preserveAspectRatio=\"none\" aria-hidden=\"true\">"
         "<rect class=\"track\" width=\"100\" height=\"8\"/><rect class=\"kept\" width=\"%d\" height=\"8\"/>"
         "<rect class=\"limit\" x=\"%d\" width=\"2\" height=\"8\"/></svg>",
         (int)(kept / most * 100), (int)(set / most * 100));
}

/* A row, and what was recorded of its type; NULL: nothing, or it was not asked. */
struct line {
    const struct type_status *type;
    json_t *history;
};

/* Reads the past of the first types that run or wait. Without it the page is whole. */
static void read_pasts(struct page *p, struct line *lines, size_t count)
{
    struct history_call calls[LINES_MOST];
    struct line *of[LINES_MOST];
    json_t *histories[LINES_MOST];
    size_t asked = 0;

    for (size_t i = 0; i < count && asked < LINES_MOST; i++)
        if (rank_of(lines[i].type) >= 2) {
            of[asked] = &lines[i];
            calls[asked++] = (struct history_call){.name = lines[i].type->name, .slots = SPARK_SLOTS};
        }
    if (history_ask_each(p->w, -1, calls, asked, histories) < 0)
        return;
    for (size_t i = 0; i < asked; i++)
        of[i]->history = histories[i];
}

/* Writes the rate kept and the rate set, and the starts in each of the last minutes. */
static void write_pace(struct page *p, const struct line *line)
{
    const struct type_status *t = line->type;
    bool any = t->rate_now > 0 || *t->rule;
    double set = 0;

    put_cell(p, "starts", !any);
    if (any) {
        put_rate(p, t->rate_now);
        set = put_set(p, t);
    } else {
        html(p->h, "<span class=\"pale\">-</span>");
    }
    if (json_array_size(json_object_get(line->history, "slots")) > 1)
        put_spark(p, line->history, SPARK_SLOTS, set);
    else if (rank_of(t) >= 2 && set > 0)
        put_pace(p, t->rate_now, set);
    html(p->h, "</td>");
}

static void write_last_start(struct page *p, const struct type_status *t)
{
    put_cell(p, "last start", t->finish_us <= 0);
    put_start(p, t->finish_us, "-");
    if (t->finish_us > 0 && t->because)
        html(p->h, "<small>at the earliest: %s</small>", forecast_reason(t->because));
    html(p->h, "</td>");
}

static void write_type(struct page *p, const struct line *line)
{
    const struct type_status *t = line->type;
    const struct part parts[] = {
        {"held", t->held, "held"},          {"waiting", t->waiting, "waiting"},
        {"parked", t->parked, "parked"},    {"aside", t->aside, "aside"},
        {"running", t->running, "running"}, {"scheduled", t->scheduled, "scheduled"}};

    html(p->h, "<tr data-key=\"t-%s\"><th scope=\"row\">", t->name);
    put_link(p, "types", t->name);
    put_waits(p, t->waits_for);
    html(p->h, "</th><td class=\"jobs\" data-label=\"jobs\"><div>");
    put_bar(p, parts, 6);
    put_legend(p, parts, 6);
    html(p->h, "</div></td>");
    put_time_cell(p, "oldest", t->oldest_us);
    write_pace(p, line);
    put_time_cell(p, "next start", t->next_start_us);
    write_last_start(p, t);
    put_count_cell(p, "done", t->done);
    put_count_cell(p, "dead", t->dead_kept);
    html(p->h, "</tr>");
}

/* Chooses the types whose names have that in them, the most telling first. */
static const struct type_status **choose(const struct status *s, const char *like, int64_t *count)
{
    const struct type_status **rows = calloc(s->type_count + 1, sizeof *rows);

    *count = 0;
    for (size_t i = 0; rows && i < s->type_count; i++)
        if (strstr(s->types[i].name, like))
            rows[(*count)++] = &s->types[i];
    if (rows)
        qsort(rows, (size_t)*count, sizeof *rows, by_telling);
    return rows;
}

static void write_types(struct page *p, const struct status *s)
{
    int64_t from = query_number(p->r->query, "from", 0), count, shown = 0;
    struct line lines[ROWS] = {{.history = NULL}};
    char like[129];
    const struct type_status **rows;

    query_value(p->r->query, "like", like, sizeof like);
    rows = choose(s, like, &count);
    put_filter(p, "/", "Types named", like, s->type_count);
    put_table(p, "Types", "Type|Jobs|#Oldest|#Starts|#Next start|#Last start|#Done|#Dead");
    for (int64_t i = from; rows && i < count && shown < ROWS; i++)
        lines[shown++].type = rows[i];
    for (int64_t i = 0; i < shown; i++)
        data_foretell(p, lines[i].type);
    read_pasts(p, lines, (size_t)shown);
    for (int64_t i = 0; i < shown; i++) {
        write_type(p, &lines[i]);
        json_decref(lines[i].history);
    }
    if (count == 0)
        put_none(p, *like ? "No type has that in its name."
                          : "No jobs yet; enqueue one with <code>weir enqueue TYPE</code>");
    put_table_end(p);
    put_pager(p, "like", like, from, shown, count);
    free(rows);
}

/* ---- A day */

/* The ends of the most telling types. Without them the page is whole. */
static void write_day(struct page *p, const struct status *s)
{
    int64_t count;
    const struct type_status **rows = choose(s, "", &count);
    struct history_call calls[HISTORY_AT_ONCE];
    json_t *histories[HISTORY_AT_ONCE] = {NULL};
    size_t asked = 0;

    for (; rows && asked < HISTORY_AT_ONCE && (int64_t)asked < count; asked++)
        calls[asked] = (struct history_call){.name = rows[asked]->name, .by_hours = true, .slots = DAY_HOURS};
    if (asked > 0 && history_ask_each(p->w, -1, calls, asked, histories) == 0)
        put_outcomes_of_all(p, histories, asked, DAY_HOURS);
    for (size_t i = 0; i < asked; i++)
        json_decref(histories[i]);
    free(rows);
}

/* ---- Queues */

static void write_queue_actions(struct page *p, const struct queue_status *q)
{
    put_pause(p, "queue", "/api/queues/", q->name, NULL, q->paused_us != 0);
    put_ask(p, "Purge", "purge", q->name);
}

static void write_queue(struct page *p, const struct queue_status *q)
{
    html(p->h,
         "<tr data-key=\"q-%s\"><th scope=\"row\"><a href=\"/jobs?q=queue%%3A%u\"><bdi>%s</bdi></a></th>"
         "",
         q->name, q->name, q->name);
    put_count_cell(p, "waiting", q->waiting);
    put_time_cell(p, "oldest", q->oldest_us);
    html(p->h, "<td data-label=\"state\"><span>");
    put_state(p, q->paused_us ? "paused" : "open");
    if (q->paused_us > 0) {
        html(p->h, " since ");
        put_since(p, q->paused_us);
    }
    html(p->h, "</span></td>");
    if (p->r->actions) {
        html(p->h, "<td class=\"acts\">");
        write_queue_actions(p, q);
        html(p->h, "</td>");
    }
    html(p->h, "</tr>");
}

static int by_waiting(const void *a, const void *b)
{
    const struct queue_status *x = *(const struct queue_status *const *)a,
                              *y = *(const struct queue_status *const *)b;

    if (!x->paused_us != !y->paused_us)
        return x->paused_us ? -1 : 1;
    return x->waiting == y->waiting ? strcmp(x->name, y->name) : x->waiting < y->waiting ? 1 : -1;
}

static void write_queues(struct page *p, const struct status *s)
{
    const struct queue_status **rows = calloc(s->queue_count + 1, sizeof *rows);

    if (s->queue_count == 0 || !rows) {
        free(rows);
        return;
    }
    for (size_t i = 0; i < s->queue_count; i++)
        rows[i] = &s->queues[i];
    qsort(rows, s->queue_count, sizeof *rows, by_waiting);
    put_table(p, "Queues", "Queue|#Waiting|#Oldest|State|!Actions");
    for (size_t i = 0; i < s->queue_count && i < ROWS; i++)
        write_queue(p, rows[i]);
    put_table_end(p);
    if (s->queue_count > ROWS)
        html(p->h, "<p class=\"pale\">%n queues more, which are shorter.</p>",
             (int64_t)(s->queue_count - ROWS));
    free(rows);
}

unsigned page_overview(struct page *p, const char *name)
{
    const struct status *s = data_status(p);

    (void)name;
    if (!s)
        return page_failed(p, p->e);
    snprintf(p->title, sizeof p->title, "Overview");
    html(p->h, "<h1 class=\"hidden\">Overview</h1>");
    write_notes(p, s);
    write_totals(p, s);
    write_types(p, s);
    write_day(p, s);
    write_queues(p, s);
    return 200;
}

#include "serve/page/parts.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "queue/inspect/find_job.h"
#include "view/format.h"
#include "view/hidden.h"
#include "view/job.h"
#include "view/status.h"
#include "view/text.h"

#define PAGER_STEP 100
#define BAR 1000 /* the width of a bar, in its own units */

/* ---- Failures */

unsigned page_failed(struct page *p, const struct error *why)
{
    *p->e = *why;
    switch (why->status) {
    case WEIR_ENOTFOUND:
        return 404;
    case WEIR_EINPUT:
        return 400;
    case WEIR_EINTERNAL:
        return 500;
    case WEIR_EUNREACHABLE:
    case WEIR_ENOTNOW:
        return 503;
    default:
        return 502;
    }
}

unsigned page_not_found(struct page *p, const char *what, const char *name)
{
    struct error why;

    error_set(&why, WEIR_ENOTFOUND, "%s %.200s: there is none", what, name);
    return page_failed(p, &why);
}

/* ---- The query */

/* Decodes a value, up to its "&". What is no escape stays as it is; a NUL ends it. */
static void decode(const char *from, char *out, size_t size)
{
    size_t len = 0;

    for (; *from && *from != '&' && len + 1 < size; from++) {
        int byte = text_escaped(from);

        out[len++] = byte >= 0 ? (char)byte : *from == '+' ? ' ' : *from;
        from += byte >= 0 ? 2 : 0;
    }
    out[len] = '\0';
}

bool query_value(const char *query, const char *name, char *out, size_t size)
{
    size_t len = strlen(name);

    for (const char *at = query; at && *at; at = strchr(at, '&') ? strchr(at, '&') + 1 : NULL)
        if (strncmp(at, name, len) == 0 && at[len] == '=') {
            decode(at + len + 1, out, size);
            return true;
        }
    *out = '\0';
    return false;
}

int query_cursor(struct page *p, const char *name, char cursor[CURSOR_SIZE])
{
    char *hidden;

    query_value(p->r->query, name, cursor, CURSOR_SIZE);
    if (p->r->hide_args && *cursor) {
        if (view_find_cursor(cursor, &hidden, &p->w->error) < 0)
            return p->w->error.status;
        snprintf(cursor, CURSOR_SIZE, "%s", hidden);
        free(hidden);
    }
    if (strlen(cursor) + 1 < CURSOR_SIZE)
        return 0;
    return error_set(&p->w->error, WEIR_EINPUT, "cursor: too long; take it as the page before gave it");
}

int64_t query_number(const char *query, const char *name, int64_t fallback)
{
    char text[24], *end;
    long long n;

    if (!query_value(query, name, text, sizeof text) || !isdigit((unsigned char)*text))
        return fallback;
    errno = 0;
    n = strtoll(text, &end, 10);
    return *end || errno ? fallback : n;
}

/* ---- Numbers and times */

static void put_clock(struct page *p, const char *form, int64_t us)
{
    time_t seconds = us / 1000000;
    struct tm parts = {0};
    char text[32];

    gmtime_r(&seconds, &parts);
    strftime(text, sizeof text, form, &parts);
    html(p->h, "%s", text);
}

void put_time(struct page *p, int64_t us, const char *none)
{
    char relative[PHRASE_SIZE];

    if (us <= 0 || us == GATE_NEVER) {
        html(p->h, "<span class=\"pale\">%r</span>", none);
        return;
    }
    if (us >= FORMAT_ENDLESS_US) {
        html(p->h, "<span>it is resumed</span>");
        return;
    }
    html(p->h, "<time data-at=\"%i\"%r datetime=\"", us / 1000, us >= p->now_us ? " data-due" : "");
    put_clock(p, "%Y-%m-%dT%H:%M:%SZ", us);
    html(p->h, "\" title=\"");
    put_clock(p, "%Y-%m-%d %H:%M:%S UTC", us);
    html(p->h, "\">%s</time>", format_relative(p->now_us, us, relative));
}

void put_start(struct page *p, int64_t us, const char *none)
{
    if (us >= FORMAT_ENDLESS_US && us != GATE_NEVER)
        html(p->h, "<span>when it is resumed</span>");
    else
        put_time(p, us, none);
}

void put_since(struct page *p, int64_t us)
{
    if (us <= 0) {
        html(p->h, "an unknown time");
        return;
    }
    html(p->h, "<time datetime=\"");
    put_clock(p, "%Y-%m-%dT%H:%M:%SZ", us);
    html(p->h, "\">");
    put_clock(p, p->now_us - us < 86400 * INT64_C(1000000) ? "%H:%M:%S UTC" : "%Y-%m-%d %H:%M UTC", us);
    html(p->h, "</time>");
}

void put_span(struct page *p, int64_t us)
{
    char text[PHRASE_SIZE];

    html(p->h, "%s", format_span(us, text));
}

void put_rate(struct page *p, double rate)
{
    char text[40];

    html(p->h, "%s", per_second(rate, text));
}

double put_set(struct page *p, const struct type_status *t)
{
    bool waits = json_object_get(t->waits_for, "period") && !json_object_get(t->waits_for, "by");

    if (!waits && !*t->rule)
        return 0;
    html(p->h, " <span class=\"of\">of ");
    if (waits)
        put_rate(p, type_rate(t));
    else
        html(p->h, "%s", t->rule);
    html(p->h, "</span>");
    return waits ? type_rate(t) : 0;
}

void put_cell(struct page *p, const char *label, bool empty)
{
    html(p->h, "<td class=\"n%r\" data-label=\"%r\">", empty ? " nil" : "", label);
}

void put_count_cell(struct page *p, const char *label, int64_t n)
{
    put_cell(p, label, n == 0);
    html(p->h, n == 0 ? "<span class=\"pale\">0</span></td>" : "%n</td>", n);
}

void put_time_cell(struct page *p, const char *label, int64_t us)
{
    put_cell(p, label, us <= 0 || us == GATE_NEVER);
    put_start(p, us, "-");
    html(p->h, "</td>");
}

/* ---- Cells of a document */

static void begin_cell(struct page *p, const char *label, const char *text)
{
    html(p->h, "<td class=\"wide%r\" data-label=\"%r\"><span>", *text ? "" : " nil", label);
}

static void end_cell(struct page *p)
{
    html(p->h, "</span></td>");
}

void put_secret(struct page *p, const char *text)
{
    html(p->h, p->r->hide_args && *text ? "<span class=\"pale\">hidden</span>" : "<bdi>%s</bdi>", text);
}

void put_doc_text(struct page *p, const char *label, const json_t *doc, const char *member)
{
    begin_cell(p, label, json_text_of(doc, member));
    html(p->h, "<bdi>%t</bdi>", json_text_of(doc, member));
    end_cell(p);
}

void put_doc_secret(struct page *p, const char *label, const json_t *doc, const char *member)
{
    const char *text = json_text_of(doc, member);

    begin_cell(p, label, text);
    html(p->h, p->r->hide_args && *text ? "<span class=\"pale\">hidden</span>" : "<bdi>%t</bdi>", text);
    end_cell(p);
}

void put_doc_link(struct page *p, const char *label, const char *page, const json_t *doc, const char *member)
{
    const char *name = json_text_of(doc, member);

    begin_cell(p, label, name);
    if (*name)
        put_link(p, page, name);
    end_cell(p);
}

/* Keys stand in names of lanes. */
static bool is_shown(const struct page *p, const char *list)
{
    return !p->r->hide_args || strncmp(list, "lane:", 5) != 0 || list[strlen(list) - 1] == '/';
}

void put_doc_job(struct page *p, const json_t *doc, const char *state)
{
    const char *id = json_text_of(doc, "id");
    struct find_place place;

    begin_cell(p, "job", id);
    if (*id) {
        html(p->h, "<a href=\"/jobs/%u", id);
        if (job_place(doc, state, &place) && is_shown(p, place.at))
            html(p->h, "?at=%u&amp;from=%u", place.at, place.from);
        html(p->h, "\"><bdi>%t</bdi></a>", id);
    }
    end_cell(p);
}

void put_doc_count(struct page *p, const char *label, const json_t *doc, const char *member)
{
    put_count_cell(p, label, json_int_of(doc, member));
}

void put_doc_cost(struct page *p, const char *label, const json_t *doc, const char *member)
{
    const json_t *cost = json_object_get(doc, member);
    char text[COST_TEXT_SIZE];

    if (json_is_integer(cost)) {
        put_count_cell(p, label, json_integer_value(cost));
        return;
    }
    begin_cell(p, label, text_cost(cost, text));
    html(p->h, "%t", text);
    end_cell(p);
}

void put_doc_time(struct page *p, const char *label, const json_t *doc, const char *member)
{
    put_time_cell(p, label, json_us(json_object_get(doc, member)));
}

void put_doc_state(struct page *p, const char *label, const json_t *doc)
{
    html(p->h, "<td data-label=\"%r\"><span>", label);
    put_state(p, json_text_of(doc, "state"));
    end_cell(p);
}

void put_line(struct page *p, const char *name)
{
    html(p->h, "<div><dt>%r</dt><dd>", name);
}

void put_line_end(struct page *p)
{
    html(p->h, "</dd></div>");
}

/* ---- Links */

void put_link(struct page *p, const char *page, const char *name)
{
    html(p->h, "<a href=\"/%r/%u\"><bdi>%t</bdi></a>", page, name, name);
}

/* ---- States */

static int64_t sum_of(const struct part *parts, size_t count)
{
    int64_t sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += parts[i].count;
    return sum;
}

void put_bar(struct page *p, const struct part *parts, size_t count)
{
    int64_t sum = sum_of(parts, count);
    int at = 0;

    html(p->h,
         "<svg class=\"bar\" viewBox=\"0 0 %d 10\" preserveAspectRatio=\"none\" aria-hidden=\"true\">"
         "<rect class=\"track\" width=\"%d\" height=\"10\"/>",
         BAR, BAR);
    for (size_t i = 0; i < count; i++) {
        int width = sum > 0 ? (int)((double)parts[i].count / (double)sum * BAR) : 0;

        width = parts[i].count > 0 && width < 12 ? 12 : width;
        width = width > BAR - at ? BAR - at : width;
        if (width > 0)
            html(p->h, "<rect class=\"s-%r\" x=\"%d\" width=\"%d\" height=\"10\"/>", parts[i].name, at,
                 width);
        at += width;
    }
    html(p->h, "</svg>");
}

void put_legend(struct page *p, const struct part *parts, size_t count)
{
    html(p->h, "<span class=\"legend\">");
    for (size_t i = 0; i < count; i++)
        if (parts[i].count > 0)
            html(p->h, "<span><i class=\"mark s-%r\"></i>%n %r</span> ", parts[i].name, parts[i].count,
                 parts[i].label);
    if (sum_of(parts, count) == 0)
        html(p->h, "<span class=\"pale\">none</span>");
    html(p->h, "</span>");
}

void put_state(struct page *p, const char *state)
{
    html(p->h, "<span class=\"state\"><i class=\"mark s-%s\"></i>%s</span>", state, state);
}

/* ---- Tables */

void put_table(struct page *p, const char *heading, const char *columns)
{
    char name[64];

    p->columns = 0;
    html(p->h, *heading ? "<section><h2>%r</h2>" : "<section>", heading);
    html(p->h, "<table><thead><tr>");
    for (size_t len; *columns; columns += len + (columns[len] == '|')) {
        bool number = *columns == '#', unseen = *columns == '!';

        len = strcspn(columns, "|");
        if (unseen && !p->r->actions)
            continue;
        snprintf(name, sizeof name, "%.*s", (int)len - (number || unseen), columns + (number || unseen));
        html(p->h,
             unseen ? "<th scope=\"col\"%r><span class=\"hidden\">%r</span></th>"
                    : "<th scope=\"col\"%r>%r</th>",
             number ? " class=\"n\"" : "", name);
        p->columns++;
    }
    html(p->h, "</tr></thead><tbody>");
}

void put_table_end(struct page *p)
{
    html(p->h, "</tbody></table></section>");
}

void put_none(struct page *p, const char *none)
{
    html(p->h, "<tr class=\"empty\"><td colspan=\"%d\">%r</td></tr>", p->columns, none);
}

void put_rows(struct page *p, const char *heading, const char *columns, const json_t *rows,
              void (*put_row)(struct page *p, const json_t *row), const char *none)
{
    put_table(p, heading, columns);
    for (size_t i = 0; i < json_array_size(rows); i++)
        put_row(p, json_array_get(rows, i));
    if (json_array_size(rows) == 0)
        put_none(p, none);
    put_table_end(p);
}

bool change_names(const char *what, const char *name)
{
    size_t len = strlen(name);

    for (const char *at = strstr(what, name); at; at = strstr(at + 1, name))
        if (at > what && at[-1] == ' ' && (at[len] == '\0' || at[len] == ' ' || at[len] == '/'))
            return true;
    return false;
}

/* ---- Forms */

/* Puts this page's address, without the problem that it tells of. */
static void put_address(struct page *p, bool encoded)
{
    const char *query = p->r->query ? p->r->query : "", *problem = strstr(query, "problem=");
    char address[8192];

    snprintf(address, sizeof address, "%s%s%.*s", p->r->path, *query && problem != query ? "?" : "",
             problem ? (int)(problem - query) - (problem > query) : (int)strlen(query), query);
    html(p->h, encoded ? "%u" : "%s", address);
}

/* Puts the hidden field `back`: this page's address. */
static void put_back(struct page *p)
{
    html(p->h, "<input type=\"hidden\" name=\"back\" value=\"");
    put_address(p, false);
    html(p->h, "\">");
}

static void put_form(struct page *p, const struct button *b)
{
    bool of_key = strcmp(b->kind, "key") == 0;

    html(p->h, "<form class=\"act\" method=\"post\" action=\"%r%u%r\">", b->before, b->name, b->after);
    put_back(p);
    if (b->field)
        html(p->h, "<input type=\"hidden\" name=\"%r\" value=\"%s\">", b->field, b->value);
    html(p->h, "<button>%r<span class=\"hidden\"> %r %s</span></button>", b->label, b->kind,
         of_key ? b->value : b->name);
}

void put_button(struct page *p, const struct button *b)
{
    if (!p->r->actions)
        return;
    put_form(p, b);
    html(p->h, "</form> ");
}

void put_pause(struct page *p, const char *kind, const char *before, const char *name, const char *key,
               bool paused)
{
    if (!p->r->actions)
        return;
    put_form(p, &(struct button){.label = paused ? "Resume" : "Pause",
                                 .kind = kind,
                                 .before = before,
                                 .name = name,
                                 .after = paused ? "/resume" : "/pause",
                                 .field = key ? "key" : NULL,
                                 .value = key});
    if (!paused)
        html(p->h,
             "<details class=\"how\"><summary>how long, why<span class=\"hidden\"> %r %s</span></summary>"
             "<label>For <input name=\"for\" size=\"8\" placeholder=\"until resumed; 10m\"></label> "
             "<label>Why <input name=\"reason\" placeholder=\"INC-123\"></label></details>",
             kind, key ? key : name);
    html(p->h, "</form> ");
}

bool ask_destroys(const char *what)
{
    return strcmp(what, "jobs-run") != 0 && strcmp(what, "jobs-retry") != 0;
}

void put_ask(struct page *p, const char *label, const char *what, const char *name)
{
    if (!p->r->actions)
        return;
    html(p->h,
         "<a class=\"button%r\" href=\"/ask?do=%u&amp;name=%u&amp;back=", ask_destroys(what) ? " danger" : "",
         what, name);
    put_address(p, true);
    html(p->h, "\">%r…<span class=\"hidden\"> %s</span></a> ", label, name);
}

void put_way_on(struct page *p, const struct way_on *on)
{
    char word[HIDDEN_CURSOR_SIZE];

    html(p->h, "<p class=\"pager\"><span>looked at %n", on->looked_at);
    if (on->of > on->looked_at)
        html(p->h, " of about %n", on->of);
    html(p->h, "</span>");
    if (on->cursor && p->r->hide_args)
        view_hide_cursor(on->cursor, word);
    if (on->cursor)
        html(p->h, " <a rel=\"next\" href=\"%r%u%r%u\">Go on</a>", on->before, on->name, on->after,
             p->r->hide_args ? word : on->cursor);
    html(p->h, "</p>");
}

void put_pager(struct page *p, const char *name, const char *value, int64_t from, int64_t shown, int64_t all)
{
    if (from == 0 && shown >= all)
        return;
    html(p->h, "<p class=\"pager\">");
    if (from > 0)
        html(p->h, "<a rel=\"prev\" href=\"?%r=%u&amp;from=%i\">Before</a> ", name, value,
             from > PAGER_STEP ? from - PAGER_STEP : 0);
    html(p->h, "<span>%n to %n of %n</span>", shown ? from + 1 : from, from + shown, all);
    if (from + shown < all)
        html(p->h, " <a rel=\"next\" href=\"?%r=%u&amp;from=%i\">More</a>", name, value, from + shown);
    html(p->h, "</p>");
}

/* The gate of a key is named after it, "mailgun#0/42": the same without the key. */
static json_t *without_key(const json_t *doc)
{
    const char *gate = json_text_of(doc, "gate");
    json_t *copy = json_copy((json_t *)doc);

    json_object_set_new(copy, "gate", json_stringn(gate, strcspn(gate, "/")));
    return copy;
}

/* Leads to where something can be done: to the limit, or to its keys. */
static bool begin_waits_link(struct page *p, const json_t *doc)
{
    const char *limit = json_text_of(doc, "limit_name");

    if (*limit)
        html(p->h, "<a href=\"/%r/%u\">", strstr(json_text_of(doc, "rule"), ",by=") ? "keys" : "limits",
             limit);
    return *limit;
}

void put_waits_document(struct page *p, const json_t *doc)
{
    bool links;
    char *text = NULL;
    size_t len = 0;
    json_t *shown =
        p->r->hide_args && json_object_get(doc, "gate") ? without_key(doc) : json_incref((json_t *)doc);
    FILE *to = json_is_object(doc) ? open_memstream(&text, &len) : NULL;

    if (to) {
        waits_put(to, shown, p->now_us);
        fclose(to);
        html(p->h, "<small class=\"waits\">");
        links = begin_waits_link(p, doc);
        html(p->h, "waits for <bdi>%s</bdi>%r</small>", text ? text : "", links ? "</a>" : "");
    }
    json_decref(shown);
    free(text);
}

void put_waits(struct page *p, const json_t *waits_for)
{
    json_t *doc = json_is_object(waits_for) ? document_make(waits_for, waits_members) : NULL;

    put_waits_document(p, doc);
    json_decref(doc);
}

void put_filter(struct page *p, const char *path, const char *label, const char *like, size_t rows)
{
    if (rows > 10 || *like)
        html(p->h,
             "<form class=\"filter\" action=\"%r\"><label>%r <input type=\"search\" name=\"like\" "
             "value=\"%s\" "
             "autocomplete=\"off\"></label><button>Show</button></form>",
             path, label, like);
}

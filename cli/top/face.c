#include "cli/top/face.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/top/deed.h"
#include "view/format.h"
#include "view/output.h"
#include "view/report.h"

#define HEAD_ROWS 3 /* the verdict, the views, the headings */
#define FOOT_ROWS 3 /* two lines about a row, the keys */

size_t face_room(const struct canvas *c)
{
    return c->rows > HEAD_ROWS + FOOT_ROWS ? (size_t)(c->rows - HEAD_ROWS - FOOT_ROWS) : 0;
}

/* ---- Text that is made by others for a stream */

struct stream {
    FILE *to;
    char *text;
    size_t size;
};

static bool stream_open(struct stream *s)
{
    *s = (struct stream){.text = NULL};
    s->to = open_memstream(&s->text, &s->size);
    return s->to != NULL;
}

static void stream_put(struct stream *s, struct canvas *c, int row, int column, enum ink ink)
{
    if (fclose(s->to) == 0)
        canvas_put(c, row, column, c->columns, ink, s->text);
    free(s->text);
}

/* ---- The first line */

static void put_verdict(struct canvas *c, const json_t *report)
{
    static const struct {
        const char *name;
        enum ink ink;
    } verdicts[] = {{"idle", INK_GOOD},
                    {"flowing", INK_GOOD},
                    {"wrong", INK_WRONG},
                    {"stuck", INK_WRONG},
                    {"unknown", INK_WARNING}};
    const char *verdict = answer_text(report, "verdict");
    enum ink ink = INK_PLAIN;
    struct stream line;
    int at;

    for (size_t i = 0; i < sizeof verdicts / sizeof *verdicts; i++)
        if (strcmp(verdicts[i].name, verdict) == 0)
            ink = verdicts[i].ink;
    at = canvas_put(c, 0, 0, c->columns, ink, verdict);
    at += canvas_put(c, 0, at, c->columns, INK_PLAIN, ": ");
    if (!stream_open(&line))
        return;
    report_put_verdict(line.to, report);
    stream_put(&line, c, 0, at, INK_PLAIN);
}

static void put_silence(struct canvas *c, const struct health *health)
{
    char text[640];

    snprintf(text, sizeof text, "no answer from Redis for %" PRId64 " s%s%s", health->silent_us / 1000000,
             *health->why ? ": " : "", health->why);
    canvas_put(c, 0, 0, c->columns, INK_WRONG, text);
}

static void put_first(struct canvas *c, const struct glance *g, const struct health *health)
{
    if (health->silent_us > 0)
        put_silence(c, health);
    else if (*health->why)
        canvas_put(c, 0, 0, c->columns, INK_WRONG, health->why);
    else if (g->now)
        put_verdict(c, g->now->report);
    else
        canvas_put(c, 0, 0, c->columns, INK_PALE, "reading...");
}

/* ---- The views */

static void put_views(struct canvas *c, const struct state *s, const struct glance *g)
{
    int at = 0;
    char text[64], number[32];

    for (int i = 0; i < VIEW_COUNT; i++) {
        size_t count = 0, size;
        int width;

        if (g->now)
            tables[i]->rows(g->now, &count, &size);
        snprintf(text, sizeof text, " %d %s %s ", i + 1, tables[i]->name, grouped(count, number));
        width = canvas_put(c, 1, at, c->columns, INK_PLAIN, text);
        if (i == (int)s->view)
            canvas_reverse(c, 1, at, width);
        at += width + 1;
    }
}

/* Where and when, at the right edge: the first that fits. */
static void put_where(struct canvas *c, const struct glance *g, const struct health *health)
{
    char clock[PHRASE_SIZE] = "", span[PHRASE_SIZE], text[400];

    if (!g->now)
        return;
    snprintf(text, sizeof text, "%s, every %s  %s", health->where, format_span(health->interval_us, span),
             format_clock(g->now_us, g->now_us, clock));
    canvas_put_right(c, 1, c->columns - 34, 34, INK_PALE, canvas_columns(c, text) <= 34 ? text : clock);
}

/* ---- The table */

/* Which columns there are room for; *first: what the first one then has. */
static void choose_columns(const struct column *columns, int width, bool *shown, int *first)
{
    int used, drop, worst;

    for (int i = 0; columns[i].heading; i++)
        shown[i] = true;
    do {
        used = worst = drop = 0;
        for (int i = 0; columns[i].heading; i++) {
            used += shown[i] ? columns[i].width + (i > 0) : 0;
            if (shown[i] && columns[i].drop > drop) {
                drop = columns[i].drop;
                worst = i;
            }
        }
        if (used > width && drop > 0)
            shown[worst] = false;
    } while (used > width && drop > 0);
    *first = columns[0].width + (used < width ? width - used : 0);
}

#define COLUMNS_MOST 24

struct layout {
    bool shown[COLUMNS_MOST];
    int first;
};

static void put_aligned(struct canvas *c, int row, int at, int width, const struct column *column,
                        enum ink ink, const char *text)
{
    if (column->left)
        canvas_put(c, row, at, width, ink, text);
    else
        canvas_put_right(c, row, at, width, ink, text);
}

/* One row of the table; what: NULL is its headings. */
static void put_cells(struct canvas *c, int row, const struct state *s, const struct glance *g,
                      const struct layout *layout, const void *what)
{
    const struct column *columns = tables[s->view]->columns;

    for (int i = 0, at = 0; columns[i].heading; i++) {
        struct cell_text cell = {.text = "", .ink = INK_PLAIN};
        int width = i == 0 ? layout->first : columns[i].width;

        if (!layout->shown[i])
            continue;
        if (what)
            columns[i].put(g, what, &cell);
        else
            snprintf(cell.text, sizeof cell.text, "%s", columns[i].heading);
        if (!what)
            cell.ink = i == s->panes[s->view].sorted ? INK_STRONG : INK_PALE;
        put_aligned(c, row, at, width, &columns[i], cell.ink, cell.text);
        at += width + 1;
    }
}

static void put_empty(struct canvas *c, const struct state *s, const struct rows *rows)
{
    char text[LINE_SIZE + 64];

    if (rows->all > 0)
        snprintf(text, sizeof text, "none has %s in its name; Esc shows all", s->panes[s->view].filter);
    else
        snprintf(text, sizeof text, "no %s yet", tables[s->view]->name);
    canvas_put(c, HEAD_ROWS, 0, c->columns, INK_PALE, text);
}

static void put_table(struct canvas *c, const struct state *s, const struct glance *g,
                      const struct rows *rows)
{
    const struct pane *p = &s->panes[s->view];
    struct layout layout = {.first = 0};

    choose_columns(tables[s->view]->columns, c->columns, layout.shown, &layout.first);
    put_cells(c, HEAD_ROWS - 1, s, g, &layout, NULL);
    for (size_t i = 0; i < s->room && p->top + i < rows->count; i++) {
        int row = HEAD_ROWS + (int)i;

        put_cells(c, row, s, g, &layout, rows->at[p->top + i]);
        if (p->top + i == p->at)
            canvas_reverse(c, row, 0, c->columns);
    }
    if (rows->count == 0 && g->now)
        put_empty(c, s, rows);
}

/* ---- What other rules would do */

struct forecast_cells {
    const char *type, *waiting, *now, *then;
    enum ink ink;
};

static void put_forecast_cells(struct canvas *c, int row, const struct forecast_cells *cells)
{
    canvas_put(c, row, 0, 22, cells->ink, cells->type);
    canvas_put_right(c, row, 23, 9, cells->ink, cells->waiting);
    canvas_put(c, row, 34, 22, cells->ink, cells->now);
    canvas_put(c, row, 57, c->columns - 57, cells->ink, cells->then);
}

static void format_end(const json_t *at, bool at_the_earliest, int64_t now_us, char out[PHRASE_SIZE])
{
    if (json_is_number(at))
        format_when(now_us, json_us(at), out);
    else
        snprintf(out, PHRASE_SIZE, "not known");
    if (json_is_number(at) && at_the_earliest)
        snprintf(out + strlen(out), PHRASE_SIZE - strlen(out), "+");
}

static void put_forecast_of(struct canvas *c, int row, const char *name, const json_t *type, int64_t now_us)
{
    char waiting[32], now[PHRASE_SIZE], then[PHRASE_SIZE];

    grouped((uint64_t)(answer_int(type, "waiting") + answer_int(type, "parked")), waiting);
    format_end(json_object_get(type, "finish_at"), json_is_true(json_object_get(type, "at_the_earliest")),
               now_us, now);
    format_end(json_object_get(type, "new_finish_at"),
               json_is_true(json_object_get(type, "new_at_the_earliest")), now_us, then);
    put_forecast_cells(c, row, &(struct forecast_cells){name, waiting, now, then, INK_PLAIN});
}

static void put_forecast(struct canvas *c, const struct state *s, const struct glance *g)
{
    json_t *types = json_object_get(s->ask.doc, "types"), *type;
    char text[LINE_SIZE + 64];
    const char *name;
    int row = HEAD_ROWS + 1;

    snprintf(text, sizeof text, "nothing is changed yet; with %s:", s->ask.foretold);
    canvas_put(c, HEAD_ROWS - 1, 0, c->columns, INK_STRONG, text);
    put_forecast_cells(c, HEAD_ROWS,
                       &(struct forecast_cells){"TYPE", "JOBS", "LAST START NOW", "IT WOULD BE", INK_PALE});
    json_object_foreach(types, name, type)
    {
        if (row < HEAD_ROWS + (int)s->room)
            put_forecast_of(c, row++, name, type, g->now_us);
    }
    if (json_object_size(types) == 0)
        canvas_put(c, row, 0, c->columns, INK_PALE, "no job that it holds waits");
    canvas_put(c, c->rows - 2, 0, c->columns, INK_PALE, "Enter applies it, Esc leaves it as it is");
}

/* ---- The keys of a limit */

static void put_key_cells(struct canvas *c, int row, enum ink ink, const char *const cells[4])
{
    canvas_put(c, row, 0, 34, ink, cells[0]);
    canvas_put_right(c, row, 35, 11, ink, cells[1]);
    canvas_put(c, row, 48, 10, ink, cells[2]);
    canvas_put(c, row, 59, c->columns - 59, ink, cells[3]);
}

static void put_key(struct canvas *c, int row, const json_t *key, int64_t now_us)
{
    const json_t *until = json_object_get(key, "paused_until"), *start = json_object_get(key, "next_start");
    bool paused = json_is_number(until) && json_us(until) > now_us;
    const json_t *at = paused ? until : start;
    const char *state = answer_text(key, "state");
    char jobs[32] = "", when[PHRASE_SIZE] = "";

    if (json_object_get(key, "parked"))
        grouped((uint64_t)answer_int(key, "parked"), jobs);
    if (json_is_number(at) && json_us(at) > now_us)
        format_when(now_us, json_us(at), when);
    put_key_cells(c, row, paused ? INK_WARNING : INK_PLAIN,
                  (const char *const[]){answer_text(key, "key"), jobs, *state ? state : "paused", when});
}

static void put_keys(struct canvas *c, const struct state *s, const struct glance *g)
{
    size_t count = json_array_size(s->ask.doc), room = s->room, at = s->ask.at;
    size_t top = at > room ? at - room : 0;

    put_key_cells(c, HEAD_ROWS - 1, INK_PALE, (const char *const[]){"KEY", "PARKED", "STATE", "OPENS"});
    for (size_t i = top; i < count && i < top + room; i++) {
        int row = HEAD_ROWS + (int)(i - top);

        put_key(c, row, json_array_get(s->ask.doc, i), g->now_us);
        if (i + 1 == at)
            canvas_reverse(c, row, 0, c->columns);
    }
    if (count == 0)
        canvas_put(c, HEAD_ROWS, 0, c->columns, INK_PALE, "none is known: type it");
    canvas_put(c, c->rows - 2, 0, c->columns, INK_PALE, "up and down choose one, or type it");
}

/* ---- Below it */

static void put_more(struct canvas *c, const struct state *s, const struct glance *g, const struct rows *rows)
{
    const void *row = state_row(s, rows);
    struct stream first, second;
    bool opened;

    if (!row || !stream_open(&first))
        return;
    opened = stream_open(&second);
    if (opened)
        tables[s->view]->tell(first.to, second.to, g, row);
    stream_put(&first, c, c->rows - 3, 0, INK_PLAIN);
    if (opened)
        stream_put(&second, c, c->rows - 2, 0, INK_PALE);
}

static void put_question(struct canvas *c, const struct ask *ask)
{
    int at = canvas_put(c, c->rows - 1, 0, c->columns, INK_STRONG, ask->question);

    if (ask->kind == ASK_YES)
        return;
    at += canvas_put(c, c->rows - 1, at, c->columns, INK_PLAIN, ask->typed);
    canvas_reverse(c, c->rows - 1, at, 1);
}

/* The keys of this view that change something. */
static void list_keys(const struct state *s, char *out, size_t size)
{
    size_t len = 0;

    *out = '\0';
    for (const struct deed_key *d = deed_keys; d->word && len < size; d++)
        if (d->view == s->view)
            len += (size_t)snprintf(out + len, size - len, "  %c %s", d->key, d->word);
}

static void put_last(struct canvas *c, const struct state *s, const struct rows *rows)
{
    const char *filter = s->panes[s->view].filter;
    char text[SAID_SIZE], keys[256] = "  read-only", place[64];

    if (*s->said) {
        canvas_put(c, c->rows - 1, 0, c->columns, INK_WARNING, s->said);
        return;
    }
    if (!s->read_only)
        list_keys(s, keys, sizeof keys);
    if (s->mode == MODE_FILTER || *filter)
        snprintf(text, sizeof text, "/%s%s", filter, s->mode == MODE_FILTER ? "_" : "");
    else
        snprintf(text, sizeof text, "? help  q quit%s", keys);
    canvas_put(c, c->rows - 1, 0, c->columns - 18, INK_PALE, text);
    if (rows->count > 0) {
        snprintf(place, sizeof place, "%zu of %zu", s->panes[s->view].at + 1, rows->count);
        canvas_put_right(c, c->rows - 1, c->columns - 17, 17, INK_PALE, place);
    }
}

/* ---- Help */

static void put_help(struct canvas *c)
{
    static const char *const lines[] = {
        "1 2 3 4, tab       types, limits, workers, queues",
        "up down, j k       the row that is chosen; page up and down, space, home, end",
        "< >                sort by the column before, behind",
        "o                  turn the order",
        "/                  only rows with that in their names; Esc: all of them",
        "q, Ctrl-C          quit",
        "",
        "types    p pause, r resume, c change the rate of the limit in the way;",
        "         d retry the dead, D remove them",
        "limits   p pause, r resume, c change the rate, R remove;",
        "         x pause one of the longest keys, or another; y resume one",
        "workers  u quiet: no more jobs, S stop",
        "queues   p pause, r resume, P purge",
        "Capitals destroy, and ask first. A rate is applied after its forecast is shown.",
        "",
        "RATE is what the limits of a type let through now, KEPT what starts.",
        "10 MIN: starts in each of the last ten minutes. ENDS: when the last job that",
        "waits starts; with a +, at the earliest. WASTED: slots of a limit in which no",
        "job started, in the last hour.",
    };

    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        canvas_put(c, 2 + (int)i, 0, c->columns, INK_PLAIN, lines[i]);
    canvas_put(c, c->rows - 1, 0, c->columns, INK_PALE, "any key goes back");
}

/* ---- All of it */

static void put_too_small(struct canvas *c)
{
    char text[64];

    snprintf(text, sizeof text, "%dx%d is too small: %dx%d at least", c->columns, c->rows, FACE_COLUMNS,
             FACE_ROWS);
    canvas_put(c, 0, 0, c->columns, INK_WARNING, text);
    canvas_put(c, 1, 0, c->columns, INK_PALE, "q quits");
}

void face_draw(struct canvas *c, const struct state *s, const struct glance *g, const struct rows *rows,
               const struct health *health)
{
    if (c->rows < FACE_ROWS || c->columns < FACE_COLUMNS) {
        put_too_small(c);
        return;
    }
    put_first(c, g, health);
    if (s->mode == MODE_HELP) {
        put_help(c);
        return;
    }
    put_views(c, s, g);
    put_where(c, g, health);
    if (s->mode == MODE_ASK && s->ask.doc && s->ask.kind == ASK_RULES) {
        put_forecast(c, s, g);
    } else if (s->mode == MODE_ASK && s->ask.doc) {
        put_keys(c, s, g);
    } else {
        put_table(c, s, g, rows);
        put_more(c, s, g, rows);
    }
    if (s->mode == MODE_ASK && !*s->said)
        put_question(c, &s->ask);
    else
        put_last(c, s, rows);
}

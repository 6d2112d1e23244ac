#include "cli/top/layout.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/top/action.h"
#include "view/format.h"
#include "view/report.h"

#define HEAD_ROWS 3 /* the verdict, the views, the headings */
#define FOOT_ROWS 3 /* two lines about a row, the keys */

size_t layout_room(const struct canvas *c)
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

static void put_first(struct canvas *c, const struct frame *f, const struct health *health)
{
    if (health->silent_us > 0)
        put_silence(c, health);
    else if (*health->why)
        canvas_put(c, 0, 0, c->columns, INK_WRONG, health->why);
    else if (f->now)
        put_verdict(c, f->now->report);
    else
        canvas_put(c, 0, 0, c->columns, INK_PALE, "reading...");
}

/* ---- The views */

static void put_views(struct canvas *c, const struct state *s, const struct frame *f)
{
    int at = 0;
    char text[64], number[32];

    for (int i = 0; i < VIEW_COUNT; i++) {
        size_t count = 0, size;
        int width;

        if (f->now)
            tables[i]->rows(f->now, &count, &size);
        snprintf(text, sizeof text, " %d %s %s ", i + 1, tables[i]->name, grouped(count, number));
        width = canvas_put(c, 1, at, c->columns, INK_PLAIN, text);
        if (i == (int)s->view)
            canvas_reverse(c, 1, at, width);
        at += width + 1;
    }
}

/* Puts where and when, at the right edge: the first form that fits. */
static void put_where(struct canvas *c, const struct frame *f, const struct health *health)
{
    char clock[PHRASE_SIZE] = "", span[PHRASE_SIZE], text[400];

    if (!f->now)
        return;
    snprintf(text, sizeof text, "%s, every %s  %s", health->where, format_span(health->interval_us, span),
             format_clock(f->now_us, f->now_us, clock));
    canvas_put_right(c, 1, c->columns - 34, 34, INK_PALE, canvas_columns(c, text) <= 34 ? text : clock);
}

/* ---- The table */

#define NAME_WIDTH 32 /* columns are left out for names of up to that */

/* Which columns there is room for beside names of that width; *first: what the first one then has. */
static void choose_columns(const struct column *columns, int width, int names, bool *shown, int *first)
{
    int used, drop, worst, wanted = names < NAME_WIDTH ? names : NAME_WIDTH;

    wanted = wanted > columns[0].width ? wanted : columns[0].width;

    for (int i = 0; columns[i].heading; i++)
        shown[i] = true;
    do {
        used = worst = drop = 0;
        for (int i = 0; columns[i].heading; i++) {
            used += !shown[i] ? 0 : i == 0 ? wanted : columns[i].width + 1;
            if (shown[i] && columns[i].drop > drop) {
                drop = columns[i].drop;
                worst = i;
            }
        }
        if (used > width && drop > 0)
            shown[worst] = false;
    } while (used > width && drop > 0);
    *first = wanted + width - used > columns[0].width ? wanted + width - used : columns[0].width;
}

#define COLUMNS_MOST 24

struct shown_columns {
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

/* A name that is too long shows its beginning and its end. */
static void cut_middle(const struct canvas *c, int width, char text[CELL_SIZE])
{
    int columns = canvas_columns(c, text), before = width / 2;
    char end[CELL_SIZE];

    if (columns <= width || columns != (int)strlen(text))
        return;
    snprintf(end, sizeof end, "%s", text + columns - (width - before - 1));
    snprintf(text + before, (size_t)(CELL_SIZE - before), "%s%s", c->ascii ? "~" : "…", end);
}

/* Puts a row of the table; what NULL: its headings. */
static void put_cells(struct canvas *c, int row, const struct state *s, const struct frame *f,
                      const struct shown_columns *show, const void *what)
{
    const struct column *columns = tables[s->view]->columns;

    for (int i = 0, at = 0; columns[i].heading; i++) {
        struct cell_text cell = {.text = "", .ink = INK_PLAIN};
        int width = i == 0 ? show->first : columns[i].width;

        if (!show->shown[i])
            continue;
        if (what)
            column_put(&columns[i], f, what, &cell);
        else
            snprintf(cell.text, sizeof cell.text, "%s", columns[i].heading);
        if (!what)
            cell.ink = i == s->panes[s->view].sorted ? INK_STRONG : INK_PALE;
        else if (i == 0)
            cut_middle(c, width, cell.text);
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

/* Of the rows that are on the screen. */
static int longest_name(const struct canvas *c, const struct state *s, const struct rows *rows)
{
    size_t top = s->panes[s->view].top;
    int longest = 0;

    for (size_t i = top; i < rows->count && i < top + s->room; i++) {
        int columns = canvas_columns(c, row_name(rows->at[i]));

        longest = columns > longest ? columns : longest;
    }
    return longest;
}

static void put_table(struct canvas *c, const struct state *s, const struct frame *f, const struct rows *rows)
{
    const struct pane *p = &s->panes[s->view];
    struct shown_columns show = {.first = 0};

    choose_columns(tables[s->view]->columns, c->columns, longest_name(c, s, rows), show.shown, &show.first);
    put_cells(c, HEAD_ROWS - 1, s, f, &show, NULL);
    for (size_t i = 0; i < s->room && p->top + i < rows->count; i++) {
        int row = HEAD_ROWS + (int)i;

        put_cells(c, row, s, f, &show, rows->at[p->top + i]);
        if (p->top + i == p->at)
            canvas_reverse(c, row, 0, c->columns);
    }
    if (rows->count == 0 && f->now)
        put_empty(c, s, rows);
}

/* ---- Below it */

static void put_more(struct canvas *c, const struct state *s, const struct frame *f, const struct rows *rows)
{
    const void *row = state_row(s, rows);
    struct stream first, second;
    bool opened;

    if (!row || !stream_open(&first))
        return;
    opened = stream_open(&second);
    if (opened)
        tables[s->view]->tell(first.to, second.to, f, row);
    stream_put(&first, c, c->rows - 3, 0, INK_PLAIN);
    if (opened)
        stream_put(&second, c, c->rows - 2, 0, INK_PALE);
}

/* Lists the keys of this view that change something. */
static void list_keys(const struct state *s, char *out, size_t size)
{
    size_t len = 0;

    *out = '\0';
    for (const struct action_key *a = action_keys; a->word && len < size; a++)
        if (a->view == s->view)
            len += (size_t)snprintf(out + len, size - len, "  %c %s", a->key, a->word);
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
    if (s->mode == MODE_ASK)
        snprintf(text, sizeof text, "worker %s: takes no more jobs, and stays? [y/N]", s->order.name);
    else if (s->mode == MODE_COMMAND)
        snprintf(text, sizeof text, ":weir %s_", s->command);
    else if (s->mode == MODE_FILTER || *filter)
        snprintf(text, sizeof text, "/%s%s", filter, s->mode == MODE_FILTER ? "_" : "");
    else
        snprintf(text, sizeof text, "? help  q quit%s%s", keys, s->read_only ? "" : "  : weir ...");
    canvas_put(c, c->rows - 1, 0, c->columns - 18, s->mode == MODE_LIST ? INK_PALE : INK_STRONG, text);
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
        "Enter              more of that row: why its jobs died, the first ones, its limits",
        "d b s              dead jobs by reason, batches, schedules",
        "q, Ctrl-C          quit",
        "",
        "types    p pause, r resume: the type itself",
        "limits   p pause for ten minutes, r resume",
        "workers  u quiet: no more jobs",
        "queues   p pause, r resume",
        ":        a command: rate set mail 50/s, job list state:dead, ...",
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

    snprintf(text, sizeof text, "%dx%d is too small: %dx%d at least", c->columns, c->rows, LAYOUT_COLUMNS,
             LAYOUT_ROWS);
    canvas_put(c, 0, 0, c->columns, INK_WARNING, text);
    canvas_put(c, 1, 0, c->columns, INK_PALE, "q quits");
}

void layout_draw(struct canvas *c, const struct state *s, const struct frame *f, const struct rows *rows,
                 const struct health *health)
{
    if (c->rows < LAYOUT_ROWS || c->columns < LAYOUT_COLUMNS) {
        put_too_small(c);
        return;
    }
    put_first(c, f, health);
    if (s->mode == MODE_HELP) {
        put_help(c);
        return;
    }
    put_views(c, s, f);
    put_where(c, f, health);
    put_table(c, s, f, rows);
    put_more(c, s, f, rows);
    put_last(c, s, rows);
}

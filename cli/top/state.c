#include "cli/top/state.h"

#include <stdio.h>
#include <string.h>

#include "cli/top/action.h"
#include "cli/top/line.h"

void state_begin(struct state *s, bool read_only)
{
    *s = (struct state){.read_only = read_only};
    for (int i = 0; i < VIEW_COUNT; i++)
        s->panes[i].sorted = tables[i]->sorted;
}

struct pane *state_pane(struct state *s)
{
    return &s->panes[s->view];
}

const void *state_row(const struct state *s, const struct rows *rows)
{
    size_t at = s->panes[s->view].at;

    return at < rows->count ? rows->at[at] : NULL;
}

/* ---- The row that is chosen */

static void scroll(struct state *s, size_t count)
{
    struct pane *p = state_pane(s);
    size_t room = s->room ? s->room : 1;

    if (p->at < p->top)
        p->top = p->at;
    if (p->at >= p->top + room)
        p->top = p->at - room + 1;
    if (p->top + room > count)
        p->top = count > room ? count - room : 0;
}

static void choose(struct state *s, const struct rows *rows, size_t at)
{
    struct pane *p = state_pane(s);

    p->at = at < rows->count ? at : rows->count ? rows->count - 1 : 0;
    snprintf(p->chosen, sizeof p->chosen, "%s", rows->count ? row_name(rows->at[p->at]) : "");
    scroll(s, rows->count);
}

void state_settle(struct state *s, const struct rows *rows)
{
    struct pane *p = state_pane(s);
    size_t at = 0;

    while (at < rows->count && strcmp(row_name(rows->at[at]), p->chosen) != 0)
        at++;
    if (at < rows->count) {
        p->at = at;
        scroll(s, rows->count);
    } else {
        choose(s, rows, *p->chosen ? p->at : 0);
    }
}

/* ---- Keys */

static void move(struct state *s, const struct rows *rows, int64_t by)
{
    int64_t at = (int64_t)state_pane(s)->at + by;

    choose(s, rows, at > 0 ? (size_t)at : 0);
}

static void turn_to(struct state *s, int view)
{
    s->view = (enum view)((view + VIEW_COUNT) % VIEW_COUNT);
}

/* The next column that rows can be sorted by. */
static void sort_by_next(struct state *s, int step)
{
    const struct column *columns = tables[s->view]->columns;
    struct pane *p = state_pane(s);
    int count = 1;

    while (columns[count].heading)
        count++;
    do
        p->sorted = (p->sorted + step + count) % count;
    while (!column_is_sorted(&columns[p->sorted]));
    p->backwards = false;
}

static void end_filter(struct state *s)
{
    *state_pane(s)->filter = '\0';
    s->mode = MODE_LIST;
}

static void key_of_filter(struct state *s, int key)
{
    if (key == KEY_IS_ESCAPE)
        end_filter(s);
    else if (key == KEY_IS_ENTER)
        s->mode = MODE_LIST;
    else
        line_key(state_pane(s)->filter, LINE_SIZE, key);
}

static void key_of_command(struct state *s, int key)
{
    s->entered = key == KEY_IS_ENTER && *s->command;
    if (key == KEY_IS_ESCAPE || key == KEY_IS_ENTER)
        s->mode = MODE_LIST;
    else
        line_key(s->command, sizeof s->command, key);
}

static void begin_command(struct state *s)
{
    *s->command = '\0';
    if (s->read_only)
        snprintf(s->said, sizeof s->said, "read-only: start weir top without --read-only to run commands");
    else
        s->mode = MODE_COMMAND;
}

/* Runs the command that shows more of the row that is chosen, or of all. */
static void look_into(struct state *s, int key, const struct rows *rows)
{
    static const char *const of_row[VIEW_COUNT] = {
        [VIEW_TYPES] =
            "type show %1$s; weir dead list --group --type %1$s; weir job list type:%1$s --limit 10",
        [VIEW_LIMITS] = "rate show %1$s",
        [VIEW_WORKERS] = "job list worker:%1$s",
        [VIEW_QUEUES] = "job list queue:%1$s --limit 20",
    };
    const void *row = state_row(s, rows);
    const char *name = row ? row_name(row) : "";

    if (key != KEY_IS_ENTER)
        snprintf(s->command, sizeof s->command, "%s",
                 key == 'd'   ? "dead list --group"
                 : key == 'b' ? "batch list"
                              : "schedule list");
    else if (name_is_valid(name, strlen(name))) /* the shell takes it as it stands */
        snprintf(s->command, sizeof s->command, of_row[s->view], name);
    else
        return;
    s->entered = true;
}

static bool key_of_rows(struct state *s, int key, const struct rows *rows)
{
    switch (key) {
    case KEY_IS_UP:
    case 'k':
        move(s, rows, -1);
        return true;
    case KEY_IS_DOWN:
    case 'j':
        move(s, rows, 1);
        return true;
    case KEY_IS_PAGE_UP:
        move(s, rows, -(int64_t)s->room);
        return true;
    case KEY_IS_PAGE_DOWN:
    case ' ':
        move(s, rows, (int64_t)s->room);
        return true;
    case KEY_IS_HOME:
    case 'g':
        choose(s, rows, 0);
        return true;
    case KEY_IS_END:
    case 'G':
        choose(s, rows, rows->count);
        return true;
    default:
        return false;
    }
}

static bool key_of_views(struct state *s, int key)
{
    if (key >= '1' && key < '1' + VIEW_COUNT)
        turn_to(s, key - '1');
    else if (key == KEY_IS_TAB || key == KEY_IS_BACK_TAB)
        turn_to(s, (int)s->view + (key == KEY_IS_TAB ? 1 : -1));
    else if (key == '<' || key == KEY_IS_LEFT)
        sort_by_next(s, -1);
    else if (key == '>' || key == KEY_IS_RIGHT)
        sort_by_next(s, 1);
    else if (key == 'o')
        state_pane(s)->backwards = !state_pane(s)->backwards;
    else
        return false;
    return true;
}

static void key_of_list(struct state *s, int key, const struct rows *rows)
{
    if (key_of_rows(s, key, rows) || key_of_views(s, key))
        return;
    if (key == 'q')
        s->quit = true;
    else if (key == '?' || key == 'h')
        s->mode = MODE_HELP;
    else if (key == '/')
        s->mode = MODE_FILTER;
    else if (key == ':')
        begin_command(s);
    else if (key == KEY_IS_ESCAPE)
        end_filter(s);
    else if (key == KEY_IS_ENTER || key == 'd' || key == 'b' || key == 's')
        look_into(s, key, rows);
    else
        action_begin(s, key, state_row(s, rows));
}

void state_key(struct state *s, int key, const struct rows *rows)
{
    *s->said = '\0';
    if (s->mode == MODE_FILTER)
        key_of_filter(s, key);
    else if (s->mode == MODE_COMMAND)
        key_of_command(s, key);
    else if (s->mode == MODE_ASK)
        action_answer(s, key);
    else if (s->mode == MODE_HELP)
        s->mode = MODE_LIST;
    else
        key_of_list(s, key, rows);
}

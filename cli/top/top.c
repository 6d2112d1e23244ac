/* weir top: what happens now, on a terminal.
 *
 *   reader.c     the thread that asks Redis, and carries out orders
 *   snapshot.c   what it has read
 *   columns.c    the tables: which rows are shown, and in which order; columns_<name>.c is one of them: its rows and columns
 *   cells.c      what their columns have in common
 *   state.c      what is shown and chosen, and what keys do; knows no terminal
 *   action.c     those keys that change something, and what they order
 *   order.c      orders, as the reader carries them out
 *   layout.c     all of it as a canvas (canvas.c)
 *   screen.c     ncurses */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/print/color.h"
#include "cli/top/action.h"
#include "cli/top/layout.h"
#include "cli/top/reader.h"
#include "cli/top/screen.h"
#include "cli/which_redis.h"
#include "core/clock.h"

#define INTERVAL_US 2000000
#define INTERVAL_LEAST_US 200000
#define TICK_US 1000000    /* times go on */
#define SILENCE_US 3000000 /* that an answer may take without a word about it */

static int run_top(struct cli *cli, int argc, char **argv);

const struct command command_top = {.name = "top", .logs = true, .run = run_top};

struct top {
    struct cli *cli;
    struct reader *reader;
    int wake;
    struct state state;
    struct canvas canvas;
    struct rows rows;
    struct top_snapshot *now;
    struct pasts *pasts;
    struct error error; /* of the last reading */
    int64_t interval_us, unanswered_us;
    struct wanted wanted;
    char where[128];
};

/* ---- A round */

static void take_news(struct top *t)
{
    struct news news = reader_take(t->reader);

    if (news.snapshot) {
        top_snapshot_free(t->now);
        t->now = news.snapshot;
    }
    if (news.pasts) {
        free(t->pasts);
        t->pasts = news.pasts;
    }
    if (news.result) {
        action_result(&t->state, news.result);
        free(news.result);
    }
    t->error = news.error;
    t->unanswered_us = news.unanswered_us;
    t->interval_us = news.interval_us;
}

static struct frame frame_of(const struct top *t)
{
    return (struct frame){.now = t->now,
                          .pasts = t->pasts,
                          .now_us = t->now ? t->now->status.now_us + clock_mono_us() - t->now->mono_us : 0,
                          .ascii = screen_is_ascii()};
}

static struct health health_of(const struct top *t)
{
    int64_t since_us = t->unanswered_us ? clock_mono_us() - t->unanswered_us : 0;
    bool lost = since_us > 0 && (t->error.status == WEIR_EUNREACHABLE || since_us > SILENCE_US);
    struct health health = {.silent_us = lost ? since_us : 0, .interval_us = t->interval_us};

    memcpy(health.why, t->error.text, sizeof health.why);
    memcpy(health.where, t->where, sizeof health.where);
    return health;
}

/* The past is read of the rows that are on the screen. */
static void want_shown(struct top *t)
{
    const struct pane *p = state_pane(&t->state);

    memset(&t->wanted, 0, sizeof t->wanted);
    t->wanted.of_limits = t->state.view == VIEW_LIMITS;
    for (size_t i = 0; t->state.view <= VIEW_LIMITS && i < t->state.room && i < PASTS_MOST; i++)
        if (p->top + i < t->rows.count)
            snprintf(t->wanted.names[t->wanted.count++], TOP_NAME_SIZE, "%s",
                     row_name(t->rows.at[p->top + i]));
    reader_want(t->reader, &t->wanted);
}

static bool draw(struct top *t)
{
    struct frame frame = frame_of(t);
    struct health health = health_of(t);
    const struct pane *p = state_pane(&t->state);
    int rows, columns;

    screen_size(&rows, &columns);
    rows_free(&t->rows);
    if (!canvas_begin(&t->canvas, rows, columns, screen_is_ascii()) ||
        !rows_choose(&t->rows, &frame, t->state.view, p->filter, p->sorted, p->backwards))
        return false;
    t->state.room = layout_room(&t->canvas);
    state_settle(&t->state, &t->rows);
    layout_draw(&t->canvas, &t->state, &frame, &t->rows, &health);
    screen_show(&t->canvas);
    want_shown(t);
    return true;
}

/* Awaits a key, news, a signal, or that times go on. false: the terminal is gone. */
static bool await(const struct top *t)
{
    struct pollfd on[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                          {.fd = STDOUT_FILENO}, /* may be another one */
                          {.fd = t->wake, .events = POLLIN}};
    eventfd_t ignored;
    int ready = poll(on, 3, TICK_US / 1000); /* a new size interrupts it */

    if (ready > 0 && on[2].revents)
        eventfd_read(t->wake, &ignored);
    return ready <= 0 || !((on[0].revents | on[1].revents) & (POLLHUP | POLLERR | POLLNVAL));
}

static void give_order(struct top *t)
{
    if (!t->state.ordered || !t->state.order.kind)
        return;
    reader_order(t->reader, &t->state.order);
    t->state.order.kind = ORDER_NONE;
}

/* ---- Commands */

/* What is typed is given to the shell as the words behind weir: this program, on this Redis and namespace. */
static void let_commands_find(struct cli *cli)
{
    const char *url = cli_redis_url(cli);
    char self[4096];
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);

    self[len > 0 ? len : 0] = '\0';
    setenv("WEIR_COMMAND", len > 0 ? self : "weir", true);
    if (url)
        setenv("REDIS_URL", url, true);
    if (cli->ns)
        setenv("WEIR_NAMESPACE", cli->ns, true);
}

/* Shows on the whole terminal what the command says, until Enter is pressed. */
static void run_command(struct top *t)
{
    char line[LINE_SIZE + 64];
    int ch;

    t->state.entered = false;
    screen_leave();
    output("$ weir %s\n", t->state.command);
    fflush(stdout);
    snprintf(line, sizeof line, "weir() { \"$WEIR_COMMAND\" \"$@\"; }; weir %s", t->state.command);
    if (system(line) < 0)
        output("it cannot be run\n");
    output("\nEnter goes back to weir top ");
    fflush(stdout);
    while ((ch = getchar()) != '\n' && ch != EOF) {
    }
}

/* Shows, and takes one key a round: it means the row that is shown when it is taken. */
static int show(struct top *t)
{
    bool there = true;
    int key;

    while (there && !t->state.quit && !screen_ended()) {
        take_news(t);
        if (!draw(t))
            return error_no_memory(&t->cli->error, "top");
        key = screen_key();
        if (key == KEY_IS_NONE)
            there = await(t);
        else
            state_key(&t->state, key, &t->rows);
        give_order(t);
        if (t->state.entered)
            run_command(t);
    }
    return 0;
}

/* ---- Begin and end */

static void free_all(struct top *t)
{
    rows_free(&t->rows);
    canvas_free(&t->canvas);
    top_snapshot_free(t->now);
    free(t->pasts);
}

/* A signal but Ctrl-C ends the process as it would have. */
static void die_of(int number)
{
    if (number && number != SIGINT)
        raise(number);
}

static int run_screen(struct top *t, bool color)
{
    int status = screen_begin(color, t->wake, &t->cli->error);

    if (status < 0)
        return status;
    status = show(t);
    screen_end();
    return status;
}

static int run_with(struct top *t, struct weir *w)
{
    int status, ended;

    t->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    t->reader = reader_start(w, t->interval_us, t->wake);
    if (!t->reader)
        return error_no_memory(&t->cli->error, "top");
    status = run_screen(t, color_is_on(stdout));
    ended = screen_ended();
    if (reader_end(t->reader))
        close(t->wake);
    free_all(t);
    die_of(ended);
    return status;
}

static int run_top(struct cli *cli, int argc, char **argv)
{
    struct top t = {.cli = cli, .interval_us = INTERVAL_US};
    bool read_only = false;
    const struct flag flags[] = {
        {"interval", 0, FLAG_DURATION, "DUR", "between two readings, at least; default 2s", &t.interval_us},
        {"read-only", 0, FLAG_BOOL, NULL, "no key changes anything", &read_only},
        {.name = NULL}};
    struct weir *w;
    int64_t took_us;

    if (cli_parse_alone(cli, flags, argc, argv) < 0)
        return cli->error.status;
    if (t.interval_us < INTERVAL_LEAST_US)
        return cli_usage(cli, "top --interval: too short; give 200ms or more");
    if (screen_check(&cli->error) < 0 || !(w = cli_client(cli)))
        return cli->error.status;
    if (client_ping(w, &took_us) < 0) {
        cli_failed(cli, w);
        weir_free(w);
        return cli->error.status;
    }
    snprintf(t.where, sizeof t.where, "%.*s", (int)strcspn(w->prefix, ":"), w->prefix);
    state_begin(&t.state, read_only);
    let_commands_find(cli);
    cli_expect_much();
    return run_with(&t, w);
}

#include "cli/top/screen.h"

#include <curses.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>

#include "cli/top/keys.h"

#undef columns /* a macro of term.h */

#define ESCAPE_MS 50 /* that the rest of a key's sequence may take behind its first byte */
#define END_S 5      /* that its end may take: a terminal that takes nothing would hold it */

static struct {
    SCREEN *at;
    bool color, ascii;
    int wake;
    volatile sig_atomic_t ended;
    struct termios before;
    char restore[256]; /* what is written to put the terminal back */
} screen;

/* ---- Signals */

/* Signals that end weir top as q does, with all that is open closed. */
static const int asks[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
/* Signals that end the process here and now. */
static const int faults[] = {SIGQUIT, SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGSYS, SIGTRAP};
#define ASKS (sizeof asks / sizeof *asks)
#define FAULTS (sizeof faults / sizeof *faults)
static struct sigaction asks_before[ASKS], faults_before[FAULTS], alarm_before;

static void on_ask(int number)
{
    screen.ended = number;
    eventfd_write(screen.wake, 1);
    alarm(END_S);
}

static void restore_line(void)
{
    tcsetattr(STDIN_FILENO, TCSANOW, &screen.before);
}

/* Ends a process that has not ended: its terminal is stopped (Ctrl-S), or nobody reads it. Nothing here but what a handler may call. */
static void on_alarm(int number)
{
    (void)number;
    restore_line();
    signal(screen.ended, SIG_DFL);
    raise(screen.ended);
}

/* Nothing here but what a handler may call. Whoever handled it before does so now. */
static void on_fault(int number)
{
    ssize_t written = write(STDOUT_FILENO, screen.restore, strlen(screen.restore));

    (void)written;
    restore_line();
    for (size_t i = 0; i < FAULTS; i++)
        if (faults[i] == number)
            sigaction(number, &faults_before[i], NULL);
    raise(number);
}

static void handle(const int *numbers, size_t count, void (*handler)(int number), struct sigaction *before)
{
    struct sigaction action = {.sa_handler = handler};

    for (size_t i = 0; i < count; i++)
        sigaction(numbers[i], &action, &before[i]);
}

static void handle_as_before(const int *numbers, size_t count, const struct sigaction *before)
{
    for (size_t i = 0; i < count; i++)
        sigaction(numbers[i], &before[i], NULL);
}

static void handle_all_as_before(void)
{
    handle_as_before(asks, ASKS, asks_before);
    alarm(0);
    handle_as_before((const int[]){SIGALRM}, 1, &alarm_before);
}

/* ---- Begin and end */

static void add_restoring(const char *capability)
{
    const char *text = tigetstr((char *)capability);
    size_t len = strlen(screen.restore);

    if (text && text != (const char *)-1 && len + strlen(text) < sizeof screen.restore)
        strcpy(screen.restore + len, text);
}

static int refuse(struct error *e, const char *why)
{
    return error_set(e, WEIR_EUSAGE, "top: %s; weir status prints the same once", why);
}

int screen_check(struct error *e)
{
    const char *term = getenv("TERM");

    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return refuse(e, "needs a terminal");
    if (!term || !*term || strcmp(term, "dumb") == 0)
        return refuse(e, "needs a terminal that can move its cursor, and TERM says that this one cannot");
    return 0;
}

static void begin_colors(bool color)
{
    static const short colors[INK_COUNT] = {
        [INK_GOOD] = COLOR_GREEN, [INK_WARNING] = COLOR_YELLOW, [INK_WRONG] = COLOR_RED};

    screen.color = color && has_colors() && start_color() == OK && use_default_colors() == OK;
    for (short i = 0; screen.color && i < INK_COUNT; i++)
        if (colors[i])
            init_pair(i, colors[i], -1);
}

int screen_begin(bool color, int wake, struct error *e)
{
    setlocale(LC_CTYPE, "");
    screen.ascii = strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
    screen.wake = wake;
    screen.ended = 0;
    tcgetattr(STDIN_FILENO, &screen.before);
    handle((const int[]){SIGALRM}, 1, on_alarm, &alarm_before);
    handle(asks, ASKS, on_ask, asks_before);
    unsetenv("COLUMNS"); /* these do not change with the terminal: ask it */
    unsetenv("LINES");
    screen.at = newterm(NULL, stdout, stdin);
    if (!screen.at) {
        handle_all_as_before();
        return refuse(e, "nothing is known of the terminal that TERM names");
    }
    *screen.restore = '\0';
    add_restoring("rmkx");
    add_restoring("sgr0");
    add_restoring("cnorm");
    add_restoring("rmcup");
    handle(faults, FAULTS, on_fault, faults_before);
    set_escdelay(ESCAPE_MS);
    cbreak();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    curs_set(0);
    begin_colors(color);
    return 0;
}

void screen_end(void)
{
    endwin();
    handle_as_before(faults, FAULTS, faults_before);
    handle_all_as_before();
    delscreen(screen.at);
    screen.at = NULL;
}

void screen_leave(void)
{
    endwin();
}

void screen_size(int *rows, int *columns)
{
    getmaxyx(stdscr, *rows, *columns);
}

bool screen_is_ascii(void)
{
    return screen.ascii;
}

int screen_ended(void)
{
    return screen.ended;
}

/* ---- Showing */

static attr_t attributes_of(const struct cell *cell)
{
    static const attr_t plain[INK_COUNT] = {
        [INK_PALE] = A_DIM, [INK_STRONG] = A_BOLD, [INK_WARNING] = A_BOLD, [INK_WRONG] = A_BOLD};
    bool colored = screen.color && cell->ink >= INK_GOOD;

    return (colored ? A_NORMAL : plain[cell->ink]) | (cell->reverse ? A_REVERSE : A_NORMAL);
}

static void show_row(const struct canvas *c, int row)
{
    for (int column = 0; column < c->columns; column++) {
        const struct cell *cell = canvas_cell(c, row, column);
        cchar_t ch;

        if (!*cell->at)
            continue;
        setcchar(&ch, cell->at, attributes_of(cell), screen.color ? (short)cell->ink : 0, NULL);
        mvadd_wch(row, column, &ch);
    }
}

void screen_show(const struct canvas *c)
{
    erase();
    for (int row = 0; row < c->rows; row++)
        show_row(c, row);
    refresh();
}

/* ---- Keys */

static int key_of_code(wint_t code)
{
    static const struct {
        wint_t code;
        int key;
    } keys[] = {{KEY_UP, KEY_IS_UP},       {KEY_DOWN, KEY_IS_DOWN},      {KEY_PPAGE, KEY_IS_PAGE_UP},
                {KEY_HOME, KEY_IS_HOME},   {KEY_END, KEY_IS_END},        {KEY_NPAGE, KEY_IS_PAGE_DOWN},
                {KEY_LEFT, KEY_IS_LEFT},   {KEY_RIGHT, KEY_IS_RIGHT},    {KEY_BTAB, KEY_IS_BACK_TAB},
                {KEY_ENTER, KEY_IS_ENTER}, {KEY_BACKSPACE, KEY_IS_ERASE}};

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i].code == code)
            return keys[i].key;
    return KEY_IS_OTHER;
}

int screen_key(void)
{
    wint_t ch;
    int kind = get_wch(&ch);

    if (kind == ERR)
        return KEY_IS_NONE;
    if (kind == KEY_CODE_YES)
        return key_of_code(ch);
    if (ch == '\r')
        return KEY_IS_ENTER;
    return ch == '\b' ? KEY_IS_ERASE : ch == 0 ? KEY_IS_OTHER : (int)ch;
}

#include "cli/signals.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "worker/worker.h"

enum answer {
    STOP,    /* takes no more jobs and ends; at the second one at once */
    QUIET,   /* takes no more jobs */
    IGNORE,  /* nothing: by default it would end the process, or stop it, and leave leases behind */
    DEFAULT, /* as the system has it, whatever was inherited */
    KEEP,    /* not touched */
};

static const struct {
    int number;
    enum answer answer;
} table[] = {
    {SIGTERM, STOP},   /* a supervisor, or a person */
    {SIGINT, STOP},    /* Ctrl-C */
    {SIGHUP, STOP},    /* the terminal is gone; where it is ignored (nohup) it stays so. See signals_reload */
    {SIGALRM, STOP},   /* an alarm that was set before exec: the time that we have is over */
    {SIGXCPU, STOP},   /* so is the CPU time; KILL comes at the hard limit */
    {SIGPWR, STOP},    /* the power fails */
    {SIGTSTP, QUIET},  /* as Sidekiq has it; Ctrl-Z too, since a stopped worker loses its leases */
    {SIGPIPE, IGNORE}, /* the write fails */
    {SIGXFSZ, IGNORE}, /* the write fails */
    {SIGUSR1, IGNORE}, /* nothing is meant by it here */
    {SIGUSR2, IGNORE}, /* nor by this */
    {SIGVTALRM, IGNORE}, /* a timer from before exec */
    {SIGPROF, IGNORE},   /* a profiler's timer from before exec */
    {SIGIO, IGNORE},     /* a file that was inherited */
    {SIGSTKFLT, IGNORE}, /* nobody sends it */
    {SIGTTIN, IGNORE},   /* in the background: reading fails */
    {SIGTTOU, IGNORE},   /* in the background: the log is written all the same */
    {SIGCHLD, DEFAULT},  /* ignored, nobody would learn how a command has ended */
    {SIGQUIT, DEFAULT},  /* a person wants a core dump, now */
    {SIGCONT, DEFAULT},  /* goes on */
    {SIGURG, DEFAULT},   /* nothing */
    {SIGWINCH, DEFAULT}, /* nothing */
    {SIGABRT, KEEP},     /* a fault, as all that follow: nothing here can be trusted any more */
    {SIGSEGV, KEEP},     /* a sanitizer may have them */
    {SIGBUS, KEEP},      {SIGFPE, KEEP}, {SIGILL, KEEP}, {SIGTRAP, KEEP}, {SIGSYS, KEEP},
};
#define COUNT (sizeof table / sizeof *table)

static struct weir_worker *running;

static void on_stop(int number)
{
    (void)number;
    weir_worker_stop(running);
}

static void on_quiet(int number)
{
    (void)number;
    weir_worker_quiet(running);
}

static void on_reload(int number)
{
    (void)number;
    worker_ask_reload(running);
}

static void set(int number, void (*handler)(int number))
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};

    sigaction(number, &action, NULL);
}

static bool is_ignored(int number)
{
    struct sigaction found;

    return sigaction(number, NULL, &found) == 0 && found.sa_handler == SIG_IGN;
}

void signals_fresh(void)
{
    sigset_t none;

    set(SIGCHLD, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

void signals_catch(void (*handler)(int number))
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
    struct sigaction action = {.sa_handler = handler, .sa_flags = (int)SA_RESETHAND};

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!is_ignored(numbers[i]))
            sigaction(numbers[i], &action, NULL);
}

void signals_begin(struct weir_worker *worker)
{
    static void (*const handlers[])(int number) = {
        [STOP] = on_stop, [QUIET] = on_quiet, [IGNORE] = SIG_IGN, [DEFAULT] = SIG_DFL};

    running = worker;
    for (size_t i = 0; i < COUNT; i++)
        if (table[i].answer != KEEP && (table[i].number != SIGHUP || !is_ignored(SIGHUP)))
            set(table[i].number, handlers[table[i].answer]);
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
        set(number, SIG_IGN);
}

void signals_reload(void)
{
    if (!is_ignored(SIGHUP))
        set(SIGHUP, on_reload);
}

void signals_end(void)
{
    for (size_t i = 0; i < COUNT; i++)
        if (table[i].answer == STOP || table[i].answer == QUIET)
            set(table[i].number, SIG_IGN);
}

/* weir hold: runs a command while it holds slots on lease, and gives them back as it ends; ends the hold of somebody else.
 *
 * A thread renews the hold at a third of its time, with the client, which is its own meanwhile; this one waits for the command, for signals, and for the
 * end of the lease, by CLOCK_BOOTTIME from before Redis was asked. Then the slots are others': the command is told by TERM, and ended by KILL. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/signals.h"
#include "core/clock.h"
#include "queue/hold/hold.h"
#include "queue/limits/rate.h"
#include "view/format.h"

#define EXIT_LOST 124 /* as timeout(1), when it ends a command */
#define KILL_AFTER_US 10000000
#define AGAIN_US 1000000 /* Redis is away: so often it is tried again, and oftener with a short lease */
#define LOOK_MS 1000     /* a machine that slept has other times */

struct hold_flags {
    const char *cost, *spent; /* spent NULL: as much as it took */
    const char *wait, *ttl;
    int64_t wait_us, ttl_us; /* wait_us -1: as long as it takes */
};

/* A command that runs on lease. */
struct holding {
    struct weir *w; /* of the thread that renews, while it runs */
    const char *token;
    int64_t ttl_us;
    _Atomic int64_t till_us; /* its end, by CLOCK_BOOTTIME */
    atomic_bool lost;        /* it was refused */
    int done_fd, lost_fd;    /* events: the command has ended; the hold is lost */
    pid_t pid;
    int64_t told_us; /* when the command was told by TERM; 0: it was not */
};

/* ---- Renewing */

static void *renew(void *arg)
{
    struct holding *h = arg;
    struct pollfd done = {.fd = h->done_fd, .events = POLLIN};
    int64_t wait_us = h->ttl_us / 3;

    while (poll(&done, 1, (int)(wait_us / 1000) + 1) == 0) {
        int64_t asked_us = clock_boot_us();
        int status = weir_hold_renew(h->w, h->token);

        if (status == WEIR_ENOTFOUND) {
            atomic_store(&h->lost, true);
            (void)!eventfd_write(h->lost_fd, 1);
            break;
        }
        if (status == 0)
            atomic_store(&h->till_us, asked_us + h->ttl_us);
        wait_us = h->ttl_us / (status == 0 ? 3 : 10);
        if (status < 0 && wait_us > AGAIN_US)
            wait_us = AGAIN_US;
    }
    return NULL;
}

/* ---- The command */

static void set_of_signals(sigset_t *set)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGCHLD};

    sigemptyset(set);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaddset(set, numbers[i]);
}

/* In the child. It does not outlive us: then nobody would renew. */
static void become(char **command, const char *token, const sigset_t *mask, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    setenv("WEIR_HOLD", token, 1);
    sigprocmask(SIG_SETMASK, mask, NULL);
    if (getppid() != parent)
        _exit(EXIT_LOST);
    execvp(command[0], command);
    output_to(stderr, "weir: hold: %s: %s\n", command[0], strerror(errno));
    fflush(stderr);
    _exit(errno == ENOENT ? 127 : 126);
}

/* Hands on what others sent us. What the terminal sends the command has heard itself. */
static void hand_on(struct holding *h, int signal_fd)
{
    struct signalfd_siginfo got;

    while (read(signal_fd, &got, sizeof got) == sizeof got)
        if (got.ssi_signo != SIGCHLD && got.ssi_code <= 0)
            kill(h->pid, (int)got.ssi_signo);
}

/* The hold is not ours any more. */
static void tell(struct holding *h, int64_t now_us)
{
    if (!h->told_us) {
        output_to(stderr, "weir: hold %s: lost: %s; the command is told to end\n", h->token,
                  atomic_load(&h->lost) ? "it is not held any more" : "Redis did not answer in time");
        h->told_us = now_us;
        kill(h->pid, SIGTERM);
        kill(h->pid, SIGCONT);
    } else if (now_us > h->told_us + KILL_AFTER_US) {
        kill(h->pid, SIGKILL);
    }
}

/* Waits until the command has ended. Returns its exit code, as timeout(1) has it. */
static int attend(struct holding *h, int signal_fd)
{
    int status;

    for (;;) {
        struct pollfd fds[] = {{.fd = signal_fd, .events = POLLIN},
                               {.fd = h->told_us ? -1 : h->lost_fd, .events = POLLIN}};
        int64_t now_us = clock_boot_us(), left_ms = (atomic_load(&h->till_us) - now_us) / 1000 + 1;

        if (waitpid(h->pid, &status, WNOHANG) == h->pid)
            break;
        if (left_ms <= 0 || atomic_load(&h->lost))
            tell(h, now_us);
        poll(fds, 2, left_ms > 0 && left_ms < LOOK_MS ? (int)left_ms : LOOK_MS);
        hand_on(h, signal_fd);
    }
    if (h->told_us)
        return EXIT_LOST;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Runs the command. Returns its exit code, or < 0 and cli->error: it was not started. */
static int run_command(struct cli *cli, struct holding *h, char **command, const sigset_t *mask)
{
    pthread_t renewer;
    pid_t self = getpid();
    sigset_t set;
    int code = -1, signal_fd;

    set_of_signals(&set);
    signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    h->done_fd = eventfd(0, EFD_CLOEXEC);
    h->lost_fd = eventfd(0, EFD_CLOEXEC);
    h->pid = signal_fd >= 0 && h->done_fd >= 0 && h->lost_fd >= 0 ? fork() : -1;
    if (h->pid == 0)
        become(command, h->token, mask, self);
    if (h->pid > 0 && pthread_create(&renewer, NULL, renew, h) == 0) {
        code = attend(h, signal_fd);
        (void)!eventfd_write(h->done_fd, 1);
        pthread_join(renewer, NULL);
    } else {
        if (h->pid > 0)
            kill(h->pid, SIGKILL);
        error_set(&cli->error, WEIR_EINTERNAL, "hold: cannot start the command: %s", strerror(errno));
    }
    close(signal_fd);
    close(h->done_fd);
    close(h->lost_fd);
    return code;
}

/* ---- Holding */

static volatile sig_atomic_t stopped; /* by that signal */

static void on_signal(int number)
{
    stopped = number;
}

static int denied(struct cli *cli, const char *target, const struct weir_hold *hold,
                  const struct hold_flags *f)
{
    char span[PHRASE_SIZE];

    if (hold->never)
        return error_set(&cli->error, WEIR_EINPUT, "hold %.100s: cost %s can never fit; give a smaller one",
                         target, f->cost);
    if (f->wait_us)
        return error_set(&cli->error, WEIR_ENOTNOW, "hold %.100s: denied; its slots do not come within %s",
                         target, format_span(f->wait_us, span));
    return error_set(&cli->error, WEIR_ENOTNOW, "hold %.100s: denied; ask again %s, or wait with --wait",
                     target, format_retry(hold->retry_after_s, span));
}

/* Ends a hold. It may be over, and comes back by itself where Redis is away. */
static void give_back(struct weir *w, const char *token)
{
    int status = weir_hold_end(w, token, -1);

    if (status < 0 && status != WEIR_ENOTFOUND)
        output_to(stderr, "weir: hold %s: not given back: %s; it ends by itself\n", token, weir_message(w));
}

static int hold(struct cli *cli, struct weir *w, char **argv, const struct hold_flags *f)
{
    struct weir_hold hold;
    struct holding h = {.w = w, .token = hold.token, .ttl_us = f->ttl_us};
    sigset_t set, before;
    int64_t asked_us;
    int code;

    signals_catch(on_signal);
    if (hold_take(w, argv[0], 0, f->cost, (double)f->ttl_us / 1e6,
                  f->wait_us < 0 ? -1 : (double)f->wait_us / 1e6, &stopped, &hold, &asked_us) < 0)
        return cli_failed(cli, w);
    set_of_signals(&set);
    sigprocmask(SIG_BLOCK, &set, &before);
    if (stopped) {
        if (hold.allowed)
            give_back(w, hold.token);
        sigprocmask(SIG_SETMASK, &before, NULL);
        raise(stopped);
    }
    if (!hold.allowed)
        return denied(cli, argv[0], &hold, f);
    atomic_init(&h.till_us, asked_us + f->ttl_us);
    code = run_command(cli, &h, argv + 1, &before);
    give_back(w, hold.token);
    return code < 0 ? cli->error.status : -code;
}

static int end(struct cli *cli, struct weir *w, const char *token, const struct hold_flags *f)
{
    if ((f->spent ? weir_hold_spent(w, token, f->spent) : weir_hold_end(w, token, -1)) < 0)
        return cli_failed(cli, w);
    rate_note(w, "hold end %s", token);
    return 0;
}

/* ---- The flags */

static int read_duration(struct cli *cli, const char *flag, const char *text, int64_t *us)
{
    struct error why;

    if (text && *text && duration_parse(text, us, &why) < 0)
        return cli_usage(cli, "hold --%s: %s", flag, why.text);
    return 0;
}

static int check_flags(struct cli *cli, struct hold_flags *f, bool is_end, int operands)
{
    if (!is_end && operands < 2)
        return cli_usage(
            cli, "hold: needs NAME or NAME/KEY and a command, behind --; weir help hold has examples");
    if (is_end && (cli_gave(cli, "cost") || f->wait || f->ttl))
        return cli_usage(cli, "hold end: takes --spent alone; leave the others out");
    if (!is_end && cli_gave(cli, "spent"))
        return cli_usage(
            cli, "hold --spent: only hold end takes it; the command runs weir hold end \"$WEIR_HOLD\"");
    f->wait_us = f->wait ? -1 : 0;
    f->ttl_us = HOLD_TTL_USUAL_S * 1000000LL;
    if (read_duration(cli, "wait", f->wait, &f->wait_us) < 0 ||
        read_duration(cli, "ttl", f->ttl, &f->ttl_us) < 0)
        return cli->error.status;
    if (f->ttl_us < 100000 || f->ttl_us > HOLD_TTL_MOST_S * 1000000LL)
        return cli_usage(cli, "hold --ttl %.40s: give 100ms to 1d", f->ttl);
    return 0;
}

static struct hold_flags given = {.cost = "1"};

static const struct flag flags[] = {
    {"cost", 0, FLAG_COST, "N",
     "how many slots of each rate, or tokens=N of rules of=tokens, all or none; default 1", &given.cost},
    {"wait", 0, FLAG_OPTIONAL_TEXT, "MAX", "wait for the slots; else denied at once", &given.wait},
    {"ttl", 0, FLAG_TEXT, "DUR", "how long they stay held if this dies; default 30s", &given.ttl},
    {"spent", 0, FLAG_TRUE_COST, "N", "end: what it cost in truth, tokens=N too", &given.spent},
    {.name = NULL},
};

static bool ends(const struct cli *cli)
{
    return cli->operand_count == 2 && strcmp(cli->operands[0], "end") == 0;
}

static int check(struct cli *cli)
{
    return check_flags(cli, &given, ends(cli), cli->operand_count);
}

static int act(struct cli *cli, struct weir *w)
{
    return ends(cli) ? end(cli, w, cli->operands[1], &given) : hold(cli, w, cli->operands, &given);
}

const struct command command_hold = {.name = "hold",
                                     .run = cli_run,
                                     .flags = flags,
                                     .logs = true,
                                     .takes_operands = true,
                                     .check = check,
                                     .act = act};

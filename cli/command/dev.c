/* weir dev: a private redis-server with its data in ./.weir, and a worker, until Ctrl-C.
 *
 * One per folder: .weir/lock is locked by this process and by its redis-server, so the lock is free exactly
 * when both have ended, however they ended; what a dead one left behind (socket, process id) says nothing and
 * is replaced.
 *
 * Both children are in process groups of their own and get their signals from here: at Ctrl-C the worker ends
 * first, while it still has a Redis to hand its jobs back to. Should this process be killed, the system ends
 * them. */
#include "cli/commands.h"
#include "cli/which_redis.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/command/worker.h"

#define LOCK_FILE DEV_FOLDER "/lock"
#define LOG_FILE DEV_FOLDER "/redis.log"
#define READY_POLL_MS 10
#define LOCK_TRIES 200 /* 2 s for the redis-server of a weir dev that was killed to end too */

static int run_dev(struct cli *cli, int argc, char **argv);

const struct command command_dev = {
    .name = "dev", .takes_others_flags = true, .no_config = true, .run = run_dev};

struct dev {
    struct cli *cli;
    sigset_t signals;
    char url[DEV_URL_SIZE];
    int lock_fd;
    pid_t redis, worker; /* 0: not running */
    int worker_status;   /* as of waitpid */
};

static int already_running(struct dev *d, int pid)
{
    return error_set(
        &d->cli->error, WEIR_ENOTNOW,
        "dev: already running in this folder, process %d, Redis at %s; use that one, or end it with Ctrl-C",
        pid, d->url);
}

/* Returns the process that wrote the lock file; 0: there is none. */
static int lock_owner(const struct dev *d)
{
    char text[16] = "";

    return pread(d->lock_fd, text, sizeof text - 1, 0) > 0 ? atoi(text) : 0;
}

static int write_owner(const struct dev *d)
{
    char text[16];
    int len = snprintf(text, sizeof text, "%d\n", (int)getpid());

    return ftruncate(d->lock_fd, 0) < 0 || pwrite(d->lock_fd, text, (size_t)len, 0) != len ? -1 : 0;
}

static int lock_folder(struct dev *d)
{
    const char *what = DEV_FOLDER;
    int owner;

    if (mkdir(DEV_FOLDER, 0700) < 0 && errno != EEXIST)
        goto failed;
    what = LOCK_FILE;
    d->lock_fd = open(LOCK_FILE, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (d->lock_fd < 0)
        goto failed;
    for (int tries = 0; flock(d->lock_fd, LOCK_EX | LOCK_NB) < 0; tries++) {
        owner = lock_owner(d);
        if (tries == LOCK_TRIES || kill(owner, 0) == 0 || errno == EPERM)
            return already_running(d, owner);
        usleep(READY_POLL_MS * 1000);
    }
    if (write_owner(d) == 0)
        return 0;
failed:
    return error_set(&d->cli->error, WEIR_ECONFIG, "dev %s: %s; run it in a folder where you may write", what,
                     strerror(errno));
}

/* Parts of start_child, in the child: ends with its parent, no signal is blocked. */
static void become_child(const struct dev *d, pid_t parent)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(1);
    sigprocmask(SIG_UNBLOCK, &d->signals, NULL);
}

static void exec_redis(const struct dev *d, char **arguments)
{
    int null = open("/dev/null", O_RDONLY);

    if (null >= 0)
        dup2(null, STDIN_FILENO);
    fcntl(d->lock_fd, F_SETFD, 0); /* keeps the lock */
    if (chdir(DEV_FOLDER) == 0)
        execvp(arguments[0], arguments);
}

static void exec_worker(const struct dev *d, char **arguments)
{
    (void)d;
    execv("/proc/self/exe", arguments);
}

/* Returns 0, or the errno of a fork or exec that failed; *pid is then 0. */
static int start_child(const struct dev *d, pid_t *pid, void (*exec)(const struct dev *, char **),
                       char **arguments)
{
    pid_t parent = getpid();
    int failure[2], failed = 0;

    if (pipe2(failure, O_CLOEXEC) < 0)
        return errno;
    *pid = fork();
    if (*pid == 0) {
        become_child(d, parent);
        exec(d, arguments);
        failed = errno;
        _exit(write(failure[1], &failed, sizeof failed) < 0 ? 1 : 0);
    }
    if (*pid < 0)
        failed = errno;
    close(failure[1]);
    if (*pid > 0 && read(failure[0], &failed, sizeof failed) > 0)
        waitpid(*pid, NULL, 0);
    close(failure[0]);
    if (failed)
        *pid = 0;
    return failed;
}

static int start_redis(struct dev *d)
{
    // clang-format off
    static char *arguments[] = {
        "redis-server", "--port", "0", "--unixsocket", "redis.sock", "--unixsocketperm", "700", "--dir", ".", "--logfile", "redis.log",
        "--appendonly", "yes", "--appendfsync", "everysec", "--save", "", "--daemonize", "no", NULL};
    // clang-format on
    int failed = start_child(d, &d->redis, exec_redis, arguments);

    if (failed == ENOENT)
        return error_set(
            &d->cli->error, WEIR_ECONFIG,
            "dev: redis-server: not found in the PATH; install it, on Debian apt-get install redis-server");
    if (failed)
        return error_set(&d->cli->error, WEIR_ECONFIG, "dev: redis-server: %s; see to it and try again",
                         strerror(failed));
    return 0;
}

/* The worker is this program with the same flags, but for --json, which is ours, and the Redis of ours. */
static int start_worker(struct dev *d, int argc, char **flags)
{
    char **arguments = calloc((size_t)argc + 5, sizeof *arguments);
    int failed;

    if (!arguments)
        return error_no_memory(&d->cli->error, "dev");
    memcpy(arguments, (char *[]){"weir", "worker", "--redis", d->url}, 4 * sizeof *arguments);
    for (int i = 0, n = 4; i < argc; i++)
        if (strcmp(flags[i], "--json") != 0)
            arguments[n++] = flags[i];
    failed = start_child(d, &d->worker, exec_worker, arguments);
    free(arguments);
    if (failed)
        return error_set(&d->cli->error, WEIR_EINTERNAL, "dev: worker: %s; see to it and try again",
                         strerror(failed));
    return 0;
}

/* Awaits the next of our signals; 0: none came within timeout_ms (-1: for ever). */
static int next_signal(const struct dev *d, int timeout_ms)
{
    struct timespec t = {.tv_sec = timeout_ms / 1000, .tv_nsec = timeout_ms % 1000 * 1000000L};
    int signal_number;

    do
        signal_number = timeout_ms < 0 ? sigwaitinfo(&d->signals, NULL) : sigtimedwait(&d->signals, NULL, &t);
    while (signal_number < 0 && errno == EINTR);
    return signal_number < 0 ? 0 : signal_number;
}

static void reap_children(struct dev *d)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == d->redis)
            d->redis = 0;
        if (pid == d->worker) {
            d->worker = 0;
            d->worker_status = status;
        }
    }
}

/* Answers PING; not yet while it reads its data. */
static bool redis_answers(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = DEV_SOCKET};
    struct timeval timeout = {.tv_sec = 1};
    char answer[8] = "";
    bool answers = false;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return false;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
        send(fd, "PING\r\n", 6, MSG_NOSIGNAL) == 6 && recv(fd, answer, sizeof answer - 1, 0) > 0)
        answers = strncmp(answer, "+PONG", 5) == 0;
    close(fd);
    return answers;
}

static int redis_ended(struct dev *d)
{
    return error_set(&d->cli->error, WEIR_EUNREACHABLE, "dev: redis-server has ended; " LOG_FILE " says why");
}

/* Waits until Redis answers; *stopped when it was sent SIGTERM before. */
static int await_redis(struct dev *d, bool *stopped)
{
    *stopped = false;
    while (!redis_answers()) {
        int signal_number = next_signal(d, READY_POLL_MS);

        if (signal_number == SIGCHLD)
            reap_children(d);
        else if (signal_number && signal_number != SIGTSTP)
            *stopped = true;
        if (!d->redis)
            return redis_ended(d);
        if (*stopped)
            return 0;
    }
    return 0;
}

static void print_ready(const struct dev *d, bool with_worker)
{
    if (d->cli->json)
        output("{\"redis\":\"%s\",\"pid\":%d}\n", d->url, (int)d->redis);
    else
        output("Redis is ready at %s; its data stays in ./%s. Ctrl-C ends it.\n", d->url, DEV_FOLDER);
    if (!d->cli->json && !with_worker)
        output("No worker runs: start some in this folder with weir worker --load FILE.so or --exec "
               "TYPE=COMMAND.\n");
    fflush(stdout);
}

static void on_child(struct dev *d)
{
    bool had_redis = d->redis;

    reap_children(d);
    if (had_redis && !d->redis) {
        redis_ended(d);
        if (d->worker)
            kill(d->worker, SIGTERM);
    }
}

/* Hands signals on until the worker has ended or, without a worker, until one says stop. */
static void run_until_stopped(struct dev *d)
{
    bool with_worker = d->worker;

    while (with_worker ? d->worker : d->redis) {
        int signal_number = next_signal(d, -1);

        if (signal_number == SIGCHLD)
            on_child(d);
        else if (d->worker)
            kill(d->worker, signal_number == SIGTSTP ? SIGTSTP : SIGTERM);
        else if (signal_number != SIGTSTP)
            return;
    }
}

static int outcome(struct dev *d)
{
    if (d->cli->error.status)
        return d->cli->error.status;
    if (WIFSIGNALED(d->worker_status))
        return error_set(&d->cli->error, WEIR_EINTERNAL,
                         "dev: the worker was killed by signal %d; its jobs come back when their lease ends",
                         WTERMSIG(d->worker_status));
    return -WEXITSTATUS(d->worker_status); /* the worker itself has said why */
}

static void stop_redis(struct dev *d)
{
    if (!d->redis)
        return;
    kill(d->redis, SIGTERM);
    waitpid(d->redis, NULL, 0);
    d->redis = 0;
}

static void hold_signals(struct dev *d)
{
    static const int held[] = {SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGCHLD};

    sigemptyset(&d->signals);
    for (size_t i = 0; i < sizeof held / sizeof *held; i++)
        sigaddset(&d->signals, held[i]);
    sigprocmask(SIG_BLOCK, &d->signals, NULL);
}

static int run_both(struct dev *d, bool with_worker, int argc, char **flags)
{
    bool stopped;

    if (start_redis(d) < 0 || await_redis(d, &stopped) < 0)
        return d->cli->error.status;
    if (!stopped) {
        print_ready(d, with_worker);
        if (with_worker && start_worker(d, argc, flags) < 0)
            return d->cli->error.status;
        run_until_stopped(d);
    }
    return outcome(d);
}

static int check_usage(struct cli *cli, const struct worker_flags *f)
{
    if (worker_flags_check(cli, f) < 0)
        return cli->error.status;
    if (cli->redis_url)
        return cli_usage(cli, "dev --redis: runs a Redis of its own; leave it out, or use weir worker");
    if (cli_describes_redis(cli))
        return cli_usage(cli,
                         "dev: runs a Redis of its own; leave --tls-... and --password-... out, or use weir "
                         "worker");
    return 0;
}

static int run_dev(struct cli *cli, int argc, char **argv)
{
    struct dev d = {.cli = cli, .lock_fd = -1};
    struct worker_flags f;
    char **given = calloc((size_t)argc + 1, sizeof *given);
    int status;

    if (!given)
        return error_no_memory(&cli->error, "dev");
    memcpy(given, argv, (size_t)argc * sizeof *given);
    worker_flags_init(&f);
    status = cli_parse_alone(cli, f.table, argc, argv);
    if (status == 0)
        status = check_usage(cli, &f);
    if (status < 0)
        goto out;
    dev_url_here(d.url);
    status = lock_folder(&d);
    if (status < 0)
        goto out;
    hold_signals(&d);
    status = run_both(&d, worker_flags_have_handlers(&f), argc - 1, given + 1);
    stop_redis(&d);
out:
    if (d.lock_fd >= 0)
        close(d.lock_fd);
    free(given);
    return status;
}

/* The worker as a process: children whose end somebody else has heard of, another locale, and handlers that end it. Signals:
 * sessions/signals.txt. */
#include <errno.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "tests/comma.h"
#include "tests/stage.h"

/* ---- A worker in C: this program, started again */

static struct weir_worker *worker;
static pid_t own;

/* Under sanitizers a child that leaves by exit() would look for leaks, for which it takes the allocator's lock: another thread may have had it
 * as the process forked. NOLINTNEXTLINE(bugprone-reserved-identifier) */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) /* NOLINT(bugprone-reserved-identifier) */
{
    return getpid() != own;
}

static void on_stop(int number)
{
    (void)number;
    weir_worker_stop(worker);
}

/* Waits for any child, as a library may. */
static int reap(struct weir_job *job, void *arg)
{
    (void)arg;
    while (!weir_job_is_cancelled(job) && access("go", F_OK) != 0)
        if (waitpid(-1, NULL, 0) < 0)
            clock_sleep_until(clock_mono_us() + MS);
    return WEIR_DONE;
}

static int wait_for_go(struct weir_job *job, void *arg)
{
    (void)arg;
    write_text(".", "waits", "");
    while (!weir_job_is_cancelled(job) && access("go", F_OK) != 0)
        clock_sleep_until(clock_mono_us() + MS);
    return WEIR_DONE;
}

static int leave(struct weir_job *job, void *arg)
{
    (void)job, (void)arg;
    exit(0);
}

static int leave_thread(struct weir_job *job, void *arg)
{
    (void)job, (void)arg;
    pthread_exit(NULL);
}

static void leave_on_loop(struct weir_job *job, void *arg)
{
    (void)job, (void)arg;
    exit(0);
}

/* A child of its own that leaves is nobody's business. */
static int leave_child(struct weir_job *job, void *arg)
{
    int status;
    pid_t child = fork();

    (void)job, (void)arg;
    if (child == 0)
        exit(3);
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEIR_DONE : WEIR_DEAD;
}

static int add_handlers(void)
{
    int rc = weir_worker_handle(worker, "reap", reap, NULL);

    rc = rc ? rc : weir_worker_handle(worker, "wait", wait_for_go, NULL);
    rc = rc ? rc : weir_worker_handle(worker, "exit", leave, NULL);
    rc = rc ? rc : weir_worker_handle(worker, "thread", leave_thread, NULL);
    rc = rc ? rc : weir_worker_handle_async(worker, "async", leave_on_loop, NULL);
    rc = rc ? rc : weir_worker_handle(worker, "fork", leave_child, NULL);
    rc = rc ? rc : weir_worker_exec(worker, "bad", "/bin/false");
    if (access("answers", X_OK) == 0) {
        rc = rc ? rc : weir_worker_exec(worker, "exec", "./answers");
        rc = rc ? rc : weir_worker_pipe(worker, "pipe", "./answers line", 1);
    }
    rc = rc ? rc : weir_worker_pipe(worker, "mute", "head -c 1", 1);
    return rc;
}

static int worker_main(char **argv) /* "worker" URL */
{
    int rc;

    setlocale(LC_ALL, ""); /* as a library may */
    worker = weir_worker_new(&(struct weir_worker_options){.redis_url = argv[2], .executors = 4});
    signal(SIGTERM, on_stop);
    rc = add_handlers();
    if (rc == 0)
        rc = weir_worker_run(worker);
    if (rc != 0)
        fprintf(stderr, "%s\n", weir_worker_message(worker));
    signal(SIGTERM, SIG_IGN);
    weir_worker_free(worker);
    return -rc;
}

static pid_t start_worker(struct stage *s)
{
    return stage_keeps(s, program_start(s->server.folder, "worker",
                                        (const char *[]){"/proc/self/exe", "worker", s->server.url, NULL}));
}

/* ---- The stage */

/* Jobs whose first failure is their last. */
static void push_once(struct stage *s, const char *type, int n)
{
    for (int i = 0; i < n; i++) {
        stage_push_text(s, textf("{\"id\":\"j%d\",\"type\":\"%s\",\"max_attempts\":1}", i, type));
    }
}

/* ---- Children that others wait for */

/* SIGCHLD is ignored in a host program, which is its own master: no end that is not known is a success. */
STAGE_TEST(unknown_ends_of_children)
{
    char *dead;

    signal(SIGCHLD, SIG_IGN);
    start_worker(s);
    signal(SIGCHLD, SIG_DFL);
    push_once(s, "bad", 5);
    await(stage_stat(s, "bad", "dead") == 5);
    assert_int_equal(stage_stat(s, "bad", "done"), 0);
    dead = stage_dead(s);
    assert_non_null(strstr(dead, "failed once: how it ended is unknown, since SIGCHLD is ignored"));
    free(dead);
    stage_push(s, "mute", NULL, 0, 1);
    await_text(s->server.folder, "worker.err", "died with 1 jobs: how it ended is unknown");
}

STAGE_TEST(a_handler_that_reaps_children)
{
    start_worker(s);
    stage_push(s, "reap", NULL, 1000, 2);
    await(stage_number(s, "LLEN", stage_key(s, "queue:default")) == 0);
    push_once(s, "bad", 100);
    await(stage_stat(s, "bad", "dead") + stage_stat(s, "bad", "done") == 100);
    assert_int_equal(stage_stat(s, "bad", "done"), 0);
    write_text(s->server.folder, "go", "");
}

/* ---- Another locale */

/* In it 0.9 is no number: the times that handlers give are read, and told, as everywhere else. */
STAGE_TEST(a_decimal_comma)
{
    write_text(s->server.folder, "answers",
               "#!/bin/sh\n"
               "[ \"$1\" ] || { echo 0.9; exit 75; }\n"
               "while read -r job; do echo '{\"id\":\"j1\",\"status\":\"throttled\",\"after\":0.9}'; done\n");
    assert_int_equal(chmod(textf("%s/answers", s->server.folder), 0755), 0);
    comma_begin(s->server.folder);
    start_worker(s);
    comma_end();
    stage_push(s, "exec", NULL, 0, 1);
    stage_push(s, "pipe", NULL, 1, 1);
    await_log(s->server.folder, "exec j0: throttled, 1 in a row: a pause of 900ms");
    await_log(s->server.folder, "pipe j1: throttled, 1 in a row: a pause of 900ms");
    stage_push_text(s, "{\"id\":\"j2\",\"type\":\"wait\",\"timeout\":0.25}");
    await_log(s->server.folder, "wait j2: over its time of 0.25 s: asked to end");
    await_text(s->server.folder, "worker.err", " s: over its time of 0.25 s");
}

/* ---- Handlers that end the process */

static void assert_interrupted(struct stage *s, const char *type, int times)
{
    char *entry = server_ask(&s->server, "LINDEX", stage_key(s, "lane:default/%s/", type), "0", NULL),
         head[32];

    snprintf(head, sizeof head, "@0,%d,0", times);
    assert_memory_equal(entry, head, strlen(head));
    free(entry);
}

/* What ran beside it is given back, and it does so three times at most. */
static void ends_its_process(struct stage *s, const char *type, const char *way)
{
    char *dead;

    stage_push(s, "wait", NULL, 1, 1);
    for (int i = 1; i <= 3; i++) {
        pid_t pid = start_worker(s);

        await_text(s->server.folder, "waits", "");
        if (i == 1)
            stage_push(s, type, NULL, 0, 1);
        assert_int_equal(program_end(pid), 70);
        assert_int_equal(stage_judge(s, 2).lost, 0);
        assert_int_equal(stage_number(s, "ZCARD", stage_key(s, "workers")), 0);
        if (i < 3)
            assert_interrupted(s, type, i);
        await_log(s->server.folder,
                  textf("%s j0: its handler (%s) ended the process by exit() or pthread_exit(): exit 70; ",
                        type, way));
    }
    dead = stage_dead(s);
    assert_non_null(strstr(dead, "its handler died 3 times: it ended the process of its worker"));
    free(dead);
    assert_in_range(stage_stat(s, "wait", "back"), 1, 3);
}

TEST_WITH(a_function_that_calls_exit, stage_setup, stage_teardown)
{
    ends_its_process(*state, "exit", "function");
}

TEST_WITH(a_function_that_ends_its_thread, stage_setup, stage_teardown)
{
    ends_its_process(*state, "thread", "function");
}

TEST_WITH(an_asynchronous_handler_that_calls_exit, stage_setup, stage_teardown)
{
    ends_its_process(*state, "async", "async");
}

STAGE_TEST(a_child_of_a_handler_that_calls_exit)
{
    start_worker(s);
    stage_push(s, "fork", NULL, 0, 1);
    await(stage_stat(s, "fork", "done") == 1);
}

int main(int argc, char **argv)
{
    own = getpid();
    if (argc == 3 && strcmp(argv[1], "worker") == 0)
        return worker_main(argv);
    return tests_run(NULL, NULL);
}

/* Asynchronous handlers: thousands in flight, ended from any thread, at their start times, beside functions
 * on threads, given up and given back. */
#include <ev.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "tests/slots.h"
#include "tests/stage.h"

/* ---- The worker: this program, started again */

/* Types: "wait", ended on the loop when the file go is there, or it is told to end and its args are not "deaf"; "thread", ended by
 * another thread at once; "now", ended within its handler; "fail" and "alike", FAILING of which fail together, each
 * for a reason of its own, or for one and each for a time of its own; "hold", which does not return before there is go;
 * "block", a function that waits for go. All write begin, end, told to the file notes. */
static struct weir_worker *worker;

static void on_stop(int number)
{
    (void)number;
    weir_worker_stop(worker);
}

static void note(const struct weir_job *job, const char *what)
{
    FILE *f = fopen("notes", "a");

    fprintf(f, "%s %s\n", what, weir_job_id(job));
    fclose(f);
}

struct wait {
    struct wait *next, **prev;
    ev_timer timer;
    struct weir_job *job;
};
static struct wait *waits;

static void end_wait(struct wait *wait, int result)
{
    *wait->prev = wait->next;
    if (wait->next)
        wait->next->prev = wait->prev;
    weir_job_end(wait->job, result);
    free(wait);
}

static void on_tick(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct wait *wait = timer->data;
    bool told = weir_job_is_cancelled(wait->job) && strcmp(weir_job_args(wait->job), "\"deaf\"") != 0;

    (void)events;
    if (!told && access("go", F_OK) != 0)
        return;
    ev_timer_stop(loop, timer);
    note(wait->job, told ? "told" : "end");
    end_wait(wait, WEIR_DONE);
}

static void wait_for_go(struct weir_job *job, void *arg)
{
    struct wait *wait = calloc(1, sizeof *wait);

    (void)arg;
    note(job, "begin");
    wait->job = job;
    wait->next = waits;
    wait->prev = &waits;
    if (waits)
        waits->prev = &wait->next;
    waits = wait;
    ev_timer_init(&wait->timer, on_tick, 0.01, 0.01);
    wait->timer.data = wait;
    ev_timer_start(weir_worker_loop(worker), &wait->timer);
}

static void *end_it(void *job)
{
    weir_job_end(job, weir_job_attempt(job) == 1 ? weir_job_retry(job, 0, "once more") : WEIR_DONE);
    return NULL;
}

static void end_by_thread(struct weir_job *job, void *arg)
{
    pthread_t thread;

    (void)arg;
    if (pthread_create(&thread, NULL, end_it, job) == 0)
        pthread_detach(thread);
    else
        weir_job_end(job, WEIR_RETRY);
}

static const char *or_none(const char *text)
{
    return text ? text : "none";
}

static void end_now(struct weir_job *job, void *arg)
{
    char seen[512];

    (void)arg;
    if (weir_job_client(job)) /* its calls would hold the loop */
        abort();
    snprintf(seen, sizeof seen, "%.2f %s %s %s %d of", weir_job_enqueued_at(job), or_none(weir_job_key(job)),
             or_none(weir_job_batch(job)), or_none(weir_job_traceparent(job)), weir_job_is_cancelled(job));
    if (strcmp(weir_job_args(job), "\"look\"") == 0)
        note(job, seen);
    weir_job_end(job, WEIR_DONE);
}

#define FAILING 300

static void fail_together(struct weir_job *job, void *arg)
{
    static struct weir_job *jobs[FAILING];
    static int count;

    (void)arg;
    if (count == FAILING) { /* one whose lease was lost has come again */
        weir_job_end(job, WEIR_RETRY);
        return;
    }
    jobs[count++] = job;
    for (int i = 0; count == FAILING && i < FAILING; i++)
        if (strcmp(weir_job_type(job), "alike") == 0)
            weir_job_end(jobs[i], weir_job_retry(jobs[i], 600 + atoi(weir_job_id(jobs[i]) + 1) % 5, "no"));
        else
            weir_job_end(jobs[i], weir_job_retry(jobs[i], -1, "%s", weir_job_id(jobs[i])));
}

static int block(struct weir_job *job, void *arg)
{
    (void)arg;
    note(job, "begin");
    while (access("go", F_OK) != 0)
        clock_sleep_until(clock_mono_us() + 5 * MS);
    note(job, "end");
    return WEIR_DONE;
}

static void hold_the_loop(struct weir_job *job, void *arg)
{
    block(job, arg);
    weir_job_end(job, WEIR_DONE);
}

static int add_handlers(const char *types)
{
    int rc = weir_worker_handle_async(worker, "wait", wait_for_go, NULL);

    if (rc == 0)
        rc = weir_worker_handle_async(worker, "thread", end_by_thread, NULL);
    if (rc == 0)
        rc = weir_worker_handle_async(worker, "now", end_now, NULL);
    if (rc == 0)
        rc = weir_worker_handle_async(worker, "hold", hold_the_loop, NULL);
    if (rc == 0)
        rc = weir_worker_handle_async(worker, "fail", fail_together, NULL);
    if (rc == 0)
        rc = weir_worker_handle_async(worker, "alike", fail_together, NULL);
    if (rc == 0 && strcmp(types, "all") == 0)
        rc = weir_worker_handle(worker, "block", block, NULL);
    if (rc == 0 && strcmp(types, "pipe") == 0)
        rc = weir_worker_pipe(worker, "deaf", "./deaf", 1);
    if (rc == 0 && strcmp(types, "exec") == 0)
        rc = weir_worker_exec(worker, "shell", "sh shell");
    return rc;
}

static int worker_main(char **argv) /* "worker" URL EXECUTORS GRACE TYPES */
{
    int rc;

    worker = weir_worker_new(&(struct weir_worker_options){.redis_url = argv[2],
                                                           .executors = atoi(argv[3]),
                                                           .lease_s = 1,
                                                           .grace_s = atof(argv[4]),
                                                           .trace_file = "trace"});
    signal(SIGTERM, on_stop);
    signal(SIGPIPE, SIG_DFL); /* as of a program that does not think of it */
    rc = add_handlers(argv[5]);
    if (rc == 0)
        rc = weir_worker_run(worker);
    if (rc != 0)
        fprintf(stderr, "%s\n", weir_worker_message(worker));
    signal(SIGTERM, SIG_IGN);
    while (waits) /* given back: only what belongs to them is freed */
        end_wait(waits, WEIR_DONE);
    weir_worker_free(worker);
    return -rc;
}

static pid_t start_worker(struct stage *s, const char *name, const char *executors, const char *grace,
                          const char *types)
{
    const char *const words[] = {"/proc/self/exe", "worker", s->server.url, executors, grace, types, NULL};

    return stage_keeps(s, program_start(s->server.folder, name, words));
}

/* ---- The stage */

static int notes(struct stage *s, const char *what)
{
    char text[8192];
    int n = 0;

    if (!read_text(s->server.folder, "notes", text, sizeof text))
        return 0;
    for (char *at = text; (at = strstr(at, what)); at++)
        n += at == text || at[-1] == '\n';
    return n;
}

static long long leased(struct stage *s)
{
    return stage_judge(s, 0).left;
}

/* ---- The tests */

/* The example: 10,000 jobs at a time in one process, in less than 100 MB. Each is under way for so long that all others begin meanwhile: if
 * the machine is too busy for that, the next trial takes twice as long. */
TRIAL_WITH(ten_thousand_at_a_time, stage_setup, stage_teardown)
{
    static int all_begin_s = 4;
    struct stage *s = *state;
    struct outcome o;
    long mb = 0;
    int ended = 0, most = 0;

    run_in(&o, s->server.folder, built("examples/async_worker"), s->server.url, "10000",
           textf("%d", all_begin_s), NULL);
    assert_int_equal(o.code, 0);
    assert_int_equal(sscanf(o.out, "%d jobs, %d of them at a time, %ld MB", &ended, &most, &mb), 3);
    assert_int_equal(ended, 10000);
    if (most != 10000) {
        stage_late("%d at a time in %d s", most, all_begin_s);
        all_begin_s *= 2;
    }
#if !defined __SANITIZE_THREAD__ && !defined __SANITIZE_ADDRESS__
    assert_in_range(mb, 1, 99);
#endif
}

STAGE_TEST(ended_by_threads_and_at_once)
{
    start_worker(s, "one", "20", "25", "async");
    stage_enqueue(s, "thread", NULL, 0, 300);
    stage_enqueue(s, "now", NULL, 300, 3000);
    await(stage_stat(s, "thread", "done") == 300 && stage_stat(s, "now", "done") == 3000);
    assert_int_equal(stage_stat(s, "thread", "retried"), 300);
}

/* A settle of jobs that have failed each for a reason of its own has a quarter as many as one of those that failed alike. What fails together comes
 * back in 32 parts. */
STAGE_TEST(own_reasons_are_settled_some_at_a_time)
{
    static const char parts[] =
        "local seen, parts, later = {}, 0, redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES') "
        "for i = 1, #later, 2 do "
        "  local at = later[i]:match('\\n@1,0,0[^;]*,e(%d+)@') "
        "  local delay = at and later[i + 1] - at "
        "  if at and not seen[delay] then seen[delay], parts = true, parts + 1 end "
        "end "
        "return parts";

    stage_log_ends(s);
    stage_enqueue(s, "fail", NULL, 0, FAILING);
    start_worker(s, "one", "300", "25", "async");
    await(stage_stat(s, "fail", "retried") >= FAILING);
    assert_in_range(stage_most_failed(s), 1, 125);
    assert_in_range(stage_number(s, "EVAL", parts, "1", stage_key(s, "later")), 16, 32);
}

/* Those of one type that fail alike are settled together, and each waits as long as it asked for. */
STAGE_TEST(what_fails_alike_waits_each_for_its_time)
{
    static const char right[] =
        "local right, later = 0, redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES') "
        "for i = 1, #later, 2 do "
        "  local at, id = later[i]:match(',e(%d+)@.*{\"id\":\"j(%d+)\"') "
        "  if at and later[i + 1] - at == (600 + id % 5) * 1000000 then right = right + 1 end "
        "end "
        "return right";
    static const char settles[] =
        "local n = 0 "
        "for _, entry in ipairs(redis.call('SLOWLOG', 'GET', '-1')) do "
        "  if entry[4][1] == 'FCALL' and entry[4][2]:find('_settle$') then n = n + 1 end "
        "end "
        "return n";

    stage_log_ends(s);
    stage_enqueue(s, "fail", NULL, 0, FAILING / 2);
    stage_enqueue(s, "alike", NULL, FAILING / 2, FAILING / 2);
    start_worker(s, "one", "300", "25", "async");
    await(stage_stat(s, "fail", "retried") + stage_stat(s, "alike", "retried") >= FAILING);
    assert_in_range(stage_most_failed(s), 126, 500);
    assert_in_range(stage_number(s, "EVAL", settles, "0"), 1, FAILING / 3);
    assert_in_range(stage_number(s, "EVAL", right, "1", stage_key(s, "later")), 200, FAILING);
}

STAGE_TEST(what_a_handler_sees)
{
    struct weir_job_spec job = {.type = "now",
                                .args = "\"look\"",
                                .id = "j0",
                                .key = "k",
                                .batch = "b",
                                .traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"};

    start_worker(s, "one", "20", "25", "async");
    assert_int_equal(weir_enqueue(s->client, &job, NULL), 0);
    stage_push_text(s, "{\"id\":\"j1\",\"type\":\"now\",\"args\":\"look\",\"meta\":{\"traceparent\":\"x\"},"
                       "\"batch\":\"mine\",\"traceparent\":7}");
    stage_push_stamped(s, INT64_C(1763900000050000), "{\"id\":\"j2\",\"type\":\"now\",\"args\":\"look\"}");
    await(stage_stat(s, "now", "done") == 3);
    await_text(s->server.folder, "notes",
               " k b 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 0 of j0\n");
    await_text(s->server.folder, "notes", "0.00 none none none 0 of j1\n");
    await_text(s->server.folder, "notes", "1763900000.05 none none none 0 of j2\n");
}

/* Functions on threads and jobs of the loop have the executors in common. */
STAGE_TEST(executors_in_common)
{
    start_worker(s, "one", "3", "25", "all");
    for (int i = 0; i < 4; i++) {
        stage_push(s, "wait", NULL, 2 * i, 1);
        stage_push(s, "block", NULL, 2 * i + 1, 1);
    }
    await(notes(s, "begin") == 3);
    clock_sleep_until(clock_mono_us() + 300 * MS); /* that no fourth one begins */
    assert_int_equal(notes(s, "begin"), 3);
    write_text(s->server.folder, "go", "");
    await(stage_stat(s, "wait", "done") == 4 && stage_stat(s, "block", "done") == 4);
}

/* Each starts at its slot, not before. */
STAGE_TEST(starts_at_their_slots)
{
    struct slots slots;
    pid_t one;

    stage_rate(s, "now", "500/s,burst=5");
    stage_enqueue(s, "now", NULL, 0, 1000);
    one = start_worker(s, "one", "20", "25", "async");
    await(stage_stat(s, "now", "done") == 1000);
    assert_int_equal(stage_end(one), 0);
    slots = slots_read(s, "trace");
    assert_int_equal(slots.count, 1000);
    assert_in_range(slots_most_in_a_second(&slots, "n", 0), 100, 505);
    slots_free(&slots);
    stage_must(s, "verify trace");
}

/* Told to stop, the worker waits for what is in flight; then it gives back. Who hears that and ends in time is done: these do not hear. */
TEST_WITH(stopping_waits_and_gives_back, stage_setup, stage_teardown)
{
    static const char *const grace[] = {"25", "0.3"};

    for (int i = 0; i < 2; i++) {
        struct stage *s = *state;
        pid_t one = start_worker(s, i ? "hasty" : "patient", "5", grace[i], "async");

        stage_push(s, "wait", "\"deaf\"", 10 * i, 3);
        await(notes(s, "begin") == 3 * (i + 1));
        kill(one, SIGTERM);
        await_text(s->server.folder, i ? "hasty.err" : "patient.err", "stopping: 3 jobs run to their end");
        if (i == 0)
            write_text(s->server.folder, "go", "");
        assert_int_equal(program_end(one), 0);
        assert_int_equal(stage_stat(s, "wait", "done"), 3);
        assert_int_equal(leased(s), i == 0 ? 0 : 3);
        if (i == 0) {
            char path[160];

            snprintf(path, sizeof path, "%s/go", s->server.folder);
            assert_int_equal(unlink(path), 0);
        }
    }
}

/* Past its lease the worker gives them up: their handlers are told, and what they say is not settled. The
 * process lives on. */
STAGE_TEST(stopped_longer_than_the_lease)
{
    pid_t away = start_worker(s, "away", "5", "25", "async"), heir;

    stage_push(s, "wait", NULL, 0, 2);
    await(notes(s, "begin") == 2);
    kill(away, SIGSTOP);
    heir = start_worker(s, "heir", "5", "25", "async");
    await(notes(s, "begin") == 3); /* one of them, alone */
    kill(away, SIGCONT);
    await(notes(s, "told") == 2);
    await_text(s->server.folder, "away.err", "2 jobs that run here are ended");
    stage_await_workers(s, 2);
    assert_int_equal(stage_stat(s, "wait", "done"), 0);
    write_text(s->server.folder, "go", "");
    await(stage_stat(s, "wait", "done") == 2);
    stage_push(s, "now", NULL, 2, 30);
    await(stage_stat(s, "now", "done") == 30);
    assert_int_equal(stage_end(away), 0);
    assert_int_equal(stage_end(heir), 0);
    assert_int_equal(stage_stat(s, "wait", "done"), 2);
}

/* A child that closes its input takes only itself along. */
STAGE_TEST(a_child_that_does_not_listen)
{
    char *args = malloc(900001), path[160];

    write_text(s->server.folder, "deaf", "#!/bin/sh\nexec <&-\necho deaf >&2\nsleep 0.3\n");
    snprintf(path, sizeof path, "%s/deaf", s->server.folder);
    assert_int_equal(chmod(path, 0755), 0);
    memset(args, '7', 900000); /* more than a pipe holds: it is still being written */
    args[0] = args[899999] = '"';
    args[900000] = '\0';
    stage_enqueue(s, "deaf", args, 0, 1);
    free(args);
    start_worker(s, "one", "2", "1", "pipe");
    await_text(s->server.folder, "one.err", "exit 0: deaf");
    stage_push(s, "now", NULL, 1, 1);
    await(stage_stat(s, "now", "done") == 1);
}

/* At most 1024 with threads, 65536 without. */
STAGE_TEST(how_many_executors)
{
    assert_int_equal(program_end(start_worker(s, "many", "1025", "25", "all")), 64);
    await_text(s->server.folder, "many.err", "1025 executors; use 1 to 1024 where functions or commands");
    assert_int_equal(program_end(start_worker(s, "more", "65537", "25", "async")), 64);
    start_worker(s, "one", "65536", "25", "async");
    stage_push(s, "now", NULL, 0, 10);
    await(stage_stat(s, "now", "done") == 10);
}

/* One that has ended, and that nobody has waited for, has no command line. */
static bool runs(pid_t pid)
{
    char path[40], words[8];

    snprintf(path, sizeof path, "%d/cmdline", (int)pid);
    return read_text("/proc", path, words, sizeof words) && words[0];
}

STAGE_TEST(a_handler_that_holds_the_loop)
{
    pid_t one = start_worker(s, "one", "2", "25", "exec");
    char pid[24];

    write_text(s->server.folder, "shell", "sleep 600 &\necho $! >pid\nwait\n");
    stage_enqueue(s, "shell", NULL, 0, 1);
    await(read_text(s->server.folder, "pid", pid, sizeof pid) && strchr(pid, '\n'));
    stage_enqueue(s, "hold", NULL, 1, 1);
    assert_int_equal(program_end(one), 70);
    assert_int_equal(notes(s, "begin"), 1);
    await_text(s->server.folder, "one.err", "loop stands still past the end of its lease of 1 s");
    await(!runs(atoi(pid)));
}

int main(int argc, char **argv)
{

    if (argc == 6 && strcmp(argv[1], "worker") == 0)
        return worker_main(argv);
    return tests_run(NULL, NULL);
}

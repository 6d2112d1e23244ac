/* A resolver that does not answer, for names that end with ".test" (tests/preload/resolver.c): nothing else
 * of a worker waits for it. */
#include <signal.h>
#include <unistd.h>

#include "core/clock.h"
#include "tests/proxy.h"
#include "tests/stage.h"

struct fixture {
    struct stage stage;
    struct proxy *proxy;
    char hangs[96]; /* the file */
    char url[64];   /* of Redis, by name */
};

static int open_fixture(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    *state = f;
    stage_open(&f->stage, false);
    f->proxy = proxy_start(&f->stage.server);
    snprintf(f->hangs, sizeof f->hangs, "%s/hangs", f->stage.server.folder);
    snprintf(f->url, sizeof f->url, "redis://redis.test:%d", proxy_tcp_port(f->proxy));
    write_text(f->stage.server.folder, "run.sh", "echo $$ > $WEIR_JOB_ID.pid; exec sleep 600\n");
    setenv("LD_PRELOAD", built("tests/preload/resolver.so"), 1);
    setenv("WEIR_TEST_RESOLVER", f->hangs, 1);
    setenv("ASAN_OPTIONS", "verify_asan_link_order=0", 0);
    return 0;
}

static int close_fixture(void **state)
{
    struct fixture *f = *state;

    unsetenv("LD_PRELOAD");
    unsetenv("WEIR_TEST_RESOLVER");
    proxy_stop(f->proxy);
    stage_close(&f->stage);
    free(f);
    return 0;
}

static void hang(struct fixture *f)
{
    write_text(f->stage.server.folder, "hangs", "");
}

static void answer(struct fixture *f)
{
    unlink(f->hangs);
}

static pid_t start_worker(struct fixture *f, const char *name, const char *lease)
{
    const char *words[] = {built("weir"), "worker",        "--redis", f->url, "--namespace", f->stage.ns,
                           "--exec",      "run=sh run.sh", "--lease", lease,  "--grace",     "1s",
                           NULL};

    return program_start(f->stage.server.folder, name, words);
}

static void enqueue(struct fixture *f, const char *type, const char *id, double timeout_s)
{
    struct weir_job_spec job = {.type = type, .id = id, .timeout_s = timeout_s};

    if (weir_enqueue(f->stage.client, &job, NULL) != 0)
        fail_msg("%s", weir_message(f->stage.client));
}

static pid_t await_command(struct fixture *f, const char *id)
{
    char text[24] = "";

    await(read_text(f->stage.server.folder, textf("%s.pid", id), text, sizeof text) && strchr(text, '\n'));
    return atoi(text);
}

static bool is_gone(pid_t pid)
{
    return kill(pid, 0) != 0;
}

/* TERM, and it is gone soon, though the name is not answered. */
static void assert_ends(pid_t worker)
{
    int64_t from_us = clock_mono_us();

    stage_end(worker);
    assert_true(clock_mono_us() - from_us < 20 * SECOND);
}

TEST_WITH(a_lease_ends_in_time, open_fixture, close_fixture)
{
    struct fixture *f = *state;
    pid_t worker = start_worker(f, "worker", "2s"), late, command;
    int64_t from_us;

    enqueue(f, "run", "j0", 0);
    command = await_command(f, "j0");
    hang(f);
    late = start_worker(f, "late", "2s");
    from_us = clock_mono_us();
    proxy_cut_all(f->proxy);
    await(is_gone(command));
    assert_true(clock_mono_us() - from_us <
                7 * SECOND); /* of the lease, and not of a name that hangs for 5 s */
    await_text(f->stage.server.folder, "worker.err", "silent for longer than the lease of 2 s");
    assert_ends(worker);
    await_text(f->stage.server.folder, "late.err", "redis.test");
    await_text(f->stage.server.folder, "late.err", "its name is not resolved within 5 s");
    answer(f);
    await_text(f->stage.server.folder, "late.err", "Redis is back");
    assert_ends(late);
}

TEST_WITH(a_job_is_ended_in_time, open_fixture, close_fixture)
{
    struct fixture *f = *state;
    pid_t worker = start_worker(f, "worker", "30s"), command;

    enqueue(f, "run", "j0", 2);
    command = await_command(f, "j0");
    hang(f);
    proxy_cut_all(f->proxy);
    await(is_gone(command));
    await_text(f->stage.server.folder, "worker.err", "over its time of 2 s");
    assert_int_equal(stage_stat(&f->stage, "run", "retried"), 0);
    answer(f);
    await(stage_stat(&f->stage, "run", "retried") == 1);
    await_text(f->stage.server.folder, "worker.err", "Redis is back");
    assert_ends(worker);
}

TEST_WITH(posts_beside_it_go_on, open_fixture, close_fixture)
{
    struct fixture *f = *state;
    const char *folder = f->stage.server.folder;
    char port[32], slow[64], fast[64];
    pid_t server, worker;

    write_text(folder, "server.py",
               "from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer\n"
               "class Handler(BaseHTTPRequestHandler):\n"
               "    def do_POST(self):\n"
               "        self.rfile.read(int(self.headers['Content-Length']))\n"
               "        self.send_response(200)\n"
               "        self.end_headers()\n"
               "    def log_message(self, *args):\n"
               "        pass\n"
               "server = ThreadingHTTPServer(('127.0.0.1', 0), Handler)\n"
               "print(server.server_port, flush=True)\n"
               "server.serve_forever()\n");
    server = program_start(folder, "server", (const char *[]){"/usr/bin/env", "python3", "server.py", NULL});
    await_text(folder, "server.out", "\n");
    read_text(folder, "server.out", port, sizeof port);
    snprintf(slow, sizeof slow, "slow=http://slow.test:%d/", atoi(port));
    snprintf(fast, sizeof fast, "fast=http://127.0.0.1:%d/", atoi(port));
    hang(f);
    worker = stage_weir(&f->stage, "worker", "--http", slow, "--http", fast, "--grace", "1s", NULL);
    enqueue(f, "slow", "s0", 1);
    await_text(folder, "worker.err", "over its time of 1 s");
    enqueue(f, "fast", "f0", 0);
    await(stage_stat(&f->stage, "fast", "done") == 1);
    await(stage_stat(&f->stage, "slow", "retried") == 1);
    enqueue(f, "slow", "s1", 0); /* it runs as the worker is sent SIGTERM */
    await(stage_stat(&f->stage, "slow", "pulled") == 2);
    assert_ends(worker);
    answer(f);
    worker = stage_weir(&f->stage, "again", "--http", slow, NULL);
    await(stage_stat(&f->stage, "slow", "done") == 1);
    assert_ends(worker);
    kill(server, SIGKILL);
    program_end(server);
}

TESTS(NULL, NULL)

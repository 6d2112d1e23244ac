/* The handlers of examples/ in other languages, each under the same four jobs. */
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "tests/stage.h"

/* "sms=<the source>/examples/<name>": the path of a program that a worker in another folder starts. */
static const char *handler(const char *name)
{
    static char word[1100];
    char here[1024];

    assert_non_null(getcwd(here, sizeof here));
    snprintf(word, sizeof word, "sms=%s/examples/%s", here, name);
    return word;
}

static void enqueue(struct stage *s, const char *to)
{
    const char *args = textf("{\"to\":\"%s\",\"text\":\"a \\\"b\\\" \xe2\x80\xa8 \\n c\"}", to);
    struct weir_job_spec job = {.type = "sms", .args = args};

    if (weir_enqueue(s->client, &job, NULL) != 0)
        fail_msg("%s", weir_message(s->client));
}

/* One is done, one dead with its reason, one comes again; the last one is throttled for two seconds. */
static void assert_ends(struct stage *s, pid_t worker)
{
    int64_t start_us;
    char *dead;

    enqueue(s, "+4930123456");
    enqueue(s, "+0");
    enqueue(s, "+2");
    await(stage_stat(s, "sms", "done") == 1 && stage_stat(s, "sms", "dead") == 1 &&
          stage_stat(s, "sms", "retried") == 1);
    dead = stage_dead(s);
    assert_non_null(strstr(dead, "no such number"));
    assert_non_null(strstr(dead, "\"to\":\"+0\""));
    free(dead);
    await_text(s->server.folder, "worker.err", "the provider is ill");
    start_us = clock_mono_us();
    enqueue(s, "+1");
    await(stage_stat(s, "sms", "back") == 2);
    assert_in_range(clock_mono_us() - start_us, 1900000, 30000000);
    assert_int_equal(stage_stat(s, "sms", "retried"), 1);
    assert_int_equal(stage_end(worker), 0);
}

static void assert_pipe(struct stage *s, const char *name)
{
    assert_ends(s, stage_weir(s, "worker", "--pipe", handler(name), "-c", "4", "--in-flight", "4", NULL));
}

TEST_WITH(python, stage_setup, stage_teardown)
{
    assert_pipe(*state, "handler.py");
}

TEST_WITH(shell, stage_setup, stage_teardown)
{
    assert_pipe(*state, "handler.sh");
}

TEST_WITH(node, stage_setup, stage_teardown)
{
    if (system("command -v node >/dev/null") == 0)
        assert_pipe(*state, "handler.js");
    else
        puts("examples/handler.js was not run: there is no node on this machine");
}

STAGE_TEST(one_process_a_job)
{
    assert_ends(s, stage_weir(s, "worker", "--exec", handler("exec_handler.sh"), NULL));
}

/* A worker that signs by these. */
static pid_t start_signing(struct stage *s, const char *name, const char *url, const char *secrets)
{
    const char *path = textf("%s/%s.secrets", s->server.folder, name);

    write_text("/", path + 1, secrets);
    assert_int_equal(chmod(path, 0600), 0);
    return stage_weir(s, name, "--http", url, "--http-secret", path, NULL);
}

/* It does the jobs of those only who sign by its secret. */
STAGE_TEST(http)
{
    const char *program = strchr(handler("handler_http.py"), '=') + 1;
    char text[128];
    pid_t server, worker;
    int port;

    server =
        program_start(s->server.folder, "endpoint",
                      (const char *[]){"/usr/bin/env", "WEIR_SECRET=0123456789abcdef", program, "0", NULL});
    await_text(s->server.folder, "endpoint.out", "\n");
    assert_true(read_text(s->server.folder, "endpoint.out", text, sizeof text));
    assert_int_equal(sscanf(text, "listening on port %d", &port), 1);
    stage_run(s, 0, "{\"to\":\"+9\",\"text\":\"\"}", 1, 0);
    worker = start_signing(s, "other", textf("run=http://127.0.0.1:%d/sms", port), "0123456789abcdeF\n");
    await(stage_stat(s, "run", "dead") == 1);
    stage_died(s, 0, "not signed by the secret");
    assert_int_equal(stage_end(worker), 0);
    assert_ends(s, start_signing(s, "worker", textf("sms=http://127.0.0.1:%d/sms", port),
                                 "another-one-of-bytes\n0123456789abcdef\n"));
    kill(server, SIGKILL);
    program_end(server);
}

TESTS(NULL, NULL)

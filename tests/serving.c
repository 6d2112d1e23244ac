#include "tests/serving.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/client.h"
#include "tests/program.h"
#include "tests/test.h"

#define LISTENING "serve: listening on "

struct serving serving;

/* ---- Starting and stopping */

static void end_leftover(void)
{
    if (serving.pid > 0) {
        kill(serving.pid, SIGKILL);
        waitpid(serving.pid, NULL, 0);
    }
    serving.pid = 0;
}

void serving_start_at(const char *url, const char *listen, const char *const *flags)
{
    const char *words[WORDS_MAX] = {built("weir"), "serve", "--redis", url ? url : server.url, "--listen"};
    char log[4096];
    int n = 5;

    snprintf(serving.where, sizeof serving.where, "%s/serve.sock", serving.folder);
    words[n++] = listen ? listen : textf("unix:%s", serving.where);
    while (*flags)
        words[n++] = *flags++;
    serving.pid = program_start(serving.folder, "serve", words);
    await_text(serving.folder, "serve.err", LISTENING);
    if (!listen)
        return;
    assert_true(read_text(serving.folder, "serve.err", log, sizeof log));
    assert_int_equal(sscanf(strstr(log, "127.0.0.1:"), "127.0.0.1:%7[0-9]", serving.where), 1);
}

const char *const serving_all_flags[] = {"--allow-actions", "--allow-enqueue", NULL};

void serving_start(void)
{
    serving_start_at(NULL, NULL, serving_all_flags);
}

void serving_ended(void)
{
    int code = program_end(serving.pid);

    serving.pid = 0;
    assert_int_equal(code, 0);
    assert_int_equal(access(serving.where, F_OK), -1); /* its socket */
}

void serving_end(void)
{
    kill(serving.pid, SIGTERM);
    serving_ended();
}

int serving_setup(void **state)
{
    folder_make(serving.folder);
    return client_start(state);
}

int serving_teardown(void **state)
{
    end_leftover();
    client_stop(state);
    folder_remove(serving.folder);
    return 0;
}

int serving_flush(void **state)
{
    end_leftover();
    return client_flush(state);
}

/* ---- Asking */

json_t *serving_parsed(void)
{
    json_t *doc = json_loads(serving.reply.body, 0, NULL);

    if (!doc)
        fail_msg("no JSON: %d %s", serving.reply.status, serving.reply.body);
    return doc;
}

json_t *serving_get(const char *path)
{
    http_request(serving.where, "GET", path, "", NULL, &serving.reply);
    if (serving.reply.status != 200)
        fail_msg("%s: %d %s", path, serving.reply.status, serving.reply.body);
    return serving_parsed();
}

unsigned serving_status_of(const char *method, const char *path, const char *headers, const char *body)
{
    http_request(serving.where, method, path, headers, body, &serving.reply);
    return (unsigned)serving.reply.status;
}

void serving_act(const char *path, const char *form)
{
    if (serving_status_of("POST", path, FORM, form) != 200)
        fail_msg("%s %s: %d %s", path, form, serving.reply.status, serving.reply.body);
}

void serving_refused(const char *method, const char *path, const char *headers, const char *body,
                     unsigned status, const char *says)
{
    if (serving_status_of(method, path, headers, body) != status || !strstr(serving.reply.body, says))
        fail_msg("%s %s: %d %s", method, path, serving.reply.status, serving.reply.body);
}

void serving_weir(const char *line)
{
    struct outcome o;

    if (program_weir(&o, serving.folder, server.url, NULL, line) != 0)
        fail_msg("%s: %d %s", line, o.code, o.err);
}

void serving_fill(void)
{
    serving_weir("rate set mail 1/1h");
    serving_weir("enqueue mail {\"n\":12345678901234567,\"x\":1.10} --id j1 --batch b1");
    serving_weir("enqueue mail --id j2 --queue slow");
    serving_weir("queue pause slow");
    serving_weir("schedule add nightly @daily mail");
}

void serving_enqueue(const struct weir_job_spec *job, int jobs)
{
    struct weir_bulk *bulk;

    assert_int_equal(weir_bulk_open(w, NULL, &bulk), 0);
    for (int i = 0; i < jobs; i++)
        assert_int_equal(weir_bulk_add(bulk, job), 0);
    assert_int_equal(weir_bulk_close(bulk, NULL), 0);
}

void serving_enqueue_many(int jobs)
{
    serving_enqueue(&(struct weir_job_spec){.type = "many"}, jobs);
}

/* A slot is spent by a handler that was called, and by nothing else: handlers that cannot be called, for each way to run
 * them, and jobs that are wrong. What such a job waits for is the next worker that can run it. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "tests/stage_group.h"

#ifndef __SANITIZE_THREAD__ /* which makes a fork of vfork: the child's errno does not come back */

#define WORKS                                                                                                \
    "#!/bin/sh\n"                                                                                            \
    "read -r job\n"                                                                                          \
    "echo '{\"id\":\"j'$(echo \"$job\" | sed "                                                               \
    "'s/.*\"id\":\"j\\([0-9]*\\).*/\\1/')'\",\"status\":\"done\"}'\n"

static void make_handler(struct stage *s, const char *name, const char *text)
{
    char path[200], fresh[200];

    write_text(s->server.folder, "fresh", text);
    snprintf(fresh, sizeof fresh, "%s/fresh", s->server.folder);
    snprintf(path, sizeof path, "%s/%s", s->server.folder, name);
    assert_int_equal(chmod(fresh, 0755), 0);
    assert_int_equal(rename(fresh, path), 0);
}

static void path_of(struct stage *s, const char *name, char path[200])
{
    snprintf(path, 200, "%s/%s", s->server.folder, name);
}

/* ---- How a deploy breaks a handler for a while */

static int held = -1; /* open for writing */

static void take_away(struct stage *s)
{
    char path[200];

    path_of(s, "handler", path);
    assert_int_equal(unlink(path), 0);
}

static void lock(struct stage *s)
{
    char path[200];

    path_of(s, "handler", path);
    assert_int_equal(chmod(path, 0644), 0);
}

/* It is busy: ETXTBSY. */
static void hold(struct stage *s)
{
    char path[200];

    path_of(s, "handler", path);
    assert_true((held = open(path, O_WRONLY | O_CLOEXEC)) >= 0);
}

/* It ends before it has read a line. */
static void spoil(struct stage *s)
{
    make_handler(s, "handler", "#!/bin/sh\nexit 1\n");
}

static void mend(struct stage *s)
{
    if (held >= 0)
        close(held);
    held = -1;
    make_handler(s, "handler", WORKS);
}

static const struct breakage {
    const char *ns, *way;
    void (*break_it)(struct stage *s);
} breakages[] = {
    {"gone", "--exec", take_away},     {"locked", "--exec", lock},   {"busy", "--exec", hold},
    {"pipegone", "--pipe", take_away}, {"pipebusy", "--pipe", hold}, {"unread", "--pipe", spoil},
};

static void expect_quota(struct stage *s, const char *line, const char *says)
{
    struct outcome o;

    assert_int_equal(program_weir(&o, s->server.folder, s->server.url, s->ns, line), 0);
    if (!strstr(o.out, says))
        fail_msg("%s: %s: not in %s%s", s->ns, says, o.out, o.err);
}

/* While a job is tried its slot is in use, for a moment. */
static bool has_free(struct stage *s, const char *free)
{
    struct outcome o;

    assert_int_equal(program_weir(&o, s->server.folder, s->server.url, s->ns, "rate show run"), 0);
    return strstr(o.out, free) != NULL;
}

static void break_for_a_while(const struct breakage *b, const char *rule)
{
    struct stage s;
    struct outcome o;
    pid_t worker;

    stage_branch(&stage, b->ns, &s);
    stage_rate(&s, "run", rule);
    make_handler(&s, "handler", WORKS);
    worker = stage_weir(&s, "worker", b->way, "run=./handler", "-c", "4", "--trace", "trace", NULL);
    stage_await_workers(&s, 1);
    b->break_it(&s);
    stage_push(&s, "run", NULL, 0, 3);
    await(stage_stat(&s, "run", "back") >= 9);
    await(has_free(&s, " 5 free now"));
    mend(&s);
    await(stage_stat(&s, "run", "done") == 3);
    assert_int_equal(stage_end(worker), 0);
    await(has_free(
        &s, " 2 free now")); /* a bucket gives back what cannot have drained meanwhile: milliseconds stay */
    expect_quota(&s, "rate show run", " 3 granted, ");
    expect_quota(&s, "rate show run", " no handler\n");
    run_in(&o, s.server.folder, built("weir"), "verify", "trace", NULL);
    assert_int_equal(o.code, 0);
    if (!strstr(o.out, "run        3 ") || !strstr(o.out, "as no handler was called: "))
        fail_msg("%s", o.out);
    stage_close(&s);
}

TEST(a_handler_that_cannot_be_called)
{
    for (size_t i = 0; i < sizeof breakages / sizeof *breakages; i++)
        break_for_a_while(&breakages[i], i % 2 ? "5/1d" : "5/1d,algorithm=fixed-window");
}

/* Anybody may push, and uses up nothing of what others may use. */
BRANCH_TEST(a_job_that_is_wrong, "wrong")
{
    pid_t worker;

    stage_rate(s, "run", "5/1d,algorithm=fixed-window");
    worker = stage_weir(s, "worker", "--exec", "run=/bin/true", "--trace", "trace", NULL);
    for (int i = 0; i < 20; i++) {
        stage_push_text(s, textf("{\"id\":\"j%d\",\"type\":\"run\",\"timeout\":-1}", i));
        await(stage_stat(s, "run", "dead") == i + 1);
    }
    expect_quota(s, "rate show run", "5 free now");
    assert_int_equal(stage_end(worker), 0);
    expect_quota(s, "rate show run", "0 granted, 0 wasted, 20 given back: 20 wrong job\n");
    expect_quota(s, "verify trace", "as no handler was called: 20 wrong job\n");
}

/* ---- What it waits for */

/* Beside a worker whose program is missing another one stands idle, of its group. A lone job that comes to the wrong one
 * waits for one turn of it. */
TEST(who_can_run_it_has_it)
{
    const char *const rules[] = {NULL, "100/1s"};
    struct stage s;
    char path[200];

    for (int i = 0; i < 2; i++) {
        pid_t broken, able;

        stage_branch(&stage, i ? "limited" : "free", &s);
        if (rules[i])
            stage_rate(&s, "run", rules[i]);
        make_handler(&s, "handler", WORKS);
        broken = stage_weir(&s, "broken", "--exec", "run=./handler", NULL);
        stage_await_workers(&s, 1);
        able = stage_weir(&s, "able", "--exec", "run=/bin/true", NULL);
        stage_await_workers(&s, 2);
        path_of(&s, "handler", path);
        assert_int_equal(unlink(path), 0);
        for (int job = 0; job < 20; job++) {
            stage_push(&s, "run", NULL, job, 1);
            await(stage_stat(&s, "run", "done") == job + 1);
        }
        assert_in_range(stage_stat(&s, "run", "back"), 0, 10); /* the others went to who can run them */
        assert_int_equal(stage_stat(&s, "run", "retried") + stage_stat(&s, "run", "dead"), 0);
        assert_int_equal(stage_end(broken), 0);
        assert_int_equal(stage_end(able), 0);
        stage_close(&s);
    }
}

STAGE_TESTS(stage_start, stage_stop)

#else
int main(void)
{
    return 0;
}
#endif

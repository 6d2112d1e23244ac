/* Crashes and cuts at every step of a job's life: workers killed, Redis killed, connections cut, silence. The
 * judge is the history that the handlers wrote: no job is lost, and none has its effect twice but where a
 * lease ended or an answer of Redis was lost with Redis itself. */
#include <dirent.h>
#include <signal.h>
#include <unistd.h>

#include "core/clock.h"
#include "tests/proxy.h"
#include "tests/stage.h"
#include "throttle/verify/verify.h"

/* An actor whose connections go through the proxy. */
static pid_t proxied_actor(struct stage *s, const struct proxy *p, const char *name, const char *lease)
{
    const char *url = textf("url=%s", proxy_url(p));

    return stage_actor(s, name, url, "types=mark,timed", "executors=2", lease, NULL);
}

static int64_t last_effect_us(struct stage *s)
{
    struct history h = history_read(s);
    int64_t at_us = h.count ? h.events[h.count - 1].at_us : 0;

    history_free(&h);
    return at_us;
}

/* No process did a job twice: what is repeated was repeated by another, after a death. */
static void assert_once_for_each_process(struct stage *s)
{
    struct history h = history_read(s);

    for (int i = 0; i < h.count; i++)
        for (int k = 0; k < i; k++)
            if (h.events[i].what[0] == 'e' && h.events[k].what[0] == 'e' &&
                h.events[i].job == h.events[k].job && h.events[i].pid == h.events[k].pid)
                fail_msg("%s: process %d did job %d twice", s->ns, (int)h.events[i].pid, h.events[i].job);
    history_free(&h);
}

/* ---- A worker is killed */

enum { STEPS = 15, CASES = 2 * STEPS, JOBS = 8 };

struct killing {
    struct stage stage;
    struct proxy *proxy;
    enum proxy_side side;
    unsigned step;
    pid_t victim, heir;
    int64_t dead_us;
};

static void begin_killing(struct stage *root, struct killing *k, int number)
{
    k->side = number < STEPS ? PROXY_REQUESTS : PROXY_REPLIES;
    k->step = 1 + (unsigned)number % STEPS;
    stage_branch(root, textf("%s%u", k->side == PROXY_REQUESTS ? "request" : "reply", k->step), &k->stage);
    stage_rate(&k->stage, "timed", "100/s concurrency=2"); /* the dead one's count until they are reaped */
    k->proxy = proxy_start(&k->stage.server);
    k->victim = proxied_actor(&k->stage, k->proxy, "victim", "lease=1");
}

/* All kinds of ends, with and without a limit. */
static void feed(struct stage *s, int first)
{
    stage_push(s, "mark", NULL, first, 2);
    stage_push(s, "timed", NULL, first + 2, 2);
    stage_push(s, "mark", "{\"fail\":1,\"after\":0}", first + 4, 1);
    stage_push(s, "mark", "{\"sleep\":0.03}", first + 5, 1);
    stage_push(s, "timed", "{\"sleep\":0.01}", first + 6, 2);
}

static void end_killing(struct killing *k)
{
    struct verdict v = stage_await_done(&k->stage, JOBS);

    assert_once_for_each_process(&k->stage);
    assert_true(v.twice <= JOBS);
    /* The lease, at most one more of amnesty, heartbeats, and a busy machine. */
    assert_in_range(last_effect_us(&k->stage), 0, k->dead_us + 30 * SECOND);
    assert_int_equal(stage_end(k->heir), 0);
    proxy_stop(k->proxy);
    stage_close(&k->stage);
}

/* The worker is killed before its n-th request is sent, and after its n-th request was answered but before it
 * hears of it, for each n; side by side. */
TEST_WITH(worker_killed_at_each_step, stage_setup, stage_teardown)
{
    struct killing *all = calloc(CASES, sizeof *all);

    assert_non_null(all);
    for (int i = 0; i < CASES; i++)
        begin_killing(*state, &all[i], i);
    stage_await_blocked(*state, 2 * CASES);
    for (int i = 0; i < CASES; i++)
        proxy_kill_before(all[i].proxy, all[i].side, all[i].step, all[i].victim);
    for (int i = 0; i < CASES; i++)
        feed(&all[i].stage, 0);
    for (int i = 0; i < CASES; i++) {
        assert_int_equal(program_end(all[i].victim), 1000 + SIGKILL);
        all[i].dead_us = clock_mono_us();
        all[i].heir = stage_actor(&all[i].stage, "heir", "types=mark,timed", "executors=2", "lease=1", NULL);
    }
    for (int i = 0; i < CASES; i++)
        end_killing(&all[i]);
    free(all);
}

/* The handler's worker dies before or after the effect, beside other jobs. */
TEST_WITH(worker_killed_around_the_effect, stage_setup, stage_teardown)
{
    static const char *const when[] = {"before", "after"};
    struct stage branches[2];
    pid_t heirs[2];

    for (int i = 0; i < 2; i++) {
        struct stage *s = &branches[i];
        pid_t victim;

        stage_branch(*state, when[i], s);
        stage_push(s, "mark", textf("{\"kill\":\"%s\"}", when[i]), 0, 1);
        stage_push(s, "mark", NULL, 1, 30);
        victim = stage_actor(s, "victim", "executors=2", "lease=1", "fragile=1", NULL);
        assert_int_equal(program_end(victim), 1000 + SIGKILL);
        assert_int_equal(history_count(s, "effect", 0), i);
        heirs[i] = stage_actor(s, "heir", "executors=2", "lease=1", NULL);
    }
    for (int i = 0; i < 2; i++) {
        struct stage *s = &branches[i];

        stage_await_done(s, 31);
        assert_int_equal(history_count(s, "effect", 0), i + 1);
        assert_once_for_each_process(s);
        assert_int_equal(stage_end(heirs[i]), 0);
        stage_close(s);
    }
}

/* A job that kills its worker is dead after the third; what stood beside it is done. */
STAGE_TEST(poison)
{
    struct verdict v;
    char *dead, log[16384];

    stage_push(s, "mark", "{\"kill\":\"before\"}", 0, 1);
    stage_push(s, "mark", NULL, 1, 10);
    for (int i = 0; i < 3; i++)
        assert_int_equal(program_end(stage_actor(s, "victim", "executors=1", "lease=1", "fragile=1", NULL)),
                         1000 + SIGKILL);
    stage_actor(s, "last", "executors=1", "lease=1", "fragile=1", NULL);
    v = stage_await_ended(s, 11);
    assert_int_equal(v.dead, 1);
    assert_int_equal(v.twice, 0);
    assert_int_equal(history_count(s, "begin", 0), 3);
    dead = stage_dead(s);
    assert_non_null(strstr(dead, "default/mark/ its worker died 3 times\n@0,3,0;{\"id\":\"j0\""));
    free(dead);
    /* A line about a job has its job. */
    await_text(s->server.folder, "last.err",
               "msg=\"dead: its worker died too often\" job=j0 type=mark attempt=1");
    await_text(s->server.folder, "victim.err",
               "msg=\"interrupted: its worker died while it ran\" job=j0 type=mark");
    await_text(s->server.folder, "victim.err",
               "msg=\"runs alone: its worker died while it ran\" job=j0 type=mark");
    /* And the first of a worker says who it is, though Redis keeps no AOF. */
    assert_true(read_text(s->server.folder, "last.err", log, sizeof log));
    *strchr(log, '\n') = '\0';
    assert_non_null(strstr(log, "level=info msg=started worker="));
}

/* Workers come and go, most of them by kill -9. A limit holds meanwhile: lost slots make it slower, never
 * faster. */
STAGE_TEST(workers_killed_under_load)
{
    enum { WORKERS = 4, ROUNDS = 16, ACCEPTED = 2400 };
    pid_t workers[WORKERS];
    char trace[ROUNDS + WORKERS][40], path[ROUNDS + WORKERS][160];
    struct verdict v;
    struct verify verify;
    struct error e;
    size_t torn;
    int traces = 0;

    stage_rate(s, "timed", "400/s,burst=20 concurrency=6");
    for (int i = 0; i < ACCEPTED; i += 400) {
        stage_enqueue(s, "timed", "{\"sleep\":0.002}", i, 200);
        stage_enqueue(s, "mark", "{\"sleep\":0.002}", i + 200, 200);
    }
    for (int i = 0; i < WORKERS + ROUNDS; i++) {
        int at = i % WORKERS, effects = history_count(s, "effect", -1);

        if (i >= WORKERS && i % 5 != 0) {
            kill(workers[at], SIGKILL);
            assert_int_equal(program_end(workers[at]), 1000 + SIGKILL);
        } else if (i >= WORKERS) {
            assert_int_equal(stage_end(workers[at]), 0);
        }
        snprintf(trace[i], sizeof trace[i], "trace=%d.trace", traces);
        snprintf(path[i], sizeof path[i], "%s/%d.trace", s->server.folder, traces++);
        workers[at] = stage_actor(s, "worker", "types=mark,timed", "executors=3", "lease=1", trace[i], NULL);
        await(history_count(s, "effect", -1) >= effects + 40 || history_count(s, "effect", -1) >= ACCEPTED);
    }
    v = stage_await_ended(s, ACCEPTED);
    assert_int_equal(v.done + v.dead, ACCEPTED);
    assert_true(v.dead < 10); /* in flight at three deaths */
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(stage_end(workers[i]), 0);

    assert_int_equal(verify_init(&verify, &e), 0);
    for (int i = 0; i < traces; i++)
        if (access(path[i], F_OK) == 0)
            assert_int_equal(verify_read(&verify, path[i], &torn, &e), 0);
    assert_int_equal(verify_replay(&verify, &e), 0);
    assert_int_equal(verify.violations, 0);
    verify_free(&verify);
}

/* ---- Redis is killed */

/* The number behind field in that section of INFO; -1: it is not there. */
static int info_number(struct stage *s, const char *section, const char *field)
{
    char *info = server_ask(&s->server, "INFO", section, NULL), *at = strstr(info, field);
    int n = at ? atoi(at + strlen(field)) : -1;

    free(info);
    return n;
}

STAGE_TEST_WITH(redis_killed_under_load, stage_setup_durable, stage_teardown)
{
    enum { ACCEPTED = 4000 };
    pid_t workers[2];

    stage_rate(s, "timed", "1000/s,burst=20 concurrency=6");
    for (int i = 0; i < ACCEPTED; i += 400) {
        stage_enqueue(s, "timed", NULL, i, 200);
        stage_enqueue(s, "mark", "{\"sleep\":0.004}", i + 200, 200);
    }
    /* Redis may hold a write back while it waits for the disk: those are answered, and lost when it is
     * killed. */
    await(info_number(s, "persistence", "aof_buffer_length:") == 0 &&
          info_number(s, "persistence", "aof_pending_bio_fsync:") == 0);
    for (int i = 0; i < 2; i++)
        workers[i] = stage_actor(s, i ? "two" : "one", "types=mark,timed", "executors=4", NULL);
    for (int i = 0; i < 5; i++) {
        int effects = history_count(s, "effect", -1);

        await(history_count(s, "effect", -1) >= effects + 300);
        server_restart(&s->server);
    }
    stage_await_done(s, ACCEPTED);
    for (int i = 0; i < 2; i++) {
        await_text(s->server.folder, i ? "two.err" : "one.err", "Redis is back after");
        assert_int_equal(stage_end(workers[i]), 0);
    }
}

/* Each worker that comes back says it, once; one that begins later does not. */
STAGE_TEST(redis_forgets_all)
{
    pid_t busy = stage_actor(s, "busy", "types=mark", "executors=1", "lease=4", NULL),
          other = stage_actor(s, "other", "types=timed", "executors=1", "lease=1", NULL), idle;

    stage_await_workers(s, 2);
    stage_rate(s, "timed", "1/s");
    stage_push(s, "mark", "{\"sleep\":3}", 0, 1);
    await(history_count(s, "begin", -1) == 1);
    stage_do(s, "FLUSHALL");
    await_text(
        s->server.folder, "busy.err",
        "Redis has lost all of Weir's data: jobs (1 of them run here), schedules, batches and unique locks");
    await_text(s->server.folder, "other.err", "Redis has lost all of Weir's data: jobs (0 of them run here)");
    assert_int_equal(stage_says(s, "busy", "given to others"), 0);
    idle = stage_actor(s, "idle", "types=mark", "executors=1", NULL);
    stage_push(s, "mark", NULL, 1, 1);
    await(history_count(s, "effect", 1) == 1);
    assert_int_equal(stage_end(idle), 0);
    assert_int_equal(stage_end(busy), 0);
    assert_int_equal(stage_end(other), 0);
    assert_int_equal(stage_says(s, "other", "lost all of Weir's data"), 1);
    assert_int_equal(stage_says(s, "idle", "lost all of Weir's data"), 0);
    assert_int_equal(stage_says(s, "busy", "lost all of Weir's data"), 1);
}

/* Down until a call succeeds, though each connect does. */
STAGE_TEST(redis_full_without_its_functions)
{
    stage_actor(s, "worker", "types=mark", "executors=1", "lease=1", NULL);
    stage_await_workers(s, 1);
    stage_do(s, "CONFIG", "SET", "maxmemory", "1");
    stage_do(s, "FUNCTION", "FLUSH");
    await(info_number(s, "errorstats", "errorstat_OOM:count=") >= 8); /* two of each connection */
    stage_do(s, "CONFIG", "SET", "maxmemory", "0");
    await_text(s->server.folder, "worker.err", "Redis is back after");
    stage_push(s, "mark", NULL, 0, 1);
    await(history_count(s, "effect", 0) == 1);
    assert_int_equal(stage_says(s, "worker", "without the functions"), 1);
    assert_int_equal(stage_says(s, "worker", "Redis is back after"), 1);
}

/* ---- The connection is cut */

static int open_files(pid_t pid)
{
    DIR *folder;
    int n = 0;

    folder = opendir(textf("/proc/%d/fd", (int)pid));
    assert_non_null(folder);
    while (readdir(folder))
        n++;
    closedir(folder);
    return n;
}

/* Keeps the worker busy, so that there is something to cut, until the cut has happened. Returns the next job.
 */
static int feed_until_cut(struct stage *s, struct proxy *p, int job)
{
    int64_t end_us = clock_mono_us() + AWAIT_US;

    while (!proxy_has_cut(p)) {
        if (stage_number(s, "LLEN", stage_key(s, "queue:default")) < 6) {
            stage_push(s, "mark", job % 3 ? NULL : "{\"sleep\":0.02}", job, 1);
            job++;
        }
        clock_sleep_until(clock_mono_us() + 2 * MS);
        if (clock_mono_us() > end_us)
            fail_msg("nothing was cut");
    }
    return job;
}

/* The worker is at work again. Without it, cut after cut, it would come back ever later. */
static void await_progress(struct stage *s)
{
    int effects = history_count(s, "effect", -1);

    await(history_count(s, "effect", -1) > effects ||
          stage_number(s, "EXISTS", stage_key(s, "queue:default")) == 0);
}

/* A cut, and another one on the way back to work: while it logs in, loads scripts, adopts. One worker, so
 * that its jobs are nobody else's: each has its effect once. */
STAGE_TEST(cut_at_each_message)
{
    struct proxy *p = proxy_start(&s->server);
    pid_t worker = proxied_actor(s, p, "worker", "lease=20");
    int job = 0, files;

    stage_await_blocked(s, 2);
    files = open_files(worker);
    for (unsigned n = 1; n <= 20; n++) {
        for (enum proxy_side side = PROXY_REQUESTS; side <= PROXY_REPLIES; side++) {
            feed(s, job);
            proxy_cut_before(p, side, n);
            job = feed_until_cut(s, p, job + JOBS);
            proxy_cut_before(p, side, 21 - n);
            job = feed_until_cut(s, p, job);
            await_progress(s);
        }
    }
    assert_int_equal(stage_await_done(s, job).twice, 0);
    stage_await_blocked(s, 2);
    await(open_files(worker) <= files + 2); /* of its five connections three were open then, at least */
    assert_int_equal(stage_end(worker), 0);
    proxy_stop(p);
}

STAGE_TEST(cut_within_messages)
{
    struct proxy *p = proxy_start(&s->server);
    pid_t worker = proxied_actor(s, p, "worker", "lease=20");
    int job = 0;

    stage_await_blocked(s, 2);
    for (size_t n = 1; n < 2000; n += 1 + n / 2) {
        for (enum proxy_side side = PROXY_REQUESTS; side <= PROXY_REPLIES; side++) {
            feed(s, job);
            proxy_cut_after_bytes(p, side, n);
            job = feed_until_cut(s, p, job + JOBS);
            await_progress(s);
        }
    }
    assert_int_equal(stage_await_done(s, job).twice, 0);
    assert_int_equal(stage_end(worker), 0);
    proxy_stop(p);
}

struct comeback {
    struct stage stage;
    struct proxy *proxy;
    pid_t worker;
};

static bool is_cut_or_done(struct comeback *c)
{
    return proxy_has_cut(c->proxy) || history_count(&c->stage, "effect", -1) == JOBS;
}

/* On the way back each answer in turn is lost, that of adopt too, while jobs run and end: what Redis did and
 * what the worker heard of then differ. */
TEST_WITH(answers_lost_on_the_way_back, stage_setup, stage_teardown)
{
    enum { FIRST = 8, CASES_HERE = 14 };
    struct comeback all[CASES_HERE];

    for (int i = 0; i < CASES_HERE; i++) {
        struct comeback *c = &all[i];

        stage_branch(*state, textf("answer%d", FIRST + i), &c->stage);
        c->proxy = proxy_start(&c->stage.server);
        c->worker = proxied_actor(&c->stage, c->proxy, "worker", "lease=20");
    }
    stage_await_blocked(*state, 2 * CASES_HERE);
    for (int i = 0; i < CASES_HERE; i++)
        for (int job = 0; job < JOBS; job++)
            stage_push(&all[i].stage, "mark", job ? "{\"sleep\":0.1}" : "{\"sleep\":0.05}", job, 1);
    for (int i = 0; i < CASES_HERE; i++) {
        await(history_count(&all[i].stage, "begin", -1) > 1);
        proxy_cut_before(all[i].proxy, PROXY_REPLIES, 1);
        await(is_cut_or_done(&all[i]));
        proxy_cut_before(all[i].proxy, PROXY_REPLIES, (unsigned)(FIRST + i));
    }
    for (int i = 0; i < CASES_HERE; i++) {
        await(is_cut_or_done(&all[i]));
        assert_int_equal(stage_await_done(&all[i].stage, JOBS).twice, 0);
        assert_int_equal(stage_end(all[i].worker), 0);
        proxy_stop(all[i].proxy);
        stage_close(&all[i].stage);
    }
}

/* ---- Silence */

/* Nothing comes through for longer than a lease: another may run the job now, and a C function can only be
 * ended with its process. */
STAGE_TEST(silence_longer_than_the_lease)
{
    struct proxy *p = proxy_start(&s->server);
    pid_t away = proxied_actor(s, p, "away", "lease=1"), heir;

    stage_push(s, "mark", "{\"wait\":\"go\"}", 0, 1);
    await(history_count(s, "begin", 0) == 1);
    proxy_blackhole(p, true);
    heir = stage_actor(s, "heir", "types=mark,timed", "executors=2", "lease=1", NULL);
    assert_int_equal(program_end(away), 70);
    await_text(s->server.folder, "away.err", "silent for longer than its lease while mark j0 ran");
    await(history_count(s, "begin", 0) == 2);
    write_text(s->server.folder, "go", "");
    stage_push(s, "mark", "{\"sleep\":0.01}", 1, 30);
    assert_int_equal(stage_await_done(s, 31).twice, 0);
    assert_int_equal(stage_stat(s, "mark", "done"), 31);
    assert_int_equal(stage_end(heir), 0);
    proxy_stop(p);
}

/* A worker that nothing runs in while it is cut off goes on when it is back. */
STAGE_TEST(idle_in_the_silence)
{
    struct proxy *p = proxy_start(&s->server);
    pid_t away = proxied_actor(s, p, "away", "lease=1"), heir;

    stage_push(s, "mark", NULL, 0, 1);
    await(stage_stat(s, "mark", "done") == 1);
    proxy_blackhole(p, true);
    heir = stage_actor(s, "heir", "types=mark,timed", "executors=2", "lease=1", NULL);
    await_text(s->server.folder, "heir.err", "1 workers were silent for a lease");
    proxy_blackhole(p, false);
    stage_await_workers(s, 2);
    stage_push(s, "mark", "{\"sleep\":0.01}", 1, 30);
    assert_int_equal(stage_await_done(s, 31).twice, 0);
    assert_int_equal(stage_end(away), 0);
    assert_int_equal(stage_end(heir), 0);
    proxy_stop(p);
}

/* The same as silence for a process that was stopped: it wakes up as if nothing had been. */
STAGE_TEST(stopped_longer_than_the_lease)
{
    pid_t away = stage_actor(s, "away", "executors=2", "lease=1", NULL);

    stage_push(s, "mark", "{\"wait\":\"go\"}", 0, 2);
    await(history_count(s, "begin", -1) == 2);
    kill(away, SIGSTOP);
    stage_actor(s, "heir", "executors=2", "lease=1", NULL);
    await(history_count(s, "begin", -1) == 3); /* one of them, alone */
    kill(away, SIGCONT);
    assert_int_equal(program_end(away), 70);
    write_text(s->server.folder, "go", "");
    stage_push(s, "mark", "{\"sleep\":0.01}", 2, 30);
    assert_int_equal(stage_await_done(s, 32).twice, 0);
    assert_int_equal(stage_stat(s, "mark", "done"), 32);
}

/* ---- Answers that come late */

/* Jobs in flight, whoever has them. */
static long long leased(struct stage *s)
{
    static const char script[] = "local n = 0\n"
                                 "for _, key in ipairs(redis.call('KEYS', ARGV[1])) do\n"
                                 "    n = n + redis.call('HLEN', key) - 1\n"
                                 "end\n"
                                 "return n";

    return stage_number(s, "EVAL", script, "0", stage_key(s, "active:*"));
}

/* A worker whose claim was granted a job, but the answer is on its way for a while. */
static pid_t start_unanswered(struct stage *s, struct proxy *p, const char *lease)
{
    pid_t worker = proxied_actor(s, p, "worker", lease);

    stage_await_blocked(s, 2);
    proxy_delay(p, PROXY_REPLIES, 400000);
    stage_push(s, "mark", NULL, 0, 1);
    await(leased(s) == 1);
    return worker;
}

/* Told to stop before it hears what it was granted, the worker gives it back; told twice, too. */
TEST_WITH(stopped_before_the_answer, stage_setup, stage_teardown)
{
    for (int calls = 1; calls <= 2; calls++) {
        struct stage s;
        struct proxy *p;
        pid_t worker;
        char *entry;

        stage_branch(*state, calls == 1 ? "once" : "twice", &s);
        p = proxy_start(&s.server);
        worker = start_unanswered(&s, p, "lease=20");
        kill(worker, SIGTERM);
        await_text(s.server.folder, "worker.err", "stopping: 0 jobs run");
        if (calls == 2)
            kill(worker, SIGTERM);
        assert_int_equal(program_end(worker), 0);
        assert_int_equal(history_count(&s, "begin", 0), 0);
        entry = server_ask(&s.server, "LRANGE", stage_key(&s, "lane:default/mark/"), "0", "-1", NULL);
        assert_string_equal(entry, "{\"id\":\"j0\",\"type\":\"mark\",\"args\":null}");
        free(entry);
        proxy_stop(p);
        stage_close(&s);
    }
}

/* What comes after its lease has ended is not begun. */
STAGE_TEST(answered_after_the_lease)
{
    struct proxy *p = proxy_start(&s->server);
    pid_t away = start_unanswered(s, p, "lease=1"), heir;

    kill(away, SIGSTOP);
    heir = stage_actor(s, "heir", "executors=2", "lease=1", NULL);
    await(stage_stat(s, "mark", "done") == 1);
    proxy_delay(p, PROXY_REPLIES, 0);
    kill(away, SIGCONT);
    stage_await_workers(s, 2);
    stage_push(s, "mark", "{\"sleep\":0.01}", 1, 20);
    assert_int_equal(stage_await_done(s, 21).twice, 0);
    assert_int_equal(history_count(s, "begin", 0), 1);
    assert_int_equal(stage_end(away), 0);
    assert_int_equal(stage_end(heir), 0);
    proxy_stop(p);
}

/* ---- Garbage */

static const char *const garbage[] = {
    "",
    "null",
    "[]",
    "42",
    "\"text\"",
    "{",
    "{}",
    "{\"type\":",
    "{\"type\":7}",
    "{\"type\":\"\"}",
    "{\"type\":\"two words\"}",
    "{\"type\":\"a/b\"}",
    "{\"id\":\"x\",\"type\":\"mark\"",
    "{\"id\":\"x\",\"type\":\"mark\",\"args\":}",
    "{\"id\":\"x\",\"type\":\"mark\",\"args\":NaN}",
    "{\"id\":\"x\",\"type\":\"mark\",\"args\":0x10}",
    "{\"id\":\"x\",\"type\":\"mark\"} trailing",
    "{\"id\":\"x\",\"type\":\"mark\",\"type\":\"timed\"}",
    "{\"id\":\"../x\",\"type\":\"mark\"}",
    "{\"id\":17,\"type\":\"mark\"}",
    "{\"id\":\"x\",\"type\":\"mark\",\"max_attempts\":-1}",
    "{\"id\":\"x\",\"type\":\"mark\",\"args\":\"\xff\xfe\"}",
    "\xef\xbb\xbf{\"id\":\"x\",\"type\":\"mark\"}",
    "@1,2;{\"id\":\"x\",\"type\":\"mark\"}",
    "@,,;",
    "{\"type\":\"mark\",\"id\":\"x\\u0000y\"}",
    "%s%n%p",
    "1\n2\n3",
};

/* What a foreign client pushes beside good jobs is dead with its bytes, and harms nobody. */
STAGE_TEST(garbage_under_load)
{
    enum { KINDS = COUNT(garbage), ROUNDS = 5 };
    char *large = malloc(3 << 20), *dead;
    int job = 0;

    stage_actor(s, "worker", "executors=3", NULL);
    memset(large, '{', (3 << 20) - 1);
    large[(3 << 20) - 1] = '\0';
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < KINDS; i++) {
            stage_push_text(s, garbage[i]);
            stage_push(s, "mark", "{\"sleep\":0.001}", job++, 1);
        }
        stage_push_text(s, large);
    }
    await(stage_number(s, "ZCARD", stage_key(s, "dead")) == ROUNDS * (KINDS + 1));
    assert_int_equal(stage_await_done(s, job).twice, 0);
    dead = stage_dead(s);
    for (int i = 0; i < KINDS; i++)
        if (!strstr(dead, garbage[i]))
            fail_msg("the dead jobs lack %s", garbage[i]);
    free(dead);
    free(large);
}

STAGE_TESTS(NULL, NULL)

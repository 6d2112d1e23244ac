/* All ends that a job can have, for every kind of handler: the rows of ends[] times those of kinds[]. A job's
 * type is the name of its row, and every kind of handler plays it by that (tests/handlers/). Kinds and ends that take the
 * worker with them are run apart. */
#include <ev.h>
#include <math.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "tests/stage.h"
#include "worker/way/handler.h"
#include "worker/way/way.h"

/* Where a job is to be found, and what was kept with it. */
enum state { DONE, LATER, DEAD, CANCELLED, LANE, NOT_HERE };

struct end {
    enum state state;
    const char *reason;     /* part of it; NULL: none */
    double least_s, most_s; /* LATER: in how long */
    const char *counts;     /* LATER, LANE: the head of its entry */
    int exit;               /* of the worker that is run apart for it; 0: it goes on */
};

#define LATER_AND_EXIT(reason_, least, most, counts_, code)                                                  \
    {                                                                                                        \
        .state = LATER, .reason = reason_, .least_s = least, .most_s = most, .counts = counts_, .exit = code \
    }
#define RUNS_LATER(reason_, least, most, counts_) LATER_AND_EXIT(reason_, least, most, counts_, 0)
#define IN_LANE(counts_, code)                                                                               \
    {                                                                                                        \
        .state = LANE, .counts = counts_, .exit = code                                                       \
    }

enum row {
    ROW_DONE,
    RETRY,
    RETRY_AFTER,
    DIE,
    THROTTLED,
    THROTTLED_AFTER,
    THROTTLED_LONG,  /* longer than any pause */
    THROTTLED_WRONG, /* by a time that is none */
    RETRY_WRONG,     /* the same; and the next one */
    RETRY_LONG,
    ODD,
    CRASH,
    OVER_TIME,
    OBEYS,     /* as soon as it is told that it is over its time; the one before does not */
    SAYS_DONE, /* obeys too */
    CANCEL,
    ROWS
};

static const struct {
    const char *name, *members;
    struct end usual;
} ends[ROWS] = {
    [ROW_DONE] = {"done", "", {.state = DONE}},
    [RETRY] = {"retry", "", RUNS_LATER("no luck", 10, 26, "@1,0,0,")},
    [RETRY_AFTER] = {"retry_after", "", RUNS_LATER("no luck", 990, 1001, "@1,0,0,")},
    [DIE] = {"dead", "", {.state = DEAD, .reason = "no such customer"}},
    [THROTTLED] = {"throttled", "", RUNS_LATER(NULL, 0, 301, "@0,0,")},
    [THROTTLED_AFTER] = {"throttled_after", "", RUNS_LATER(NULL, 590, 601, "@0,0,1;")},
    [THROTTLED_LONG] = {"throttled_long", "", RUNS_LATER(NULL, 86390, 86401, "@0,0,1;")},
    [THROTTLED_WRONG] = {"throttled_wrong", "", RUNS_LATER(NULL, 0, 301, "@0,0,")},
    [RETRY_WRONG] = {"retry_wrong", "", RUNS_LATER(NULL, 5, 26, "@1,0,0,e")},
    [RETRY_LONG] = {"retry_long", "", RUNS_LATER("no luck", 5, 26, "@1,0,0,")},
    [ODD] = {"odd", "", RUNS_LATER(NULL, 10, 26, "@1,0,0")},
    [CRASH] = {"crash", "", IN_LANE("@0,1,0,h1;", 1000 + SIGKILL)},
    [OVER_TIME] = {"over_time", ",\"timeout\":0.3", RUNS_LATER("over its time of 0.3 s", 5, 26, "@1,0,0,")},
    [OBEYS] = {"obeys", ",\"timeout\":0.3", RUNS_LATER("over its time of 0.3 s", 5, 26, "@1,0,0,")},
    [SAYS_DONE] = {"says_done", ",\"timeout\":0.3", RUNS_LATER("over its time of 0.3 s", 5, 26, "@1,0,0,")},
    [CANCEL] = {"cancelled", "", {.state = CANCELLED}},
};

/* What is of another kind than usual; what stands there has a reason or a count. */
static const struct kind {
    const char *name;
    bool writes; /* its answers are text: wrong ones are told */
    struct end unlike[ROWS];
    bool differs[ROWS];
} kinds[] = {
    {.name = "function",
     .differs = {[OVER_TIME] = true},
     .unlike = {[OVER_TIME] = LATER_AND_EXIT("over its time of 0.3 s", 5, 26, "@1,0,0,", 70)}},
    {.name = "async"},
    {.name = "exec",
     .writes = true,
     .differs =
         {[RETRY_AFTER] = true, [RETRY_WRONG] = true, [RETRY_LONG] = true, [CRASH] = true, [ODD] = true},
     .unlike = {[RETRY_AFTER] = {.state = NOT_HERE},
                [RETRY_WRONG] = {.state = NOT_HERE},
                [RETRY_LONG] = {.state = NOT_HERE},
                [CRASH] = RUNS_LATER("killed by signal 9", 5, 26, "@1,0,0,"),
                [ODD] = RUNS_LATER("exit 42", 5, 26, "@1,0,0,")}},
    {.name = "pipe",
     .writes = true,
     .differs = {[CRASH] = true, [ODD] = true},
     .unlike = {[CRASH] = {.state = DEAD, .reason = "its handler died 3 times: killed by signal 9"},
                [ODD] = RUNS_LATER("answered without a status", 5, 26, "@1,0,0,")}},
    {.name = "http",
     .writes = true,
     .differs =
         {[RETRY_AFTER] = true, [RETRY_WRONG] = true, [RETRY_LONG] = true, [CRASH] = true, [ODD] = true},
     .unlike = {[RETRY_AFTER] = {.state = NOT_HERE},
                [RETRY_WRONG] = {.state = NOT_HERE},
                [RETRY_LONG] = {.state = NOT_HERE},
                [CRASH] = RUNS_LATER("no answer: ", 5, 26, "@1,0,0,"),
                [ODD] = RUNS_LATER("HTTP 304", 5, 26, "@1,0,0,")}},
};
#define KINDS COUNT(kinds)

static const struct end *expected(const struct kind *kind, enum row row)
{
    return kind->differs[row] ? &kind->unlike[row] : &ends[row].usual;
}

/* ---- The worker in C: this program, started again */

static struct weir_worker *worker;

static void on_stop(int number)
{
    (void)number;
    weir_worker_stop(worker);
}

/* Those that end at once; -1: another one. */
static int play(struct weir_job *job)
{
    const char *type = weir_job_type(job);

    if (strcmp(type, "done") == 0)
        return WEIR_DONE;
    if (strcmp(type, "retry") == 0)
        return weir_job_retry(job, -1, "no luck");
    if (strcmp(type, "retry_after") == 0)
        return weir_job_retry(job, 1000, "no luck");
    if (strcmp(type, "dead") == 0)
        return weir_job_dead(job, "no such customer");
    if (strcmp(type, "throttled") == 0)
        return weir_job_throttled(job, -1);
    if (strcmp(type, "throttled_after") == 0)
        return weir_job_throttled(job, 600);
    if (strcmp(type, "throttled_long") == 0)
        return weir_job_throttled(job, 99999999999);
    if (strcmp(type, "throttled_wrong") == 0)
        return weir_job_throttled(job, NAN);
    if (strcmp(type, "retry_wrong") == 0)
        return weir_job_retry(job, NAN, NULL);
    if (strcmp(type, "retry_long") == 0)
        return weir_job_retry(job, 1795000000, "no luck");
    if (strcmp(type, "odd") == 0)
        return 42;
    if (strcmp(type, "crash") == 0)
        kill(getpid(), SIGKILL);
    return -1;
}

static void note_begin(struct weir_job *job)
{
    char name[160];

    snprintf(name, sizeof name, "%s.begun", weir_job_type(job));
    write_text(".", name, "");
}

static int function(struct weir_job *job, void *arg)
{
    int result;

    (void)arg;
    note_begin(job);
    result = play(job);
    while (result < 0 && (strcmp(weir_job_type(job), "over_time") == 0 || !weir_job_is_cancelled(job)))
        clock_sleep_until(clock_mono_us() + 5 * MS);
    if (strcmp(weir_job_type(job), "says_done") == 0)
        return WEIR_DONE;
    return result < 0 ? weir_job_retry(job, -1, "sent SIGTERM") : result;
}

struct wait {
    ev_timer timer;
    struct weir_job *job;
    int ticks_left;
};

/* The end of one that the worker has given up comes late, and changes nothing. */
static void on_tick(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct wait *wait = timer->data;

    (void)events;
    if (!weir_job_is_cancelled(wait->job) || wait->ticks_left-- > 0)
        return;
    ev_timer_stop(loop, timer);
    weir_log(wait->job, "sent SIGTERM");
    weir_job_end(wait->job, weir_job_dead(wait->job, "too late"));
    free(wait);
}

static void async(struct weir_job *job, void *arg)
{
    int result = play(job);
    struct wait *wait;

    (void)arg;
    if (result >= 0) {
        weir_job_end(job, result);
        return;
    }
    note_begin(job);
    wait = calloc(1, sizeof *wait);
    wait->job = job;
    wait->ticks_left = strcmp(weir_job_type(job), "over_time") == 0 ? 30 : 0;
    wait->timer.data = wait;
    ev_timer_init(&wait->timer, on_tick, 0.01, 0.01);
    wait->timer.data = wait;
    ev_timer_start(weir_worker_loop(worker), &wait->timer);
}

static int worker_main(char **argv) /* "worker" KIND URL NAMESPACE */
{
    bool on_loop = strcmp(argv[2], "async") == 0;
    int rc = 0;

    worker = weir_worker_new(&(struct weir_worker_options){
        .redis_url = argv[3], .ns = argv[4], .executors = ROWS, .lease_s = 3, .kill_after_s = 0.5});
    signal(SIGTERM, on_stop);
    for (int row = 0; rc == 0 && row < ROWS; row++)
        rc = on_loop ? weir_worker_handle_async(worker, ends[row].name, async, NULL)
                     : weir_worker_handle(worker, ends[row].name, function, NULL);
    if (rc == 0)
        rc = weir_worker_run(worker);
    if (rc != 0)
        fprintf(stderr, "%s\n", weir_worker_message(worker));
    signal(SIGTERM, SIG_IGN);
    weir_worker_free(worker);
    return -rc;
}

/* ---- The stage */

/* weir worker with this handler for each type: "--exec", "--pipe", "--http". */
static pid_t start_weir(struct stage *s, const char *flag, const char *handler)
{
    char pairs[ROWS][200];
    const char *words[8 + 2 * ROWS + 1] = {built("weir"), "worker", "--redis", s->server.url,
                                           "--namespace", s->ns,    "-c",      "16"};
    int count = 8;

    for (int row = 0; row < ROWS; row++) {
        snprintf(pairs[row], sizeof pairs[row], "%s=%s", ends[row].name, handler);
        words[count++] = flag;
        words[count++] = pairs[row];
    }
    words[count] = NULL;
    return stage_keeps(s, program_start(s->server.folder, "worker", words));
}

/* The server ends with this program. */
static pid_t start_http(struct stage *s)
{
    char port[16];

    program_start(s->server.folder, "server", (const char *[]){sourced("handlers/ends_http.py"), NULL});
    await_text(s->server.folder, "server.out", "\n");
    assert_true(read_text(s->server.folder, "server.out", port, sizeof port));
    return start_weir(s, "--http", textf("http://127.0.0.1:%d/", atoi(port)));
}

static pid_t start_worker(struct stage *s, const struct kind *kind)
{
    const char *const words[] = {"/proc/self/exe", "worker", kind->name, s->server.url, s->ns, NULL};

    if (strcmp(kind->name, "http") == 0)
        return start_http(s);
    if (strcmp(kind->name, "exec") == 0)
        return start_weir(s, "--exec", sourced("handlers/ends_exec.sh"));
    if (strcmp(kind->name, "pipe") == 0)
        return start_weir(s, "--pipe", sourced("handlers/ends_pipe.py"));
    return stage_keeps(s, program_start(s->server.folder, "worker", words));
}

static void push(struct stage *s, enum row row)
{
    stage_push_text(
        s, textf("{\"id\":\"%s\",\"type\":\"%s\"%s}", ends[row].name, ends[row].name, ends[row].members));
}

/* The entry of this row in a text of "header\nentry\nscore\n...", its end cut off; *score is what follows. */
static char *entry_of(char *text, enum row row, double *score)
{
    char *at, *begin, *end;

    if (!(at = strstr(text, textf("{\"id\":\"%s\"", ends[row].name))))
        return NULL;
    for (begin = at; begin > text && begin[-1] != '\n';)
        begin--;
    end = strchr(at, '\n');
    *score = end ? atof(end + 1) : 0;
    *at = '\0';
    return begin;
}

static int64_t begun_us; /* when the test began, by the wall clock */

/* Between these times the job of this entry ended: a failure's is kept. */
static void time_of_end(const char *head, double *first_us, double *last_us)
{
    const char *failed = strstr(head, ",e");

    *first_us = failed ? atof(failed + 2) : (double)begun_us;
    *last_us = failed ? *first_us : (double)clock_wall_us();
}

static bool is_later(struct stage *s, enum row row, const struct end *end)
{
    char *text = server_ask(&s->server, "ZRANGE", stage_key(s, "later"), "0", "-1", "WITHSCORES", NULL);
    double due_us = 0, first_us, last_us;
    char *head = entry_of(text, row, &due_us);
    bool found = head != NULL;

    if (found) {
        time_of_end(head, &first_us, &last_us);
        if (strncmp(head, end->counts, strlen(end->counts)) != 0 || due_us > last_us + 1e6 * end->most_s ||
            due_us < first_us + 1e6 * end->least_s || (end->reason && !strstr(head, end->reason)))
            fail_msg("%s %s: due %.1f s after its end or later, entry %s", s->ns, ends[row].name,
                     (due_us - last_us) / 1e6, head);
    }
    free(text);
    return found;
}

static bool is_dead(struct stage *s, enum row row, const struct end *end)
{
    char *text = stage_dead(s), *at;
    bool found;

    at = strstr(text, textf("default/%s/ ", ends[row].name));
    found = at != NULL;
    if (found && !strstr(at, end->reason))
        fail_msg("%s %s: %s", s->ns, ends[row].name, at);
    free(text);
    return found;
}

static bool is_in_lane(struct stage *s, enum row row, const struct end *end)
{
    char *head =
        server_ask(&s->server, "LINDEX", stage_key(s, "lane:default!/%s/", ends[row].name), "0", NULL);
    bool found = strncmp(head, end->counts, strlen(end->counts)) == 0;

    free(head);
    return found;
}

static bool has_ended(struct stage *s, enum row row, const struct end *end)
{
    switch (end->state) {
    case DONE:
        return stage_stat(s, ends[row].name, "done") == 1;
    case CANCELLED:
        return stage_stat(s, ends[row].name, "cancelled") == 1;
    case LATER:
        return is_later(s, row, end);
    case DEAD:
        return is_dead(s, row, end);
    case LANE:
        return is_in_lane(s, row, end);
    case NOT_HERE:
        break;
    }
    return true;
}

static bool has_begun(struct stage *s, enum row row)
{
    char name[64], text[8];

    snprintf(name, sizeof name, "%s.begun", ends[row].name);
    return read_text(s->server.folder, name, text, sizeof text);
}

/* ---- The tests */

struct branch {
    struct stage stage;
    const struct kind *kind;
    pid_t worker;
    bool is_cancelled, seen[ROWS]; /* its ends */
};

static void open_branch(struct stage *root, struct branch *b, const struct kind *kind)
{
    *b = (struct branch){.kind = kind};
    stage_branch(root, kind->name, &b->stage);
    b->worker = start_worker(&b->stage, kind);
}

static void push_all(struct branch *b)
{
    for (enum row row = 0; row < ROWS; row++)
        if (expected(b->kind, row)->exit == 0 && expected(b->kind, row)->state != NOT_HERE)
            push(&b->stage, row);
}

static bool have_all_ended(struct branch *b)
{
    bool all = true;

    if (!b->is_cancelled && has_begun(&b->stage, CANCEL)) {
        assert_int_equal(weir_cancel(b->stage.client, ends[CANCEL].name), 0);
        b->is_cancelled = true;
    }
    for (enum row row = 0; row < ROWS; row++) {
        const struct end *end = expected(b->kind, row);

        if (end->exit == 0 && !b->seen[row])
            all &= b->seen[row] = has_ended(&b->stage, row, end);
    }
    return all;
}

/* A retry is `later` for 15 s at least: all ends are looked for in turns, and none is waited for before another. */
static bool have_kinds_ended(struct branch branches[KINDS])
{
    bool all = true;

    for (size_t i = 0; i < KINDS; i++)
        all &= have_all_ended(&branches[i]);
    return all;
}

static void await_logs(struct stage *s, const struct kind *kind)
{
    await_log(s->server.folder, kind->writes
                                    ? "throttled_wrong throttled_wrong: wrong answer: "
                                    : "throttled_wrong throttled_wrong: a pause of nan s: is not a time");
    await_log(s->server.folder,
              "throttled_long throttled_long: a pause of 99999999999 s: 86400 s is the most (--pause-most)");
    if (expected(kind, RETRY_LONG)->state == LATER)
        await_log(s->server.folder, "retry_long retry_long: a retry after 1795000000 s: must be");
    if (strcmp(kind->name, "async") == 0) /* weir_log, of both jobs that are told */
        for (enum row row = OVER_TIME; row <= CANCEL; row++)
            await_log(s->server.folder, textf("%s %s: sent SIGTERM", ends[row].name, ends[row].name));
}

/* All kinds side by side. */
TEST(all_ends_of_all_kinds)
{
    struct stage root;
    struct branch branches[KINDS];

    begun_us = clock_wall_us();
    stage_open(&root, false);
    for (size_t i = 0; i < KINDS; i++)
        open_branch(&root, &branches[i], &kinds[i]);
    for (size_t i = 0; i < KINDS; i++)
        push_all(&branches[i]);
    await(have_kinds_ended(branches));
    for (size_t i = 0; i < KINDS; i++) {
        await_logs(&branches[i].stage, branches[i].kind);
        assert_int_equal(stage_end(branches[i].worker), 0);
        stage_close(&branches[i].stage);
    }
    stage_close(&root);
}

/* One end that takes the worker with it. */
struct fatal {
    struct stage stage;
    const struct end *end;
    enum row row;
    pid_t worker, heir;
};

static void begin_fatal(struct stage *root, struct fatal *f, const struct kind *kind, enum row row)
{
    stage_branch(root, textf("%s-%s", kind->name, ends[row].name), &f->stage);
    f->row = row;
    f->end = expected(kind, row);
    f->worker = start_worker(&f->stage, kind);
    push(&f->stage, row);
}

static void end_fatal(struct fatal *f)
{
    assert_int_equal(program_end(f->worker), f->end->exit);
    if (f->end->state == LANE) {
        f->heir = stage_weir(&f->stage, "heir", "--exec", "other=true", "--lease", "1s", NULL);
        await(has_ended(&f->stage, f->row, f->end));
        assert_int_equal(stage_end(f->heir), 0);
    } else {
        assert_true(has_ended(&f->stage, f->row, f->end));
    }
    stage_close(&f->stage);
}

TEST(ends_that_take_the_worker_along)
{
    struct fatal fatal[KINDS * ROWS];
    struct stage root;
    size_t count = 0;

    begun_us = clock_wall_us();
    stage_open(&root, false);
    for (size_t i = 0; i < KINDS; i++)
        for (enum row row = 0; row < ROWS; row++)
            if (expected(&kinds[i], row)->exit != 0)
                begin_fatal(&root, &fatal[count++], &kinds[i], row);
    for (size_t i = 0; i < count; i++)
        end_fatal(&fatal[i]);
    stage_close(&root);
}

/* ---- Patterns */

static void free_nothing(void *state)
{
    (void)state;
}

/* Whoever enqueues may name as many types as he likes, and the loop of a worker that takes them all must get to its heartbeats. Looking through those
 * that it knows for each job would take more than a minute here. */
TEST(very_many_types_of_a_pattern_are_found_at_once)
{
    enum { TYPES = 100000 };
    static const struct way way = {.name = "none", .free = free_nothing};
    struct handlers *handlers = calloc(1, sizeof *handlers);
    clock_t begin = clock();
    struct error e;

    assert_int_equal(handlers_add(handlers, "*", &way, NULL, &e), 0);
    for (int i = 0; i < 2 * TYPES; i++)
        assert_int_equal(handlers_take(handlers, span_str(textf("t%d", i % TYPES)))->number, i % TYPES);
    assert_int_equal(handlers->count, TYPES);
    assert_true(clock() - begin < 10 * CLOCKS_PER_SEC);
    assert_null(handlers_take(handlers, span_str("a/b")));
    handlers_free(handlers);
}

/* A text that only begins with the name of a handler's type, as C ends texts, is not that type. */
TEST(a_type_with_a_nul_is_nobodys)
{
    static const struct way way = {.name = "none", .free = free_nothing};
    static const struct span nul = {"mail\0x", 6};
    struct handlers *handlers = calloc(1, sizeof *handlers);
    struct error e;

    assert_int_equal(handlers_add(handlers, "mail", &way, NULL, &e), 0);
    assert_non_null(handlers_find(handlers, span_str("mail")));
    assert_null(handlers_find(handlers, nul));
    assert_null(handlers_take(handlers, nul));
    handlers_free(handlers);
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "worker") == 0)
        return worker_main(argv);
    return tests_run(NULL, NULL);
}

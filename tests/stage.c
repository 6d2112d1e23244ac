/* What an actor does with a job, by its args:
 *   {"sleep":S}              takes so long
 *   {"wait":"FILE"}          waits until the stage has that file
 *   {"fail":N,"after":S}     fails at the first N attempts; again after S (absent: the usual)
 *   {"dead":"WHY"}           dead at once
 *   {"spent":N}              reports that cost
 *   {"throttled":S}          is throttled by S until the stage has the file <id>.open
 *   {"value":N}              returns that number
 *   {"exit":N}               ends its worker by exit()
 *   {"kill":"before"}        kills its worker before its effect, or "after" it, where the actor was started
 * fragile Options of an actor are those of weir.h by their names (executors, lease, grace, queues, trace,
 * drain, drain_max, unknown_dead, dead_most, dead_age, url), and types=A,B (default "mark"), fragile=1. */
#include "tests/stage.h"

#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "queue/job/stamp.h"
#include "tests/test.h"

#define ACTOR_WORDS 24
#define WORKERS_MOST 200
#define TRIALS_MOST 8

/* ---- The actor */

static struct weir_worker *actor;
static bool fragile;

static void on_stop(int number)
{
    (void)number;
    weir_worker_stop(actor);
}

static void on_quiet(int number)
{
    (void)number;
    weir_worker_quiet(actor);
}

static void note(struct weir_job *job, const char *event)
{
    int fd = open("history", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    char line[256];
    int len = snprintf(line, sizeof line, "%s %s %d %d %lld\n", event, weir_job_id(job),
                       weir_job_attempt(job), (int)getpid(), (long long)clock_mono_us());

    if (fd < 0 || write(fd, line, (size_t)len) != len)
        abort();
    close(fd);
}

static void await_file(const char *name)
{
    while (access(name, F_OK) != 0)
        clock_sleep_until(clock_mono_us() + 1000);
}

static double number(json_t *args, const char *name, double otherwise)
{
    json_t *value = json_object_get(args, name);

    return value ? json_number_value(value) : otherwise;
}

static bool kills(json_t *args, const char *when)
{
    const char *wanted = json_string_value(json_object_get(args, "kill"));

    return fragile && wanted && strcmp(wanted, when) == 0;
}

static int play(struct weir_job *job, json_t *args)
{
    const char *file = json_string_value(json_object_get(args, "wait"));
    const char *why = json_string_value(json_object_get(args, "dead"));
    char open_file[160];

    snprintf(open_file, sizeof open_file, "%s.open", weir_job_id(job));
    clock_sleep_until(clock_mono_us() + (int64_t)(number(args, "sleep", 0) * 1e6));
    if (file)
        await_file(file);
    if (json_object_get(args, "exit"))
        exit((int)number(args, "exit", 0));
    if (json_object_get(args, "spent"))
        weir_job_spent(job, (int64_t)number(args, "spent", 0));
    if (json_object_get(args, "result"))
        weir_job_result(job, json_string_value(json_object_get(args, "result")));
    if (weir_job_attempt(job) <= number(args, "fail", 0))
        return weir_job_retry(job, number(args, "after", -1), "attempt %d failed", weir_job_attempt(job));
    if (why)
        return weir_job_dead(job, "%s", why);
    if (json_object_get(args, "throttled") && access(open_file, F_OK) != 0)
        return weir_job_throttled(job, number(args, "throttled", -1));
    if (json_object_get(args, "next") &&
        weir_enqueue(weir_job_client(job),
                     &(struct weir_job_spec){.type = weir_job_type(job),
                                             .id = json_string_value(json_object_get(args, "next"))},
                     NULL) != 0)
        return weir_job_dead(job, "%s", weir_message(weir_job_client(job)));
    if (kills(args, "before"))
        kill(getpid(), SIGKILL);
    note(job, "effect");
    if (kills(args, "after"))
        kill(getpid(), SIGKILL);
    return (int)number(args, "value", WEIR_DONE);
}

static int act(struct weir_job *job, void *arg)
{
    json_t *args = json_loads(weir_job_args(job), JSON_DECODE_ANY, NULL);
    int outcome;

    (void)arg;
    note(job, "begin");
    outcome = play(job, args);
    json_decref(args);
    return outcome;
}

/* The value of a word "name=value", or NULL. */
static const char *option(char **words, const char *name)
{
    size_t len = strlen(name);

    for (; *words; words++)
        if (strncmp(*words, name, len) == 0 && (*words)[len] == '=')
            return *words + len + 1;
    return NULL;
}

static double option_number(char **words, const char *name)
{
    const char *value = option(words, name);

    return value ? atof(value) : 0;
}

static int add_types(char **words)
{
    const char *given = option(words, "types");
    char *types = strdup(given ? given : "mark"), *rest = types, *type;
    int rc = 0;

    while (rc == 0 && (type = strsep(&rest, ",")))
        rc = weir_worker_handle(actor, type, act, NULL);
    free(types);
    return rc;
}

static void block_term(bool block, sigset_t *before)
{
    sigset_t term;

    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigprocmask(block ? SIG_BLOCK : SIG_UNBLOCK, &term, before);
}

int stage_actor_main(int argc, char **argv)
{
    int rc;

    if (argc < 2 || strcmp(argv[1], "actor") != 0)
        return -1;
    fragile = option(argv, "fragile") != NULL;
    actor = weir_worker_new(&(struct weir_worker_options){
        .redis_url = option(argv, "url"),
        .ns = option(argv, "ns"),
        .queues = option(argv, "queues"),
        .executors = (int)option_number(argv, "executors"),
        .lease_s = option_number(argv, "lease"),
        .grace_s = option_number(argv, "grace"),
        .trace_file = option(argv, "trace"),
        .drain = option(argv, "drain") != NULL,
        .drain_max_s = option_number(argv, "drain_max"),
        .unknown_dead = option(argv, "unknown_dead") != NULL,
        .dead_most = (int64_t)option_number(argv, "dead_most"),
        .dead_age_s = option_number(argv, "dead_age"),
    });
    if (!actor)
        return 70;
    signal(SIGTERM, on_stop);
    signal(SIGINT, on_stop);
    signal(SIGTSTP, on_quiet);
    signal(SIGPIPE, SIG_IGN);
    block_term(false, NULL);
    rc = add_types(argv);
    if (rc == 0)
        rc = weir_worker_run(actor);
    if (rc != 0)
        fprintf(stderr, "%s\n", weir_worker_message(actor));
    signal(SIGTERM, SIG_IGN);
    weir_worker_free(actor);
    return -rc;
}

/* ---- The stage */

static void connect_client(struct stage *s)
{
    s->client = weir_new(s->server.url, s->ns);
    assert_non_null(s->client);
}

void stage_open(struct stage *s, bool aof)
{
    stage_open_with(s, aof, (const char *const[]){NULL});
}

void stage_open_with(struct stage *s, bool aof, const char *const *options)
{
    *s = (struct stage){.ns = "weir"};
    server_start_with(&s->server, aof, options);
    connect_client(s);
}

void stage_open_shifted(struct stage *s)
{
    *s = (struct stage){.ns = "weir"};
    server_start_shifted(&s->server, false, (const char *const[]){NULL});
    connect_client(s);
}

void stage_branch(struct stage *root, const char *ns, struct stage *branch)
{
    *branch = (struct stage){.server = root->server, .root = root};
    snprintf(branch->ns, sizeof branch->ns, "%s", ns);
    snprintf(branch->server.folder, sizeof branch->server.folder, "%.38s/%s", root->server.folder,
             branch->ns);
    assert_int_equal(mkdir(branch->server.folder, 0777), 0);
    connect_client(branch);
}

/* ---- Workers */

static struct {
    pid_t pid;
    char folder[64];
} workers[WORKERS_MOST];
static int worker_count;

pid_t stage_keeps(struct stage *s, pid_t pid)
{
    assert_in_range(worker_count, 0, WORKERS_MOST - 1);
    workers[worker_count].pid = pid;
    snprintf(workers[worker_count++].folder, sizeof workers[0].folder, "%s", s->server.folder);
    return pid;
}

/* True of a child, running or not, that nobody has waited for. */
static bool is_there(pid_t pid)
{
    siginfo_t info;

    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/* Returns how many ended neither well nor by the test's own kill -9. */
static int end_workers(const char *folder)
{
    int wrong = 0, left = 0;

    for (int i = 0; i < worker_count; i++)
        if (strcmp(workers[i].folder, folder) == 0 && is_there(workers[i].pid)) {
            kill(workers[i].pid,
                 SIGCONT); /* not behind TERM: it would take the stop away that LeakSanitizer waits for */
            kill(workers[i].pid, SIGTERM);
        }
    for (int i = 0; i < worker_count; i++)
        if (strcmp(workers[i].folder, folder) != 0) {
            workers[left++] = workers[i];
        } else if (is_there(workers[i].pid)) {
            int code = program_end(workers[i].pid);

            wrong += code != 0 && code != 1000 + SIGKILL;
        }
    worker_count = left;
    return wrong;
}

void stage_end_workers(struct stage *s)
{
    assert_int_equal(end_workers(s->server.folder), 0);
}

void stage_close(struct stage *s)
{
    int wrong = end_workers(s->server.folder);

    weir_free(s->client);
    if (!s->root)
        server_stop(&s->server);
    assert_int_equal(wrong, 0);
}

static int set_up(void **state, bool durable)
{
    struct stage *s = calloc(1, sizeof *s);

    assert_non_null(s);
    stage_open(s, durable);
    *state = s;
    return 0;
}

int stage_setup(void **state)
{
    return set_up(state, false);
}

int stage_setup_durable(void **state)
{
    return set_up(state, true);
}

int stage_teardown(void **state)
{
    stage_close(*state);
    free(*state);
    return 0;
}

/* ---- Trials */

static char late[256];

void stage_late(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(late, sizeof late, fmt, args);
    va_end(args);
}

void stage_trials(void **state, void (*trial)(void **state))
{
    struct stage *s = *state;
    bool aof = s && s->server.aof;

    for (int left = TRIALS_MOST; left > 0; left--) {
        *late = '\0';
        trial(state);
        if (!*late)
            return;
        print_message("late: %s\n", late);
        if (s) {
            stage_close(s);
            stage_open(s, aof);
        }
    }
    fail_msg("late in each of %d trials: %s", TRIALS_MOST, late);
}

pid_t stage_actor(struct stage *s, const char *name, ...)
{
    char url[200], ns[40];
    const char *words[ACTOR_WORDS] = {"/proc/self/exe", "actor"};
    const char *word;
    bool has_url = false;
    int count = 2;
    sigset_t before;
    va_list rest;
    pid_t pid;

    va_start(rest, name);
    while (count < ACTOR_WORDS - 3 && (word = va_arg(rest, const char *))) {
        has_url = has_url || strncmp(word, "url=", 4) == 0;
        if (strncmp(word, "program=", 8) == 0)
            words[0] = word + 8;
        else
            words[count++] = word;
    }
    va_end(rest);
    snprintf(url, sizeof url, "url=%s", s->server.url);
    snprintf(ns, sizeof ns, "ns=%s", s->ns);
    if (!has_url)
        words[count++] = url;
    words[count++] = ns;
    block_term(true, &before); /* the actor lets it in when it can take it */
    pid = stage_keeps(s, program_start(s->server.folder, name, words));
    sigprocmask(SIG_SETMASK, &before, NULL);
    return pid;
}

pid_t stage_weir(struct stage *s, const char *name, ...)
{
    const char *words[ACTOR_WORDS] = {built("weir"), "worker",      "--redis",
                                      s->server.url, "--namespace", s->ns};
    int count = 6;
    va_list rest;

    va_start(rest, name);
    while (count < ACTOR_WORDS - 1 && (words[count] = va_arg(rest, const char *)))
        count++;
    va_end(rest);
    return stage_keeps(s, program_start(s->server.folder, name, words));
}

void stage_must(struct stage *s, const char *line)
{
    struct outcome o;

    if (program_weir(&o, s->server.folder, s->server.url, s->ns, line) != 0)
        fail_msg("weir %s: %s", line, o.err);
}

void stage_await_workers(struct stage *s, int n)
{
    await(stage_number(s, "ZCARD", stage_key(s, "workers")) == n);
}

static int blocked_clients(struct stage *s)
{
    char *info = server_ask(&s->server, "INFO", "clients", NULL);
    const char *at = strstr(info, "\nblocked_clients:");
    int n = at ? atoi(strchr(at, ':') + 1) : 0;

    free(info);
    return n;
}

void stage_await_heartbeats(struct stage *s, int n)
{
    char *before = NULL, *now;

    while (n >= 0) {
        now = server_ask(&s->server, "ZRANGE", stage_key(s, "workers"), "0", "0", "WITHSCORES", NULL);
        n -= !before || strcmp(before, now) != 0;
        free(before);
        before = now;
        clock_sleep_until(clock_mono_us() + 10 * MS);
    }
    free(before);
}

void stage_await_blocked(struct stage *s, int n)
{
    await(blocked_clients(s) >= n);
}

int stage_end(pid_t pid)
{
    kill(pid, SIGTERM);
    return program_end(pid);
}

/* ---- Jobs */

void stage_enqueue(struct stage *s, const char *type, const char *args, int first, int n)
{
    struct weir_bulk *bulk;

    assert_int_equal(weir_bulk_open(s->client, NULL, &bulk), 0);
    for (int i = first; i < first + n; i++) {
        char id[24];

        snprintf(id, sizeof id, "j%d", i);
        if (weir_bulk_add(bulk, &(struct weir_job_spec){.type = type, .args = args, .id = id}) != 0)
            fail_msg("%s", weir_message(s->client));
    }
    if (weir_bulk_close(bulk, NULL) != 0)
        fail_msg("%s", weir_message(s->client));
}

void stage_push_text(struct stage *s, const char *text)
{
    assert_true(stage_number(s, "RPUSH", stage_key(s, "queue:default"), text) > 0);
}

void stage_push_stamped(struct stage *s, int64_t enqueued_us, const char *text)
{
    char head[STAMP_HEAD_LEN + 1], entry[512];

    stamp_head(enqueued_us, head);
    snprintf(entry, sizeof entry, "%s%s", head, text);
    stage_push_text(s, entry);
}

void stage_push(struct stage *s, const char *type, const char *args, int first, int n)
{
    char text[512];

    for (int i = first; i < first + n; i++) {
        snprintf(text, sizeof text, "{\"id\":\"j%d\",\"type\":\"%s\",\"args\":%s}", i, type,
                 args ? args : "null");
        stage_push_text(s, text);
    }
}

void stage_rate(struct stage *s, const char *name, const char *rule)
{
    if (weir_rate_set(s->client, name, rule) != 0)
        fail_msg("%s", weir_message(s->client));
}

/* ---- Looking into Redis */

const char *stage_key(struct stage *s, const char *fmt, ...)
{
    static char keys[4][256];
    static unsigned next;
    char *key = keys[next++ % 4];
    int len = snprintf(key, sizeof keys[0], "%s:{0}:", s->ns);
    va_list args;

    va_start(args, fmt);
    vsnprintf(key + len, sizeof keys[0] - (size_t)len, fmt, args);
    va_end(args);
    return key;
}

long long stage_stat(struct stage *s, const char *type, const char *counter)
{
    char *text = server_ask(&s->server, "HGET", stage_key(s, "stats:%s", type), counter, NULL);
    long long n = atoll(text);

    free(text);
    return n;
}

char *stage_dead(struct stage *s)
{
    return server_ask(&s->server, "ZRANGE", stage_key(s, "dead"), "0", "-1", NULL);
}

/* All jobs that are anywhere in Redis but among the dead: how many, and in the next lines what. */
static char *present_jobs(struct stage *s)
{
    static const char script[] = "local all = {}\n"
                                 "for _, key in ipairs(redis.call('KEYS', ARGV[1])) do\n"
                                 "    local list = {}\n"
                                 "    if key:find(':queue:') or key:find(':lane:') then\n"
                                 "        list = redis.call('LRANGE', key, 0, -1)\n"
                                 "    elseif key:find(':later$') then\n"
                                 "        list = redis.call('ZRANGE', key, 0, -1)\n"
                                 "    elseif key:find(':active:') then\n"
                                 "        local fields = redis.call('HGETALL', key)\n"
                                 "        for i = 1, #fields, 2 do\n"
                                 "            if fields[i] ~= '@' then list[#list + 1] = fields[i + 1] end\n"
                                 "        end\n"
                                 "    end\n"
                                 "    for _, text in ipairs(list) do all[#all + 1] = text end\n"
                                 "end\n"
                                 "return {#all, table.concat(all, '\\n')}";

    return server_ask(&s->server, "EVAL", script, "0", stage_key(s, "*"), NULL);
}

/* How many those are. */
static long long count_left(struct stage *s)
{
    static const char script[] =
        "local left = 0\n"
        "for _, key in ipairs(redis.call('KEYS', ARGV[1])) do\n"
        "    if key:find(':queue:') or key:find(':lane:') then\n"
        "        left = left + redis.call('LLEN', key)\n"
        "    elseif key:find(':later$') then\n"
        "        left = left + redis.call('ZCARD', key)\n"
        "    elseif key:find(':active:') then\n"
        "        left = left + redis.call('HLEN', key) - redis.call('HEXISTS', key, '@')\n"
        "    end\n"
        "end\n"
        "return left";

    return stage_number(s, "EVAL", script, "0", stage_key(s, "*"));
}

void stage_run(struct stage *s, int number, const char *args, int max_attempts, double timeout_s)
{
    char id[16];
    struct weir_job_spec job = {
        .type = "run", .id = id, .args = args, .max_attempts = max_attempts, .timeout_s = timeout_s};

    snprintf(id, sizeof id, "j%d", number);
    if (weir_enqueue(s->client, &job, NULL) != 0)
        fail_msg("%s", weir_message(s->client));
}

const char *stage_result(struct stage *s, int number)
{
    static char result[200];
    char *kept = server_ask(&s->server, "GET", stage_key(s, "finished:j%d", number), NULL);

    result[0] = '\0';
    sscanf(kept, "done %*s %*s %*s %*s%*1[ ]%199[^\n]", result);
    free(kept);
    return *result ? result : "-";
}

int stage_lines(struct stage *s, const char *name)
{
    char text[16384];
    int count = 0;

    if (!read_text(s->server.folder, name, text, sizeof text))
        return 0;
    for (const char *at = text; (at = strchr(at, '\n')); at++)
        count++;
    return count;
}

const char *stage_death(struct stage *s, int number)
{
    static char reason[2048];
    char *dead = stage_dead(s), id[24], *entry, *header;

    reason[0] = '\0';
    snprintf(id, sizeof id, "{\"id\":\"j%d\"", number);
    if ((entry = strstr(dead, id))) {
        while (entry > dead && *entry != '\n')
            entry--;
        *entry = '\0';
        header = strrchr(dead, '\n') ? strrchr(dead, '\n') + 1 : dead;
        snprintf(reason, sizeof reason, "%s", header);
    }
    free(dead);
    return reason;
}

void stage_died(struct stage *s, int number, const char *why)
{
    if (!strstr(stage_death(s, number), why))
        fail_msg("job %d died for '%s', not for '%s'", number, stage_death(s, number), why);
}

int stage_says(struct stage *s, const char *name, const char *what)
{
    char log[16384], file[64];
    int n = 0;

    snprintf(file, sizeof file, "%s.err", name);
    assert_true(read_text(s->server.folder, file, log, sizeof log));
    for (const char *at = log; (at = strstr(at, what)); at++)
        n++;
    return n;
}

long long stage_peeks(struct stage *s)
{
    return server_calls(&s->server, "blmove");
}

/* ---- The history */

static bool read_event(const char *line, struct event *event)
{
    long long at_us;
    int pid, rest;

    /* Of "j7.then" the number is 7. */
    if (sscanf(line, "%7s j%d%n", event->what, &event->job, &rest) != 2 ||
        sscanf(line + rest + strcspn(line + rest, " "), "%d %d %lld", &event->attempt, &pid, &at_us) != 3)
        return false;
    event->pid = pid;
    event->at_us = at_us;
    return true;
}

struct history history_read(struct stage *s)
{
    struct history h = {NULL, 0};
    char path[160], line[256];
    FILE *f;

    snprintf(path, sizeof path, "%s/history", s->server.folder);
    if (!(f = fopen(path, "r")))
        return h;
    while (fgets(line, sizeof line, f)) {
        if (!strchr(line, '\n'))
            break; /* the last one, seen in the middle of its write */
        if (h.count % 1024 == 0)
            h.events = realloc(h.events, (size_t)(h.count + 1024) * sizeof *h.events);
        assert_non_null(h.events);
        if (!read_event(line, &h.events[h.count++]))
            fail_msg("the history says: %s", line);
    }
    fclose(f);
    return h;
}

void history_free(struct history *h)
{
    free(h->events);
    *h = (struct history){NULL, 0};
}

int history_count(struct stage *s, const char *what, int job)
{
    struct history h = history_read(s);
    int n = 0;

    for (int i = 0; i < h.count; i++)
        n += strcmp(h.events[i].what, what) == 0 && (job < 0 || h.events[i].job == job);
    history_free(&h);
    return n;
}

const struct event *history_nth(const struct history *h, const char *what, int job, int n)
{
    for (int i = 0; i < h->count; i++)
        if (strcmp(h->events[i].what, what) == 0 && h->events[i].job == job && n-- == 0)
            return &h->events[i];
    fail_msg("job %d has too few events %s", job, what);
    return NULL;
}

/* ---- The judge */

/* Sets flag in marks for each "id":"jN" in text. */
static void mark_ids(const char *text, unsigned char *marks, int accepted, unsigned char flag)
{
    static const char before[] = "\"id\":\"j";

    for (const char *at = strstr(text, before); at; at = strstr(at + 1, before)) {
        int job = atoi(at + sizeof before - 1);

        if (job >= 0 && job < accepted)
            marks[job] |= flag;
    }
}

enum { IS_DONE = 1, IS_DEAD = 2, IS_PRESENT = 4 };

static void judge_history(struct stage *s, unsigned char *marks, int accepted, struct verdict *v)
{
    struct history h = history_read(s);

    for (int i = 0; i < h.count; i++) {
        const struct event *e = &h.events[i];

        if (strcmp(e->what, "effect") != 0)
            continue;
        if (e->job < 0 || e->job >= accepted) {
            v->unexpected++;
            continue;
        }
        v->twice += marks[e->job] == IS_DONE;
        marks[e->job] = IS_DONE;
    }
    history_free(&h);
}

struct verdict stage_judge(struct stage *s, int accepted)
{
    unsigned char *marks = calloc((size_t)accepted + 1, 1);
    /* Redis first: what is present there now may be done when the history is read, not the other way. */
    char *dead = stage_dead(s), *present = present_jobs(s);
    struct verdict v = {.left = atoi(present)};

    assert_non_null(marks);
    judge_history(s, marks, accepted, &v);
    mark_ids(dead, marks, accepted, IS_DEAD);
    mark_ids(present, marks, accepted, IS_PRESENT);
    for (int i = 0; i < accepted; i++) {
        v.done += (marks[i] & IS_DONE) != 0;
        v.dead += marks[i] == IS_DEAD;
        v.present += marks[i] == IS_PRESENT;
        v.lost += marks[i] == 0;
    }
    free(marks);
    free(dead);
    free(present);
    return v;
}

/* The judge takes long where there are many jobs: not while some are left. */
static bool all_ended(struct stage *s, int accepted, struct verdict *v, long long *left)
{
    *left = count_left(s);
    if (*left > 0)
        return false;
    *v = stage_judge(s, accepted);
    return v->done + v->dead == accepted && v->left == 0;
}

struct verdict stage_await_ended(struct stage *s, int accepted)
{
    int64_t end_us = clock_mono_us() + AWAIT_US;
    long long left, least = LLONG_MAX;
    struct verdict v;

    while (!all_ended(s, accepted, &v, &left)) {
        if (left < least) { /* a busy machine takes its time */
            least = left;
            end_us = clock_mono_us() + AWAIT_US;
        }
        if (clock_mono_us() > end_us) {
            v = stage_judge(s, accepted);
            fail_msg("%s: of %d jobs %d done, %d dead, %d present, %d lost; %d left in Redis", s->ns,
                     accepted, v.done, v.dead, v.present, v.lost, v.left);
        }
        clock_sleep_until(clock_mono_us() + 20000);
    }
    assert_int_equal(v.unexpected, 0);
    return v;
}

struct verdict stage_await_done(struct stage *s, int accepted)
{
    struct verdict v = stage_await_ended(s, accepted);

    if (v.dead > 0)
        fail_msg("%s: %d jobs are dead", s->ns, v.dead);
    return v;
}

void stage_log_ends(struct stage *s)
{
    stage_do(s, "CONFIG", "SET", "slowlog-log-slower-than", "0", "slowlog-max-len", "4000");
}

long long stage_most_failed(struct stage *s)
{
    static const char most_ends[] =
        "local most = 0 "
        "for _, entry in ipairs(redis.call('SLOWLOG', 'GET', '-1')) do "
        "  local words = entry[4] "
        "  if words[1] == 'FCALL' and words[2]:find('_settle$') and words[7] == 'failed' then "
        "    most = math.max(most, tonumber(words[8])) "
        "  end "
        "end "
        "return most";

    return stage_number(s, "EVAL", most_ends, "0");
}

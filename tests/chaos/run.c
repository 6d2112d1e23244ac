#include "tests/chaos/run.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "tests/chaos/asker.h"
#include "tests/chaos/run.h"
#include "tests/program.h"
#include "tests/proxy.h"
#include "tests/test.h"

#define LOOK_EVERY_US 5000
#define RESTART_US 300000
#define GRACE "1"        /* seconds; weir worker and ours */
#define ACTORS_END_S 180 /* on a machine that is busy with other things */
#define DEATHS_MOST 5    /* as often as the plan has a job die, and more */
#define STUCK_S 60       /* nothing is left to wait for that long: leases, an amnesty, the jobs themselves */

/* ---- What is written down */

int64_t run_wall_ahead(void)
{
    int64_t ahead_us = 0, best_us = INT64_MAX;

    for (int i = 0; i < 100; i++) {
        int64_t begun_us = clock_mono_us(), wall_us = clock_wall_us(), took_us = clock_mono_us() - begun_us;

        if (took_us < best_us)
            ahead_us = wall_us - begun_us;
        best_us = took_us < best_us ? took_us : best_us;
    }
    return ahead_us;
}

void *run_more(void *array, int count, size_t size)
{
    if ((count & (count - 1)) == 0)
        array = realloc(array, (count ? 2 * (size_t)count : 1) * size);
    if (!array)
        abort();
    return array;
}

struct life *run_life(struct run *run, int worker)
{
    for (int i = run->life_count - 1; i >= 0; i--)
        if (run->lives[i].worker == worker)
            return &run->lives[i];
    return NULL;
}

struct incident *run_incident(struct run *run, enum fault_kind kind, int worker)
{
    struct incident *i;

    run->incidents = run_more(run->incidents, run->incident_count, sizeof *run->incidents);
    i = &run->incidents[run->incident_count++];
    *i = (struct incident){.kind = kind,
                           .worker = worker,
                           .n = worker < 0 ? 0 : run->workers[worker].n,
                           .from_us = clock_mono_us()};
    return i;
}

/* ---- Starting */

static void set_number(const char *name, const char *fmt, long long number)
{
    char text[64];

    snprintf(text, sizeof text, fmt, number);
    setenv(name, text, 1);
}

/* For all processes of the run. */
static void set_environment(struct run *run)
{
    setenv("CHAOS_FOLDER", run->server.folder, 1);
    setenv("CHAOS_CHILD", built("tests/chaos/child"), 1);
    set_number("CHAOS_SEED", "%lld", (long long)run->plan.seed);
    set_number("CHAOS_TIME", "%lld", run->plan.time_us / 1000000);
    set_number("CHAOS_BEGUN", "%lld", run->begun_us);
    setenv("REDIS_URL", run->server.url, 1);
}

/* The types that the worker runs in that way. */
static void set_types(const char *variable, const struct worker_plan *plan, enum way way)
{
    char types[512] = "";

    for (int i = 0; i < TYPE_COUNT; i++)
        if (plan_way(plan, i) == way)
            sprintf(types + strlen(types), "%s%s", *types ? "," : "", type_plans[i].name);
    setenv(variable, types, 1);
}

static void set_worker(struct run *run, int number)
{
    const struct worker_plan *plan = &worker_plans[number];

    setenv("REDIS_URL", plan->proxied ? proxy_url(run->workers[number].proxy) : run->server.url, 1);
    set_types("CHAOS_THREADS", plan, WAY_THREADS);
    set_types("CHAOS_LOOP", plan, WAY_LOOP);
    set_types("CHAOS_EXEC", plan, WAY_EXEC);
    set_types("CHAOS_PIPE", plan, WAY_PIPE);
    set_types("CHAOS_HTTP", plan, WAY_HTTP);
    setenv("CHAOS_QUEUES", plan->queues, 1);
    set_number("CHAOS_EXECUTORS", "%lld", plan->executors);
    set_number("CHAOS_LEASE", "%lld", plan->lease_s);
    setenv("CHAOS_GRACE", GRACE, 1);
    set_number("CHAOS_TRACE", "trace%lld", number);
}

/* The words of a command line, which end with NULL. */
struct words {
    const char *words[96];
    char texts[64][160];
    int count, text_count;
};

WEIR_PRINTF(2, 3) static void add_word(struct words *w, const char *fmt, ...)
{
    va_list args;

    assert_true(w->count < 95 && w->text_count < 64);
    va_start(args, fmt);
    vsnprintf(w->texts[w->text_count], sizeof w->texts[0], fmt, args);
    va_end(args);
    w->words[w->count++] = w->texts[w->text_count++];
}

/* A flag for each type in the variable, such as --exec mail=COMMAND. */
static void add_types(struct words *w, const char *variable, const char *flag, const char *how)
{
    char types[512], *rest = types, *type;

    snprintf(types, sizeof types, "%s", getenv(variable));
    while ((type = strsep(&rest, ",")) && *type) {
        w->words[w->count++] = flag;
        add_word(w, "%s=%s", type, how);
    }
}

static void make_words(struct words *w, const struct worker_plan *plan)
{
    char command[128];

    *w = (struct words){0};
    if (plan->own) {
        w->words[w->count++] = "/proc/self/exe";
        w->words[w->count++] = "worker";
        return;
    }
    add_word(w, "%s", built("weir"));
    add_word(w, "worker");
    add_word(w, "--load=%s", built("tests/chaos/handlers.so"));
    add_word(w, "--queues=%s", plan->queues);
    add_word(w, "--executors=%d", plan->executors);
    add_word(w, "--lease=%ds", plan->lease_s);
    add_word(w, "--grace=%ss", GRACE);
    if (*getenv("CHAOS_PIPE")) /* else it is refused */
        add_word(w, "--in-flight=4");
    add_word(w, "--trace=%s", getenv("CHAOS_TRACE"));
    for (int i = 0; i < TYPE_COUNT; i++)
        add_word(w, "--backoff=%s=100ms..500ms", type_plans[i].name);
    snprintf(command, sizeof command, "%s exec", getenv("CHAOS_CHILD"));
    add_types(w, "CHAOS_EXEC", "--exec", command);
    snprintf(command, sizeof command, "%s pipe", getenv("CHAOS_CHILD"));
    add_types(w, "CHAOS_PIPE", "--pipe", command);
    add_types(w, "CHAOS_HTTP", "--http", getenv("CHAOS_URL"));
}

static void start_worker(struct run *run, int number)
{
    struct running *worker = &run->workers[number];
    struct words words;
    char who[16], name[32], url[64];

    worker->n++;
    snprintf(who, sizeof who, "%d.%d", number, worker->n);
    snprintf(name, sizeof name, "worker%s", who);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/%s", run->endpoint_port, who);
    setenv("CHAOS_WHO", who, 1);
    setenv("CHAOS_URL", url, 1);
    set_worker(run, number);
    make_words(&words, &worker_plans[number]);
    worker->pid = program_start(run->server.folder, name, words.words);
    worker->waited_us = 0;
    run->lives = run_more(run->lives, run->life_count, sizeof *run->lives);
    run->lives[run->life_count++] =
        (struct life){.worker = number, .n = worker->n, .pid = worker->pid, .begun_us = clock_mono_us()};
}

static void start_actor(struct run *run, struct running *actor, const char *role, int number)
{
    char text[16], name[48];
    const char *words[] = {"/proc/self/exe", role, text, NULL};

    setenv("REDIS_URL", actor->proxy ? proxy_url(actor->proxy) : run->server.url, 1);
    snprintf(text, sizeof text, "%d", number);
    snprintf(name, sizeof name, "%s%d.%d", role, number, ++actor->n);
    actor->pid = program_start(run->server.folder, name, words);
}

/* Its socket is this process's, so requests only wait while it is started again. */
void run_start_endpoint(struct run *run)
{
    char number[16];
    const char *words[] = {built("tests/chaos/child"), "http", number, NULL};

    snprintf(number, sizeof number, "%d", run->endpoint_socket);
    run->endpoint = program_start(run->server.folder, "endpoint", words);
}

static void open_endpoint(struct run *run)
{
    struct sockaddr_in port = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof port;

    run->endpoint_socket = socket(AF_INET, SOCK_STREAM, 0); /* inherited */
    assert_int_equal(bind(run->endpoint_socket, (struct sockaddr *)&port, sizeof port), 0);
    assert_int_equal(listen(run->endpoint_socket, 128), 0);
    assert_int_equal(getsockname(run->endpoint_socket, (struct sockaddr *)&port, &len), 0);
    run->endpoint_port = ntohs(port.sin_port);
    run_start_endpoint(run);
}

static void make_file(const struct run *run, const char *name, off_t size)
{
    char path[128];
    int fd;

    snprintf(path, sizeof path, "%s/%s", run->server.folder, name);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, size), 0);
    close(fd);
}

static void set_up_redis(struct run *run)
{
    static const char *const options[] = {"--appendfsync", "always", NULL};

    server_start_shifted(&run->server, true, options);
    run->client = weir_new(run->server.url, NULL);
    assert_non_null(run->client);
    for (int i = 0; i < PLAN_LIMITS; i++)
        if (weir_rate_set(run->client, limit_plans[i].name, limit_plans[i].rules) != 0)
            fail_msg("%s", weir_message(run->client));
    if (weir_rate_use(run->client, "left", "pool", 0) != 0 ||
        weir_rate_use(run->client, "right", "pool", 2) != 0)
        fail_msg("%s", weir_message(run->client));
    for (int i = 0; i < PLAN_SCHEDULES; i++)
        if (weir_schedule_add(
                run->client, schedule_plans[i].name, schedule_plans[i].when, NULL,
                (enum weir_missed)schedule_plans[i].missed,
                &(struct weir_job_spec){.type = type_plans[TYPE_TICK].name, .args = "\"c:500:\""}) != 0)
            fail_msg("%s", weir_message(run->client));
}

void run_open(struct run *run, uint64_t seed, int seconds)
{
    char path[128];

    *run = (struct run){0};
    plan_make(&run->plan, seed, seconds);
    set_up_redis(run);
    snprintf(path, sizeof path, "%s/plan", run->server.folder);
    plan_print(&run->plan, path);
    make_file(run, "history", 0);
    make_file(run, "answers", 0);
    make_file(run, "endings", run->plan.job_count + 1);
    run->begun_us = clock_mono_us();
    set_environment(run);
    open_endpoint(run);
    asker_start(run->server.socket);
    for (int i = 0; i < PLAN_WORKERS; i++) {
        if (worker_plans[i].proxied)
            run->workers[i].proxy = proxy_start(&run->server);
        start_worker(run, i);
    }
}

/* ---- Going on */

/* A fault of ours is why Redis did not answer then. */
static bool was_hit(const struct run *run, int64_t from_us, int64_t to_us)
{
    for (int i = 0; i < run->incident_count; i++) {
        const struct incident *in = &run->incidents[i];

        if ((in->kind == FAULT_STOP_REDIS || in->kind == FAULT_KILL_REDIS) && in->from_us <= to_us &&
            (!in->to_us || in->to_us >= from_us))
            return true;
    }
    return false;
}

static void look_at_redis(struct run *run)
{
    int64_t from_us, to_us;

    while (asker_take(&from_us, &to_us)) {
        struct incident *i;

        if (was_hit(run, from_us, to_us))
            continue;
        i = run_incident(run, FAULT_STARVED, -1);
        i->from_us = from_us;
        i->to_us = to_us;
    }
}

/* What a process did not get of the processor, from the last look on, kept it from Redis; worker -1: it is what stands before Redis. */
static void note_starved(struct run *run, int worker, int64_t for_us)
{
    struct incident *i;

    if (for_us < STARVED_LEAST_US)
        return;
    i = run_incident(run, FAULT_STARVED, worker);
    i->to_us = i->from_us;
    i->from_us -= for_us;
}

static void look_at_starved(struct run *run, int worker, pid_t pid, int64_t *waited_us)
{
    char path[48];
    long long waited_ns = 0;
    FILE *f;

    snprintf(path, sizeof path, "/proc/%d/schedstat", (int)pid);
    if (pid <= 0 || !(f = fopen(path, "r")))
        return;
    if (fscanf(f, "%*d %lld", &waited_ns) == 1)
        note_starved(run, worker, waited_ns / 1000 - *waited_us);
    *waited_us = waited_ns / 1000;
    fclose(f);
}

/* The processes that have ended; they are started again a moment later, as a supervisor does. */
static void look_at_worker(struct run *run, int number, int64_t now_us)
{
    struct running *worker = &run->workers[number];
    struct life *life;
    int status;

    if (worker->pid > 0 && waitpid(worker->pid, &status, WNOHANG) == worker->pid) {
        life = run_life(run, number);
        life->ended_us = now_us - LOOK_EVERY_US;
        life->code = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
        worker->pid = 0;
        worker->restart_at_us = now_us + RESTART_US;
    }
    look_at_starved(run, number, worker->pid, &worker->waited_us);
    if (worker->pid == 0 && now_us >= worker->restart_at_us)
        start_worker(run, number);
}

static void look_at_producer(struct run *run, int number)
{
    struct running *producer = &run->producers[number];
    int status;

    if (producer->pid > 0 && waitpid(producer->pid, &status, WNOHANG) == producer->pid) {
        producer->pid = 0;
        run->producer_ended[number] = WIFEXITED(status) && WEXITSTATUS(status) == 0;
        if (!run->producer_ended[number])
            start_actor(run, producer, "producer", number);
    }
}

static void look_at_all(struct run *run)
{
    int64_t now_us = clock_mono_us();
    int status;

    look_at_redis(run);
    for (int i = 0; i < PLAN_WORKERS; i++)
        look_at_worker(run, i, now_us);
    for (int i = 0; i < PLAN_PRODUCERS; i++)
        look_at_producer(run, i);
    if (run->operator.pid> 0 && waitpid(run->operator.pid, &status, WNOHANG) == run->operator.pid) {
        assert_int_equal(status, 0);
        run->operator.pid = 0;
    }
}

/* A moment; how late this process got the processor back is what the others may have had to wait too. */
static void pass_time(struct run *run)
{
    int64_t until_us = clock_mono_us() + LOOK_EVERY_US;
    int late_ms;

    clock_sleep_until(until_us);
    late_ms = (int)((clock_mono_us() - until_us) / 1000);
    if (late_ms > run->starved_ms)
        run->starved_ms = late_ms;
    note_starved(run, -1, late_ms * INT64_C(1000));
}

void run_load(struct run *run)
{
    for (int i = 0; i < PLAN_PRODUCERS; i++) {
        run->producers[i].proxy = proxy_start(&run->server);
        start_actor(run, &run->producers[i], "producer", i);
    }
    start_actor(run, &run->operator, "operator", 0);
    while (clock_mono_us() < run->begun_us + run->plan.time_us || faults_last(run)) {
        look_at_all(run);
        faults_go_on(run, clock_mono_us());
        pass_time(run);
    }
}

/* ---- Finishing */

static bool actors_work(const struct run *run)
{
    bool work = run->operator.pid> 0;

    for (int i = 0; i < PLAN_PRODUCERS; i++)
        work = work || !run->producer_ended[i];
    return work;
}

/* Everything that is to be run still, as lines "<n> <key>". */
static char *what_is_left(struct run *run)
{
    static const char script[] = "local left = {}\n"
                                 "for _, key in ipairs(redis.call('KEYS', 'weir:{0}:*')) do\n"
                                 "    local n = 0\n"
                                 "    if key:find('^weir:{0}:queue:') or key:find('^weir:{0}:lane:') or "
                                 "key:find('^weir:{0}:aside:') then\n"
                                 "        n = redis.call('LLEN', key)\n"
                                 "    elseif key == 'weir:{0}:later' then\n"
                                 "        n = redis.call('ZCARD', key)\n"
                                 "    elseif key:find('^weir:{0}:active:') then\n"
                                 "        n = redis.call('HLEN', key) - redis.call('HEXISTS', key, '@')\n"
                                 "    end\n"
                                 "    if n > 0 then left[#left + 1] = n .. ' ' .. key end\n"
                                 "end\n"
                                 "return table.concat(left, '\\n')";

    return server_ask(&run->server, "EVAL", script, "0", NULL);
}

static long jobs_left(const char *what)
{
    long jobs = 0;

    for (const char *line = what; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        jobs += atol(line);
    return jobs;
}

/* Until nothing is left; false: for too long it does not become less, and *what says what there is. */
static bool drain(struct run *run, char **what)
{
    int64_t end_us = clock_mono_us() + STUCK_S * INT64_C(1000000);
    long least = LONG_MAX;
    bool empty = false;

    *what = NULL;
    while (!empty && clock_mono_us() < end_us) {
        free(*what);
        look_at_all(run);
        *what = what_is_left(run);
        empty = **what == '\0';
        if (jobs_left(*what) < least) {
            least = jobs_left(*what);
            end_us = clock_mono_us() + STUCK_S * INT64_C(1000000);
        }
        for (int i = 0; !empty && i < 20; i++)
            pass_time(run);
    }
    return empty;
}

static void end_schedules(struct run *run)
{
    for (int i = 0; i < PLAN_SCHEDULES; i++)
        if (weir_schedule_remove(run->client, schedule_plans[i].name) != 0)
            fail_msg("%s", weir_message(run->client));
}

static void retry_dead(struct run *run)
{
    struct outcome o;

    setenv("REDIS_URL", run->server.url, 1);
    run_in(&o, NULL, built("weir"), "dead", "retry", "--all", NULL);
    if (o.code != 0 && !strstr(o.err, "was cancelled")) /* those of a cancelled batch stay dead */
        fail_msg("weir dead retry: %s", o.err);
}

bool run_finish(struct run *run, char **what)
{
    int64_t begun_us, end_us = clock_mono_us() + ACTORS_END_S * INT64_C(1000000);
    bool finished;

    while (actors_work(run)) {
        if (clock_mono_us() > end_us) {
            *what = strdup("a producer, or the operator, does not end");
            return false;
        }
        look_at_all(run);
        pass_time(run);
    }
    begun_us = clock_mono_us();
    end_schedules(run);
    if (run->shift_us !=
        run->most_shift_us) { /* what is scheduled by the highest time there was is due too */
        run_incident(run, FAULT_STEP_CLOCK, -1)->shift_us = run->most_shift_us;
        run->shift_us = run->most_shift_us;
        server_shift_clock(&run->server, run->shift_us);
    }
    finished = drain(run, what);
    for (int i = 0; finished && i < DEATHS_MOST && stage_number(run, "ZCARD", "weir:{0}:dead"); i++) {
        free(*what);
        retry_dead(run);
        finished = drain(run, what);
    }
    run->drained_us = clock_mono_us() - begun_us;
    return finished;
}

int run_end_workers(struct run *run)
{
    int wrong = 0;

    for (int i = 0; i < PLAN_WORKERS; i++) {
        if (run->workers[i].pid > 0) {
            run_life(run, i)->asked = true;
            kill(run->workers[i].pid, SIGTERM);
        }
    }
    for (int i = 0; i < PLAN_WORKERS; i++) {
        struct life *life = run_life(run, i);

        if (run->workers[i].pid <= 0)
            continue;
        life->code = program_end(run->workers[i].pid);
        life->ended_us = clock_mono_us();
        run->workers[i].pid = 0;
        wrong += life->code != 0;
    }
    return wrong;
}

void run_close(struct run *run, bool keep)
{
    char kept[80];

    for (int i = 0; i < PLAN_WORKERS; i++)
        proxy_stop(run->workers[i].proxy);
    for (int i = 0; i < PLAN_PRODUCERS; i++)
        proxy_stop(run->producers[i].proxy);
    asker_stop();
    kill(run->endpoint, SIGKILL);
    program_end(run->endpoint);
    close(run->endpoint_socket);
    weir_free(run->client);
    if (keep) {
        server_kill(&run->server);
        snprintf(kept, sizeof kept, "%s", run->server.folder);
        printf("all of it is kept in %s\n", kept);
    } else {
        server_stop(&run->server);
    }
    plan_free(&run->plan);
    free(run->lives);
    free(run->incidents);
}

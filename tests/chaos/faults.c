/* The faults of a chaos run, one function to begin a kind and one to end it, in one table. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "core/clock.h"
#include "tests/chaos/run.h"
#include "tests/program.h"
#include "tests/proxy.h"
#include "tests/test.h"

/* ---- Processes */

/* A worker's process is what its fault was meant for; another one came in its stead meanwhile. */
static void signal_worker(struct run *run, const struct fault *f, int number)
{
    pid_t pid = run->workers[f->worker].pid;

    if (pid > 0)
        kill(pid, number);
}

static void kill_worker(struct run *run, const struct fault *f)
{
    struct running *worker = &run->workers[f->worker];
    struct life *life = run_life(run, f->worker);

    if (worker->pid <= 0)
        return;
    life->asked = true;
    life->ended_us = clock_mono_us();
    kill(worker->pid, SIGKILL);
    life->code = program_end(worker->pid);
    worker->pid = 0;
    worker->restart_at_us = clock_mono_us() + 300000;
}

static void stop_worker(struct run *run, const struct fault *f)
{
    signal_worker(run, f, SIGSTOP);
}

static void continue_worker(struct run *run, const struct fault *f)
{
    signal_worker(run, f, SIGCONT);
}

static void end_worker(struct run *run, const struct fault *f)
{
    if (run->workers[f->worker].pid > 0)
        run_life(run, f->worker)->asked = true;
    signal_worker(run, f, SIGTERM);
}

/* The first process found that a thread of the worker has started; 0: none. */
static pid_t child_of(pid_t pid)
{
    char path[300], text[64] = "";
    struct dirent *entry;
    DIR *tasks;

    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    tasks = opendir(path);
    while (tasks && atoi(text) == 0 && (entry = readdir(tasks))) {
        snprintf(path, sizeof path, "/proc/%d/task/%.16s", (int)pid, entry->d_name);
        if (entry->d_name[0] != '.')
            read_text(path, "children", text, sizeof text);
    }
    if (tasks)
        closedir(tasks);
    return atoi(text);
}

static void kill_child(struct run *run, const struct fault *f)
{
    pid_t worker = run->workers[f->worker].pid, child = worker > 0 ? child_of(worker) : 0;

    if (child <= 0)
        return;
    run->incidents[run->incident_count - 1].pid = child;
    kill(child, SIGKILL);
}

static void kill_endpoint(struct run *run, const struct fault *f)
{
    (void)f;
    kill(run->endpoint, SIGKILL);
    program_end(run->endpoint);
    run_start_endpoint(run);
}

static void kill_producer(struct run *run, const struct fault *f)
{
    if (run->producers[f->worker].pid > 0)
        kill(run->producers[f->worker].pid, SIGKILL);
}

/* ---- Links */

static struct proxy *proxy_of(struct run *run, const struct fault *f)
{
    return run->workers[f->worker].proxy;
}

static void cut_off(struct run *run, const struct fault *f)
{
    proxy_blackhole(proxy_of(run, f), true);
}

static void join_again(struct run *run, const struct fault *f)
{
    proxy_blackhole(proxy_of(run, f), false);
}

static void slow_down(struct run *run, const struct fault *f)
{
    proxy_delay(proxy_of(run, f), PROXY_REQUESTS, f->number_us);
    proxy_delay(proxy_of(run, f), PROXY_REPLIES, f->number_us);
}

static void speed_up(struct run *run, const struct fault *f)
{
    proxy_delay(proxy_of(run, f), PROXY_REQUESTS, 0);
    proxy_delay(proxy_of(run, f), PROXY_REPLIES, 0);
}

static void stall(struct run *run, const struct fault *f)
{
    proxy_stall(proxy_of(run, f), PROXY_REPLIES, f->for_us);
}

static void cut(struct run *run, const struct fault *f)
{
    if (f->number_us == 0)
        proxy_cut_all(proxy_of(run, f));
    else
        proxy_cut_before(proxy_of(run, f), f->number_us == 1 ? PROXY_REQUESTS : PROXY_REPLIES, 1);
}

static void cut_producer(struct run *run, const struct fault *f)
{
    proxy_cut_before(run->producers[f->worker].proxy, PROXY_REPLIES, 1);
}

/* ---- Redis */

/* Before it is asked anything: nobody else would let it go on. */
static void continue_redis(struct run *run, const struct fault *f)
{
    (void)f;
    if (run->redis_stopped)
        kill(run->server.pid, SIGCONT);
    run->redis_stopped = false;
}

static void stop_redis(struct run *run, const struct fault *f)
{
    (void)f;
    kill(run->server.pid, SIGSTOP);
    run->redis_stopped = true;
}

/* A write may have been torn by the kill. Redis 7.0 then goes on behind the torn block, and doc/guarantees.md
 * says what to do: have the file written anew. */
static void restart_redis(struct run *run, const struct fault *f)
{
    (void)f;
    run->redis_stopped = false;
    server_restart(&run->server);
    stage_do(run, "BGREWRITEAOF");
}

static void flush_functions(struct run *run, const struct fault *f)
{
    continue_redis(run, f);
    stage_do(run, "FUNCTION", "FLUSH");
}

static void fill_memory(struct run *run, const struct fault *f)
{
    continue_redis(run, f);
    stage_do(run, "CONFIG", "SET", "maxmemory", "1");
}

static void free_memory(struct run *run, const struct fault *f)
{
    continue_redis(run, f);
    stage_do(run, "CONFIG", "SET", "maxmemory", "0");
}

static void step_clock(struct run *run, const struct fault *f)
{
    run->shift_us += f->number_us;
    if (run->shift_us > run->most_shift_us)
        run->most_shift_us = run->shift_us;
    run->incidents[run->incident_count - 1].shift_us = run->shift_us;
    server_shift_clock(&run->server, run->shift_us);
}

/* ---- All of them */

static const struct {
    void (*begin)(struct run *run, const struct fault *f);
    void (*end)(struct run *run, const struct fault *f);
    bool of_all; /* it is no single worker's */
} kinds[FAULT_KINDS] = {
    [FAULT_KILL_WORKER] = {kill_worker, NULL, false},
    [FAULT_STOP_WORKER] = {stop_worker, continue_worker, false},
    [FAULT_TERM_WORKER] = {end_worker, NULL, false},
    [FAULT_FORCE_WORKER] = {end_worker, end_worker, false},
    [FAULT_KILL_CHILD] = {kill_child, NULL, false},
    [FAULT_KILL_ENDPOINT] = {kill_endpoint, NULL, true},
    [FAULT_KILL_PRODUCER] = {kill_producer, NULL, true},
    [FAULT_CUT_PRODUCER] = {cut_producer, NULL, true},
    [FAULT_PARTITION] = {cut_off, join_again, false},
    [FAULT_SLOW_LINK] = {slow_down, speed_up, false},
    [FAULT_STALL] = {stall, NULL, false},
    [FAULT_CUT] = {cut, NULL, false},
    [FAULT_KILL_REDIS] = {restart_redis, NULL, true},
    [FAULT_STOP_REDIS] = {stop_redis, continue_redis, true},
    [FAULT_FLUSH_FUNCTIONS] = {flush_functions, NULL, true},
    [FAULT_FULL_MEMORY] = {fill_memory, free_memory, true},
    [FAULT_STEP_CLOCK] = {step_clock, NULL, true},
};

static void begin_fault(struct run *run, const struct fault *f)
{
    int incident = run->incident_count, i = 0;

    run_incident(run, f->kind, kinds[f->kind].of_all ? -1 : f->worker);
    kinds[f->kind].begin(run, f);
    run->incidents[incident].sure_us = clock_mono_us();
    if (!kinds[f->kind].end) {
        run->incidents[incident].to_us = clock_mono_us() + f->for_us;
        return;
    }
    while (i < LASTING_MOST && run->lasting[i].fault)
        i++;
    assert_true(i < LASTING_MOST);
    run->lasting[i] = (struct lasting){f, incident, kinds[f->kind].of_all ? 0 : run->workers[f->worker].pid};
}

/* A link is a worker's; what is done to a process is over when that has ended. */
static bool is_over(const struct run *run, const struct lasting *l)
{
    bool is_link = l->fault->kind == FAULT_PARTITION || l->fault->kind == FAULT_SLOW_LINK;

    return l->pid && !is_link && l->pid != run->workers[l->fault->worker].pid;
}

/* Another fault of that kind that lasts at the same place; NULL: there is none. */
static const struct fault *other_fault(const struct run *run, const struct lasting *l)
{
    for (const struct lasting *o = run->lasting; o < run->lasting + LASTING_MOST; o++)
        if (o != l && o->fault && o->fault->kind == l->fault->kind && !is_over(run, o) &&
            (kinds[o->fault->kind].of_all || o->fault->worker == l->fault->worker))
            return o->fault;
    return NULL;
}

/* Faults of a kind may overlap at one place: where the first of them ends, the other begins anew in its stead. */
static void end_fault(struct run *run, struct lasting *l)
{
    const struct fault *f = l->fault, *other = other_fault(run, l);

    run->incidents[l->incident].to_us = clock_mono_us();
    if (other)
        kinds[f->kind].begin(run, other);
    else if (!is_over(run, l))
        kinds[f->kind].end(run, f);
    l->fault = NULL;
}

void faults_go_on(struct run *run, int64_t now_us)
{
    int64_t since_us = now_us - run->begun_us;

    for (struct lasting *l = run->lasting; l < run->lasting + LASTING_MOST; l++)
        if (l->fault && now_us - run->incidents[l->incident].from_us >= l->fault->for_us)
            end_fault(run, l);
    while (run->next_fault < run->plan.fault_count && run->plan.faults[run->next_fault].at_us <= since_us)
        begin_fault(run, &run->plan.faults[run->next_fault++]);
}

bool faults_last(const struct run *run)
{
    bool last = run->next_fault < run->plan.fault_count;

    for (const struct lasting *l = run->lasting; l < run->lasting + LASTING_MOST; l++)
        last = last || l->fault;
    return last;
}

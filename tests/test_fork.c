/* fork() in a program that uses the library: pre-fork servers, threads beside the fork, handlers that fork. A
 * child is a function that runs in a fork of this program and whose exit code says which of its checks
 * failed. */
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/client/client.h"
#include "core/clock.h"
#include "core/log/log.h"
#include "tests/client.h"
#include "tests/program.h"
#include "tests/test.h"

#define CHILDREN 4
#define JOBS 1000
#define CHILD_S 30 /* a child that hangs is killed */
#define ID_LEN 16

static const struct weir_job_spec job = {.type = "mail"};

static int set_up(void **state)
{
    client_start(state);
    return weir_enqueue(w, &job, NULL);
}

static long long queued(void)
{
    return server_number(&server, "LLEN", "weir:{0}:queue:default", NULL);
}

/* ---- Children */

typedef int child_main(void *arg);

static pid_t start_child(child_main *run, void *arg)
{
    pid_t pid = fork();

    if (pid == 0) {
        alarm(CHILD_S);
        _exit(run(arg));
    }
    assert_true(pid > 0);
    return pid;
}

#define assert_child(pid) assert_int_equal(program_end(pid), 0)

/* In a child: the check that failed is its exit code. */
#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            return __COUNTER__ + 1;                                                                          \
    } while (0)

static bool says_fork(const char *message)
{
    return strstr(message, "fork()") != NULL;
}

/* ---- Enqueueing */

/* Enqueues, and writes the ids that were accepted to the pipe arg. */
static int enqueue_all(void *arg)
{
    char id[WEIR_ID_SIZE];

    for (int i = 0; i < JOBS; i++) {
        CHECK(weir_enqueue(w, &job, id) == 0);
        CHECK(strlen(id) == ID_LEN);
        CHECK(write(*(int *)arg, id, ID_LEN) == ID_LEN);
    }
    return 0;
}

static int compare_ids(const void *a, const void *b)
{
    return memcmp(a, b, ID_LEN);
}

/* The ids of the jobs in the queue, sorted. */
static size_t read_queue(char (*ids)[ID_LEN], size_t most)
{
    char *all = server_ask(&server, "LRANGE", "weir:{0}:queue:default", "0", "-1", NULL), *at = all;
    size_t n = 0;

    for (; n < most && (at = strstr(at, "{\"id\":\"")); n++, at++)
        memcpy(ids[n], at + strlen("{\"id\":\""), ID_LEN);
    free(all);
    qsort(ids, n, ID_LEN, compare_ids);
    return n;
}

static size_t read_ids(int fd, char (*ids)[ID_LEN])
{
    size_t len = 0;
    ssize_t n;

    while ((n = read(fd, (char *)ids + len, JOBS * ID_LEN - len)) > 0)
        len += (size_t)n;
    return len / ID_LEN;
}

TEST(test_jobs_of_children_are_there_once)
{
    static char accepted[CHILDREN * JOBS][ID_LEN], there[CHILDREN * JOBS + 1][ID_LEN];
    int pipes[CHILDREN][2];
    pid_t children[CHILDREN];

    server_do(&server, "DEL", "weir:{0}:queue:default");
    for (int i = 0; i < CHILDREN; i++) {
        assert_int_equal(pipe(pipes[i]), 0);
        fcntl(pipes[i][1], F_SETPIPE_SZ, JOBS * ID_LEN);
        children[i] = start_child(enqueue_all, &pipes[i][1]);
        close(pipes[i][1]);
    }
    for (int i = 0; i < CHILDREN; i++) {
        assert_child(children[i]);
        assert_int_equal(read_ids(pipes[i][0], accepted + i * JOBS), JOBS);
        close(pipes[i][0]);
    }
    qsort(accepted, CHILDREN * JOBS, ID_LEN, compare_ids);
    assert_int_equal(read_queue(there, CHILDREN * JOBS + 1), CHILDREN * JOBS);
    assert_memory_equal(accepted, there, sizeof accepted);
}

static int free_client(void *arg)
{
    (void)arg;
    weir_free(w);
    return 0;
}

static int use_and_free_client(void *arg)
{
    CHECK(weir_enqueue(w, &job, NULL) == 0);
    return free_client(arg);
}

static long long connection_of(struct weir *client)
{
    struct redisReply *reply;
    struct error e;
    struct args a = {0};
    long long id;

    args_add(&a, "CLIENT");
    args_add(&a, "ID");
    assert_int_equal(redis_call(client->redis, &a, &reply, NULL, &e), 0);
    id = reply->integer;
    freeReplyObject(reply);
    args_free(&a);
    return id;
}

TEST(test_the_parent_keeps_its_connection)
{
    long long before = connection_of(w);

    assert_child(start_child(free_client, NULL));
    assert_child(start_child(use_and_free_client, NULL));
    assert_int_equal(connection_of(w), before);
}

static int ids_of_grandchild(void *arg)
{
    char id[WEIR_ID_SIZE];

    CHECK(weir_enqueue(w, &job, id) == 0);
    CHECK(strcmp(id, arg) != 0);
    return 0;
}

static int fork_again(void *arg)
{
    char id[WEIR_ID_SIZE];

    (void)arg;
    CHECK(weir_enqueue(w, &job, id) == 0);
    CHECK(program_end(start_child(ids_of_grandchild, id)) == 0);
    CHECK(weir_enqueue(w, &job, id) == 0);
    return 0;
}

TEST(test_a_child_that_forks)
{
    assert_child(start_child(fork_again, NULL));
}

/* ---- Taking */

static int take_ten(void *arg)
{
    struct weir_take take;

    (void)arg;
    for (int i = 0; i < 10; i++) {
        CHECK(weir_take(w, "calls", "100/1h", 0, WEIR_TAKE_ASK, &take) == 0);
        CHECK(take.allowed);
    }
    return 0;
}

TEST(test_slots_of_children_are_counted)
{
    pid_t children[CHILDREN];
    struct weir_take take;

    for (int i = 0; i < CHILDREN; i++)
        children[i] = start_child(take_ten, NULL);
    for (int i = 0; i < CHILDREN; i++)
        assert_child(children[i]);
    assert_int_equal(weir_take(w, "calls", "100/1h", 0, WEIR_TAKE_PEEK, &take), 0);
    assert_int_equal(take.remaining, 100 - CHILDREN * 10);
}

/* ---- Bulks */

static int add(struct weir_bulk *b, int n)
{
    int status = 0;

    for (int i = 0; !status && i < n; i++)
        status = weir_bulk_add(b, &job);
    return status;
}

static int use_the_parents_bulk(void *arg)
{
    struct weir_bulk_counts counts;
    struct weir_bulk *b = arg, *own;

    CHECK(weir_bulk_add(b, &job) == WEIR_EUSAGE && says_fork(weir_message(w)));
    CHECK(weir_bulk_add_line(b, NULL, NULL, "{}", 2) == WEIR_EUSAGE && says_fork(weir_message(w)));
    CHECK(weir_bulk_skip_line(b, "", 0) == WEIR_EUSAGE && says_fork(weir_message(w)));
    CHECK(weir_bulk_then(b, "mail") == WEIR_EUSAGE && says_fork(weir_message(w)));
    CHECK(weir_enqueue(w, &job, NULL) == 0);
    CHECK(weir_bulk_open(w, NULL, &own) == 0);
    CHECK(add(own, 1001) == 0); /* two chunks are under way */
    CHECK(weir_bulk_close(b, NULL) == WEIR_EUSAGE && says_fork(weir_message(w)));
    CHECK(add(own, 4) == 0);
    CHECK(weir_bulk_close(own, &counts) == 0 && counts.accepted == 1005);
    return 0;
}

static int abandon_the_parents_bulk(void *arg)
{
    weir_bulk_abandon(arg);
    CHECK(weir_enqueue(w, &job, NULL) == 0);
    return 0;
}

TEST(test_a_bulk_is_the_parents)
{
    struct weir_bulk_counts counts;
    struct weir_bulk *b;
    long long before = queued();

    assert_int_equal(weir_bulk_open(w, "import", &b), 0);
    assert_int_equal(add(b, 1010), 0); /* two chunks are under way, ten jobs wait */
    assert_child(start_child(use_the_parents_bulk, b));
    assert_child(start_child(abandon_the_parents_bulk, b));
    assert_int_equal(add(b, 10), 0);
    assert_int_equal(weir_bulk_close(b, &counts), 0);
    assert_int_equal(counts.accepted, 1020);
    assert_int_equal(queued() - before, 1020 + 1006 + 1);
}

/* ---- Workers */

static int handle(struct weir_job *one, void *arg)
{
    (void)one, (void)arg;
    return WEIR_DONE;
}

static int run_the_parents_worker(void *arg)
{
    struct weir_worker *worker = arg;

    CHECK(weir_worker_run(worker) == WEIR_EUSAGE && says_fork(weir_worker_message(worker)));
    weir_worker_free(worker);
    return 0;
}

static int drain_in(const struct weir_worker_options *options)
{
    struct weir_worker *worker = weir_worker_new(options);
    int rc;

    if (!worker || weir_worker_handle(worker, "mail", handle, NULL) != 0)
        return WEIR_EINTERNAL;
    rc = weir_worker_run(worker);
    weir_worker_free(worker);
    return rc;
}

static int drain(void *arg)
{
    CHECK(drain_in(arg) == 0);
    return 0;
}

TEST(test_a_worker_is_the_parents)
{
    const struct weir_worker_options options = {.redis_url = server.url, .drain = 1};
    struct weir_worker *worker = weir_worker_new(&options);

    assert_non_null(worker);
    assert_int_equal(weir_worker_handle(worker, "mail", handle, NULL), 0);
    assert_child(start_child(run_the_parents_worker, worker));
    assert_child(start_child(drain, (void *)&options)); /* one of its own */
    assert_int_equal(queued(), 0);
    assert_int_equal(weir_worker_run(worker), 0);
    weir_worker_free(worker);
}

/* ---- Threads beside the fork */

static atomic_bool over;

static void *enqueue_and_log(void *arg)
{
    struct weir *own = weir_new(server.url, "threads");

    (void)arg;
    while (!atomic_load(&over)) {
        if (weir_enqueue(own, &job, NULL) != 0)
            abort();
        log_line(LOG_LEVEL_ERROR, "a thread logs");
    }
    weir_free(own);
    return NULL;
}

static void *log_all_the_time(void *arg)
{
    (void)arg;
    while (!atomic_load(&over))
        log_line(LOG_LEVEL_ERROR, "another thread logs");
    return NULL;
}

static int enqueue_and_log_once(void *arg)
{
    struct weir *own = weir_new(server.url, NULL);

    (void)arg;
    log_line(LOG_LEVEL_ERROR, "a child logs");
    CHECK(weir_enqueue(w, &job, NULL) == 0);
    CHECK(own && weir_enqueue(own, &job, NULL) == 0);
    weir_free(own);
    return 0;
}

/* Standard error goes to the server's folder meanwhile. */
static int divert(const char *name)
{
    int before = dup(STDERR_FILENO), fd;

    fd = open(textf("%s/%s", server.folder, name), O_WRONLY | O_CREAT | O_APPEND, 0600);
    assert_true(fd >= 0 && before >= 0);
    dup2(fd, STDERR_FILENO);
    close(fd);
    return before;
}

static void divert_back(int before)
{
    dup2(before, STDERR_FILENO);
    close(before);
}

/* GCC's address sanitizer does not keep the locks of its own malloc() over a fork: where another thread held one, the child waits for it
 * until its alarm. Such a child says nothing of us; the next one may. */
static void expect_child_beside_threads(child_main *run)
{
    int code = program_end(start_child(run, NULL));
#ifdef __SANITIZE_ADDRESS__
    for (int again = 0; again < 3 && code == 1000 + SIGALRM; again++)
        code = program_end(start_child(run, NULL));
#endif
    assert_int_equal(code, 0);
}

TEST(test_threads_use_it_while_another_forks)
{
    pthread_t threads[4];
    int before = divert("threads");

    atomic_store(&over, false);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, i % 2 ? enqueue_and_log : log_all_the_time, NULL),
                         0);
    for (int i = 0; i < 100; i++)
        expect_child_beside_threads(enqueue_and_log_once);
    atomic_store(&over, true);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    divert_back(before);
}

/* ---- Handlers that fork */

static atomic_int ended; /* what the child of a handler ended with */
static atomic_int calls;

static void fork_in_handler(void)
{
    pid_t pid = fork();

    calls++;
    if (pid == 0)
        alarm(CHILD_S);
    else
        ended = program_end(pid);
}

static int fork_and_return(struct weir_job *one, void *arg)
{
    (void)one, (void)arg;
    fork_in_handler();
    return WEIR_DONE;
}

static void fork_and_return_async(struct weir_job *one, void *arg)
{
    (void)arg;
    fork_in_handler();
    weir_job_end(one, WEIR_DONE);
}

static void drain_forking(bool async)
{
    const struct weir_worker_options options = {.redis_url = server.url, .drain = 1};
    struct weir_worker *worker = weir_worker_new(&options);
    int before = divert(async ? "async" : "function");

    calls = 0;
    for (int i = 0; i < 3; i++)
        assert_int_equal(weir_enqueue(w, &job, NULL), 0);
    assert_int_equal(async ? weir_worker_handle_async(worker, "mail", fork_and_return_async, NULL)
                           : weir_worker_handle(worker, "mail", fork_and_return, NULL),
                     0);
    assert_int_equal(weir_worker_run(worker), 0);
    weir_worker_free(worker);
    divert_back(before);
    assert_int_equal(ended, 70);
    assert_int_equal(calls, 3);
    assert_int_equal(queued(), 0);
    await_text(server.folder, async ? "async" : "function", "fork()");
}

/* ---- Two threads at one client */

static struct weir *shared;
static atomic_int met, wrong;

static void *enqueue_by_shared(void *arg)
{
    (void)arg;
    while (!atomic_load(&over)) {
        int rc = weir_enqueue(shared, &job, NULL);

        atomic_fetch_add(&met, rc == WEIR_EUSAGE);
        atomic_fetch_add(&wrong, rc != 0 && rc != WEIR_EUSAGE);
    }
    return NULL;
}

/* They are told so, and it works on. */
TEST(test_threads_that_share_a_client)
{
    pthread_t threads[3];

    atomic_store(&over, false);
    shared = weir_new(server.url, "threads");
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, enqueue_by_shared, NULL), 0);
    while (atomic_load(&met) <= 10)
        clock_sleep_until(clock_mono_us() + 1000);
    atomic_store(&over, true);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(atomic_load(&wrong), 0);
    assert_int_equal(weir_enqueue(shared, &job, NULL), 0);
    weir_free(shared);
}

TEST(test_a_child_of_a_handler_is_no_worker)
{
    server_do(&server, "FLUSHALL");
    drain_forking(false);
    drain_forking(true);
}

TESTS(set_up, client_stop)

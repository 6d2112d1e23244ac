/* gearmand, by libgearman: one job at a time, as its workers run. It has no limits. */
#include <libgearman/gearman.h>
#include <signal.h>

#include "bench/peers/clients/record.h"

#define CHUNK 1000

static int fail(const char *why)
{
    fprintf(stderr, "%s\n", why);
    return 1;
}

static int enqueue(gearman_client_st *client, int n, const char *type)
{
    static char jobs[CHUNK][JOB_SIZE];
    double begun = now();
    gearman_return_t rc;

    for (int i = 0; i < n;) {
        int chunk = n - i < CHUNK ? n - i : CHUNK;

        for (int at = 0; at < chunk; at++, i++) {
            size_t len = (size_t)job_write(jobs[at], type, i, begun);

            gearman_client_add_task_background(client, NULL, NULL, "q", NULL, jobs[at], len, &rc);
            if (gearman_failed(rc))
                return fail(gearman_client_error(client));
        }
        if (gearman_failed(gearman_client_run_tasks(client)))
            return fail(gearman_client_error(client));
        gearman_client_task_free_all(client);
    }
    printf("%f\n", now() - begun);
    return 0;
}

static int pace(gearman_client_st *client, int n, double rate)
{
    char job[JOB_SIZE], handle[GEARMAN_JOB_HANDLE_SIZE];
    double begun = now();

    for (int i = 0; i < n; i++) {
        rest_until(begun + i / rate);
        if (gearman_failed(gearman_client_do_background(client, "q", NULL, job,
                                                        (size_t)job_write(job, "U", i, now()), handle)))
            return fail(gearman_client_error(client));
    }
    return 0;
}

static gearman_return_t handle(gearman_job_st *job, void *arg)
{
    (void)arg;
    record(gearman_job_workload(job), gearman_job_workload_size(job));
    return GEARMAN_SUCCESS;
}

static void on_term(int signal)
{
    (void)signal;
    _exit(0); /* records are flushed every 20 ms */
}

static int work(in_port_t port)
{
    gearman_worker_st *worker = gearman_worker_create(NULL);

    records_open();
    signal(SIGTERM, on_term);
    if (gearman_failed(gearman_worker_add_server(worker, "127.0.0.1", port)) ||
        gearman_failed(
            gearman_worker_define_function(worker, "q", 1, gearman_function_create(handle), 0, NULL)))
        return fail(gearman_worker_error(worker));
    while (gearman_success(gearman_worker_work(worker)))
        ;
    return fail(gearman_worker_error(worker));
}

int main(int argc, char **argv)
{
    gearman_client_st *client;
    in_port_t port;

    if (argc != 5)
        return 64;
    port = (in_port_t)atoi(argv[2]);
    if (strcmp(argv[1], "work") == 0)
        return work(port);
    client = gearman_client_create(NULL);
    if (gearman_failed(gearman_client_add_server(client, "127.0.0.1", port)))
        return fail(gearman_client_error(client));
    return strcmp(argv[1], "enqueue") == 0 ? enqueue(client, atoi(argv[3]), argv[4])
                                           : pace(client, atoi(argv[3]), atof(argv[4]));
}

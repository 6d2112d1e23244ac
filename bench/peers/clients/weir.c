/* Weir, by weir.h alone. RATE: a rule, "100/s,burst=10". */
#include <signal.h>

#include "bench/peers/clients/record.h"
#include "weir.h"

static struct weir_worker *worker;

static int fail(const char *why)
{
    fprintf(stderr, "%s\n", why);
    return 1;
}

static int enqueue(struct weir *w, int n, const char *type)
{
    struct weir_bulk *bulk;
    char job[JOB_SIZE];
    double begun = now();

    if (weir_bulk_open(w, NULL, &bulk) != 0)
        return fail(weir_message(w));
    for (int i = 0; i < n; i++) {
        job_write(job, type, i, begun);
        if (weir_bulk_add(bulk, &(struct weir_job_spec){.type = type, .args = job}) != 0)
            return fail(weir_message(w));
    }
    if (weir_bulk_close(bulk, NULL) != 0)
        return fail(weir_message(w));
    printf("%f\n", now() - begun);
    return 0;
}

static int pace(struct weir *w, int n, double rate)
{
    char job[JOB_SIZE];
    double begun = now();

    for (int i = 0; i < n; i++) {
        rest_until(begun + i / rate);
        job_write(job, "U", i, now());
        if (weir_enqueue(w, &(struct weir_job_spec){.type = "U", .args = job}, NULL) != 0)
            return fail(weir_message(w));
    }
    return 0;
}

static int handle(struct weir_job *job, void *arg)
{
    const char *args = weir_job_args(job);

    (void)arg;
    record(args, strlen(args));
    return WEIR_DONE;
}

static void on_term(int signal)
{
    (void)signal;
    weir_worker_stop(worker);
}

static int work(struct weir *w, const char *url, int executors, const char *rate)
{
    struct weir_worker_options options = {.redis_url = url, .executors = executors};

    if (*rate != '-' && weir_rate_set(w, "T", rate) != 0)
        return fail(weir_message(w));
    records_open();
    worker = weir_worker_new(&options);
    signal(SIGTERM, on_term);
    signal(SIGPIPE, SIG_IGN);
    if (weir_worker_handle(worker, "U", handle, NULL) != 0 ||
        weir_worker_handle(worker, "T", handle, NULL) != 0 || weir_worker_run(worker) != 0)
        return fail(weir_worker_message(worker));
    fflush(records);
    return 0;
}

int main(int argc, char **argv)
{
    char url[64];
    struct weir *w;

    if (argc != 5)
        return 64;
    snprintf(url, sizeof url, "redis://127.0.0.1:%s", argv[2]);
    w = weir_new(url, NULL);
    if (strcmp(argv[1], "enqueue") == 0)
        return enqueue(w, atoi(argv[3]), argv[4]);
    if (strcmp(argv[1], "pace") == 0)
        return pace(w, atoi(argv[3]), atof(argv[4]));
    return work(w, url, atoi(argv[3]), argv[4]);
}

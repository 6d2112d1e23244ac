/* What the clients in C share: jobs, and records of their starts (harness.py says what both are). */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define JOB_SIZE 256
#define JOB_LENGTH 120

static inline double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static inline void rest_until(double at)
{
    double left = at - now();

    if (left > 0)
        usleep((useconds_t)(left * 1e6));
}

/* Returns its length. */
static inline int job_write(char job[JOB_SIZE], const char *type, int i, double sent)
{
    int len = snprintf(job, JOB_SIZE,
                       "{\"type\":\"%s\",\"id\":%d,\"t\":%.6f,\"to\":\"user%d@example.com\",\"body\":\"",
                       type, i, sent, i);

    while (len < JOB_LENGTH - 2)
        job[len++] = 'x';
    memcpy(job + len, "\"}", 3);
    return len + 2;
}

static FILE *records;
static pthread_mutex_t records_lock = PTHREAD_MUTEX_INITIALIZER;

/* Of a job that begins now; job need not end with a NUL. */
static inline void record(const char *job, size_t len)
{
    const char *sent = memmem(job, len, "\"t\":", 4), *type = memmem(job, len, "\"type\":\"T\"", 10);
    double r[3] = {now(), sent ? atof(sent + 4) : 0, type ? 1 : 0};

    pthread_mutex_lock(&records_lock);
    fwrite(r, sizeof r, 1, records);
    pthread_mutex_unlock(&records_lock);
}

static inline void *records_flush(void *arg)
{
    for (;; usleep(20000)) {
        pthread_mutex_lock(&records_lock);
        fflush(records);
        pthread_mutex_unlock(&records_lock);
    }
    return arg;
}

static inline void records_open(void)
{
    pthread_t thread;

    records = fopen(getenv("RECORD"), "ab");
    if (!records || pthread_create(&thread, NULL, records_flush, NULL) != 0)
        exit(1);
}

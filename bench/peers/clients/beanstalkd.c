/* beanstalkd, by its text protocol. CONCURRENCY: so many reserves are outstanding on the one connection, as if
 * so many clients waited. It has no limits. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/socket.h>

#include "bench/peers/clients/record.h"

#define CHUNK 200
#define TTR_S 60

static FILE *in, *out;

/* What was written goes out before anything is waited for. */
static ssize_t flush_and_read(void *fd, char *bytes, size_t len)
{
    fflush(out);
    return read(*(int *)fd, bytes, len);
}

static void dial(int port)
{
    static int fd;
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1;

    fd = socket(AF_INET, SOCK_STREAM, 0);

    if (connect(fd, (struct sockaddr *)&to, sizeof to) != 0)
        exit(1);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    in = fopencookie(&fd, "r", (cookie_io_functions_t){.read = flush_and_read});
    out = fdopen(fd, "w");
    setvbuf(in, NULL, _IOFBF, 1 << 16);
    setvbuf(out, NULL, _IOFBF, 1 << 16);
}

static void put(const char *type, int i, double sent)
{
    char job[JOB_SIZE];
    int len = job_write(job, type, i, sent);

    fprintf(out, "put 1000 0 %d %d\r\n%s\r\n", TTR_S, len, job);
}

static void hear_inserted(int n)
{
    char line[JOB_SIZE];

    while (n-- > 0)
        if (!fgets(line, sizeof line, in) || strncmp(line, "INSERTED", 8) != 0)
            exit(1);
}

static void enqueue(int n, const char *type)
{
    double begun = now();

    for (int i = 0; i < n;) {
        int chunk = n - i < CHUNK ? n - i : CHUNK;

        for (int end = i + chunk; i < end; i++)
            put(type, i, begun);
        hear_inserted(chunk);
    }
    printf("%f\n", now() - begun);
}

static void pace(int n, double rate)
{
    double begun = now();

    for (int i = 0; i < n; i++) {
        rest_until(begun + i / rate);
        put("U", i, now());
        hear_inserted(1);
    }
}

static void on_term(int signal)
{
    (void)signal;
    _exit(0); /* records are flushed every 20 ms */
}

static void work(int window)
{
    char line[JOB_SIZE], job[JOB_SIZE];
    unsigned long long id;
    size_t len;

    records_open();
    signal(SIGTERM, on_term);
    for (int i = 0; i < window; i++)
        fputs("reserve\r\n", out);
    while (fgets(line, sizeof line, in)) {
        if (sscanf(line, "RESERVED %llu %zu", &id, &len) == 2) {
            if (len + 2 > sizeof job || fread(job, 1, len + 2, in) != len + 2)
                exit(1);
            record(job, len);
            fprintf(out, "delete %llu\r\nreserve\r\n", id);
        }
    }
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return 64;
    dial(atoi(argv[2]));
    if (strcmp(argv[1], "enqueue") == 0)
        enqueue(atoi(argv[3]), argv[4]);
    else if (strcmp(argv[1], "pace") == 0)
        pace(atoi(argv[3]), atof(argv[4]));
    else
        work(atoi(argv[3]));
    return 0;
}

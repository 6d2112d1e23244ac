#include "tests/fake.h"

#include <arpa/inet.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <pthread.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/test.h"

#define CONNECTIONS_MOST 64
#define HEARD_MOST 4096
#define LINES_MOST 16

struct fake {
    pthread_t thread;
    pthread_mutex_t lock; /* of lines, said and heard */
    int listener, end, port;
    const struct fake_line *lines;
    int said[LINES_MOST];
    char heard[HEARD_MOST][64];
    int heard_count;
    struct connection {
        int fd;
        redisReader *reader;
    } connections[CONNECTIONS_MOST];
    int count;
};

static void join(const redisReply *command, char text[256])
{
    size_t len = 0;

    *text = '\0';
    for (size_t i = 0; i < command->elements && len < 200; i++)
        len += (size_t)snprintf(text + len, 256 - len, "%s%.40s", i ? " " : "", command->element[i]->str);
}

/* NULL: close. */
static const char *answer_to(struct fake *f, const redisReply *command)
{
    const struct fake_line *line;
    const char *answer;
    char text[256];
    int i = 0;

    join(command, text);
    pthread_mutex_lock(&f->lock);
    if (f->heard_count < HEARD_MOST)
        snprintf(f->heard[f->heard_count++], sizeof f->heard[0], "%.60s", text);
    for (line = f->lines; line->command; line++, i++)
        if (strncasecmp(text, line->command, strlen(line->command)) == 0 &&
            (!line->times || f->said[i] < line->times))
            break;
    f->said[i]++;
    answer = line->answer;
    pthread_mutex_unlock(&f->lock);
    return answer;
}

static void end_connection(struct fake *f, struct connection *c)
{
    close(c->fd);
    redisReaderFree(c->reader);
    *c = f->connections[--f->count];
}

static bool serve(struct fake *f, struct connection *c)
{
    char bytes[65536];
    ssize_t n = read(c->fd, bytes, sizeof bytes);
    void *command = NULL;
    bool goes_on = n > 0 && redisReaderFeed(c->reader, bytes, (size_t)n) == REDIS_OK;

    while (goes_on && redisReaderGetReply(c->reader, &command) == REDIS_OK && command) {
        const char *answer = answer_to(f, command);

        freeReplyObject(command);
        goes_on = answer && send(c->fd, answer, strlen(answer), MSG_NOSIGNAL) == (ssize_t)strlen(answer);
    }
    return goes_on;
}

static void *run(void *arg)
{
    struct fake *f = arg;

    for (;;) {
        struct pollfd fds[CONNECTIONS_MOST + 2] = {{.fd = f->end, .events = POLLIN},
                                                   {.fd = f->listener, .events = POLLIN}};
        int count = f->count;

        for (int i = 0; i < count; i++)
            fds[i + 2] = (struct pollfd){.fd = f->connections[i].fd, .events = POLLIN};
        poll(fds, (nfds_t)count + 2, -1);
        if (fds[0].revents)
            return NULL;
        for (int i = count - 1; i >= 0; i--)
            if (fds[i + 2].revents && !serve(f, &f->connections[i]))
                end_connection(f, &f->connections[i]);
        if (fds[1].revents && f->count < CONNECTIONS_MOST)
            f->connections[f->count++] =
                (struct connection){accept(f->listener, NULL, NULL), redisReaderCreate()};
    }
}

struct fake *fake_start(const struct fake_line *lines)
{
    struct fake *f = calloc(1, sizeof *f);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;

    assert_non_null(f);
    f->lines = lines;
    pthread_mutex_init(&f->lock, NULL);
    f->end = eventfd(0, EFD_CLOEXEC);
    f->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(f->listener, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(f->listener, 64), 0);
    assert_int_equal(getsockname(f->listener, (struct sockaddr *)&at, &len), 0);
    f->port = ntohs(at.sin_port);
    assert_int_equal(pthread_create(&f->thread, NULL, run, f), 0);
    return f;
}

int fake_port(const struct fake *f)
{
    return f->port;
}

void fake_say(struct fake *f, const struct fake_line *lines)
{
    pthread_mutex_lock(&f->lock);
    f->lines = lines;
    memset(f->said, 0, sizeof f->said);
    pthread_mutex_unlock(&f->lock);
}

int fake_heard(struct fake *f, const char *command)
{
    int n = 0;

    pthread_mutex_lock(&f->lock);
    for (int i = 0; i < f->heard_count; i++)
        n += strncasecmp(f->heard[i], command, strlen(command)) == 0;
    pthread_mutex_unlock(&f->lock);
    return n;
}

void fake_stop(struct fake *f)
{
    eventfd_write(f->end, 1);
    pthread_join(f->thread, NULL);
    while (f->count > 0)
        end_connection(f, &f->connections[0]);
    close(f->listener);
    close(f->end);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

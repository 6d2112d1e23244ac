/* Bytes to the socket of weir serve; Redis allows, denies or is away, as the first byte says. */
#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "serve/callers.h"
#include "serve/http.h"
#include "tests/fuzz/fuzz.h"

#define ROUNDS_MOST 200

static const struct callers_patience patience = {
    .head_us = 60000000, .body_us = 60000000, .bytes_per_s = 1000}; /* no input takes so long */
static uint8_t how;

/* ---- In place of serve/take_batcher.c */

bool __wrap_take_batcher_ask(struct take_batcher *t, struct asked *a);
bool __wrap_take_batcher_check(struct take_batcher *t, struct asked *a);

bool __wrap_take_batcher_ask(struct take_batcher *t, struct asked *a)
{
    static const int statuses[] = {0, 0, WEIR_EUNREACHABLE, WEIR_ENOTFOUND, WEIR_EINPUT, WEIR_ECONFIG};

    (void)t;
    must_hold(*a->q.name && strlen(a->q.name) < sizeof a->q.name && strlen(a->q.key) < sizeof a->q.key);
    must_hold(a->q.cost >= 1);
    a->status = statuses[how % (sizeof statuses / sizeof *statuses)];
    a->why = "why";
    a->take = (struct weir_take){
        .allowed = how & 1, .limit = 10, .remaining = 3, .retry_after_s = 1.5, .reset_after_s = 2};
    return true;
}

bool __wrap_take_batcher_check(struct take_batcher *t, struct asked *a)
{
    (void)t;
    a->status = how & 1 ? WEIR_EUNREACHABLE : 0;
    a->why = "why";
    return true;
}

/* ---- */

static struct ev_loop *loop;
static struct sockaddr_un address = {.sun_family = AF_UNIX};

/* An abstract name: nothing is left behind. */
static void open_server(void)
{
    static struct http *http;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (http) {
        close(fd);
        return;
    }
    snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "weir-fuzz-%d", (int)getpid());
    must_hold(bind(fd, (struct sockaddr *)&address, sizeof address) == 0 && listen(fd, 16) == 0);
    loop = ev_loop_new(0);
    http = http_new(loop, fd, SERVE_ERROR, &patience);
    must_hold(http != NULL);
}

/* What was answered, until the server closes; cut at size. */
static size_t talk(int fd, const uint8_t *data, size_t size, char *answer, size_t most)
{
    size_t len = 0;

    for (int rounds = 0; rounds < ROUNDS_MOST; rounds++) {
        ssize_t n = size > 0 ? send(fd, data, size, MSG_NOSIGNAL) : 0;

        if (n > 0) {
            data += n;
            size -= (size_t)n;
        }
        if (size == 0 && rounds == 0)
            shutdown(fd, SHUT_WR);
        ev_run(loop, EVRUN_NOWAIT);
        n = read(fd, answer + len, most - len);
        if (n == 0 || (n < 0 && errno != EAGAIN))
            break;
        len += n > 0 ? (size_t)n : 0;
        if (len == most)
            break;
    }
    return len;
}

int fuzz_http(const uint8_t *data, size_t size)
{
    char answer[4096];
    size_t len;
    int fd;

    if (size < 1)
        return 0;
    how = data[0];
    open_server();
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    must_hold(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0);
    len = talk(fd, data + 1, size - 1, answer, sizeof answer);
    must_hold(len < 9 || memcmp(answer, "HTTP/1.", 7) == 0);
    close(fd);
    ev_run(loop, EVRUN_NOWAIT);
    return 0;
}

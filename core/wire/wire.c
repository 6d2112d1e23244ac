#include "core/wire/wire.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/arena.h"
#include "core/wire/tls.h"

#define RESTARTED "see whether it was restarted"
#define KEEP_BYTES (1024 * 1024) /* a buffer that a huge command or reply has blown up is given back */

static void forget_all(struct wire *w)
{
    w->fd = -1;
    w->tls = NULL;
    w->advice = RESTARTED;
    w->dialing = w->shaking = false;
    w->all = w->next = NULL;
    w->out = NULL;
    w->out_sent = w->out_len = w->out_capacity = 0;
    w->reader = NULL;
}

void wire_init(struct wire *w, const struct redis_address *address, struct arena *arena)
{
    redis_address_format(address, w->name, sizeof w->name);
    w->arena = arena;
    forget_all(w);
}

static void close_socket(struct wire *w)
{
    if (w->fd >= 0)
        close(w->fd);
    w->fd = -1;
}

static void forget_addresses(struct wire *w)
{
    if (w->all)
        freeaddrinfo(w->all);
    w->all = w->next = NULL;
}

void wire_close(struct wire *w)
{
    close_socket(w);
    forget_addresses(w);
    tls_free(w->tls);
    free(w->out);
    if (w->reader)
        redisReaderFree(w->reader);
    forget_all(w);
}

void wire_move(struct wire *to, struct wire *from)
{
    *to = *from;
    forget_all(from);
}

static int lost(const struct wire *w, int error, struct error *e)
{
    return error_set(e, WEIR_EUNREACHABLE, "redis %s: connection lost: %s; %s", w->name,
                     error ? strerror(error) : "closed by the other side", w->advice);
}

/* Receives once: how many bytes are in w->in, 0: none. */
static int receive(struct wire *w, struct error *e)
{
    ssize_t n;

    do
        n = recv(w->fd, w->in, sizeof w->in, 0);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN)
        return 0;
    return n > 0 ? (int)n : lost(w, n < 0 ? errno : 0, e);
}

/* Receives bytes over TLS. */
static int receive_sealed(struct wire *w, struct error *e)
{
    int n = receive(w, e);

    return n > 0 ? tls_take(w->tls, w->in, (size_t)n, e) : n;
}

/* ---- Connecting */

static const struct {
    int error, status;
    const char *line;
} refusals[] = {
    {ECONNREFUSED, WEIR_EUNREACHABLE,
     "connection refused; is it running? start it, or name another with --redis or REDIS_URL"},
    {ENOENT, WEIR_EUNREACHABLE,
     "no such socket; is it running? start it, or name another with --redis or REDIS_URL"},
    {EACCES, WEIR_EREFUSED,
     "the socket's permissions refuse this user; add it to the group that owns the socket"},
    {EAGAIN, WEIR_EUNREACHABLE, "its queue of new connections is full; try again"},
};

static int cannot_connect(const struct wire *w, int error, struct error *e)
{
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        if (refusals[i].error == error)
            return error_set(e, refusals[i].status, "redis %s: %s", w->name, refusals[i].line);
    return error_set(e, WEIR_EUNREACHABLE,
                     "redis %s: cannot connect: %s; check the address and that it is running", w->name,
                     strerror(error));
}

/* Small commands leave at once, and a peer that vanished is noticed though nothing is asked of it. */
static void tune(int fd)
{
    static const struct {
        int level, option, value;
    } options[] = {
        {IPPROTO_TCP, TCP_NODELAY, 1},   {SOL_SOCKET, SO_KEEPALIVE, 1}, {IPPROTO_TCP, TCP_KEEPIDLE, 15},
        {IPPROTO_TCP, TCP_KEEPINTVL, 5}, {IPPROTO_TCP, TCP_KEEPCNT, 3},
    };

    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        setsockopt(fd, options[i].level, options[i].option, &options[i].value, sizeof options[i].value);
}

/* 0: on its way; else an errno. */
static int dial(struct wire *w, int family, const struct sockaddr *address, socklen_t len)
{
    w->fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (w->fd < 0)
        return errno;
    if (family != AF_UNIX)
        tune(w->fd);
    if (connect(w->fd, address, len) == 0 || errno == EINPROGRESS || errno == EINTR)
        return 0;
    return errno;
}

/* Goes on to the next address of the host; error is how the last one failed. */
static int dial_next(struct wire *w, int error, struct error *e)
{
    while (w->next) {
        const struct addrinfo *one = w->next;

        close_socket(w);
        w->next = one->ai_next;
        error = dial(w, one->ai_family, one->ai_addr, one->ai_addrlen);
        if (!error)
            return WIRE_DIALING;
    }
    cannot_connect(w, error, e);
    wire_close(w);
    return e->status;
}

static int dial_path(struct wire *w, const struct redis_address *address, struct error *e)
{
    struct sockaddr_un path = {.sun_family = AF_UNIX};
    int error;

    snprintf(path.sun_path, sizeof path.sun_path, "%s", address->socket_path);
    error = dial(w, AF_UNIX, (const struct sockaddr *)&path, sizeof path);
    return error ? dial_next(w, error, e) : WIRE_DIALING;
}

int wire_open(struct wire *w, struct route *route, struct error *e)
{
    wire_close(w);
    redis_address_format(&route->to, w->name, sizeof w->name);
    w->all = w->next = route->all;
    w->tls = route->tls;
    route->all = NULL;
    route->tls = NULL;
    w->dialing = true;
    if (!w->tls && w->all)
        w->advice = "see whether it was restarted, or takes TLS only (rediss://)";
    w->reader = w->arena ? arena_reader(w->arena) : redisReaderCreate();
    if (!w->reader) {
        wire_close(w);
        return error_set(e, WEIR_EINTERNAL, "redis %s: out of memory", w->name);
    }
    w->reader->maxbuf = KEEP_BYTES;
    return w->all ? dial_next(w, 0, e) : dial_path(w, &route->to, e);
}

/* What TLS has for the peer goes out, also when the handshake fails: it may say why. */
static int shake(struct wire *w, struct error *e)
{
    struct error ended, unsent;
    int received = receive_sealed(w, &ended), n = tls_shake(w->tls, e), sent = wire_send(w, &unsent);

    if (n < 0)
        return n;
    if (n == 0 && (received < 0 || sent < 0)) {
        *e = received < 0 ? ended : unsent;
        return e->status;
    }
    if (n == 0)
        return WIRE_ON;
    w->shaking = false;
    w->advice = tls_advice(w->tls);
    return WIRE_UP;
}

static int connected(struct wire *w, struct error *e)
{
    int error = 0;
    socklen_t len = sizeof error;

    if (getsockopt(w->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
        error = errno;
    if (error)
        return dial_next(w, error, e);
    forget_addresses(w);
    w->dialing = false;
    if (!w->tls)
        return WIRE_UP;
    w->shaking = true;
    w->advice = "see whether that is its TLS port, and its log";
    return shake(w, e) < 0 ? e->status : WIRE_SHAKING;
}

int wire_go_on(struct wire *w, struct error *e)
{
    return w->shaking ? shake(w, e) : connected(w, e);
}

bool wire_wants_write(const struct wire *w)
{
    const char *bytes;

    return w->dialing || w->out_len > 0 || (w->tls && tls_waiting(w->tls, &bytes) > 0);
}

/* ---- Sending */

/* Makes room for size more bytes behind out_len. */
static bool reserve(struct wire *w, size_t size)
{
    size_t wanted = w->out_capacity ? w->out_capacity : sizeof w->in;
    char *bigger;

    if (w->out_sent > 0 && w->out_len + size > w->out_capacity) {
        memmove(w->out, w->out + w->out_sent, w->out_len - w->out_sent);
        w->out_len -= w->out_sent;
        w->out_sent = 0;
    }
    if (w->out_len + size <= w->out_capacity)
        return true;
    while (wanted < w->out_len + size)
        wanted *= 2;
    bigger = realloc(w->out, wanted);
    if (!bigger)
        return false;
    w->out = bigger;
    w->out_capacity = wanted;
    return true;
}

/* Puts "$12\r\n" and the like. */
static char *put_count(char *at, char mark, size_t count)
{
    char digits[24];
    int n = 0;

    do {
        digits[n++] = (char)('0' + count % 10);
        count /= 10;
    } while (count);
    *at++ = mark;
    while (n > 0)
        *at++ = digits[--n];
    *at++ = '\r';
    *at++ = '\n';
    return at;
}

int wire_add(struct wire *w, const struct args *a, struct error *e)
{
    const size_t overhead = 1 + 20 + 2 + 2; /* of a word: mark, length, two line ends */
    const char *word = a->bytes;
    char *at;

    if (a->failed || !reserve(w, a->len + (a->count + 1) * overhead))
        return error_set(e, WEIR_EINTERNAL, "redis %s: out of memory for a command of %zu bytes", w->name,
                         a->len);
    at = put_count(w->out + w->out_len, '*', a->count);
    for (size_t i = 0; i < a->count; i++) {
        size_t len = (size_t)(a->bytes + a->ends[i] - word);

        at = put_count(at, '$', len);
        memcpy(at, word, len);
        at += len;
        *at++ = '\r';
        *at++ = '\n';
        word += len;
    }
    w->out_len = (size_t)(at - w->out);
    return 0;
}

/* The bytes that go out next, none when all is sent. With TLS they are encrypted slice by slice. */
static int next_bytes(struct wire *w, const char **bytes, size_t *len, struct error *e)
{
    int n;

    *bytes = w->out + w->out_sent;
    *len = w->out_len - w->out_sent;
    if (!w->tls)
        return 0;
    if (tls_waiting(w->tls, bytes) == 0 && *len > 0 && !w->shaking) {
        n = tls_encrypt(w->tls, w->out + w->out_sent, *len, e);
        if (n < 0)
            return n;
        w->out_sent += (size_t)n;
    }
    *len = tls_waiting(w->tls, bytes);
    return 0;
}

/* 0: the socket took it; 1: it is full. */
static int send_bytes(struct wire *w, const char *bytes, size_t len, struct error *e)
{
    ssize_t n = send(w->fd, bytes, len, MSG_NOSIGNAL);

    if (n < 0)
        return errno == EAGAIN ? 1 : errno == EINTR ? 0 : lost(w, errno, e);
    if (w->tls)
        tls_sent(w->tls, (size_t)n);
    else
        w->out_sent += (size_t)n;
    return 0;
}

int wire_send(struct wire *w, struct error *e)
{
    const char *bytes;
    size_t len;
    int n;

    while ((n = next_bytes(w, &bytes, &len, e)) == 0 && len > 0)
        if ((n = send_bytes(w, bytes, len, e)) != 0)
            return n;
    if (n < 0)
        return n;
    w->out_sent = w->out_len = 0;
    if (w->out_capacity > KEEP_BYTES) {
        free(w->out);
        w->out = NULL;
        w->out_capacity = 0;
    }
    return 0;
}

/* ---- Receiving */

static int no_memory(const struct wire *w, struct error *e)
{
    return error_set(e, WEIR_EINTERNAL, "redis %s: out of memory for an answer; free some and try again",
                     w->name);
}

static int feed(struct wire *w, int n, struct error *e)
{
    w->advice = RESTARTED;
    return redisReaderFeed(w->reader, w->in, (size_t)n) == REDIS_OK ? 1 : no_memory(w, e);
}

/* What came before the end of a connection counts, and may say why it ended. */
static int receive_tls(struct wire *w, struct error *e)
{
    struct error ended;
    int received = receive_sealed(w, &ended), n, fed = 0;

    while ((n = tls_decrypt(w->tls, w->in, sizeof w->in, e)) > 0)
        if ((fed = feed(w, n, e)) < 0)
            return fed;
    if (fed > 0 || n < 0)
        return fed > 0 ? fed : n;
    if (received < 0)
        *e = ended;
    return received;
}

int wire_receive(struct wire *w, struct error *e)
{
    int n;

    if (w->tls)
        return receive_tls(w, e);
    n = receive(w, e);
    return n > 0 ? feed(w, n, e) : n;
}

static int not_redis(const struct wire *w, struct error *e)
{
    const char *why = w->reader->errstr;

    if (strstr(why, "\"\\x15\"")) /* an alert */
        return error_set(e, WEIR_EUNREACHABLE, "redis %s: it speaks TLS on this port; write rediss://",
                         w->name);
    return error_set(e, WEIR_EUNREACHABLE,
                     "redis %s: not a Redis server: it answers in another protocol (%s); check the address",
                     w->name, why);
}

int wire_reply(struct wire *w, struct redisReply **reply, struct error *e)
{
    void *whole = NULL;

    if (w->arena && !w->reader->reply)
        arena_clear(w->arena);
    if (redisReaderGetReply(w->reader, &whole) != REDIS_OK)
        return w->reader->err == REDIS_ERR_OOM ? no_memory(w, e) : not_redis(w, e);
    *reply = whole;
    return whole != NULL;
}

bool wire_has_news(const struct wire *w)
{
    char byte;

    return recv(w->fd, &byte, 1, MSG_PEEK) >= 0 || errno != EAGAIN;
}

/* TLS has messages of its own. */
bool wire_is_stale(struct wire *w)
{
    struct error e;

    return wire_has_news(w) && (!w->tls || wire_receive(w, &e) != 0);
}

int wire_timed_out(const struct wire *w, double seconds, struct error *e)
{
    if (w->shaking)
        return error_set(e, WEIR_EUNREACHABLE,
                         "redis %s: no answer to the TLS handshake within %g s; see whether that is its TLS "
                         "port, or a plain "
                         "one (redis://)",
                         w->name, seconds);
    return error_set(e, WEIR_EUNREACHABLE,
                     "redis %s: no answer within %g s; see whether it is stopped, overloaded or cut off",
                     w->name, seconds);
}

/* One thread, one poll loop. A connection is two flows, requests and replies; a flow reads what comes, marks
 * where it must end, and writes what it may. */
#include "tests/proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/clock.h"

#define CONNECTIONS_MAX 64
#define SIDES 2

/* Finds the ends of RESP messages in a stream of bytes. */
struct framer {
    long long missing; /* elements of the message still to come */
    long long skip;    /* bytes of a bulk string still to come, line end included */
    char line[32];
    size_t len;
};

/* Bytes that came together and go on together. */
struct chunk {
    size_t len;
    int64_t due_us;
};

struct flow {
    enum proxy_side side;
    int from, to;
    struct framer framer;
    char *bytes; /* read, not yet written: len of them from begin */
    size_t begin, len, capacity;
    struct chunk *chunks; /* the same, oldest first: count of them from first */
    size_t first, count, room;
    bool ending; /* nothing more is read; to be cut when all is written */
};

struct connection {
    bool open;
    bool asked; /* something, and nothing was answered since */
    struct flow flows[SIDES];
};

/* What the test asks for; guarded by the mutex. */
struct orders {
    unsigned messages[SIDES]; /* the message to cut at, counted down; 0: none */
    size_t bytes[SIDES];
    pid_t victim;     /* killed at the cut; 0: nobody */
    char insert[256]; /* instead of the cut; "": not */
    unsigned then;    /* it is inserted again at that message */
    bool has_cut, cut_all;
    bool blackhole, trickle;
    int64_t delay_us[SIDES], stalled_until_us[SIDES];
    char inject[256];
};

struct proxy {
    pthread_t thread;
    pthread_mutex_t mutex;
    struct orders orders;
    bool stopping;
    int accepted, trips;
    int claims;

    int wake;
    int listeners[2];
    struct connection connections[CONNECTIONS_MAX];
    char server_socket[128], socket[128], url[160], tcp_url[64];
    int port, server_port; /* server_port 0: it is reached by its socket */
};

/* ---- Framing */

/* A whole line of the protocol, its first byte the kind. */
static void take_line(struct framer *f)
{
    long long n = f->len > 0 ? strtoll(f->line + 1, NULL, 10) : 0;

    if (f->line[0] == '*' && n > 0)
        f->missing += n;
    if (f->line[0] == '$' && n >= 0)
        f->skip = n + 2;
    f->missing -= f->skip == 0;
    f->len = 0;
}

/* Takes the next byte; f->missing is 0 between messages. */
static void framer_take(struct framer *f, char c)
{
    if (f->missing == 0)
        f->missing = 1;
    if (f->skip > 0) {
        f->missing -= --f->skip == 0;
    } else if (c == '\n') {
        take_line(f);
    } else if (f->len + 1 < sizeof f->line) {
        f->line[f->len++] = c;
        f->line[f->len] = '\0';
    }
}

/* How many of the next bytes are inside of one bulk string, and end nothing: all of them at once. */
static size_t framer_skip(struct framer *f, size_t len)
{
    size_t n = f->skip > 1 ? (size_t)f->skip - 1 : 0;

    n = n < len ? n : len;
    f->skip -= (long long)n;
    return n;
}

/* ---- Flows */

/* Room for n more at the end of a buffer of things of that size: what is gone at its head, or more memory. */
static void *make_room(void *things, size_t size, size_t *begin, size_t len, size_t n, size_t *capacity)
{
    if (*begin + len + n <= *capacity)
        return things;
    if (len > 0)
        memmove(things, (char *)things + *begin * size, len * size);
    *begin = 0;
    if (2 * (len + n) <= *capacity) /* else it would be moved again soon */
        return things;
    *capacity = 2 * (len + n) > 65536 / size ? 2 * (len + n) : 65536 / size;
    things = realloc(things, *capacity * size);
    if (!things)
        abort();
    return things;
}

static void flow_append(struct flow *f, const char *bytes, size_t len, int64_t due_us)
{
    f->bytes = make_room(f->bytes, 1, &f->begin, f->len, len, &f->capacity);
    memcpy(f->bytes + f->begin + f->len, bytes, len);
    f->len += len;
    f->chunks = make_room(f->chunks, sizeof *f->chunks, &f->first, f->count, 1, &f->room);
    f->chunks[f->first + f->count++] = (struct chunk){len, due_us};
}

/* Forgets the first n bytes. */
static void flow_drop(struct flow *f, size_t n)
{
    f->begin += n;
    f->len -= n;
    for (; f->count > 0 && f->chunks[f->first].len <= n; f->first++, f->count--)
        n -= f->chunks[f->first].len;
    if (f->count > 0)
        f->chunks[f->first].len -= n;
}

/* When something of it may be written; INT64_MAX: there is nothing. */
static int64_t next_due_us(const struct proxy *p, const struct flow *f)
{
    int64_t stalled_us = p->orders.stalled_until_us[f->side];

    if (f->count == 0 || p->orders.blackhole)
        return INT64_MAX;
    return f->chunks[f->first].due_us > stalled_us ? f->chunks[f->first].due_us : stalled_us;
}

/* How many of these bytes may pass before the cut that the test has ordered; sets f->ending at the cut. An insertion comes there instead. */
static size_t allowed(struct proxy *p, struct flow *f, const char *bytes, size_t len)
{
    unsigned *messages = &p->orders.messages[f->side];
    size_t *limit = &p->orders.bytes[f->side], i;

    for (i = 0; i < len && !f->ending; i++) {
        if (*limit == 0 && (i += framer_skip(&f->framer, len - i)) == len)
            break;
        if (f->framer.missing == 0 && *messages > 0 && --*messages == 0) {
            if (p->orders.insert[0] && f->side == PROXY_REQUESTS)
                return i;
            if (p->orders.victim > 0)
                kill(p->orders.victim, SIGKILL);
            f->ending = true;
            break;
        }
        framer_take(&f->framer, bytes[i]);
        f->ending = *limit > 0 && --*limit == 0;
    }
    p->orders.has_cut = p->orders.has_cut || f->ending;
    return i;
}

/* What the test wants inserted comes at the head of the message that has just been reached. */
static void insert(struct proxy *p, struct flow *f)
{
    struct orders *o = &p->orders;

    flow_append(f, o->insert, strlen(o->insert), clock_mono_us() + o->delay_us[f->side]);
    o->has_cut = o->then == 0;
    o->messages[f->side] = o->then > 0 ? o->then + 1 : 0; /* this one is reached once more */
    o->then = 0;
    if (o->has_cut)
        o->insert[0] = '\0';
}

static void pass_on(struct proxy *p, struct flow *f, const char *bytes, size_t len)
{
    for (size_t at = 0; at < len && !f->ending;) {
        size_t n = allowed(p, f, bytes + at, len - at);

        if (n > 0)
            flow_append(f, bytes + at, n, clock_mono_us() + p->orders.delay_us[f->side]);
        at += n;
        if (at < len && !f->ending)
            insert(p, f);
    }
}

static int count_claims(const char *bytes, size_t len)
{
    static const char word[] = "_claim\r\n";
    const char *at = bytes, *end = bytes + len;
    int claims = 0;

    while ((at = memmem(at, (size_t)(end - at), word, sizeof word - 1))) {
        at += sizeof word - 1;
        claims++;
    }
    return claims;
}

static void flow_read(struct proxy *p, struct connection *c, struct flow *f)
{
    char bytes[65536];
    ssize_t n = read(f->from, bytes, sizeof bytes);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        f->ending = true;
        return;
    }
    p->trips += f->side == PROXY_REQUESTS && !c->asked;
    c->asked = f->side == PROXY_REQUESTS;
    if (f->side == PROXY_REQUESTS)
        p->claims += count_claims(bytes, (size_t)n);
    pass_on(p, f, bytes, (size_t)n);
    if (f->ending && f->side == PROXY_REQUESTS)
        c->flows[PROXY_REPLIES].ending = true;
}

/* All that is due by now. */
static void flow_write(struct proxy *p, struct flow *f, int64_t now_us)
{
    size_t due = 0;
    ssize_t n;

    for (size_t i = f->first; i < f->first + f->count && f->chunks[i].due_us <= now_us; i++)
        due += f->chunks[i].len;
    n = send(f->to, f->bytes + f->begin, p->orders.trickle && f->side == PROXY_REPLIES ? 1 : due,
             MSG_NOSIGNAL);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    flow_drop(f, n < 0 ? f->len : (size_t)n); /* gone; what it said before it went is still to be passed on */
}

/* ---- Connections */

static void close_connection(struct connection *c)
{
    close(c->flows[PROXY_REQUESTS].from);
    close(c->flows[PROXY_REPLIES].from);
    for (int side = 0; side < SIDES; side++) {
        free(c->flows[side].bytes);
        free(c->flows[side].chunks);
    }
    *c = (struct connection){0};
}

static struct sockaddr_un address_of(const char *socket_path)
{
    struct sockaddr_un path = {.sun_family = AF_UNIX};

    memcpy(path.sun_path, socket_path, strnlen(socket_path, sizeof path.sun_path - 1));
    return path;
}

/* What is written goes out at once: the delay is ours alone. A unix socket has no such flag. */
static void send_at_once(int fd)
{
    const int on = 1;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static int dial(int family, const void *address, socklen_t len)
{
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    send_at_once(fd);
    if (connect(fd, address, len) == 0)
        return fd;
    close(fd);
    return -1;
}

static int dial_server(const struct proxy *p)
{
    struct sockaddr_un path = address_of(p->server_socket);
    struct sockaddr_in port = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                               .sin_port = htons((uint16_t)p->server_port)};

    return p->server_port ? dial(AF_INET, &port, sizeof port) : dial(AF_UNIX, &path, sizeof path);
}

static void accept_one(struct proxy *p, int listener)
{
    int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    int server = client >= 0 ? dial_server(p) : -1;
    struct connection *c = p->connections;

    while (c < p->connections + CONNECTIONS_MAX && c->open)
        c++;
    send_at_once(client);
    if (server < 0 || c == p->connections + CONNECTIONS_MAX) {
        if (client >= 0)
            close(client);
        if (server >= 0)
            close(server);
        return;
    }
    fcntl(server, F_SETFL, O_NONBLOCK);
    p->accepted++;
    *c = (struct connection){
        .open = true,
        .flows = {[PROXY_REQUESTS] = {.side = PROXY_REQUESTS, .from = client, .to = server},
                  [PROXY_REPLIES] = {.side = PROXY_REPLIES, .from = server, .to = client}},
    };
}

/* Says what the test wants said, once, to the first connection there is. */
static void inject(struct proxy *p)
{
    for (struct connection *c = p->connections; p->orders.inject[0] && c < p->connections + CONNECTIONS_MAX;
         c++) {
        if (!c->open)
            continue;
        flow_append(&c->flows[PROXY_REPLIES], p->orders.inject, strlen(p->orders.inject), 0);
        flow_write(p, &c->flows[PROXY_REPLIES], clock_mono_us());
        p->orders.inject[0] = '\0';
    }
}

/* ---- The loop */

struct polled {
    struct pollfd fds[3 + CONNECTIONS_MAX * SIDES];
    struct flow *flows[CONNECTIONS_MAX * SIDES];
    struct connection *connections[CONNECTIONS_MAX * SIDES];
    nfds_t count; /* of flows; the flow i reads at fds[3 + i] */
    int64_t timeout_us;
};

static void prepare(struct proxy *p, struct polled *q)
{
    int64_t now_us = clock_mono_us(), due_us, wait_us;
    struct flow *f;

    q->count = 0;
    q->timeout_us = 1000000;
    q->fds[0] = (struct pollfd){.fd = p->wake, .events = POLLIN};
    q->fds[1] = (struct pollfd){.fd = p->listeners[0], .events = POLLIN};
    q->fds[2] = (struct pollfd){.fd = p->listeners[1], .events = POLLIN};
    for (struct connection *c = p->connections; c < p->connections + CONNECTIONS_MAX; c++) {
        for (int side = 0; c->open && side < SIDES; side++) {
            f = &c->flows[side];
            q->flows[q->count] = f;
            q->connections[q->count] = c;
            q->fds[3 + q->count++] =
                (struct pollfd){.fd = p->orders.blackhole || f->ending ? -1 : f->from, .events = POLLIN};
            due_us = next_due_us(p, f);
            wait_us = due_us == INT64_MAX ? INT64_MAX
                      : due_us > now_us   ? due_us - now_us
                      : p->orders.trickle ? 0
                                          : 1000; /* a full socket */
            q->timeout_us = wait_us < q->timeout_us ? wait_us : q->timeout_us;
        }
    }
}

static void work(struct proxy *p, struct polled *q)
{
    int64_t now_us;

    for (nfds_t i = 0; i < q->count; i++) {
        if (q->fds[3 + i].revents && !q->flows[i]->ending && !p->orders.blackhole)
            flow_read(p, q->connections[i], q->flows[i]);
        now_us = clock_mono_us();
        if (next_due_us(p, q->flows[i]) <= now_us)
            flow_write(p, q->flows[i], now_us);
    }
    for (struct connection *c = p->connections; c < p->connections + CONNECTIONS_MAX; c++)
        for (int side = 0; c->open && side < SIDES; side++)
            if (p->orders.cut_all || (c->flows[side].ending && c->flows[side].len == 0))
                close_connection(c);
    p->orders.cut_all = false;
}

static void *run(void *arg)
{
    struct proxy *p = arg;
    struct polled *q = calloc(1, sizeof *q);
    struct timespec timeout;
    uint64_t woken;

    pthread_mutex_lock(&p->mutex);
    while (q && !p->stopping) {
        inject(p);
        prepare(p, q);
        pthread_mutex_unlock(&p->mutex);
        timeout =
            (struct timespec){.tv_sec = q->timeout_us / 1000000, .tv_nsec = q->timeout_us % 1000000 * 1000};
        if (ppoll(q->fds, 3 + q->count, &timeout, NULL) < 0)
            for (nfds_t i = 0; i < 3 + q->count; i++)
                q->fds[i].revents = 0;
        pthread_mutex_lock(&p->mutex);
        if (q->fds[0].revents && read(p->wake, &woken, sizeof woken) < 0)
            continue;
        work(p, q);
        for (int i = 0; i < 2; i++)
            if (q->fds[1 + i].revents)
                accept_one(p, p->listeners[i]);
    }
    for (struct connection *c = p->connections; c < p->connections + CONNECTIONS_MAX; c++)
        if (c->open)
            close_connection(c);
    pthread_mutex_unlock(&p->mutex);
    free(q);
    return NULL;
}

/* ---- For the test */

static int listen_on(struct proxy *p)
{
    struct sockaddr_un path = address_of(p->socket);
    struct sockaddr_in port = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof port;

    p->listeners[0] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    p->listeners[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (bind(p->listeners[0], (struct sockaddr *)&path, sizeof path) < 0 ||
        bind(p->listeners[1], (struct sockaddr *)&port, sizeof port) < 0 ||
        listen(p->listeners[0], 128) < 0 || listen(p->listeners[1], 128) < 0 ||
        getsockname(p->listeners[1], (struct sockaddr *)&port, &len) < 0)
        return -1;
    p->port = ntohs(port.sin_port);
    return 0;
}

static void free_all(struct proxy *p)
{
    close(p->listeners[0]);
    close(p->listeners[1]);
    close(p->wake);
    unlink(p->socket);
    pthread_mutex_destroy(&p->mutex);
    free(p);
}

struct proxy *proxy_open(const char *folder, const char *socket, int port)
{
    static atomic_uint started;
    struct proxy *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    p->server_port = port;
    snprintf(p->server_socket, sizeof p->server_socket, "%s", socket);
    snprintf(p->socket, sizeof p->socket, "%s/proxy%u.sock", folder, atomic_fetch_add(&started, 1));
    snprintf(p->url, sizeof p->url, "unix://%s", p->socket);
    p->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&p->mutex, NULL);
    if (listen_on(p) != 0 || pthread_create(&p->thread, NULL, run, p) != 0) {
        free_all(p);
        return NULL;
    }
    snprintf(p->tcp_url, sizeof p->tcp_url, "redis://127.0.0.1:%d", p->port);
    return p;
}

/* Changes of the orders go between these two. */
static struct orders *begin_orders(struct proxy *p)
{
    pthread_mutex_lock(&p->mutex);
    return &p->orders;
}

static void end_orders(struct proxy *p)
{
    const uint64_t one = 1;

    pthread_mutex_unlock(&p->mutex);
    if (write(p->wake, &one, sizeof one) < 0)
        abort();
}

void proxy_stop(struct proxy *p)
{
    if (!p)
        return;
    begin_orders(p);
    p->stopping = true;
    end_orders(p);
    pthread_join(p->thread, NULL);
    free_all(p);
}

const char *proxy_url(const struct proxy *p)
{
    return p->url;
}

const char *proxy_tcp_url(const struct proxy *p)
{
    return p->tcp_url;
}

int proxy_tcp_port(const struct proxy *p)
{
    return p->port;
}

void proxy_kill_before(struct proxy *p, enum proxy_side side, unsigned n, pid_t victim)
{
    struct orders *o = begin_orders(p);

    o->messages[side] = n;
    o->victim = victim;
    o->has_cut = false;
    end_orders(p);
}

void proxy_cut_before(struct proxy *p, enum proxy_side side, unsigned n)
{
    proxy_kill_before(p, side, n, 0);
}

void proxy_insert_before(struct proxy *p, unsigned n, unsigned m, const char *bytes)
{
    struct orders *o = begin_orders(p);

    o->messages[PROXY_REQUESTS] = n;
    o->then = m;
    snprintf(o->insert, sizeof o->insert, "%s", bytes);
    o->has_cut = false;
    end_orders(p);
}

void proxy_cut_after_bytes(struct proxy *p, enum proxy_side side, size_t n)
{
    struct orders *o = begin_orders(p);

    o->bytes[side] = n;
    o->has_cut = false;
    end_orders(p);
}

void proxy_blackhole(struct proxy *p, bool on)
{
    begin_orders(p)->blackhole = on;
    end_orders(p);
}

void proxy_delay(struct proxy *p, enum proxy_side side, int64_t delay_us)
{
    begin_orders(p)->delay_us[side] = delay_us;
    end_orders(p);
}

void proxy_stall(struct proxy *p, enum proxy_side side, int64_t for_us)
{
    begin_orders(p)->stalled_until_us[side] = clock_mono_us() + for_us;
    end_orders(p);
}

void proxy_trickle(struct proxy *p, bool on)
{
    begin_orders(p)->trickle = on;
    end_orders(p);
}

static bool is_pending(const struct proxy *p)
{
    bool connected = false;

    for (int i = 0; i < CONNECTIONS_MAX; i++)
        connected = connected || p->connections[i].open;
    return p->orders.cut_all || (connected && p->orders.inject[0]);
}

/* Returns when the thread has done what it can do at once. */
static void wait_until_done(struct proxy *p)
{
    bool pending = true;

    while (pending) {
        clock_sleep_until(clock_mono_us() + 100);
        begin_orders(p);
        pending = is_pending(p);
        end_orders(p);
    }
}

void proxy_inject(struct proxy *p, const char *bytes)
{
    struct orders *o = begin_orders(p);

    snprintf(o->inject, sizeof o->inject, "%s", bytes);
    end_orders(p);
    wait_until_done(p);
}

void proxy_cut_all(struct proxy *p)
{
    begin_orders(p)->cut_all = true;
    end_orders(p);
    wait_until_done(p);
}

bool proxy_has_cut(struct proxy *p)
{
    bool has_cut = begin_orders(p)->has_cut;

    end_orders(p);
    return has_cut;
}

int proxy_accepted(struct proxy *p)
{
    int accepted;

    begin_orders(p);
    accepted = p->accepted;
    end_orders(p);
    return accepted;
}

int proxy_trips(struct proxy *p)
{
    int trips;

    begin_orders(p);
    trips = p->trips;
    end_orders(p);
    return trips;
}

int proxy_claims(struct proxy *p)
{
    int claims;

    begin_orders(p);
    claims = p->claims;
    end_orders(p);
    return claims;
}

/* --http: a job is a POST to a URL, its body the job, with what Weir knows of it in front; the answer's status is its end:
 *
 *   2xx               done
 *   429, 503          throttled, as long as Retry-After says (seconds or a date), or without a time
 *   any other 4xx     dead, but for 408 and 425, which ask for another try
 *   all else          retry: 5xx, a redirect (none is followed), no connection, no answer in time
 *
 * An answer of 2xx with the header "Weir-Result: true" has the job's result as its body. "Weir-Spent: 3,tokens=1210" says what the job cost in
 * truth.
 *
 * A status that was read counts, whatever becomes of the body: it may end early, or be slow.
 *
 * One attempt is one POST. libcurl would send a request again when a kept connection ends without an answer,
 * though the endpoint may have read the job: it cannot rewind a body that it is handed piece by piece.
 *
 * libcurl does it (curl_loop.c), and keeps connections open for the next job. A proxy is used as the environment says
 * (http_proxy, https_proxy, no_proxy), but never for this machine.
 *
 * libcurl resolves names on threads, and would wait for such a thread when its request ends before it: the
 * loop would stand still. CURLOPT_QUICK_EXIT prevents that, from 7.87 on. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"
#include "core/decimal.h"
#include "core/spawn.h"
#include "throttle/cost.h"
#include "worker/way/curl_loop.h"
#include "worker/way/way.h"
#include "worker/way/weir_job.h"

#define TIMEOUT_MS 300000L        /* of a request whose job names none */
#define CONNECT_TIMEOUT_MS 10000L /* a host that is gone does not say so */
#define ANSWER_MOST (64 * 1024)   /* bytes: more than that of an answer is not read */
#define BODY_S 1.0                /* for the body of an answer whose status was read */
#define HEAD_MOST 200 /* bytes of the beginning that the reason keeps, beside a struct tail of the end */

struct request {
    struct request *prev, *next;
    struct push *push;
    struct task *task;
    CURL *easy; /* NULL: it has ended */
    struct curl_slist *headers;
    char error[CURL_ERROR_SIZE], head[HEAD_MOST], retry_after[64], date[64], leaves[64],
        spent[COST_TEXT_SIZE];
    struct tail tail;       /* of the answer's body, behind its head */
    char *body;             /* all of it, where that is the result */
    char front[FRONT_SIZE]; /* the body of the request is this, and job_rest */
    struct span job_rest;
    size_t head_len, answer_len, sent; /* sent: of both */
    long status;                       /* of the answer whose headers have come; 0: none yet */
    ev_timer rest;                     /* for its body */
    bool is_late;                      /* it has not come in time */
};

struct push {
    const struct identity *identity;
    char *url;
    bool local; /* this machine: no proxy */
    struct curl_loop transfers;
    struct request *requests;
};

/* ---- The end of a request */

static void free_transfer(struct request *r)
{
    curl.easy_cleanup(r->easy);
    curl.slist_free_all(r->headers);
    r->easy = NULL;
    r->headers = NULL;
}

static void end_request(struct request *r, enum task_end end, double after_s, const char *reason)
{
    struct task *task = r->task;

    ev_timer_stop(task->handler->runner->host.loop, &r->rest);
    curl.multi_remove_handle(r->push->transfers.multi, r->easy);
    free_transfer(r);
    *(r->prev ? &r->prev->next : &r->push->requests) = r->next;
    if (r->next)
        r->next->prev = r->prev;
    task_finish(task, end, after_s, reason);
    task_ended(task);
}

/* Reads Retry-After: seconds, rounded up, or a date, which counts from the answer's own date. -1: there is none, or none that can be read,
 * which is logged. */
static double retry_after_s(const struct request *r)
{
    time_t till, now;
    char *end;
    double seconds = decimal_read(r->retry_after, &end);

    if (!r->retry_after[0])
        return -1;
    if (*end == '\0' && r->retry_after[strspn(r->retry_after, "0123456789.")] == '\0')
        return ceil(seconds);
    till = isalpha((unsigned char)r->retry_after[0]) ? curl.getdate(r->retry_after, NULL) : -1;
    now = r->date[0] ? curl.getdate(r->date, NULL) : -1;
    if (now < 0)
        now = time(NULL);
    if (till >= 0)
        return till > now ? (double)(till - now) : 0;
    task_log(LOG_LEVEL_WARN, r->task,
             "wrong answer: Retry-After: %s: must be a number of seconds or a date, and counts as left out",
             r->retry_after);
    return -1;
}

/* Adds the beginning and the end of the answer's body to a reason; task_finish() marks what is missing between them. */
static void append_body(const struct request *r, char *reason, size_t len)
{
    if (r->head_len == 0)
        return;
    reason[len++] = ':';
    reason[len++] = ' ';
    memcpy(reason + len, r->head, r->head_len);
    memcpy(reason + len + r->head_len, r->tail.at, r->tail.len);
    reason[len + r->head_len + r->tail.len] = '\0';
    for (size_t i = 0; i < r->head_len + r->tail.len; i++)
        if (!reason[len + i])
            reason[len + i] = ' ';
}

/* True for a status that ends the job for good. 408 (the request took too long) and 425 (it came too early) say nothing about the job. */
static bool is_final(long status)
{
    return status >= 400 && status < 500 && status != 408 && status != 425;
}

static bool is_done(long status)
{
    return status >= 200 && status < 300;
}

/* What is more than ANSWER_MOST is not read, and too large for a result. */
static void take_result(const struct request *r, bool whole)
{
    if (r->body && whole)
        task_result(r->task, (struct span){r->body, r->answer_len});
    else if (r->leaves[0])
        task_log(LOG_LEVEL_WARN, r->task, "wrong result: %s; it counts as left out",
                 r->body ? "the body did not come whole" : "Weir-Result must be true, and a body there");
}

/* whole: its body has come. */
static void answered(struct request *r, long status, bool whole)
{
    char reason[HEAD_MOST + TAIL_SIZE + 64];
    char *location = NULL;

    curl.easy_getinfo(r->easy, CURLINFO_REDIRECT_URL, &location);
    if (location)
        snprintf(reason, sizeof reason, "HTTP %ld: a redirect to %.1000s, which is not followed", status,
                 location);
    else
        append_body(r, reason, (size_t)snprintf(reason, sizeof reason, "HTTP %ld", status));
    if (r->spent[0])
        task_spent_text(r->task, r->spent);
    if (is_done(status))
        take_result(r, whole);
    if (is_done(status))
        end_request(r, END_DONE, -1, NULL);
    else if (status == 429 || status == 503)
        end_request(r, END_THROTTLED, retry_after_s(r), reason);
    else
        end_request(r, is_final(status) ? END_DEAD : END_RETRY, -1, reason);
}

/* Ends the task of a request. A status that was read counts, however its body ends. */
static void completed(void *request, CURLcode code)
{
    struct request *r = request;
    char reason[CURL_ERROR_SIZE + 32];
    long status = 0;

    curl.easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status >= 200) {
        answered(r, status, code == CURLE_OK || r->answer_len > ANSWER_MOST);
        return;
    }
    if (code == CURLE_SEND_FAIL_REWIND || code == CURLE_GOT_NOTHING)
        snprintf(reason, sizeof reason, "no answer: the connection was closed after the job was sent");
    else
        snprintf(reason, sizeof reason, "no answer: %s", r->error[0] ? r->error : curl.easy_strerror(code));
    end_request(r, END_RETRY, -1, reason);
}

/* Hears that the body has not come in time. If this process stood still, the loop first reads what has come meanwhile. */
static void on_rest(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct request *r = timer->data;

    (void)events;
    if (r->is_late) {
        answered(r, r->status, false);
        return;
    }
    r->is_late = true;
    ev_timer_set(timer, 0, 0);
    ev_timer_start(loop, timer);
}

/* Awaits the body of an answer that came in time: it is for the reason, and for the connection to be kept. */
static void await_body(struct request *r)
{
    struct ev_loop *loop = r->task->handler->runner->host.loop;

    curl.easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &r->status);
    if (r->status < 200)
        return;
    r->task->timeout_us = 0;
    ev_now_update(loop);
    ev_timer_set(&r->rest, BODY_S, 0);
    ev_timer_start(loop, &r->rest);
}

/* ---- The job as it goes */

static size_t on_send(char *to, size_t size, size_t n, void *arg)
{
    struct request *r = arg;
    size_t front = strlen(r->front), at = r->sent < front ? r->sent : r->sent - front;
    struct span part = r->sent < front ? (struct span){r->front, front} : r->job_rest;
    size_t len = size * n < part.len - at ? size * n : part.len - at;

    memcpy(to, part.at + at, len);
    r->sent += len;
    return len;
}

/* ---- The answer as it comes */

/* Keeps what has come of a result. */
static void keep_body(struct request *r, const char *bytes, size_t n)
{
    if (!r->body && strcasecmp(r->leaves, "true") == 0)
        r->body = malloc(ANSWER_MOST);
    if (r->body && r->answer_len < ANSWER_MOST)
        memcpy(r->body + r->answer_len, bytes,
               n < ANSWER_MOST - r->answer_len ? n : ANSWER_MOST - r->answer_len);
}

static size_t on_body(const char *bytes, size_t size, size_t n, void *arg)
{
    struct request *r = arg;
    size_t room = HEAD_MOST - r->head_len, head = n < room ? n : room;

    keep_body(r, bytes, n);
    memcpy(r->head + r->head_len, bytes, head);
    r->head_len += head;
    tail_keep(&r->tail, bytes + head, n - head);
    r->answer_len += n;
    return r->answer_len > ANSWER_MOST ? 0 : size * n;
}

/* Copies the value of a header line if the header has that name. */
static void keep_header(const char *line, size_t len, const char *name, char *value, size_t size)
{
    size_t name_len = strlen(name);

    if (len < name_len || strncasecmp(line, name, name_len) != 0)
        return;
    line += name_len;
    len -= name_len;
    for (; len > 0 && isspace((unsigned char)*line); len--)
        line++;
    while (len > 0 && isspace((unsigned char)line[len - 1]))
        len--;
    snprintf(value, size, "%.*s", (int)len, line);
}

static size_t on_header(char *line, size_t size, size_t n, void *arg)
{
    struct request *r = arg;

    if (n > 5 && strncmp(line, "HTTP/", 5) == 0) /* the next one, after a "100 Continue" */
        r->retry_after[0] = r->date[0] = r->leaves[0] = r->spent[0] = '\0';
    keep_header(line, n, "Retry-After:", r->retry_after, sizeof r->retry_after);
    keep_header(line, n, "Date:", r->date, sizeof r->date);
    keep_header(line, n, "Weir-Result:", r->leaves, sizeof r->leaves);
    keep_header(line, n, "Weir-Spent:", r->spent, sizeof r->spent);
    if (r->status < 200 && n > 0 && (*line == '\r' || *line == '\n'))
        await_body(r);
    return size * n;
}

/* ---- A request */

static bool add_line(struct request *r, const char *line)
{
    struct curl_slist *longer = curl.slist_append(r->headers, line);

    if (longer)
        r->headers = longer;
    return longer;
}

static bool add_header(struct request *r, const char *name, struct span value)
{
    char line[256];

    snprintf(line, sizeof line, "%s: %.*s", name, (int)value.len, value.at);
    return add_line(r, line);
}

static bool add_identity(struct request *r)
{
    const struct identity *i = r->push->identity;
    char signature[SIGNATURE_SIZE];
    struct error e;

    for (int n = 0; n < i->header_count; n++)
        if (!add_line(r, i->headers[n]))
            return false;
    return i->secret_count == 0 || (identity_sign(i, clock_wall_us() / 1000000, span_str(r->front),
                                                  r->job_rest, signature, &e) == 0 &&
                                    add_header(r, "Weir-Signature", span_str(signature)));
}

/* True for hex and dashes, as W3C has it: nothing else of a foreign job gets into a header. */
static bool is_traceparent(struct span text)
{
    return text.at && text.len <= 128 && strspn(text.at, "0123456789abcdef-") >= text.len;
}

static bool add_headers(struct request *r)
{
    const struct task *task = r->task;
    struct span trace = task->view.traceparent;
    char attempt[16], enqueued[ENQUEUED_SIZE];
    int len = snprintf(attempt, sizeof attempt, "%d", task->attempts + 1);

    task_enqueued(task, enqueued);
    return add_header(r, "Content-Type", (struct span){"application/json", 16}) &&
           add_header(r, "Expect", (struct span){"", 0}) && /* no asking before: a job is small */
           add_header(r, "Weir-Job-Id", task->view.id) && add_header(r, "Weir-Job-Type", task->view.type) &&
           add_header(r, "Weir-Attempt", (struct span){attempt, (size_t)len}) &&
           (!enqueued[0] || add_header(r, "Weir-Enqueued-At", span_str(enqueued))) &&
           (!is_traceparent(trace) || add_header(r, "traceparent", trace)) && add_identity(r);
}

static void set_options(struct request *r)
{
    const struct task *task = r->task;
    CURL *easy = r->easy;

    curl.easy_setopt(easy, CURLOPT_PRIVATE, r);
    curl.easy_setopt(easy, CURLOPT_URL, r->push->url);
    curl.easy_setopt(easy, CURLOPT_POST, 1L);
    curl.easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)(strlen(r->front) + r->job_rest.len));
    curl.easy_setopt(easy, CURLOPT_READFUNCTION, on_send);
    curl.easy_setopt(easy, CURLOPT_READDATA, r);
    curl.easy_setopt(easy, CURLOPT_HTTPHEADER, r->headers);
    curl.easy_setopt(easy, CURLOPT_USERAGENT, "weir/" WEIR_VERSION);
    curl.easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl.easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L); /* leaves the resolver's thread alone */
    curl.easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
    if (!task->timeout_us) /* else the worker ends it */
        curl.easy_setopt(easy, CURLOPT_TIMEOUT_MS, TIMEOUT_MS);
    if (r->push->local)
        curl.easy_setopt(easy, CURLOPT_PROXY, "");
    curl.easy_setopt(easy, CURLOPT_ERRORBUFFER, r->error);
    curl.easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl.easy_setopt(easy, CURLOPT_WRITEDATA, r);
    curl.easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L); /* a proxy's 200 is no answer */
    curl.easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl.easy_setopt(easy, CURLOPT_HEADERDATA, r);
}

static void start(struct task *task)
{
    struct push *p = task->handler->runner->state;
    struct request *r = calloc(1, sizeof *r);

    task->state = r;
    if (r) {
        r->push = p;
        r->task = task;
        r->job_rest = task_front(task, r->front);
        ev_timer_init(&r->rest, on_rest, 0, 0);
        ev_set_priority(&r->rest, EV_MINPRI); /* behind what has come */
        r->rest.data = r;
    }
    if (!r || !(r->easy = curl.easy_init()) || !add_headers(r)) {
        task_unable(task, "out of memory");
        if (r)
            free_transfer(r);
        task_ended(task);
        return;
    }
    if (!task_call(task)) {
        free_transfer(r);
        task_ended(task);
        return;
    }
    set_options(r);
    r->next = p->requests;
    if (r->next)
        r->next->prev = r;
    p->requests = r;
    curl.multi_add_handle(p->transfers.multi, r->easy);
}

static void end(struct task *task, bool force)
{
    struct request *r = task->state;

    (void)force;
    if (r && r->easy && r->status >= 200)
        answered(r, r->status, false);
    else if (r && r->easy)
        end_request(r, END_RETRY, -1, "no answer: ended before one came");
}

static void release(struct task *task)
{
    struct request *r = task->state;

    free(r->body);
    free(r);
}

/* ---- A type */

static int open_push(struct runner *runner, struct error *e)
{
    struct push *p = runner->state;

    return curl_loop_open(&p->transfers, runner->host.loop, completed)
               ? 0
               : error_set(e, WEIR_EINTERNAL, "worker: out of memory");
}

static void close_push(struct runner *runner)
{
    struct push *p = runner->state;

    while (p->requests)
        end_request(p->requests, END_BACK, 0, NULL);
    curl_loop_close(&p->transfers);
}

static void free_push(void *push)
{
    struct push *p = push;

    free(p->url);
    free(p);
}

static const struct way http_way = {
    .name = "http",
    .start = start,
    .end = end,
    .release = release,
    .open = open_push,
    .close = close_push,
    .free = free_push,
};

static bool is_local(const char *host)
{
    return strcasecmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 || strcmp(host, "[::1]") == 0;
}

static bool is_http(const char *scheme)
{
    return strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0;
}

/* Reads a URL of http or https. */
static bool read_url(const char *text, bool *local)
{
    CURLU *url = curl.url();
    char *scheme = NULL, *host = NULL;
    bool good = url && curl.url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK &&
                curl.url_get(url, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
                curl.url_get(url, CURLUPART_HOST, &host, 0) == CURLUE_OK && is_http(scheme);

    *local = good && is_local(host);
    curl.free(scheme);
    curl.free(host);
    curl.url_cleanup(url);
    return good;
}

int http_add(struct handlers *h, const char *type, const char *url, struct error *e)
{
    const char *missing = curl_load();
    struct push *p;

    if (*missing)
        return error_set(e, WEIR_ECONFIG, "handler %.64s: no libcurl: %s; install libcurl4", type, missing);
    if (!(p = calloc(1, sizeof *p)) || !(p->url = strdup(url))) {
        free(p);
        return error_set(e, WEIR_EINTERNAL, "handler: out of memory");
    }
    p->identity = &h->identity;
    if (read_url(p->url, &p->local))
        return handlers_add(h, type, &http_way, p, e);
    free_push(p);
    return error_set(e, WEIR_EUSAGE,
                     "handler %.64s: '%.200s' is not a URL of http or https; use TYPE=http://...", type, url);
}

#include "core/client/client.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/client/reply.h"
#include "core/clock.h"

#define NAME_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"
#define NAME_MAX_LEN 128
#define KEY_WORD 3    /* of a call */
#define LEARN_TRIES 3 /* of a question whose answer was lost */
#define HOPS_MOST 2   /* a partition that has lost its count sends to another one, which sends back */

/* What was given, else what the environment says, else the usual. */
static const char *choose(const char *given, const char *variable, const char *usual)
{
    const char *set = getenv(variable);

    if (given)
        return given;
    return set && *set ? set : usual;
}

int client_prefix(const char *ns, char prefix[PREFIX_SIZE], struct error *e)
{
    const char *name = choose(ns, "WEIR_NAMESPACE", "weir");
    size_t len = strlen(name);

    if (len < 1 || len > NAME_MAX_LEN || strspn(name, NAME_CHARS) != len)
        return error_set(e, WEIR_ECONFIG, "namespace '%.40s': not a name; use 1 to 128 of A-Z a-z 0-9 _ . -",
                         name);
    snprintf(prefix, PREFIX_SIZE, "%s:{0}:", name);
    return 0;
}

int client_address(const char *url, struct redis_address *address, struct error *e)
{
    return redis_address_parse(choose(url, "REDIS_URL", REDIS_USUAL), address, e);
}

struct weir *client_new(const struct redis_address *address, const char *prefix)
{
    struct weir *w = calloc(1, sizeof *w);

    if (!w || !(w->redis = redis_new(address))) {
        free(w);
        return NULL;
    }
    w->connections[0] = w->redis;
    strcpy(w->prefix, prefix);
    return w;
}

struct weir *weir_new(const char *url, const char *ns)
{
    struct weir *w = calloc(1, sizeof *w);
    struct redis_address address;

    if (!w)
        return NULL;
    if (client_address(url, &address, &w->setup) == 0 && client_prefix(ns, w->prefix, &w->setup) == 0) {
        w->redis = redis_new(&address);
        if (!w->redis) {
            free(w);
            return NULL;
        }
        w->connections[0] = w->redis;
    }
    return w;
}

void weir_free(struct weir *w)
{
    if (!w)
        return;
    for (int p = 0; p < PARTITIONS_MOST; p++)
        redis_free(w->connections[p]);
    free(w->denials);
    free(w);
}

const char *weir_version(void)
{
    return WEIR_VERSION;
}

const char *weir_message(const struct weir *w)
{
    return w ? w->error.text : "weir_message: w is NULL; give what weir_new() has returned";
}

/* ---- Partitions */

int client_at(struct weir *w, int p)
{
    if (w->setup.status) {
        w->error = w->setup;
        return w->error.status;
    }
    if (w->at == p)
        return 0;
    if (!w->connections[p])
        w->connections[p] = redis_new_slot(w->connections[0], partition_slot(p));
    if (!w->connections[p])
        return error_set(&w->error, WEIR_EINTERNAL, "Redis: out of memory for another connection");
    w->redis = w->connections[p];
    w->at = p;
    partition_prefix(w->prefix, p, w->prefix);
    return 0;
}

int client_at_home(struct weir *w, const char *name, size_t len)
{
    return client_at(w, partition_home(name, len, w->count));
}

bool client_at_next(struct weir *w, int *status)
{
    if (*status || w->at + 1 >= client_count(w))
        return false;
    *status = client_at(w, w->at + 1);
    return *status == 0;
}

int client_look_at_all(struct weir *w, int (*look)(struct weir *w, void *arg), void *arg)
{
    int status = client_at(w, 0);

    do {
        if (status == 0)
            status = look(w, arg);
    } while (client_at_next(w, &status));
    return status;
}

/* Collects the partitions where changes failed. */
struct failures {
    struct error first;
    char where[256]; /* "2, 3" */
    int count;
};

static void note_failure(struct failures *f, const struct weir *w, int p)
{
    size_t len = strlen(f->where);

    if (f->count++ == 0)
        f->first = w->error;
    snprintf(f->where + len, sizeof f->where - len, "%s%d", len ? ", " : "", p);
}

int client_change_all(struct weir *w, int (*change)(struct weir *w, void *arg), void *arg)
{
    struct failures f = {.count = 0};

    for (int p = 0; p < client_count(w); p++) {
        if (client_at(w, p) < 0 || change(w, arg) < 0)
            note_failure(&f, w, p);
        if (p == 0 && f.count)
            return w->error.status;
    }
    if (f.count == 0)
        return 0;
    return error_set(&w->error, f.first.status,
                     "%.300s; done on %d of %d partitions, not on %s: repeat it when that is mended",
                     f.first.text, client_count(w) - f.count, client_count(w), f.where);
}

int client_count(const struct weir *w)
{
    return w->count > 1 ? w->count : 1;
}

void client_counted(struct weir *w, int64_t count)
{
    int n = count > 1 && count <= PARTITIONS_MOST ? (int)count : 1;

    if (n > 1 || w->at == 0)
        w->count = n;
}

int client_read_count(struct weir *w, int *count)
{
    char key[PREFIX_SIZE + sizeof "about"];
    struct redisReply *reply = NULL;
    struct args a = {0};
    bool sent = false;
    int status = 0;

    snprintf(key, sizeof key, "%sabout", w->prefix);
    args_add(&a, "HGET");
    args_add(&a, key);
    args_add(&a, "partitions");
    for (int tries = 0; tries < LEARN_TRIES && (tries == 0 || (status && sent && !redis_is_silent(w->redis)));
         tries++)
        status = redis_call(w->redis, &a, &reply, &sent, &w->error);
    if (!status)
        *count = (int)reply_int(reply, 1);
    freeReplyObject(reply);
    args_free(&a);
    return status;
}

int client_learn(struct weir *w, int *count)
{
    int status = w->count ? 0 : client_at(w, 0), own;

    if (!status && !w->count) {
        status = client_read_count(w, &own);
        if (!status)
            client_counted(w, own);
    }
    *count = client_count(w);
    return status;
}

/* Finds the key of a call, FCALL <function> 1 <key>, and its length. */
static const char *key_of(const struct args *a, size_t *len)
{
    *len = a->count > KEY_WORD ? a->ends[KEY_WORD] - a->ends[KEY_WORD - 1] : 0;
    return *len ? a->bytes + a->ends[KEY_WORD - 1] : "";
}

static bool has_prefix(const struct args *a, const char *prefix)
{
    size_t len;
    const char *key = key_of(a, &len);

    return a->failed || (len >= strlen(prefix) && memcmp(key, prefix, strlen(prefix)) == 0);
}

/* Makes the same call to the partition of that prefix. */
static void redirect(const struct args *a, const char *prefix, struct args *to)
{
    size_t len;
    const char *key = key_of(a, &len), *role = memchr(key, '}', len);
    char made[PREFIX_SIZE + 64];

    snprintf(made, sizeof made, "%s%.*s", prefix, role ? (int)(key + len - role - 2) : 0,
             role ? role + 2 : "");
    args_clear(to);
    for (size_t i = 0; i < a->count; i++) {
        size_t begin = i ? a->ends[i - 1] : 0;

        if (i == KEY_WORD)
            args_add(to, made);
        else
            args_add_bytes(to, a->bytes + begin, a->ends[i] - begin);
    }
}

/* True when the call was refused because its name lives elsewhere. Then calls go there now, and the count is known. */
static bool follow(struct weir *w)
{
    int p, count;

    if (!partition_learn(w->error.text, &p, &count))
        return false;
    w->count = count;
    return client_at(w, p) == 0;
}

int client_call(struct weir *w, const struct args *a, struct redisReply **reply, bool *sent)
{
    struct args elsewhere = {0};
    int status, hops = 0;

    *reply = NULL;
    if (sent)
        *sent = false;
    if (w->setup.status) {
        w->error = w->setup;
        return w->error.status;
    }
    do {
        bool here = has_prefix(a, w->prefix);

        if (!here)
            redirect(a, w->prefix, &elsewhere);
        status = redis_call(w->redis, here ? a : &elsewhere, reply, sent, &w->error);
    } while (status && hops++ < HOPS_MOST && follow(w));
    args_free(&elsewhere);
    return status;
}

int client_ping(struct weir *w, int64_t *took_us)
{
    int64_t begun_us = clock_mono_us();
    struct redisReply *reply = NULL;
    struct args a = {0};
    int status = w->setup.status;

    if (status) {
        w->error = w->setup;
        return status;
    }
    args_add(&a, "PING");
    status = redis_call(w->redis, &a, &reply, NULL, &w->error);
    *took_us = clock_mono_us() - begun_us;
    freeReplyObject(reply);
    args_free(&a);
    return status;
}

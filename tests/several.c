#include "tests/several.h"

#include <sys/stat.h>

#include "core/clock.h"
#include "core/redis/cluster.h"
#include "tests/test.h"

#define SLOTS 16384
/* How long a Redis may say nothing, in ms. */
#define PATIENCE "20000"
#define PATIENCE_OF_KILLS "1000"

/* The answer contains text. */
static bool says(struct server *s, const char *text, const char *first, const char *second, const char *third)
{
    char *answer = server_try(s, first, second, third, NULL);
    bool there = answer && strstr(answer, text);

    free(answer);
    return there;
}

static void ask_ok(struct server *s, const char *a, const char *b, const char *c, const char *d,
                   const char *e, const char *f)
{
    char *answer = server_ask(s, a, b, c, d, e, f, NULL);

    if (strncmp(answer, "(error)", 7) == 0)
        fail_msg("%s %s: %s", a, b ? b : "", answer);
    free(answer);
}

#define PORT_SIZE 24

static const char *port_text(int port, char out[PORT_SIZE])
{
    snprintf(out, PORT_SIZE, "%d", port);
    return out;
}

static void set_patience(struct several *s, const char *ms)
{
    for (int i = 0; i < s->count && s->cluster; i++)
        if (s->redis[i].pid)
            ask_ok(&s->redis[i], "CONFIG", "SET", "cluster-node-timeout", ms, NULL, NULL);
    for (int i = 0; i < 3 && !s->cluster; i++)
        ask_ok(&s->sentinels[i], "SENTINEL", "SET", SEVERAL_MASTER, "down-after-milliseconds", ms, NULL);
}

/* ---- Sentinels */

static void start_redis(struct several *s, int i, const char *const *options)
{
    const char *words[24];
    char port[PORT_SIZE], master[PORT_SIZE];
    int n = 0;

    words[n++] = "--port";
    words[n++] = port_text(s->ports[i] = server_free_port(), port);
    words[n++] = "--bind";
    words[n++] = "127.0.0.1";
    words[n++] = "--repl-diskless-sync-delay";
    words[n++] = "0";
    if (i > 0) {
        words[n++] = "--replicaof";
        words[n++] = "127.0.0.1";
        words[n++] = port_text(s->ports[0], master);
    }
    while (options && *options)
        words[n++] = *options++;
    words[n] = NULL;
    server_start_with(&s->redis[i], false, words);
}

static void start_sentinel(struct several *s, int i)
{
    char port[PORT_SIZE], master[PORT_SIZE];
    const char *words[] = {"--port",
                           port_text(s->sentinel_ports[i] = server_free_port(), port),
                           "--bind",
                           "127.0.0.1",
                           "--sentinel",
                           "monitor",
                           SEVERAL_MASTER,
                           "127.0.0.1",
                           port_text(s->ports[0], master),
                           "2",
                           "--sentinel",
                           "down-after-milliseconds",
                           SEVERAL_MASTER,
                           "1000",
                           "--sentinel",
                           "failover-timeout",
                           SEVERAL_MASTER,
                           "6000",
                           NULL};

    server_start_sentinel(&s->sentinels[i], words);
}

static bool sentinel_knows_all(struct several *s, int i)
{
    return says(&s->sentinels[i], "num-slaves\n2\nnum-other-sentinels\n2", "SENTINEL", "MASTER",
                SEVERAL_MASTER);
}

void several_start_sentinels(struct several *s, const char *const *options)
{
    *s = (struct several){.count = 3};
    for (int i = 0; i < 3; i++)
        start_redis(s, i, options);
    for (int i = 1; i < 3; i++)
        await(says(&s->redis[i], "master_link_status:up", "INFO", "replication", NULL));
    for (int i = 0; i < 3; i++)
        start_sentinel(s, i);
    for (int i = 0; i < 3; i++)
        await(sentinel_knows_all(s, i));
    set_patience(s, PATIENCE);
    snprintf(s->url, sizeof s->url, "redis+sentinel://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d/" SEVERAL_MASTER,
             s->sentinel_ports[0], s->sentinel_ports[1], s->sentinel_ports[2]);
}

/* ---- A cluster */

static void start_node(struct several *s, int i)
{
    char port[PORT_SIZE], bus[PORT_SIZE];
    const char *words[] = {"--port",
                           port_text(s->ports[i] = server_free_port(), port),
                           "--bind",
                           "127.0.0.1",
                           "--cluster-enabled",
                           "yes",
                           "--cluster-port",
                           port_text(server_free_port(), bus),
                           "--cluster-node-timeout",
                           "1000",
                           "--cluster-replica-validity-factor",
                           "0",
                           "--repl-diskless-sync-delay",
                           "0",
                           NULL};

    server_start_with(&s->redis[i], false, words);
}

static char *node_id(struct several *s, int i)
{
    return server_ask(&s->redis[i], "CLUSTER", "MYID", NULL);
}

static bool knows_node(struct several *s, int i, const char *id)
{
    return says(&s->redis[i], id, "CLUSTER", "NODES", NULL);
}

/* The first node and the others know each other. A handshake that took longer than the node's time-out, as on a machine that stands still,
 * is forgotten: another begins. */
static bool have_met(struct several *s, char *const *ids)
{
    char *info = server_ask(&s->redis[0], "CONFIG", "GET", "cluster-port", NULL);
    char port[PORT_SIZE], bus[PORT_SIZE];
    bool met = true;

    port_text(s->ports[0], port);
    port_text(atoi(strchr(info, '\n') + 1), bus);
    free(info);
    for (int i = 1; i < 6; i++)
        if (!knows_node(s, 0, ids[i]) || !knows_node(s, i, ids[0])) {
            ask_ok(&s->redis[i], "CLUSTER", "MEET", "127.0.0.1", port, bus, NULL);
            met = false;
        }
    return met;
}

static void replicate(struct several *s, int replica, const char *master)
{
    await(knows_node(s, replica, master));
    ask_ok(&s->redis[replica], "CLUSTER", "REPLICATE", master, NULL, NULL, NULL);
}

void several_start_cluster(struct several *s)
{
    char *ids[6];

    *s = (struct several){.count = 6, .cluster = true};
    for (int i = 0; i < 6; i++) {
        start_node(s, i);
        ids[i] = node_id(s, i);
    }
    await(have_met(s, ids));
    for (int i = 0; i < 3; i++) {
        char first[PORT_SIZE], last[PORT_SIZE];

        ask_ok(&s->redis[i], "CLUSTER", "ADDSLOTSRANGE", port_text(SLOTS * i / 3, first),
               port_text(SLOTS * (i + 1) / 3 - 1, last), NULL, NULL);
    }
    for (int i = 0; i < 3; i++)
        replicate(s, 3 + i, ids[i]);
    for (int i = 0; i < 6; i++)
        free(ids[i]);
    for (int i = 0; i < 6; i++)
        await(says(&s->redis[i], "cluster_state:ok", "CLUSTER", "INFO", NULL));
    for (int i = 3; i < 6; i++)
        await(says(&s->redis[i], "master_link_status:up", "INFO", "replication", NULL));
    set_patience(s, PATIENCE);
    snprintf(s->url, sizeof s->url, "redis+cluster://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d", s->ports[0],
             s->ports[1], s->ports[2]);
}

/* As redis-cli --cluster does it: the target first, keys in slices, then all masters are told. */
void several_move_slot(struct several *s, int from, int to)
{
    char slot[PORT_SIZE], port[PORT_SIZE], *from_id = node_id(s, from), *to_id = node_id(s, to), *key;

    port_text(CLUSTER_SLOT, slot);
    ask_ok(&s->redis[to], "CLUSTER", "SETSLOT", slot, "IMPORTING", from_id, NULL);
    ask_ok(&s->redis[from], "CLUSTER", "SETSLOT", slot, "MIGRATING", to_id, NULL);
    while (*(key = server_ask(&s->redis[from], "CLUSTER", "GETKEYSINSLOT", slot, "1", NULL))) {
        char *answer = server_ask(&s->redis[from], "MIGRATE", "127.0.0.1", port_text(s->ports[to], port), key,
                                  "0", "5000", NULL);

        if (strncmp(answer, "(error)", 7) == 0)
            fail_msg("MIGRATE %s: %s", key, answer);
        free(answer);
        free(key);
    }
    free(key);
    for (int i = 0; i < 6; i++)
        if (s->redis[i].pid && says(&s->redis[i], "master", "ROLE", NULL, NULL))
            ask_ok(&s->redis[i], "CLUSTER", "SETSLOT", slot, "NODE", to_id, NULL);
    free(from_id);
    free(to_id);
}

/* ---- Both */

void several_kill(struct several *s, int i)
{
    set_patience(s, PATIENCE_OF_KILLS);
    server_kill(&s->redis[i]);
}

void several_stop(struct several *s)
{
    for (int i = 0; i < 3; i++)
        if (s->sentinels[i].pid)
            server_stop(&s->sentinels[i]);
    for (int i = 0; i < s->count; i++)
        server_stop(&s->redis[i]);
}

static bool is_master(struct several *s, int i)
{
    return s->redis[i].pid && says(&s->redis[i], "role:master", "INFO", "replication", NULL);
}

/* All Sentinels name it. */
static bool is_named(struct several *s, int i)
{
    char port[PORT_SIZE + 1] = "\n";

    port_text(s->ports[i], port + 1);
    for (int n = 0; n < 3; n++)
        if (!says(&s->sentinels[n], port, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", SEVERAL_MASTER))
            return false;
    return true;
}

static bool has_slot(struct several *s, int i)
{
    char *key = server_try(&s->redis[i], "EXISTS", "weir:{0}:about", NULL);
    bool has = key && strncmp(key, "(error)", 7) != 0;

    free(key);
    return has;
}

int several_holder(struct several *s)
{
    for (int i = 0; i < s->count; i++)
        if (is_master(s, i) && (s->cluster ? has_slot(s, i) : is_named(s, i)))
            return i;
    return -1;
}

static bool is_other(struct several *s, int old, int *now)
{
    *now = several_holder(s);
    return *now >= 0 && *now != old;
}

int several_await_holder_other_than(struct several *s, int old)
{
    int now;

    await(is_other(s, old, &now));
    set_patience(s, PATIENCE);
    return now;
}

void several_follow(struct several *s, struct stage *stage)
{
    char folder[sizeof stage->server.folder];
    int holder;

    await(is_other(s, -1, &holder));
    memcpy(folder, stage->server.folder, sizeof folder);
    stage->server = s->redis[holder];
    memcpy(stage->server.folder, folder, sizeof folder);
    memcpy(stage->server.url, s->url, sizeof s->url);
}

void several_stage(struct several *s, const char *ns, struct stage *stage)
{
    *stage = (struct stage){.root = stage}; /* its server is not its own */
    snprintf(stage->ns, sizeof stage->ns, "%s", ns);
    snprintf(stage->server.folder, sizeof stage->server.folder, "%.38s/%s", s->redis[0].folder, stage->ns);
    assert_int_equal(mkdir(stage->server.folder, 0777), 0);
    several_follow(s, stage);
    stage->client = weir_new(s->url, stage->ns);
    assert_non_null(stage->client);
}

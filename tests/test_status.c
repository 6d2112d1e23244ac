/* weir status reads all that there is: since when the first jobs wait. */
#include "core/client/pages.h"
#include "core/script/script.h"
#include "queue/job/stamp.h"
#include "queue/status/status_parts.h"
#include "tests/client.h"
#include "tests/test.h"
#include "view/status.h"
#include "view/write.h"

#define MINUTE_US INT64_C(60000000)

static struct status status;

static int forget(void **state)
{
    status_free(&status);
    return 0;
}

/* ---- Jobs: each was enqueued at that minute; below 0: nobody knows */

static void push(const char *list, const char *type, int minute)
{
    char head[STAMP_HEAD_LEN + 1] = "";

    if (minute >= 0)
        stamp_head(BEGIN_US + minute * MINUTE_US, head);
    client_send("RPUSH", list, textf("%s{\"id\":\"x\",\"type\":\"%s\"}", head, type), NULL);
}

static void push_in_queue(const char *queue, const char *type, int minute)
{
    push(textf("queue:%s", queue), type, minute);
    client_send("SADD", "queues", queue, NULL);
    client_send("HSET", "types", type, "");
}

/* In a lane that waits at that gate, or only in the ring of its type: "". */
static void park(const char *queue, const char *type, const char *key, const char *waits_at, int minute)
{
    char name[300];

    snprintf(name, sizeof name, "lane:%s/%s/%s", queue, type, key);
    push(name, type, minute);
    snprintf(name, sizeof name, "ring:%s/%s", queue, type);
    client_send("ZADD", name, "1", key);
    client_send("SADD", "queues", queue, NULL);
    client_send("HSET", "types", type, "");
    snprintf(name, sizeof name, "stats:%s", type);
    client_send("HSET", name, "parked", "1");
    if (!*waits_at)
        return;
    snprintf(name, sizeof name, "wait:%s/%s", queue, waits_at);
    client_send("ZADD", name, "1", type);
    snprintf(name, sizeof name, "wake:%s", queue);
    client_send("ZADD", name, "1", waits_at);
}

/* At the gate of its key. */
static void put_to_sleep(const char *queue, const char *type, const char *key, int minute)
{
    char name[300], node[200];

    snprintf(name, sizeof name, "lane:%s/%s/%s", queue, type, key);
    push(name, type, minute);
    snprintf(node, sizeof node, "%s/%s", type, key);
    snprintf(name, sizeof name, "wait:%s/%s#0/%s", queue, type, key);
    client_send("ZADD", name, "1", node);
    snprintf(name, sizeof name, "%s#0/%s", type, key);
    client_send("ZADD", "sleep:mail", "1", name);
    client_send("SADD", "queues", queue, NULL);
    client_send("HSET", "types", type, "");
}

static void read_status(void)
{
    status_free(&status);
    assert_int_equal(status_read(w, &status), 0);
}

static int minute_of(int64_t us)
{
    return us == 0 ? -1 : (int)((us - BEGIN_US) / MINUTE_US);
}

static int of_type(const char *name)
{
    const struct type_status *t = status_type(&status, name);

    assert_non_null(t);
    return minute_of(t->oldest_us);
}

static int of_queue(const char *name)
{
    for (size_t i = 0; i < status.queue_count; i++)
        if (strcmp(status.queues[i].name, name) == 0)
            return minute_of(status.queues[i].oldest_us);
    fail_msg("no queue %s", name);
    return 0;
}

/* ---- */

TEST_WITH(queues_and_types_say_how_old_their_first_jobs_are, client_flush, forget)
{
    push_in_queue("mail", "a", 5);
    push_in_queue("mail", "b", 3); /* comes later, whatever its clock says */
    push_in_queue("mail", "a", 1);
    push_in_queue("other", "a", 4);
    push_in_queue("foreign", "c", -1);
    client_send("SADD", "queues", "empty", NULL);
    read_status();
    assert_int_equal(of_queue("mail"), 5);
    assert_int_equal(of_queue("other"), 4);
    assert_int_equal(of_queue("foreign"), -1);
    assert_int_equal(of_queue("empty"), -1);
    assert_int_equal(of_type("a"), 4);
    assert_int_equal(of_type("b"), 3);
    assert_int_equal(of_type("c"), -1);
}

TEST_WITH(lanes_count_too, client_flush, forget)
{
    push_in_queue("mail", "a", 5);
    park("mail", "a", "", "a#0", 2);
    park("other", "a", "", "", 1);
    put_to_sleep("mail", "keyed", "k", 7);
    park("mail", "foreign", "", "-", -1);
    read_status();
    assert_int_equal(of_queue("mail"), 5);
    assert_int_equal(of_type("a"), 1);
    assert_int_equal(of_type("keyed"), 7);
    assert_int_equal(of_type("foreign"), -1);
}

/* Then not each type is looked for in each of them. */
TEST_WITH(of_many_queues_the_first_lanes_count, client_flush, forget)
{
    char queue[24], type[24];

    for (int i = 0; i < 8; i++) {
        snprintf(queue, sizeof queue, "q%d", i);
        snprintf(type, sizeof type, "t%d", i);
        park(queue, type, "", i == 0 ? "-" : "x#0", i);
    }
    park("q7", "held", "", "", 20);
    client_send("ZADD", "held:q7", "1", "held");
    read_status();
    for (int i = 0; i < 8; i++) {
        snprintf(type, sizeof type, "t%d", i);
        assert_int_equal(of_type(type), i);
    }
    assert_int_equal(of_type("held"), 20);
}

/* They say nothing, and the rest is there. */
TEST_WITH(keys_of_another_kind_say_nothing, client_flush, forget)
{
    static const char *const keys[] = {"lane:mail/a/", "ring:mail/a", "wait:mail/a#0"};

    for (size_t i = 0; i < COUNT(keys); i++) {
        server_do(&server, "FLUSHALL");
        park("mail", "a", "", "a#0", 2);
        push_in_queue("mail", "b", 3);
        client_send("SET", keys[i], "x", NULL);
        read_status();
        assert_int_equal(of_type("b"), 3);
    }
}

/* ---- Types as documents */

/* *type is the document of such a type, as it was written; NULL: of none. */
static json_t *written(const struct type_status *type, enum view_bodies bodies)
{
    struct status some = {.now_us = BEGIN_US,
                          .dead_bytes = -1,
                          .types = (struct type_status *)(uintptr_t)type,
                          .type_count = type != NULL};
    json_t *doc = status_document(&some), *read, *types;
    char *text = NULL;
    size_t len;
    FILE *to = open_memstream(&text, &len);

    assert_true(view_write(to, doc, bodies));
    fclose(to);
    json_decref(doc);
    read = json_loads(text, 0, NULL);
    types = json_incref(json_object_get(read, "types"));
    assert_true(json_is_object(types));
    json_decref(read);
    free(text);
    return types;
}

TEST(a_type_as_it_is_written)
{
    json_t *waits_for =
        json_pack("{s:s, s:s, s:I}", "gate", "a#0/42", "limit_name", "a", "until", (json_int_t)BEGIN_US + 1);
    const struct type_status type = {.name = "b",
                                     .waiting = 1234567890123,
                                     .rule = "5000/1d",
                                     .rate = 0.05787037037037037,
                                     .rate_now = 2,
                                     .next_start_us = BEGIN_US + 1,
                                     .finish_us = GATE_NEVER,
                                     .because = 1,
                                     .waits_for = waits_for};
    json_t *types = written(&type, VIEW_ALL), *doc = json_object_get(types, "b");

    assert_int_equal(answer_int(doc, "waiting"), 1234567890123);
    assert_string_equal(answer_text(doc, "rule"), "5000/1d");
    assert_true(json_real_value(json_object_get(doc, "rate")) == 0.05787037037037037);
    assert_int_equal(json_us(json_object_get(doc, "next_start")), BEGIN_US + 1);
    assert_true(json_is_null(json_object_get(doc, "finish_at")));
    assert_true(json_is_true(json_object_get(doc, "at_the_earliest")));
    assert_string_equal(answer_text(json_object_get(doc, "waits_for"), "gate"), "a#0/42");
    json_decref(types);
    types = written(&type, VIEW_NO_BODIES);
    doc = json_object_get(types, "b");
    assert_string_equal(answer_text(json_object_get(doc, "waits_for"), "gate"), "a#0");
    json_decref(types);
    types = written(NULL, VIEW_ALL);
    assert_int_equal(json_object_size(types), 0);
    json_decref(types);
    json_decref(waits_for);
}

/* ---- Several walks at once */

struct counting {
    size_t pages, types, limits;
    size_t cut_at; /* the page at which all connections are lost */
};

static int count_page(const json_t *page, void *arg)
{
    struct counting *c = arg;

    c->types += json_object_size(json_object_get(page, "types"));
    c->limits += json_array_size(json_object_get(page, "raw"));
    if (++c->pages == c->cut_at)
        server_do(&server, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    return 0;
}

static void ask_for_limits(struct args *a, void *arg)
{
    (void)arg;
    args_add(a, "limits");
}

static int stop_at_once(const json_t *page, void *arg)
{
    (void)page;
    (void)arg;
    return 7;
}

static void fill_many(int count)
{
    for (int i = 0; i < count; i++) {
        const char *name = textf("t%d", i);

        client_send("HSET", "types", name, "");
        client_send("HSET", "limits", name, "gcra:1/1000/1");
    }
}

TEST_WITH(walks_at_once_have_everything_once, client_flush, forget)
{
    json_t *types = json_pack("[s, s]", "types", "0");
    struct counting c;
    const struct pages usual = {
        .w = w, .now_us = -1, .arg = &c, .take = count_page, .here = true, .ahead = true};
    struct pages walks[] = {usual, usual, usual};

    walks[0].script = walks[1].script = "status";
    walks[1].place = types;
    walks[2].script = "rate_list";
    walks[2].ask = ask_for_limits;
    fill_many(2000);
    for (size_t cut = 0; cut < 14; cut++) {
        if (cut == 13)
            server_do(&server, "FUNCTION", "FLUSH");
        c = (struct counting){.cut_at = cut};
        assert_int_equal(pages_walk_together(walks, 3), 0);
        assert_int_equal(c.types, 2000);
        assert_int_equal(c.limits, 2000);
    }
    walks[2].take = stop_at_once; /* while others are asked for */
    assert_int_equal(pages_walk_together(walks, 3), 7);
    walks[2].take = count_page;
    c = (struct counting){.cut_at = 0};
    assert_int_equal(pages_walk_together(walks, 3), 0);
    assert_int_equal(c.types + c.limits, 4000);
    json_decref(types);
}

/* Of a hundred queues 30 jobs each are looked at. */
TEST_WITH(of_many_queues_fewer_jobs_are_looked_at, client_flush, forget)
{
    json_t *answer;
    struct args a = {0};

    for (int i = 0; i < 100; i++)
        client_send("SADD", "queues", textf("q%d", i), NULL);
    for (int i = 0; i < 31; i++)
        push_in_queue("q5", i < 29 ? "mail" : i < 30 ? "last" : "beyond", -1);
    script_begin(&a, "status", w->prefix, BEGIN_US);
    assert_int_equal(client_ask(w, "status", &a, &answer), 0);
    assert_non_null(json_object_get(json_object_get(answer, "seen"), "last"));
    assert_null(json_object_get(json_object_get(answer, "seen"), "beyond"));
    json_decref(answer);
}

/* ---- Of several partitions */

/* What is too large for any machine is an answer, under sanitizers too. NOLINTNEXTLINE(bugprone-reserved-identifier) */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void) /* NOLINT(bugprone-reserved-identifier) */
{
    return "allocator_may_return_null=1";
}

/* A status of one worker and one type, both of which hold something. */
static struct status small_status(const char *host)
{
    struct status s = {.workers = calloc(1, sizeof *s.workers),
                       .types = calloc(1, sizeof *s.types),
                       .worker_count = 1,
                       .type_count = 1,
                       .paused_keys = json_object(),
                       .stopped = json_object()};

    snprintf(s.workers->host, sizeof s.workers->host, "%s", host);
    s.workers->queues = json_array();
    s.types->pause = json_object();
    return s;
}

/* Workers are merged by then: each list is freed once. */
TEST(out_of_memory_between_two_kinds_of_rows)
{
    struct status all = small_status("a"), more = small_status("b");
    json_t *queues = json_incref(more.workers->queues);

    more.type_count = SIZE_MAX / sizeof *more.types / 4;
    assert_false(status_merge(&all, &more));
    more.type_count = 1;
    assert_int_equal(all.worker_count, 2);
    status_free(&more);
    assert_int_equal(queues->refcount, 2);
    status_free(&all);
    assert_int_equal(queues->refcount, 1);
    json_decref(queues);
}

TESTS(client_start, client_stop)

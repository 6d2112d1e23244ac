/* The protocol of doc/protocol.md: its transcripts and the vectors of tests/protocol/, through Redis as a program in any language calls it, and
 * through weir serve; what a client meets when functions are gone; rights; partitions. */
#include <dirent.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <jansson.h>

#include "core/clock.h"
#include "queue/job/job.h"
#include "tests/client.h"
#include "tests/program.h"
#include "tests/proxy.h"
#include "tests/serving.h"
#include "tests/test.h"
#include "throttle/key.h"

#define DOCUMENT "doc/protocol.md"
#define VECTORS "tests/protocol/"
#define ASKS_MOST 1000 /* of a job that is looked for */
#define WORDS_MOST 16
#define CUTS_MOST 50 /* serve asks Redis other things too */
#define DOCUMENT_SIZE (128 << 10)

static struct error error;

/* ---- Carriers: each answers a verb with a text; the caller's */

typedef json_t *carrier(const char *verb, const struct text *text);

static redisContext *plain; /* as a program of others has it */
static char prefix[64];     /* of the partition that is asked */

static json_t *parsed(const char *text, size_t len)
{
    json_error_t why;
    json_t *answer = json_loadb(text, len, 0, &why);

    if (!answer)
        fail_msg("not JSON: %s: %.200s", why.text, text);
    return answer;
}

/* The words by which a verb is called, as the namespace tells them; the caller's. */
static json_t *words_of(const char *verb)
{
    redisReply *r = redisCommand(plain, "HGET %sabout protocol", prefix);
    json_t *doc = parsed(r->str, r->len), *found = json_object_get(json_object_get(doc, "verbs"), verb);

    assert_int_equal(json_integer_value(json_object_get(doc, "protocol")), 1);
    assert_non_null(found);
    json_incref(found);
    json_decref(doc);
    freeReplyObject(r);
    return found;
}

static redisReply *call_redis(const char *verb, const struct text *text)
{
    json_t *words = words_of(verb);
    const char *argv[WORDS_MOST];
    size_t len[WORDS_MOST], n = json_array_size(words);
    redisReply *r;

    for (size_t i = 0; i < n; i++) {
        argv[i] = json_string_value(json_array_get(words, i));
        len[i] = strlen(argv[i]);
    }
    argv[n] = verb;
    len[n] = strlen(verb);
    argv[n + 1] = text->len ? text->at : "";
    len[n + 1] = text->len;
    r = redisCommandArgv(plain, (int)n + 2, argv, len);
    assert_non_null(r);
    json_decref(words);
    return r;
}

static json_t *by_redis(const char *verb, const struct text *text)
{
    redisReply *r = call_redis(verb, text);
    json_t *answer;

    if (r->type != REDIS_REPLY_STRING)
        fail_msg("%s %.200s: %s", verb, text->at, r->str);
    answer = parsed(r->str, r->len);
    freeReplyObject(r);
    return answer;
}

static unsigned status_of(const json_t *answer)
{
    static const struct {
        const char *kind;
        unsigned status;
    } kinds[] = {{"invalid", 400}, {"missing", 404}, {"closed", 409}, {"rights", 403}, {"unavailable", 503}};
    const char *refused = json_string_value(json_object_get(answer, "refused"));

    for (size_t i = 0; refused && i < COUNT(kinds); i++)
        if (strcmp(kinds[i].kind, refused) == 0)
            return kinds[i].status;
    return 200;
}

static json_t *by_http(const char *verb, const struct text *text)
{
    unsigned status;
    json_t *answer;
    const char *path = textf("/api/v1/%s", verb);

    status =
        serving_status_of("POST", path, strcmp(verb, "bulk") == 0 ? NDJSON : JSON, text->len ? text->at : "");
    answer = serving_parsed();
    if (status != status_of(answer))
        fail_msg("%s: %u %s", path, status, serving.reply.body);
    return answer;
}

/* Asks again where an answer only says how far it was looked. */
static json_t *call(carrier *carry, const char *verb, const struct text *text)
{
    json_t *answer = carry(verb, text), *again, *cursor;

    for (int asks = 0; json_object_size(answer) == 1 && (cursor = json_object_get(answer, "cursor"));
         asks++) {
        struct text next = {0};
        char *at;

        assert_true(asks < ASKS_MOST);
        again = parsed(text->at, text->len);
        json_object_set(again, "cursor", cursor);
        at = json_dumps(again, JSON_COMPACT);
        assert_int_equal(text_add(&next, at, strlen(at) + 1, &error), 0);
        next.len--;
        json_decref(answer);
        answer = carry(verb, &next);
        free(at);
        text_free(&next);
        json_decref(again);
    }
    return answer;
}

/* ---- Comparing */

static bool varies(const json_t *wanted)
{
    const char *text = json_string_value(wanted);

    return text && text[0] == '<' && text[strlen(text) - 1] == '>';
}

/* True when an answer has all the members that are wanted; exact: and no others. */
static bool matches(const json_t *answer, json_t *wanted, bool exact)
{
    const char *name;
    json_t *value;

    json_object_foreach(wanted, name, value) {
        const json_t *there = json_object_get(answer, name);

        if (!there || !(varies(value) || json_equal(there, value)))
            return false;
    }
    return !exact || json_object_size(answer) == json_object_size(wanted);
}

static void check(carrier *carry, const char *verb, const struct text *text, json_t *wanted, bool exact)
{
    json_t *answer = call(carry, verb, text);
    char *got, *want;

    if (!matches(answer, wanted, exact)) {
        got = json_dumps(answer, 0);
        want = json_dumps(wanted, 0);
        fail_msg("%s %.300s: answered %s, not %s", verb, text->at, got, want);
    }
    json_decref(answer);
}

/* ---- The vectors */

static void add_part(struct text *text, const json_t *part)
{
    const json_t *of = json_is_array(part) ? json_array_get(part, 0) : part;
    const char *hex = json_string_value(json_object_get(part, "hex"));
    json_int_t times = json_is_array(part) ? json_integer_value(json_array_get(part, 1)) : 1;
    unsigned byte;

    for (; hex && sscanf(hex, "%2x", &byte) == 1; hex += 2)
        assert_int_equal(text_add(text, (char[]){(char)byte}, 1, &error), 0);
    for (; !json_is_object(part) && times > 0; times--)
        assert_int_equal(text_add(text, json_string_value(of), json_string_length(of), &error), 0);
}

/* With a NUL behind it. */
static void read_in(struct text *text, const json_t *in)
{
    for (size_t i = 0; i < json_array_size(in); i++)
        add_part(text, json_array_get(in, i));
    if (json_is_string(in))
        add_part(text, in);
    assert_int_equal(text_add(text, "", 1, &error), 0);
    text->len--;
}

/* True when one of the jobs of a queue has these bytes. */
static bool has_job(const char *queue, const char *bytes)
{
    redisReply *r = redisCommand(plain, "LRANGE weir:{0}:queue:%s 0 -1", queue);
    bool found = false;

    for (size_t i = 0; i < r->elements; i++) {
        const char *body = strchr(r->element[i]->str, '{');

        found |= body && strcmp(body, bytes) == 0;
    }
    freeReplyObject(r);
    return found;
}

static void check_key(const json_t *step)
{
    const json_t *key = json_object_get(step, "key");
    char made[LIMIT_NAME_SIZE];

    key_make(json_string_value(key), json_string_length(key), made);
    assert_string_equal(made, json_string_value(json_object_get(step, "is")));
}

static void check_step(carrier *carry, const json_t *step)
{
    const char *verb = json_string_value(json_object_get(step, "verb")), *is;
    const char *limit = json_string_value(json_object_get(step, "limit"));
    struct text text = {0};
    char line[256];

    is = json_string_value(json_object_get(step, "is"));
    if (verb) {
        read_in(&text, json_object_get(step, "in"));
        check(carry, verb, &text, json_object_get(step, "out"), false);
        text_free(&text);
    } else if (limit) {
        snprintf(line, sizeof line, "rate set %s %s", limit,
                 json_string_value(json_object_get(step, "rules")));
        serving_weir(line);
    } else if (json_object_get(step, "key")) {
        check_key(step);
    } else if (!has_job("default", is) && !has_job("high", is) && !has_job("low", is)) {
        fail_msg("no job has these bytes: %s", is);
    }
}

/* A namespace in which a worker has begun, and nothing else is. */
static void begin(void)
{
    server_do(&server, "FLUSHALL");
    serving_weir("worker --exec nothing=true --drain");
}

static void check_file(carrier *carry, const char *path)
{
    json_error_t why;
    json_t *doc = json_load_file(path, 0, &why), *step;
    size_t i;

    if (!doc)
        fail_msg("%s: %s", path, why.text);
    begin();
    print_message("%s\n", path);
    json_array_foreach(json_object_get(doc, "steps"), i, step)
        check_step(carry, step);
    json_decref(doc);
}

static void check_vectors(carrier *carry)
{
    DIR *folder = opendir(VECTORS);
    struct dirent *entry;
    char path[512];
    int files = 0;

    assert_non_null(folder);
    while ((entry = readdir(folder))) {
        if (!strstr(entry->d_name, ".json"))
            continue;
        snprintf(path, sizeof path, VECTORS "%s", entry->d_name);
        check_file(carry, path);
        files++;
    }
    closedir(folder);
    assert_true(files > 0);
}

/* ---- The document */

static void check_line(carrier *carry, struct text *asked, char *line)
{
    json_t *wanted;
    char *document;

    if (line[0] == '$') {
        serving_weir(line + strlen("$ weir "));
    } else if (line[0] == '>') {
        assert_int_equal(text_add(asked, asked->len ? "\n" : "", asked->len > 0, &error), 0);
        assert_int_equal(text_add(asked, line + 2, strlen(line + 2), &error), 0);
    } else if (line[0] == '<') {
        assert_int_equal(text_add(asked, "", 1, &error), 0);
        document = strchr(asked->at, ' ');
        *document++ = '\0';
        wanted = parsed(line + 2, strlen(line + 2));
        check(carry, asked->at, &(struct text){.at = document, .len = strlen(document)}, wanted, true);
        json_decref(wanted);
        asked->len = 0;
    }
}

static void check_document(carrier *carry)
{
    static char text[DOCUMENT_SIZE];
    struct text asked = {0};
    bool inside = false;
    int blocks = 0;
    char *rest = text, *line;

    begin();
    assert_true(read_text(".", DOCUMENT, text, sizeof text));
    while ((line = strsep(&rest, "\n"))) {
        if (strncmp(line, "```", 3) == 0) {
            inside = strcmp(line, "```protocol") == 0;
            blocks += inside;
        } else if (inside) {
            check_line(carry, &asked, line);
        }
    }
    text_free(&asked);
    assert_true(blocks > 5);
}

/* ---- Tests */

static int set_up(void **state)
{
    serving_setup(state);
    plain = redisConnectUnix(server.socket);
    strcpy(prefix, PREFIX);
    return plain->err;
}

static int tear_down(void **state)
{
    redisFree(plain);
    return serving_teardown(state);
}

static int flush(void **state)
{
    strcpy(prefix, PREFIX);
    return serving_flush(state);
}

TEST_WITH(test_vectors, flush, NULL)
{
    (void)state;
    check_vectors(by_redis);
}

TEST_WITH(test_vectors_over_http, flush, NULL)
{
    (void)state;
    serving_start();
    check_vectors(by_http);
    serving_end();
}

TEST_WITH(test_document, flush, NULL)
{
    (void)state;
    check_document(by_redis);
    serving_start();
    check_document(by_http);
    serving_end();
}

static struct text text_of(const char *text)
{
    return (struct text){.at = (char *)text, .len = strlen(text)};
}

static void assert_answer(carrier *carry, const char *verb, const char *document, const char *answer)
{
    struct text text = text_of(document);
    json_t *wanted = parsed(answer, strlen(answer));

    check(carry, verb, &text, wanted, true);
    json_decref(wanted);
}

/* The error of Redis itself; static. */
static const char *redis_error(const char *verb, const char *document)
{
    static char says[512];
    struct text text = text_of(document);
    redisReply *r = call_redis(verb, &text);

    assert_int_equal(r->type, REDIS_REPLY_ERROR);
    snprintf(says, sizeof says, "%s", r->str);
    freeReplyObject(r);
    return says;
}

#define JOB "{\"id\":\"j1\",\"type\":\"mail\",\"args\":1}"

/* Functions were lost, and come again with the next worker; its words are read anew. */
TEST_WITH(test_functions_gone, flush, NULL)
{
    (void)state;
    begin();
    server_do(&server, "FUNCTION", "FLUSH");
    assert_string_equal(redis_error("enqueue", JOB), "ERR Function not found");
    serving_weir("worker --exec nothing=true --drain");
    assert_answer(by_redis, "enqueue", JOB, "{\"id\":\"j1\",\"new\":true}");
}

TEST_WITH(test_wrong_kinds_of_keys, flush, NULL)
{
    (void)state;
    begin();
    server_do(&server, "SET", PREFIX "queue:default", "x");
    server_do(&server, "SET", PREFIX "batch:b", "x");
    assert_answer(by_redis, "enqueue", JOB,
                  "{\"refused\":\"unavailable\",\"why\":\"weir:{0}:queue:default is a string, not a list\"}");
    assert_answer(by_redis, "batch", "{\"batch\":\"b\"}",
                  "{\"refused\":\"unavailable\",\"why\":\"weir:{0}:batch:b is a string, not a hash\"}");
    assert_answer(by_redis, "bulk", "{\"batch\":\"b\",\"type\":\"t\"}\n1",
                  "{\"refused\":\"unavailable\",\"why\":\"weir:{0}:batch:b is a string, not a hash\"}");
}

/* Nobody can wake who asks by the protocol: it is told the soonest time, also where jobs seem to take every second slot. */
TEST_WITH(test_in_line_beside_jobs, flush, NULL)
{
    static const char wait[] = "{\"limit\":\"x\",\"wait\":86400}";
    struct text text = {.at = (char *)wait, .len = sizeof wait - 1};
    json_t *answer;

    (void)state;
    begin();
    serving_weir("rate set x 1/100s,burst=1");
    json_decref(by_redis("take", &text));
    json_decref(by_redis("take", &text));
    server_do(&server, "ZADD", PREFIX "due:x", textf("%" PRId64, clock_wall_us()), "~");
    answer = by_redis("take", &text);
    assert_in_range((long)json_number_value(json_object_get(answer, "retry_after")), 100, 200);
    json_decref(answer);
}

/* A reader of JSON that stops there would pass on what stands behind it. */
TEST_WITH(test_a_nul_byte, flush, NULL)
{
    static const char *const documents[][2] = {{"enqueue", JOB "\0"},
                                               {"enqueue", JOB "\0}"},
                                               {"bulk", "{\"stream\":\"s\",\"type\":\"mail\"}\n[1]\0"}};
    static const size_t sizes[] = {sizeof JOB, sizeof JOB + 1,
                                   sizeof "{\"stream\":\"s\",\"type\":\"mail\"}\n[1]\0" - 1};

    (void)state;
    begin();
    for (size_t i = 0; i < COUNT(documents); i++) {
        json_t *answer =
            by_redis(documents[i][0], &(struct text){.at = (char *)documents[i][1], .len = sizes[i]});

        assert_string_equal(json_string_value(json_object_get(answer, "refused")), "invalid");
        json_decref(answer);
    }
}

/* What a handler left is in the answer, byte for byte. */
TEST_WITH(test_jobs_that_have_ended, flush, NULL)
{
    static const char finished[] =
        "{\"id\":\"j1\",\"state\":\"finished\",\"type\":\"mail\",\"queue\":\"default\","
        "\"outcome\":\"done\",\"attempts\":1,\"enqueued_at\":\"<t>\",\"result\":[3]}";
    static const char dead[] = "{\"id\":\"j2\",\"state\":\"dead\",\"type\":\"doomed\",\"queue\":\"default\","
                               "\"attempts\":1,\"enqueued_at\":\"<t>\",\"reason\":\"exit 65\"}";
    const char *command = textf("%s worker --redis %s --drain --keep mail=1h --exec 'doomed=sh -c \"exit "
                                "65\"' --exec \"mail=sh -c 'echo [3] "
                                ">\\$WEIR_REPORT'\" 2>%s/worker.err",
                                built("weir"), server.socket, server.folder);

    (void)state;
    begin();
    assert_answer(by_redis, "enqueue", JOB, "{\"id\":\"j1\",\"new\":true}");
    assert_answer(by_redis, "enqueue", "{\"id\":\"j2\",\"type\":\"doomed\"}", "{\"id\":\"j2\",\"new\":true}");
    assert_int_equal(system(command), 0);
    serving_start();
    assert_answer(by_redis, "job", "{\"id\":\"j1\"}", finished);
    assert_answer(by_http, "job", "{\"id\":\"j1\"}", finished);
    assert_answer(by_redis, "job", "{\"id\":\"j2\"}", dead);
    assert_answer(
        by_redis, "cancel", "{\"id\":\"j1\"}",
        "{\"refused\":\"closed\",\"why\":\"job j1: has finished already; there is nothing to cancel\"}");
    assert_answer(by_redis, "cancel", "{\"id\":\"j2\"}",
                  "{\"refused\":\"closed\",\"why\":\"job j2: is dead already and will not run\"}");
    serving_end();
}

/* libweir and the protocol make the same bytes of the same job. */
TEST_WITH(test_libweir_writes_the_same, flush, NULL)
{
    static const char job[] =
        "{\"id\":\"c1\",\"type\":\"mail\",\"key\":\"ann\",\"cost\":3,\"meta\":[1, 2],\"args\":{\"a\": 1.50}}";
    const struct weir_job_spec spec = {
        .id = "c1", .type = "mail", .key = "ann", .cost = 3, .meta = "[1, 2]", .args = "{\"a\": 1.50}"};

    (void)state;
    begin();
    assert_int_equal(weir_enqueue(w, &spec, NULL), 0);
    assert_true(has_job("default", job));
    assert_answer(by_redis, "enqueue", job, "{\"id\":\"c1\",\"new\":false}");
    free(server_ask(&server, "DEL", PREFIX "id:c1", PREFIX "queue:default", NULL));
    assert_answer(by_redis, "enqueue", job, "{\"id\":\"c1\",\"new\":true}");
    assert_true(has_job("default", job));
}

/* Makes the user that weir acl prints, and is it from now on. */
static void become(const char *role)
{
    const char *command = textf("%s acl %s --user %s | sed 's/PASSWORD/pw/' | redis-cli -s %s >%s/acl.out",
                                built("weir"), role, role, server.socket, server.folder);

    assert_int_equal(system(command), 0);
    freeReplyObject(redisCommand(plain, "AUTH %s pw", role));
}

static void assert_no_right(const char *verb, const char *document)
{
    assert_memory_equal(redis_error(verb, document), "NOPERM", 6);
}

TEST_WITH(test_rights, flush, NULL)
{
    (void)state;
    begin();
    serving_weir("rate set openai 2/1h");
    become("producer");
    assert_answer(by_redis, "enqueue", JOB, "{\"id\":\"j1\",\"new\":true}");
    assert_answer(by_redis, "enqueue",
                  "{\"batch\":\"b\",\"unique\":\"u\",\"in\":5,\"id\":\"j2\",\"type\":\"mail\",\"cost\":2}",
                  "{\"id\":\"j2\",\"new\":true}");
    assert_answer(by_redis, "bulk",
                  "{\"batch\":\"b\"}\n{\"type\":\"mail\",\"cost\":3}\n{\"type\":\"news\",\"queue\":\"q\"}",
                  "{\"taken\":true,\"lines\":2,\"jobs\":2,\"sum\":\"<sum>\"}");
    assert_answer(by_redis, "bulk", "{\"stream\":\"s\",\"type\":\"mail\"}\n1",
                  "{\"taken\":true,\"lines\":1,\"jobs\":1,\"sum\":\"0000000000000000\"}");
    json_decref(
        by_redis("batch", &(struct text){.at = "{\"batch\":\"b\",\"seal\":true,\"then\":\"x\"}", .len = 36}));
    json_decref(by_redis("about", &(struct text){.at = "{}", .len = 2}));
    assert_no_right("take", "{\"limit\":\"openai\"}");
    assert_no_right("cancel", "{\"id\":\"j1\"}");
    assert_no_right("hold", "{\"limit\":\"openai\"}");
    become("taker");
    assert_answer(by_redis, "hold", "{\"limit\":\"openai\",\"tag\":\"a\",\"wait\":9}",
                  "{\"allowed\":true,\"limit\":2,\"remaining\":\"<n>\",\"reset_after\":\"<s>\",\"token\":"
                  "\"openai~a\"}");
    assert_answer(by_redis, "renew", "{\"token\":\"openai~a\"}", "{\"held\":true}");
    assert_answer(by_redis, "end", "{\"token\":\"openai~a\",\"spent\":0}", "{\"ended\":true}");
    json_decref(by_redis("take", &(struct text){.at = "{\"limit\":\"openai\",\"wait\":9}", .len = 27}));
    assert_answer(by_redis, "rate", "{\"limit\":\"nobody\"}",
                  "{\"refused\":\"missing\",\"member\":\"limit\",\"why\":\"<why>\"}");
    assert_no_right("enqueue", JOB);
    freeReplyObject(redisCommand(plain, "AUTH default x"));
}

/* Follows to where a type or a limit lives, as a client does. */
static json_t *by_partitions(const char *verb, const struct text *text)
{
    json_t *answer = by_redis(verb, text);
    const char *there = json_string_value(json_object_get(answer, "elsewhere"));

    if (!there)
        return answer;
    assert_int_equal(json_object_size(answer), 1);
    snprintf(prefix, sizeof prefix, "%s", there);
    json_decref(answer);
    answer = by_partitions(verb, text);
    strcpy(prefix, PREFIX);
    return answer;
}

static const char *const partitioned[][3] = {
    {"enqueue", "{\"in\":60,\"id\":\"j1\",\"type\":\"b\",\"args\":1}", "{\"id\":\"j1\",\"new\":true}"},
    {"enqueue", "{\"in\":60,\"id\":\"j2\",\"type\":\"mail\",\"args\":1}", "{\"id\":\"j2\",\"new\":true}"},
    {"job", "{\"id\":\"j2\"}",
     "{\"id\":\"j2\",\"state\":\"scheduled\",\"type\":\"mail\",\"queue\":\"default\",\"attempts\":0,"
     "\"enqueued_at\":\"<t>\",\"start\":\"<t>\"}"},
    {"cancel", "{\"id\":\"j1\"}", "{\"id\":\"j1\",\"cancelled\":\"removed\"}"},
    {"cancel", "{\"id\":\"j1\"}", "{\"refused\":\"missing\",\"why\":\"<why>\"}"},
    {"bulk", "{\"batch\":\"mail.w\",\"type\":\"mail\"}\n1\n2",
     "{\"taken\":true,\"lines\":2,\"jobs\":2,\"sum\":\"<sum>\"}"},
    {"bulk", "{\"batch\":\"mail.w\",\"type\":\"mail\",\"offset\":2}\n3",
     "{\"taken\":true,\"lines\":3,\"jobs\":1,\"sum\":\"<sum>\"}"},
    {"bulk", "{\"batch\":\"mail.w\",\"type\":\"mail\",\"offset\":2}\n3",
     "{\"taken\":false,\"lines\":3,\"jobs\":0,\"sum\":\"<sum>\"}"},
    {"bulk", "{\"stream\":\"t\"}\n{\"type\":\"mail\"}",
     "{\"taken\":true,\"lines\":1,\"jobs\":1,\"sum\":\"0000000000000000\"}"},
    {"bulk", "{\"stream\":\"t\",\"offset\":1}\n{\"type\":\"mail\"}",
     "{\"taken\":true,\"lines\":2,\"jobs\":1,\"sum\":\"0000000000000000\"}"},
    {"bulk", "{\"batch\":\"other\",\"type\":\"mail\"}\n1\n2",
     "{\"refused\":\"invalid\",\"member\":\"batch\",\"why\":\"<why>\"}"},
    {"bulk", "{\"stream\":\"s\"}\n{\"type\":\"mail\"}\n{\"type\":\"b\"}",
     "{\"refused\":\"invalid\",\"member\":\"type\",\"why\":\"<why>\"}"},
    {"batch", "{\"batch\":\"mail.w\",\"seal\":true,\"then\":\"b\"}",
     "{\"refused\":\"invalid\",\"member\":\"then\",\"why\":\"<why>\"}"},
    {"batch", "{\"batch\":\"nobody\"}", "{\"refused\":\"missing\",\"why\":\"<why>\"}"},
    {"take", "{\"limit\":\"mail\"}",
     "{\"allowed\":true,\"limit\":5,\"remaining\":4,\"reset_after\":\"<s>\"}"},
    {"take", "{\"limit\":\"mail\",\"wait\":1}",
     "{\"allowed\":true,\"limit\":5,\"remaining\":3,\"reset_after\":\"<s>\"}"},
    {"hold", "{\"limit\":\"mail\",\"tag\":\"a\"}",
     "{\"allowed\":true,\"limit\":5,\"remaining\":2,\"reset_after\":\"<s>\",\"token\":\"mail~a\"}"},
    {"renew", "{\"token\":\"mail~a\"}", "{\"held\":true}"},
    {"end", "{\"token\":\"mail~a\"}", "{\"ended\":true}"},
    {"about", "{}",
     "{\"protocol\":1,\"verbs\":[\"about\",\"batch\",\"bulk\",\"cancel\",\"end\",\"enqueue\",\"hold\","
     "\"job\","
     "\"rate\",\"renew\",\"take\"],\"capabilities\":[\"costs\",\"hold\",\"result\"],"
     "\"partitions\":4}"},
};

static void check_partitions(carrier *carry)
{
    server_do(&server, "FLUSHALL");
    serving_weir("init --partitions 4");
    serving_weir("worker --exec nothing=true --drain");
    serving_weir("rate set mail 5/1h");
    for (size_t i = 0; i < COUNT(partitioned); i++)
        assert_answer(carry, partitioned[i][0], partitioned[i][1], partitioned[i][2]);
}

TEST_WITH(test_partitions, flush, NULL)
{
    (void)state;
    check_partitions(by_partitions);
    serving_start();
    check_partitions(by_http);
    serving_end();
}

static void refused(const char *path, const char *headers, unsigned status, const char *kind)
{
    const char *says = textf("{\"refused\":\"%s\",\"why\":", kind);

    serving_refused("POST", path, headers, "{}", status, says);
}

TEST_WITH(test_http_refuses, flush, NULL)
{
    (void)state;
    begin();
    serving_start_at(NULL, NULL, (const char *const[]){NULL});
    refused("/api/v1/enqueue", JSON, 403, "rights");
    refused("/api/v1/cancel", JSON, 403, "rights");
    refused("/api/v1/take", JSON "Origin: http://elsewhere.example\r\n", 403, "rights");
    refused("/api/v1/nothing", JSON, 404, "invalid");
    refused("/api/v1/about", FORM, 415, "invalid");
    refused("/api/v1/about", JSON "Content-Encoding: gzip\r\n", 415, "invalid");
    assert_answer(by_http, "rate", "{\"limit\":\"x\"}",
                  "{\"refused\":\"missing\",\"member\":\"limit\",\"why\":\"<why>\"}");
    serving_end();
}

/* Whether Redis has done it is not known when its answer does not come; so it is no refusal. */
TEST_WITH(test_http_says_that_an_answer_was_lost, flush, NULL)
{
    struct proxy *p = proxy_start(&server);
    unsigned status = 0;
    json_t *answer;

    (void)state;
    begin();
    serving_start_at(proxy_url(p), NULL, (const char *const[]){"--allow-enqueue", NULL});
    for (int tries = 0; status != 504; tries++) {
        assert_true(tries < CUTS_MOST);
        free(server_ask(&server, "DEL", PREFIX "id:j1", PREFIX "queue:default", NULL));
        assert_int_equal(serving_status_of("POST", "/api/v1/enqueue", JSON, "{\"type\":\"first\"}"), 200);
        proxy_cut_before(p, PROXY_REPLIES, 1);
        status = serving_status_of("POST", "/api/v1/enqueue", JSON, JOB);
    }
    answer = serving_parsed();
    assert_null(json_object_get(answer, "refused"));
    assert_non_null(json_object_get(answer, "error"));
    json_decref(answer);
    assert_answer(by_http, "enqueue", JOB, "{\"id\":\"j1\",\"new\":false}");
    serving_end();
    proxy_stop(p);
}

/* Its answers may name keys of jobs. */
TEST_WITH(test_http_hides_args, flush, NULL)
{
    (void)state;
    begin();
    serving_start_at(NULL, NULL,
                     (const char *const[]){"--hide-args", "--allow-actions", "--allow-enqueue", NULL});
    refused("/api/v1/job", JSON, 403, "rights");
    refused("/api/v1/cancel", JSON, 403, "rights");
    assert_answer(by_http, "enqueue", JOB, "{\"id\":\"j1\",\"new\":true}");
    serving_end();
}

TEST_WITH(test_a_cancel_is_logged, flush, NULL)
{
    (void)state;
    begin();
    serving_start();
    assert_answer(by_http, "enqueue", JOB, "{\"id\":\"j1\",\"new\":true}");
    assert_answer(by_http, "cancel", "{\"id\":\"j1\"}", "{\"id\":\"j1\",\"cancelled\":\"removed\"}");
    await_text(serving.folder, "serve.err",
               "event=action path=/api/v1/cancel fields=\"{\\\"id\\\":\\\"j1\\\"}\"");
    serving_end();
}

TESTS(set_up, tear_down)

#include "tests/scene.h"

/* ---- Asking */

static const char *const queue_names[] = {"default"};
static const char *const type_names[] = {"t", "slow"};
const struct names default_queue = {queue_names, COUNT(queue_names)};
struct claim_call ask;
char token_texts[TOKENS_MOST][200];
struct span tokens[TOKENS_MOST];

void scene_ask_anew(void)
{
    ask = (struct claim_call){.turn = ask.turn,
                              .group = "g",
                              .chunk = 100,
                              .queues = default_queue,
                              .types = {type_names, COUNT(type_names)}};
}

int scene_begin(void **state)
{
    turns_flush(state);
    ask.turn = 0;
    scene_ask_anew();
    return 0;
}

void must(int rc)
{
    if (rc != 0)
        fail_msg("%s", turns.error.text);
}

void start(const char *worker)
{
    must(turns_adopt(worker, "", NULL, 0, default_queue, NULL));
}

int worker_begin(void **state)
{
    scene_begin(state);
    start("w");
    return 0;
}

static void keep_tokens(void)
{
    for (size_t i = 0; i < turns.claim.lease_count && i < COUNT(tokens); i++) {
        const struct span *token = &turns.claim.leases[i].token;

        assert_in_range(token->len, 1, sizeof token_texts[i] - 1);
        memcpy(token_texts[i], token->at, token->len);
        token_texts[i][token->len] = '\0';
        tokens[i] = (struct span){token_texts[i], token->len};
    }
}

int try_claim(const char *worker, int free, int prefetch)
{
    int rc;

    ask.worker = worker;
    ask.turn++;
    ask.free = free;
    ask.prefetch = prefetch;
    rc = turns_claim(&ask);
    if (rc == 0)
        keep_tokens();
    return rc;
}

size_t claim(const char *worker, int free, int prefetch)
{
    must(try_claim(worker, free, prefetch));
    return turns.claim.lease_count;
}

void push(const char *queue, const char *body)
{
    redis_do("RPUSH", textf(PREFIX "queue:%s", queue), body);
}

void use_secret(void)
{
    redis_do("HSET", PREFIX "about", "secret", SECRET);
}

void enqueue(const char *queue, const char *type, const char *ids)
{
    char *rest = textf("%s", ids);

    for (char *id; (id = strsep(&rest, " "));)
        must(turns_enqueue(queue, type, id, -1));
}

void enqueue_many(const char *type, int count)
{
    for (int i = 0; i < count; i++)
        must(turns_enqueue("default", type, textf("%s%d", type, i), -1));
}

void enqueue_with(const char *type, const char *ids, const char *fields)
{
    char *rest = textf("%s", ids);

    for (char *id; (id = strsep(&rest, " "));) {
        const char *body = textf("{\"id\":\"%s\",\"type\":\"%s\",%s}", id, type, fields);
        const char *words[] = {"default", type, id, "1000", "tag", "", "", "", "", "", "", body};

        must(turns_script("enqueue", words, COUNT(words)));
        assert_int_equal(turns.reply->integer, 1);
    }
}

/* ---- Answers */

/* Appends the id in a body, and a blank before it when it is not the first. */
static void add_id(char out[1000], struct span body)
{
    struct job_view view;
    size_t len = strlen(out);

    if (job_read(body.at, body.len, &view, &turns.error) != 0)
        fail_msg("%.*s: %s", (int)body.len, body.at, turns.error.text);
    snprintf(out + len, 1000 - len, "%s%.*s", len ? " " : "", (int)view.id.len, view.id.at);
}

const char *token_text(struct span token)
{
    char *text = textf("%.*s", (int)token.len, token.at), *lane = strchr(text, '/'),
         *mark = strchr(text, '+');

    if (mark && mark < lane)
        memmove(mark, lane, strlen(lane) + 1);
    return text + strcspn(text, "@*/");
}

void expect_token(size_t lease, const char *expected)
{
    assert_in_range(lease, 0, turns.claim.lease_count - 1);
    assert_string_equal(token_text(turns.claim.leases[lease].token), expected);
}

void expect_leases(const char *ids)
{
    char found[1000] = "";

    for (size_t i = 0; i < turns.claim.lease_count; i++)
        add_id(found, turns.claim.leases[i].body);
    assert_string_equal(found, ids);
}

const char *list_ids(const char *key)
{
    static char found[1000];
    char *text = redis_text("LRANGE", key, "0", "-1"), *rest = text;

    found[0] = '\0';
    for (char *entry; text[0] && (entry = strsep(&rest, "\n"));) {
        char *body = strchr(entry, '{');

        assert_non_null(body);
        add_id(found, span_str(body));
    }
    free(text);
    return found;
}

void expect_list(const char *key, const char *ids)
{
    assert_string_equal(list_ids(key), ids);
}

void expect_leased(const char *worker, int free, const char *ids)
{
    claim(worker, free, 0);
    expect_leases(ids);
}

void expect_claim(const char *ids)
{
    expect_leased("w", 10, ids);
    turns_check();
}

void expect_next(int64_t after_us)
{
    if (turns.claim.next_us != turns.now_us + after_us)
        fail_msg("next after %lld us, not %lld", (long long)(turns.claim.next_us - turns.now_us),
                 (long long)after_us);
}

void expect_in_turn(const char *ids)
{
    char *rest = textf("%s", ids);

    for (char *id; (id = strsep(&rest, " "));) {
        expect_claim(id);
        if (rest)
            turns.now_us = turns.claim.next_us + LEAD_US;
    }
}

void expect_fields(const char *key, const char *expected)
{
    char *rest = textf("%s", expected);

    for (char *one; (one = strsep(&rest, ","));) {
        char name[32], *value;
        int number;

        assert_int_equal(sscanf(one, " %31s %d", name, &number), 2);
        value = redis_text("HGET", key, name);
        fail_if(atoi(value) != number, "%s of %s: %s, not %d", name, key, value, number);
        free(value);
    }
}

void expect_counters(const char *type, const char *counters)
{
    expect_fields(textf(PREFIX "stats:%s", type), counters);
}

void settle(const char *worker, enum settle_verb verb, struct span token, int64_t delay_us,
            const char *reason)
{
    int64_t stale;

    must(turns_settle_end(worker, verb, token, delay_us, reason, &stale));
    assert_int_equal(stale, 0);
}

int64_t settled(struct args *a)
{
    int64_t stale;

    must(turns_send(a));
    must(settle_reply(turns.reply, &stale, &turns.error));
    return stale;
}

void finish(const char *worker, const char *type, const struct span *done, size_t count)
{
    int64_t stale;

    must(turns_settle_done(worker, type, done, count, &stale));
    assert_int_equal(stale, 0);
}

void spend(const char *worker, struct span token, int64_t cost)
{
    int64_t stale;

    must(turns_settle_cost(worker, token, cost, &stale));
}

/* Its type counts that, and nothing else changes. */
void expect_stale(const char *worker, enum settle_verb verb, struct span token)
{
    char stats[200], *before, *after;
    int64_t stale;

    assert_int_equal(sscanf(token.at, "%*[^/]/%*[^/]/%150[^/]", stats + sprintf(stats, PREFIX "stats:")), 1);
    redis_number("HINCRBY", stats, "stale", "1");
    before = turns_digest();
    redis_number("HINCRBY", stats, "stale", "-1");
    must(turns_settle_end(worker, verb, token, 0, "late", &stale));
    assert_int_equal(stale, 1);
    after = turns_digest();
    assert_string_equal(before, after);
    free(before);
    free(after);
}

void promote(int64_t expected)
{
    int64_t moved;

    must(turns_promote(100, &moved));
    assert_int_equal(moved, expected);
}

int64_t heartbeat(const char *worker)
{
    int64_t taken, workers;

    must(turns_reap(worker, &taken, &workers));
    return taken;
}

int64_t pass(const char *worker, int64_t us)
{
    int64_t end_us = turns.now_us + us, taken = heartbeat(worker);

    while (turns.now_us < end_us) {
        turns.now_us += end_us - turns.now_us < LEASE_US / 4 ? end_us - turns.now_us : LEASE_US / 4;
        taken = heartbeat(worker);
    }
    return taken;
}

void push_bytes(struct span body)
{
    struct args a = {0};

    args_add(&a, "RPUSH");
    args_add(&a, QUEUE);
    args_add_bytes(&a, body.at, body.len);
    must(turns_send(&a));
}

void start_big(void)
{
    static int jobs;

    start("big");
    for (int i = 0; i < BIG_LEASES; i++)
        must(turns_enqueue("default", "t", textf("j%d", jobs++), -1));
    while (redis_number("LLEN", PREFIX "queue:default") > 0)
        claim("big", 0, 500);
}

void use(const char *type, const char *limits)
{
    char *rest = textf("%s", limits);

    for (const char *limit; (limit = strsep(&rest, " "));)
        must(turns_use(type, "use", "", &limit, 1));
}

void fill_queues(int count)
{
    const char *n = textf("%d", count);

    redis_do("EVAL",
             "local P = ARGV[1]\n"
             "local function put(key, kind, id)\n"
             "    local body = '{\"id\":\"' .. id .. '\",\"type\":\"' .. kind .. '\"}'\n"
             "    redis.call('RPUSH', P .. key, body)\n"
             "end\n"
             "for i = 0, ARGV[2] - 1 do\n"
             "    local q = 'q' .. i\n"
             "    redis.call('SADD', P .. 'queues', q)\n"
             "    put('queue:' .. q, 't', 'w' .. i)\n"
             "    put('lane:' .. q .. '/t/a', 't', 'r' .. i)\n"
             "    redis.call('ZADD', P .. 'ring:' .. q .. '/t', '1', 'a')\n"
             "    redis.call('ZADD', P .. 'wait:' .. q .. '/-', '1', 't')\n"
             "    redis.call('ZADD', P .. 'wake:' .. q, '1', '-', '2', '*')\n"
             "    put('lane:' .. q .. '/t/b', 't', 's' .. i)\n"
             "    redis.call('ZADD', P .. 'wait:' .. q .. '/t#0/b', '1', 't/b')\n"
             "    redis.call('ZADD', P .. 'sleep:' .. q, '2', 't#0/b')\n"
             "    put('lane:' .. q .. '/u/', 'u', 'h' .. i)\n"
             "    redis.call('ZADD', P .. 'ring:' .. q .. '/u', '1', '')\n"
             "    redis.call('ZADD', P .. 'held:' .. q, '1', 'u')\n"
             "end\n"
             "return redis.call('HSET', P .. 'types', 't', '', 'u', '')",
             "0", PREFIX, n);
}

int64_t count_calls(void)
{
    return server_calls(&turns.server, "fcall") + server_calls(&turns.server, "fcall_ro");
}

int64_t count_commands(void)
{
    static const char name[] = "total_commands_processed:";
    char *info = redis_text("INFO", "stats"), *at = strstr(info, name);
    int64_t count = at ? strtoll(at + strlen(name), NULL, 10) : 0;

    assert_non_null(at);
    free(info);
    return count;
}

static double cpu_field(const char *info, const char *name)
{
    const char *at = strstr(info, name);

    assert_non_null(at);
    return strtod(at + strlen(name), NULL);
}

int64_t server_cpu_us(void)
{
    char *info = redis_text("INFO", "cpu");
    double seconds =
        cpu_field(info, "used_cpu_sys_main_thread:") + cpu_field(info, "used_cpu_user_main_thread:");

    free(info);
    return (int64_t)(seconds * 1e6);
}

#define REFERENCE_US                                                                                         \
    10000 /* more than it takes on any machine that is not busy; what is bounded to that takes half as long */
#define REFERENCE_TRIES 3

static double slowness(void)
{
    double least = 1e9;

    for (int i = 0; i < REFERENCE_TRIES; i++) {
        int64_t before_us = server_cpu_us();
        double took;

        redis_do("EVAL",
                 "for i = 1, 2000 do redis.call('HSET', KEYS[1], i % 100, i) end\n"
                 "for i = 1, 20 do\n"
                 "  redis.call('SET', KEYS[1] .. i, ('x'):rep(65536))\n"
                 "  redis.call('GET', KEYS[1] .. i)\n"
                 "  redis.call('DEL', KEYS[1] .. i)\n"
                 "end\n"
                 "redis.call('DEL', KEYS[1])",
                 "1", "reference");
        took = (double)(server_cpu_us() - before_us) / REFERENCE_US;
        least = took < least ? took : least;
    }
    return least > 1 ? least : 1;
}

bool server_took_more(int64_t us, int64_t most_us)
{
    return us > most_us && (double)us > (double)most_us * slowness();
}

/* Cuts a line into its words, of which the first is a script. */
static size_t split_line(const char *line, const char *words[24])
{
    char *rest = textf("%s", line);
    size_t count = 0;

    for (; rest && count < 24; count++) {
        words[count] = strsep(&rest, " ");
        if (strcmp(words[count], "_") == 0)
            words[count] = "";
        else if (strcmp(words[count], "TOKEN") == 0)
            words[count] = "1.--/default/t/";
    }
    return count - 1;
}

int call_line(const char *line)
{
    const char *words[24];
    size_t count = split_line(line, words);

    return turns_script(words[0], words + 1, count);
}

int ask_line(const char *line)
{
    const char *words[24];
    size_t count = split_line(line, words);

    return turns_ask(words[0], words + 1, count);
}

static void refuse(const char *line, const char *before)
{
    char *after;

    fail_if(call_line(line) != WEIR_EINPUT, "%s: not refused, but: %s", line, turns.error.text);
    after = turns_digest();
    fail_if(strcmp(before, after) != 0, "%s: has changed something", line);
    free(after);
}

void expect_refused(const char *const *calls, size_t count)
{
    char *before = turns_digest();

    for (size_t i = 0; i < count; i++) {
        char *head = textf("%s", calls[i]), *tail = strstr(head, " | ");

        if (!tail)
            refuse(head, before);
        for (char *next; tail; tail = next) {
            *tail = '\0';
            next = strstr(tail + 3, " | ");
            refuse(textf("%s %.*s", head, next ? (int)(next - tail - 3) : 400, tail + 3), before);
        }
    }
    free(before);
}

void nothing_changed_since(char *before)
{
    char *after = turns_digest();

    assert_string_equal(before, after);
    free(before);
    free(after);
}

void name_types(const char *worker, const char *first, const char *head, int count)
{
    static char text[160000], digest[41];
    char *found;
    size_t used = (size_t)snprintf(text, sizeof text, "[\"%s\"", first);

    for (int i = 0; i < count; i++) {
        assert_true(used + 40 < sizeof text);
        used += (size_t)snprintf(text + used, sizeof text - used, ",\"%s%d\"", head, i);
    }
    snprintf(text + used, sizeof text - used, "]");
    redis_do("EVAL", "return redis.call('HSET', KEYS[1] .. ARGV[1], '@', '{\"types\":' .. ARGV[2] .. '}')",
             "1", ACTIVE, worker, text);
    found = redis_text("EVAL", "return redis.sha1hex(ARGV[1])", "0", text);

    snprintf(digest, sizeof digest, "%s", found);
    free(found);
    ask.digest = digest;
    ask.types = (struct names){NULL, 0};
}

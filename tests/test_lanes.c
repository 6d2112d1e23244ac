/* Lanes over a long time, under virtual time: that a backlog runs exactly at its rate, that nothing starves,
 * that keys, types, lanes and queues share as they should. Random sequences: test_throttle.c. */
#include <inttypes.h>

#include "core/number.h"
#include "tests/scene.h"
#include "worker/mind/wide.h"

#define AHEAD_US 5000 /* as in gate.lua */

/* ---- One worker that takes its turns as a worker does: when a job of its own ends, and when the last claim
 * said. */

enum { RUNNING_MOST = 4096, KINDS = 8 };

static const char *const workers[] = {"w", "v"};

struct running {
    const char *worker;
    char token[200];
    char type[16];
    int64_t end_us;
};

static struct shop {
    int executors;
    int64_t run_us; /* how long each job takes */
    const char *types[KINDS], *const *queues;
    int type_count, queue_count;
    int worker_count; /* which claim in turns; they share the executors */
    int64_t ahead_us;
    struct wide *chooser; /* of the queues that a claim serves; NULL: all of them */
    uint64_t random;      /* by which it draws */
    const int *weights;   /* of these */
    bool wide;
    int64_t turn;
    struct running running[RUNNING_MOST];
    int running_count;
    int starts[KINDS];      /* of each type */
    int64_t last_us[KINDS]; /* the last start of each */
    int64_t gap_us[KINDS];  /* the longest time without one */
    int claims;
    void (*on_start)(const struct lease *lease);
} shop;

/* open_shop(executors, run_us, type...) */
#define open_shop(executors, run_us, ...) open_shop_of(executors, run_us, WORDS(__VA_ARGS__))
static void open_shop_of(int executors, int64_t run_us, const char *const *types, size_t type_count)
{
    shop = (struct shop){.executors = executors, .run_us = run_us, .type_count = (int)type_count};
    assert_true(type_count <= KINDS);
    memcpy(shop.types, types, type_count * sizeof *types);
    shop.queues = default_queue.at;
    shop.queue_count = shop.worker_count = 1;
    for (int i = 0; i < KINDS; i++)
        shop.last_us[i] = turns.now_us;
    for (size_t i = 0; i < COUNT(workers); i++)
        must(turns_adopt(workers[i], "", NULL, 0, default_queue, NULL));
}

static int kind_of(struct span type)
{
    for (int i = 0; i < shop.type_count; i++)
        if (strlen(shop.types[i]) == type.len && memcmp(shop.types[i], type.at, type.len) == 0)
            return i;
    fail_msg("a lease of %.*s", (int)type.len, type.at);
    return -1;
}

static void note_gap(int kind, int64_t at_us)
{
    if (at_us - shop.last_us[kind] > shop.gap_us[kind])
        shop.gap_us[kind] = at_us - shop.last_us[kind];
    shop.last_us[kind] = at_us;
}

static const char *worker_on_turn(void)
{
    return workers[shop.turn % shop.worker_count];
}

static void start_job(const struct lease *lease)
{
    struct running *r = &shop.running[shop.running_count++];
    int64_t at_us = lease->slot_us > turns.now_us ? lease->slot_us : turns.now_us;
    int kind = kind_of(lease->type);

    assert_true(shop.running_count <= shop.executors && lease->token.len < sizeof r->token);
    r->worker = worker_on_turn();
    snprintf(r->token, sizeof r->token, "%.*s", (int)lease->token.len, lease->token.at);
    snprintf(r->type, sizeof r->type, "%s", shop.types[kind]);
    r->end_us = at_us + shop.run_us;
    shop.starts[kind]++;
    note_gap(kind, at_us);
    if (shop.on_start)
        shop.on_start(lease);
}

/* Those of a worker that have ended by now. */
static void end_jobs_of(const char *worker)
{
    struct args a = {0};
    int kept = 0;

    settle_request(&a, PREFIX, turns.now_us, worker);
    for (int i = 0; i < shop.running_count; i++) {
        struct running *r = &shop.running[i];

        if (r->end_us > turns.now_us || r->worker != worker) {
            shop.running[kept++] = *r;
            continue;
        }
        settle_done(&a, r->type, (struct span){"", 0}, 1);
        settle_token(&a, span_str(r->token));
    }
    if (kept == shop.running_count) {
        args_free(&a);
        return;
    }
    shop.running_count = kept;
    assert_int_equal(settled(&a), 0);
    if (shop.chooser) {
        char *token = redis_text("LPOP", PREFIX "bell:g");

        wide_ring(shop.chooser, (struct span){token, strlen(token)});
        free(token);
    }
}

static void end_jobs(void)
{
    for (size_t i = 0; i < COUNT(workers); i++)
        end_jobs_of(workers[i]);
}

/* As worker/partition/claim.c. */
static void choose(struct claim_call *call)
{
    call->duty_until_us = turns.claim.duty_until_us;
    call->told = true;
    call->wide = shop.wide;
    call->early = shop.ahead_us > 0;
    if (shop.weights)
        wide_draw(shop.chooser, shop.weights, &shop.random);
    call->queues = wide_pick(shop.chooser, turns.now_us, turns.now_us - 350000);
    call->asked = wide_asked(shop.chooser, &call->known);
    call->held = wide_take_held(shop.chooser);
}

static void hear_chosen(int free)
{
    int64_t next_us = turns.claim.next_us > 0 ? turns.claim.next_us : 0;

    wide_hear(shop.chooser, &(struct wide_answer){&turns.claim, free, turns.claim.duty_until_us != 0, next_us,
                                                  0, turns.now_us});
    turns.claim.more = wide_due(shop.chooser) <= turns.now_us;
    turns.claim.next_us = wide_due(shop.chooser) < INT64_MAX ? wide_due(shop.chooser) : -1;
    if (turns.claim.next_us < 0 || turns.now_us + 400000 < turns.claim.next_us)
        turns.claim.next_us = turns.now_us + 400000;
}

static void take_turn(void)
{
    struct claim_call call = {.group = "g",
                              .chunk = 1000,
                              .held = true,
                              .ahead_us = shop.ahead_us,
                              .far = shop.ahead_us ? shop.executors : 0,
                              .queues = {shop.queues, shop.queue_count},
                              .types = {shop.types, shop.type_count}};

    do {
        call.turn = ++shop.turn;
        call.worker = worker_on_turn();
        call.free = shop.executors - shop.running_count;
        if (shop.chooser)
            choose(&call);
        must(turns_claim(&call));
        shop.claims++;
        for (size_t i = 0; i < turns.claim.lease_count; i++)
            start_job(&turns.claim.leases[i]);
        if (shop.chooser)
            hear_chosen(call.free);
    } while (turns.claim.more && shop.running_count < shop.executors);
}

/* When it looks again: as the last claim said, or when a job ends; a job that takes no time has ended. */
static int64_t next_look(int64_t end_us)
{
    int64_t next_us = end_us;

    if (turns.claim.next_us >= 0 && turns.claim.next_us < next_us && shop.running_count < shop.executors)
        next_us = turns.claim.next_us;
    for (int i = 0; i < shop.running_count; i++)
        if (shop.running[i].end_us < next_us)
            next_us = shop.running[i].end_us;
    return next_us > turns.now_us ? next_us : turns.now_us + 1;
}

static void run_shop(int64_t us)
{
    int64_t end_us = turns.now_us + us;

    for (;;) {
        end_jobs();
        take_turn();
        if (next_look(end_us) >= end_us)
            break;
        turns.now_us = next_look(end_us);
    }
    turns.now_us = end_us;
    for (int i = 0; i < shop.type_count; i++)
        note_gap(i, end_us);
}

/* So many jobs with ids of their own; members: what else they have. */
static void push_jobs(const char *queue, const char *members, int count)
{
    static int pushed;
    struct args a = {0};

    while (count > 0) {
        args_add(&a, "RPUSH");
        args_add(&a, textf(PREFIX "queue:%s", queue));
        for (int i = 0; i < 1000 && count > 0; i++, count--)
            args_add(&a, textf("{\"id\":\"j%d\",%s}", pushed++, members));
        must(turns_send(&a));
    }
}

/* "a 1000, b 100": so many jobs of these types. */
static void push_types(const char *types)
{
    char *rest = textf("%s", types), type[16];

    for (char *one; (one = strsep(&rest, ","));) {
        int count;

        assert_int_equal(sscanf(one, " %15s %d", type, &count), 2);
        push_jobs("default", textf("\"type\":\"%s\"", type), count);
    }
}

static void push_key(const char *type, const char *key, int count)
{
    push_jobs("default", textf("\"type\":\"%s\",\"key\":\"%s\"", type, key), count);
}

static void expect_at_least(const char *what, int64_t value, int64_t least)
{
    fail_if(value < least, "%s: %lld, not %lld or more", what, (long long)value, (long long)least);
}

static void expect_at_most(const char *what, int64_t value, int64_t most)
{
    fail_if(value > most, "%s: %lld, not %lld or less", what, (long long)value, (long long)most);
}

/* ---- Exactly its rate */

struct backlog {
    int64_t count, period_us, burst, seconds;
};

/* The n-th start of a backlog that is served as early as its rule allows, written as it is defined. */
static int64_t exact_start(const struct backlog *b, int64_t n)
{
    __int128 waited = n > b->burst ? (__int128)(n - b->burst) * b->period_us : 0;

    return BEGIN_US + (int64_t)((waited + b->count - 1) / b->count);
}

static void check_starts(const struct backlog *b, int64_t *n)
{
    for (size_t i = 0; i < turns.claim.lease_count; i++) {
        int64_t start_us = exact_start(b, ++*n);

        if (turns.claim.leases[i].slot_us != start_us)
            fail_msg("%lld/%lld us: start %lld is %lld us off", (long long)b->count, (long long)b->period_us,
                     (long long)*n, (long long)(turns.claim.leases[i].slot_us - start_us));
    }
}

/* Claims as a worker takes its turns, a little before each opening; many are under way, since when they are
 * is known. */
static void run_backlog(const struct backlog *b, int64_t starts)
{
    enum { UNDER_WAY = 20, A_CLAIM = 200 }; /* Redis answers them together, and within 5 s */
    static const char *const type = "t";
    struct claim_call call = {.worker = "w",
                              .group = "g",
                              .free = 1000,
                              .chunk = 1000,
                              .queues = default_queue,
                              .types = {&type, 1}};
    int64_t asked = 0, got = 0;
    struct args a = {0};

    while (got < starts) {
        int sent = 0;

        for (; sent < UNDER_WAY && asked < starts; sent++) {
            int64_t before_us = exact_start(b, asked + 1) - AHEAD_US / 2;

            turns.now_us = before_us > BEGIN_US ? before_us : BEGIN_US;
            call.turn++;
            claim_request(&a, PREFIX, turns.now_us, &call);
            assert_int_equal(redis_append(turns.redis, &a, &turns.error), 0);
            for (int granted = 0;
                 granted < A_CLAIM && asked < starts && exact_start(b, asked + 1) <= turns.now_us + AHEAD_US;
                 granted++)
                asked++;
        }
        for (; sent > 0; sent--) {
            struct redisReply *reply;

            assert_int_equal(redis_result(turns.redis, &reply, &turns.error), 0);
            assert_int_equal(claim_reply(reply, &turns.claim, &turns.error), 0);
            check_starts(b, &got);
            freeReplyObject(reply);
        }
        assert_true(got >= asked);
    }
    args_free(&a);
}

SCENE_TEST(test_a_backlog_runs_exactly_at_its_rate)
{
    static const struct backlog runs[] = {
        {7, 1000000, 1, 1200},    {7, 1000000, 7, 600},       {30, 1000000, 1, 300},
        {1, 1500000, 1, 3600},    {100, 60000000, 100, 3600}, {1, 86400000000, 1, 365 * 86400},
        {1000, 1000000, 1, 10},   {30000, 1000000, 1, 1},     {20000, 1000000, 20000, 2},
        {999983, 1000003, 10, 0}, {1000000, 1000000, 1, 0},
    };

    for (size_t i = 0; i < COUNT(runs); i++) {
        const struct backlog *b = &runs[i];
        int64_t starts = b->seconds ? b->seconds * SECOND_US / b->period_us * b->count : 20000;
        char rule[100];

        turns_flush(NULL);
        snprintf(rule, sizeof rule, "gcra:%lld/%lld/%lld", (long long)b->count, (long long)b->period_us,
                 (long long)b->burst);
        must(turns_adopt("w", "", NULL, 0, default_queue, NULL));
        must(turns_rate("t", rule));
        push_types(textf("t %d", (int)starts));
        run_backlog(b, starts);
    }
}

/* ---- Several limits: nobody starves, and the limits are used */

static const char *const contenders[] = {"T", "X", "Y", "Z"};

static void set_limits(const char *g, const char *h)
{
    must(turns_rate("G", g));
    must(turns_rate("H", h));
    use("T", "G H");
    use("X", "G");
    use("Y", "H");
}

/* What T, which needs them all, and the others start; each limit is used, but for one slot for each start of
 * T. */
SCENE_TEST(test_who_needs_two_contended_limits_starts)
{
    set_limits("10/1000000/1", "7/1000000/1");
    push_types("X 1000, Y 1000, T 100");
    open_shop_of(20, 0, contenders, 3);
    run_shop(30 * SECOND_US);
    expect_at_least("T", shop.starts[0], 99);
    expect_at_least("G", shop.starts[0] + shop.starts[1], 299);
    expect_at_least("H", shop.starts[0] + shop.starts[2], 199);
    expect_at_most("T waits", shop.gap_us[0], 600000);
    expect_at_most("X waits", shop.gap_us[1], 400000);
    expect_at_most("Y waits", shop.gap_us[2], 600000);
    turns_check();
}

SCENE_TEST(test_a_slow_limit_holds_a_fast_one_for_a_slot_only)
{
    set_limits("100/1000000/1", "1/2160000/1");
    push_types("X 6000, Y 100, T 100");
    open_shop_of(20, 0, contenders, 3);
    run_shop(25 * SECOND_US);
    expect_at_least("T", shop.starts[0], 5);
    expect_at_least("G", shop.starts[0] + shop.starts[1], 2490);
    expect_at_least("H", shop.starts[0] + shop.starts[2], 12);
    expect_at_most("X waits", shop.gap_us[1], 30000);
    turns_check();
}

SCENE_TEST(test_who_needs_three_limits_starts)
{
    set_limits("10/1000000/1", "7/1000000/1");
    must(turns_rate("I", "3/1000000/1"));
    use("T", "I");
    use("Z", "I");
    push_types("X 1000, Y 1000, Z 1000, T 100");
    open_shop_of(20, 0, contenders, 4);
    run_shop(30 * SECOND_US);
    expect_at_least("T", shop.starts[0], 37);
    expect_at_least("G", shop.starts[0] + shop.starts[1], 299);
    expect_at_most("T waits", shop.gap_us[0], SECOND_US);
    turns_check();
}

SCENE_TEST(test_types_that_need_the_same_limits_cannot_block_each_other)
{
    set_limits("10/1000000/1", "7/1000000/1");
    use("U", "H G");
    push_types("X 1000, Y 1000, T 100, U 100");
    open_shop(20, 0, "T", "U", "X", "Y");
    run_shop(30 * SECOND_US);
    expect_at_least("T", shop.starts[0], 58);
    expect_at_least("U", shop.starts[1], 58);
    expect_at_least("G", shop.starts[0] + shop.starts[1] + shop.starts[2], 295);
    turns_check();
}

SCENE_TEST(test_a_rate_and_concurrency_go_together)
{
    set_limits("10/1000000/1", "concurrency:2");
    push_types("X 1000, Y 3000, T 100");
    open_shop_of(20, 90000, contenders, 3);
    run_shop(30 * SECOND_US);
    assert_int_equal(shop.starts[0], 100);
    expect_at_least("Y", shop.starts[2], 540);
    turns_check();
}

/* ---- Keys */

static int few_started;
static int64_t few_last_us;
static void on_few(const struct lease *lease)
{
    if (lease->key.len == 3 && memcmp(lease->key.at, "big", 3) == 0)
        return;
    few_started++;
    few_last_us = lease->slot_us;
}

/* 50 customers with 3 jobs each, behind one with 100,000. */
SCENE_TEST(test_one_customer_does_not_starve_fifty)
{
    must(turns_rate("mail", "gcra:100/1000000/1 gcra:1000/1000000/1,by=args.customer"));
    push_jobs("default", "\"type\":\"mail\",\"args\":{\"customer\":\"big\"}", 100000);
    few_started = 0;
    open_shop(20, 0, "mail");
    shop.on_start = on_few;
    run_shop(2 * SECOND_US);
    for (int i = 0; i < 150; i++)
        push_jobs("default", textf("\"type\":\"mail\",\"args\":{\"customer\":%d}", i / 3), 1);
    run_shop(4 * SECOND_US);
    assert_int_equal(few_started, 150);
    expect_at_most("all of the fifty had started after us", few_last_us - BEGIN_US - 2 * SECOND_US, 1600000);
    expect_at_least("100/s", shop.starts[0], 599);
    turns_check();
}

static int by_key[4];
static void on_key(const struct lease *lease)
{
    by_key[lease->key.at[0] - 'a']++;
}

static void expect_share(const char *what, int part, int whole, double share)
{
    double is = (double)part / whole;

    if (is < share * 0.95 || is > share * 1.05)
        fail_msg("%s has %d of %d starts, %.3f, not %.3f", what, part, whole, is, share);
}

SCENE_TEST(test_keys_share_by_weight)
{
    memset(by_key, 0, sizeof by_key);
    must(turns_rate("mail", "gcra:100/1000000/1 gcra:100/1000000/5,by=key"));
    must(turns_weight("mail", "a", 3));
    must(turns_weight("mail", "d", 2));
    for (int i = 0; i < 4; i++)
        push_key("mail", (const char[]){(char)('a' + i), '\0'}, 2000);
    open_shop(20, 0, "mail");
    shop.on_start = on_key;
    run_shop(30 * SECOND_US);
    expect_at_least("100/s", shop.starts[0], 2999);
    expect_share("a", by_key[0], shop.starts[0], 3.0 / 7);
    expect_share("b", by_key[1], shop.starts[0], 1.0 / 7);
    expect_share("c", by_key[2], shop.starts[0], 1.0 / 7);
    expect_share("d", by_key[3], shop.starts[0], 2.0 / 7);
    turns_check();
}

enum { SHARE_QUEUES = 2 };

static const char *const share_queues[SHARE_QUEUES] = {"q0", "q1"};
static int weight, rounds, since_b[SHARE_QUEUES];

/* Between two starts of b in a queue stand as many of a as the weight of a says, and one of c. */
static void on_share(const struct lease *lease)
{
    const char *queue = memchr(lease->token.at, '/', lease->token.len);
    int *since = &since_b[queue && queue[1] == 'q' && queue[2] == '1'];

    if (lease->key.at[0] == 'a') {
        ++*since;
    } else if (lease->key.at[0] == 'b') {
        if (rounds >= SHARE_QUEUES && *since != weight)
            fail_msg("weight %d: %d starts between two of another key", weight, *since);
        *since = 0;
        rounds++;
    }
}

struct shares {
    int weight, worker_count, queue_count;
    int64_t ahead_us;
    const char *cost;  /* of the jobs of b */
    const char *rules; /* beside the one of the keys */
};

static void run_shares(const struct shares *s)
{
    weight = s->weight;
    rounds = 0;
    memset(since_b, 0, sizeof since_b);
    must(turns_rate("mail", textf("%s gcra:100000/1000000/100000,by=key", s->rules)));
    must(turns_weight("mail", "a", s->weight));
    for (int i = 0; i < s->queue_count; i++) {
        push_jobs(share_queues[i], "\"type\":\"mail\",\"key\":\"a\"", 1300 + 6 * s->weight);
        push_jobs(share_queues[i], s->cost, 700);
        push_jobs(share_queues[i], "\"type\":\"mail\",\"key\":\"c\"", 700);
    }
    must(turns_pause("mail", SECOND_US));
    open_shop(20, 5000, "mail");
    shop.queues = share_queues;
    shop.queue_count = s->queue_count;
    shop.worker_count = s->worker_count;
    shop.ahead_us = s->ahead_us;
    shop.on_start = on_share;
    run_shop(1500000);
    must(turns_pause("mail", SECOND_US));
    while (shop.starts[0] < 1000 || rounds < 2 * SHARE_QUEUES + 1)
        run_shop(200000);
    turns_check();
}

/* Whatever the gate lets through at a time, whoever claims, and over a pause. */
SCENE_TEST(test_a_weight_is_exact)
{
#define PLAIN "\"type\":\"mail\",\"key\":\"b\""
    static const struct shares cases[] = {
        {2, 1, 1, 0, PLAIN, "gcra:1000/1000000/1"},
        {3, 1, 1, 50000, PLAIN, "gcra:1000/1000000/7"},
        {3, 2, 2, 50000, PLAIN, "gcra:400/1000000/1"},
        {3, 2, 1, 0, PLAIN ",\"cost\":2", "gcra:1000/1000000/7"},
        {10, 2, 2, 0, PLAIN ",\"cost\":3", "gcra:1000/1000000/40"},
        {10, 1, 2, 50000, PLAIN, "concurrency:3"},
        {1000, 2, 1, 50000, PLAIN, "fixed-window:1000/1000000/0"},
        {4, 1, 1, 0, PLAIN, "gcra:100/1000000/1 gcra:100/1000000/1,by=key"}, /* a sleeps after each start */
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        scene_begin(state);
        run_shares(&cases[i]);
    }
}

SCENE_TEST(test_keys_share_when_executors_are_few)
{
    memset(by_key, 0, sizeof by_key);
    must(turns_rate("mail", "gcra:1000/1000000/1000 concurrency:100,by=key"));
    must(turns_pause("mail", SECOND_US));
    push_key("mail", "a", 5000);
    push_key("mail", "b", 300);
    push_key("mail", "c", 300);
    open_shop(4, 10000, "mail");
    shop.on_start = on_key;
    run_shop(3 * SECOND_US);
    expect_at_least("400/s", shop.starts[0], 790);
    expect_share("a", by_key[0], shop.starts[0], 1.0 / 3);
    turns_check();
}

/* A key that is closed costs the others of its type nothing. */
SCENE_TEST(test_a_closed_key_delays_no_other)
{
    memset(by_key, 0, sizeof by_key);
    must(turns_rate("mail", "gcra:100/1000000/1 concurrency:1,by=key"));
    push_key("mail", "a", 1);
    open_shop(50, 3600 * SECOND_US, "mail"); /* never ends */
    take_turn();
    push_key("mail", "a", 1000);
    shop.run_us = 0;
    shop.on_start = on_key;
    run_shop(SECOND_US);
    push_key("mail", "b", 200);
    run_shop(2 * SECOND_US + 100000);
    assert_int_equal(by_key[0], 0);
    assert_int_equal(by_key[1], 200);
    turns_check();
}

/* ---- Lanes, queues and types */

/* Unlimited jobs beside lanes that are always due, on executors that are always busy. */
SCENE_TEST(test_neither_lanes_nor_queue_starve)
{
    static const char *const types[] = {"free", "a", "b", "c"};

    for (int i = 1; i < 4; i++) {
        must(turns_rate(types[i], "1000/1000000/1000"));
        must(turns_pause(types[i], SECOND_US));
        push_types(textf("%s 3000", types[i]));
    }
    open_shop_of(4, 10000, types, 4);
    run_shop(6 * SECOND_US);
    push_types("free 100");
    run_shop(SECOND_US);
    assert_int_equal(shop.starts[0], 100);
    expect_at_least("400/s", shop.starts[1] + shop.starts[2] + shop.starts[3] + 100, 2390);
    for (int i = 2; i < 4; i++)
        expect_share(types[i], shop.starts[i], shop.starts[1] + shop.starts[2] + shop.starts[3], 1.0 / 3);
    turns_check();
}

SCENE_TEST(test_a_closed_type_delays_nobody)
{
    must(turns_rate("closed", CLOSED_RULE));
    must(turns_rate("open", "100/1000000/1"));
    push_types("closed 20000");
    open_shop(10, 0, "closed", "open", "free");
    run_shop(10000);
    push_types("closed 2000, open 1000, free 1000");
    run_shop(SECOND_US);
    assert_int_equal(shop.starts[0], 1);
    expect_at_least("open", shop.starts[1], 99);
    assert_int_equal(shop.starts[2], 1000);
    turns_check();
}

/* The queue that comes first is served first, out of lanes too. */
SCENE_TEST(test_queues_come_in_order)
{
    static const char *const queues[] = {"high", "low"};

    must(turns_rate("u", "100/1000000/1"));
    open_shop(4, 10000, "t", "u");
    shop.queues = queues;
    shop.queue_count = 2;
    push_jobs("low", "\"type\":\"u\"", 1000);
    run_shop(SECOND_US);
    expect_at_least("u", shop.starts[1], 99);
    push_jobs("high", "\"type\":\"u\"", 50);
    run_shop(SECOND_US);
    assert_int_equal(redis_number("LLEN", PREFIX "lane:high/u/"), 0);
    expect_at_least("u", shop.starts[1], 199);
    turns_check();
}

enum { QUEUES_MOST = 1000 };

static int by_queue[QUEUES_MOST];

static void on_queue(const struct lease *lease)
{
    by_queue[strtol((const char *)memchr(lease->token.at, '/', lease->token.len) + 2, NULL, 10)]++;
}

struct crowd {
    int queue_count;
    bool is_wide;  /* they are those of a pattern */
    bool weighted; /* each other one has 3 starts for one of those between them */
    const char *rules;
    int executors;
    int64_t for_us;
    int starts; /* in that time, at least */
};

static int jobs_of(const struct crowd *c)
{
    return 20000 + 4 * c->starts;
}

/* So many queues have jobs of one limit, all of which are parked. */
static void begin_crowd(const struct crowd *c)
{
    static const char *const pattern = "q*";
    const char **names = numbered("q", c->queue_count);
    static int weights[QUEUES_MOST];

    for (int i = 0; i < c->queue_count; i++) {
        weights[i] = 1 + i % 2 * 2;
        push_jobs(names[i], "\"type\":\"mail\"", jobs_of(c) / c->queue_count);
        redis_do("SADD", PREFIX "queues", names[i]);
    }
    memset(by_queue, 0, sizeof by_queue);
    must(turns_rate("mail", c->rules));
    open_shop(c->executors, 0, "mail");
    shop.on_start = on_queue;
    shop.ahead_us = 50000;
    shop.wide = c->is_wide;
    shop.weights = c->weighted ? weights : NULL;
    shop.chooser = c->is_wide ? wide_new(&pattern, 1) : wide_new(names, c->queue_count);
    for (int i = 0; i < c->queue_count; i++)
        assert_true(wide_learn(shop.chooser, span_str(names[i])));
    while (redis_number("EXISTS", PREFIX "queue:q0") || wide_due(shop.chooser) <= turns.now_us)
        run_shop(SECOND_US);
    shop.starts[0] = 0;
    memset(by_queue, 0, sizeof by_queue);
}

static void end_crowd(void)
{
    wide_free(shop.chooser);
    shop.chooser = NULL;
}

/* Returns how many commands of Redis a start takes. */
static double run_crowd(const struct crowd *c)
{
    int64_t before;

    begin_crowd(c);
    before = count_commands();
    run_shop(c->for_us);
    before = count_commands() - before;
    end_crowd();
    return (double)before / shop.starts[0];
}

/* Those of a pattern take turns, each with the slots of a claim or two. By weight each claim draws who comes first: of 600 draws the
   share has a standard deviation of 0.018, and five of them are allowed. All others are in strict order. */
static void expect_turns(const struct crowd *c)
{
    int served = 0, heavy = 0;

    for (int i = 0; i < c->queue_count; i++) {
        served += by_queue[i] > 0;
        heavy += i % 2 ? by_queue[i] : 0;
        if (c->is_wide) {
            expect_at_least("starts of a queue of a pattern", by_queue[i], 1);
            expect_at_most("starts of a queue of a pattern", by_queue[i], 15);
        }
    }
    if (c->weighted) {
        expect_at_least("starts by a weight of 3", heavy, (int)(0.66 * shop.starts[0]));
        expect_at_most("starts by a weight of 3", heavy, (int)(0.84 * shop.starts[0]));
    } else if (!c->is_wide)
        expect_at_most("queues in strict order", served, 6100 * c->queue_count / jobs_of(c) + 2);
}

/* The opening of a gate does not wake each queue that waits there. */
SCENE_TEST(test_many_queues_cost_what_one_does)
{
    static const struct crowd crowds[] = {
        {1, false, false, "gcra:100/1000000/10", 100, 60 * SECOND_US, 5970},
        {64, false, false, "gcra:100/1000000/10", 100, 60 * SECOND_US, 5970},
        {64, false, true, "gcra:100/1000000/10", 100, 60 * SECOND_US, 5970},
        {1000, true, false, "gcra:100/1000000/10", 100, 60 * SECOND_US, 5970},
    };
    double of_one = 0;

    for (size_t i = 0; i < COUNT(crowds); i++) {
        double commands;

        scene_begin(state);
        commands = run_crowd(&crowds[i]);
        of_one = i == 0 ? commands : of_one;
        expect_at_least("99.5 %", shop.starts[0], crowds[i].starts);
        fail_if(commands > 1.5 * of_one, "%d queues: %.2f commands a start; one queue: %.2f",
                crowds[i].queue_count, commands, of_one);
        expect_turns(&crowds[i]);
        turns_check();
    }
}

/* One queue after the other, as few of them have what all slots are for: at a high rate, a burst of 1, and as jobs end. */
SCENE_TEST(test_many_queues_keep_the_rate)
{
    static const struct crowd crowds[] = {
        {1000, true, false, "gcra:20000/1000000/100", 1500, SECOND_US / 2, 9950},
        {1000, true, false, "gcra:400/1000000/1", 100, 5 * SECOND_US, 1990},
        {64, false, false, "gcra:400/1000000/1", 100, 5 * SECOND_US, 1990},
    };

    for (size_t i = 0; i < COUNT(crowds); i++) {
        scene_begin(state);
        run_crowd(&crowds[i]);
        expect_at_least("99.5 %", shop.starts[0], crowds[i].starts);
        turns_check();
    }
}

/* A changed rule opens a gate an hour before what is known of it, and nobody hears the bell: the claims that keep the duty find it, and the
   queues come in their order from then on. */
SCENE_TEST(test_a_lost_bell_is_found_by_the_next_claim)
{
    static const struct crowd crowds[] = {
        {64, false, false, "gcra:1/3600000000/1", 100, SECOND_US, 0},
        {1000, true, false, "gcra:1/3600000000/1", 100, SECOND_US, 0},
    };

    for (size_t i = 0; i < COUNT(crowds); i++) {
        scene_begin(state);
        begin_crowd(&crowds[i]);
        run_shop(SECOND_US);
        must(turns_rate("mail", "gcra:100/1000000/1"));
        redis_do("DEL", PREFIX "bell:g");
        by_queue[0] = shop.starts[0] = 0;
        run_shop(2 * SECOND_US);
        expect_at_least("starts", shop.starts[0], 155);
        if (!crowds[i].is_wide)
            expect_at_least("starts of the first queue", by_queue[0], 150);
        end_crowd();
        turns_check();
    }
}

/* ---- Something comes to wait in a queue, and the worker on duty hears no bell */

#define LOOK_US (SECOND_US / 10 * 4)

static int64_t unheard_us; /* when a job of q0 was last started, or its slot, whichever is later */

static void on_unheard(const struct lease *lease)
{
    if (strstr(textf("%.*s", (int)lease->token.len, lease->token.at), "/q0/mail/"))
        unheard_us = max_i64(turns.now_us, lease->slot_us);
}

struct unheard {
    int queue_count;
    bool is_wide;
    int others;     /* jobs of another type, with a limit, in each other queue, */
    int beside;     /* and in q0 */
    bool is_retry;  /* else a key sleeps, as one job of it has just started, */
    int64_t for_us; /* which is so long */
    bool
        asleep; /* the worker knows of a key that sleeps for longer in each queue, and of others that wake meanwhile */
    bool is_gate; /* no key sleeps: its type waits, at a gate at which nothing has waited there before */
};

/* Worker v, which is not on duty, takes what can start in q0. */
static void take_unheard(void)
{
    must(turns_claim(&(struct claim_call){.worker = "v",
                                          .group = "g",
                                          .turn = ++shop.turn,
                                          .free = 10,
                                          .chunk = 10,
                                          .queues = NAMES("q0"),
                                          .types = NAMES("mail")}));
}

static void begin_unheard(const struct unheard *c)
{
    static const char *const pattern = "q*";
    const char **names = numbered("q", c->queue_count);

    must(turns_rate(
        "mail", textf("gcra:1/%" PRId64 "/1%s", c->is_retry ? 1 : c->for_us, c->is_gate ? "" : ",by=key")));
    must(turns_rate("bulk", "gcra:100/1000000/1"));
    open_shop(20, 0, "mail", "bulk");
    if (c->is_wide)
        redis_do("HSET", PREFIX "active:w", "@", "{\"queues\":[\"q*\"],\"types\":[\"mail\",\"bulk\"]}");
    shop.on_start = on_unheard;
    shop.ahead_us = 50000;
    shop.wide = c->is_wide;
    shop.chooser = c->is_wide ? wide_new(&pattern, 1) : wide_new(names, c->queue_count);
    for (int i = 0; i < c->queue_count; i++) {
        push_jobs(names[i], "\"type\":\"bulk\"", i ? c->others : c->beside);
        redis_do("SADD", PREFIX "queues", names[i]);
        assert_true(wide_learn(shop.chooser, span_str(names[i])));
    }
    if (c->asleep)
        must(turns_pause_key("mail", "old", 60 * SECOND_US));
    for (int i = 0; c->asleep && i < c->queue_count; i++)
        push_jobs(names[i], "\"type\":\"mail\",\"key\":\"old\"", 1);
    run_shop(2 * SECOND_US);
    for (int i = 1; c->asleep && i < 15; i++) {
        push_jobs(names[i], textf("\"type\":\"mail\",\"key\":\"%d\"", i), 3);
        run_shop(LOOK_US / 4);
    }
    unheard_us = 0;
}

/* Returns when the job could start at the earliest. */
static int64_t leave_unheard(const struct unheard *c)
{
    int64_t at_us = turns.now_us, moved;

    push_jobs("q0", "\"type\":\"mail\",\"key\":\"gone\"", !c->is_gate);
    push_jobs("q0", "\"type\":\"mail\",\"key\":\"k\"", c->is_retry ? 0 : 2);
    take_unheard();
    assert_int_equal(turns.claim.lease_count, c->is_retry || c->is_gate ? 1 : 2);
    if (c->is_retry) {
        must(turns_settle_end("v", SETTLE_RETRY, turns.claim.leases[0].token, 1, "no luck", &turns.stale));
        turns.now_us += 2;
        must(turns_promote(10, &moved));
        assert_int_equal(moved, 1);
    }
    redis_do("DEL", PREFIX "bell:g");
    return c->is_retry ? turns.now_us : at_us + c->for_us;
}

/* It starts in its time, or as soon as the worker has looked. */
SCENE_TEST(test_what_nobody_rings_for_starts_in_time)
{
    static const struct unheard cases[] = {
        {200, true, 0, 0, true, 0, false, false},
        {200, true, 30, 0, true, 0, false, false},
        {200, true, 30, 2000, true, 0, false, false},
        {64, false, 0, 0, true, 0, false, false},
        {64, false, 50, 2000, true, 0, false, false},
        {200, true, 0, 0, false, 700000, false, false},
        {200, true, 0, 0, false, 5000000, false, false},
        {200, true, 30, 0, false, 5000000, false, false},
        {200, true, 30, 2000, false, 5000000, false, false},
        {64, false, 0, 0, false, 5000000, false, false},
        {64, false, 50, 2000, false, 5000000, false, false},
        {200, true, 0, 0, true, 0, true, false},
        {200, true, 0, 0, false, 700000, true, false},
        {200, true, 30, 2000, false, 5000000, true, false},
        {64, false, 0, 0, false, 5000000, true, false},
        {200, true, 30, 2000, false, 700000, false, true},
        {200, true, 30, 2000, false, 5000000, false, true},
        {64, false, 50, 2000, false, 5000000, false, true},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t from_us, could_us;

        scene_begin(state);
        begin_unheard(&cases[i]);
        could_us = leave_unheard(&cases[i]);
        from_us = turns.now_us;
        run_shop(8 * SECOND_US);
        if (unheard_us == 0 || unheard_us > max_i64(could_us, from_us + LOOK_US))
            fail_msg("case %zu: %" PRId64 " us late", i, unheard_us ? unheard_us - could_us : -1);
        assert_int_equal(redis_number("EXISTS", PREFIX "news:g"), 0);
        end_crowd();
        turns_check();
    }
}

/* A worker on duty whose queues are empty asks one question for all of them, and serves none. */
SCENE_TEST(test_idle_queues_are_not_served)
{
    static const char *const pattern = "q*";
    const char **names = numbered("q", QUEUES_MOST);
    int64_t before;

    open_shop(20, 0, "mail");
    shop.wide = true;
    shop.chooser = wide_new(&pattern, 1);
    for (int i = 0; i < QUEUES_MOST; i++)
        assert_true(wide_learn(shop.chooser, span_str(names[i])));
    run_shop(2 * SECOND_US);
    shop.claims = 0;
    before = count_commands();
    run_shop(60 * SECOND_US);
    before = count_commands() - before;
    expect_at_most("claims", shop.claims, 151);
    expect_at_most("commands", before, 12 * shop.claims);
    end_crowd();
}

/* A rule that changes again and again: what was granted ahead starts at its slots, so each of them is used. Where a rule comes in that has not
   counted it, it goes back. */
SCENE_TEST(test_a_rule_that_changes_wastes_no_slot)
{
    static const char *const rules[][2] = {{"gcra:400/1000000/1", "gcra:400/1000000/2"},
                                           {"gcra:400/1000000/4", "gcra:4000/10000000/3"},
                                           {"gcra:400/1000000/1", "token-bucket:400/1000000/1"}};

    for (size_t i = 0; i < COUNT(rules); i++) {
        scene_begin(state);
        must(turns_rate("mail", rules[i][0]));
        push_types("mail 3000");
        open_shop(100, 0, "mail");
        shop.ahead_us = 50000;
        run_shop(SECOND_US);
        shop.starts[0] = 0;
        for (int k = 1; k <= 10; k++) {
            must(turns_rate("mail", rules[i][k % 2]));
            assert_int_equal(redis_number("EXISTS", PREFIX "told:w"), 0);
            run_shop(SECOND_US / 10 * 3);
        }
        expect_at_least("starts", shop.starts[0], 1194);
        expect_at_most("starts", shop.starts[0], 1204);
        must(turns_rate("mail", textf("%s gcra:1000/1000000/1000", rules[i][0])));
        expect_text("*", "LRANGE", PREFIX "told:w", "0", "-1");
        turns_check();
    }
}

/* Each end rings for some of the queues. One that a claim had no time left for is not forgotten. */
SCENE_TEST(test_many_queues_share_a_gate_of_concurrency)
{
    enum { MANY = 150 };
    static const char *const pattern = "q*";
    char name[16];

    must(turns_rate("mail", "concurrency:2"));
    open_shop(10, 2000, "mail");
    redis_do("HSET", PREFIX "active:w", "@", "{\"queues\":[\"q*\"],\"types\":[\"mail\"]}");
    shop.wide = true;
    shop.chooser = wide_new(&pattern, 1);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "q%d", i);
        push_jobs(name, "\"type\":\"mail\"", 2);
        redis_do("SADD", PREFIX "queues", name);
        assert_true(wide_learn(shop.chooser, (struct span){name, strlen(name)}));
    }
    run_shop(5000);
    must(turns_rate("mail", "concurrency:3")); /* all are due, which is more than one claim has time for */
    redis_do("DEL", PREFIX "bell:g");          /* that is heard */
    wide_claim_all(shop.chooser);
    run_shop(2 * SECOND_US);
    assert_int_equal(shop.starts[0], 2 * MANY);
    wide_free(shop.chooser);
    shop.chooser = NULL;
    turns_check();
}

/* Of a type that this worker cannot run, jobs are held; who can run it begins at once. */
SCENE_TEST(test_held_types_start_when_somebody_can)
{
    must(turns_rate("S", "100/1000000/1"));
    use("known", "S");
    use("odd", "S");
    push_types("odd 500, known 500");
    open_shop(10, 0, "known", "odd");
    shop.type_count = 1;
    run_shop(2 * SECOND_US);
    expect_at_least("known", shop.starts[0], 199); /* odd takes nothing of what they share */
    expect_text("odd", "ZRANGE", PREFIX "held:default", "0", "-1");
    turns_check();
    shop.type_count = 2;
    run_shop(2 * SECOND_US);
    expect_at_least("odd", shop.starts[1], 99);
    expect_at_least("known", shop.starts[0], 298);
    turns_check();
}

/* A job that costs much gets its turn beside many that cost little. */
SCENE_TEST(test_a_dear_job_starts_beside_cheap_ones)
{
    must(turns_rate("S", "100/1000000/10"));
    use("cheap", "S");
    use("dear", "S");
    push_types("cheap 5000");
    open_shop(20, 0, "cheap", "dear");
    run_shop(SECOND_US);
    push_jobs("default", "\"type\":\"dear\",\"cost\":10", 20);
    run_shop(10 * SECOND_US);
    assert_int_equal(shop.starts[1], 20);
    expect_at_least("S", shop.starts[0] + 10 * shop.starts[1], 1090);
    turns_check();
}

TESTS(turns_start, turns_stop)

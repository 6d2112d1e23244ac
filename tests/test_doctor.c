/* weir doctor: silent on all that workers leave behind, it names whatever was broken, and mends it: then
 * workers run all jobs, and it is silent again. */
#include "tests/scene_client.h"

#include <jansson.h>

#include "core/client/answer.h"
#include "core/client/client.h"
#include "core/clock.h"
#include "core/script/script.h"
#include "queue/doctor/doctor.h"
#include "queue/doctor/settings.h"
#include "tests/program.h"
#include "tests/stage.h"

#define KEYS_MOST 200
#define ROUNDS_MOST 400

static struct doctor doctor;

static int stop_all(void **state)
{
    doctor_free(&doctor);
    return scene_stop_client(state);
}

/* ---- Asking the doctor */

static void examine(bool repair)
{
    doctor_free(&doctor);
    if (doctor_run(w, turns.now_us, repair, &doctor) != 0)
        fail_msg("%s", w->error.text);
}

/* What it says besides of Redis itself, "state name text" a line. */
static const char *findings(void)
{
    static char text[32768];
    size_t len = 0, i;
    bool structures = false;
    json_t *check;

    *text = '\0';
    json_array_foreach(doctor.checks, i, check)
    {
        const char *name = answer_text(check, "name"), *state = answer_text(check, "state");
        bool told = structures && strcmp(state, "ok") != 0 && strcmp(name, "structures") != 0;

        if (told && len < sizeof text - 2000)
            len += (size_t)snprintf(text + len, sizeof text - len, "%s %s %s; %s\n", state, name,
                                    answer_text(check, "text"), answer_text(check, "do"));
        structures |= strcmp(name, "functions") == 0;
    }
    return text;
}

static bool tells(const char *text)
{
    return strstr(findings(), text) != NULL;
}

/* It changes nothing, and says that nothing is broken. */
static void expect_health(const char *what)
{
    char *before = turns_digest(), *after;

    examine(false);
    after = turns_digest();
    if (strcmp(before, after) != 0)
        fail_msg("%s: looking has changed something", what);
    free(before);
    free(after);
    if (doctor.broken)
        fail_msg("%s: %s", what, findings());
}

/* It names it, in these words. */
static void expect_finding(const char *what, const char *text)
{
    char *before = turns_digest(), *after;

    examine(false);
    after = turns_digest();
    if (strcmp(before, after) != 0)
        fail_msg("%s: looking has changed something", what);
    free(before);
    free(after);
    if (!tells(text))
        fail_msg("%s: not told: '%s', but: %s", what, text, findings());
}

static void repair(const char *what)
{
    examine(true);
    if (doctor.broken)
        fail_msg("%s: not mended: %s", what, findings());
    expect_health(what);
}

/* ---- A populous state: queues, types, keys that sleep and keys that wait, a held type, leases, scheduled
 * and dead jobs */

static const char *const both_queues[] = {"default", "low"};
static const char *const all_types[] = {"t", "slow", "keyed", "con", "two", "other"};

static void push_keyed(const char *queue, const char *type, const char *id, const char *key)
{
    char body[300];

    snprintf(body, sizeof body, "{\"id\":\"%s\",\"type\":\"%s\",\"key\":\"%s\"}", id, type, key);
    push(queue, body);
}

static void set_limits(void)
{
    must(turns_rate("slow", "1/10000000/1"));
    must(turns_rate("keyed", "gcra:1/20000000/1,by=key"));
    must(turns_rate("con", "concurrency:2"));
    must(turns_rate("two", "gcra:100/1000000/100,by=key gcra:1/7000000/1"));
    must(turns_rate("shared", "1/5000000/1"));
    use("t", "shared");
    must(turns_weight("two", "a", 3));
}

/* other: nobody runs it here. */
static void populate(void)
{
    scene_begin(NULL);
    ask.queues = (struct names){both_queues, 2};
    ask.types = (struct names){all_types, 5};
    must(turns_adopt("w", "", NULL, 0, ask.queues, NULL));
    pass("w", 0);
    set_limits();
    enqueue("default", "t", "t1 t2 t3");
    enqueue("low", "t", "t4 t5");
    enqueue("default", "slow", "s1 s2 s3");
    enqueue("default", "con", "c1 c2 c3 c4");
    enqueue("default", "other", "o1 o2");
    for (int i = 0; i < 12; i++) {
        char id[16], key[16];

        snprintf(id, sizeof id, "k%d", i);
        snprintf(key, sizeof key, "key%d", i / 2);
        push_keyed(i % 2 ? "default" : "low", "keyed", id, key);
        snprintf(id, sizeof id, "w%d", i);
        push_keyed("default", "two", id, i % 3 ? "a" : "b");
    }
    for (int i = 0; i < 3; i++)
        claim("w", 30, 0);
    must(turns_enqueue("default", "slow", "later1", 30000000));
    keep_tokens();
    claim("w", 30, 0);
}

/* The first of some jobs that start now ends so. */
static void end_one(enum settle_verb verb)
{
    turns.now_us += 6000000;
    assert_true(claim("w", 5, 0) > 0);
    keep_tokens();
    settle("w", verb, tokens[0], 9000000, "no");
}

static void end_some(void)
{
    must(turns_enqueue("default", "t", "e1", -1));
    end_one(SETTLE_RETRY);
    end_one(SETTLE_DEAD);
    enqueue("default", "slow", "q1 q2");
    enqueue("low", "t", "q3");
}

static void scene(void)
{
    populate();
    end_some();
    turns_check();
}

/* A new worker that can run all, until nothing is left. */
static void run_all(const char *what)
{
    struct invariants left = {0};
    int64_t stale, moved;

    must(turns_adopt("x", "", NULL, 0, ask.queues, NULL));
    if (ask.types.count < 6)
        ask.types = (struct names){all_types, 6};
    ask.held = true;
    for (int round = 0; round < ROUNDS_MOST; round++) {
        pass("x", 0);
        must(turns_promote(100, &moved));
        if (claim("x", 50, 0) > 0) {
            keep_tokens();
            for (size_t i = 0,
                        n = turns.claim.lease_count < TOKENS_MOST ? turns.claim.lease_count : TOKENS_MOST;
                 i < n; i++)
                must(turns_settle_end("x", SETTLE_FINISH, tokens[i], 0, "", &stale));
            continue;
        }
        turns.now_us += 5000000;
        if (round % 8 == 7) {
            (void)invariants_broken(turns.redis, PREFIX, turns.now_us, LEASE_US, &left);
            if (left.queued + left.parked + left.leased + left.later == 0)
                break;
        }
    }
    if (left.queued + left.parked + left.leased + left.later != 0)
        fail_msg("%s: jobs are left: %d queued, %d parked, %d leased, %d later", what, (int)left.queued,
                 (int)left.parked, (int)left.leased, (int)left.later);
    expect_health(what);
}

static void test_silent_on_what_workers_leave(void **state)
{
    (void)state;
    scene_begin(NULL);
    expect_health("nothing");
    populate();
    turns_check();
    expect_health("populated");
    assert_true(tells("type other of queue default is held"));
    end_some();
    expect_health("ended");
    assert_true(tells("1 dead job; weir dead list"));
    examine(true);
    assert_false(tells("repaired"));
    turns_check();
    run_all("untouched");
}

/* ---- Keys that are deleted */

static const struct losing {
    const char *key;  /* the beginning, behind the prefix */
    const char *told; /* NULL: nobody can know, and nothing is broken */
    bool uncounted;   /* of what is scheduled, nobody can tell how many are retries */
} losses[] = {
    {"queue:", "counters say that ", false},
    {"lane:", "and there is no lane:", false},
    {"ring:", "waits nowhere: nobody looks at its", false},
    {"wait:default/keyed", "waits nowhere: nobody looks at its", false},
    {"wait:low/keyed", "waits nowhere: nobody looks at its", false},
    {"wait:", "waits nowhere: nobody looks at its", false},
    {"wake:", "has waiters, and nothing opens it for them", false},
    {"sleep:", "has waiters, and nothing opens it for them", false},
    {"held:", "waits nowhere: nobody looks at its", false},
    {"at:con#0", "gate con#0 of queue default has waiters, and nothing opens it for them", false},
    {"at:", NULL, false},
    {"gate:con#0", "gate con#0 counts 0 jobs in flight, and 2 leases took it", false},
    {"gate:", NULL, false},
    {"limits", "type t uses limit shared, which does not exist", false},
    {"types", "is not in types: status skips it", false},
    {"weights", "limit two has weights, and none of them is there", false},
    {"queues", "is not in queues: status and", false},
    {"later", NULL, true},
    {"active:w", "worker w has a deadline and no record", false},
    {"workers", "worker w is not in workers", false},
    {"stats:", NULL, true},
    {"dead", NULL, false},
    {"reap", NULL, false},
    {"duty", NULL, false},
    {"about", NULL, false},
    {"changes", NULL, false},
    {"revisions", NULL, false},
    {"id:", NULL, false},
    {"credit:", NULL, false},
    {"bell:", NULL, false},
    {"spare:", NULL, false},
};

static const struct losing *losing_of(const char *key)
{
    for (size_t i = 0; i < COUNT(losses); i++)
        if (strncmp(key, losses[i].key, strlen(losses[i].key)) == 0)
            return &losses[i];
    fail_msg("what should the doctor say when %s is lost?", key);
    return NULL;
}

/* The names of all keys, without the prefix; the caller's to free. */
static char *all_keys(void)
{
    return redis_text("EVAL",
                      "local keys = redis.call('KEYS', ARGV[1] .. '*')\n"
                      "for i, key in ipairs(keys) do keys[i] = key:sub(#ARGV[1] + 1) end\n"
                      "table.sort(keys)\n"
                      "return keys",
                      "0", PREFIX);
}

static void lose(const char *name)
{
    const struct losing *loss = losing_of(name);
    char key[400];
    bool beyond_repair = strcmp(name, "limits") == 0;

    scene();
    snprintf(key, sizeof key, PREFIX "%s", name);
    assert_int_equal(redis_number("DEL", key), 1);
    if (!loss->told) {
        expect_health(name);
    } else {
        expect_finding(name, loss->told);
        if (beyond_repair)
            must(turns_rate("shared", "1/5000000/1"));
    }
    repair(name);
    if (!loss->uncounted)
        turns_check();
    run_all(name);
}

static void test_each_key_lost(void **state)
{
    char *keys, *rest, *name;
    int count = 0;

    (void)state;
    scene();
    rest = keys = all_keys();
    while ((name = strsep(&rest, "\n"))) {
        lose(name);
        count++;
    }
    free(keys);
    assert_true(count > 30);
}

/* ---- Behind each kind of rule */

static bool is_derived(const char *name)
{
    static const char *const families[] = {
        "gate:", "lane:", "ring:", "wait:", "wake:", "sleep:", "held:", "at:", "credit:", "stop:"};

    for (size_t i = 0; i < COUNT(families); i++)
        if (strncmp(name, families[i], strlen(families[i])) == 0)
            return true;
    return false;
}

static bool is_registry(const char *name)
{
    static const char *const names[] = {"queues", "types", "alone", "workers", "weights", "duty", "reap"};

    for (size_t i = 0; i < COUNT(names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static const char *const rules_of[][2] = {
    {"r0", "gcra:1/5000000/1"},
    {"r1", "concurrency:1"},
    {"r2", "gcra:1/5000000/1,by=key"},
    {"r3", "concurrency:1,by=key"},
    {"r4", "gcra:1/3000000/1 concurrency:1"},
    {"r5", "concurrency:1 gcra:1/3000000/1,by=key"},
    {"r6", "concurrency:2 concurrency:1,by=key"},
    {"r7", "sliding-window:2/5000000"},
};

static const char *rule_types[COUNT(rules_of)];

/* A queue in which jobs wait at gates of each kind, one type shares a gate with another, and one job is to
 * run alone. */
static void scene_of_rules(void)
{
    scene_begin(NULL);
    for (size_t i = 0; i < COUNT(rules_of); i++)
        rule_types[i] = rules_of[i][0];
    ask.types = (struct names){rule_types, COUNT(rule_types)};
    start("dead");
    enqueue("default", "r0", "suspect");
    claim("dead", 1, 0);
    start("w");
    pass("w", LEASE_US + SECOND_US);
    for (size_t i = 0; i < COUNT(rules_of); i++) {
        must(turns_rate(rules_of[i][0], rules_of[i][1]));
        for (int k = 0; k < 6; k++) {
            char id[24], key[8];

            snprintf(id, sizeof id, "%s.%d", rules_of[i][0], k);
            snprintf(key, sizeof key, "k%d", k % 2);
            push_keyed("default", rules_of[i][0], id, key);
        }
    }
    use("r7", "r1");
    must(turns_weight("r2", "k0", 2));
    for (int i = 0; i < 3; i++)
        claim("w", 60, 0);
    turns_check();
}

/* Whatever is lost, the doctor names it and mends it, or jobs run without it: nobody sleeps for good. */
static void test_nobody_sleeps_for_good(void **state)
{
    char *keys, *rest, *name;
    int named = 0;

    (void)state;
    scene_of_rules();
    rest = keys = all_keys();
    while ((name = strsep(&rest, "\n"))) {
        char key[400];

        if (strncmp(name, "lane:", 5) == 0 || (!is_derived(name) && !is_registry(name)))
            continue;
        scene_of_rules();
        snprintf(key, sizeof key, PREFIX "%s", name);
        assert_int_equal(redis_number("DEL", key), 1);
        examine(false);
        if (doctor.broken) {
            named++;
            repair(name);
        }
        run_all(name);
    }
    free(keys);
    assert_true(named > 30);
}

/* ---- Keys of a wrong kind */

/* A derived key is kept under another name, and all jobs run without it. */
static void put_aside(const char *name)
{
    static const char digest[] = "return redis.sha1hex(redis.call('DUMP', KEYS[1]))";
    char key[400], aside[400], *before, *after;

    snprintf(key, sizeof key, PREFIX "%s", name);
    snprintf(aside, sizeof aside, PREFIX "foreign:%s", name);
    before = redis_text("EVAL", digest, "1", key);
    repair(name);
    after = redis_text("EVAL", digest, "1", aside);
    assert_string_equal(after, before);
    free(before);
    free(after);
    assert_int_equal(redis_number("DEL", aside), 1);
    turns_check();
    run_all(name);
}

static void test_each_key_of_a_wrong_kind(void **state)
{
    char *keys, *rest, *name;
    int derived = 0;

    (void)state;
    scene();
    rest = keys = all_keys();
    while ((name = strsep(&rest, "\n"))) {
        char key[400], told[500], *kind;

        scene();
        snprintf(key, sizeof key, PREFIX "%s", name);
        kind = redis_text("TYPE", key);
        free(redis_text("DEL", key));
        if (strcmp(kind, "string") == 0)
            free(redis_text("RPUSH", key, "x"));
        else
            free(redis_text("SET", key, "x"));
        snprintf(told, sizeof told, "%s is a %s, not a %s; %s", key,
                 strcmp(kind, "string") == 0 ? "list" : "string", kind,
                 is_derived(name) ? "weir doctor --repair repairs it" : "another program writes here");
        free(kind);
        expect_finding(name, told);
        assert_true(doctor.broken);
        if (is_derived(name)) {
            put_aside(name);
            derived++;
            continue;
        }
        examine(true);
        assert_true(doctor.broken);
        assert_true(tells(told));
    }
    free(keys);
    assert_true(derived > 20);
}

/* ---- Damage that is planted */

static void plant(const char *command)
{
    char text[600], *rest = text;
    const char *words[12] = {NULL};
    struct args a;

    snprintf(text, sizeof text, "%s", command);
    for (int i = 0; i < 12 && (words[i] = strsep(&rest, " "));)
        i += *words[i] != '\0';
    args_init(&a);
    for (int i = 0; i < 12 && words[i]; i++) {
        char key[400];

        snprintf(key, sizeof key, "%s%s", i == 1 ? PREFIX : "", words[i]);
        args_add(&a, key);
    }
    if (turns_send(&a) != 0)
        fail_msg("%s: %s", command, turns.error.text);
}

/* What was put aside is never lost for another that is. */
static void test_nothing_that_was_put_aside_is_overwritten(void **state)
{
    (void)state;
    scene_begin(NULL);
    for (int i = 0; i < 3; i++) {
        plant(i == 0 ? "RPUSH gate:t#0 0" : i == 1 ? "RPUSH gate:t#0 1" : "RPUSH gate:t#0 2");
        turns.now_us++;
        repair("again");
    }
    assert_int_equal(redis_number("EVAL", "return #redis.call('KEYS', ARGV[1])", "0", PREFIX "foreign:*"), 3);
    expect_text("0", "LRANGE", PREFIX "foreign:gate:t#0", "0", "-1");
    expect_health("aside");
    assert_true(tells("foreign:gate:t#0 is another program's"));
}

static const struct damage {
    const char *command[2]; /* the key without its prefix */
    const char *told;
} damages[] = {
    {{"ZADD wait:default/keyed#0/ghost 5 keyed/ghost", NULL},
     "gate keyed#0/ghost of queue default has waiters, and nothing opens it for them"},
    {{"ZADD wait:default/keyed#0/ghost 5 keyed/ghost", "ZADD sleep:default 1 keyed#0/ghost"},
     "wait:default/keyed#0/ghost lists keyed/ghost, and there is no lane:default/keyed/ghost"},
    {{"ZADD wait:default/- 5 ghost", NULL}, "wait:default/- lists ghost, and there is no ring:default/ghost"},
    {{"ZADD ring:default/t 5 ghost", NULL},
     "ring:default/t lists ghost, and there is no lane:default/t/ghost"},
    {{"ZADD ring:low/ghost 5 key", NULL}, "low/ghost waits nowhere: nobody looks at its 1 lane"},
    {{"ZADD ring:low/keyed 5 key0", NULL},
     "low/keyed/key0 waits in several places: ring:low/keyed, wait:low/keyed#0/key0"},
    {{"ZADD held:default 5 slow", NULL},
     "default/slow waits in several places: held:default, wait:default/slow#0"},
    {{"ZADD wait:default/- 5 slow", "ZADD wake:default 5 -"}, "default/slow waits in several places"},
    {{"ZADD wait:default/shared#0 5 slow", NULL}, "default/slow waits in several places"},
    {{"ZADD wait:default/con#0 5 t", NULL}, "default/t waits in several places"},
    {{"ZADD wait:low/ghost#0 5 t", "ZADD wake:low +inf ghost#0"}, "low/t waits in several places"},
    {{"ZADD wait:low/shared#0/key0 5 keyed/key0", "ZADD sleep:low 1900000000000000 shared#0/key0"},
     "low/keyed/key0 waits in several places"},
    {{"DEL gate:con#0", "DEL active:w"},
     "gate con#0 of queue default has waiters, and nothing opens it for them"},
    {{"ZADD held:low 5 ghost", NULL}, "held:low lists ghost, and there is no ring:low/ghost"},
    {{"ZADD wake:default 5 ghost#0", NULL},
     "wake:default lists ghost#0, and there is no wait:default/ghost#0"},
    {{"ZADD sleep:low 5 keyed#0/ghost", NULL},
     "sleep:low lists keyed#0/ghost, and there is no wait:low/keyed#0/ghost"},
    {{"ZADD wake:ghost 5 *", NULL}, "wake:ghost does not say when lanes in sleep wake"},
    {{"ZREM wake:low *", NULL}, "wake:low does not say when lanes in sleep wake"},
    {{"ZADD wake:low 1900000000000000 *", NULL}, "wake:low does not say when lanes in sleep wake"},
    {{"ZADD wait:default/slow#0 5 slow/key", NULL},
     "wait:default/slow#0 lists slow/key, and there is no such place"},
    {{"ZADD wait:default/slow#0 5 {}", NULL}, "lists {}, and there is no such place"},
    {{"RPUSH lane:low/slow/ x", NULL}, "low/slow/ waits nowhere: nobody looks at its 1 job"},
    {{"HSET active:ghost 1.A/default/t/ x", NULL},
     "worker ghost is not in workers: nobody takes its 1 job back"},
    {{"ZADD workers 1900000000000000 ghost", NULL}, "worker ghost has a deadline and no record"},
    {{"HDEL active:w @", NULL}, "worker w has a deadline and no record"},
    {{"HSET stats:t pulled abc", NULL}, "type t: the counters pulled are not whole numbers"},
    {{"HSET stats:t done 9007199254740993 dead 00", NULL},
     "type t: the counters done, dead are not whole numbers"},
    {{"SREM queues low", NULL}, "queue low is not in queues"},
    {{"HDEL types slow", NULL}, "type slow is not in types"},
    {{"ZADD batches 5 ghost", NULL}, "batches lists ghost, and there is no batch:ghost"},
    {{"HSET batch:b total 3 done 2 dead 1 sealed 5", NULL},
     "batch b: all of its jobs have ended, and it has not"},
};

/* These are named, and not mended. */
static const struct damage beyond_repair[] = {
    {{"HSET batch:b total 3 done 3 dead 1", NULL}, "batch b: 4 have ended, of 3 jobs"},
    {{"HSET limits broken 10/s", NULL},
     "limit broken: its rules cannot be read, so its types stand still: 10/s; set it again"},
    {{"HSET types slow use=ghost", NULL}, "type slow uses limit ghost, which does not exist"},
    {{"ZADD later 5 nonsense", NULL},
     "later has a record that cannot be read: nonsense; it goes to the dead jobs"},
    {{"HSET schedules weekly {}", NULL},
     "schedule weekly has no next occurrence: it never runs again; add it again"},
    {{"HSET active:w nonsense x", NULL}, "a lease cannot be read: nonsense"},
    {{"RPUSH lane:nonsense x", NULL}, "lane:nonsense: its name cannot be read; rename or delete it"},
};

static void plant_and_repair(const struct damage *d, bool beyond)
{
    scene();
    for (int k = 0; k < 2 && d->command[k]; k++)
        plant(d->command[k]);
    expect_finding(d->command[0], d->told);
    if (!doctor.broken)
        fail_msg("%s: not broken", d->command[0]);
    examine(true);
    if (doctor.broken != beyond)
        fail_msg("%s: broken: %d; %s", d->command[0], doctor.broken, findings());
    if (!beyond)
        expect_health(d->command[0]);
}

static void test_damage_that_is_planted(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(damages); i++)
        plant_and_repair(&damages[i], false);
    for (size_t i = 0; i < COUNT(beyond_repair); i++)
        plant_and_repair(&beyond_repair[i], true);
}

/* A look counts no jobs; a repair does. */
static void test_counters_are_counted_by_repairs(void **state)
{
    static const struct damage wrong[] = {
        {{"HINCRBY stats:slow returned 3", NULL}, "slow: there are -3 parked, +0 running, +0 scheduled"},
        {{"HINCRBY stats:t done 3", NULL}, "t: there are +0 parked, +3 running, +0 scheduled"},
        {{"HINCRBY stats:t scheduled -2", NULL}, "t: there are +0 parked, +0 running, +2 scheduled"},
        {{"DEL stats:t", NULL}, "type t: there are +"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        scene();
        plant(wrong[i].command[0]);
        expect_health(wrong[i].command[0]);
        examine(true);
        if (doctor.broken || !tells("repaired counters type") || !tells(wrong[i].told))
            fail_msg("%s: %s", wrong[i].command[0], findings());
        expect_health(wrong[i].command[0]);
    }
}

/* What is behind a gate that only an end opens starts without the doctor when `queues` is lost. */
static void test_lost_queues_stop_nobody(void **state)
{
    (void)state;
    scene();
    free(redis_text("DEL", PREFIX "queues"));
    run_all("queues");
    scene_begin(NULL);
    start("w");
    must(turns_rate("t", "concurrency:1"));
    enqueue("default", "t", "a b c");
    for (int i = 0; i < 3; i++) { /* before any heartbeat */
        assert_int_equal(claim("w", 5, 0), 1);
        keep_tokens();
        free(redis_text("DEL", PREFIX "queues"));
        settle("w", SETTLE_FINISH, tokens[0], 0, NULL);
    }
    expect_counters("t", "done 3");
}

/* Jobs of an unregistered worker go back to the heads of their lanes. */
static void test_leases_of_nobody_return(void **state)
{
    struct invariants seen;

    (void)state;
    scene();
    seen = turns_check();
    assert_true(seen.leased > 0);
    free(redis_text("ZREM", PREFIX "workers", "w"));
    expect_finding("w", "worker w is not in workers");
    assert_false(tells("slots")); /* its leases hold theirs */
    examine(true);
    assert_false(tells("slots"));
    repair("w");
    must(turns_adopt("x", "", NULL, 0, ask.queues, NULL));
    assert_int_equal(pass("x", LEASE_US), seen.leased);
    seen = turns_check();
    assert_int_equal(seen.leased, 0);
    run_all("w");
}

static void test_a_redis_that_came_back_empty(void **state)
{
    (void)state;
    scene_begin(NULL);
    snprintf(turns.birth, sizeof turns.birth, "another");
    start("w");
    turns.birth[0] = '\0';
    turns.now_us += 5 * SECOND_US;
    pass("w", 0);
    expect_finding("lost", "Redis lost all of this namespace 5 s ago");
    assert_false(doctor.broken);
    turns.now_us += 86400 * SECOND_US;
    pass("w", 0);
    examine(false);
    assert_false(tells("Redis lost"));
}

static void test_a_redis_that_went_back(void **state)
{
    char back[80];

    (void)state;
    scene_begin(NULL);
    start("w");
    snprintf(back, sizeof back, "%lld %lld %lld", (long long)turns.now_us - 9000000,
             (long long)turns.now_us - 7750000, (long long)turns.now_us - 5000000);
    free(redis_text("HSET", PREFIX "about", "back", back));
    expect_finding("went-back", "Redis went back 5.000 s ago: it lost what was written from 9.000 to 7.750 s "
                                "before now, or more");
    assert_false(doctor.broken);
    turns.now_us += 86400 * SECOND_US;
    pass("w", 0);
    examine(false);
    assert_false(tells("Redis went back"));
    free(redis_text("HSET", PREFIX "about", "back", "no times"));
    examine(false);
    assert_false(tells("Redis went back"));
}

static void test_a_worker_whose_jobs_a_key_keeps(void **state)
{
    (void)state;
    scene_begin(NULL);
    must(turns_adopt("x", "", NULL, 0, default_queue, NULL));
    start("w");
    enqueue("default", "t", "a");
    assert_int_equal(claim("w", 1, 0), 1);
    free(redis_text("SET", ALONE("t"), "foreign"));
    pass("x", LEASE_US);
    turns.now_us += SECOND_US;
    expect_finding("kept", ALONE("t") " is a string, not a list; weir doctor --repair repairs it");
    assert_true(doctor.broken);
    free(redis_text("DEL", ALONE("t")));
    expect_finding("silent", "worker w is silent, 1 s past its deadline, with 1 job");
    assert_int_equal(pass("x", 0), 1);
    expect_health("mended");
}

/* Claims look for jobs that are to run alone where `alone` says that there are some. */
static void test_jobs_that_nobody_would_run_alone(void **state)
{
    (void)state;
    scene_begin(NULL);
    must(turns_adopt("x", "", NULL, 0, default_queue, NULL));
    start("w");
    enqueue("default", "t", "a");
    assert_int_equal(claim("w", 1, 0), 1);
    pass("x", LEASE_US + SECOND_US);
    free(redis_text("DEL", PREFIX "alone"));
    expect_finding("alone", "default! is not in alone: nobody runs its jobs");
    repair("alone");
    assert_int_equal(claim("x", 1, 0), 1);
    expect_leases("a");
}

/* A slot that leaked is found, whichever way, while others are in use. */
static void test_slots_that_leaked(void **state)
{
    static const char *const wrong[] = {"0", "1", "7"};

    (void)state;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        char state_text[200], told[200];

        scene();
        snprintf(state_text, sizeof state_text, "%lld 0 - - concurrency:2 %s", (long long)turns.now_us,
                 wrong[i]);
        free(redis_text("SET", PREFIX "gate:con#0", state_text));
        snprintf(told, sizeof told, "gate con#0 counts %s job%s in flight, and 2 leases took it", wrong[i],
                 strcmp(wrong[i], "1") == 0 ? "" : "s");
        expect_finding(wrong[i], told);
        repair(wrong[i]);
        turns_check();
        run_all(wrong[i]);
    }
}

/* A lane that fell asleep under a rule that its type has no more is not lost. */
static void test_a_lane_at_a_gate_of_former_rules(void **state)
{
    (void)state;
    scene();
    free(redis_text("HSET", PREFIX "limits", "keyed", "gcra:1/20000000/1"));
    expect_health("no rule of keys");
    free(redis_text("HDEL", PREFIX "limits", "keyed"));
    expect_health("no limit");
    assert_true(tells("held")); /* it looked */
}

static void test_notes(void **state)
{
    (void)state;
    scene();
    plant("SET nonsense:key x");
    plant("RPUSH aside:b x");
    plant("RPUSH away:2 1794000000000000");
    turns.now_us += LEASE_US + 9 * SECOND_US;
    expect_health("notes");
    assert_true(tells("nonsense:key: not a key of this version; it is another program's"));
    assert_true(tells("worker w is silent, 9 s past its deadline") || tells("worker w is silent"));
    assert_true(tells("batch b is not paused, and has 1 job set aside; weir batch resume"));
    assert_true(tells("1 record for partition 2: not carried there for"));
    examine(true);
    assert_int_equal(redis_number("EXISTS", PREFIX "nonsense:key"), 1);
}

/* More of a kind than are told one by one, more than a page: all are mended. */
static void test_many(void **state)
{
    (void)state;
    scene_begin(NULL);
    must(turns_adopt("w", "", NULL, 0, default_queue, NULL));
    free(redis_text("EVAL",
                    "for i = 1, 1500 do redis.call('RPUSH', ARGV[1] .. 'lane:default/t/k' .. i, '{\"id\":\"' "
                    ".. i .. '\",\"type\":\"t\"}') end",
                    "0", PREFIX));
    free(redis_text("HSET", PREFIX "stats:t", "enqueued", "1500", "parked", "1500"));
    expect_finding("many", "and 1480 more like these");
    repair("many");
    assert_int_equal(redis_number("ZCARD", PREFIX "ring:default/t"), 1500);
    turns_check();
}

static void test_wrong_arguments(void **state)
{
    static const struct {
        const char *script, *words[5];
    } wrong[] = {
        {"doctor", {"", "0"}},
        {"doctor", {"", "1", "x"}},
        {"doctor", {"", "1001"}},
        {"doctor", {"limits:", "1"}},
        {"doctor", {"queue:default", "1"}},
        {"doctor_again", {"nothing x"}},
        {"doctor_again", {""}},
        {"doctor_mend", {"queue default", "nothing x"}},
    };

    (void)state;
    scene();
    for (size_t i = 0; i < COUNT(wrong); i++) {
        char *before = turns_digest(), *after;
        size_t count = 0;

        while (count < 5 && wrong[i].words[count])
            count++;
        if (turns_script(wrong[i].script, wrong[i].words, count) == 0)
            fail_msg("%s %s: not refused", wrong[i].script, wrong[i].words[0]);
        after = turns_digest();
        assert_string_equal(before, after);
        free(before);
        free(after);
    }
}

/* ---- Redis itself, and the command */

struct stand {
    struct server server;
    struct outcome o;
};

static void weir(struct stand *s, const char *url, const char *line)
{
    const char *words[WORDS_MAX + 1] = {built("weir"), "doctor", "--redis", url};
    char text[300], *rest = text;
    int count = 4;

    snprintf(text, sizeof text, "%s", line);
    while (count < WORDS_MAX && rest && *rest)
        words[count++] = strsep(&rest, " ");
    program_run(&s->o, s->server.folder, words);
}

static void expect_line(struct stand *s, int code, const char *line)
{
    if (s->o.code != code || !strstr(s->o.out, line))
        fail_msg("exit %d (not %d), without '%s': %s%s", s->o.code, code, line, s->o.out, s->o.err);
}

static bool is_cluster_up(struct server *s)
{
    char *info = server_ask(s, "CLUSTER", "INFO", NULL);
    bool up = strstr(info, "cluster_state:ok") != NULL;

    free(info);
    return up;
}

static void test_cluster(void **state)
{
    struct stand s;

    (void)state;
    server_start_with(&s.server, false, (const char *const[]){"--cluster-enabled", "yes", NULL});
    free(server_ask(&s.server, "CLUSTER", "ADDSLOTSRANGE", "0", "16383", NULL));
    await(is_cluster_up(&s.server)); /* two seconds after its start */
    weir(&s, s.server.url, "");
    expect_line(&s, 0, "ok: cluster: a node of a cluster; addresses must begin with redis+cluster://");
    server_stop(&s.server);
}

/* A user's url. */
static const char *as_user(struct stand *s, const char *user)
{
    static char url[300];

    snprintf(url, sizeof url, "unix://%s:pw@%s", user, s->server.socket);
    return url;
}

static void test_a_user_without_rights(void **state)
{
    struct stand s;
    char *rule, *end, command[2000] = "";
    const char *url;

    (void)state;
    server_start(&s.server, false);
    free(server_ask(&s.server, "ACL", "SETUSER", "poor", "on", ">pw", "resetkeys", "-@all", "+ping", NULL));
    url = as_user(&s, "poor");
    weir(&s, url, "");
    expect_line(&s, 77, "wrong: permissions: user USER lacks rights");
    expect_line(
        &s, 77,
        "warning: info: not allowed to look: the user may not run info; redis-cli ACL SETUSER USER +info");

    /* What it says is enough. */
    free(server_ask(&s.server, "ACL", "SETUSER", "poor", "+acl|whoami", NULL));
    weir(&s, url, "");
    rule = strstr(s.o.out, "redis-cli ACL SETUSER poor '~");
    assert_non_null(rule);
    end = strchr(rule, '\n');
    assert_non_null(end);
    snprintf(command, sizeof command, "redis-cli -s %s%.*s >/dev/null", s.server.socket,
             (int)(end - rule) - 9, rule + 9);
    assert_int_equal(system(command), 0);
    weir(&s, url, "");
    expect_line(&s, 0, "ok: permissions: user poor may run all that Weir uses");
    expect_line(&s, 0, "ok: latency: none of Weir's calls is in the slow log");
    free(server_ask(&s.server, "ACL", "SETUSER", "poor", "-slowlog|get", NULL));
    weir(&s, url, "");
    expect_line(&s, 0,
                "warning: latency: not allowed to look: the user may not run slowlog|get; redis-cli ACL "
                "SETUSER poor '+slowlog|get'");

    free(server_ask(&s.server, "ACL", "SETUSER", "poor", "-zrandmember", "-blmove", "-info", NULL));
    weir(&s, url, "");
    expect_line(
        &s, 77,
        "wrong: permissions: user poor lacks rights; redis-cli ACL SETUSER poor +zrandmember +blmove\n");
    free(server_ask(&s.server, "ACL", "SETUSER", "poor", "+zrandmember", "+blmove", "resetkeys", "~other:*",
                    NULL));
    weir(&s, url, "");
    expect_line(&s, 77, "redis-cli ACL SETUSER poor '~weir:{0}:*'\n");
    server_stop(&s.server);
}

/* rename-command: who asks is told what is missing, and the doctor names it. */
static void test_a_missing_command(void **state)
{
    static const struct {
        const char *command, *line;
        int code, worker;
    } cases[] = {
        {"TIME", "wrong: commands: Redis has no time, which Weir calls; take rename-command out of", 78, 78},
        {"TYPE", "wrong: commands: Redis has no type, which Weir calls; take rename-command out of", 78, 78},
        {"SCAN", "wrong: commands: Redis has no scan, which Weir calls; take rename-command out of", 78, 0},
        {"KEYS", "ok: permissions:", 0, 0},
        {"INFO", "warning: info: cannot be asked: Redis has no info; take rename-command out of", 0, 0},
        {"BLMOVE", "wrong: commands: Redis has no blmove, which Weir calls; take rename-command", 78, 0},
    };
    struct outcome o;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const options[] = {"--rename-command", cases[i].command, "HIDDEN", NULL};
        struct stand s;

        server_start_with(&s.server, false, options);
        weir(&s, s.server.url, "");
        expect_line(&s, cases[i].code, cases[i].line);
        run_in(&o, s.server.folder, built("weir"), "worker", "--exec", "t=true", "--drain", "--redis",
               s.server.url, NULL);
        if (o.code != cases[i].worker)
            fail_msg("%s: worker: %d: %s", cases[i].command, o.code, o.err);
        run_in(&o, s.server.folder, built("weir"), "enqueue", "t", "--redis", s.server.url, NULL);
        assert_null(strstr(o.err, "unexpected error"));
        server_stop(&s.server);
    }
}

static void test_a_missing_password(void **state)
{
    static const char *const options[] = {"--requirepass", "secret", NULL};
    struct stand s;
    char url[200];

    (void)state;
    server_start_with(&s.server, false, options);
    for (int wrong = 0; wrong < 2; wrong++) {
        snprintf(url, sizeof url, "unix://%s%s", wrong ? ":guess@" : "", s.server.socket);
        weir(&s, url, "");
        assert_int_equal(s.o.code, 77);
        assert_string_equal(s.o.out, "");
        assert_non_null(strstr(s.o.err, wrong ? "WRONGPASS" : "password"));
    }
    server_stop(&s.server);
}

/* ---- While workers run */

static void test_no_false_alarm_under_load(void **state)
{
    struct stage s;
    pid_t workers[2];
    struct stand stand;

    (void)state;
    stage_open(&s, false);
    stand.server = s.server;
    stage_rate(&s, "a", "400/1s,burst=5,by=key");
    stage_rate(&s, "b", "concurrency=3");
    stage_rate(&s, "c", "150/1s,burst=3");
    for (int i = 0; i < 900; i++) {
        char body[200];

        snprintf(body, sizeof body, "{\"id\":\"j%d\",\"type\":\"%c\",\"key\":\"k%d\",\"args\":{}}", i,
                 "abc"[i % 3], i % 40);
        stage_push_text(&s, body);
    }
    workers[0] = stage_actor(&s, "one", "types=a,b,c", "executors=8", NULL);
    workers[1] = stage_actor(&s, "two", "types=a,b,c", "executors=8", NULL);
    stage_await_workers(&s, 2); /* until then nobody knows the queue */
    for (int i = 0; i < 8; i++) {
        weir(&stand, s.server.url, "");
        expect_line(&stand, 0, "they agree");
    }
    stage_await_done(&s, 900);
    weir(&stand, s.server.url, "");
    expect_line(&stand, 0, "they agree");
    assert_int_equal(stage_end(workers[0]), 0);
    assert_int_equal(stage_end(workers[1]), 0);
    stage_close(&s);
}

/* Puts something else in the place of a key while jobs wait by it, and repairs; then they run by themselves.
 */
static void spoil_and_repair(struct stage *s, struct stand *stand, const char *name, int number)
{
    static const char spoil[] = "redis.call('DEL', KEYS[1])\n"
                                "if ARGV[1] == 'gate' then redis.call('RPUSH', KEYS[1], 'x') else "
                                "redis.call('SET', KEYS[1], 'x') end";
    char key[100], told[200];

    snprintf(key, sizeof key, PREFIX "%s", name);
    snprintf(told, sizeof told, "repaired: keys: %s is a ", key);
    stage_enqueue(s, "b", NULL, 20 * number, 20);
    await(stage_stat(s, "b", "done") > 20 * number);
    free(server_ask(&s->server, "EVAL", spoil, "1", key, strncmp(name, "gate", 4) ? "" : "gate", NULL));
    weir(stand, s->server.url, "--repair");
    expect_line(stand, 0, told);
    await(stage_stat(s, "b", "done") == 20 * (number + 1));
}

static void test_workers_go_on_after_a_repair(void **state)
{
    static const char *const names[] = {"gate:b#0", "ring:default/b", "wait:default/b#0", "wake:default"};
    struct stage s;
    struct stand stand;
    pid_t workers[2];

    (void)state;
    stage_open(&s, false);
    stand.server = s.server;
    stage_rate(&s, "b", "50/1s,burst=1");
    workers[0] = stage_actor(&s, "one", "types=b", "executors=2", NULL);
    workers[1] = stage_actor(&s, "two", "types=b", "executors=2", NULL);
    stage_await_workers(&s, 2);
    for (size_t i = 0; i < COUNT(names); i++)
        spoil_and_repair(&s, &stand, names[i], (int)i);
    assert_int_equal(stage_end(workers[0]), 0);
    assert_int_equal(stage_end(workers[1]), 0);
    stage_close(&s);
}

/* ---- What INFO says */

static void test_settings(void **state)
{
    static const struct {
        const char *info, *terms;
        bool hold;
    } cases[] = {
        {"", "", true},
        {"a:1\r\n", "a", true},
        {"a:1\r\n", "b", false},
        {"a:1\r\n", "-b", true},
        {"a:1\r\n", "-a", false},
        {"b:on\r\na:7.0.15\r\n", "a=7.0. b=on", true},
        {"b:on\r\na:7.2.4\r\n", "b=on a=7.0.", false},
        {"a:7.2.4\r\n", "a!7.0.", true},
        {"", "a!7.0.", false},
        {"a:6.2.14\r\n", "a<7", true},
        {"a:10.1\r\n", "a<7", false},
        {"", "a<7", false},
        {"a:95\r\nb:100\r\n", "a>90%b", true},
        {"a:90\r\nb:100\r\n", "a>90%b", false},
        {"a:0\r\nb:1\r\n", "a<b", true},
        {"a:0\r\n", "a<b", false},
        {"aof_enabled:0\r\n", REDIS_HAS_NO_AOF, true},
        {"aof_enabled:1\r\n", REDIS_HAS_NO_AOF, false},
        {"maxmemory:5\r\nmaxmemory_policy:volatile-ttl\r\n", REDIS_EVICTS, true},
        {"maxmemory:5\r\nmaxmemory_policy:noeviction\r\n", REDIS_EVICTS, false},
        {"maxmemory:0\r\nmaxmemory_policy:volatile-ttl\r\n", REDIS_EVICTS, false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        if (settings_hold(cases[i].info, cases[i].terms) != cases[i].hold)
            fail_msg("%s", cases[i].terms);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest in_turns[] = {
        cmocka_unit_test(test_silent_on_what_workers_leave),
        cmocka_unit_test(test_each_key_lost),
        cmocka_unit_test(test_nobody_sleeps_for_good),
        cmocka_unit_test(test_each_key_of_a_wrong_kind),
        cmocka_unit_test(test_nothing_that_was_put_aside_is_overwritten),
        cmocka_unit_test(test_damage_that_is_planted),
        cmocka_unit_test(test_counters_are_counted_by_repairs),
        cmocka_unit_test(test_lost_queues_stop_nobody),
        cmocka_unit_test(test_leases_of_nobody_return),
        cmocka_unit_test(test_a_redis_that_came_back_empty),
        cmocka_unit_test(test_a_redis_that_went_back),
        cmocka_unit_test(test_a_worker_whose_jobs_a_key_keeps),
        cmocka_unit_test(test_jobs_that_nobody_would_run_alone),
        cmocka_unit_test(test_slots_that_leaked),
        cmocka_unit_test(test_a_lane_at_a_gate_of_former_rules),
        cmocka_unit_test(test_notes),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_wrong_arguments),
    };
    const struct CMUnitTest outside[] = {
        cmocka_unit_test(test_cluster),
        cmocka_unit_test(test_a_user_without_rights),
        cmocka_unit_test(test_a_missing_command),
        cmocka_unit_test(test_a_missing_password),
        cmocka_unit_test(test_no_false_alarm_under_load),
        cmocka_unit_test(test_workers_go_on_after_a_repair),
        cmocka_unit_test(test_settings),
    };
    int code = stage_actor_main(argc, argv);

    if (code >= 0)
        return code;
    return cmocka_run_group_tests(in_turns, scene_start_client, stop_all) +
           cmocka_run_group_tests(outside, NULL, NULL);
}

/* weir doctor and each key in turn: when it is lost or of a wrong kind, the doctor names it and mends it, or
 * jobs run without it. */
#include "tests/doctor_scene.h"

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
    {"acts", NULL, false},
    {"revisions", NULL, false},
    {"id:", NULL, false},
    {"credit:", NULL, false},
    {"bell:", NULL, false},
    {"spare:", NULL, false},
    {"news:", NULL, false},
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
    bool beyond_repair = strcmp(name, "limits") == 0;

    scene();
    assert_int_equal(redis_number("DEL", textf(PREFIX "%s", name)), 1);
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

TEST(test_each_key_lost)
{
    char *keys, *rest, *name;
    int count = 0;

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
        "queue:", "gate:", "lane:", "ring:", "wait:", "wake:", "sleep:", "held:", "at:", "credit:", "stop:"};

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
        for (int k = 0; k < 6; k++)
            push_keyed("default", rules_of[i][0], textf("%s.%d", rules_of[i][0], k), textf("k%d", k % 2));
    }
    use("r7", "r1");
    must(turns_weight("r2", "k0", 2));
    for (int i = 0; i < 3; i++)
        claim("w", 60, 0);
    turns_check();
}

/* Whatever is lost, the doctor names it and mends it, or jobs run without it: nobody sleeps for good. */
TEST(test_nobody_sleeps_for_good)
{
    char *keys, *rest, *name;
    int named = 0;

    scene_of_rules();
    rest = keys = all_keys();
    while ((name = strsep(&rest, "\n"))) {
        if (strncmp(name, "lane:", 5) == 0 || strncmp(name, "queue:", 6) == 0 ||
            (!is_derived(name) && !is_registry(name)))
            continue;
        scene_of_rules();
        assert_int_equal(redis_number("DEL", textf(PREFIX "%s", name)), 1);
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
    char *before, *after;
    const char *aside = textf(PREFIX "foreign:%s", name);

    before = redis_text("EVAL", digest, "1", textf(PREFIX "%s", name));
    repair(name);
    after = redis_text("EVAL", digest, "1", aside);
    assert_string_equal(after, before);
    free(before);
    free(after);
    assert_int_equal(redis_number("DEL", aside), 1);
    turns_check();
    run_all(name);
}

TEST(test_each_key_of_a_wrong_kind)
{
    char *keys, *rest, *name;
    int derived = 0;

    scene();
    rest = keys = all_keys();
    while ((name = strsep(&rest, "\n"))) {
        char key[400], told[500], *kind;

        scene();
        snprintf(key, sizeof key, PREFIX "%s", name);
        kind = redis_text("TYPE", key);
        redis_do("DEL", key);
        if (strcmp(kind, "string") == 0)
            redis_do("RPUSH", key, "x");
        else
            redis_do("SET", key, "x");
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

TESTS(scene_start_client, scene_stop_doctor)

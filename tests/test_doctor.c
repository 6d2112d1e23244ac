/* weir doctor: silent on all that workers leave behind, it names whatever was broken, and mends it: then
 * workers run all jobs, and it is silent again. test_doctor_keys takes each key in turn, test_doctor_command
 * runs the command. */
#include "tests/doctor_scene.h"

TEST(test_silent_on_what_workers_leave)
{
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

/* ---- Damage that is planted */

static void plant(const char *commands)
{
    char *rest = textf("%s", commands);

    for (char *command; (command = strsep(&rest, ";"));) {
        char *line = command + strspn(command, " ");
        struct args a = {0};

        for (char *word; (word = strsep(&line, " "));)
            args_add(&a, textf("%s%s", a.count == 1 ? PREFIX : "", word));
        fail_if(turns_send(&a) != 0, "%s: %s", commands, turns.error.text);
    }
}

/* What was put aside is never lost for another that is. */
TEST(test_nothing_that_was_put_aside_is_overwritten)
{
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
    const char *commands, *told; /* one or two, "a; b", the keys without their prefix */
} damages[] = {
    {"ZADD wait:default/keyed#0/ghost 5 keyed/ghost",
     "gate keyed#0/ghost of queue default has waiters, and nothing opens it for them"},
    {"ZADD wait:default/keyed#0/ghost 5 keyed/ghost; ZADD sleep:default 1 keyed#0/ghost",
     "wait:default/keyed#0/ghost lists keyed/ghost, and there is no lane:default/keyed/ghost"},
    {"ZADD wait:default/- 5 ghost", "wait:default/- lists ghost, and there is no ring:default/ghost"},
    {"ZADD ring:default/t 5 ghost", "ring:default/t lists ghost, and there is no lane:default/t/ghost"},
    {"ZADD ring:low/ghost 5 key", "low/ghost waits nowhere: nobody looks at its 1 lane"},
    {"ZADD ring:low/keyed 5 key0",
     "low/keyed/key0 waits in several places: ring:low/keyed, wait:low/keyed#0/key0"},
    {"ZADD held:default 5 slow", "default/slow waits in several places: held:default, wait:default/slow#0"},
    {"ZADD wait:default/- 5 slow; ZADD wake:default 5 -", "default/slow waits in several places"},
    {"ZADD wait:default/shared#0 5 slow", "default/slow waits in several places"},
    {"ZADD wait:default/con#0 5 t", "default/t waits in several places"},
    {"ZADD wait:low/ghost#0 5 t; ZADD wake:low +inf ghost#0", "low/t waits in several places"},
    {"ZADD wait:low/shared#0/key0 5 keyed/key0; ZADD sleep:low 1900000000000000 shared#0/key0",
     "low/keyed/key0 waits in several places"},
    {"DEL gate:con#0; DEL active:w",
     "gate con#0 of queue default has waiters, and nothing opens it for them"},
    {"ZADD held:low 5 ghost", "held:low lists ghost, and there is no ring:low/ghost"},
    {"ZADD wake:default 5 ghost#0", "wake:default lists ghost#0, and there is no wait:default/ghost#0"},
    {"ZADD sleep:low 5 keyed#0/ghost",
     "sleep:low lists keyed#0/ghost, and there is no wait:low/keyed#0/ghost"},
    {"ZADD wake:ghost 5 *", "wake:ghost does not say when lanes in sleep wake"},
    {"ZREM wake:low *", "wake:low does not say when lanes in sleep wake"},
    {"ZADD wake:low 1900000000000000 *", "wake:low does not say when lanes in sleep wake"},
    {"ZADD wait:default/slow#0 5 slow/key", "wait:default/slow#0 lists slow/key, and there is no such place"},
    {"ZADD wait:default/slow#0 5 {}", "lists {}, and there is no such place"},
    {"RPUSH lane:low/slow/ x", "low/slow/ waits nowhere: nobody looks at its 1 job"},
    {"HSET active:ghost 1.A/default/t/ x", "worker ghost is not in workers: nobody takes its 1 job back"},
    {"ZADD workers 1900000000000000 ghost", "worker ghost has a deadline and no record"},
    {"HDEL active:w @", "worker w has a deadline and no record"},
    {"HSET stats:t pulled abc", "type t: the counters pulled are not whole numbers"},
    {"HSET stats:t done 9007199254740993 dead 00", "type t: the counters done, dead are not whole numbers"},
    {"SREM queues low", "queue low is not in queues"},
    {"HDEL types slow", "type slow is not in types"},
    {"ZADD batches 5 ghost", "batches lists ghost, and there is no batch:ghost"},
    {"HSET batch:b total 3 done 2 dead 1 sealed 5", "batch b: all of its jobs have ended, and it has not"},
};

/* These are named, and not mended. */
static const struct damage beyond_repair[] = {
    {"HSET batch:b total 3 done 3 dead 1", "batch b: 4 have ended, of 3 jobs"},
    {"HSET limits broken 10/s",
     "limit broken: its rules cannot be read, so its types stand still: 10/s; set it again"},
    {"HSET types slow use=ghost", "type slow uses limit ghost, which does not exist"},
    {"ZADD later 5 nonsense", "later has a record that cannot be read: nonsense; it goes to the dead jobs"},
    {"HSET schedules weekly {}", "schedule weekly has no next occurrence: it never runs again; add it again"},
    {"HSET active:w nonsense x", "a lease cannot be read: nonsense"},
    {"RPUSH lane:nonsense x", "lane:nonsense: its name cannot be read; rename or delete it"},
};

static void plant_and_repair(const struct damage *d, bool beyond)
{
    scene();
    plant(d->commands);
    expect_finding(d->commands, d->told);
    fail_if(!doctor.broken, "%s: not broken", d->commands);
    examine(true);
    fail_if(doctor.broken != beyond, "%s: broken: %d; %s", d->commands, doctor.broken, findings());
    if (!beyond)
        expect_health(d->commands);
}

TEST(test_damage_that_is_planted)
{
    for (size_t i = 0; i < COUNT(damages); i++)
        plant_and_repair(&damages[i], false);
    for (size_t i = 0; i < COUNT(beyond_repair); i++)
        plant_and_repair(&beyond_repair[i], true);
}

/* A look counts no jobs; a repair does. */
TEST(test_counters_are_counted_by_repairs)
{
    static const struct damage wrong[] = {
        {"HINCRBY stats:slow returned 3", "slow: there are -3 parked, +0 running, +0 scheduled"},
        {"HINCRBY stats:t done 3", "t: there are +0 parked, +3 running, +0 scheduled"},
        {"HINCRBY stats:t scheduled -2", "t: there are +0 parked, +0 running, +2 scheduled"},
        {"DEL stats:t", "type t: there are +"},
    };

    for (size_t i = 0; i < COUNT(wrong); i++) {
        scene();
        plant(wrong[i].commands);
        expect_health(wrong[i].commands);
        examine(true);
        if (doctor.broken || !tells("repaired counters type") || !tells(wrong[i].told))
            fail_msg("%s: %s", wrong[i].commands, findings());
        expect_health(wrong[i].commands);
    }
}

/* What is behind a gate that only an end opens starts without the doctor when `queues` is lost. */
TEST(test_lost_queues_stop_nobody)
{
    scene();
    redis_do("DEL", PREFIX "queues");
    run_all("queues");
    worker_begin(NULL);
    must(turns_rate("t", "concurrency:1"));
    enqueue("default", "t", "a b c");
    for (int i = 0; i < 3; i++) { /* before any heartbeat */
        assert_int_equal(claim("w", 5, 0), 1);
        redis_do("DEL", PREFIX "queues");
        settle("w", SETTLE_FINISH, tokens[0], 0, NULL);
    }
    expect_counters("t", "done 3");
}

/* Jobs of an unregistered worker go back to the heads of their lanes. */
TEST(test_leases_of_nobody_return)
{
    struct invariants seen;

    scene();
    seen = turns_check();
    assert_true(seen.leased > 0);
    redis_do("ZREM", PREFIX "workers", "w");
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

TEST(test_a_redis_that_came_back_empty)
{
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

TEST(test_a_redis_that_went_back)
{
    char back[80];

    worker_begin(NULL);
    snprintf(back, sizeof back, "%lld %lld %lld", (long long)turns.now_us - 9000000,
             (long long)turns.now_us - 7750000, (long long)turns.now_us - 5000000);
    redis_do("HSET", PREFIX "about", "back", back);
    expect_finding("went-back", "Redis went back 5.000 s ago: it lost what was written from 9.000 to 7.750 s "
                                "before now, or more");
    assert_false(doctor.broken);
    turns.now_us += 86400 * SECOND_US;
    pass("w", 0);
    examine(false);
    assert_false(tells("Redis went back"));
    redis_do("HSET", PREFIX "about", "back", "no times");
    examine(false);
    assert_false(tells("Redis went back"));
}

TEST(test_a_worker_whose_jobs_a_key_keeps)
{
    scene_begin(NULL);
    must(turns_adopt("x", "", NULL, 0, default_queue, NULL));
    start("w");
    enqueue("default", "t", "a");
    assert_int_equal(claim("w", 1, 0), 1);
    redis_do("MSET", ALONE("t"), "foreign", PREFIX "later", "foreign");
    pass("x", LEASE_US);
    turns.now_us += SECOND_US;
    expect_finding("kept", ALONE("t") " is a string, not a list; weir doctor --repair repairs it");
    assert_true(doctor.broken);
    redis_do("DEL", ALONE("t"), PREFIX "later");
    expect_finding("silent", "worker w is silent, 1 s past its deadline, with 1 job");
    assert_int_equal(pass("x", 0), 1);
    expect_health("mended");
}

/* Claims look for jobs that are to run alone where `alone` says that there are some. */
TEST(test_jobs_that_nobody_would_run_alone)
{
    scene_begin(NULL);
    must(turns_adopt("x", "", NULL, 0, default_queue, NULL));
    start("w");
    enqueue("default", "t", "a");
    assert_int_equal(claim("w", 1, 0), 1);
    pass("x", LEASE_US + SECOND_US);
    redis_do("DEL", PREFIX "alone");
    expect_finding("alone", "default! is not in alone: nobody runs its jobs");
    repair("alone");
    expect_leased("x", 1, "a");
}

/* A slot that leaked is found, whichever way, while others are in use. */
TEST(test_slots_that_leaked)
{
    static const char *const wrong[] = {"0", "1", "7"};

    for (size_t i = 0; i < COUNT(wrong); i++) {
        scene();
        redis_do("SET", PREFIX "gate:con#0",
                 textf("%lld 0 - - concurrency:2 %s", (long long)turns.now_us, wrong[i]));
        expect_finding(wrong[i], textf("gate con#0 counts %s job%s in flight, and 2 leases took it", wrong[i],
                                       strcmp(wrong[i], "1") == 0 ? "" : "s"));
        repair(wrong[i]);
        turns_check();
        run_all(wrong[i]);
    }
}

/* A lane that fell asleep under a rule that its type has no more is not lost. */
TEST(test_a_lane_at_a_gate_of_former_rules)
{
    scene();
    redis_do("HSET", PREFIX "limits", "keyed", "gcra:1/20000000/1");
    expect_health("no rule of keys");
    redis_do("HDEL", PREFIX "limits", "keyed");
    expect_health("no limit");
    assert_true(tells("held")); /* it looked */
}

/* The limit goes when the doctor has looked at what waits, and before it looks at the lane: nobody has named the gate to it. */
TEST(test_a_limit_that_goes_while_the_doctor_looks)
{
    static const char *const lanes[] = {"lane low/keyed/key0", "lane low/slow/"};

    scene();
    redis_do("HDEL", PREFIX "limits", "keyed");
    assert_int_equal(redis_number("ZCARD", PREFIX "wait:low/keyed#0/key0"), 1);
    must(turns_ask("doctor_again", lanes, 1));
    assert_int_equal(json_array_size(json_object_get(turns.answer, "found")), 0);
    plant("RPUSH lane:low/slow/ x");
    must(turns_ask("doctor_again", lanes, 2));
    assert_int_equal(json_array_size(json_object_get(turns.answer, "found")), 1);
}

TEST(test_notes)
{
    scene();
    plant("SET nonsense:key x");
    plant("RPUSH aside:b x");
    turns.now_us += LEASE_US + 9 * SECOND_US;
    expect_health("notes");
    assert_true(tells("nonsense:key: not a key of this version; it is another program's"));
    assert_true(tells("worker w is silent, 9 s past its deadline") || tells("worker w is silent"));
    assert_true(tells("batch b is not paused, and has 1 job set aside; weir batch resume"));
    examine(true);
    assert_int_equal(redis_number("EXISTS", PREFIX "nonsense:key"), 1);
}

/* More of a kind than are told one by one, more than a page: all are mended. */
TEST(test_many)
{
    scene_begin(NULL);
    must(turns_adopt("w", "", NULL, 0, default_queue, NULL));
    redis_do("EVAL",
             "for i = 1, 1500 do redis.call('RPUSH', ARGV[1] .. 'lane:default/t/k' .. i, '{\"id\":\"' "
             ".. i .. '\",\"type\":\"t\"}') end",
             "0", PREFIX);
    redis_do("HSET", PREFIX "stats:t", "enqueued", "1500", "parked", "1500");
    expect_finding("many", "and 1480 more like these");
    repair("many");
    assert_int_equal(redis_number("ZCARD", PREFIX "ring:default/t"), 1500);
    turns_check();
}

TEST(test_wrong_arguments)
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

    scene();
    for (size_t i = 0; i < COUNT(wrong); i++) {
        char *before = turns_digest();
        size_t count = 0;

        while (count < 5 && wrong[i].words[count])
            count++;
        if (turns_script(wrong[i].script, wrong[i].words, count) == 0)
            fail_msg("%s %s: not refused", wrong[i].script, wrong[i].words[0]);
        turns_unchanged(before);
    }
}

TESTS(scene_start_client, scene_stop_doctor)

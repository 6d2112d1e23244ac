#include "tests/doctor_scene.h"

#include <jansson.h>

#include "core/client/answer.h"

#define ROUNDS_MOST 400

struct doctor doctor;

int scene_stop_doctor(void **state)
{
    doctor_free(&doctor);
    return scene_stop_client(state);
}

/* ---- Asking the doctor */

void examine(bool repair)
{
    doctor_free(&doctor);
    fail_if(doctor_run(w, turns.now_us, repair, &doctor) != 0, "%s", w->error.text);
}

const char *findings(void)
{
    static char text[32768];
    size_t len = 0, i;
    bool structures = false;
    json_t *check;

    *text = '\0';
    json_array_foreach(doctor.checks, i, check) {
        const char *name = answer_text(check, "name"), *state = answer_text(check, "state");
        bool told = structures && strcmp(state, "ok") != 0 && strcmp(name, "structures") != 0;

        if (told && len < sizeof text - 2000)
            len += (size_t)snprintf(text + len, sizeof text - len, "%s %s %s; %s\n", state, name,
                                    answer_text(check, "text"), answer_text(check, "do"));
        structures |= strcmp(name, "functions") == 0;
    }
    return text;
}

bool tells(const char *text)
{
    return strstr(findings(), text) != NULL;
}

void expect_health(const char *what)
{
    char *before = turns_digest(), *after;

    examine(false);
    after = turns_digest();
    fail_if(strcmp(before, after) != 0, "%s: looking has changed something", what);
    free(before);
    free(after);
    fail_if(doctor.broken, "%s: %s", what, findings());
}

void expect_finding(const char *what, const char *text)
{
    char *before = turns_digest(), *after;

    examine(false);
    after = turns_digest();
    fail_if(strcmp(before, after) != 0, "%s: looking has changed something", what);
    free(before);
    free(after);
    fail_if(!tells(text), "%s: not told: '%s', but: %s", what, text, findings());
}

void repair(const char *what)
{
    examine(true);
    fail_if(doctor.broken, "%s: not mended: %s", what, findings());
    expect_health(what);
}

/* ---- The scene */

static const char *const both_queues[] = {"default", "low"};
static const char *const all_types[] = {"t", "slow", "keyed", "con", "two", "other"};

void push_keyed(const char *queue, const char *type, const char *id, const char *key)
{
    push(queue, textf("{\"id\":\"%s\",\"type\":\"%s\",\"key\":\"%s\"}", id, type, key));
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

void populate(void)
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
        push_keyed(i % 2 ? "default" : "low", "keyed", textf("k%d", i), textf("key%d", i / 2));
        push_keyed("default", "two", textf("w%d", i), i % 3 ? "a" : "b");
    }
    for (int i = 0; i < 3; i++)
        claim("w", 30, 0);
    must(turns_enqueue("default", "slow", "later1", 30000000));
    claim("w", 30, 0);
}

/* The first of some jobs that start now ends so. */
static void end_one(enum settle_verb verb)
{
    turns.now_us += 6000000;
    assert_true(claim("w", 5, 0) > 0);
    settle("w", verb, tokens[0], 9000000, "no");
}

void end_some(void)
{
    must(turns_enqueue("default", "t", "e1", -1));
    end_one(SETTLE_RETRY);
    end_one(SETTLE_DEAD);
    enqueue("default", "slow", "q1 q2");
    enqueue("low", "t", "q3");
}

void scene(void)
{
    populate();
    end_some();
    turns_check();
}

void run_all(const char *what)
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

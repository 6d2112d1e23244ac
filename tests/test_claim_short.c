/* The short way of a claim: what it answers and leaves in Redis is what the long way does, and it is taken where it may be and nowhere
 * else. A claim that reads two jobs at first never takes it. One that stands behind a peek takes no other. */
#include <inttypes.h>

#include "core/clock.h"
#include "tests/scene.h"

#define LONG_CHUNK 2
#define USUAL_CHUNK 16

struct scene {
    const char *name;
    void (*set)(void);
    bool is_short, stands; /* stands: of the claim that stands */
};

static struct scene scenes[100];
static size_t scene_count;

/* SCENE(name, which way its claim goes, what is done before that); worker w has the duty, and nothing is there yet. */
enum way { LONG, SHORT, SHORT_IF_STANDING };
#define SCENE(name, way, ...)                                                                                \
    static void name(void)                                                                                   \
    {                                                                                                        \
        __VA_ARGS__;                                                                                         \
    }                                                                                                        \
    __attribute__((constructor)) static void name##_is_a_scene(void)                                         \
    {                                                                                                        \
        scenes[scene_count++] = (struct scene){#name, name, (way) == SHORT, (way) != LONG};                  \
    }

/* ---- Scenes */
SCENE(empty, SHORT, )
SCENE(one_job, SHORT, enqueue("default", "t", "a"))
SCENE(two_jobs, SHORT, enqueue("default", "t", "a b"))
SCENE(two_types, SHORT, enqueue("default", "slow", "a"); enqueue("default", "t", "b"))
SCENE(pushed, SHORT, push("default", "{\"id\":\"p\",\"type\":\"t\"}"))
SCENE(scheduled, SHORT, one_job(); must(turns_enqueue("default", "t", "later", SECOND_US)))
SCENE(early_and_alone, SHORT, one_job(); ask.alone = ask.early = true; ask.far = 3;
      ask.ahead_us = GATE_AHEAD_MOST_US)
SCENE(three_jobs, LONG, enqueue("default", "t", "a b c"))
SCENE(limited, LONG, must(turns_rate("t", "10/1000000/1")); one_job())
SCENE(shared_limit, LONG, must(turns_rate("provider", "10/1000000/1")); use("t", "provider"); one_job())
SCENE(parked, LONG, must(turns_rate("slow", "1/1000000/1")); enqueue("default", "slow", "s u");
      claim("w", 10, 0); one_job())
/* Nothing stands in the way in the queue that was asked for last. */
SCENE(parked_in_another_queue, LONG, static const char *const other[] = {"other"};
      must(turns_rate("slow", "1/1000000/1")); enqueue("other", "slow", "s u");
      ask.queues = (struct names){other, 1}; claim("w", 10, 0); ask.queues = default_queue; claim("w", 10, 0);
      ask.queues = (struct names){other, 1}; enqueue("other", "t", "a"))
/* The worker has lost its lease, and two of what is looked at by one command are there. */
SCENE(lost_and_scheduled, LONG, one_job(); must(turns_enqueue("default", "t", "later", SECOND_US));
      redis_do("HSET", PREFIX "halted", "q/other", "1"); redis_do("DEL", PREFIX "active:w"))
SCENE(parked_and_scheduled, LONG, parked(); must(turns_enqueue("default", "t", "later", SECOND_US)))
/* The worker has named its types before; a claim names those that rest. */
#define DIGEST "5f1cb89b8ac5976fc8157549a804413a02dedc4d" /* sha1 of ["slow","t"] */
SCENE(by_digest, SHORT, one_job(); redis_do("HSET", ACTIVE "w", "@", "{\"types\":[\"slow\",\"t\"]}");
      ask.digest = DIGEST; ask.types = (struct names){NULL, 0})
SCENE(at_rest, LONG, static const char *const rests[] = {"t"}; by_digest();
      ask.types = (struct names){rests, 1})
SCENE(by_another_digest, LONG, by_digest(); ask.digest = "0123")
SCENE(held, LONG, enqueue("default", "unknown", "u"); claim("w", 10, 0); one_job())
SCENE(unknown, LONG, enqueue("default", "unknown", "u"))
SCENE(without_id, LONG, push("default", "{\"type\":\"t\"}"))
SCENE(behind_one_without_id, LONG, one_job(); without_id())
SCENE(unreadable, LONG, one_job(); push("default", "no job"))
SCENE(with_head, LONG, use_secret(); push("default", "@1,0,0,s" SECRET ";{\"id\":\"h\",\"type\":\"t\"}"))
SCENE(paused, LONG, one_job(); redis_do("HSET", PREFIX "halted", "q/default", "1"))
SCENE(cancelled, LONG, one_job(); redis_do("HSET", PREFIX "cancelled", "a", "waiting 1 default/t "))
SCENE(alone, LONG, one_job(); redis_do("ZADD", PREFIX "alone", "0", "default!"))
SCENE(duty_ends, SHORT_IF_STANDING, one_job(); turns.now_us += SECOND_US / 2)
SCENE(duty_is_over, LONG, one_job(); turns.now_us += SECOND_US)
SCENE(without_duty, LONG, one_job(); ask.duty_until_us = 0)
SCENE(duty_too_long, LONG, one_job(); ask.duty_until_us = turns.now_us + 5 * SECOND_US)
SCENE(few_executors, LONG, one_job(); ask.free = 2)
SCENE(prefetching, SHORT, two_jobs(); ask.prefetch = 1)
SCENE(prefetching_many, LONG, one_job(); ask.prefetch = 17)
SCENE(reserved, LONG, one_job(); ask.reserved = true)
SCENE(marking, LONG, one_job(); ask.mark = true)
SCENE(marking_nothing, SHORT, ask.mark = true)
static void write_duty(const char *field, const char *worker, int64_t us)
{
    redis_do("HSET", PREFIX "duty", field, textf("%s %" PRId64 " default", worker, turns.now_us + us));
}

/* The duty is x's, and the part of the second is that worker's for so long. */
static void off_duty(const char *second, int64_t us)
{
    ask.duty_until_us = 0;
    ask.mark = true;
    write_duty("g", "x", SECOND_US / 2);
    write_duty("g/second", second, us);
}

SCENE(polling, SHORT, off_duty("y", SECOND_US))
SCENE(polling_and_scheduled, SHORT, polling(); must(turns_enqueue("default", "t", "later", SECOND_US)))
SCENE(polling_and_parked, LONG, parked(); polling())
SCENE(polling_and_queued, LONG, one_job(); polling())
SCENE(polling_as_the_second, LONG, off_duty("w", 3 * SECOND_US / 2))
SCENE(polling_without_a_second, LONG, off_duty("y", -1))
SCENE(polling_without_a_worker_on_duty, LONG, polling(); write_duty("g", "x", -1))
SCENE(polling_by_the_one_on_duty, LONG, polling(); write_duty("g", "w", SECOND_US / 2))
SCENE(polling_far_ahead, LONG, polling(); ask.ahead_us = GATE_AHEAD_MOST_US; ask.far = 0)
SCENE(taking_back, LONG, one_job(); ask.held = true)
SCENE(far_and_full, LONG, one_job(); ask.ahead_us = GATE_AHEAD_MOST_US)
SCENE(foreign_queue, LONG, redis_do("SET", QUEUE, "foreign"))
SCENE(foreign_types, LONG, one_job(); redis_do("DEL", PREFIX "types");
      redis_do("SET", PREFIX "types", "foreign"))
SCENE(foreign_later, LONG, one_job(); redis_do("SET", PREFIX "later", "foreign"))
SCENE(foreign_counters, SHORT, one_job(); redis_do("DEL", PREFIX "stats:t");
      redis_do("SET", PREFIX "stats:t", "foreign"))
SCENE(elsewhere, LONG, one_job(); redis_do("HSET", PREFIX "about", "partitions", "2"))
SCENE(newer_data, LONG, one_job(); redis_do("SET", PREFIX "format:2", "1"))

/* ---- What they come to */

static void write_words(FILE *out, const char *what, const struct span *words, size_t count)
{
    fprintf(out, "%s", what);
    for (size_t i = 0; i < count; i++)
        fprintf(out, " %.*s", (int)words[i].len, words[i].at);
    fprintf(out, "; ");
}

/* Appends what a claim answers. */
static void write_answer(FILE *out, const struct claim *claim)
{
    fprintf(out,
            "%" PRId64 " next %" PRId64 " later %" PRId64 " duty %" PRId64 " more %d starved %d look %" PRId64
            " alone %d crowd %d ",
            claim->now_us, claim->next_us, claim->later_us, claim->duty_until_us, claim->more, claim->starved,
            claim->look_us, claim->alone, claim->crowd);
    for (size_t i = 0; i < claim->lease_count; i++)
        fprintf(out, "%.*s %" PRId64 " %.*s; ", (int)claim->leases[i].token.len, claim->leases[i].token.at,
                claim->leases[i].enqueued_us, (int)claim->leases[i].body.len, claim->leases[i].body.at);
    write_words(out, "limits", claim->limits, claim->limit_count);
    write_words(out, "held", claim->held, claim->held_count);
    write_words(out, "broken", claim->broken, claim->broken_count);
    write_words(out, "paused", claim->paused, claim->paused_count);
    write_words(out, "faults", claim->faults, claim->fault_count);
    write_words(out, "causes", &claim->causes, 1);
    fprintf(out, "losses %zu ", claim->loss_count);
}

static bool is_unchanged; /* what Redis holds, by the last claim */

/* What the claim of a scene answers, and a digest of what Redis holds then: the caller's to free. */
static char *outcome(const struct scene *scene, int chunk, bool standing, bool *is_short)
{
    static const char *const of_the_long_way[] = {"cmdstat_llen", "cmdstat_hmget", "cmdstat_zmscore"};
    char *text = NULL, *before, *digest, *calls;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    int rc;

    assert_non_null(out);
    worker_begin(NULL);
    claim("w", 10, 0);
    ask.duty_until_us = turns.claim.duty_until_us;
    turns.now_us += 1000;
    ask.free = 10;
    scene->set();
    ask.chunk = chunk;
    ask.standing = standing;
    before = turns_digest();
    redis_do("CONFIG", "RESETSTAT");
    rc = try_claim("w", ask.free, ask.prefetch);
    calls = redis_text("INFO", "commandstats");
    *is_short = rc == 0;
    for (size_t i = 0; i < COUNT(of_the_long_way); i++)
        *is_short &= !strstr(calls, of_the_long_way[i]);
    fprintf(out, "%d %s ", rc, rc ? turns.error.text : "");
    if (rc == 0)
        write_answer(out, &turns.claim);
    digest = turns_digest();
    is_unchanged = strcmp(before, digest) == 0;
    fprintf(out, "%s", digest);
    fclose(out);
    free(calls);
    free(before);
    free(digest);
    return text;
}

/* The claim stands behind a peek: it does the same, or nothing; where the duty is to be renewed, that is left to a turn. */
static void check_standing(const struct scene *scene, const char *usual)
{
    bool is_short;
    char *text = outcome(scene, USUAL_CHUNK, true, &is_short);

    fail_if(is_short != scene->stands, "%s: standing: %s", scene->name, text);
    if (is_short && scene->is_short && strcmp(text, usual) != 0)
        fail_msg("%s: standing: %s; else: %s", scene->name, text, usual);
    if (is_short && !scene->is_short) {
        assert_int_equal(turns.claim.lease_count, 1);
        assert_int_equal(turns.claim.duty_until_us, ask.duty_until_us);
    }
    fail_if(!is_short && !is_unchanged, "%s: standing, it changes what it leaves to others", scene->name);
    free(text);
}

SCENE_TEST(test_the_short_way_does_what_the_long_one_does)
{
    for (size_t i = 0; i < scene_count; i++) {
        bool usual_is_short, other_is_short;
        char *usual = outcome(&scenes[i], USUAL_CHUNK, false, &usual_is_short);
        char *other = outcome(&scenes[i], LONG_CHUNK, false, &other_is_short);

        if (strcmp(usual, other) != 0)
            fail_msg("%s: the usual claim: %s; the long way: %s", scenes[i].name, usual, other);
        fail_if(usual_is_short != scenes[i].is_short || (other_is_short && scenes[i].is_short),
                "%s: short: %d, with a chunk of two: %d", scenes[i].name, usual_is_short, other_is_short);
        check_standing(&scenes[i], usual);
        free(usual);
        free(other);
    }
}

/* ---- What a claim that stands has found holds for the next one, by Redis's own clock */

#define TRIES 50 /* it holds for 0.1 s, and the machine may be busy */
#define HELD_US (INT64_C(150) * 1000)

static bool starts_standing(const char *worker)
{
    ask.standing = true;
    int rc = try_claim(worker, 10, 0);

    ask.standing = false;
    return rc == 0 && turns.claim.lease_count == 1;
}

/* Worker w has the duty, and a claim of its that stood has just started a job, which is done. */
static void begin_known(void)
{
    scene_begin(NULL);
    turns.now_us = -1;
    start("w");
    start("x");
    claim("w", 10, 0);
    ask.duty_until_us = turns.claim.duty_until_us;
    enqueue("default", "t", "first");
    assert_true(starts_standing("w"));
    finish("w", "t", &turns.claim.leases[0].token, 1);
}

/* Does a claim of w that stands start a job, behind that? What holds for 0.1 s only is tried again. */
static bool starts_after(void (*change)(void))
{
    for (int n = 0; n < TRIES; n++) {
        begin_known();
        change();
        if (starts_standing("w"))
            return true;
    }
    return false;
}

static void a_later_job(void)
{
    must(turns_enqueue("default", "t", "later", SECOND_US));
    one_job();
}

static void another_claim(void)
{
    claim("x", 10, 0);
    one_job();
}

SCENE_TEST(test_what_a_claim_has_found_holds_while_nothing_changes)
{
    static void (*const unnoticed[])(void) = {paused, cancelled, alone, newer_data};

    for (size_t i = 0; i < COUNT(unnoticed); i++) {
        assert_true(starts_after(unnoticed[i]));
        enqueue("default", "t", "b");
        assert_false(starts_standing("x")); /* it looks itself */
        begin_known();
        unnoticed[i]();
        clock_sleep_until(clock_mono_us() + HELD_US);
        assert_false(starts_standing("w"));
    }
}

SCENE_TEST(test_what_a_claim_has_found_ends_with_a_change)
{
    static void (*const changes[])(void) = {limited, shared_limit, parked, held};

    for (size_t i = 0; i < COUNT(changes); i++) {
        begin_known();
        changes[i]();
        assert_false(starts_standing("w"));
    }
    assert_true(starts_after(a_later_job));
    assert_true(turns.claim.later_us > 0);
}

/* Another claim has looked meanwhile: what it has found is of its own arguments. */
SCENE_TEST(test_what_another_claim_has_found)
{
    assert_true(starts_after(another_claim));
    assert_int_equal(redis_number("HLEN", ACTIVE "w"), 2); /* what it says of itself, and the job */
    assert_int_equal(redis_number("HLEN", ACTIVE "x"), 1);
}

TESTS(turns_start, turns_stop)

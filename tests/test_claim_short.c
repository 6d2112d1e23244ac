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

/* ---- Scenes: worker w has the duty, and nothing is there yet */

static void empty(void)
{
}

static void one_job(void)
{
    enqueue("default", "t", "a");
}

static void two_jobs(void)
{
    enqueue("default", "t", "a b");
}

static void two_types(void)
{
    enqueue("default", "slow", "a");
    enqueue("default", "t", "b");
}

static void pushed(void)
{
    push("default", "{\"id\":\"p\",\"type\":\"t\"}");
}

static void scheduled(void)
{
    one_job();
    must(turns_enqueue("default", "t", "later", SECOND_US));
}

static void early_and_alone(void)
{
    one_job();
    ask.alone = ask.early = true;
    ask.far = 3;
    ask.ahead_us = GATE_AHEAD_MOST_US;
}

static void three_jobs(void)
{
    enqueue("default", "t", "a b c");
}

static void limited(void)
{
    must(turns_rate("t", "10/1000000/1"));
    one_job();
}

static void shared_limit(void)
{
    static const char *const limits[] = {"provider"};

    must(turns_rate("provider", "10/1000000/1"));
    must(turns_use("t", "use", "", limits, 1));
    one_job();
}

static void parked(void)
{
    must(turns_rate("slow", "1/1000000/1"));
    enqueue("default", "slow", "s u");
    claim("w", 10, 0);
    one_job();
}

/* Nothing stands in the way in the queue that was asked for last. */
static void parked_in_another_queue(void)
{
    static const char *const other[] = {"other"};

    must(turns_rate("slow", "1/1000000/1"));
    enqueue("other", "slow", "s u");
    ask.queues = (struct names){other, 1};
    claim("w", 10, 0);
    ask.queues = default_queue;
    claim("w", 10, 0);
    ask.queues = (struct names){other, 1};
    enqueue("other", "t", "a");
}

/* The worker has lost its lease, and two of what is looked at by one command are there. */
static void lost_and_scheduled(void)
{
    one_job();
    must(turns_enqueue("default", "t", "later", SECOND_US));
    redis_do("HSET", PREFIX "halted", "q/other", "1");
    redis_do("DEL", PREFIX "active:w");
}

static void parked_and_scheduled(void)
{
    parked();
    must(turns_enqueue("default", "t", "later", SECOND_US));
}

/* The worker has named its types before; a claim names those that rest. */
static void by_digest(void)
{
    static const struct names none = {NULL, 0};

    one_job();
    redis_do("HSET", ACTIVE "w", "@", "{\"types\":[\"slow\",\"t\"]}");
    ask.digest = "5f1cb89b8ac5976fc8157549a804413a02dedc4d"; /* sha1 of ["slow","t"] */
    ask.types = none;
}

static void at_rest(void)
{
    static const char *const rests[] = {"t"};

    by_digest();
    ask.types = (struct names){rests, 1};
}

static void by_another_digest(void)
{
    by_digest();
    ask.digest = "0123";
}

static void held(void)
{
    enqueue("default", "unknown", "u");
    claim("w", 10, 0);
    one_job();
}

static void unknown(void)
{
    enqueue("default", "unknown", "u");
}

static void without_id(void)
{
    push("default", "{\"type\":\"t\"}");
}

static void behind_one_without_id(void)
{
    one_job();
    without_id();
}

static void unreadable(void)
{
    one_job();
    push("default", "no job");
}

static void with_head(void)
{
    use_secret();
    push("default", "@1,0,0,s" SECRET ";{\"id\":\"h\",\"type\":\"t\"}");
}

static void paused(void)
{
    one_job();
    redis_do("HSET", PREFIX "halted", "q/default", "1");
}

static void cancelled(void)
{
    one_job();
    redis_do("HSET", PREFIX "cancelled", "a", "waiting 1 default/t ");
}

static void alone(void)
{
    one_job();
    redis_do("ZADD", PREFIX "alone", "0", "default!");
}

static void duty_ends(void)
{
    one_job();
    turns.now_us += SECOND_US / 2;
}

static void duty_is_over(void)
{
    one_job();
    turns.now_us += SECOND_US;
}

static void without_duty(void)
{
    one_job();
    ask.duty_until_us = 0;
}

static void duty_too_long(void)
{
    one_job();
    ask.duty_until_us = turns.now_us + 5 * SECOND_US;
}

static void few_executors(void)
{
    one_job();
    ask.free = 2;
}

static void prefetching(void)
{
    two_jobs();
    ask.prefetch = 1;
}

static void prefetching_many(void)
{
    one_job();
    ask.prefetch = 17;
}

static void reserved(void)
{
    one_job();
    ask.reserved = true;
}

static void marking(void)
{
    one_job();
    ask.mark = true;
}

static void marking_nothing(void)
{
    ask.mark = true;
}

static void write_duty(const char *field, const char *worker, int64_t us)
{
    free(
        redis_text("HSET", PREFIX "duty", field, textf("%s %" PRId64 " default", worker, turns.now_us + us)));
}

/* The duty is x's, and the part of the second is that worker's for so long. */
static void off_duty(const char *second, int64_t us)
{
    ask.duty_until_us = 0;
    ask.mark = true;
    write_duty("g", "x", SECOND_US / 2);
    write_duty("g/second", second, us);
}

static void polling(void)
{
    off_duty("y", SECOND_US);
}

static void polling_and_scheduled(void)
{
    polling();
    must(turns_enqueue("default", "t", "later", SECOND_US));
}

static void polling_and_parked(void)
{
    parked();
    polling();
}

static void polling_and_queued(void)
{
    one_job();
    polling();
}

static void polling_as_the_second(void)
{
    off_duty("w", 3 * SECOND_US / 2);
}

static void polling_without_a_second(void)
{
    off_duty("y", -1);
}

static void polling_without_a_worker_on_duty(void)
{
    polling();
    write_duty("g", "x", -1);
}

static void polling_by_the_one_on_duty(void)
{
    polling();
    write_duty("g", "w", SECOND_US / 2);
}

static void polling_far_ahead(void)
{
    polling();
    ask.ahead_us = GATE_AHEAD_MOST_US;
    ask.far = 0;
}

static void taking_back(void)
{
    one_job();
    ask.held = true;
}

static void far_and_full(void)
{
    one_job();
    ask.ahead_us = GATE_AHEAD_MOST_US;
}

static void foreign_queue(void)
{
    redis_do("SET", QUEUE, "foreign");
}

static void foreign_types(void)
{
    one_job();
    redis_do("DEL", PREFIX "types");
    redis_do("SET", PREFIX "types", "foreign");
}

static void foreign_later(void)
{
    one_job();
    redis_do("SET", PREFIX "later", "foreign");
}

static void foreign_counters(void)
{
    one_job();
    redis_do("DEL", PREFIX "stats:t");
    redis_do("SET", PREFIX "stats:t", "foreign");
}

static void elsewhere(void)
{
    one_job();
    redis_do("HSET", PREFIX "about", "partitions", "2");
}

static void newer_data(void)
{
    one_job();
    redis_do("SET", PREFIX "format:2", "1");
}

/* ---- */

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
    static const struct scene scenes[] = {
#define SCENE(name, is_short) {#name, name, is_short, is_short}
        SCENE(empty, true),
        SCENE(one_job, true),
        SCENE(two_jobs, true),
        SCENE(two_types, true),
        SCENE(pushed, true),
        SCENE(prefetching, true),
        SCENE(scheduled, true),
        SCENE(early_and_alone, true),
        SCENE(foreign_later, false),
        SCENE(foreign_counters, true),
        SCENE(three_jobs, false),
        SCENE(limited, false),
        SCENE(shared_limit, false),
        SCENE(parked, false),
        SCENE(held, false),
        SCENE(by_digest, true),
        SCENE(at_rest, false),
        SCENE(by_another_digest, false),
        SCENE(parked_and_scheduled, false),
        SCENE(parked_in_another_queue, false),
        SCENE(lost_and_scheduled, false),
        SCENE(unknown, false),
        SCENE(without_id, false),
        SCENE(behind_one_without_id, false),
        SCENE(unreadable, false),
        SCENE(with_head, false),
        SCENE(paused, false),
        SCENE(cancelled, false),
        SCENE(alone, false),
        {"duty_ends", duty_ends, false, true},
        SCENE(duty_is_over, false),
        SCENE(without_duty, false),
        SCENE(duty_too_long, false),
        SCENE(few_executors, false),
        SCENE(prefetching_many, false),
        SCENE(reserved, false),
        SCENE(marking, false),
        SCENE(marking_nothing, true),
        SCENE(polling, true),
        SCENE(polling_and_scheduled, true),
        SCENE(polling_and_parked, false),
        SCENE(polling_and_queued, false),
        SCENE(polling_as_the_second, false),
        SCENE(polling_without_a_second, false),
        SCENE(polling_without_a_worker_on_duty, false),
        SCENE(polling_by_the_one_on_duty, false),
        SCENE(polling_far_ahead, false),
        SCENE(taking_back, false),
        SCENE(far_and_full, false),
        SCENE(foreign_queue, false),
        SCENE(foreign_types, false),
        SCENE(elsewhere, false),
        SCENE(newer_data, false),
    };

    for (size_t i = 0; i < COUNT(scenes); i++) {
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
    int64_t stale;

    scene_begin(NULL);
    turns.now_us = -1;
    start("w");
    start("x");
    claim("w", 10, 0);
    ask.duty_until_us = turns.claim.duty_until_us;
    enqueue("default", "t", "first");
    assert_true(starts_standing("w"));
    must(turns_settle_done("w", "t", &turns.claim.leases[0].token, 1, &stale));
    assert_int_equal(stale, 0);
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

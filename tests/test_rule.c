/* Rules and durations: what is read, what is refused with which words, what is written. */
#include "tests/random_rule.h"
#include "tests/test.h"
#include "throttle/rule.h"

static struct error error;

#define RULE(kind, count_, period, burst_, ...)                                                              \
    {                                                                                                        \
        .algorithm = ALGORITHM_##kind, .count = count_, .period_us = period, .burst = burst_, __VA_ARGS__    \
    }

#define PACIFIC                                                                                              \
    {                                                                                                        \
        true, true, -28800, -25200, {3, 2, 0, 7200},                                                         \
        {                                                                                                    \
            11, 1, 0, 7200                                                                                   \
        }                                                                                                    \
    }

static const struct {
    const char *text;
    struct rule rule;
    const char *formatted; /* NULL: as text */
    int64_t most;
    const char *stored;
} rules[] = {
    {"100/1m", GCRA(100, 60000000, 100), NULL, 199, "gcra:100/60000000/100"},
    {"100/1m,burst=20", GCRA(100, 60000000, 20), NULL, 119, "gcra:100/60000000/20"},
    {"100/m,burst=100", GCRA(100, 60000000, 100), "100/1m", 199, "gcra:100/60000000/100"},
    {"10/s", GCRA(10, 1000000, 10), "10/1s", 19, "gcra:10/1000000/10"},
    {"10/s,burst=1", GCRA(10, 1000000, 1), "10/1s,burst=1", 10, "gcra:10/1000000/1"},
    {"10/s,algorithm=gcra", GCRA(10, 1000000, 10), "10/1s", 19, "gcra:10/1000000/10"},
    {"7/1000ms", GCRA(7, 1000000, 7), "7/1s", 13, "gcra:7/1000000/7"},
    {"1/1.5s", GCRA(1, 1500000, 1), NULL, 1, "gcra:1/1500000/1"},
    {"1/1.500000s", GCRA(1, 1500000, 1), "1/1.5s", 1, "gcra:1/1500000/1"},
    {"5000/minute,burst=1k", GCRA(5000, 60000000, 1000), "5000/1m,burst=1000", 5999,
     "gcra:5000/60000000/1000"},
    {"50k/day", GCRA(50000, 86400000000, 50000), "50000/1d", 99999, "gcra:50000/86400000000/50000"},
    {"1/1h30m", GCRA(1, 5400000000, 1), "1/1.5h", 1, "gcra:1/5400000000/1"},
    {"0007/1s", GCRA(7, 1000000, 7), "7/1s", 13, "gcra:7/1000000/7"},
    {"5000/1d", GCRA(5000, 86400000000, 5000), NULL, 9999, "gcra:5000/86400000000/5000"},
    {"1/w", GCRA(1, 604800000000, 1), "1/1w", 1, "gcra:1/604800000000/1"},
    {"1/0.5h", GCRA(1, 1800000000, 1), "1/30m", 1, "gcra:1/1800000000/1"},
    {"1/us", GCRA(1, 1, 1), "1/1us", 1, "gcra:1/1/1"},
    {"1000000/1s", GCRA(1000000, 1000000, 1000000), NULL, 1999999, "gcra:1000000/1000000/1000000"},
    {"1000000000/1000s", GCRA(1000000000, 1000000000, 1000000000), NULL, 1999999999,
     "gcra:1000000000/1000000000/1000000000"},
    {"1/3650d", GCRA(1, 315360000000000, 1), NULL, 1, "gcra:1/315360000000000/1"},
    {"2/3650d,burst=3", GCRA(2, 315360000000000, 3), NULL, 4, "gcra:2/315360000000000/3"},
    {"10/s,by=args.business_id,burst=2", RULE(GCRA, 10, 1000000, 2, .by = "args.business_id"),
     "10/1s,burst=2,by=args.business_id", 11, "gcra:10/1000000/2,by=args.business_id"},
    {"10/s,adapt=0.5..1,by=key",
     RULE(GCRA, 10, 1000000, 10, .adapt_low = 500, .adapt_high = 1000, .by = "key"),
     "10/1s,by=key,adapt=0.5..1", 19, "gcra:10/1000000/10,by=key,adapt=500..1000"},
    {"10/s,adapt=0.125..0.75", RULE(GCRA, 10, 1000000, 10, .adapt_low = 125, .adapt_high = 750),
     "10/1s,adapt=0.125..0.75", 19, "gcra:10/1000000/10,adapt=125..750"},
    {"10/s,burst=3,algorithm=token-bucket", RULE(TOKEN_BUCKET, 10, 1000000, 3),
     "10/1s,burst=3,algorithm=token-bucket", 12, "token-bucket:10/1000000/3"},
    {"10000/1d,algorithm=fixed-window", RULE(FIXED_WINDOW, 10000, 86400000000, 10000), NULL, 20000,
     "fixed-window:10000/86400000000/0"},
    {"5/1d,offset=6h,algorithm=fixed-window", RULE(FIXED_WINDOW, 5, 86400000000, 5, .offset_us = 21600000000),
     "5/1d,algorithm=fixed-window,offset=6h", 10, "fixed-window:5/86400000000/21600000000"},
    {"5/1d,zone=America/Los_Angeles,by=key",
     RULE(FIXED_WINDOW, 5, 86400000000, 5, .by = "key", .zone = PACIFIC, .zone_name = "America/Los_Angeles"),
     "5/1d,algorithm=fixed-window,zone=America/Los_Angeles,by=key", 15,
     "fixed-window:5/86400000000/0/57600/61200/3/2/0/612000/11/1/0/612000,zone=America/Los_Angeles,by=key"},
    {"5/mo,offset=14d",
     RULE(FIXED_WINDOW, 5, 2592000000000, 5, .offset_us = 1209600000000, .zone = {.is_set = true},
          .zone_name = "UTC"),
     "5/1mo,algorithm=fixed-window,offset=2w,zone=UTC", 15,
     "fixed-window:5/2592000000000/1209600000000/86400,zone=UTC"},
    {"10000/1h,algorithm=sliding-log", RULE(SLIDING_LOG, 10000, 3600000000, 10000), NULL, 10000,
     "sliding-log:10000/3600000000"},
    {"20000/1h,algorithm=sliding-window", RULE(SLIDING_WINDOW, 20000, 3600000000, 20000), NULL, 39999,
     "sliding-window:20000/3600000000"},
    {"60/1m,of=jobs", RULE(GCRA, 60, 60000000, 60, .of_jobs = true), NULL, 119,
     "gcra:60/60000000/60,of=jobs"},
    {"60/mo,adapt=0.5..1,by=key,of=jobs",
     RULE(FIXED_WINDOW, 60, 2592000000000, 60, .zone = {.is_set = true}, .zone_name = "UTC", .of_jobs = true,
          .by = "key", .adapt_low = 500, .adapt_high = 1000),
     "60/1mo,algorithm=fixed-window,zone=UTC,of=jobs,by=key,adapt=0.5..1", 180,
     "fixed-window:60/2592000000000/0/86400,zone=UTC,of=jobs,by=key,adapt=500..1000"},
    {"100000/1m,of=tokens", RULE(GCRA, 100000, 60000000, 100000, .of = "tokens"), NULL, 199999,
     "gcra:100000/60000000/100000,of=tokens"},
    {"9/1s,of=in_2,by=key", RULE(GCRA, 9, 1000000, 9, .of = "in_2", .by = "key"), NULL, 17,
     "gcra:9/1000000/9,of=in_2,by=key"},
    {"concurrency=5", RULE(CONCURRENCY, 5, 0, 5), NULL, 5, "concurrency:5"},
    {"concurrency=1,by=key", RULE(CONCURRENCY, 1, 0, 1, .by = "key"), NULL, 1, "concurrency:1,by=key"},
};

TEST(test_rules_are_read)
{
    for (size_t i = 0; i < COUNT(rules); i++) {
        char text[RULE_TEXT_SIZE], stored[RULE_TEXT_SIZE];
        struct rule r, read;

        fail_if(rule_parse(rules[i].text, &r, &error) < 0, "%s: %s", rules[i].text, error.text);
        fail_if(!rule_equal(&r, &rules[i].rule), "%s: read as another rule", rules[i].text);
        assert_int_equal(rule_most_in_period(&r), rules[i].most);
        rule_format(&r, text);
        assert_string_equal(text, rules[i].formatted ? rules[i].formatted : rules[i].text);
        rule_write(&r, stored);
        assert_string_equal(stored, rules[i].stored);
        assert_int_equal(rule_read(stored, &read, &error), 0);
        assert_true(rule_equal(&r, &read));
    }
}

static const struct {
    const char *texts, *says;
} wrong_rules[] = {
    {"", "count must be"},
    {"0/s | -1/s | +1/s | x | 2000000k/1d | rate=5 | 1000000001/1d", "count must be"},
    {"99999999999999999999999999/1d", "count must be"},
    {" 1/s", "count must be"},
    {"1.5/s", "the count must be a whole number; write 3/2s"},
    {"0.25/m,burst=2 | 0.25/m", "the count must be a whole number; write 1/4m"},
    {"0.0/s | 1.5", "the count must be a whole number; write COUNT/PERIOD"},
    {"100 | 100 / 1m", "no / follows"},
    {"100/ | 100/1 | 100/1M | 100/1y | 100/-1s | 1/.5s | 1/1,5s", "unit is missing"},
    {"100/m1 | 1/1s 1 | 1/1s; | 10/s,burst=1x | 10/s,by=args.a/b", "not a part of a rule"},
    {"concurrency=5/s", "not a part of a rule"},
    {"100/1mm", "unit is missing or unknown (us, ms, s, m, h, d, w)"},
    {"100/30m1h", "units must become smaller"},
    {"2000k/1s | 1000001/1s | 2/1us", "more than 1000000 a second"},
    {"burst=2", "burst= belongs to the rule before it; join them by a comma, as in 10/s,burst=2"},
    {"concurency=5", "unknown 'concurency='; did you mean concurrency=5?"},
    {"10/0s | 10/0.0s", "period must be above 0"},
    {"1/1.s", "no digit follows the point"},
    {"1/1.5us | 1/1.0000001s | 1/0.000000000000000000000001w", "not a whole number of microseconds"},
    {"1/3651d | 1/522w", "ten years"},
    {"1/36500d | 1/99999999999999999999999999s | 1/9223372036854775807us", "100 years"},
    {"10/s,", "write the rule without blanks, as in 10/s,burst=2"},
    {"10/s,burst", "burst= wants a number; write burst=20"},
    {"10/s,burst,by=key", "burst= wants a number"},
    {"10/s,by", "by= wants key, or a path"},
    {"10/s,Burst=1 | 10/s,brust=1", "did you mean burst=?"},
    {"10/s,algoritm=gcra", "did you mean algorithm=?"},
    {"10/s,zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz=1", "only burst=, algorithm="},
    {"10/s,burst= | 10/s,burst=0 | 10/s,burst=-1 | 10/s,burst=1000000001", "burst must be"},
    {"10/s,burst=1,burst=1", "burst= is there twice"},
    {"10/s,by=key,by=key", "by= is there twice"},
    {"1/1d,burst=3652 | 1/3650d,burst=3", "ten years to come back"},
    {"10/s,algorithm=", "there are gcra, token-bucket, fixed-window, sliding-log and sliding-window"},
    {"10/s,algorithm=leaky", "there are gcra, token-bucket"},
    {"10/s,algorithm=gcr", "did you mean gcra?"},
    {"10/s,algorithm=GCRA,burst=1", "there are gcra"},
    {"10/s,algorithm=fixed_window", "did you mean fixed-window?"},
    {"10/s,algorithm=sliding-windo", "did you mean sliding-window?"},
    {"10/s,algorithm=concurrency", "write concurrency=5"},
    {"10/s,algorithm=fixed-window,burst=5", "fixed-window has no burst"},
    {"10/s,burst=5,algorithm=sliding-log", "sliding-log has no burst"},
    {"10/s,zone=UTC | 10/2d,zone=UTC", "the period is 1d, 1w (from Monday) or 1mo"},
    {"10/1d,zone= | 10/1d,zone=,by=key", "zone= wants a name; write zone=Europe/Berlin"},
    {"10/1d,zone=zone.tab", "time zone 'zone.tab': this"},
    {"10/1d,zone=Mars/Olympus | 10/1d,zone=UTC+3", "write one such as Europe/Berlin"},
    {"10/1d,zone=Africa/Casablanca", "do not change on the same day of each year"},
    {"10/1d,zone=UTC,algorithm=gcra | 10/1mo,algorithm=sliding-log", "no windows that turn by a calendar"},
    {"10/1mo,offset=28d | 10/1d,zone=UTC,offset=1ms", "the offset must be whole seconds"},
    {"10/2mo | 10/0.5mo", "months are counted one by one; write 10/1mo"},
    {"10/s,offset=1ms", "use algorithm=fixed-window"},
    {"10/s,algorithm=fixed-window,offset=1s", "offset must be shorter than the period"},
    {"10/s,algorithm=fixed-window,offset=6", "write a duration, as in offset=6h"},
    {"10/s,algorithm=fixed-window,offset=-6h", "write a duration, as in offset=6h"},
    {"10001/1h,algorithm=sliding-log", "at most 10000; use algorithm=sliding-window"},
    {"10/s,by= | 10/s,by=.x | 10/s,by=args. | 10/s,by=args..x", "write by=key or by=args.customer"},
    {"10/s,by=args", "name one of its members, as in by=args.customer"},
    {"10/s,by=meta", "name one of its members, as in by=meta.customer"},
    {"10/s,by=business_id", "write by=args.business_id"},
    {"10/s,by=arg.business_id", "a job has no member 'arg'"},
    {"10/s,by=queue", "a job has no member 'queue'"}, /* its list has it, and its head the batch */
    {"10/s,by=batch", "a job has no member 'batch'"},
    {"10/s,adapt= | 10/s,adapt=0.5 | 10/s,adapt=0.5..2 | 10/s,adapt=0.0005..1", "write adapt=0.5..1"},
    {"10/s,adapt=-1..1", "write adapt=0.5..1"},
    {"10/s,adapt=0..1 | 10/s,adapt=0.5..0.5 | 10/s,adapt=0.9..0.5", "0 < LOW < HIGH <= 1"},
    {"10/s,adapt=0.5..1.1", "0 < LOW < HIGH <= 1"},
    {"concurrency= | concurrency=0 | concurrency=-1", "concurrency must be 1 to"},
    {"concurrency=1000000001", "concurrency must be 1 to"},
    {"10/s,of= | 10/s,of=plain | 10/s,of=Tokens | 10/s,of=2k | 10/s,of=in-put | 10/s,of=_x,by=key",
     "wants jobs, or what jobs name in their cost, [a-z0-9_]; write of=jobs or of=tokens"},
    {"10/s,of=a23456789012345678901234567890123", "wants jobs, or what jobs name"},
    {"10/s,of=jobs,by=key,of=jobs", "of= is there twice"},
    {"10/s,of", "of= wants a word; write of=jobs or of=tokens"},
    {"of=jobs", "of= belongs to the rule before it"},
    {"concurrency=5,of=jobs | concurrency=5,of=tokens | concurrency=5,by=key,of=jobs",
     "concurrency counts jobs, whatever they cost"},
    {"concurrency=5,burst=1 | concurrency=5,adapt=0.5..1", "only takes by="},
};

TEST(test_wrong_rules_are_refused)
{
    struct rule r;

    for (size_t i = 0; i < COUNT(wrong_rules); i++)
        for (char *rest = textf("%s", wrong_rules[i].texts), *text; (text = cut_text(&rest));) {
            fail_if(rule_parse(text, &r, &error) != WEIR_EINPUT, "%s: taken for a rule", text);
            assert_int_equal(error.status, WEIR_EINPUT);
            fail_if(!strstr(error.text, wrong_rules[i].says) || !strchr(error.text, ';'), "%s: %s", text,
                    error.text);
        }
}

TEST(test_a_long_wrong_rule_stays_one_short_line)
{
    char text[2000];
    struct rule r;

    memset(text, '1', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_int_equal(rule_parse(text, &r, &error), WEIR_EINPUT);
    assert_true(strlen(error.text) < 240);
}

TEST(test_the_stored_form_is_one_text_for_one_rule)
{
    static const char *const wrong[] = {
        "",
        "gcra:100/60000000/20 ",
        ": | gcra | gcra: | gcra:100 | 100/60000000/20 | gcra:100/60000000 | gcra:100/60000000/",
        "gcra:100/60000000/20/ | gcra:0/1/1 | gcra:1/0/1 | gcra:1/1/0 | gcra:01/60000000/1",
        "gcra:1/060000000/1 | gcra:1/60000000/01 | gcra:-1/60000000/1 | gcra:2/1/1 | gcra:1/1m/1",
        "gcra:+1/100/100 | gcra: 1/1/1 | gcra:1/315360000000001/1 | gcra:x/y/z",
        "gcra:1000000001/1000000001/1 | gcra:1/86400000000/3652 | gcra:1/99999999999999999999/1",
        "gcra:1/1/1000000001 | gcar:1/1/1 | token-bucket:1/1 | fixed-window:10/1000000",
        "fixed-window:10/1000000/0/86400 | fixed-window:10/86400000000/0/ | "
        "fixed-window:10/86400000000/0/086400",
        "fixed-window:10/86400000000/0/172800 | fixed-window:10/86400000000/0/1/2 | "
        "gcra:1/86400000000/1/86400",
        "fixed-window:10/86400000000/0/1/2/13/1/0/0/1/1/0/0 | "
        "fixed-window:10/86400000000/0/1/2/1/6/0/0/1/1/0/0",
        "fixed-window:10/86400000000/0/1/2/1/1/7/0/1/1/0/0 | "
        "fixed-window:10/86400000000/0/1/1/1/1/1/0/1/1/0/0",
        "fixed-window:10/86400000000/0/1/86401/1/1/0/0/7/1/0/0 | "
        "fixed-window:10/86400000000/0/86401/1/1/1/0/0/7/1/0/0",
        "fixed-window:10/86400000000/0/1/2/1/1/1/0/1/1/0/0/0 | fixed-window:10/86400000000/0/1,zone=",
        "fixed-window:10/86400000000/0,zone=UTC | fixed-window:10/86400000000/1/86400",
        "fixed-window:10/1000000/1000000 | fixed-window:10/1000000/00 | sliding-log:10001/1000000",
        "sliding-log:10/1000000/10 | sliding-window:10/1000000/10 | concurrency:0 | concurrency:5/1",
        "concurrency:5,adapt=500..1000 | gcra:1/1/1,by= | gcra:1/1/1,by=a..b",
        "gcra:1/1/1,adapt=500..1001 | gcra:1/1/1,adapt=0..1000 | gcra:1/1/1,adapt=500..500",
        "gcra:1/1/1,of= | gcra:1/1/1,of=plain | gcra:1/1/1,of=a-b | gcra:1/1/1,by=key,of=jobs | "
        "gcra:1/1/1,of=jobs,of=jobs",
        "concurrency:5,of=jobs | concurrency:5,of=tokens | gcra:1/1/1,of=2 | "
        "fixed-window:10/86400000000/0/86400,of=jobs,zone=UTC",
        "gcra:1/1/1,adapt=0500..1000 | gcra:1/1/1,adapt=500..1000,by=key",
    };
    struct rule r;

    for (size_t i = 0; i < COUNT(wrong); i++)
        for (char *rest = textf("%s", wrong[i]), *text; (text = cut_text(&rest));)
            fail_if(rule_read(text, &r, &error) != WEIR_EINPUT, "%s: taken for a rule", text);
}

/* Any rule that is valid, with any options. */
static struct rule random_full_rule(uint64_t *random)
{
    static const char *const paths[] = {"", "", "key", "args.business_id", "meta.a.b-c.d_e"};
    struct rule r = random_rule(random);

    r.algorithm = (enum algorithm)random_in(random, 0, ALGORITHM_COUNT - 1);
    strcpy(r.by, paths[random_in(random, 0, COUNT(paths) - 1)]);
    if (r.algorithm == ALGORITHM_SLIDING_LOG && r.count > 10000)
        r.count = random_in(random, 1, 10000);
    if (r.algorithm != ALGORITHM_GCRA && r.algorithm != ALGORITHM_TOKEN_BUCKET)
        r.burst = r.count;
    if (r.algorithm == ALGORITHM_FIXED_WINDOW)
        r.offset_us = random_magnitude(random, r.period_us) - 1;
    if (r.algorithm == ALGORITHM_CONCURRENCY) {
        r.period_us = 0;
        return r;
    }
    r.of_jobs = random_in(random, 0, 1);
    if (random_in(random, 0, 1)) {
        r.adapt_low = (int)random_in(random, 1, 999);
        r.adapt_high = (int)random_in(random, r.adapt_low + 1, 1000);
    }
    return r;
}

TEST(test_random_rules_survive_both_forms)
{
    uint64_t seed = random_seed(), random = seed;

    for (int i = 0; i < 20000; i++) {
        struct rule r = random_full_rule(&random), parsed, read;
        char text[RULE_TEXT_SIZE], stored[RULE_TEXT_SIZE];

        rule_format(&r, text);
        rule_write(&r, stored);
        if (rule_parse(text, &parsed, &error) < 0 || rule_read(stored, &read, &error) < 0)
            fail_msg("WEIR_SEED=%llu: %s: %s", (unsigned long long)seed, stored, error.text);
        fail_if(!rule_equal(&parsed, &r) || !rule_equal(&read, &r),
                "WEIR_SEED=%llu: %s reads as another rule than %s", (unsigned long long)seed, text, stored);
    }
}

/* ---- A limit's rules */

TEST(test_rule_sets_in_both_forms)
{
    static const char *const texts[] = {"10/s,burst=1", "10000/1d,algorithm=fixed-window", "5/m,by=key",
                                        "concurrency=3,by=key"};
    struct rule_set set, read;
    char text[RULE_SET_TEXT_SIZE];

    assert_int_equal(rule_set_parse(texts, COUNT(texts), &set, &error), 0);
    assert_int_equal(set.count, 4);
    assert_string_equal(rule_set_path(&set), "key");
    rule_set_format(&set, text);
    assert_string_equal(text,
                        "10/1s,burst=1 10000/1d,algorithm=fixed-window 5/1m,by=key concurrency=3,by=key");
    set.pause_until_us = 1795000000000001;
    set.paused_at_us = 1795000000000000;
    set.weighted = true;
    rule_set_write(&set, text);
    assert_string_equal(text, "gcra:10/1000000/1 fixed-window:10000/86400000000/0 gcra:5/60000000/5,by=key "
                              "concurrency:3,by=key pause:1795000000000001/1795000000000000 weights:1");
    assert_int_equal(rule_set_read(text, &read, &error), 0);
    assert_int_equal(read.count, 4);
    for (size_t i = 0; i < 4; i++)
        assert_true(rule_equal(&set.at[i], &read.at[i]));
    assert_int_equal(read.pause_until_us, set.pause_until_us);
    assert_int_equal(read.paused_at_us, set.paused_at_us);
    assert_true(read.weighted);
    assert_int_equal(rule_set_read("gcra:10/1000000/1", &read, &error), 0);
    assert_string_equal(rule_set_path(&read), "");
    assert_false(read.weighted);
}

/* A rule keeps its place when others before it go. */
TEST(test_rule_sets_have_places)
{
    static const char stored[] = "- gcra:10/1000000/1 - concurrency:3";
    struct rule_set set;
    char text[RULE_SET_TEXT_SIZE];

    assert_int_equal(rule_set_read(stored, &set, &error), 0);
    assert_int_equal(set.count, 2);
    assert_null(rule_set_at(&set, 0));
    assert_ptr_equal(rule_set_at(&set, 1), &set.at[0]);
    assert_ptr_equal(rule_set_at(&set, 3), &set.at[1]);
    rule_set_write(&set, text);
    assert_string_equal(text, stored);
    rule_set_format(&set, text);
    assert_string_equal(text, "10/1s,burst=1 concurrency=3");
    assert_int_equal(rule_set_read("- - - - - - - concurrency:3", &set, &error), 0);
    assert_int_equal(rule_set_read("- - - - - - - - concurrency:3", &set, &error), WEIR_EINPUT);
    assert_int_equal(rule_set_read("- -", &set, &error), WEIR_EINPUT);
}

TEST(test_the_longest_rules_fit)
{
    const char *texts[RULES_MAX];
    char one[RULE_TEXT_SIZE], text[RULE_SET_TEXT_SIZE], again[RULE_SET_TEXT_SIZE];
    struct rule_set set;
    struct rule r = {.algorithm = ALGORITHM_FIXED_WINDOW,
                     .count = 100000000,
                     .period_us = 315359999999999,
                     .burst = 100000000,
                     .offset_us = 315359999999998,
                     .adapt_low = 998,
                     .adapt_high = 999,
                     .by = "args."};

    memset(r.by + 5, 'x', RULE_PATH_SIZE - 6);
    rule_format(&r, one);
    for (size_t i = 0; i < RULES_MAX; i++)
        texts[i] = one;
    fail_if(rule_set_parse(texts, RULES_MAX, &set, &error) < 0, "%s", error.text);
    assert_true(rule_equal(&set.at[7], &r));
    set.pause_until_us = set.paused_at_us = INT64_C(1) << 53;
    set.weighted = true;
    rule_set_write(&set, text);
    assert_int_equal(rule_set_read(text, &set, &error), 0);
    rule_set_write(&set, again);
    assert_string_equal(text, again);
    assert_true(strlen(one) < RULE_TEXT_SIZE - 8);
}

TEST(test_rules_that_do_not_go_together)
{
    static const char *const nine[] = {"1/s", "2/s", "3/s", "4/s", "5/s", "6/s", "7/s", "8/s", "9/s"};
    static const char *const paths[] = {"1/s,by=key", "2/s", "concurrency=3,by=args.a"};
    static const char *const wrong[] = {"1/s", "0/s"};
    struct rule_set set;

    assert_int_equal(rule_set_parse(nine, 8, &set, &error), 0);
    assert_int_equal(rule_set_parse(nine, 9, &set, &error), WEIR_EINPUT);
    assert_non_null(strstr(error.text, "9 rules: a limit has at most 8; "));
    assert_int_equal(rule_set_parse(nine, 0, &set, &error), WEIR_EINPUT);
    assert_int_equal(rule_set_parse(paths, 2, &set, &error), 0);
    assert_int_equal(rule_set_parse(paths, 3, &set, &error), WEIR_EINPUT);
    assert_non_null(strstr(error.text, "by=key and by=args.a: the keyed rules of a limit have one path; "));
    assert_int_equal(rule_set_parse(wrong, 2, &set, &error), WEIR_EINPUT);
    assert_non_null(strstr(error.text, "rule '0/s'"));
}

TEST(test_wrong_stored_sets)
{
    static const char *const wrong[] = {
        "",
        " ",
        "weights:1 | pause:5/4 | gcra:1/1/1 x | gcra:1/1/1 pause:5 | gcra:1/1/1 pause:5/",
        "gcra:1/1/1 pause:5/4/3 | gcra:1/1/1 pause:-5/4 | gcra:1/1/1 weights:2",
        "gcra:1/1/1 weights:1 gcra:1/1/1 | gcra:1/1/1,by=key gcra:1/1/1,by=args.x",
        "gcra:1/1/1 gcra:1/1/1 gcra:1/1/1 gcra:1/1/1 gcra:1/1/1 gcra:1/1/1 gcra:1/1/1 gcra:1/1/1 gcra:1/1/1",
    };
    char huge[2 * RULE_SET_TEXT_SIZE];
    struct rule_set set;

    for (size_t i = 0; i < COUNT(wrong); i++)
        for (char *rest = textf("%s", wrong[i]), *one; (one = cut_text(&rest));)
            fail_if(rule_set_read(one, &set, &error) != WEIR_EINPUT, "'%s': taken for rules", one);
    memset(huge, '1', sizeof huge - 1);
    huge[sizeof huge - 1] = '\0';
    assert_int_equal(rule_set_read(huge, &set, &error), WEIR_EINPUT);
}

/* ---- Durations */

static const struct {
    const char *text;
    int64_t us;
    const char *formatted; /* NULL: as text */
} durations[] = {
    {"0s", 0, NULL},
    {"0us", 0, "0s"},
    {"1us", 1, NULL},
    {"999us", 999, NULL},
    {"1000us", 1000, "1ms"},
    {"1.001ms", 1001, NULL},
    {"500ms", 500000, NULL},
    {"1s", 1000000, NULL},
    {"1.5s", 1500000, NULL},
    {"1234.567ms", 1234567, NULL},
    {"1.234s", 1234000, NULL},
    {"60s", 60000000, "1m"},
    {"90s", 90000000, "1.5m"},
    {"100s", 100000000, NULL},
    {"1.5h", 5400000000, NULL},
    {"24h", 86400000000, "1d"},
    {"7d", 604800000000, "1w"},
    {"30d", 2592000000000, NULL},
    {"0.25d", 21600000000, "6h"},
    {"00001.50000s", 1500000, "1.5s"},
    {"36499d", 3153513600000000, NULL},
    {"1h30m", 5400000000, "1.5h"},
    {"1d2h3m4.5s", 93784500000, "1563.075m"},
    {"5min", 300000000, "5m"},
    {"1sec", 1000000, "1s"},
    {"2hours", 7200000000, "2h"},
};

TEST(test_durations)
{
    char text[32];

    for (size_t i = 0; i < COUNT(durations); i++) {
        int64_t us;

        fail_if(duration_parse(durations[i].text, &us, &error) < 0, "%s: %s", durations[i].text, error.text);
        assert_int_equal(us, durations[i].us);
        duration_format(us, text);
        assert_string_equal(text, durations[i].formatted ? durations[i].formatted : durations[i].text);
    }
    duration_format(-1500, text);
    assert_string_equal(text, "-1.5ms");
    duration_format(INT64_MIN, text);
    assert_string_equal(text, "-9223372036854775.808ms");
}

TEST(test_wrong_durations_are_refused)
{
    static const char *const wrong[] = {
        "",       "10",        "s",      "-1s",    "1 s",
        "1s ",    "1e3s",      "1.s",    ".5s",    "1.5",
        "0x1s",   "1S",        "1secs2", "30s1m",  "1m1m",
        "1m 30s", "36499d24h", "1.5us",  "36500d", "99999999999999999999s",
        "inf",    "nan",
    };
    int64_t us;

    for (size_t i = 0; i < COUNT(wrong); i++) {
        fail_if(duration_parse(wrong[i], &us, &error) != WEIR_EINPUT, "%s: taken for a duration", wrong[i]);
        assert_non_null(strstr(error.text, "as in 500ms"));
    }
}

TEST(test_random_durations_survive)
{
    uint64_t seed = random_seed(), random = seed;

    for (int i = 0; i < 20000; i++) {
        int64_t us = random_magnitude(&random, INT64_C(3153000000000000)), read;
        char text[32];

        duration_format(us, text);
        if (duration_parse(text, &read, &error) < 0 || read != us)
            fail_msg("WEIR_SEED=%llu: %lld us -> %s", (unsigned long long)seed, (long long)us, text);
    }
}

TESTS(NULL, NULL)

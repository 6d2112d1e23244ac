/* What commands ask, refuse or warn of before something cannot be undone. */
#include "tests/scene_weir.h"

#include "core/clock.h"

/* Runs "weir" and line on a terminal, types answer, and returns the exit code; what it shows is in said.out.
 */
static int on_terminal(const char *answer, const char *line)
{
    const char *words[WORDS_MAX + 1] = {built("weir")};
    char text[400], *rest = text;
    int count = 1;

    snprintf(text, sizeof text, "%s --redis %s", line, turns.server.url);
    while (count < WORDS_MAX && rest && *rest)
        words[count++] = strsep(&rest, " ");
    *said.err = '\0';
    return program_on_terminal(words, answer, said.out, sizeof said.out);
}

/* ---- What destroys */

TEST_WITH(test_purge_needs_yes_where_nobody_can_answer, begin_now, NULL)
{
    start("w");
    must(turns_rate("slow", CLOSED_RULE));
    enqueue("default", "slow", "a b c");
    claim("w", 1, 0);
    claim("w", 1, 0);
    enqueue("default", "t", "d");
    must_end("queue purge default", 64, "queue default: 1 waiting job and 2 parked jobs\n");
    expect_said(
        "weir: queue purge: would remove 3 jobs of queue default, and nobody can be asked here; add --yes, "
        "or --dry-run to change nothing\n");
    assert_int_equal(redis_number("LLEN", QUEUE), 1);
    assert_int_equal(redis_number("LLEN", LANE("slow")), 2);
    assert_int_equal(on_terminal("n\n", "queue purge default"), 75);
    expect_said("remove 3 jobs of queue default? [y/N] weir: queue purge: nothing was changed");
    assert_int_equal(redis_number("LLEN", QUEUE), 1);
    assert_int_equal(on_terminal("y\n", "queue purge default --type slow"), 0);
    expect_said("remove 2 jobs of type slow of queue default? [y/N]");
    must_end("queue purge default -y", 0, "queue default: 1 waiting job and 0 parked jobs removed\n");
    must_end("queue purge default", 0,
             "0 waiting jobs and 0 parked jobs removed\n"); /* there is nothing to ask about */
    turns_check();
}

TEST_WITH(test_cancelling_a_batch_needs_yes, begin_now, NULL)
{
    must_end("enqueue t 1 --id a --batch b", 0, "a");
    must_end("batch cancel b", 64,
             "weir: batch cancel: would cancel batch b, with 1 job that has not ended, and nobody");
    must_end("batch show b", 0, "state:      running");
    must_end("batch cancel b -y", 0, "batch b cancelled: 1 job;");
}

/* ---- Limits with a backlog */

static void park_three(void)
{
    start("w");
    must(turns_rate("slow", CLOSED_RULE));
    enqueue("default", "slow", "a b c d");
    claim("w", 1, 0);
    claim("w", 1, 0);
    enqueue("default", "slow", "e");
}

TEST_WITH(test_removing_a_limit_with_a_backlog_asks, begin_now, NULL)
{
    park_three();
    must_end("rate remove slow", 64,
             "weir: rate remove: would let go 4 jobs that slow holds (4 of them have no other limit and "
             "start at once), "
             "and nobody can be asked here; add --yes");
    must_end("rate remove slow --dry-run", 0,
             "slow: nothing was changed; it would let go 4 jobs: 4 of them have no other limit and start at "
             "once\n");
    must_end("rate remove slow --dry-run --json", 0,
             "{\"name\":\"slow\",\"dry_run\":true,\"jobs\":4,\"without_limit\":4}\n");
    assert_int_equal(on_terminal("n\n", "rate remove slow"), 75);
    expect_said("let go 4 jobs that slow holds (4 of them have no other limit and start at once)? [y/N]");
    assert_int_equal(redis_number("HEXISTS", PREFIX "limits", "slow"), 1);
    assert_int_equal(claim("w", 10, 0), 0);
    must_end("rate remove slow -y", 0, "slow: removed");
    turns.now_us = clock_wall_us();
    assert_int_equal(claim("w", 10, 0), 4);
    must_end("rate remove slow --dry-run", 66, "limit slow: there is none");
    must_end("rate set slow 1/s", 0, "slow: 1/1s");
    must_end("rate remove slow", 0, "slow: removed"); /* nothing waits */
}

TEST_WITH(test_unuse_with_a_backlog_asks, begin_now, NULL)
{
    must_end("rate set acct 1/1d", 0, "acct");
    must_end("rate set more 1/1d", 0, "more");
    must_end("rate use slow acct more", 0, "now also held by acct more");
    park_three();
    must_end("rate unuse slow acct", 64,
             "would let go 4 jobs that acct holds (other limits still hold them), and nobody");
    must_end("rate unuse slow acct --dry-run", 0, "it would let go 4 jobs: other limits still hold them\n");
    must_end("rate unuse slow nope --dry-run", 66, "type slow: does not use limit nope");
    must_end("rate unuse slow acct --yes", 0, "slow: no longer held by acct\n");
    must_end("rate remove slow --yes", 0, "slow: removed");
    must_end("rate unuse slow more", 64, "(4 of them have no other limit and start at once)");
    must_end("rate unuse slow more -y", 0, "slow: no longer held by more\n");
    must_end("rate unuse slow more", 66, "type slow: does not use limit more");
    must_end("rate list --yes", 64, "rate list --yes: only rate unuse and remove have it");
}

/* ---- A key of another kind among those that wait */

static void put_foreign(const char *key)
{
    redis_do("DEL", key);
    redis_do("SET", key, "foreign");
}

/* Jobs of two keys sleep at their gates, and one of these keys is somebody else's. */
static void sleep_beside(const char *foreign)
{
    turns_flush(NULL);
    start("w");
    must_end("rate set slow 1/1d,by=key", 0, "slow");
    enqueue_with("slow", "a b", KEY("a"));
    enqueue_with("slow", "c d", KEY("c"));
    turns.now_us = clock_wall_us();
    while (claim("w", 4, 0) > 0)
        ;
    put_foreign(foreign);
}

TEST_WITH(test_a_key_of_another_kind_ends_a_purge_before_it_begins, begin_now, NULL)
{
    static const char *const keys[] = {LANE("slow") "a", PREFIX "wait:default/slow#0/a", SLEEP, WAKE};

    for (size_t i = 0; i < COUNT(keys); i++) {
        char *before;

        sleep_beside(keys[i]);
        push("default", "{\"type\":\"t\",\"id\":\"waits\"}");
        before = turns_digest();
        must_end("queue purge default --yes", 78, keys[i]);
        expect_said("; weir doctor --repair puts it aside");
        nothing_changed_since(before);
    }
}

/* The limit is changed, all that can be looked at is, and one line names the key. */
TEST_WITH(test_a_key_of_another_kind_keeps_no_limit_from_being_changed, begin_now, NULL)
{
    static const struct {
        const char *key, *command, *limit;
        bool wakes; /* the other key's gate */
    } cases[] = {
        {PREFIX "wait:default/slow#0/a", "rate set slow 9/1d,by=key", "gcra:9/86400000000/9,by=key", true},
        {PREFIX "wait:default/slow#0/a", "rate remove slow --yes", "", true},
        {LANE("slow") "a", "rate set slow 9/1d,by=type", "gcra:9/86400000000/9,by=type", false},
        {PREFIX "held:default", "rate set slow 9/1d,by=type", "gcra:9/86400000000/9,by=type", false},
        {SLEEP, "rate set slow 9/1d,by=key", "gcra:9/86400000000/9,by=key", false},
        {WAKE, "rate set slow 9/1d,by=key", "gcra:9/86400000000/9,by=key", false},
        {WAKE, "rate remove slow --yes", "", false},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        sleep_beside(cases[i].key);
        must_end(cases[i].command, 78, cases[i].key);
        expect_said("changed, but not all that waits in queue default was looked at: ");
        expect_said("; weir doctor --repair mends it");
        expect_text(*cases[i].limit ? cases[i].limit : "(nil)", "HGET", PREFIX "limits", "slow");
        if (cases[i].wakes)
            assert_true(redis_number("ZSCORE", SLEEP, "slow#0/c") < clock_wall_us());
    }
}

/* ---- Load paused, then release */

TEST_WITH(test_a_queue_is_paused_before_its_first_job, begin_now, NULL)
{
    start("w");
    must_end("queue pause default", 0, "weir queue resume default ends that\n");
    must_end("queue resume default", 0, "default resumed");
    redis_do("DEL", PREFIX "queues");
    must_end("queue pause default", 66, "queue default: there is none");
    must_end("queue pause default --create", 0, "weir queue resume default ends that\n");
    must_end("queue list --json", 0, "{\"name\":\"default\",\"waiting\":0,\"parked\":0,\"paused_since\":1");
    must_end("status --json", 0,
             "\"queues\":{\"default\":{\"waiting\":0,\"oldest_at\":null,\"paused_since\":1");
    must_end("queue purge default", 0, "0 waiting jobs and 0 parked jobs");
    enqueue("default", "t", "a");
    assert_int_equal(claim("w", 1, 0), 0);
    must_end("queue list", 0, "default        1       0");
    must_end("queue resume default", 0, "queue default resumed");
    assert_int_equal(claim("w", 1, 0), 1);
}

TEST_WITH(test_a_batch_is_paused_before_its_first_job, begin_now, NULL)
{
    start("w");
    must_end("batch pause b", 0,
             "batch b paused; it has no jobs now: those that come wait for weir batch resume b\n");
    must_end("batch pause b", 0, "batch b was paused already");
    must_end("batch list", 0, "b      paused      0");
    must_end("batch cancel c", 66, "batch c: there is none");
    must_end("enqueue t 1 --id a --batch b", 0, "a");
    assert_int_equal(redis_number("TTL", PREFIX "batch:b"), -1);
    turns.now_us = clock_wall_us();
    assert_int_equal(claim("w", 1, 0), 0);
    must_end("batch show b", 0, "not begun:  1, 1 of them set aside");
    must_end("batch resume b", 0, "batch b resumed; 1 job put back in its queue");
    assert_int_equal(claim("w", 1, 0), 1);
    turns_check();
}

/* ---- A path that jobs lack */

#define LACK(n, of)                                                                                          \
    "slow: " n " of " of " jobs have nothing at args.buisness_id, by which limit slow tells them apart; "

TEST_WITH(test_a_path_that_most_jobs_lack, begin_now, NULL)
{
    must_end("rate set slow 1/1d,by=args.buisness_id", 0, "slow");
    write_text(turns.server.folder, "jobs",
               "{\"business_id\":1}\n{\"business_id\":2}\n{\"buisness_id\":3}\n");
    run_in(&said, turns.server.folder, built("weir"), "enqueue", "--redis", turns.server.url, "--from",
           "jobs", "slow", NULL);
    assert_int_equal(said.code, 0);
    assert_int_equal(strncmp(said.err, "weir: " LACK("2", "3"), strlen("weir: " LACK("2", "3"))), 0);
    must_end(
        "enqueue slow {\"buisness_id\":null}", 0,
        "weir: slow: this job has nothing at args.buisness_id, by which limit slow tells its jobs apart; ");
    must_end("enqueue slow {\"buisness_id\":4}", 0, "");
    assert_string_equal(said.err, "");
    start("w");
    turns.now_us = clock_wall_us();
    while (claim("w", 1, 0) > 0)
        ;
    must_end("status", 0, LACK("3", "5"));
    must_end("status --json", 0, "\"keyless\":3,");
    must_end("rate show slow", 0, LACK("3", "5"));
    must_end("rate show slow --json", 0, "\"keyless\":3}");
    must_end(
        "doctor", 0,
        "warning: limits: type slow: 3 of 5 jobs had nothing at args.buisness_id, the path of limit slow: "
        "they share one gate; weir rate set NAME RULE,by=PATH");
    must_end("rate set slow 2/1d,by=args.buisness_id", 0, "slow"); /* the same path */
    must_end("status", 0, LACK("3", "5"));
    must_end("rate set slow 1/1d,by=args.business_id", 0, "slow");
    must_end("status --json", 0, "\"keyless\":0,");
    must_end("enqueue slow {\"business_id\":4}", 0, "");
    assert_string_equal(said.err, "");
}

/* ---- Commands */

/* What only a shell could read would be a word to the command, and each job done. */
TEST_WITH(test_what_only_a_shell_could_read, begin_now, NULL)
{
    static const char *const wrong[] = {"t=echo hi | tee out", "t=true $HOME", "t=true >out",  "t=true &",
                                        "t=true a;b",          "t=true `id`",  "t=cat *.txt",  "t=true a&&b",
                                        "t=true \"$HOME\"",    "t=true 'a",    "t=true a\\ b", "t=true \"a"};
    static const char *const right[] = {"t=true --to=a@b,c %d {} ~", "t=true http://h/?a=1&b=2",
                                        "t=true '$HOME' \"a b\" '*'", "t=sh -c 'cat >/dev/null | true'",
                                        "t=sh -c \"read job; exit 0\""};

    for (size_t i = 0; i < COUNT(wrong) + COUNT(right); i++) {
        bool refused = i < COUNT(wrong);
        const char *command = refused ? wrong[i] : right[i - COUNT(wrong)];

        run_in(&said, NULL, built("weir"), "worker", i % 2 ? "--exec" : "--pipe", command, "--drain",
               "--redis", turns.server.url, NULL);
        if (said.code != (refused ? 64 : 0) ||
            (refused && !strstr(said.err, "handler t: no shell reads COMMAND, and ")))
            fail_msg("%s: %d: %s", command, said.code, said.err);
    }
}

TESTS(turns_start, turns_stop)

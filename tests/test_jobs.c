/* The search for jobs, pages of what it finds, and what is done to all of that: tests/plays/jobs.txt; here searches as they are read, many
 * jobs, and calls that no person makes. */
#include "tests/play.h"
#include "tests/scene_client.h"

#include <sys/resource.h>

#include "core/client/client.h"
#include "queue/inspect/find_job.h"
#include "queue/inspect/job_act.h"
#include "queue/inspect/job_wait.h"
#include "queue/job/stamp.h"

#define ACTIVE_W ACTIVE "w"

static json_t *last; /* the last page or answer */

static int stop_all(void **state)
{
    json_decref(last);
    return scene_stop_client(state);
}

/* ---- The search */

/* What a call is given: "type=mail older=3600000000". */
static void write_terms(const struct job_search *s, char out[400])
{
    *out = '\0';
    for (size_t i = 0; i < s->count; i++)
        snprintf(out + strlen(out), 400 - strlen(out), "%s%s=%s", i ? " " : "", s->text + s->terms[i].field,
                 s->text + s->terms[i].value);
}

SCENE_TEST(test_what_a_search_says)
{
    static const char *const cases[][2] = {
        {"", ""},
        {"  \t ", ""},
        {"type:mail", "type=mail"},
        {" queue:q.1\n batch:b-2 ", "queue=q.1 batch=b-2"},
        {"3k0v8s1m", "id=3k0v8s1m"},
        {"id:a state:parked,dead", "id=a state=parked state=dead"},
        {"state:retrying state:held", "state=retry state=held"},
        {"key:42", "key=42 made=42"},
        {"key:\"a b\"", "key=a b made=h.7dbde93504122a707f849f2c12bdd9de71b41929"},
        {"enqueued:>1h enqueued:<=2d", "enqueued>=3600000000 enqueued<=172800000000"},
        {"died:<1m due:1h", "died<=60000000 due>=3600000000"},
        {"enqueued:90s", "enqueued>=90000000"},
        {"reason:timeout", "reason=timeout"},
        {"reason:\"exit 1: \\\"no\\\\where\\\"\" type:t", "reason=exit 1: \"no\\where\" type=t"},
        {"args.business_id:7 args.a.b-c:\"\"", "args.business_id=7 args.a.b-c="},
        {"args.url:https://x/y?z=1", "args.url=https://x/y?z=1"},
        {"args.t:\"\xc3\xa4 b\"", "args.t=\xc3\xa4 b"},
    };
    char terms[400];

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct job_search s = scene_search(cases[i][0]);

        write_terms(&s, terms);
        assert_string_equal(terms, cases[i][1]);
    }
}

/* A day is two bounds, so far from now as it began and ended; of today and of a day to come only one is there. */
SCENE_TEST(test_a_search_names_days)
{
    static const int64_t day_us = 86400 * SECOND_US;
    static const struct {
        const char *search, *near, *far;
        int64_t most; /* days from now to its farther end */
    } cases[] = {
        {"enqueued:yesterday", "enqueued>", "enqueued<", 2},
        {"died:today", "died>", "died<", 1},
        {"due:today", "due>", "due<", 1},
        {"due:2099-12-31", "due>", "due<", 40000},
        {"enqueued:2024-02-29", "enqueued>", "enqueued<", 40000},
    };

    setenv("TZ", "UTC", 1);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct job_search s = scene_search(cases[i].search);
        const char *near = job_search_value(&s, cases[i].near), *far = job_search_value(&s, cases[i].far);

        assert_non_null(far);
        assert_in_range(atoll(far), (cases[i].most < 3 ? cases[i].most - 1 : 2) * day_us,
                        cases[i].most * day_us);
        assert_int_equal(near != NULL, cases[i].most > 1);
        if (near)
            assert_int_equal(atoll(far) - atoll(near), day_us);
    }
    unsetenv("TZ");
}

SCENE_TEST(test_what_is_no_search)
{
    static const char *const cases[][2] = {
        {"stat:parked", "search stat: no such field; did you mean state:?"},
        {"colour:red", "search colour: no such field; there are type queue key batch schedule id state "
                       "worker enqueued died "
                       "due reason args.PATH"},
        {"args:1", "search args: no such field"},
        {"args.:1", "search args.: no such field"},
        {"args.a..b:1", "search args.a..b: no such field"},
        {":x", "search id::x: not a valid name"}, /* a word alone */
        {"type:", "search type: its value is missing; write type:VALUE"},
        {"type:a/b", "search type:a/b: not a valid name"},
        {"two words/", "search id: given twice; leave one out"},
        {"type:a type:b", "search type: given twice; leave one out"},
        {"args.a:1 args.a:2", "search args.a: given twice"},
        {"state:parkd", "search state:parkd: no such state; did you mean state:parked?"},
        {"state:dead,blue", "search state:blue: no such state; there are waiting, parked"},
        {"state:dead,", "search state:: no such state"},
        {"enqueued:>1", "search enqueued:>1: "},
        {"enqueued:2026-13-01", "search enqueued:2026-13-01: duration"},
        {"enqueued:2026-02-29", "search enqueued:2026-02-29: duration"},
        {"enqueued:1026-02-01", "search enqueued:1026-02-01: duration"},
        {"enqueued:2099-12-31", "search enqueued:2099-12-31: that day is yet to come"},
        {"due:yesterday", "search due:yesterday: that day is over"},
        {"enqueued:today enqueued:<1h", "search enqueued:<1h: such a term is there already"},
        {"enqueued:", "search enqueued: its value is missing"},
        {"enqueued:<", "search enqueued:<: "},
        {"enqueued:>1h enqueued:1h", "search enqueued:1h: such a term is there already"},
        {"reason:\"open", "search \"open: the quotes do not end"},
        {"reason:\"a\"b", "search \"a\"b: the quotes do not end, or no blank stands behind them"},
        {"reason:\"a\\", "the quotes do not end"},
        {"args.a:1 args.b:1 args.c:1 args.d:1 args.e:1 args.f:1 args.g:1 args.h:1 args.i:1 args.j:1 args.k:1 "
         "args.l:1 args.m:1 args.n:1 args.o:1 args.p:1 args.q:1 args.r:1 args.s:1 args.t:1 args.u:1 args.v:1 "
         "args.w:1 args.x:1 args.y:1",
         "search: more than 24 terms; leave some out"},
    };
    char longest[1600];
    struct job_search s;
    struct error e;

    for (size_t i = 0; i < COUNT(cases); i++) {
        s = (struct job_search){.count = 0};
        if (job_search_read(&s, cases[i][0], &e) != WEIR_EINPUT || !strstr(e.text, cases[i][1]))
            fail_msg("%s: not '%s' but: %s", cases[i][0], cases[i][1], e.text);
        assert_null(strchr(e.text, '\n'));
    }
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    s = (struct job_search){.count = 0};
    assert_int_equal(job_search_read(&s, longest, &e), WEIR_EINPUT);
}

/* ---- Pages */

/* Lists, lanes in rings and asleep, sorted sets with equal scores, leases: more of each than one page takes. */
static void fill_many(char ids[SCENE_IDS_SIZE])
{
    *ids = '\0';
    fill_queues(30);
    for (int i = 0; i < 30; i++)
        snprintf(ids + strlen(ids), SCENE_IDS_SIZE - strlen(ids), "%sw%d r%d s%d h%d", i ? " " : "", i, i, i,
                 i);
    for (int i = 0; i < 300; i++) {
        char token[60];
        static const char *const kinds[] = {"l", "q", "d", "a", "p"};
        const char *kind = kinds[i % 5];
        const char *body = textf("{\"id\":\"%s%d\",\"type\":\"t\"}", kind, i);

        snprintf(ids + strlen(ids), SCENE_IDS_SIZE - strlen(ids), " %s%d", kind, i);
        snprintf(token, sizeof token, "%d.0/q0/t/x", i);
        if (*kind == 'p')
            redis_do("RPUSH", PREFIX "lane:q3/t/a", body);
        else if (*kind == 'q')
            redis_do("RPUSH", PREFIX "queue:q1", body);
        else if (*kind == 'a')
            redis_do("HSET", ACTIVE_W, token, body);
        else {
            redis_do("ZADD", *kind == 'd' ? PREFIX "dead" : PREFIX "later",
                     i % 2 ? "1795000000000005" : "1795000000000004",
                     textf(*kind == 'd' ? "w:%d q0/t/ because\n%s" : "q %d q0 t\n%s", i, body));
        }
    }
}

WORKER_TEST(test_pages_have_everything_once)
{
    char ids[SCENE_IDS_SIZE];

    redis_do("ZADD", PREFIX "later", "1795000000000003", "s daily\n");
    redis_do("HSET", PREFIX "schedules", "daily", "{}");
    fill_many(ids);
    expect_found("", ids);
    expect_found("type:t queue:q7", "w7 r7 s7");
    expect_found("type:u queue:q7", "h7");
    expect_found("type:t queue:q7 key:a", "r7");
    expect_found("queue:q7 key:b", "s7");
}

/* Its answer says how far a page has come, and of how many: it has looked at enough, or its time is over. */
WORKER_TEST(test_a_page_says_how_far_it_looked)
{
    static const struct job_bounds mosts[] = {{.looked_at = 500, .jobs = 10},
                                              {.looked_at = INT64_MAX, .jobs = 10, .until_us = 1}};
    struct job_search s = scene_search("type:nothing");

    enqueue_many("t", 1200);
    for (int i = 0; i < 2; i++) {
        json_decref(last);
        must(job_list_page(w, turns.now_us, &s, NULL, &mosts[i], &last));
        assert_in_range(answer_int(last, "looked_at"), 1, 1000);
        assert_int_equal(answer_int(last, "of"), 1200);
        assert_in_range(strlen(answer_text(last, "next")), 8, 60); /* a person may copy it */
    }
}

/* Thousands of types share a limit by key, and wait for the same key: no call looks at them all. */
WORKER_TEST(test_many_lanes_at_the_gate_of_one_key)
{
    struct job_search s = scene_search("state:parked");

    redis_do("EVAL",
             "for i = 1, 3000 do\n"
             "redis.call('RPUSH', KEYS[1] .. 'lane:default/t' .. i .. '/k', '{\"id\":\"j' .. i .. "
             "'\",\"type\":\"t' .. i .. '\",\"key\":\"k\"}')\n"
             "redis.call('ZADD', KEYS[1] .. 'wait:default/lim#0/k', i, 't' .. i .. '/k')\n"
             "end\n"
             "redis.call('ZADD', KEYS[1] .. 'sleep:default', '1795003600000000', 'lim#0/k')\n"
             "redis.call('SADD', KEYS[1] .. 'queues', 'default') return ''",
             "1", PREFIX);
    json_decref(last);
    must(job_list_count(w, turns.now_us, &s, NULL, NULL, &last));
    assert_int_equal(answer_int(last, "jobs"), 3000);
    must(ask_line("job_list count 100 1 1 state parked"));
    assert_in_range(answer_int(turns.answer, "matched"), 1, 200);
}

/* Where its type and key, or its queue, are known, a search looks nowhere else. */
WORKER_TEST(test_a_search_looks_only_where_its_jobs_may_be)
{
    static const struct {
        const char *text;
        int looked_at;
    } cases[] = {{"state:parked type:t key:a queue:q3", 1},
                 {"state:parked type:u", 30},
                 {"state:waiting queue:q5", 1},
                 {"state:parked queue:q5", 3},
                 {"state:running,dead", 0},
                 {"state:parked type:t key:b", 30}};

    fill_queues(30);
    for (size_t i = 0; i < COUNT(cases); i++) {
        scene_find(cases[i].text, 1000, 100000);
        assert_int_equal(answer_int(scene_page, "looked_at"), cases[i].looked_at);
    }
}

SCENE_TEST(test_wrong_cursors_are_refused)
{
    static const char *const unsealed[] = {"0,0", "MCww=", "MCww,"};
    static const char *const wrong[] = {"",     "x",         "1", "1,2,", "0,99", "0,0,queue:default",
                                        "-1,0", "0,0 later,"};
    static const char *const impossible[] = {"0,0,nowhere,",        "0,0,limits,",
                                             "0,0,wake,",           "0,0,later:x,",
                                             "0,0,queues:limits,",  "0,0,later,x",
                                             "0,0,later,x:1",       "0,0,later,nan:1",
                                             "0,0,later,1:x",       "0,0,later,1:9999999999999999",
                                             "0,0,queue:default,x", "0,0,queue:default,1:2",
                                             "0,0,active:w,x+1",    "0,0,active:w,99999999999999999999"};
    static const char *const strange[] = {
        "0,0,dead,5:9",        "0,0,dead,-inf:0", "0,0,,3",        "0,0,,99",          "0,3",
        "0,0,queue:no,7",      "0,0,parked,",     "0,0,finished,", "0,0,queues:ring,", "0,0,queues:lanes,",
        "0,0,active:none,12+3"};
    const struct job_bounds most = {.looked_at = 500, .jobs = 10};
    struct job_search s = scene_search("");

    scene_states();
    for (size_t i = 0; i < COUNT(wrong); i++) {
        json_t *page;

        assert_int_equal(job_list_page(w, turns.now_us, &s, scene_cursor(wrong[i]), &most, &page),
                         WEIR_EINPUT);
        assert_null(page);
        assert_non_null(strstr(w->error.text, "not one; take it as the page before gave it"));
    }
    for (size_t i = 0; i < COUNT(unsealed); i++) {
        json_t *page;

        assert_int_equal(job_list_page(w, turns.now_us, &s, unsealed[i], &most, &page), WEIR_EINPUT);
    }
    for (size_t i = 0; i < COUNT(strange); i++) {
        json_decref(last);
        must(job_list_page(w, turns.now_us, &s, scene_cursor(strange[i]), &most, &last));
    }
    json_decref(last);
    last = NULL;
    for (size_t i = 0; i < COUNT(impossible); i++) {
        json_t *page;

        assert_int_equal(job_list_page(w, turns.now_us, &s, scene_cursor(impossible[i]), &most, &page),
                         WEIR_EINPUT);
        assert_non_null(strstr(w->error.text, "not one; take it as the page before gave it"));
        s = scene_search("id:a");
        assert_int_equal(job_actions(w, turns.now_us, &s, "run", scene_cursor(impossible[i]), &most, &page),
                         WEIR_EINPUT);
        assert_non_null(strstr(w->error.text, "not one; take it as the page before gave it"));
    }
}

/* ---- run */

/* Thousands are due at the same time, before it. */
WORKER_TEST(test_one_of_many_that_are_due_at_once_runs_now)
{
    redis_do("EVAL",
             "for i = 1, 6000 do redis.call('ZADD', KEYS[1], '1795003600000000', 'q ' .. i .. ' default "
             "t\\n{\"id\":\"a' .. i .. '\",\"type\":\"t\"}') end return ''",
             "1", PREFIX "later");
    redis_do("HINCRBY", PREFIX "stats:t", "scheduled", "6000");
    json_decref(last);
    must(job_run(w, turns.now_us, "a999", &last));
    turns_check();
    assert_int_equal(redis_number("ZCARD", PREFIX "later"), 5999);
    expect_list(QUEUE, "a999");
}

/* The id of the job at that place of the queue. */
static void expect_at(const char *place, const char *id)
{
    char *entry = redis_text("LINDEX", QUEUE, place);

    fail_if(!strstr(entry, textf("\"%s\"", id)), "not %s: %s", id, entry);
    free(entry);
}

/* LREM would take Redis too long there. */
WORKER_TEST(test_far_from_both_ends_the_last_job_takes_its_place)
{
    static const char fill[] =
        "for i = 0, 101999 do redis.call('RPUSH', KEYS[1], '{\"id\":\"j' .. i .. '\",\"type\":\"' .. ((i == "
        "50999 or i == 51001) and 'u' or 't') .. '\"}') end";
    const struct job_bounds most = {.looked_at = 1000000, .jobs = 2};
    struct job_search two = scene_search("type:u");

    redis_do("EVAL", fill, "1", QUEUE);
    must(turns_enqueue("default", "t", "last", 0));
    json_decref(last);
    must(job_run(w, turns.now_us, "j51000", &last));
    expect_at("0", "j51000");
    expect_at("1", "j0");
    expect_at("51001", "last");
    expect_at("51002", "j51001");
    json_decref(last);
    must(job_actions(w, turns.now_us, &two, "run", NULL, &most, &last)); /* both by one call of the script */
    expect_at("0", "j50999");
    expect_at("1", "j51001");
    expect_at("2", "j51000");
    expect_at("51002", "j101998");
    expect_at("51003", "last");
    expect_at("51004", "j101999");
    expect_at("-1", "j101997");
    assert_int_equal(redis_number("LLEN", QUEUE), 102001);
}

/* It is promoted, claimed, or both, before or after: it starts once. */
SCENE_TEST(test_a_run_beside_a_promote_and_a_claim)
{
    for (int order = 0; order < 6; order++) {
        json_t *job = NULL;
        bool ran;

        worker_begin(NULL);
        must(turns_enqueue("default", "t", "a", SECOND_US));
        turns.now_us += SECOND_US;
        for (int step = 0; step < 3; step++) {
            int what = step == 0 ? order / 2 : step == 1 ? (order / 2 + 1 + order % 2) % 3 : 3;
            int64_t moved;

            if (what == 0)
                must(turns_promote(10, &moved));
            ran = what == 1 && job_run(w, turns.now_us, "a", &job) == 0;
            if (ran)
                json_decref(job);
            if (what == 2)
                claim("w", 1, 0);
            turns_check();
        }
        must(turns_promote(10, &(int64_t){0}));
        claim("w", 2, 0);
        claim("w", 2, 0);
        assert_int_equal(redis_number("HLEN", ACTIVE_W), 2); /* "@" and the job */
        assert_int_equal(redis_number("EXISTS", QUEUE, PREFIX "later", LANE("t")), 0);
    }
}

/* ---- Actions */

static void act(const char *action, const char *text, int64_t done, int64_t left)
{
    scene_act(action, text, JOB_BOUND_MOST, 100000);
    assert_int_equal(answer_int(scene_page, "all"), done);
    assert_int_equal(answer_int(scene_page, "all_left"), left);
    turns_check();
}

/* It moves between the look that has found it and what is to be done: that is not done to another one. */
WORKER_TEST(test_a_job_that_has_moved_is_left)
{
    struct job_acted acted;
    json_t *job;

    enqueue("default", "t", "a b");
    must(find_job(w, turns.now_us, "a", &job));
    assert_int_equal(claim("w", 1, 0), 1);
    must(job_act_there(w, turns.now_us, "a", "cancel", job, &acted));
    assert_int_equal(acted.done + acted.left + acted.marked, 0);
    assert_null(acted.first);
    json_decref(job);
    assert_int_equal(redis_number("LLEN", QUEUE), 1);
    turns_check();
}

/* In the middle of many others: a worker that runs its type ends it as it comes there; where nobody does it is gone. */
WORKER_TEST(test_far_from_both_ends_a_claim_ends_it)
{
    static const char fill[] =
        "for i = 0, 11999 do redis.call('RPUSH', KEYS[1], '{\"id\":\"j' .. i .. '\",\"type\":\"' .. (i == "
        "6001 and 'nobody' or 't') .. '\"}') end";
    struct job_acted acted;
    json_t *job;

    redis_do("EVAL", fill, "1", QUEUE);
    redis_do("ZADD", PREFIX "runs", "9000000000000000", "t");
    for (int i = 0; i < 2; i++) { /* the second time it is marked already */
        must(find_job(w, turns.now_us, "j6000", &job));
        must(job_act_there(w, turns.now_us, "j6000", "cancel", job, &acted));
        json_decref(job);
        assert_int_equal(acted.marked, i == 0);
        assert_int_equal(acted.left, i);
    }
    expect_text("j6000", "HKEYS", PREFIX "cancelled");
    must(find_job(w, turns.now_us, "j6001", &job));
    must(job_act_there(w, turns.now_us, "j6001", "cancel", job, &acted));
    json_decref(job);
    assert_int_equal(acted.done - acted.marked, 1);
    assert_int_equal(redis_number("LLEN", QUEUE), 11999);
    expect_at("6001", "j11999");
    expect_counters("nobody", "cancelled 1, dropped 1");
}

WORKER_TEST(test_no_more_than_was_said)
{
    enqueue_many("t", 30);
    scene_act("cancel", "type:t", 7, INT64_MAX);
    assert_int_equal(answer_int(scene_page, "all"), 7);
    assert_int_equal(redis_number("LLEN", QUEUE), 23);
    expect_counters("t", "cancelled 7, dropped 7");
}

WORKER_TEST(test_many_scheduled_jobs_run)
{
    for (int i = 0; i < 600; i++)
        must(turns_enqueue("default", "t", textf("%s%d", i % 3 ? "x" : "y", i), 3600 * SECOND_US + i / 100));
    act("run", "type:t queue:default state:scheduled", 600, 0);
    assert_int_equal(redis_number("LLEN", QUEUE), 600);
    assert_int_equal(redis_number("EXISTS", PREFIX "later"), 0);
    expect_counters("t", "scheduled 0, enqueued 600");
}

/* Some of a list, again and again: none is lost, none comes twice, and each walk ends. */
WORKER_TEST(test_many_jobs_in_line_are_put_first)
{
    must(turns_rate("slow", "1/1000000000/1"));
    for (int i = 0; i < 700; i++)
        enqueue_with("slow", textf("s%d", i), textf("\"args\":{\"n\":%d}", i % 7));
    act("run", "args.n:3 type:slow", 100, 0);
    assert_int_equal(redis_number("LLEN", QUEUE), 700);
    act("cancel", "args.n:3 type:slow", 100, 0);
}

/* The same of a lane, of which a look among others sees a few jobs. */
WORKER_TEST(test_many_jobs_of_a_lane_are_put_first)
{
    must(turns_rate("slow", "1/1000000000/1"));
    for (int i = 0; i < 40; i++) {
        enqueue_with("slow", textf("%s%d", i % 4 ? "x" : "y", i),
                     i % 4 ? "\"args\":{\"n\":1}" : "\"args\":{\"n\":2}");
    }
    claim("w", 1, 0);
    claim("w", 40, 0);
    assert_int_equal(redis_number("LLEN", LANE("slow")), 39);
    act("run", "args.n:2 state:parked", 9, 0);
    expect_text("y4", "EVAL", "return redis.call('LINDEX', KEYS[1], 0):match('y%d+')", "1", LANE("slow"));
    assert_int_equal(redis_number("LLEN", LANE("slow")), 39);
}

WORKER_TEST(test_dead_jobs_are_retried_and_removed)
{
    enqueue_many("t", 60);
    for (int i = 0; i < 2; i++) {
        claim("w", 30, 0);
        for (size_t n = 0; n < 30; n++)
            settle("w", SETTLE_DEAD, tokens[n], 0, n % 3 ? "timeout" : "wrong");
    }
    enqueue("default", "t", "waits");
    act("retry", "reason:timeout type:t", 40, 0);
    assert_int_equal(redis_number("LLEN", QUEUE), 41);
    act("remove", "type:t", 20, 0);
    assert_int_equal(redis_number("EXISTS", PREFIX "dead"), 0);
    expect_counters("t", "revived 40, removed 20, dead 60");
    act("remove", "waits", 0, 1);
}

/* Pages of one entry each, and of all, do the same. */
SCENE_TEST(test_actions_page_by_page)
{
    char ids[SCENE_IDS_SIZE];

    for (int small = 0; small < 2; small++) {
        worker_begin(NULL);
        for (int i = 0; i < 40; i++)
            must(turns_enqueue("default", "t", textf("l%d", i), 3600 * SECOND_US + i / 10));
        *ids = '\0';
        scene_act("cancel", "l3 state:scheduled", 1, small ? 1 : 1000);
        scene_act("cancel", "type:t state:scheduled", 1000, small ? 1 : 1000);
        assert_int_equal(answer_int(scene_page, "all"), 39);
        expect_counters("t", "scheduled 0, cancelled 40");
    }
}

/* Of all calls of functions since the statistics were reset. */
static int64_t calls_said(const char *what)
{
    char *text = redis_text("INFO", "commandstats");
    int64_t sum = 0;

    for (const char *at = text; (at = strstr(at, "cmdstat_fcall")); at++) {
        const char *value = strstr(at, what);

        sum += value ? strtoll(value + strlen(what), NULL, 10) : 0;
    }
    free(text);
    return sum;
}

/* So often this thread had nothing to do. */
static int64_t count_waits(void)
{
    struct rusage used;

    assert_int_equal(getrusage(RUSAGE_THREAD, &used), 0);
    return used.ru_nvcsw;
}

/* Who goes through all jobs leaves Redis to others for as long as that takes; and an action looks at as many at once as a list does. */
WORKER_TEST(test_walks_rest_and_have_long_pages)
{
    static const char fill[] =
        "for i = 0, 29999 do redis.call('RPUSH', KEYS[1], '{\"id\":\"j' .. i .. '\",\"type\":\"t\"}') end";
    const struct job_bounds most = {.looked_at = JOB_BOUND_MOST, .jobs = JOB_BOUND_MOST};
    struct job_search s = scene_search("none");
    int64_t waited, of_list;

    redis_do("EVAL", fill, "1", QUEUE);
    redis_do("CONFIG", "RESETSTAT");
    waited = count_waits();
    json_decref(last);
    must(job_list_count(w, turns.now_us, &s, NULL, &most, &last));
    of_list = calls_said(":calls=");
    waited = count_waits() - waited;
    assert_true(waited > of_list * 3 / 2); /* for each answer, and for each rest behind it */
    redis_do("CONFIG", "RESETSTAT");
    json_decref(last);
    must(job_actions(w, turns.now_us, &s, "cancel", NULL, &most, &last));
    assert_int_equal(answer_int(last, "looked_at"), 30000);
    assert_in_range(calls_said(":calls="), 1, 2 * of_list - 1);
}

/* Done jobs that are kept are listed where they are asked for, the newest of a type first, and nothing else is done to them. */
SCENE_TEST(test_jobs_that_have_finished)
{
    const struct job_bounds most = {.looked_at = 10, .jobs = 10};
    struct job_search all = scene_search("type:t");
    json_t *page;

    for (int i = 0; i < 5; i++) {
        redis_do("SET", textf(PREFIX "finished:k%d", i),
                 textf("done 1795000000000000 w 1 default/%s/ "
                       "{\"n\":1}\n@1,0,0,bweek;{\"id\":\"k%d\",\"type\":\"%s\",\"args\":{\"n\":%d}}",
                       i == 4 ? "u" : "t", i, i == 4 ? "u" : "t", i));
        redis_do("ZADD", i == 4 ? PREFIX "kept:u" : PREFIX "kept:t", textf("%d", i), textf("k%d", i));
    }
    redis_do("ZADD", PREFIX "kept:t", "9", "over");
    redis_do("HSET", PREFIX "types", "t", "", "u", "");
    expect_found("state:finished type:t", "k3 k2 k1 k0");
    expect_found("state:finished,dead type:u", "k4");
    assert_string_equal(scene_find("state:finished type:t", 10, 100), "k3 k2 k1 k0");
    expect_found("state:finished", "k3 k2 k1 k0 k4");
    expect_found("state:finished type:t args.n:2 batch:week", "k2");
    expect_found("state:finished id:k3", "k3");
    expect_found("state:finished queue:other", "");
    must(job_list_page(w, turns.now_us, &all, NULL, &most, &page));
    assert_int_equal(json_array_size(json_object_get(page, "jobs")), 0);
    json_decref(page);
    all = scene_search("state:dead,finished type:t");
    assert_int_equal(job_actions(w, turns.now_us, &all, "cancel", NULL, &most, &page), WEIR_EINPUT);
    assert_null(page);
    assert_non_null(strstr(w->error.text, "they are done, and nothing is done to them"));
}

/* Who waits sees a job that ends, whatever kept it; of one that nobody kept it is known that it was there. */
WORKER_TEST(test_the_end_of_a_job)
{
    struct job_wait wait = {.job = NULL};

    enqueue("default", "t", "a b");
    must(job_wait_look(w, "a", &wait));
    assert_true(wait.seen && !wait.ended && wait.next_us > 0);
    redis_do("SET", PREFIX "finished:a",
             "done 1795000000000000 w 1 default/t/ [1]\n{\"id\":\"a\",\"type\":\"t\"}");
    wait.search_us = INT64_MAX;
    must(job_wait_look(w, "a", &wait));
    assert_true(wait.ended);
    assert_string_equal(answer_text(wait.job, "result"), "[1]");
    job_wait_free(&wait);
    must(job_wait_look(w, "b", &wait));
    redis_do("DEL", QUEUE);
    must(job_wait_look(w, "b", &wait));
    assert_true(wait.seen && !wait.ended);
    wait.search_us = 0;
    assert_int_equal(job_wait_look(w, "b", &wait), WEIR_ENOTFOUND);
    assert_true(wait.seen);
    job_wait_free(&wait);
    assert_int_equal(job_wait_look(w, "b", &wait), WEIR_ENOTFOUND);
    assert_false(wait.seen);
    job_wait_free(&wait);
}

SCENE_TEST(test_wrong_actions_change_nothing)
{
    const struct job_bounds most = {.looked_at = 10, .jobs = 10};
    struct job_search none = {.count = 0}, some = scene_search("type:t");
    char *before;

    scene_states();
    json_decref(last);
    last = NULL;
    expect_refused(WORDS("job_act",
                         "job_act | shoot 10 1 seed 0 | run 0 1 seed 0 | run 1001 1 seed 0 | run 10 0 seed 0",
                         "job_act run 10 1 | a/b 0 | seed 1 | seed 1 colour red | seed 1 enqueued> 1h | seed "
                         "0 nowhere _ | seed 0 later",
                         "job_list",
                         "job_list | show 10 1 0 | list 10 101 0 | list 10 1 x | list 10 1 1 type | list 10 "
                         "1 1 died< x | list 10 1 1 due> nan | list 10 1 0 nowhere _"));
    before = turns_digest();
    assert_int_equal(job_actions(w, turns.now_us, &none, "cancel", NULL, &most, &last), WEIR_EINPUT);
    assert_non_null(strstr(w->error.text, "the search has no term, and would mean all jobs"));
    assert_int_equal(job_actions(w, turns.now_us, &some, "shoot", NULL, &most, &last), WEIR_EINPUT);
    assert_non_null(strstr(w->error.text, "no such action; there are cancel, run, retry and remove"));
    nothing_changed_since(before);
    redis_do("SET", PREFIX "cancelled", "x");
    before = turns_digest();
    assert_true(job_actions(w, turns.now_us, &some, "cancel", NULL, &most, &last) < 0);
    assert_non_null(strstr(w->error.text, "cancelled is a string, not a hash"));
    nothing_changed_since(before);
    assert_null(last);
}

PLAY("jobs")

TESTS(scene_start_client, stop_all)

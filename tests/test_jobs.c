/* The search for jobs, pages of what it finds, and what is done to all of that: in each state, page by page, under virtual time.
 */
#include "tests/scene_client.h"

#include "core/client/client.h"
#include "core/clock.h"
#include "queue/inspect/find_job.h"
#include "queue/inspect/job_act.h"
#include "queue/inspect/job_wait.h"
#include "queue/job/stamp.h"
#include "tests/stage.h"

#define ACTIVE_W ACTIVE "w"
#define IDS_SIZE 20000

static json_t *last; /* the last one */

static int stop_all(void **state)
{
    json_decref(last);
    return scene_stop_client(state);
}

static struct job_search search_of(const char *text)
{
    struct job_search s = {.count = 0};
    struct error e;

    fail_if(job_search_read(&s, text, &e) != 0, "%s: %s", text, e.text);
    return s;
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
        struct job_search s = search_of(cases[i][0]);

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
        struct job_search s = search_of(cases[i].search);
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

static void add_ids(char out[IDS_SIZE], const json_t *jobs)
{
    for (size_t i = 0; i < json_array_size(jobs); i++)
        snprintf(out + strlen(out), IDS_SIZE - strlen(out), "%s%s", *out ? " " : "",
                 answer_text(json_array_get(jobs, i), "id"));
}

/* All that it finds, so many jobs and looks a page, from page to page. */
static const char *found_by(const char *text, int64_t jobs, int64_t looked_at)
{
    static char ids[IDS_SIZE];
    const struct job_bounds most = {.looked_at = looked_at, .jobs = jobs};
    struct job_search s = search_of(text);
    char *cursor = NULL;

    *ids = '\0';
    do {
        const char *next;

        json_decref(last);
        fail_if(job_list_page(w, turns.now_us, &s, cursor, &most, &last) != 0, "%s: %s", text, w->error.text);
        add_ids(ids, json_object_get(last, "jobs"));
        assert_true((int64_t)json_array_size(json_object_get(last, "jobs")) <= jobs);
        free(cursor);
        next = answer_text(last, "next");
        cursor = *next ? strdup(next) : NULL;
    } while (cursor);
    assert_int_equal(answer_int(last, "looked_at"), answer_int(last, "of"));
    return ids;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The words of a text, in order. */
static const char *sorted(const char *text)
{
    static char made[2][IDS_SIZE];
    static int next;
    char *rest = textf("%s", text), *words[2000], *out = made[next ^= 1];
    int count = 0;

    for (char *word; (word = strsep(&rest, " "));)
        words[count++] = word;
    qsort(words, (size_t)count, sizeof *words, by_text);
    *out = '\0';
    for (int i = 0; i < count; i++)
        snprintf(out + strlen(out), IDS_SIZE - strlen(out), "%s%s", i ? " " : "", words[i]);
    return out;
}

/* Whatever the size of a page, nothing is passed over, nothing comes twice, and nothing is changed. */
static void expect_found(const char *text, const char *ids)
{
    char *before = turns_digest();

    for (int jobs = 1; jobs < 400; jobs = jobs * 3 + 1)
        assert_string_equal(sorted(found_by(text, jobs, 100000)), sorted(ids));
    assert_string_equal(sorted(found_by(text, 1000, 1)), sorted(ids));
    nothing_changed_since(before);
}

/* A job in each state, named by it. */
static void fill_states(void)
{
    start("w");
    use_secret();
    must(turns_rate("slow", "1/1000000000/1"));
    enqueue("default", "slow", "first parked");
    claim("w", 2, 0);
    settle("w", SETTLE_FINISH, tokens[0], 60000, NULL);
    enqueue("default", "other", "held");
    claim("w", 1, 0);
    enqueue("default", "t", "retry dead running");
    claim("w", 3, 0);
    settle("w", SETTLE_RETRY, tokens[0], 3600 * SECOND_US, "no answer, at all");
    settle("w", SETTLE_DEAD, tokens[1], 0, "exit 1: timeout of 3 s");
    redis_do("HSET", PREFIX "halted", "b/night", "paused 1795000000000000");
    push("default", "@0,0,0,s" SECRET ",bnight;{\"id\":\"aside\",\"type\":\"t\"}");
    redis_do("HINCRBY", PREFIX "stats:t", "enqueued", "1");
    claim("w", 1, 0);
    must(turns_enqueue("far", "t", "scheduled", 3600 * SECOND_US));
    push("default",
         "@2,1,3,s" SECRET ",bweek;{\"id\":\"waiting\",\"type\":\"t\",\"key\":\"42\",\"args\":{\"n\":7,\"s\":"
         "\"x y\",\"b\":true,\"big\":1234567890123456,\"u\":null,\"in\":{\"n\":-1.5}}}");
    redis_do("HINCRBY", PREFIX "stats:t", "enqueued", "1");
}

static const json_t *only_job(const char *text)
{
    found_by(text, 10, 100000);
    assert_int_equal(json_array_size(json_object_get(last, "jobs")), 1);
    return json_array_get(json_object_get(last, "jobs"), 0);
}

SCENE_TEST(test_a_job_in_each_state)
{
    static const char *const states[] = {"waiting", "parked",    "held",  "aside",
                                         "running", "scheduled", "retry", "dead"};
    char text[100];

    fill_states();
    expect_found("", "waiting parked held aside running scheduled retry dead");
    for (size_t i = 0; i < COUNT(states); i++) {
        snprintf(text, sizeof text, "state:%s", states[i]);
        expect_found(text, states[i]);
        snprintf(text, sizeof text, "%s", states[i]);
        expect_found(text, states[i]);
        assert_string_equal(answer_text(only_job(text), "state"), states[i]);
    }
    expect_found("state:dead,held", "held dead");
    expect_found("first", "first");
    assert_string_equal(answer_text(only_job("first"), "state"), "finished");
    expect_found("first state:dead", "");
    assert_string_equal(answer_text(only_job("state:dead"), "reason"), "exit 1: timeout of 3 s");
    assert_string_equal(answer_text(only_job("state:retry"), "reason"), "no answer, at all");
    assert_string_equal(answer_text(json_object_get(only_job("state:running"), "worker"), "name"), "w");
    assert_int_equal(answer_int(only_job("state:scheduled"), "start"), turns.now_us + 3600 * SECOND_US);
    assert_int_equal(answer_int(only_job("waiting"), "attempts"), 2);
    turns_check();
}

SCENE_TEST(test_terms_choose_jobs)
{
    static const char *const cases[][2] = {
        {"type:t", "waiting aside running scheduled retry dead"},
        {"type:slow", "parked"},
        {"type:nothing | key:4 | args.n:0x7 | args.n:07 | args.n:7,8 | args.b:false | args.in:x", ""},
        {"args.none:null | worker:w type:slow | worker:other | worker:w state:dead", ""},
        {"queue:far", "scheduled"},
        {"queue:default type:other", "held"},
        {"batch:week | key:42 | args.n:7 | args.n:7.0 | args.n:70e-1", "waiting"},
        {"args.big:1234567890123456 | args.s:\"x y\" args.b:true | args.u:null", "waiting"},
        {"args.in.n:-1.5 | args.in.n:-1.50 | args.in:\"{ \\\"n\\\": -15e-1 }\"", "waiting"},
        {"batch:night", "aside"},
        {"reason:timeout", "dead"},
        {"reason:\"answer, at\" | type:t state:retry reason:no", "retry"},
        {"worker:w", "running"},
    };

    fill_states();
    for (size_t i = 0; i < COUNT(cases); i++)
        for (char *rest = textf("%s", cases[i][0]), *search; (search = cut_text(&rest));)
            expect_found(search, cases[i][1]);
}

/* By the key of its lane, made from any text, where that runs or sleeps; of jobs in the queue by the path of its limit. */
WORKER_TEST(test_jobs_by_their_age)
{
    struct job_bounds most = {.looked_at = 100, .jobs = 10};
    char head[STAMP_HEAD_LEN + 1];
    static const char *const ids[] = {"old", "new"};
    struct job_search s = search_of("old");

    for (int i = 0; i < 2; i++) {
        stamp_head(turns.now_us - (i ? 60 : 7200) * SECOND_US, head);
        push("default", textf("%s{\"id\":\"%s\",\"type\":\"t\"}", head, ids[i]));
    }
    push("default", "{\"id\":\"unknown\",\"type\":\"t\"}");
    expect_found("enqueued:>1h", "old");
    expect_found("enqueued:>2h", "old");
    expect_found("enqueued:<1h", "new");
    expect_found("enqueued:>30s enqueued:<5m", "new");
    expect_found("enqueued:>3h", "");
    expect_found("enqueued:>0s", "old new");
    json_decref(last);
    must(job_list_page(w, turns.now_us, &s, NULL, &most, &last));
    assert_int_equal(answer_int(json_array_get(json_object_get(last, "jobs"), 0), "enqueued_at"),
                     turns.now_us - 7200 * SECOND_US);
}

/* By the rule by which they have gates: each value has one text. */
SCENE_TEST(test_values_that_are_written_in_several_ways)
{
    static const char *const cases[][2] = {
        {"args.k:100 | args.k:1e2 | key:1e2 | key:100.0", "e digits point"},
        {"args.k:1.5 | args.k:1.50 | key:1.50", "half"},
        {"args.k:0 | args.k:-0.0 | key:0", "minus"},
        {"args.k:1e20 | args.k:100000000000000000000", "large"},
    };

    for (int parked = 0; parked < 2; parked++) {
        worker_begin(NULL);
        must(turns_rate("slow", parked ? CLOSED_RULE ",by=args.k" : "gcra:1000/1000000/1000,by=args.k"));
        enqueue_with("slow", "e", "\"args\":{\"k\":1e2}");
        enqueue_with("slow", "digits", "\"args\":{\"k\":100}");
        enqueue_with("slow", "point", "\"args\":{\"k\":1000.0e-1}");
        enqueue_with("slow", "half", "\"args\":{\"k\":15e-1}");
        enqueue_with("slow", "minus", "\"args\":{\"k\":-0}");
        enqueue_with("slow", "large", "\"args\":{\"k\":1E+20}");
        if (parked)
            assert_int_equal(claim("w", 9, 0), 4);
        for (size_t i = 0; i < COUNT(cases); i++)
            for (char *rest = textf("%s", cases[i][0]), *search; (search = cut_text(&rest));)
                expect_found(search, cases[i][1]);
    }
}

WORKER_TEST(test_jobs_of_a_key)
{
    must(turns_rate("slow", "gcra:1/1000000000/1,by=args.to"));
    enqueue_with("slow", "a1 a2 a3", "\"args\":{\"to\":\"a b\"}");
    enqueue_with("slow", "b1 b2", "\"args\":{\"to\":5}");
    enqueue_with("slow", "n1", "\"key\":\"5\"");
    claim("w", 10, 0);
    enqueue_with("slow", "a4", "\"args\":{\"to\":\"a b\"}");
    enqueue_with("slow", "b3", "\"key\":\"x\",\"args\":{\"to\":5}");
    expect_found("key:\"a b\"", "a1 a2 a3 a4");
    expect_found("key:5 state:parked,waiting", "b2 b3");
    expect_found("key:5 type:slow", "b1 b2 b3");
    expect_found("key:- type:slow", "n1");
    expect_found("key:5 type:t", "");
    must(turns_rate("plain", "gcra:1/1000000000/1"));
    enqueue_with("plain", "p1 p2 p3", "\"key\":\"named\"");
    claim("w", 10, 0);
    expect_found("key:named", "p1 p2 p3"); /* of no limit's, in a lane without a key */
    assert_string_equal(answer_text(only_job("a4"), "key"), "a b");
    assert_string_equal(answer_text(only_job("a3"), "key"), "a b");
}

/* Lists, lanes in rings and asleep, sorted sets with equal scores, leases: more of each than one page takes. */
static void fill_many(char ids[IDS_SIZE])
{
    *ids = '\0';
    fill_queues(30);
    for (int i = 0; i < 30; i++)
        snprintf(ids + strlen(ids), IDS_SIZE - strlen(ids), "%sw%d r%d s%d h%d", i ? " " : "", i, i, i, i);
    for (int i = 0; i < 300; i++) {
        char token[60];
        static const char *const kinds[] = {"l", "q", "d", "a", "p"};
        const char *kind = kinds[i % 5];
        const char *body = textf("{\"id\":\"%s%d\",\"type\":\"t\"}", kind, i);

        snprintf(ids + strlen(ids), IDS_SIZE - strlen(ids), " %s%d", kind, i);
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
    char ids[IDS_SIZE];

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
    struct job_search s = search_of("type:nothing");

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
    struct job_search s = search_of("state:parked");

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
        found_by(cases[i].text, 1000, 100000);
        assert_int_equal(answer_int(last, "looked_at"), cases[i].looked_at);
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
    struct job_search s = search_of("");

    fill_states();
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
        s = search_of("id:a");
        assert_int_equal(job_actions(w, turns.now_us, &s, "run", scene_cursor(impossible[i]), &most, &page),
                         WEIR_EINPUT);
        assert_non_null(strstr(w->error.text, "not one; take it as the page before gave it"));
    }
}

/* Dead since 0 to 3 hours, and due in 1 to 3. */
WORKER_TEST(test_jobs_by_when_they_died_or_are_due)
{
    static const char *const cases[][2] = {
        {"died:<30m", "d0"},
        {"died:>0s", "d0 d1 d2 d3"},
        {"died:<=2h", "d0 d1 d2"},
        {"died:>1h died:<2h", "d1 d2"},
        {"died:>4h", ""},
        {"died:>2h type:t reason:no", "d2 d3"},
        {"died:<1h state:parked", ""},
        {"died:<1h due:<1h", ""},
        {"due:<90m", "s1"},
        {"due:>1h due:<2h", "s1 s2"},
        {"due:>1h state:retry", ""},
        {"due:<0s", ""},
    };

    for (int i = 3; i >= 0; i--) {
        enqueue("default", "t", textf("d%d", i));
        claim("w", 1, 0);
        settle("w", SETTLE_DEAD, tokens[0], 0, "no");
        turns.now_us += i ? 3600 * SECOND_US : 0;
    }
    for (int i = 3; i > 0; i--)
        must(turns_enqueue("default", "t", textf("s%d", i), i * 3600 * SECOND_US));
    for (size_t i = 0; i < COUNT(cases); i++)
        expect_found(cases[i][0], cases[i][1]);
}

/* ---- run */

static void run(const char *id, const char *was, const char *result)
{
    json_decref(last);
    fail_if(job_run(w, turns.now_us, id, &last) != 0, "run %s: %s", id, w->error.text);
    assert_string_equal(answer_text(last, "was"), was);
    assert_string_equal(answer_text(last, "result"), result);
    turns_check();
}

static void refuse_to_run(const char *id, int status, const char *why)
{
    char *before = turns_digest();
    json_t *job;

    assert_int_equal(job_run(w, turns.now_us, id, &job), status);
    assert_null(job);
    fail_if(!strstr(w->error.text, why), "not '%s' but: %s", why, w->error.text);
    nothing_changed_since(before);
}

WORKER_TEST(test_a_scheduled_job_runs_now)
{
    enqueue("default", "t", "a");
    must(turns_enqueue("default", "t", "b", 3600 * SECOND_US));
    turns.now_us += 60 * SECOND_US;
    expect_found("state:scheduled enqueued:>50s", "b");
    run("b", "scheduled", "moved");
    expect_list(QUEUE, "b a");
    expect_counters("t", "scheduled 0, enqueued 2");
    run("b", "waiting", "first");
    promote(0);
    expect_leased("w", 2, "b a");
    assert_int_equal(turns.claim.leases[0].enqueued_us, BEGIN_US);
    assert_int_equal(turns.claim.leases[0].since_us, turns.now_us); /* not when it was due */
    refuse_to_run("b", WEIR_EINPUT, "job b: runs already");
}

/* With a batch and a lock, whose head is signed. */
WORKER_TEST(test_a_scheduled_job_keeps_its_head)
{
    must(turns_script("enqueue", WORDS("default", "t", "a", "1000", "tag", "3600000000", "", "", "night",
                                       "lock", "end", "{\"id\":\"a\",\"type\":\"t\"}")));
    run("a", "scheduled", "moved");
    claim("w", 1, 0);
    settle("w", SETTLE_FINISH, tokens[0], 0, NULL);
    expect_text("1", "HGET", PREFIX "batch:night", "done");
    assert_int_equal(redis_number("EXISTS", PREFIX "unique:lock"), 0);
}

/* Thousands are due at the same time, before it. */
WORKER_TEST(test_one_of_many_that_are_due_at_once_runs_now)
{
    redis_do("EVAL",
             "for i = 1, 6000 do redis.call('ZADD', KEYS[1], '1795003600000000', 'q ' .. i .. ' default "
             "t\\n{\"id\":\"a' .. i .. '\",\"type\":\"t\"}') end return ''",
             "1", PREFIX "later");
    redis_do("HINCRBY", PREFIX "stats:t", "scheduled", "6000");
    run("a999", "scheduled", "moved");
    assert_int_equal(redis_number("ZCARD", PREFIX "later"), 5999);
    expect_list(QUEUE, "a999");
}

WORKER_TEST(test_a_job_that_retries_runs_now)
{
    redis_do("HSET", ACTIVE_W, "@", "{\"queues\":[\"default\"],\"types\":[\"t\"]}");
    must(turns_rate("t", "3/1000000000/3"));
    enqueue("default", "t", "a b c d");
    claim("w", 1, 0);
    settle("w", SETTLE_RETRY, tokens[0], 3600 * SECOND_US, "no");
    claim("w", 1, 0);
    claim("w", 2, 0);
    claim("w", 1, 0);
    expect_list(LANE("t"), "d");
    run("a", "retry", "moved");
    expect_list(LANE("t"), "a d");
    assert_string_equal(answer_text(json_object_get(last, "waits_for"), "gate"), "t#0");
    expect_counters("t", "scheduled 0, returned 1");
    expect_leased("w", 1, "");
    turns.now_us += 400 * SECOND_US;
    expect_leased("w", 1, "a");
}

WORKER_TEST(test_a_parked_job_becomes_the_first_of_its_lane)
{
    must(turns_rate("slow", "1/1000000/1"));
    enqueue("default", "slow", "a b c d");
    claim("w", 1, 0);
    claim("w", 3, 0);
    expect_list(LANE("slow"), "b c d");
    run("d", "parked", "moved");
    expect_list(LANE("slow"), "d b c");
    run("d", "parked", "first");
    run("b", "parked", "moved");
    expect_leased("w", 1, "");
    turns.now_us += SECOND_US;
    expect_leased("w", 1, "b");
    expect_list(LANE("slow"), "d c");
    turns_check();
}

/* A cheaper job comes to the head of a lane that sleeps: its gate opens sooner. */
WORKER_TEST(test_the_gate_opens_for_the_job_that_is_first_now)
{
    must(turns_rate("slow", "10/10000000/10"));
    enqueue_with("slow", "big", "\"cost\":10");
    enqueue_with("slow", "next", "\"cost\":10");
    enqueue_with("slow", "small", "\"cost\":1");
    claim("w", 1, 0);
    claim("w", 2, 0);
    run("small", "parked", "moved");
    turns.now_us += SECOND_US;
    expect_leased("w", 2, "small");
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
    struct job_search two = search_of("type:u");

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

WORKER_TEST(test_a_waiting_job_becomes_the_first_of_its_queue)
{
    enqueue("default", "t", "a b c d e");
    run("d", "waiting", "moved");
    run("b", "waiting", "moved");
    expect_list(QUEUE, "b d a c e");
    expect_counters("t", "enqueued 5, pulled 0, parked 0");
    expect_leased("w", 5, "b d a c e");
}

SCENE_TEST(test_what_cannot_run_says_why)
{
    fill_states();
    refuse_to_run("dead", WEIR_EINPUT, "job dead: is dead and will not run; weir dead retry puts it back");
    refuse_to_run("running", WEIR_EINPUT, "job running: runs already; there is nothing to do");
    refuse_to_run("first", WEIR_EINPUT, "job first: has finished already");
    refuse_to_run("aside", WEIR_EINPUT, "job aside: is set aside, as its batch is paused");
    refuse_to_run("nope", WEIR_ENOTFOUND, "job nope: no such job here");
    refuse_to_run("a/b", WEIR_EINPUT, "job 'a/b': not a valid id");
    redis_do("SET", LANE("t"), "x");
    refuse_to_run("retry", WEIR_ECONFIG, "lane:default/t/ is a string, not a list");
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

static void act_at_most(const char *action, const char *text, int64_t jobs, int64_t looked_at)
{
    const struct job_bounds most = {.looked_at = looked_at, .jobs = jobs};
    struct job_search s = search_of(text);
    char *cursor = NULL;
    int64_t done = 0, left = 0;

    do {
        const char *next;

        json_decref(last);
        if (job_actions(w, turns.now_us, &s, action, cursor, &most, &last) != 0)
            fail_msg("%s %s: %s", action, text, w->error.text);
        done += answer_int(last, "jobs");
        left += answer_int(last, "left");
        free(cursor);
        next = answer_text(last, "next");
        cursor = *next ? strdup(next) : NULL;
        turns_check();
    } while (cursor && looked_at < INT64_MAX);
    free(cursor);
    json_object_set_new(last, "all", json_integer(done));
    json_object_set_new(last, "all_left", json_integer(left));
}

static void act(const char *action, const char *text, int64_t done, int64_t left)
{
    act_at_most(action, text, JOB_BOUND_MOST, 100000);
    assert_int_equal(answer_int(last, "all"), done);
    assert_int_equal(answer_int(last, "all_left"), left);
}

/* A claim would end each of them, unseen. */
static void fill_cancelled(void)
{
    static const char *const records[] = {"q 1 default t\n@0,0,0,bb;{\"id\":\"s\",\"type\":\"t\"}",
                                          "l 1 default/t/\n@1,0,0,bb;{\"id\":\"r\",\"type\":\"t\"}"};

    start("w");
    enqueue("default", "t", "first mine");
    redis_do("HSET", PREFIX "cancelled", "mine", "waiting 1 default/t ");
    redis_do("HSET", PREFIX "batch:b", "total", "3", "cancel", "1");
    redis_do("HSET", PREFIX "halted", "b/b", "cancelled 1");
    for (size_t i = 0; i < COUNT(records); i++)
        redis_do("ZADD", PREFIX "later", "1900000000000000", records[i]);
    redis_do("HINCRBY", PREFIX "stats:t", "scheduled", "2");
    redis_do("HINCRBY", PREFIX "stats:t", "retried", "1");
    redis_do("HINCRBY", PREFIX "stats:t", "pulled", "1");
    redis_do("HINCRBY", PREFIX "stats:t", "enqueued", "1");
}

static void count_able(const char *action, const char *text, int64_t jobs, const char *batch)
{
    const struct job_bounds all = {.looked_at = JOB_BOUND_MOST, .jobs = JOB_BOUND_MOST};
    struct job_search s = search_of(text);
    json_t *page;

    must(job_actions_count_page(w, turns.now_us, &s, action, NULL, &all, &page));
    assert_int_equal(answer_int(page, "jobs"), jobs);
    assert_string_equal(answer_text(page, "batch"), batch);
    json_decref(page);
}

SCENE_TEST(test_what_was_cancelled_is_not_run)
{
    char *before;

    fill_cancelled();
    before = turns_digest();
    refuse_to_run("s", WEIR_EINPUT, "job s: batch b was cancelled: its jobs do not run any more");
    refuse_to_run("r", WEIR_EINPUT, "job r: batch b was cancelled");
    refuse_to_run("mine", WEIR_EINPUT, "job mine: was cancelled, and will not run");
    count_able("run", "batch:b", 0, "b");
    count_able("run", "type:t", 1, "b");
    count_able("cancel", "batch:b", 2, "");
    act("run", "batch:b", 0, 2);
    assert_string_equal(answer_text(last, "batch"), "b");
    act("run", "type:t", 0, 4);
    nothing_changed_since(before);
    redis_do("HDEL", PREFIX "halted", "b/b"); /* it has ended */
    act("run", "batch:b", 2, 0);
    assert_null(json_object_get(last, "batch"));
}

WORKER_TEST(test_dead_jobs_of_a_cancelled_batch_stay)
{
    use_secret();
    push("default", "@0,0,0,s" SECRET ",bb;{\"id\":\"d\",\"type\":\"t\"}");
    redis_do("HINCRBY", PREFIX "stats:t", "enqueued", "1");
    enqueue("default", "t", "other");
    assert_int_equal(claim("w", 2, 0), 2);
    settle("w", SETTLE_DEAD, tokens[0], 0, "no luck");
    settle("w", SETTLE_DEAD, tokens[1], 0, "no luck");
    redis_do("HSET", PREFIX "batch:b", "total", "2", "dead", "1", "cancel", "1");
    redis_do("HSET", PREFIX "halted", "b/b", "cancelled 1");
    count_able("retry", "state:dead", 1, "b");
    count_able("remove", "state:dead", 2, "");
    act("retry", "id:d", 0, 1);
    assert_string_equal(answer_text(last, "batch"), "b");
    must(ask_line("dead retry 100 _ _ b _ _ _ _ seed 0"));
    assert_int_equal(answer_int(turns.answer, "jobs"), 0);
    assert_int_equal(answer_int(turns.answer, "cancelled"), 1);
    assert_string_equal(answer_text(turns.answer, "batch"), "b");
    act("retry", "type:t", 1, 1);
    expect_text("1", "ZCARD", PREFIX "dead");
    act("remove", "id:d", 1, 0);
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

SCENE_TEST(test_all_that_match_are_cancelled)
{
    fill_states();
    act("cancel", "state:waiting,parked,held,aside,running,scheduled,retry,dead", 7, 1);
    act("cancel", "queue:default", 0, 1);
    assert_int_equal(redis_number("EXISTS", PREFIX "later", PREFIX "cancelled", QUEUE), 0);
    expect_text(token_texts[2], "LRANGE", PREFIX "told:w", "0", "-1");
    redis_do("HDEL", PREFIX "halted", "b/night");
    claim("w", 10, 0);
    expect_leased("w", 10, "");
    assert_int_equal(redis_number("EXISTS", QUEUE, LANE("slow")), 0);
    turns_check();
}

/* Somebody wrote it: nobody can say whose counters it is in. */
SCENE_TEST(test_a_record_that_cannot_be_read_is_left)
{
    static const char record[] = "l 5 nowhere\n{\"id\":\"odd\",\"type\":\"t\"}";

    const struct job_bounds most = {.looked_at = 1000, .jobs = 1000};
    struct job_search s = search_of("state:scheduled,retry");

    start("w");
    must(turns_enqueue("default", "t", "good", SECOND_US));
    redis_do("ZADD", PREFIX "later", "5", record);
    json_decref(last);
    must(job_actions(w, turns.now_us, &s, "cancel", NULL, &most, &last));
    assert_int_equal(answer_int(last, "jobs"), 1);
    assert_int_equal(answer_int(last, "left"), 1);
    expect_text(record, "ZRANGE", PREFIX "later", "0", "-1");
}

/* Parked jobs are gone, though their gate is closed, and their lane with the last of them. */
/* Who has done a job has done it, whatever was asked meanwhile. */
WORKER_TEST(test_a_job_that_is_done_was_not_cancelled)
{
    enqueue("default", "t", "a b");
    claim("w", 2, 0);
    act("cancel", "state:running", 2, 0);
    settle("w", SETTLE_FINISH, tokens[0], 60000, NULL);
    settle("w", SETTLE_RETRY, tokens[1], SECOND_US, "no");
    expect_counters("t", "done 1, cancelled 1, retried 0");
    assert_string_equal(answer_text(only_job("a"), "outcome"), "done");
}

/* What was cancelled and died with its worker does not run again. */
WORKER_TEST(test_a_cancelled_job_of_a_dead_worker_ends)
{
    start("v");
    enqueue("default", "t", "a b");
    claim("w", 2, 0);
    act("cancel", "a", 1, 0);
    pass("v", LEASE_US - 1);
    pass("v", 1);
    expect_found("", "b");
    expect_counters("t", "cancelled 1, reaped 2");
}

WORKER_TEST(test_cancelled_lanes_are_gone)
{
    must(turns_rate("slow", "1/1000000000/1"));
    enqueue_with("slow", "a b", "\"args\":{\"n\":1}");
    enqueue_with("slow", "c d", "\"args\":{\"n\":2}");
    claim("w", 1, 0);
    claim("w", 5, 0);
    act("cancel", "args.n:2 type:slow", 2, 0);
    act("cancel", "b", 1, 0);
    assert_int_equal(redis_number("EXISTS", LANE("slow"), PREFIX "cancelled"), 0);
    expect_leased("w", 5, "");
    expect_counters("slow", "cancelled 3");
}

WORKER_TEST(test_no_more_than_was_said)
{
    enqueue_many("t", 30);
    act_at_most("cancel", "type:t", 7, INT64_MAX);
    assert_int_equal(answer_int(last, "all"), 7);
    assert_int_equal(redis_number("LLEN", QUEUE), 23);
    expect_counters("t", "cancelled 7, dropped 7");
}

WORKER_TEST(test_those_that_run_keep_their_order)
{
    enqueue("default", "slow", "a");
    enqueue("default", "t", "b");
    enqueue("default", "slow", "c");
    act("run", "type:slow", 2, 0);
    expect_list(QUEUE, "a c b");
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
    char ids[IDS_SIZE];

    for (int small = 0; small < 2; small++) {
        worker_begin(NULL);
        for (int i = 0; i < 40; i++)
            must(turns_enqueue("default", "t", textf("l%d", i), 3600 * SECOND_US + i / 10));
        *ids = '\0';
        act_at_most("cancel", "l3 state:scheduled", 1, small ? 1 : 1000);
        act_at_most("cancel", "type:t state:scheduled", 1000, small ? 1 : 1000);
        assert_int_equal(answer_int(last, "all"), 39);
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

/* Who goes through all jobs leaves Redis to others for as long as that takes; and an action looks at as many at once as a list does. */
TRIAL_WITH(test_walks_rest_and_have_long_pages, scene_begin, NULL)
{
    static const char fill[] =
        "for i = 0, 29999 do redis.call('RPUSH', KEYS[1], '{\"id\":\"j' .. i .. '\",\"type\":\"t\"}') end";
    const struct job_bounds most = {.looked_at = JOB_BOUND_MOST, .jobs = JOB_BOUND_MOST};
    struct job_search s = search_of("none");
    int64_t began_us, of_list;

    worker_begin(state);
    redis_do("EVAL", fill, "1", QUEUE);
    redis_do("CONFIG", "RESETSTAT");
    began_us = clock_mono_us();
    json_decref(last);
    must(job_list_count(w, turns.now_us, &s, NULL, &most, &last));
    assert_true(clock_mono_us() - began_us > calls_said(",usec=") * 9 / 5);
    of_list = calls_said(":calls=");
    redis_do("CONFIG", "RESETSTAT");
    json_decref(last);
    must(job_actions(w, turns.now_us, &s, "cancel", NULL, &most, &last));
    assert_int_equal(answer_int(last, "looked_at"), 30000);
    if (calls_said(":calls=") >= 2 * of_list)
        stage_late("%lld calls of job_act, %lld of job_list", (long long)calls_said(":calls="),
                   (long long)of_list);
}

/* Done jobs that are kept are listed where they are asked for, the newest of a type first, and nothing else is done to them. */
SCENE_TEST(test_jobs_that_have_finished)
{
    const struct job_bounds most = {.looked_at = 10, .jobs = 10};
    struct job_search all = search_of("type:t");
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
    assert_string_equal(found_by("state:finished type:t", 10, 100), "k3 k2 k1 k0");
    expect_found("state:finished", "k3 k2 k1 k0 k4");
    expect_found("state:finished type:t args.n:2 batch:week", "k2");
    expect_found("state:finished id:k3", "k3");
    expect_found("state:finished queue:other", "");
    must(job_list_page(w, turns.now_us, &all, NULL, &most, &page));
    assert_int_equal(json_array_size(json_object_get(page, "jobs")), 0);
    json_decref(page);
    all = search_of("state:dead,finished type:t");
    assert_int_equal(job_actions(w, turns.now_us, &all, "cancel", NULL, &most, &page), WEIR_EINPUT);
    assert_null(page);
    assert_non_null(strstr(w->error.text, "they are done, and nothing is done to them"));
}

/* The list of kept jobs does not outgrow what is kept: as one comes, two whose time is over leave. */
WORKER_TEST(test_kept_jobs_leave_their_list)
{
    for (int i = 0; i < 4; i++) {
        enqueue("default", "t", textf("j%d", i));
        claim("w", 1, 0);
        if (i == 3)
            turns.now_us += 61 * SECOND_US;
        settle("w", SETTLE_FINISH, tokens[0], 60000, i == 2 ? NULL : "{\"n\":1}");
    }
    expect_found("state:finished type:t", "j2 j3");
    assert_int_equal(redis_number("ZCARD", PREFIX "kept:t"), 2);
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
    struct job_search none = {.count = 0}, some = search_of("type:t");
    char *before;

    fill_states();
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

TESTS(scene_start_client, stop_all)

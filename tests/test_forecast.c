/* Scenes of waiting. In each, all who say what holds the jobs of a type and when they start say the same: status, report, rate show, why, top,
 * the pages; and then it happens so, in the time of the test: slots are judged, no clock. */
#include "tests/scene.h"

#include "cli/document/outlook.h"
#include "cli/top/snapshot.h"
#include "core/clock.h"
#include "queue/batch/batch.h"
#include "queue/inspect/why.h"
#include "queue/queues/queues.h"
#include "serve/page/page.h"
#include "tests/random.h"
#include "view/document.h"
#include "view/format.h"
#include "view/job.h"
#include "view/limits.h"
#include "view/rate_keys.h"
#include "view/report.h"
#include "view/status.h"
#include "view/waits.h"

static struct weir *w;

static int begin(void **state)
{
    w = weir_new(turns.server.url, NULL);
    if (!w || scene_begin(state) < 0)
        return -1;
    turns.now_us = clock_wall_us();
    return 0;
}

static int end(void **state)
{
    weir_free(w);
    return 0;
}

/* ---- Scenes */

static void begin_another(const char *id, const char *queue, int executors)
{
    char said[300], until[32], active[60];

    start(id);
    snprintf(active, sizeof active, ACTIVE "%s", id);
    snprintf(said, sizeof said,
             "{\"instance\":\"i%s\",\"host\":\"%s\",\"pid\":1,\"executors\":%d,\"lease\":30,\"queues\":["
             "\"%s\"],\"types\":[\"t\",\"slow\"]}",
             id, id, executors, queue);
    snprintf(until, sizeof until, "%lld", (long long)clock_wall_us() + 600 * SECOND_US);
    redis_do("HSET", active, "@", said);
    redis_do("ZADD", PREFIX "workers", until, id);
}

static void begin_worker(int executors)
{
    begin_another("w", "default", executors);
}

static void pause_queue(bool pause)
{
    const struct pausing how = {.for_us = pause ? RATE_ENDLESS : RATE_RESUME, .create = true};
    json_t *before;

    must(queue_pause(w, "default", &how, &before));
    json_decref(before);
}

/* The jobs of the last claim are done. */
static void end_jobs(void)
{
    size_t n = turns.claim.lease_count;
    bool slow[TOKENS_MOST];

    for (size_t i = 0; i < n; i++)
        slow[i] = turns.claim.leases[i].type.len == 4;
    for (size_t i = 0; i < n; i++)
        must(turns_settle_done("w", slow[i] ? "slow" : "t", &tokens[i], 1, &(int64_t){0}));
}

/* All that can start now does, and has ended; the rest is parked. */
static void drain(void)
{
    while (claim("w", 60, 0) > 0)
        end_jobs();
}

static void enqueue_costs(const char *type, int count, int least, int most, const char *cost)
{
    for (int i = 0; i < count; i++) {
        enqueue_with(type, textf("%s%d", type, i),
                     textf(cost, least + (most > least ? i % (most - least + 1) : 0)));
    }
}

static void enqueue_keyed(const char *key, int count)
{
    for (int i = 0; i < count; i++)
        enqueue_with("slow", textf("%s%d", key, i), textf("\"key\":\"%s\"", key));
}

/* Rules of its own are over for a key, and nothing holds in their place. */
static void close_key(const char *key)
{
    const char *words[] = {"slow", key, "", "gcra:5/1000000/1", "1", "closed", "", "0", "set", "tests"};

    must(turns_ask("rate_set_key", words, 10));
    turns.now_us++;
}

static void run_step(const char *step)
{
    char name[80];
    int n, least, most;

    if (sscanf(step, "worker %d", &n) == 1)
        begin_worker(n);
    else if (strncmp(step, "rate ", 5) == 0)
        must(turns_rate("slow", step + 5));
    else if (sscanf(step, "costs %79s %d %d %d", name, &n, &least, &most) == 4)
        enqueue_costs(name, n, least, most, "\"cost\":%d");
    else if (sscanf(step, "tokens %79s %d %d %d", name, &n, &least, &most) == 4)
        enqueue_costs(name, n, least, most, "\"cost\":{\"tokens\":%d}");
    else if (sscanf(step, "cost %79s", name) == 1)
        must(turns_use("slow", "use", name, NULL, 0));
    else if (strcmp(step, "share") == 0)
        use("t", "slow");
    else if (sscanf(step, "many %79s %d", name, &n) == 2)
        enqueue_many(name, n);
    else if (sscanf(step, "keyed %79s %d", name, &n) == 2)
        enqueue_keyed(name, n);
    else if (sscanf(step, "keys %d", &n) == 1)
        for (int i = 0; i < n; i++) {
            snprintf(name, sizeof name, "k%d-", i);
            enqueue_keyed(name, 2);
        }
    else if (sscanf(step, "pause-key %79s %d", name, &n) == 2)
        must(turns_pause_key("slow", name, n < 0 ? -1 : n * SECOND_US));
    else if (sscanf(step, "close-key %79s", name) == 1)
        close_key(name);
    else if (sscanf(step, "pause %d", &n) == 1)
        must(turns_pause("slow", n * SECOND_US));
    else if (sscanf(step, "pause-type %d", &n) == 1)
        must(turns_pausing("type_pause", "slow", n * SECOND_US));
    else if (strcmp(step, "pause-queue") == 0)
        pause_queue(true);
    else if (strcmp(step, "drain") == 0)
        drain();
    else if (sscanf(step, "claim %d %d", &n, &most) == 2)
        assert_int_equal(claim("w", (size_t)n, 0), most);
    else if (strcmp(step, "end") == 0)
        end_jobs();
    else if (sscanf(step, "later %d", &n) == 1)
        turns.now_us += n * SECOND_US;
    else if (strcmp(step, "quiet") == 0)
        redis_do("SET", PREFIX "order:iw", textf("quiet %lld", (long long)turns.now_us));
    else if (strcmp(step, "another") == 0)
        begin_another("x", "far", 60);
    else if (strcmp(step, "nobody") == 0)
        redis_do("DEL", PREFIX "workers");
    else
        fail_msg("no step: %s", step);
}

static void set_scene(const char *steps)
{
    char *rest = textf("%s", steps);

    for (char *step; (step = strsep(&rest, ";"));)
        run_step(step + strspn(step, " "));
}

/* Scenes in steps (run_step). Of the type "slow", but for the "t" that shares its limit. */
static const struct place {
    const char *name, *scene;
    const char *first, *last; /* jobs: that of the type which starts first, and last; NULL: not looked at */
    const char *type;         /* how what it waits for begins, of the type */
    const char *job;          /* and of the first job; NULL: the same */
    bool stuck;               /* the verdict is not "flowing" */
    bool halted;              /* it does not start as long as nobody acts */
    bool shared;              /* its limit holds another type too */
    int64_t later_us;         /* than it was said the last one may be, where it is said to be the earliest */
    /* They may come before the first, too; and what is now differs, as faces are read one after the other. */
    bool others;
} places[] = {
    {"a rate", "worker 60; rate gcra:6/60000000/2; many slow 30; drain", .first = "slow2", .last = "slow29",
     .type = "slow#0, 6 a minute, until"},
    {"costs", "worker 60; rate gcra:6000/60000000/1000; costs slow 50 1000 1000; drain", .first = "slow1",
     .last = "slow49", .type = "slow#0, 6,000 a minute, until"},
    {"costs that differ", "worker 60; rate gcra:60/600000000/20; costs slow 60 3 17; drain", .first = "slow4",
     .last = "slow59", .type = "slow#0, 60 in 10m, until"},
    {"jobs, whatever they cost",
     "worker 60; rate gcra:6/60000000/2,of=jobs gcra:60000/60000000/2000; costs slow 30 700 1000; drain",
     .first = "slow2", .last = "slow29", .type = "slow#0, 6 a minute, until"},
    {"jobs beside costs that differ",
     "worker 60; rate gcra:60/60000000/60,of=jobs gcra:60/600000000/20; costs slow 60 3 17; drain",
     .first = "slow4", .last = "slow59", .type = "slow#1, 60 in 10m, until"},
    {"jobs that cost the same, by costs and by jobs",
     "worker 60; cost 5; rate fixed-window:10/60000000/0 fixed-window:3/60000000/0,of=jobs; many slow 20; "
     "drain",
     .first = "slow2", .last = "slow19", .type = "slow#0, 10 a minute, until"},
    {"slots by name",
     "worker 60; cost tokens:900; rate gcra:60/60000000/60,of=jobs gcra:6000/60000000/2000,of=tokens; many "
     "slow "
     "30; drain",
     .first = "slow2", .last = "slow29", .type = "slow#1, 6,000 a minute, until"},
    {"keys by jobs", "worker 60; cost 50; rate gcra:6/60000000/2,of=jobs,by=key; keyed anna 9; drain",
     .first = "anna2", .last = "anna8", .type = "slow#0, 6 a minute for each key, until",
     .job = "slow#0/anna, 6 a minute, until"},
    {"costs of the type", "worker 60; cost 5; rate fixed-window:10/60000000/0; many slow 20; drain",
     .first = "slow2", .last = "slow19", .type = "slow#0, 10 a minute, until"},
    {"a key that is paused",
     "worker 60; rate gcra:6/60000000/2,by=key; pause-key anna -1; keyed anna 3; drain", .first = "anna0",
     .type = "slow#0/anna, 6 a minute, paused by hand, until it is resumed", .halted = true, .stuck = true},
    {"a key that is closed", "worker 60; rate gcra:6/60000000/2,by=key; close-key anna; keyed anna 3; drain",
     .first = "anna0", .type = "slow#0/anna, closed until rules of its own are set again", .halted = true,
     .stuck = true},
    {"a closed key behind a gate for all",
     "worker 60; rate gcra:6/60000000/2,by=key gcra:1/60000000/1; close-key anna; keyed bob 1; drain; keyed "
     "anna 3; drain",
     .first = "anna0", .type = "slow#0/anna, closed until rules of its own are set again", .halted = true,
     .stuck = true},
    {"a paused key among others",
     "worker 60; rate gcra:6/60000000/2,by=key; pause-key anna -1; keyed anna 3; drain; keyed bob 60; drain",
     .first = "bob2", .type = "slow#0, 6 a minute for each key, until",
     .job = "slow#0/bob, 6 a minute, until"},
    {"a paused key among many",
     "worker 60; rate gcra:60/3600000000/130 gcra:1/3600000000/1,by=key; pause-key zoe -1; keyed zoe 3; keys "
     "120; drain",
     .first = "k0-1", .type = "slow#1, 1 an hour for each key, until", .job = "slow#1/k0-, 1 an hour, until"},
    {"keys that may start",
     "worker 60; rate gcra:60/60000000/60,by=key; pause 600; keyed a 2; drain; pause 0",
     .later_us = 60 * SECOND_US, .others = true},
    {"a key that is paused for a time",
     "worker 60; rate gcra:6/60000000/1,by=key; pause-key anna 100; keyed anna 30; drain", .first = "anna0",
     .last = "anna29", .type = "slow#0, 6 a minute for each key, until",
     .job = "slow#0/anna, 6 a minute, paused by hand, until"},
    {"one large key",
     "worker 60; rate gcra:60/60000000/1 gcra:6/60000000/1,by=key; keyed large 40; keyed a 5; keyed b 5; "
     "drain",
     .last = "large39", .type = "slow#0, 60 a minute, until"},
    {"a key behind a gate for all",
     "worker 60; rate gcra:1/60000000/1 gcra:60/60000000/60,by=key; keyed a 4; drain", .first = "a1",
     .last = "a3", .type = "slow#0, 1 a minute, until"},
    {"keys of concurrency", "worker 60; rate concurrency:1,by=key; keyed a 3; claim 60 1", .first = "a1",
     .type = "slow#0, 1 at once for each key", .job = "slow#0/a, 1 at once, until a job ends",
     .halted = true},
    {"a quiet worker", "worker 60; rate gcra:6/60000000/2; many slow 30; drain; quiet", .first = "slow2",
     .last = "slow29", .type = "a worker that takes slow: the only one is quiet since ",
     .job = "a worker that takes slow from queue default: the only one is quiet since ", .stuck = true},
    {"a worker of another queue", "worker 60; rate gcra:6/60000000/2; many slow 30; drain; another; quiet",
     .first = "slow2", .last = "slow29", .type = "a worker that takes slow: the only one is quiet since ",
     .job = "a worker that takes slow from queue default: the only one is quiet since ", .stuck = true},
    {"no worker", "worker 60; rate gcra:6/60000000/2; many slow 30; drain; nobody", .first = "slow2",
     .last = "slow29", .type = "a worker that takes slow: none does; start one",
     .job = "a worker that takes slow from queue default: none does; start one", .stuck = true},
    {"a queue that is paused", "worker 60; rate gcra:6/60000000/2; many slow 30; pause-queue",
     .first = "slow0", .type = "queue default, paused since", .halted = true, .stuck = true},
    {"lanes of a paused queue", "worker 60; rate gcra:6/60000000/2; many slow 30; drain; pause-queue",
     .first = "slow2", .type = "queue default, paused since", .halted = true, .stuck = true},
    {"a limit that is paused", "worker 60; rate gcra:6/60000000/2; many slow 30; drain; pause 600",
     .first = "slow2", .last = "slow29", .type = "slow, paused by hand, until"},
    {"a limit of keys that is paused",
     "worker 60; rate gcra:1/60000000/1 gcra:60/60000000/60,by=key; keyed a 4; drain; pause 600",
     .first = "a1", .last = "a3", .type = "slow, paused by hand, until"},
    {"a type of keys that is paused",
     "worker 60; rate gcra:6/60000000/1,by=key; keyed anna 30; drain; pause-type 600", .first = "anna1",
     .last = "anna29", .type = "type slow, paused since"},
    {"several gates", "worker 60; rate gcra:6/60000000/5 sliding-window:20/600000000; many slow 50; drain",
     .first = "slow5", .last = "slow49", .type = "slow#0, 6 a minute, until"},
    {"a shared limit", "worker 60; rate gcra:6/60000000/4; cost 4; share; many slow 20; many t 20; drain",
     .type = "slow#0, 6 a minute, until", .others = true, .shared = true},
    {"a turn of a dearer type",
     "later -80; worker 60; rate gcra:60/60000000/300; share; costs t 3 300 300; claim 60 1; end; later 1; "
     "many slow 20; drain; later 79",
     .type = "slow#0, 60 a minute, until", .shared = true},
    {"executors that are busy", "worker 2; rate gcra:1000/1000000/1000; many slow 5; claim 2 2",
     .first = "slow2", .type = "a free executor: all 2 are busy", .later_us = 60 * SECOND_US, .others = true},
};

/* ---- What is said */

struct said {
    char waits[300], job_waits[300];
    int64_t next_us, last_us; /* 0: no time */
    bool earliest;
};

static const struct place *place; /* in which the test is */

static void wrong(const char *who, const char *said, const char *expected)
{
    fail_msg("%s: %s says: %s; not %s", place->name, who, said, expected ? expected : "nothing");
}

static void expect_waits(const char *who, const json_t *waits_for, const char *begins, char out[300])
{
    char *text = NULL;
    size_t len;
    FILE *to = open_memstream(&text, &len);

    if (json_is_object(waits_for))
        waits_put(to, waits_for, turns.now_us);
    fclose(to);
    if (strncmp(text, begins ? begins : "", begins ? strlen(begins) : 1) != 0)
        wrong(who, text, begins);
    if (*out && strcmp(out, text) != 0)
        wrong(who, text, out);
    snprintf(out, 300, "%s", text);
    free(text);
}

/* They are read one after the other: a time that is now differs. */
static void expect_time(const char *who, const json_t *at, int64_t expected_us)
{
    int64_t us = json_is_number(at) ? json_us(at) : 0, now_us = turns.now_us + 60 * SECOND_US;

    if (us == expected_us || (place->others && us < now_us && expected_us < now_us))
        return;
    wrong(who, textf("%lld", (long long)(us - turns.now_us)),
          textf("%lld", (long long)(expected_us - turns.now_us)));
}

static void look_at_status(struct said *said)
{
    json_t *doc, *type;

    assert_int_equal(view_status(w, &doc), 0);
    type = json_object_get(json_object_get(doc, "types"), "slow");
    if (json_is_string(type) || !type) { /* its rows are text */
        json_decref(doc);
        assert_int_equal(view_type(w, "slow", &doc), 0);
        type = doc;
    }
    expect_waits("status", json_object_get(type, "waits_for"), place->type, said->waits);
    said->next_us = json_is_number(json_object_get(type, "next_start"))
                        ? json_us(json_object_get(type, "next_start"))
                        : 0;
    said->last_us =
        json_is_number(json_object_get(type, "finish_at")) ? json_us(json_object_get(type, "finish_at")) : 0;
    said->earliest = json_is_true(json_object_get(type, "at_the_earliest"));
    json_decref(doc);
}

static void look_at_report(struct said *said)
{
    const char *verdict = place->stuck ? "stuck" : "flowing";
    json_t *doc, *row;
    bool found = false;
    size_t i;

    assert_int_equal(view_report(w, false, &doc), 0);
    if (strcmp(answer_text(doc, "verdict"), verdict) != 0)
        wrong("report", answer_text(doc, "verdict"), verdict);
    json_array_foreach(json_object_get(doc, "constraints"), i, row) {
        if (strcmp(answer_text(row, "type"), "slow") != 0 && !*answer_text(row, "queue"))
            continue;
        found = true;
        expect_waits("report", json_object_get(row, "waits_for"), place->type, said->waits);
        if (*answer_text(row, "type"))
            expect_time("report, last", json_object_get(row, "finish_at"), said->last_us);
    }
    assert_true(found);
    json_decref(doc);
}

static void look_at_rate(struct said *said)
{
    json_t *doc;

    assert_int_equal(view_rate(w, "slow", &doc), 0);
    if (place->shared) { /* of all its types */
        said->next_us = json_us(json_object_get(doc, "next_start"));
        said->last_us = json_us(json_object_get(doc, "finish_at"));
    }
    expect_time("rate show, next", json_object_get(doc, "next_start"), said->next_us);
    expect_time("rate show, last", json_object_get(doc, "finish_at"), said->last_us);
    json_decref(doc);
    assert_int_equal(view_rates(w, &doc, NULL), 0);
    expect_time("rate list", json_object_get(json_array_get(doc, 0), "next_start"), said->next_us);
    json_decref(doc);
}

static void look_at_top(struct said *said)
{
    struct top_snapshot *snapshot = top_snapshot_read(w);
    json_t *next;

    if (!snapshot)
        wrong("top", weir_message(w), NULL);
    next = snapshot->limit_rows[0].next_us == GATE_NEVER
               ? json_null()
               : json_real((double)snapshot->limit_rows[0].next_us / 1e6);
    expect_time("top, limits", next, said->next_us);
    json_decref(next);
    top_snapshot_free(snapshot);
}

static bool is_on_page(const char *path, const char *expected)
{
    struct page_request r = {.path = path};
    struct text out = {0};
    struct error e = {0};
    bool found;

    assert_int_equal(page_render(w, &r, &out, &e), 200);
    found = memmem(out.at, out.len, expected, strlen(expected));
    text_free(&out);
    return found;
}

static void look_at_text(const char *path, const char *expected)
{
    if (!is_on_page(path, expected))
        wrong(path, "something else", expected);
}

/* The overview judges as the report does. */
static void look_at_notes(void)
{
    bool stuck = place->stuck;

    if (is_on_page("/", "<li class=\"wrong\"><b>stuck</b>: jobs of ") != stuck)
        wrong("/", stuck ? "nothing" : "stuck", stuck ? "stuck" : NULL);
    if (stuck && is_on_page("/", "Nothing is wrong"))
        wrong("/", "nothing is wrong", "stuck");
}

static void look_at_page(const char *path, const char *waits)
{
    if (*waits)
        look_at_text(path, textf("waits for <bdi>%s</bdi>", waits));
}

/* Where the first job has a key, "anna0" or "k0-1". */
static void look_at_key(const struct said *said)
{
    size_t len = strlen(place->first) - 1;
    json_t *doc;
    const char *key = textf("%.*s", (int)len, place->first);

    if (strncmp(place->first, "slow", 4) == 0)
        return;
    assert_int_equal(view_rate_keys(w, "slow", 1, key, &doc, NULL), 0);
    expect_time("rate keys",
                json_object_get(json_array_get(json_object_get(doc, "longest"), 0), "next_start"),
                said->next_us);
    json_decref(doc);
}

static void look_at_job(const char *id, int64_t start_us, struct said *said, const char *begins)
{
    json_t *why, *doc;

    assert_int_equal(why_read(w, -1, id, &why), 0);
    doc = job_document(why);
    expect_waits("why", json_object_get(doc, "waits_for"), begins, said->job_waits);
    if (start_us >= 0)
        expect_time("why", json_object_get(doc, "start"), start_us);
    look_at_page(textf("/jobs/%s", id), said->job_waits);
    json_decref(doc);
    json_decref(why);
    *said->job_waits = '\0';
}

/* A batch of the type says what it waits for. */
static void look_at_batch(const struct said *said)
{
    struct batch b = {.phase = BATCH_RUNNING, .total = 9, .left = 9, .now_us = turns.now_us, .type_count = 1};
    char waits[300];
    json_t *doc;

    snprintf(b.types[0].name, sizeof b.types[0].name, "slow");
    b.types[0].jobs = 9;
    snprintf(waits, sizeof waits, "%s", said->waits);
    assert_int_equal(batch_forecast(w, &b), 0);
    doc = b.waits_for ? document_make(b.waits_for, waits_members) : NULL;
    expect_waits("batch show", doc, place->type, waits);
    json_decref(doc);
    batch_free(&b);
}

static void look_everywhere(struct said *said)
{
    *said = (struct said){.next_us = 0};
    look_at_status(said);
    look_at_report(said);
    look_at_rate(said);
    look_at_top(said);
    look_at_batch(said);
    look_at_page("/", said->waits);
    look_at_notes();
    look_at_page("/types/slow", said->waits);
    if (said->next_us >= FORMAT_ENDLESS_US)
        look_at_text("/limits/slow", "<dt>next start</dt><dd><span>when it is resumed</span>");
    if (strstr(said->waits, ", closed until"))
        look_at_text("/limits/slow", ">when rules of its keys are set again<");
    if (place->first)
        look_at_key(said);
    if (place->first)
        look_at_job(place->first, said->next_us, said, place->job ? place->job : place->type);
    if (place->last)
        look_at_job(place->last, said->last_us, said, "");
}

/* ---- What happens */

/* Starts all, each when it may; jobs end at once. */
static void run(int64_t now_us, int64_t *first_us, int64_t *last_us)
{
    *first_us = *last_us = 0;
    turns.now_us = now_us;
    for (int i = 0; i < 5000; i++) {
        size_t n = claim("w", 60, 0);

        for (size_t k = 0; k < n; k++) {
            int64_t slot_us = turns.claim.leases[k].slot_us;

            *first_us = *first_us == 0 || slot_us < *first_us ? slot_us : *first_us;
            *last_us = slot_us > *last_us ? slot_us : *last_us;
        }
        end_jobs();
        if (n == 0 && (turns.claim.next_us < 0 || turns.claim.next_us > turns.now_us + 7 * DAY_US))
            return;
        if (n == 0)
            turns.now_us = turns.claim.next_us > turns.now_us ? turns.claim.next_us : turns.now_us + 1000;
    }
    fail_msg("%s: it does not end", place->name);
}

static void expect_happens(const struct said *said)
{
    int64_t first_us, last_us;

    run(clock_wall_us(), &first_us, &last_us); /* what was said was said before */
    if (place->halted) {
        assert_int_equal(last_us, 0);
        return;
    }
    if (first_us < said->next_us || (first_us > said->next_us && !place->others))
        fail_msg("%s: the first started %lld us after it was said", place->name,
                 (long long)(first_us - said->next_us));
    if (last_us < said->last_us - 1 || last_us > said->last_us + 1 + place->later_us)
        fail_msg("%s: the last started %lld us after it was said", place->name,
                 (long long)(last_us - said->last_us));
    assert_true(place->later_us == 0 || said->earliest);
}

TEST_WITH(test_all_say_the_same_and_it_happens, begin, end)
{
    for (place = places; place < places + COUNT(places); place++) {
        struct said said;

        turns_flush(NULL);
        scene_begin(NULL);
        turns.now_us = clock_wall_us();
        set_scene(place->scene);
        look_everywhere(&said);
        redis_do("DEL", PREFIX "order:iw");
        expect_happens(&said);
    }
}

/* ---- Any rules and costs */

static void random_rules(uint64_t *state, bool keyed, char rules[200], int *burst)
{
    static const char *const kinds[] = {"gcra:%d/%d000000/%d", "token-bucket:%d/%d000000/%d",
                                        "fixed-window:%d/%d000000/0", "sliding-log:%d/%d000000",
                                        "sliding-window:%d/%d000000"};
    int count = (int)random_in(state, 1, 2);

    *rules = '\0';
    *burst = 1000;
    for (int i = 0; i < count; i++) {
        size_t kind = (size_t)random_in(state, 0, COUNT(kinds) - 1), len = strlen(rules);
        int n = (int)random_in(state, 2, 40), seconds = (int)random_in(state, n, 600),
            at_once = kind < 2 ? (int)random_in(state, 2, n) : n;

        len += (size_t)snprintf(rules + len, 200 - len, "%s", i ? " " : "");
        bool of_jobs = random_in(state, 0, 3) == 0;

        len += (size_t)snprintf(rules + len, 200 - len, kinds[kind], n, seconds, at_once);
        snprintf(rules + len, 200 - len, "%s%s", of_jobs ? ",of=jobs" : "",
                 keyed && i + 1 == count ? ",by=key" : "");
        *burst = at_once < *burst && !of_jobs ? at_once : *burst;
    }
}

/* Jobs of some keys, few or many of each. */
static void enqueue_some_keyed(uint64_t *state)
{
    static const char *const keys[] = {"a", "b", "c"};

    for (size_t i = 0; i < COUNT(keys); i++)
        enqueue_keyed(keys[i], (int)random_in(state, 1, random_in(state, 1, 40)));
}

static void expect_random(uint64_t seed)
{
    uint64_t state = seed;
    struct limits limits;
    struct forecast last;
    int64_t first_us, last_us, next_us;
    char rules[200];
    bool keyed = random_in(&state, 0, 2) == 0;
    int burst, cost;

    turns_flush(NULL);
    scene_begin(NULL);
    begin_worker(60);
    random_rules(&state, keyed, rules, &burst);
    must(turns_rate("slow", rules));
    cost = (int)random_in(&state, 1, burst < 5 ? burst : 5);
    if (keyed)
        enqueue_some_keyed(&state);
    else
        enqueue_costs("slow", (int)random_in(&state, 1, 60), cost,
                      random_in(&state, 0, 2) ? cost : (int)random_in(&state, cost, burst), "\"cost\":%d");
    drain();
    assert_int_equal(status_limits(w, turns.now_us, &limits), 0);
    assert_int_equal(forecast_type(&limits, limits_type(&limits, "slow"), NULL, &last, &w->error), 0);
    next_us = type_next_start(&limits, limits_type(&limits, "slow"));
    run(turns.now_us, &first_us, &last_us);
    fail_if(last_us > 0 &&
                (first_us != next_us || last_us < last.last_us || (!last.because && last_us != last.last_us)),
            "WEIR_SEED=%llu: %s: said %lld and %lld us, %s; not %lld and %lld", (unsigned long long)seed,
            rules, (long long)(next_us - BEGIN_US), (long long)(last.last_us - BEGIN_US),
            forecast_reason(last.because), (long long)(first_us - BEGIN_US), (long long)(last_us - BEGIN_US));
    limits_free(&limits);
}

TEST_WITH(test_any_rules_and_costs, begin, end)
{
    uint64_t seed = random_seed();

    for (int i = 0; i < 60; i++)
        expect_random(seed + (uint64_t)i);
}

/* What is said as jobs are enqueued, behind those that wait. */
TEST_WITH(test_enqueueing_says_the_same, begin, end)
{
    struct weir_job_spec spec = {.type = "slow", .cost = 500};
    struct weir_bulk *bulk;
    struct outlook *outlooks;
    struct limits limits;
    struct forecast last;
    size_t count;

    set_scene("worker 60; rate gcra:6000/60000000/1000; costs slow 50 1000 1000; drain");
    assert_int_equal(weir_bulk_open(w, NULL, &bulk), 0);
    for (int i = 0; i < 20; i++)
        assert_int_equal(weir_bulk_add(bulk, &spec), 0);
    assert_int_equal(bulk_flush(bulk), 0);
    assert_int_equal(outlook_read(w, bulk, &outlooks, &count), 0);
    assert_int_equal(status_limits(w, -1, &limits), 0);
    assert_int_equal(forecast_type(&limits, limits_type(&limits, "slow"), NULL, &last, &w->error), 0);
    assert_int_equal(count, 1);
    assert_int_equal(outlooks->last_us, last.last_us);
    assert_int_equal(outlooks->last_us - outlooks->first_us, 19 * 5 * SECOND_US);
    limits_free(&limits);
    free(outlooks);
    assert_int_equal(weir_bulk_close(bulk, NULL), 0);
}

TESTS(turns_start, turns_stop)

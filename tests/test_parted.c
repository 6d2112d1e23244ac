/* The commands over partitions: the same scene in a namespace of one partition and in one of four, with jobs in every state; each
 * command says and does the same in both. What must differ stands in tests of its own. */
#include <ctype.h>
#include <hiredis/hiredis.h>
#include <signal.h>

#include "core/client/client.h"
#include "core/clock.h"
#include "queue/queues/queues.h"
#include "queue/turn/turn.h"
#include "tests/client.h"
#include "tests/program.h"
#include "tests/proxy.h"
#include "tests/test.h"
#include "tests/turns.h"

#define PARTS 4
#define TYPES "\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\",\"h\""
#define LONG_LEASE_US INT64_C(600000000)

static const char *const types[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
static const char *const queues[] = {"default", "mail"};

static int64_t now_us;

/* A namespace, and its worker "w". */
struct side {
    char ns[24];
    int parts;
    int64_t turn;
};
static struct side one = {"one", 1, 0}, four = {"four", PARTS, 0};
static int scenes;

/* ---- The worker of a side, by its scripts: in each partition it has the same name */

static const char *prefix_of(const struct side *s, int p)
{
    static char prefix[PREFIX_SIZE];

    snprintf(prefix, sizeof prefix, "%s:{%d}:", s->ns, p);
    return prefix;
}

static int home_of(const struct side *s, const char *type)
{
    return (int)(partition_crc16(type, strlen(type)) % (unsigned)s->parts);
}

/* Sends a and frees it; the reply is the caller's. */
static struct redisReply *call(struct args *a)
{
    struct redisReply *reply = NULL;
    struct error e;

    fail_if(redis_call(redis, a, &reply, NULL, &e) != 0, "%s", e.text);
    args_free(a);
    return reply;
}

static void adopt(const struct side *s, int executors)
{
    char info[256];
    struct adopt_call adoption = {.worker = "w",
                                  .old_worker = "",
                                  .group = "g",
                                  .lease_us = LONG_LEASE_US,
                                  .info = info,
                                  .birth = "",
                                  .queues = {queues, COUNT(queues)}};

    snprintf(info, sizeof info,
             "{\"lease\":600.0,\"host\":\"h\",\"pid\":7,\"executors\":%d,\"queues\":[\"default\",\"mail\"],"
             "\"types\":[" TYPES "]}",
             executors);
    for (int p = 0; p < s->parts; p++) {
        struct args a = {0};

        adopt_request(&a, prefix_of(s, p), now_us, &adoption);
        freeReplyObject(call(&a));
    }
}

/* All that may start does; what a limit holds is parked. */
static void claim(struct side *s)
{
    for (int p = 0; p < s->parts; p++) {
        struct claim_call claiming = {.worker = "w",
                                      .group = "g",
                                      .turn = ++s->turn,
                                      .free = 100,
                                      .chunk = 100,
                                      .queues = {queues, COUNT(queues)},
                                      .types = {types, COUNT(types)}};
        struct args a = {0};

        claim_request(&a, prefix_of(s, p), now_us, &claiming);
        freeReplyObject(call(&a));
    }
}

/* The token of a job that runs, which is the caller's to free. */
static char *token_of(const struct side *s, const char *type, const char *id)
{
    char key[PREFIX_SIZE + 16], wanted[64], *all, *rest, *token = NULL, *value;

    snprintf(key, sizeof key, "%sactive:w", prefix_of(s, home_of(s, type)));
    snprintf(wanted, sizeof wanted, "\"id\":\"%s\"", id);
    rest = all = server_ask(&server, "HGETALL", key, NULL);
    while (!token && (value = strsep(&rest, "\n"))) {
        char *body = strsep(&rest, "\n");

        if (body && strstr(body, wanted))
            token = strdup(value);
    }
    free(all);
    fail_if(!token, "%s: job %s does not run", s->ns, id);
    return token;
}

static void settle(const struct side *s, const char *type, const char *id, enum settle_verb verb,
                   int64_t number, const char *reason)
{
    char *token = token_of(s, type, id);
    struct args a = {0};

    settle_request(&a, prefix_of(s, home_of(s, type)), now_us, "w");
    turns_add_end(&a, verb, (struct span){token, strlen(token)}, number, reason);
    freeReplyObject(call(&a));
    free(token);
}

/* ---- The commands of a side */

static struct outcome said;

static int weir(const struct side *s, const char *line)
{
    return program_weir(&said, NULL, server.url, s->ns, line);
}

static void must(const struct side *s, const char *line)
{
    fail_if(weir(s, line) != 0, "%s: weir %s: %d: %s%s", s->ns, line, said.code, said.err,
            strstr(said.out, "wrong: ") ? strstr(said.out, "wrong: ") : said.out);
}

/* A member that may differ: a span; where a job stands among those of other types; whether others may come first, of which
 * less is unknown on a partition. */
static bool is_its_own(const char *at)
{
    static const char *const members[] = {
        "\"place\":",   "\"of\":",     "\"reset_after\":", "\"retry_after\":", "\"at_the_earliest\":",
        "\"because\":", "\"waited\":", "\"ran\":",         "\"took\":",        "\"after\":"};

    for (size_t i = 0; i < COUNT(members); i++)
        if (strncmp(at, members[i], strlen(members[i])) == 0)
            return at[strlen(members[i])] != '-'; /* retry_after -1 is never, or not at all */
    return false;
}

/* "04:46:25" */
static bool is_clock(const char *at)
{
    int hours, minutes, seconds, end = 0;

    return sscanf(at, "%2d:%2d:%2d%n", &hours, &minutes, &seconds, &end) == 3 && end == 8;
}

/* Times become T: clocks, ages, and digits with at least eight others. What may differ goes. */
static void mask(char *text, const struct side *s)
{
    size_t ns_len = strlen(s->ns);
    char *to = text;

    for (const char *at = text; *at;) {
        size_t digits = strspn(at, "0123456789");

        if (is_clock(at)) {
            at += strlen("00:00:00");
            *to++ = 'T';
        } else if (digits >= 9) {
            at += strspn(at, "0123456789.");
            *to++ = 'T';
        } else if (digits > 0 && strncmp(at + digits, "s ago (", 7) == 0) {
            at += strcspn(at, ")\n"); /* 2s ago (03:49:19), in another second */
            *to++ = 'T';
        } else if (strncmp(at, "\"seconds\":", 10) == 0 && strstr(at, "\"more_types\"")) {
            at = strstr(at, "\"more_types\""); /* with how many a second */
        } else if (is_its_own(at)) {
            at += strcspn(at, ",}");
            at += *at == ',';
        } else if (strncmp(at, s->ns, ns_len) == 0 && at[ns_len] == ':') {
            *to++ = 'N';
            at += ns_len;
        } else {
            *to++ = *at++;
        }
    }
    *to = '\0';
}

static void compare(const char *line, const char *of_one, const char *of_four)
{
    size_t at = 0, from;

    while (of_one[at] && of_one[at] == of_four[at])
        at++;
    from = at > 60 ? at - 60 : 0;
    fail_if(of_one[at] != of_four[at], "weir %s: with one partition ...%.200s\nwith four ...%.200s", line,
            of_one + from, of_four + from);
}

/* Both say the same, with the same exit code. */
static void same(const char *line)
{
    static struct outcome first;
    int code = weir(&one, line);

    first = said;
    mask(first.out, &one);
    mask(first.err, &one);
    fail_if(weir(&four, line) != code, "weir %s: %d with one partition (%s), %d with four (%s)", line, code,
            first.err, said.code, said.err);
    mask(said.out, &four);
    mask(said.err, &four);
    compare(line, first.out, said.out);
    compare(line, first.err, said.err);
}

static void same_all(const char *const *lines)
{
    for (; *lines; lines++)
        same(*lines);
}

/* ---- The scene */

static void divide(const struct side *s)
{
    const char *count = textf("%d", s->parts);

    for (int p = 0; s->parts > 1 && p < s->parts; p++)
        server_do(&server, "HSET", textf("%sabout", prefix_of(s, p)), "partitions", count);
}

static void check(struct weir *client, int status)
{
    fail_if(status < 0, "%s", weir_message(client));
}

static void enqueue_all(struct weir *client, const struct weir_job_spec *jobs, int count)
{
    for (int i = 0; i < count; i++)
        check(client, weir_enqueue(client, &jobs[i], NULL));
}

static void come_in(struct weir *client)
{
    static const struct weir_job_spec jobs[] = {
        {.type = "a", .id = "a0"}, {.type = "a", .id = "a1"}, {.type = "b", .id = "b0"},
        {.type = "b", .id = "b1"}, {.type = "c", .id = "c0"}, {.type = "c", .id = "c1"},
        {.type = "d", .id = "d0"}, {.type = "e", .id = "e0"}, {.type = "f", .id = "f0", .unique = "k"},
    };

    check(client, weir_rate_set(client, "a", "1/1h"));
    check(client, weir_rate_set(client, "b", "1/1h"));
    check(client, weir_rate_set(client, "slots", "5/1h"));
    enqueue_all(client, jobs, COUNT(jobs));
}

static void run_some(struct side *s)
{
    now_us = clock_wall_us();
    adopt(s, 100);
    claim(s);
    settle(s, "a", "a0", SETTLE_DEAD, 0, "no such customer"); /* not in the order of their partitions */
    now_us++;
    settle(s, "d", "d0", SETTLE_DEAD, 0, "no luck");
    now_us++;
    settle(s, "c", "c0", SETTLE_DEAD, 0, "no such customer");
    settle(s, "c", "c1", SETTLE_RETRY, 3600 * INT64_C(1000000), "again");
    settle(s, "e", "e0", SETTLE_FINISH, 600000, "");
}

static void go_on(struct weir *client)
{
    static const struct weir_job_spec jobs[] = {
        {.type = "c", .id = "c2"},
        {.type = "d", .id = "d1", .queue = "mail"},
        {.type = "g", .id = "g0", .delay_s = 3600},
        {.type = "e", .id = "e1", .batch = "weekly"},
        {.type = "h", .id = "h0", .batch = "nightly"},
    };
    const struct weir_job_spec tidy = {.type = "c"}, report = {.type = "d"};
    const struct pausing pausing = {.for_us = RATE_ENDLESS, .create = true};
    json_t *before;

    enqueue_all(client, jobs, COUNT(jobs));
    check(client, weir_batch_seal(client, "nightly", NULL));
    check(client, weir_schedule_add(client, "tidy", "@daily", NULL, WEIR_MISSED_ONCE, &tidy));
    check(client, weir_schedule_add(client, "report", "0 9 * * MON", NULL, WEIR_MISSED_ONCE, &report));
    check(client, queue_pause(client, "idle", &pausing, &before));
    json_decref(before);
}

static void set_scene(struct side *s)
{
    struct weir *client;

    snprintf(s->ns, sizeof s->ns, "%s%d", s->parts == 1 ? "one" : "four", scenes);
    client = weir_new(server.url, s->ns);
    assert_non_null(client);
    divide(s);
    come_in(client);
    run_some(s);
    go_on(client);
    weir_free(client);
}

static int set_up(void **state)
{
    scenes++;
    set_scene(&one);
    set_scene(&four);
    return 0;
}

/* The types live on several partitions, or nothing is shown. */
TEST(test_the_scene)
{
    bool used[PARTS] = {false};
    int count = 0;

    for (size_t i = 0; i < COUNT(types); i++)
        used[home_of(&four, types[i])] = true;
    for (int p = 0; p < PARTS; p++)
        count += used[p];
    assert_int_equal(count, PARTS);
}

/* Each of these lines does and says the same on both sides. */
#define SAME_TEST(name, ...)                                                                                 \
    TEST_WITH(name, set_up, NULL)                                                                            \
    {                                                                                                        \
        same_all((const char *const[]){__VA_ARGS__, NULL});                                                  \
    }
#define says(part) assert_non_null(strstr(said.out, part))
#define warns(part) assert_non_null(strstr(said.err, part))

/* ---- What shows */

SAME_TEST(test_jobs_are_found, "job show c2 --json", "job show a1 --json", "job show b0 --json",
          "job show g0 --json", "job show c1 --json", "job show d0 --json", "job show e0 --json",
          "job show f0 --json", "job show nobody", "why a1 --json", "why b1 --json", "why c2 --json",
          "why b0 --json", "why g0 --json", "why d0 --json", "why nobody")

SAME_TEST(test_lists, "dead list --json", "dead list --limit 2 --json", "dead list --type d --json",
          "dead show a0 --json", "dead show nobody", "dead keep --json", "batch list --json",
          "batch show nightly --json", "batch show weekly --json", "batch show nobody",
          "schedule list --json", "schedule show report --json", "schedule show nobody", "rate log --json",
          "rate list --json", "rate show b --json", "rate show slots --json", "rate show nobody",
          "rate set b 5/1h --dry-run --json", "queue list --json", "status --json")

/* ---- What changes */

SAME_TEST(test_jobs_end, "job cancel c2 --json", "job cancel c2 --json", "job cancel a1 --json",
          "job cancel g0 --json", "job cancel f0 --json", "job cancel d0", "job cancel nobody",
          "job cancel nobody --unique k", "job show c2 --json", "job show g0")

#define IDS_SIZE 4000

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The id and the state of each job that a list finds, sorted; so many at a time. */
static void list_jobs(const struct side *s, const char *search, int limit, char out[IDS_SIZE])
{
    static char rows[200][64];
    char *order[200], cursor[400] = "", *at;
    int count = 0;

    do {
        must(s, textf("job list %s --limit %d --json%s%s", search, limit, *cursor ? " --from " : "", cursor));
        for (char *rest = said.out, *row; (row = strsep(&rest, "\n"));)
            if (*row && sscanf(row, "{\"id\":\"%30[^\"]\",\"state\":\"%30[^\"]", rows[count],
                               rows[count] + 32) == 2) {
                rows[count][strlen(rows[count])] = ' ';
                memmove(strchr(rows[count], ' ') + 1, rows[count] + 32, strlen(rows[count] + 32) + 1);
                order[count] = rows[count];
                assert_true(++count < 200);
            }
        at = strstr(said.err, "--from ");
        snprintf(cursor, sizeof cursor, "%.*s", at ? (int)strcspn(at + 7, "\n") : 0, at ? at + 7 : "");
    } while (*cursor);
    qsort(order, (size_t)count, sizeof *order, by_text);
    *out = '\0';
    for (int i = 0; i < count; i++)
        snprintf(out + strlen(out), IDS_SIZE - strlen(out), "%s\n", order[i]);
}

/* In all partitions, whether in one page or in many. */
TEST_WITH(test_jobs_by_a_search, set_up, NULL)
{
    static const char *const searches[] = {"",           "type:a",      "state:dead", "state:scheduled,retry",
                                           "queue:mail", "batch:weekly"};
    static char of_one[IDS_SIZE], of_four[IDS_SIZE];

    for (size_t i = 0; i < COUNT(searches); i++)
        for (int limit = 2; limit < 200; limit *= 9) {
            list_jobs(&one, searches[i], 100, of_one);
            list_jobs(&four, searches[i], limit, of_four);
            assert_true(strlen(of_one) > 0);
            assert_string_equal(of_one, of_four);
        }
}

SAME_TEST(test_actions_by_a_search, "job run g0 --json", "job run nobody", "job run state:scheduled --json",
          "job retry state:dead --dry-run", "job retry type:d --json", "job remove state:dead --yes --json",
          "job cancel queue:default --dry-run --json", "job cancel queue:default --yes --json",
          "job cancel queue:default --dry-run --json")

TEST_WITH(test_a_lock_is_freed_where_it_is, set_up, NULL)
{
    for (int i = 0; i < 2; i++) {
        const struct side *s = i ? &four : &one;

        server_do(&server, "SET", textf("%sunique:lost", prefix_of(s, home_of(s, "d"))), "ghost");
    }
    same("job cancel ghost --unique lost --json");
    same("job cancel ghost --unique lost --json");
}

SAME_TEST(test_queues, "queue pause default --json", "queue resume default", "queue resume default --json",
          "queue resume nobody", "queue purge mail --dry-run --json", "queue purge default --dry-run --json",
          "queue purge default --type c --yes --json", "queue purge default --yes --json",
          "queue purge default --dry-run --json", "queue purge nobody --dry-run", "job show a1",
          "job show b1 --json")

static bool is_halted(const char *queue, int partition)
{
    return server_number(&server, "HEXISTS", textf("%shalted", prefix_of(&four, partition)),
                         textf("q/%s", queue), NULL);
}

/* All partitions have it paused, also those that never heard of it, and none has afterwards. */
TEST_WITH(test_a_pause_is_everywhere, set_up, NULL)
{
    must(&four, "enqueue a --queue lone");
    must(&four, "queue pause lone");
    for (int p = 0; p < PARTS; p++)
        assert_true(is_halted("lone", p));
    must(&four, "queue resume lone");
    for (int p = 0; p < PARTS; p++)
        assert_false(is_halted("lone", p));
}

SAME_TEST(test_dead_jobs, "dead retry --all --dry-run --json", "dead retry --type c --json",
          "dead list --json", "dead retry nobody", "dead remove d0 nobody --yes",
          "dead remove --all --dry-run --json", "dead remove --all --yes", "dead list", "job show c0 --json")

SAME_TEST(test_batches, "batch pause weekly --json", "batch pause weekly", "batch list --json",
          "batch resume weekly --json", "batch resume nobody", "batch seal weekly --then e.sent --json",
          "batch seal nobody", "batch show weekly --json", "batch cancel nightly --dry-run --json",
          "batch cancel nightly --yes", "batch cancel nightly --yes", "batch cancel nobody --yes",
          "batch show nightly --json")

/* What follows a batch is enqueued where that is: "weekly" has jobs of "e". */
TEST_WITH(test_what_follows_a_batch, set_up, NULL)
{
    assert_int_equal(weir(&four, "batch seal weekly --then d"), 65);
    warns("batch weekly: lives on partition 3 and type d on 2, so it cannot follow; use one whose name");
    must(&four, "batch show weekly --json");
    says("\"sealed_at\":null");
    must(&four, "batch seal weekly --then e.sent");
}

/* Nobody knows where the first job of a batch will be. */
TEST_WITH(test_a_batch_is_paused_once_it_is_somewhere, set_up, NULL)
{
    assert_int_equal(weir(&four, "batch pause later --create"), 66);
    warns("pause it once it has one");
    assert_int_equal(weir(&four, "batch show later"), 66);
}

TEST_WITH(test_schedules, set_up, NULL)
{
    static const char *const lines[] = {
        "schedule add tidy @daily e", "schedule list --json",
        "schedule show tidy --json",  "schedule remove tidy",
        "schedule remove tidy",       "schedule list --json",
        "schedule run nobody",        NULL,
    };
    char key[PREFIX_SIZE + 16];
    long long schedules = 0, waiting;

    same_all(lines);
    for (int p = 0; p < PARTS; p++) {
        snprintf(key, sizeof key, "%sschedules", prefix_of(&four, p));
        schedules += server_number(&server, "HLEN", key, NULL);
    }
    assert_int_equal(schedules, 1);
    snprintf(key, sizeof key, "%squeue:default", prefix_of(&four, home_of(&four, "d")));
    waiting = server_number(&server, "LLEN", key, NULL);
    must(&four, "schedule run report");
    assert_int_equal(server_number(&server, "LLEN", key, NULL), waiting + 1);
}

SAME_TEST(test_limits, "rate pause a 1h", "rate pause nobody 1h", "rate resume a", "rate set a 2/1h --json",
          "rate set c 3/1h,by=args.user --json", "rate weight c u1 3", "rate remove c --yes",
          "rate remove nobody --yes", "rate log --json", "take slots --json", "take slots --cost 4 --json",
          "take nobody", "take own --rule 1/1h --json", "take own --rule 1/1h --peek --json",
          "take own --rule 1/1h --wait 1s --json")

/* What shares a limit must live where it does: names that begin alike do. */
TEST_WITH(test_types_that_share_a_limit, set_up, NULL)
{
    static const char *const lines[] = {"rate set mail.provider 10/1h",
                                        "rate use mail.bulk mail.provider --cost 2",
                                        "rate use mail.urgent mail.provider",
                                        "rate show mail.provider --json",
                                        "rate unuse mail.urgent mail.provider",
                                        "rate unuse mail.urgent slots",
                                        "rate list --json",
                                        NULL};

    same_all(lines);
    must(&one, "rate use d slots");
    assert_int_equal(weir(&four, "rate use d.x mail.provider slots"), 65);
    assert_string_equal(said.err, "weir: type d.x: lives on partition 2 and limit mail.provider on 3, and a "
                                  "job can ask only one; use names "
                                  "that are the same up to their first dot, such as type mail.d.x\n");
    must(&four, "rate list --json");
    assert_null(strstr(said.out, "d.x"));
}

/* Many limits in one call, each asked where it lives, answered in the order of the lines. */
TEST_WITH(test_many_are_taken, set_up, NULL)
{
    struct outcome outs[2];

    for (int i = 0; i < 2; i++) {
        const struct side *s = i ? &four : &one;

        for (int limit = 0; limit < 6; limit++)
            must(s, textf("rate set l%d %d/1h", limit, limit + 1));
        run_in(&outs[i], NULL, "/bin/sh", "-c",
               textf("for i in 1 2 3; do echo l0; echo l1; echo nobody; echo l2 2; echo l3; echo l4; echo "
                     "l5; done | "
                     "%s take --from - --json --redis %s --namespace %s",
                     built("weir"), server.url, s->ns),
               NULL);
    }
    mask(outs[0].out, &one);
    mask(outs[1].out, &four);
    compare("take --from", outs[0].out, outs[1].out);
    assert_string_equal(outs[0].err, outs[1].err);
    assert_int_equal(outs[0].code, outs[1].code);
}

/* Jobs of all types in one input: when they start is known by the limits of each. */
TEST_WITH(test_bulks, set_up, NULL)
{
    write_text(server.folder, "bulk",
               "{\"type\":\"a\"}\n{\"type\":\"a\"}\n{\"type\":\"b\"}\n{\"type\":\"c\"}\n"
               "{\"type\":\"d\",\"queue\":\"mail\"}\n{\"type\":\"a\",\"cost\":7}\n{}\n");
    same(textf("enqueue --from %s/bulk --dry-run --json", server.folder));
    same(textf("enqueue --from %s/bulk --json", server.folder));
    same("status --json");
}

/* ---- What differs */

/* A partition that cannot be changed holds up no other, and is named. */
TEST_WITH(test_what_was_done_is_said, set_up, NULL)
{
    char key[PREFIX_SIZE + 16];

    snprintf(key, sizeof key, "%shalted", prefix_of(&four, 2));
    server_do(&server, "DEL", key);
    server_do(&server, "SET", key, "somebody's");
    assert_int_equal(weir(&four, "queue pause mail"), 78);
    warns("done on 3 of 4 partitions, not on 2: repeat it");
    assert_true(is_halted("mail", 3));
}

/* A job that a foreign client has pushed to another partition is found there, and once it is dead a retry moves it. */
TEST_WITH(test_a_job_on_a_wrong_partition, set_up, NULL)
{
    int home = home_of(&four, "d"), there = (home + 1) % PARTS;

    server_do(&server, "LPUSH", textf("%squeue:default", prefix_of(&four, there)),
              "{\"id\":\"stray\",\"type\":\"d\"}");
    assert_int_equal(weir(&four, "job show stray --json"), 0);
    says("\"state\":\"waiting\"");
    must(&four, "why stray");
    says("reason:    dead as a worker meets it: wrong partition: its type lives on partition 2");
    assert_null(strstr(said.out, "waits for"));
    now_us = clock_wall_us();
    claim(&four);
    must(&four, "job show stray");
    says("dead");
    says("wrong partition: its type lives on partition 2; weir dead retry moves it there");
    must(&four, "doctor");

    must(&four, "job retry id:stray --json");
    says("\"jobs\":1");
    must(&four, "job cancel stray");
    says("job stray is cancelled: it was waiting and is gone");
    must(&four, "doctor");
}

/* A type that an earlier partition knows too, by a stray that was moved, waits where it lives. */
TEST_WITH(test_a_type_waits_where_it_lives, set_up, NULL)
{
    assert_int_not_equal(home_of(&four, "alone"), 0);
    server_do(&server, "LPUSH", textf("%squeue:default", prefix_of(&four, 0)),
              "{\"id\":\"moved\",\"type\":\"alone\"}");
    now_us = clock_wall_us();
    claim(&four);
    must(&four, "job retry id:moved");
    if (weir(&four, "report") != 1 ||
        !strstr(said.out, "alone: waits for a worker that takes alone: none does"))
        fail_msg("%s", said.out);
}

/* Findings name their partition. */
TEST_WITH(test_doctor, set_up, NULL)
{
    must(&four, "doctor");
    for (int p = 0; p < PARTS; p++)
        says(textf("structures: partition %d: ", p));
    assert_null(strstr(said.out, "redis: partition"));
    must(&one, "doctor");
    assert_null(strstr(said.out, "partition"));
    server_do(&server, "DEL", textf("%sworkers", prefix_of(&four, 3)));
    assert_int_equal(weir(&four, "doctor"), 65);
    says(": partition 3: ");
    says("1 wrong");
    must(&four, "doctor --repair");
    must(&four, "doctor");

    server_do(&server, "HDEL", textf("%sabout", prefix_of(&four, 2)), "partitions");
    assert_int_equal(weir(&four, "doctor"), 78);
    says("partitions: partition 2: says that there are 1, not 4");
}

/* Sends the words of a line. */
static void send_line(char *line)
{
    struct args a = {0};

    for (char *word; (word = strsep(&line, " "));)
        args_add(&a, word);
    freeReplyObject(call(&a));
}

/* A user has the rights to all partitions. */
TEST_WITH(test_rights, set_up, NULL)
{
    static const char *const lines[] = {"dead keep", "queue pause mail", NULL};
    char user[] = "ACL SETUSER anna on >secret", *rights;

    send_line(user);
    must(&four, "acl viewer --user anna");
    rights = strstr(said.out, "ACL SETUSER anna resetkeys");
    assert_non_null(rights);
    assert_non_null(strstr(rights, ":{*}:"));
    rights[strcspn(rights, "\n")] = '\0';
    send_line(rights);
    setenv("REDIS_URL", textf("unix://anna:secret@%s", server.socket), 1);
    assert_int_equal(program_weir(&said, NULL, NULL, four.ns, "job show d1"), 0);
    assert_int_equal(program_weir(&said, NULL, NULL, four.ns, "batch list"), 0);
    assert_int_equal(program_weir(&said, NULL, NULL, four.ns, "doctor"), 0);
    for (int i = 0; lines[i]; i++)
        assert_int_equal(program_weir(&said, NULL, NULL, four.ns, lines[i]), 77);
    unsetenv("REDIS_URL");
}

/* Rights to one partition are not enough; the rule that is missing names all. */
TEST_WITH(test_rights_to_one_partition, set_up, NULL)
{
    char user[300];

    snprintf(user, sizeof user, "ACL SETUSER ben on >secret +@all ~%s*", prefix_of(&four, 0));
    send_line(user);
    setenv("REDIS_URL", textf("unix://ben:secret@%s", server.socket), 1);
    assert_int_equal(program_weir(&said, NULL, NULL, four.ns, "doctor"), 77);
    says("permissions: partition 1: user ben lacks rights");
    says(":{*}:*");
    unsetenv("REDIS_URL");
}

/* Rows of them, as status shows them. */
static int count_workers(const struct side *s)
{
    int count = 0;

    must(s, "status --json");
    for (const char *at = said.out; (at = strstr(at, "\"pid\":")); at++)
        count++;
    return count;
}

/* A process that works on all partitions is one worker, in each list. */
TEST(test_a_worker_is_one)
{
    struct side fresh = {"fresh", PARTS, 0};
    const char *words[] = {built("weir"), "worker",  "--redis",     server.url, "--namespace",
                           fresh.ns,      "--exec",  "a=/bin/true", "--exec",   "d=/bin/true",
                           "-q",          "default", NULL};
    int64_t limit_us = clock_mono_us() + 60000000;
    pid_t workers[2];

    divide(&fresh);
    must(&fresh, "enqueue a --id first");
    must(&fresh, "enqueue d --id second");
    for (int i = 0; i < 2; i++)
        workers[i] = program_start(server.folder, i ? "second" : "first", words);
    while (count_workers(&fresh) != 2 || strstr(said.out, "\"done\":0")) {
        fail_if(clock_mono_us() > limit_us, "waited in vain: %s", said.out);
        clock_sleep_until(clock_mono_us() + 20000);
    }
    for (int i = 0; i < 2; i++)
        assert_non_null(strstr(said.out, textf("\"pid\":%d,", (int)workers[i])));
    must(&fresh, "queue list --json");
    says("\"worker_count\":2");
    must(&fresh, "doctor");
    for (int i = 0; i < 2; i++) {
        kill(workers[i], SIGTERM);
        assert_int_equal(program_end(workers[i]), 0);
    }
}

/* An executor that is busy in one partition is free in none: each answer says what a job of another partition waits for. */
TEST(test_executors_that_are_busy_elsewhere)
{
    static const char *const lines[] = {"status", "why d0", "report"};
    struct side sides[] = {{"busy1", 1, 0}, {"busy4", PARTS, 0}};

    assert_int_not_equal(home_of(&sides[1], "a"), home_of(&sides[1], "d"));
    for (size_t i = 0; i < COUNT(sides); i++) {
        now_us = clock_wall_us();
        divide(&sides[i]);
        adopt(&sides[i], 2);
        must(&sides[i], "enqueue a --id a0");
        must(&sides[i], "enqueue a --id a1");
        claim(&sides[i]);
        must(&sides[i], "enqueue d --id d0");
        for (size_t k = 0; k < COUNT(lines); k++) {
            weir(&sides[i], lines[k]);
            if (!strstr(said.out, "a free executor: all 2 are busy"))
                fail_msg("%s: weir %s: %s%s", sides[i].ns, lines[k], said.out, said.err);
        }
    }
}

/* The bounds of dead jobs hold for each partition. */
TEST_WITH(test_bounds_of_dead_jobs, set_up, NULL)
{
    must(&four, "dead keep --most 1 --yes --json");
    for (int p = 0; p < PARTS; p++)
        assert_int_equal(server_number(&server, "EXISTS", textf("%ssettings", prefix_of(&four, p)), NULL), 1);
    must(&four, "dead keep");
    says("3 of at most 1 in each of 4 partitions");
}

TESTS(client_start_redis, client_stop)

/* Each public function with each of its pointers NULL: refused with the argument's name, taken where weir.h says that it may be NULL,
 * or without effect; none of them crashes. Each function of weir.h has a row here. */
#include "core/log/log.h"
#include "tests/stage.h"
#include "weir.h"

static char called[4096]; /* the functions that had a row, each with blanks around it */

static void note(const char *call)
{
    size_t len = strlen(called);

    snprintf(called + len, sizeof called - len, " %.*s ", (int)strcspn(call, "("), call);
}

static void check_refused(const char *call, int status, const char *argument, const char *message)
{
    note(call);
    if (status != WEIR_EUSAGE ||
        (*argument && !strstr(message, textf("%.*s: %s is NULL; ", (int)strcspn(call, "("), call, argument))))
        fail_msg("%s: %d %s", call, status, message);
}

/* The call is refused, and its message names the argument. */
#define REFUSED(owner, argument, call) check_refused(#call, call, argument, message_of_##owner)
#define message_of_w weir_message(w)
#define message_of_worker weir_worker_message(worker)
/* There is no object that could keep a message. */
#define WITHOUT(call) check_refused(#call, call, "", "")
/* The call is done, and answers as said. */
#define ANSWERS(value, call)                                                                                 \
    do {                                                                                                     \
        note(#call);                                                                                         \
        assert_true((call) == (value));                                                                      \
    } while (0)
#define DOES_NOTHING(call)                                                                                   \
    do {                                                                                                     \
        note(#call);                                                                                         \
        call;                                                                                                \
    } while (0)

static void check_bulks(struct weir *w)
{
    static const struct weir_job_spec job = {.type = "mail"};
    struct weir_bulk_counts counts = {1, 1, 1};
    struct weir_bulk *b = NULL;

    WITHOUT(weir_bulk_open(NULL, "night", &b));
    REFUSED(w, "bulk", weir_bulk_open(w, "night", NULL));
    ANSWERS(0, weir_bulk_open(w, NULL, &b));
    ANSWERS(0, weir_bulk_close(b, NULL));
    WITHOUT(weir_bulk_close(NULL, &counts));
    assert_int_equal(weir_bulk_open(w, "night", &b), 0);
    WITHOUT(weir_bulk_add(NULL, &job));
    REFUSED(w, "job", weir_bulk_add(b, NULL));
    WITHOUT(weir_bulk_add_line(NULL, "mail", "q", "1", 1));
    REFUSED(w, "line", weir_bulk_add_line(b, "mail", "q", NULL, 1));
    ANSWERS(WEIR_EINPUT, weir_bulk_add_line(b, "mail", "q", NULL, 0));
    ANSWERS(0, weir_bulk_add_line(b, "mail", NULL, "1", 1));
    ANSWERS(0, weir_bulk_add_line(b, NULL, NULL, "{\"type\":\"mail\"}", 15));
    WITHOUT(weir_bulk_skip_line(NULL, "1", 1));
    REFUSED(w, "line", weir_bulk_skip_line(b, NULL, 1));
    ANSWERS(0, weir_bulk_skip_line(b, NULL, 0));
    WITHOUT(weir_bulk_then(NULL, "mail"));
    REFUSED(w, "type", weir_bulk_then(b, NULL));
    DOES_NOTHING(weir_bulk_count(NULL, &counts));
    assert_int_equal(counts.lines + counts.resumed + counts.accepted, 0);
    DOES_NOTHING(weir_bulk_count(b, NULL));
    weir_bulk_count(b, &counts);
    assert_int_equal(counts.lines, 3);
    DOES_NOTHING(weir_bulk_abandon(NULL));
    weir_bulk_abandon(b);
}

static void check_rates(struct weir *w)
{
    WITHOUT(weir_rate_set(NULL, "mail", "1/s"));
    REFUSED(w, "name", weir_rate_set(w, NULL, "1/s"));
    REFUSED(w, "rules", weir_rate_set(w, "mail", NULL));
    WITHOUT(weir_rate_remove(NULL, "mail"));
    REFUSED(w, "name", weir_rate_remove(w, NULL));
    WITHOUT(weir_rate_use(NULL, "mail", "all", 1));
    REFUSED(w, "type", weir_rate_use(w, NULL, "all", 1));
    REFUSED(w, "limits", weir_rate_use(w, "mail", NULL, 1));
    WITHOUT(weir_rate_costs(NULL, "mail", "tokens=1"));
    REFUSED(w, "type", weir_rate_costs(w, NULL, "tokens=1"));
    REFUSED(w, "costs", weir_rate_costs(w, "mail", NULL));
    WITHOUT(weir_rate_unuse(NULL, "mail", "all"));
    REFUSED(w, "type", weir_rate_unuse(w, NULL, "all"));
    REFUSED(w, "limits", weir_rate_unuse(w, "mail", NULL));
    WITHOUT(weir_rate_weight(NULL, "mail", "big", 2));
    REFUSED(w, "limit", weir_rate_weight(w, NULL, "big", 2));
    REFUSED(w, "key", weir_rate_weight(w, "mail", NULL, 2));
    WITHOUT(weir_rate_pause(NULL, "mail", 1));
    REFUSED(w, "limit", weir_rate_pause(w, NULL, 1));
    WITHOUT(weir_rate_resume(NULL, "mail"));
    REFUSED(w, "limit", weir_rate_resume(w, NULL));
}

static void check_takes(struct weir *w)
{
    struct weir_take_item item = {.target = NULL};
    struct weir_take take;
    struct weir_hold hold;

    WITHOUT(weir_take(NULL, "line/1", "5/1h", 1, 0, &take));
    REFUSED(w, "target", weir_take(w, NULL, "5/1h", 1, 0, &take));
    REFUSED(w, "take", weir_take(w, "line/1", "5/1h", 1, 0, NULL));
    ANSWERS(0, weir_take(w, "mail", NULL, 1, 0, &take));
    WITHOUT(weir_take_wait(NULL, "line/1", "5/1h", 1, 0, 1, &take));
    REFUSED(w, "target", weir_take_wait(w, NULL, "5/1h", 1, 0, 1, &take));
    REFUSED(w, "take", weir_take_wait(w, "line/1", "5/1h", 1, 0, 1, NULL));
    ANSWERS(0, weir_take_wait(w, "mail", NULL, 1, 0, 1, &take));
    WITHOUT(weir_take_costs(NULL, "line/1", "5/1h", "tokens=1", 0, 0, &take));
    REFUSED(w, "target", weir_take_costs(w, NULL, "5/1h", "tokens=1", 0, 0, &take));
    REFUSED(w, "costs", weir_take_costs(w, "line/1", "5/1h", NULL, 0, 0, &take));
    REFUSED(w, "take", weir_take_costs(w, "line/1", "5/1h", "tokens=1", 0, 1, NULL));
    WITHOUT(weir_hold_costs(NULL, "mail", "tokens=1", 1, 0, &hold));
    REFUSED(w, "target", weir_hold_costs(w, NULL, "tokens=1", 1, 0, &hold));
    REFUSED(w, "costs", weir_hold_costs(w, "mail", NULL, 1, 0, &hold));
    REFUSED(w, "hold", weir_hold_costs(w, "mail", "tokens=1", 1, 0, NULL));
    WITHOUT(weir_hold_spent(NULL, "mail~a", "tokens=1"));
    REFUSED(w, "token", weir_hold_spent(w, NULL, "tokens=1"));
    REFUSED(w, "spent", weir_hold_spent(w, "mail~a", NULL));
    WITHOUT(weir_hold(NULL, "mail", 1, 1, 0, &hold));
    REFUSED(w, "target", weir_hold(w, NULL, 1, 1, 0, &hold));
    REFUSED(w, "hold", weir_hold(w, "mail", 1, 1, 0, NULL));
    ANSWERS(0, weir_hold(w, "mail", 1, 1, 0, &hold));
    WITHOUT(weir_hold_renew(NULL, "mail~a"));
    REFUSED(w, "token", weir_hold_renew(w, NULL));
    WITHOUT(weir_hold_end(NULL, "mail~a", -1));
    REFUSED(w, "token", weir_hold_end(w, NULL, -1));
    WITHOUT(weir_take_many(NULL, &item, 1, "5/1h", 0));
    REFUSED(w, "items", weir_take_many(w, NULL, 1, "5/1h", 0));
    ANSWERS(0, weir_take_many(w, NULL, 0, "5/1h", 0));
    ANSWERS(0, weir_take_many(w, &item, 1, "5/1h", 0));
    assert_int_equal(item.status, WEIR_EUSAGE);
    assert_string_equal(item.why, "the target is NULL; name a limit");
    item = (struct weir_take_item){.target = "line/1", .reserved = {&item}};
    assert_int_equal(weir_take_many(w, &item, 1, "5/1h", 0), 0);
    assert_int_equal(item.status, WEIR_EUSAGE);
    assert_non_null(strstr(item.why, "reserved is not NULL"));
}

static void check_schedules(struct weir *w)
{
    static const struct weir_job_spec job = {.type = "mail"};

    WITHOUT(weir_schedule_add(NULL, "a", "@daily", NULL, WEIR_MISSED_ONCE, &job));
    REFUSED(w, "name", weir_schedule_add(w, NULL, "@daily", NULL, WEIR_MISSED_ONCE, &job));
    REFUSED(w, "when", weir_schedule_add(w, "a", NULL, NULL, WEIR_MISSED_ONCE, &job));
    REFUSED(w, "job", weir_schedule_add(w, "a", "@daily", NULL, WEIR_MISSED_ONCE, NULL));
    ANSWERS(0, weir_schedule_add(w, "a", "@daily", NULL, WEIR_MISSED_ONCE, &job));
    WITHOUT(weir_schedule_remove(NULL, "a"));
    REFUSED(w, "name", weir_schedule_remove(w, NULL));
}

STAGE_TEST(producers)
{
    static const struct weir_job_spec job = {.type = "mail"}, without_type = {.args = "1"};
    struct weir *w = s->client;
    char id[WEIR_ID_SIZE];

    setenv("REDIS_URL", s->server.url, 1);
    assert_int_equal(weir_rate_set(w, "mail", "1/s"), 0);
    ANSWERS(true, strstr(weir_message(NULL), "w is NULL") != NULL);
    note("weir_message(");
    DOES_NOTHING(weir_free(NULL));
    DOES_NOTHING(weir_free(weir_new(NULL, NULL)));
    note("weir_new(");
    WITHOUT(weir_enqueue(NULL, &job, id));
    REFUSED(w, "job", weir_enqueue(w, NULL, id));
    ANSWERS(0, weir_enqueue(w, &job, NULL));
    ANSWERS(WEIR_EINPUT, weir_enqueue(w, &without_type, id));
    WITHOUT(weir_cancel(NULL, "x"));
    REFUSED(w, "id", weir_cancel(w, NULL));
    WITHOUT(weir_batch_seal(NULL, "night", NULL));
    REFUSED(w, "batch", weir_batch_seal(w, NULL, "mail"));
    ANSWERS(WEIR_ENOTFOUND, weir_batch_seal(w, "night", NULL));
    check_bulks(w);
    check_rates(w);
    check_takes(w);
    check_schedules(w);
}

/* Structs of a program that was built with a later weir.h. */
struct later_job {
    struct weir_job_spec spec;
    const char *more;
};
struct later_take {
    struct weir_take take;
    int64_t more;
};
struct later_item {
    struct weir_take_item item;
    int64_t more;
};
struct later_counts {
    struct weir_bulk_counts counts;
    uint64_t more;
};
struct later_options {
    struct weir_worker_options options;
    int more;
};
struct later_type {
    struct weir_type_options options;
    double more;
};
#define BEFORE(type, member)                                                                                 \
    offsetof(struct type, member) /* the size of a struct that ended before that member */

static void check_jobs_grow(struct weir *w)
{
    struct later_job later = {.spec = {.type = "grown", .cost = 3}};
    struct weir_job_spec early = {.type = "grown", .args = "7", .queue = "unknown to it", .id = "-"};
    struct later_counts counts = {.more = 7};
    struct weir_bulk *b;
    char id[WEIR_ID_SIZE];

    assert_int_equal(weir_enqueue_sized(w, &later.spec, sizeof later, id), 0);
    assert_int_equal(weir_enqueue_sized(w, &early, BEFORE(weir_job_spec, queue), id), 0);
    assert_int_equal(weir_schedule_add_sized(w, "s", "@daily", NULL, WEIR_MISSED_ONCE, &early,
                                             BEFORE(weir_job_spec, queue)),
                     0);
    assert_int_equal(weir_bulk_open(w, NULL, &b), 0);
    assert_int_equal(weir_bulk_add_sized(b, &early, BEFORE(weir_job_spec, queue)), 0);
    later.more = "set";
    assert_int_equal(weir_bulk_add_sized(b, &later.spec, sizeof later), WEIR_EUSAGE);
    assert_int_equal(weir_enqueue_sized(w, &later.spec, sizeof later, id), WEIR_EUSAGE);
    assert_string_equal(weir_message(w),
                        "weir_enqueue: a member is set that version " WEIR_VERSION
                        " does not know; install the libweir that the program was built with");
    assert_int_equal(
        weir_schedule_add_sized(w, "s", "@daily", NULL, WEIR_MISSED_ONCE, &later.spec, sizeof later),
        WEIR_EUSAGE);
    weir_bulk_count_sized(b, &counts.counts, BEFORE(weir_bulk_counts, accepted));
    assert_int_equal(counts.counts.lines, 1);
    assert_int_equal(counts.more, 7);
    assert_int_equal(weir_bulk_close_sized(b, &counts.counts, sizeof counts), 0);
    assert_int_equal(counts.counts.accepted, 1);
    assert_int_equal(counts.more, 0);
}

static void check_takes_grow(struct weir *w)
{
    struct {
        struct weir_hold hold;
        int more;
    } grown = {.more = 7};
    struct later_take later = {.more = 7};
    struct later_item items[2] = {{.item = {.target = "grown/a"}},
                                  {.item = {.target = "grown/b", .cost = 9}}};
    struct weir_take early = {.reset_after_s = 7};

    assert_int_equal(weir_take_sized(w, "grown/a", "5/1h", 1, 0, &later.take, sizeof later), 0);
    assert_int_equal(later.take.allowed, 1);
    assert_int_equal(later.more, 0);
    later.more = 7;
    assert_int_equal(weir_take_wait_sized(w, "grown/a", "5/1h", 1, 0, 1, &later.take, sizeof later), 0);
    assert_int_equal(later.take.allowed, 1);
    assert_int_equal(later.more, 0);
    assert_int_equal(weir_hold_sized(w, "mail", 1, 1, 0, &grown.hold, sizeof grown), WEIR_ENOTFOUND);
    assert_int_equal(grown.more, 0);
    grown.more = later.more = 7;
    assert_int_equal(weir_hold_costs_sized(w, "mail", "tokens=1", 1, 0, &grown.hold, sizeof grown),
                     WEIR_ENOTFOUND);
    assert_int_equal(
        weir_take_costs_sized(w, "grown/a", "5/1h", "1", WEIR_TAKE_PEEK, 0, &later.take, sizeof later), 0);
    assert_int_equal(grown.more + later.more, 0);
    assert_int_equal(weir_take_sized(w, "grown/a", "5/1h", 1, 0, &early, BEFORE(weir_take, reset_after_s)),
                     0);
    assert_int_equal(early.allowed, 1);
    assert_true(early.reset_after_s == 7);
    assert_int_equal(weir_take_many_sized(w, &items[0].item, sizeof *items, 2, "5/1h", 0), 0);
    assert_int_equal(items[0].item.status, 0);
    assert_int_equal(items[0].item.take.remaining, 1);
    assert_int_equal(items[1].item.status, 0);
    assert_int_equal(items[1].item.take.never, 1);
}

/* A program that was built with an earlier or a later weir.h than the library. */
STAGE_TEST(structs_grow)
{
    struct later_options options = {.options = {.redis_url = s->server.url, .drain = 1}};
    struct later_type type = {.options = {.keep_s = 1}};
    struct weir_worker *worker = weir_worker_new_sized(&options.options, sizeof options);

    check_jobs_grow(s->client);
    check_takes_grow(s->client);
    assert_string_equal(weir_worker_message(worker), "");
    assert_int_equal(weir_worker_type_sized(worker, "a", &type.options, sizeof type), 0);
    assert_int_equal(weir_worker_type_sized(worker, "a", &type.options, BEFORE(weir_type_options, keep_s)),
                     0);
    type.more = 1;
    assert_int_equal(weir_worker_type_sized(worker, "a", &type.options, sizeof type), WEIR_EUSAGE);
    weir_worker_free(worker);
    options.more = 1;
    worker = weir_worker_new_sized(&options.options, sizeof options);
    assert_int_equal(weir_worker_run(worker), WEIR_EUSAGE);
    assert_non_null(strstr(weir_worker_message(worker), "weir_worker_new: a member is set"));
    weir_worker_free(worker);
    assert_string_equal(weir_version(), WEIR_VERSION);
    note("weir_version(");
}

static void hear(int level, const char *line, void *heard)
{
    snprintf(heard, 300, "%d %s", level, line);
}

TEST(a_log_of_ones_own)
{
    char heard[300] = "";

    weir_set_log(hear, heard);
    log_fields(LOG_LEVEL_WARN, &(struct log_field){"type", "mail", 4, false}, 1, "one\nline %d", 7);
    log_line(LOG_LEVEL_DEBUG, "not wanted");
    weir_set_log(NULL, NULL);
    log_line(LOG_LEVEL_INFO, "to standard error");
    assert_non_null(strstr(heard, "1 time="));
    assert_non_null(strstr(heard, " level=warn msg=\"one\\nline 7\" type=mail"));
    assert_string_equal(heard + strlen(heard) - 10, " type=mail");
    note("weir_set_log(");
}

static int never_called(struct weir_job *job, void *arg)
{
    (void)job;
    (void)arg;
    return WEIR_DEAD;
}

static void never_started(struct weir_job *job, void *arg)
{
    (void)job;
    (void)arg;
}

TEST(workers)
{
    static const struct weir_type_options options = {.timeout_s = 1};
    struct weir_worker *worker = weir_worker_new(NULL);

    note("weir_worker_new(");
    ANSWERS(true, strstr(weir_worker_message(NULL), "worker is NULL") != NULL);
    note("weir_worker_message(");
    DOES_NOTHING(weir_worker_free(NULL));
    DOES_NOTHING(weir_worker_stop(NULL));
    DOES_NOTHING(weir_worker_quiet(NULL));
    ANSWERS(NULL, weir_worker_loop(NULL));
    WITHOUT(weir_worker_run(NULL));
    WITHOUT(weir_worker_type(NULL, "a", &options));
    REFUSED(worker, "type", weir_worker_type(worker, NULL, &options));
    REFUSED(worker, "options", weir_worker_type(worker, "a", NULL));
    WITHOUT(weir_worker_handle(NULL, "a", never_called, NULL));
    REFUSED(worker, "type", weir_worker_handle(worker, NULL, never_called, NULL));
    REFUSED(worker, "handler", weir_worker_handle(worker, "a", NULL, NULL));
    WITHOUT(weir_worker_handle_async(NULL, "a", never_started, NULL));
    REFUSED(worker, "type", weir_worker_handle_async(worker, NULL, never_started, NULL));
    REFUSED(worker, "handler", weir_worker_handle_async(worker, "a", NULL, NULL));
    WITHOUT(weir_worker_exec(NULL, "a", "true"));
    REFUSED(worker, "type", weir_worker_exec(worker, NULL, "true"));
    REFUSED(worker, "command", weir_worker_exec(worker, "a", NULL));
    WITHOUT(weir_worker_pipe(NULL, "a", "true", 1));
    REFUSED(worker, "type", weir_worker_pipe(worker, NULL, "true", 1));
    REFUSED(worker, "command", weir_worker_pipe(worker, "a", NULL, 1));
    WITHOUT(weir_worker_http(NULL, "a", "http://localhost"));
    REFUSED(worker, "type", weir_worker_http(worker, NULL, "http://localhost"));
    REFUSED(worker, "url", weir_worker_http(worker, "a", NULL));
    WITHOUT(weir_worker_http_files(NULL, "headers", "secrets"));
    WITHOUT(weir_worker_load(NULL, "./a.so"));
    REFUSED(worker, "file", weir_worker_load(worker, NULL));
    weir_worker_free(worker);
}

TEST(handlers)
{
    size_t len = 1;

    ANSWERS(NULL, weir_job_id(NULL));
    ANSWERS(NULL, weir_job_type(NULL));
    ANSWERS(NULL, weir_job_key(NULL));
    ANSWERS(NULL, weir_job_args(NULL));
    ANSWERS(NULL, weir_job_body(NULL, &len));
    assert_int_equal(len, 0);
    ANSWERS(NULL, weir_job_body(NULL, NULL));
    ANSWERS(0, weir_job_attempt(NULL));
    ANSWERS(0, weir_job_enqueued_at(NULL));
    ANSWERS(NULL, weir_job_batch(NULL));
    ANSWERS(NULL, weir_job_traceparent(NULL));
    ANSWERS(0, weir_job_is_cancelled(NULL));
    ANSWERS(NULL, weir_job_client(NULL));
    DOES_NOTHING(weir_log(NULL, "text"));
    ANSWERS(WEIR_RETRY, weir_job_retry(NULL, 1, NULL));
    ANSWERS(WEIR_DEAD, weir_job_dead(NULL, NULL));
    ANSWERS(WEIR_THROTTLED, weir_job_throttled(NULL, 1));
    DOES_NOTHING(weir_job_spent(NULL, 1));
    ANSWERS(WEIR_EUSAGE, weir_job_spent_of(NULL, "tokens", 1));
    ANSWERS(WEIR_EUSAGE, weir_job_result(NULL, "1"));
    DOES_NOTHING(weir_job_end(NULL, WEIR_DONE));
}

/* Behind the others. */
TEST(none_is_left_out)
{
    FILE *header = fopen("include/weir.h", "r");
    char line[512], wanted[132];
    int count = 0;

    assert_non_null(header);
    while (fgets(line, sizeof line, header)) {
        char *end = strchr(line, '(');

        if (strncmp(line, "WEIR_API ", 9) != 0 || !end)
            continue;
        *end = '\0';
        if (strlen(line) > strlen("_sized") && strcmp(end - strlen("_sized"), "_sized") == 0)
            end[-(ptrdiff_t)strlen("_sized")] = '\0';
        snprintf(wanted, sizeof wanted, " %.128s ", strrchr(line, ' ') + 1 + (strrchr(line, ' ')[1] == '*'));
        if (!strstr(called, wanted))
            fail_msg("%s: no row", wanted);
        count++;
    }
    fclose(header);
    assert_in_range(count, 50, 100);
}

int main(int argc, char **argv)
{

    (void)argc;
    (void)argv;
    return tests_run(NULL, NULL);
}

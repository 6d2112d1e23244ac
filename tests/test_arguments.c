/* Each public function with each of its pointers NULL: refused with the argument's name, taken where weir.h says that it may be NULL,
 * or without effect; none of them crashes. Each function of weir.h has a row here. */
#include "tests/stage.h"
#include "tests/test.h"
#include "weir.h"

static char called[4096]; /* the functions that had a row, each with blanks around it */

static void note(const char *call)
{
    size_t len = strlen(called);

    snprintf(called + len, sizeof called - len, " %.*s ", (int)strcspn(call, "("), call);
}

static void check_refused(const char *call, int status, const char *argument, const char *message)
{
    char wanted[128];

    note(call);
    snprintf(wanted, sizeof wanted, "%.*s: %s is NULL; ", (int)strcspn(call, "("), call, argument);
    if (status != WEIR_EUSAGE || (*argument && !strstr(message, wanted)))
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

    WITHOUT(weir_take(NULL, "line/1", "5/1h", 1, 0, &take));
    REFUSED(w, "target", weir_take(w, NULL, "5/1h", 1, 0, &take));
    REFUSED(w, "take", weir_take(w, "line/1", "5/1h", 1, 0, NULL));
    ANSWERS(0, weir_take(w, "mail", NULL, 1, 0, &take));
    WITHOUT(weir_take_wait(NULL, "line/1", "5/1h", 1, 0, 1, &take));
    REFUSED(w, "target", weir_take_wait(w, NULL, "5/1h", 1, 0, 1, &take));
    REFUSED(w, "take", weir_take_wait(w, "line/1", "5/1h", 1, 0, 1, NULL));
    ANSWERS(0, weir_take_wait(w, "mail", NULL, 1, 0, 1, &take));
    WITHOUT(weir_take_many(NULL, &item, 1, "5/1h", 0));
    REFUSED(w, "items", weir_take_many(w, NULL, 1, "5/1h", 0));
    ANSWERS(0, weir_take_many(w, NULL, 0, "5/1h", 0));
    ANSWERS(0, weir_take_many(w, &item, 1, "5/1h", 0));
    assert_int_equal(item.status, WEIR_EUSAGE);
    assert_string_equal(item.why, "the target is NULL; name a limit");
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

static void producers(void **state)
{
    static const struct weir_job_spec job = {.type = "mail"}, without_type = {.args = "1"};
    struct stage *s = *state;
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

static void workers(void **state)
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
    WITHOUT(weir_worker_load(NULL, "./a.so"));
    REFUSED(worker, "file", weir_worker_load(worker, NULL));
    weir_worker_free(worker);
}

static void handlers(void **state)
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
    DOES_NOTHING(weir_log(NULL, "text"));
    ANSWERS(WEIR_RETRY, weir_job_retry(NULL, 1, NULL));
    ANSWERS(WEIR_DEAD, weir_job_dead(NULL, NULL));
    ANSWERS(WEIR_THROTTLED, weir_job_throttled(NULL, 1));
    DOES_NOTHING(weir_job_spent(NULL, 1));
    DOES_NOTHING(weir_job_end(NULL, WEIR_DONE));
}

/* Behind the others. */
static void none_is_left_out(void **state)
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
    static const struct CMUnitTest tests[] = {
        STAGE_TEST(producers),
        cmocka_unit_test(workers),
        cmocka_unit_test(handlers),
        cmocka_unit_test(none_is_left_out),
    };

    (void)argc;
    (void)argv;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* weir top without a terminal: what it shows of what was read, and what keys do. tests/test_top_terminal.c is the same in a real one. */
#include <locale.h>

#include "cli/top/action.h"
#include "cli/top/layout.h"
#include "cli/top/line.h"
#include "core/utf8.h"
#include "tests/test.h"
#include "view/format.h"

#define NOW (INT64_C(1795000000) * 1000000) /* 2026-11-18 11:06:40 UTC */
#define SECOND INT64_C(1000000)

static struct state top;
static struct top_snapshot *now;
static struct pasts pasts;
static struct health health;
static struct canvas canvas;
static struct rows rows;
static int height, width;
static char shown[1 << 16];

/* ---- What was read */

static void add_type(struct status *s, const char *name, int64_t waiting, double rate_now)
{
    struct type_status *t = &s->types[s->type_count++];

    *t = (struct type_status){.waiting = waiting,
                              .rate_now = rate_now,
                              .served = true,
                              .each = 1,
                              .next_start_us = -1,
                              .finish_us = -1,
                              .done = 7};
    snprintf(t->name, sizeof t->name, "%s", name);
}

static struct limits *one_limit(void)
{
    static const char *const rules[] = {"5/s"};
    struct limits *limits = calloc(1, sizeof *limits);
    struct rule_set kept;
    struct error e;

    limits->at = calloc(1, sizeof *limits->at);
    limits->count = 1;
    limits->now_us = NOW;
    assert_int_equal(rule_set_parse(rules, 1, &kept, &e), 0);
    assert_int_equal(limit_change(NULL, "mail", &kept, NOW, limits->at, &e), 0);
    limits->at->pause_until_us = NOW + 600 * SECOND;
    return limits;
}

/* Types as given, one limit, one worker, one queue that is paused. */
static int begin(void **unused)
{
    struct status s = {.now_us = NOW};

    s.types = calloc(8, sizeof *s.types);
    s.queues = calloc(2, sizeof *s.queues);
    s.workers = calloc(2, sizeof *s.workers);
    add_type(&s, "mail", 12345, 5);
    add_type(&s, "news", 3, 0);
    add_type(&s, "sms", 2000000, 1.5);
    s.types[0].waits_for =
        json_pack("{s:s, s:s, s:s, s:I, s:I, s:s}", "gate", "mail", "limit_name", "mail", "rule", "5/s",
                  "count", (json_int_t)5, "period", (json_int_t)SECOND, "until", "1795000001000000");
    s.types[0].finish_us = NOW + 482 * SECOND;
    s.types[0].because = LATER_KEYS;
    s.types[0].oldest_us = NOW - 200 * SECOND;
    s.types[1].served = false;
    strcpy(s.queues[0].name, "default");
    s.queues[0].paused_us = NOW - 60 * SECOND;
    s.queue_count = s.worker_count = 1;
    strcpy(s.workers[0].name, "w1");
    strcpy(s.workers[0].host, "ant");
    s.workers[0].pid = 42;
    s.workers[0].executors = 8;
    s.workers[0].running = 3;
    s.workers[0].seen_us = NOW - 2 * SECOND;
    s.workers[0].queues = json_pack("[s, s]", "default", "bulk*");
    now = top_snapshot_of(&s, one_limit(), 1);
    assert_non_null(now);
    now->report = json_pack("{s:s, s:{s:i}, s:[]}", "verdict", "flowing", "holds", "limit", 2, "checks");
    memset(&pasts, 0, sizeof pasts);
    health = (struct health){.interval_us = 2 * SECOND, .where = "weir"};
    state_begin(&top, false);
    height = 24;
    width = 80;
    return 0;
}

static int end(void **unused)
{
    rows_free(&rows);
    canvas_free(&canvas);
    top_snapshot_free(now);
    return 0;
}

/* ---- The screen as text, a line each */

static void read_canvas(void)
{
    char *to = shown;

    for (int row = 0; row < canvas.rows; row++) {
        for (int column = 0; column < canvas.columns; column++) {
            const struct cell *cell = canvas_cell(&canvas, row, column);

            assert_true(wcslen(cell->at) <= CELL_CHARS);
            for (const wchar_t *ch = cell->at; *ch; ch++)
                to += wctomb(to, *ch);
        }
        while (to > shown && to[-1] == ' ')
            to--;
        *to++ = '\n';
    }
    *to = '\0';
}

static void look_as(bool ascii)
{
    struct frame frame = {.now = now, .pasts = &pasts, .now_us = NOW, .ascii = ascii};
    const struct pane *p = state_pane(&top);

    rows_free(&rows);
    assert_true(canvas_begin(&canvas, height, width, ascii));
    assert_true(rows_choose(&rows, &frame, top.view, p->filter, p->sorted, p->backwards));
    top.room = layout_room(&canvas);
    state_settle(&top, &rows);
    layout_draw(&canvas, &top, &frame, &rows, &health);
    read_canvas();
}

static void look(void)
{
    look_as(false);
}

static void press(const char *keys)
{
    for (; *keys; keys++) {
        state_key(&top, (unsigned char)*keys, &rows);
        look();
    }
}

#define assert_shows(text)                                                                                   \
    do {                                                                                                     \
        if (!strstr(shown, text))                                                                            \
            fail_msg("not there: %s\n%s", text, shown);                                                      \
    } while (0)
#define assert_hides(text) assert_null(strstr(shown, text))
#define press_shows(keys, text)                                                                              \
    do {                                                                                                     \
        press(keys);                                                                                         \
        assert_shows(text);                                                                                  \
    } while (0)

/* The names of the rows, in order. */
static void expect_rows(const char *names)
{
    char found[512] = "";

    for (size_t i = 0; i < rows.count; i++)
        snprintf(found + strlen(found), sizeof found - strlen(found), "%s%s", i ? " " : "",
                 row_name(rows.at[i]));
    assert_string_equal(found, names);
}

static void expect_chosen(const char *name)
{
    const void *row = state_row(&top, &rows);

    assert_string_equal(row ? row_name(row) : "", name);
}

static void press_rows(const char *keys, const char *names)
{
    press(keys);
    expect_rows(names);
}

static void press_chosen(const char *keys, const char *name)
{
    press(keys);
    expect_chosen(name);
}

/* ---- Tests */

TEST_WITH(test_types_are_shown_with_their_rates_and_ends, begin, end)
{
    look();
    assert_shows("flowing: 2 types wait for their limits\n");
    assert_shows("weir, every 2s");
    assert_shows("sms             2,000k        0        0         -     1.5/s");
    assert_shows("mail            12,345        0        0       5/s       5/s");
    assert_shows("8m 2s+"); /* at the earliest */
    press_chosen("jg", "sms");
    press_shows("j", "mail: waits for mail, 5 a second, until ");
    assert_shows("last in 8m 2s (11:14:42)+; oldest 3m ago; 7 done");
}

TEST_WITH(test_rates_fit_their_columns, begin, end)
{
    static const struct {
        double rate;
        const char *shown;
    } cases[] = {{1.0 / 60, "0.0167/s"},
                 {1.0 / 86400, "0.00001/s"},
                 {0.83891, "0.839/s"},
                 {123456.7, "123,457/s"},
                 {1234567, "1,234k/s"}};

    for (size_t i = 0; i < COUNT(cases); i++) {
        now->status.types[0].rate_now = cases[i].rate;
        look();
        assert_shows(textf(" %s ", cases[i].shown));
    }
}

TEST_WITH(test_a_line_shows_the_last_minutes, begin, end)
{
    pasts.count = 1;
    strcpy(pasts.at[0].name, "mail");
    for (int i = 0; i < 8; i++)
        pasts.at[0].starts[PAST_MINUTES - 9 + i] = i + 1;
    pasts.at[0].starts[PAST_MINUTES - 1] = 1000; /* goes on, and is not shown */
    pasts.at[0].dead = 4;
    look();
    assert_shows("  ▁▂▃▄▅▆▇█");
    look_as(true);
    assert_shows("  _.,-~=*#");
    width = 120;
    look();
    assert_shows("DEAD 1H");
}

/* Of a limit or a type, as history_ask answers it. */
static void fill(struct past *past, const char *json)
{
    json_t *history = json_loads(json, 0, NULL);

    assert_non_null(history);
    past_fill(past, history);
    json_decref(history);
}

TEST(test_the_past_is_what_was_recorded)
{
    struct past type = {.name = "mail"}, limit = {.of_limit = true};

    fill(&type, "{\"now\": 7200000001, \"slots\": [{\"at\": 3600000000, \"starts\": 1, \"dead\": 5},"
                "{\"at\": 3660000000, \"starts\": 2, \"dead\": 1}, {\"at\": 7140000000, \"starts\": 3, "
                "\"retried\": 4},"
                "{\"at\": 7200000000, \"starts\": 4}, {\"at\": 7260000000, \"starts\": 5}]}");
    assert_int_equal(type.starts[0], 2); /* an hour; what is older or yet to come is left out */
    assert_int_equal(type.starts[PAST_MINUTES - 2], 3);
    assert_int_equal(type.starts[PAST_MINUTES - 1], 4);
    assert_int_equal(type.dead, 1);
    assert_int_equal(type.retried, 4);
    fill(&limit, "{\"now\": 7200000000, \"slots\": [{\"at\": 7140000000, \"granted\": 9, \"wasted\": "
                 "{\"no_job\": 2}}],"
                 "\"starts_now\": [[7160000000, 90], [7170000000, 30], [7194000000, 60], [7197000000, 90]]}");
    assert_int_equal(limit.starts[PAST_MINUTES - 2], 9);
    assert_int_equal(limit.slots.no_job, 2);
    assert_true(limit.kept == 3); /* 90 in 30 s, which end before what is not recorded yet */
    fill(&limit, "{}");
    past_fill(&limit, NULL);
}

TEST_WITH(test_limits_workers_and_queues, begin, end)
{
    look();
    press_shows("2", "mail         5/1s              12,345");
    assert_shows("paused until 11:16:40");
    assert_shows("12,345 jobs of 1 type wait for it");
    press_shows("3", " working             3/8      2s default,bulk*\n");
    assert_shows("w1: process 42 of ant, version unknown");
    press_shows("\t", "default");
    assert_shows("paused 1m ago");
    press_shows("\t", "TYPE");
}

TEST_WITH(test_rows_are_sorted_and_turned, begin, end)
{
    look();
    expect_rows("sms mail news"); /* most jobs first */
    press_rows("o", "news mail sms");
    press_rows("<", "mail news sms"); /* by name */
    press_rows("o", "sms news mail");
    press("<"); /* columns that no order has are left out */
    press_rows(">", "mail news sms");
    press("2");
    press_rows("1", "mail news sms"); /* a view keeps its order */
}

TEST_WITH(test_what_has_no_time_comes_last, begin, end)
{
    look();
    press_rows(">>>>>>>", "mail news sms"); /* ENDS */
    press_rows("o", "news sms mail");
}

TEST_WITH(test_all_that_wait_are_sorted_by, begin, end)
{
    now->status.types[1].aside = 20000;
    look();
    expect_rows("sms news mail");
}

TEST_WITH(test_the_row_stays_chosen_whatever_comes, begin, end)
{
    look();
    press_chosen("j", "mail");
    now->status.types[0].waiting = 1;
    look();
    expect_rows("sms news mail");
    expect_chosen("mail");
    strcpy(now->status.types[0].name, "other"); /* it is gone */
    look();
    expect_chosen("other"); /* what is in its place */
}

TEST_WITH(test_a_filter_leaves_names_with_that_in_them, begin, end)
{
    look();
    press_rows("/s", "sms news");
    assert_shows("/s_");
    press_rows("m", "sms");
    press_shows("x", "none has smx in its name; Esc shows all");
    press_rows("\x7f"
               "\n",
               "sms");
    press("q"); /* is a command again */
    assert_true(top.quit);
    press_rows("\x1b", "sms mail news");
}

TEST_WITH(test_a_long_list_scrolls, begin, end)
{
    json_decref(now->status.types[0].waits_for);
    free(now->status.types);
    now->status.types = calloc(100, sizeof *now->status.types);
    now->status.type_count = 0;
    for (int i = 0; i < 100; i++)
        add_type(&now->status, textf("t%02d", i), 100 - i, 0);
    look();
    assert_shows("t00");
    assert_shows("t17");
    assert_hides("t18");
    press_chosen(" ", "t18");
    assert_shows("19 of 100");
    press_shows("G", "t99");
    assert_hides("t81");
    height = 40;
    look();
    assert_shows("t66"); /* a larger screen is full */
    press_chosen("g", "t00");
}

TEST_WITH(test_a_screen_that_is_too_small_says_so, begin, end)
{
    static const int sizes[][2] = {{23, 80}, {24, 79}, {10, 60}, {1, 1}, {2, 20}, {24, 1}};

    for (size_t i = 0; i < COUNT(sizes); i++) {
        height = sizes[i][0];
        width = sizes[i][1];
        look();
        press("j?jq");
    }
    height = 10;
    width = 60;
    look();
    assert_shows("60x10 is too small: 80x24 at least");
}

TEST_WITH(test_redis_that_does_not_answer_is_said, begin, end)
{
    health.silent_us = 5 * SECOND;
    strcpy(health.why, "connection refused");
    look();
    assert_shows("no answer from Redis for 5 s: connection refused\n");
    assert_shows("mail"); /* what was known stays */
    top_snapshot_free(now);
    now = NULL;
    health = (struct health){.interval_us = SECOND};
    look();
    assert_shows("reading...");
    press("1234?jq");
}

/* ---- Keys that change something */

/* What was ordered since; then it is on its way. */
static void expect_order(enum order_kind kind, const char *name)
{
    assert_int_equal(top.ordered ? top.order.kind : ORDER_NONE, kind);
    if (kind)
        assert_string_equal(top.order.name, name);
    if (top.ordered)
        top.order.kind = ORDER_NONE;
}

static void bring(const char *said)
{
    struct result r = {.status = 0};

    snprintf(r.said, sizeof r.said, "%s", said);
    action_result(&top, &r);
    look();
}

TEST_WITH(test_a_key_gives_an_order_and_its_result_is_said, begin, end)
{
    look();
    press("4p");
    expect_order(ORDER_PAUSE_QUEUE, "default");
    press_shows("r", "the last order is still on its way");
    expect_order(ORDER_NONE, "");
    bring("it failed");
    assert_shows("it failed");
    press("r");
    expect_order(ORDER_RESUME_QUEUE, "default");
}

TEST_WITH(test_a_worker_is_quieted_after_a_question, begin, end)
{
    look();
    press_shows("3u", "worker w1: takes no more jobs, and stays? [y/N]");
    expect_order(ORDER_NONE, "");
    press_shows(" ", "nothing was changed");
    expect_order(ORDER_NONE, "");
    press("uy");
    expect_order(ORDER_QUIET_WORKER, "w1");
}

TEST_WITH(test_types_and_limits_are_paused, begin, end)
{
    look();
    press_chosen("jp", "mail");
    expect_order(ORDER_PAUSE_TYPE, "mail");
    bring("type mail paused");
    press("r");
    expect_order(ORDER_RESUME_TYPE, "mail");
    bring("type mail resumed");
    press("2p");
    expect_order(ORDER_PAUSE_LIMIT, "mail");
    bring("limit mail paused for 10m");
    press("r");
    expect_order(ORDER_RESUME_LIMIT, "mail");
}

TEST_WITH(test_a_command_is_typed, begin, end)
{
    look();
    press_shows(":job q4p", ":weir job q4p_");
    expect_order(ORDER_NONE, "");
    press("\x1b");
    assert_false(top.entered);
    press(":\n");
    assert_false(top.entered);
    press(":rate set mail 50/s\n");
    assert_true(top.entered);
    assert_string_equal(top.command, "rate set mail 50/s");
    assert_int_equal(top.mode, MODE_LIST);
}

TEST_WITH(test_keys_go_into_what_is_shown, begin, end)
{
    static const char *const cases[][2] = {
        {"d", "dead list --group"},
        {"b", "batch list"},
        {"s", "schedule list"},
        {"\n", "type show mail; weir dead list --group --type mail; weir job list type:mail --limit 10"},
        {"2\n", "rate show mail"},
        {"3\n", "job list worker:w1"},
        {"4\n", "job list queue:default --limit 20"},
    };

    state_begin(&top, true); /* they change nothing */
    look();
    press("j");
    for (size_t i = 0; i < COUNT(cases); i++, top.entered = false) {
        press(cases[i][0]);
        assert_true(top.entered);
        assert_string_equal(top.command, cases[i][1]);
    }
    strcpy(now->status.types[1].name, "a;b"); /* the shell would take it for two */
    press("1/a;\n\n");
    assert_false(top.entered);
}

TEST_WITH(test_a_long_name_has_the_width_first, begin, end)
{
    strcpy(now->status.types[1].name, "customer.of.the.north.weekly.mail");
    look();
    assert_shows("\ncustomer.of.the.north.weekly.mail ");
    assert_shows(" DEAD "); /* 80 columns */
    memset(now->status.types[1].name, 'x', 60);
    strcpy(now->status.types[1].name + 60, "y");
    look();
    assert_shows("xxxx…xxxx");
    assert_shows("xy ");
    look_as(true);
    assert_shows("xxxx~xxxx");
}

TEST_WITH(test_read_only_gives_no_orders, begin, end)
{
    top.read_only = true;
    for (int view = '1'; view < '1' + VIEW_COUNT; view++) {
        state_key(&top, view, &rows);
        look();
        for (int key = ' ' + 1; key < 127; key++)
            if (!strchr("1234/q?h<>o", key)) {
                state_key(&top, key, &rows);
                expect_order(ORDER_NONE, "");
                assert_int_equal(top.mode, MODE_LIST);
            }
    }
    press_shows("4p", "read-only: start weir top without --read-only to pause");
    press_shows(":", "read-only: start weir top without --read-only to run commands");
}

/* ---- Words of others */

static void expect_put(bool ascii, int room, const char *text, const char *expected)
{
    assert_true(canvas_begin(&canvas, 1, 20, ascii));
    canvas_put(&canvas, 0, 0, room, INK_PLAIN, text);
    canvas_put(&canvas, 0, room, 1, INK_PLAIN, "|");
    read_canvas();
    if (strcmp(shown, expected) != 0)
        fail_msg("%s: %s, not %s", text, shown, expected);
}

TEST_WITH(test_words_keep_their_columns, begin, end)
{
    static const struct {
        bool ascii;
        const char *text, *expected;
    } cases[] = {
        {false, "mail", "mail    |\n"},
        {false, "post-office", "post-of…|\n"},
        {true, "post-office", "post-of~|\n"},
        {false, "post\x1b[2J", "post…   |\n"},
        {false, "a\nb\tc", "a\\x0ab… |\n"},
        {false, "日本", "日本    |\n"},
        {false, "日本語日本", "日本語… |\n"}, /* a half is never shown */
        {true, "日", "\\xe6~   |\n"},
        {false, "e\u0301a", "e\u0301a      |\n"},
        {false, "日\u0301a", "日\u0301a     |\n"},
        {false, "\u0301a", "a       |\n"},
        {false, "e\u0301\u0301\u0301\u0301\u0301\u0301", "e\u0301\u0301\u0301       |\n"},
        {false, "a\u202eb", "a\\u202eb|\n"},
        {false, "\xff", "\\xff    |\n"},
        {false, "", "        |\n"},
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        expect_put(cases[i].ascii, 8, cases[i].text, cases[i].expected);
}

TEST_WITH(test_nothing_is_put_outside, begin, end)
{
    assert_true(canvas_begin(&canvas, 2, 4, false));
    for (int row = -1; row < 4; row++)
        for (int column = -2; column < 8; column++)
            for (int room = -1; room < 8; room++) {
                canvas_put(&canvas, row, column, room, INK_PLAIN, "日本語");
                canvas_put_right(&canvas, row, column, room, INK_PLAIN, "ab日");
                canvas_reverse(&canvas, row, column, room);
            }
}

TEST(test_a_line_is_typed)
{
    char line[8] = "";

    line_key(line, sizeof line, 'a');
    line_key(line, sizeof line, 0x65e5);
    assert_string_equal(line, "a日");
    line_key(line, sizeof line, 0x1f600); /* no room: it would be cut */
    line_key(line, sizeof line, KEY_IS_UP);
    line_key(line, sizeof line, '\n');
    assert_string_equal(line, "a日");
    line_key(line, sizeof line, 0xe9);
    assert_string_equal(line, "a日é");
    line_key(line, sizeof line, KEY_IS_ERASE);
    line_key(line, sizeof line, KEY_IS_ERASE);
    assert_string_equal(line, "a");
    line_key(line, sizeof line, KEY_IS_ERASE);
    line_key(line, sizeof line, KEY_IS_ERASE);
    assert_string_equal(line, "");
    line_key(line, sizeof line, 'a');
    line_key(line, sizeof line, 'b');
    line_key(line, sizeof line, KEY_IS_KILL);
    assert_string_equal(line, "");
}

/* At most a hundredth of Redis: by what it takes for each row, and by the time that the answers took. */
TEST(test_how_often_it_reads)
{
    static const struct {
        int64_t rows, took_us, pause_us;
    } cases[] = {
        {10, 5000, 2 * SECOND},        /* the interval */
        {10, 10 * SECOND, 2 * SECOND}, /* Redis stood still */
        {13000, 150000, 15 * SECOND},  {13000, 10 * SECOND, 19700000}, {13000, 100, 2 * SECOND},
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(top_snapshot_pause(cases[i].rows, cases[i].took_us, 2 * SECOND), cases[i].pause_us);
}

int main(void)
{

    setlocale(LC_CTYPE, "C.UTF-8");
    setenv("TZ", "UTC", 1);
    return tests_run(NULL, NULL);
}

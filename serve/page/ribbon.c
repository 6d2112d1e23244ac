#include "serve/page/pages.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "queue/history/history.h"
#include "serve/page/parts.h"

#define PAST_US 60000000
#define AHEAD_US 15000000
#define WIDTH 1500 /* of a lane, in units of 50 ms */
#define UNIT_US ((PAST_US + AHEAD_US) / WIDTH)
#define BIN_US 500000 /* starts are counted in bars of so long, as wide as ten units */
#define BINS ((int)(PAST_US / BIN_US))
#define REPORT_BINS 12 /* a worker sends what it counts every 5 s, about */
#define HEIGHT 40
#define TICKS_FROM_US 400000 /* slots that are closer are a band */

struct ribbon {
    const struct limit *limit;
    int64_t now_us;
    int64_t bins[BINS];    /* starts, the oldest first */
    const json_t *next;    /* the jobs that start next */
    const json_t *history; /* NULL: nothing was recorded */
};

/* Why slots were wasted; names as history has them, classes as of the marks of states. */
static const struct reason {
    const char *name, *class, *lane, *words;
} reasons[] = {{"no_job", "waiting", "wasted: no job", "no job waited"},
               {"no_executor", "held", "wasted: no executor", "no executor was free"},
               {"held", "parked", "wasted: held", "something else held the job"},
               {"late", "scheduled", "wasted: late", "jobs in flight, or late ones"}};
#define REASONS (sizeof reasons / sizeof *reasons)

static int x_of(const struct ribbon *r, int64_t us)
{
    return (int)((us - r->now_us + PAST_US) / UNIT_US);
}

static bool is_shown(const struct ribbon *r, int64_t us)
{
    return us >= r->now_us - PAST_US && us < r->now_us + AHEAD_US;
}

/* ---- What is known */

static void read_starts(struct ribbon *r)
{
    json_t *start;
    size_t i;

    json_array_foreach(json_object_get(r->history, "starts_now"), i, start) {
        int64_t bin = (answer_int_at(start, 0) - (r->now_us - PAST_US)) / BIN_US;

        if (answer_int_at(start, 0) >= r->now_us - PAST_US && bin < BINS)
            r->bins[bin] += answer_int_at(start, 1);
    }
}

/* Finds the first of the last bars without starts: workers send what they count every few seconds, so these may have some. BINS: none. */
static int first_unreported(const struct ribbon *r)
{
    int first = BINS;

    while (first > BINS - REPORT_BINS && r->bins[first - 1] == 0)
        first--;
    return first;
}

static int64_t all_starts(const struct ribbon *r)
{
    int64_t sum = 0;

    for (int i = 0; i < BINS; i++)
        sum += r->bins[i];
    return sum;
}

static bool is_for(const json_t *loss, const struct reason *reason)
{
    const char *name = json_string_value(json_array_get(loss, 1));

    return name && strcmp(name, reason->name) == 0;
}

/* Counts slots wasted in the last minute for that reason; *most: in one second, for any. */
static int64_t wasted(const struct ribbon *r, const struct reason *reason, int64_t *most)
{
    int64_t sum = 0;
    json_t *loss;
    size_t i;

    *most = 1;
    json_array_foreach(json_object_get(r->history, "wasted_now"), i, loss) {
        *most = answer_int_at(loss, 2) > *most ? answer_int_at(loss, 2) : *most;
        sum += is_for(loss, reason) ? answer_int_at(loss, 2) : 0;
    }
    return sum;
}

static bool is_rate(const struct rule *rule)
{
    return !*rule->by && rule->algorithm != ALGORITHM_CONCURRENCY;
}

/* Starts in a bar that keep a rule, of those with one at least the strictest; 0: there is none. */
static double set_in_bin(const struct ribbon *r)
{
    double least = 0;

    for (size_t i = 0; r->limit->readable && i < r->limit->set.count; i++) {
        const struct rule *rule = &r->limit->set.at[i];
        double here = is_rate(rule) ? (double)rule->count * BIN_US / (double)rule->period_us : 0;

        if (here >= 1 && (least == 0 || here < least))
            least = here;
    }
    return least;
}

/* True when its wasted slots are counted, as those of gcra and fixed-window are. */
static bool counts_wasted(const struct ribbon *r)
{
    bool any = false;

    for (size_t i = 0; r->limit->readable && i < r->limit->set.count; i++) {
        const struct rule *rule = &r->limit->set.at[i];

        if (is_rate(rule) && rule->algorithm != ALGORITHM_GCRA && rule->algorithm != ALGORITHM_FIXED_WINDOW)
            return false;
        any |= is_rate(rule);
    }
    return any;
}

/* ---- Lanes */

static void begin_lane(struct page *p, const char *name)
{
    html(p->h,
         "<div class=\"lane\"><span class=\"mono\">%s</span><svg viewBox=\"0 0 %d %d\" "
         "preserveAspectRatio=\"none\" "
         "aria-hidden=\"true\">",
         name, WIDTH, HEIGHT);
}

static void put_mark(struct page *p, const struct ribbon *r, const char *class, int64_t us)
{
    if (is_shown(r, us))
        html(p->h, "<path class=\"%r\" d=\"M%d 0v%d\"/>", class, x_of(r, us), HEIGHT);
}

static void end_lane(struct page *p, const struct ribbon *r)
{
    put_mark(p, r, "now", r->now_us);
    html(p->h, "</svg></div>");
}

static int64_t most_in_bin(const struct ribbon *r)
{
    int64_t most = 1;

    for (int i = 0; i < BINS; i++)
        most = r->bins[i] > most ? r->bins[i] : most;
    return most;
}

static void write_starts(struct page *p, const struct ribbon *r)
{
    double set = set_in_bin(r);
    int64_t most = most_in_bin(r);
    const json_t *job;
    size_t k;

    most = set > (double)most ? (int64_t)(set + 0.99) : most;
    begin_lane(p, "starts");
    if (first_unreported(r) < BINS)
        html(p->h, "<rect class=\"slots\" x=\"%d\" width=\"%d\" height=\"%d\"/>",
             first_unreported(r) * (BIN_US / UNIT_US), (BINS - first_unreported(r)) * (BIN_US / UNIT_US),
             HEIGHT);
    for (int i = 0; i < BINS; i++) {
        int height = (int)(r->bins[i] * (HEIGHT - 4) / most), wide = BIN_US / UNIT_US;

        if (r->bins[i])
            html(p->h, "<rect class=\"start\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>", i * wide,
                 HEIGHT - height, wide - 2, height);
    }
    if (set > 0)
        html(p->h, "<path class=\"set\" d=\"M0 %dH%d\"/>", HEIGHT - (int)(set / (double)most * (HEIGHT - 4)),
             WIDTH);
    json_array_foreach((json_t *)r->next, k, job)
        if (json_object_get(job, "start"))
            put_mark(p, r, "next", answer_int(job, "start"));
    end_lane(p, r);
}

/* A mark for each second in which slots were wasted for that reason, the more the higher. */
static void write_wasted(struct page *p, const struct ribbon *r, const struct reason *reason)
{
    int64_t most;
    json_t *loss;
    size_t i;

    if (wasted(r, reason, &most) == 0)
        return;
    begin_lane(p, reason->lane);
    json_array_foreach(json_object_get(r->history, "wasted_now"), i, loss) {
        int x = x_of(r, answer_int_at(loss, 0)),
            height = 10 + (int)(answer_int_at(loss, 2) * (HEIGHT - 14) / most);

        if (is_for(loss, reason) && x >= 0 && x < WIDTH)
            html(p->h, "<rect class=\"s-%r\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>", reason->class,
                 x, HEIGHT - height, 2 * (BIN_US / UNIT_US) - 3, height);
    }
    end_lane(p, r);
}

static bool is_even(const struct rule *rule)
{
    return rule->algorithm == ALGORITHM_GCRA || rule->algorithm == ALGORITHM_TOKEN_BUCKET;
}

/* Writes the slots of a rule: one each T, on the grid of the one that comes next. */
static void write_slots(struct page *p, const struct ribbon *r, size_t i)
{
    const struct rule *rule = &r->limit->set.at[i];
    int64_t t_us = rule->count > 0 ? rule->period_us / rule->count : 0,
            next_us = limit_nth_start(r->limit, i, 1), at_us = next_us;
    char text[64], period[32];

    rule_format_period(rule, period);
    snprintf(text, sizeof text, "%" PRId64 "/%s", rule->count, period);
    begin_lane(p, text);
    if (is_even(rule) && t_us >= TICKS_FROM_US && next_us != GATE_NEVER) {
        while (at_us - t_us > r->now_us - PAST_US)
            at_us -= t_us;
        for (; at_us < r->now_us + AHEAD_US; at_us += t_us)
            put_mark(p, r, "slot", at_us);
    } else if (t_us > 0) {
        html(p->h, "<rect class=\"slots\" y=\"%d\" width=\"%d\" height=\"%d\"/>", HEIGHT / 4, WIDTH,
             HEIGHT / 2);
    }
    end_lane(p, r);
}

/* Returns when that line of the log changed this limit; 0: it did not. */
static int64_t change_time(const struct ribbon *r, const json_t *line)
{
    const char *text = json_string_value(line);
    json_t *change = text ? answer_parse(text, strlen(text)) : NULL;
    int64_t at_us = change_names(answer_text(change, "what"), r->limit->name)
                        ? (int64_t)(json_number_value(json_object_get(change, "at")) * 1e6)
                        : 0;

    json_decref(change);
    return at_us;
}

static void write_change_marks(struct page *p, const struct ribbon *r, const json_t *changes)
{
    bool begun = false;

    for (size_t i = 0; i < json_array_size(changes); i++) {
        int64_t at_us = change_time(r, json_array_get(changes, i));

        if (!is_shown(r, at_us))
            continue;
        if (!begun)
            begin_lane(p, "rules changed");
        begun = true;
        put_mark(p, r, "change", at_us);
    }
    if (begun)
        end_lane(p, r);
}

/* ---- Words */

static void write_used(struct page *p, const struct ribbon *r)
{
    struct history_sum sum = history_sum(r->history);
    const struct part parts[] = {{"done", sum.granted, "granted"},
                                 {reasons[0].class, sum.no_job, "wasted: no job waited"},
                                 {reasons[1].class, sum.no_executor, "wasted: no executor was free"},
                                 {reasons[2].class, sum.held, "wasted: something else held the job"},
                                 {reasons[3].class, sum.late, "wasted: jobs in flight, or late ones"},
                                 {"dead", sum.throttled, "said stop (429)"}};

    if (sum.granted + sum.no_job + sum.no_executor + sum.held + sum.late + sum.throttled == 0) {
        html(p->h, "<p class=\"pale\">Nothing has been recorded in the last ten minutes: workers send what "
                   "they count every few "
                   "seconds.</p>");
        return;
    }
    html(p->h, "<div class=\"used\"><h3>Slots of the last ten minutes</h3>");
    put_bar(p, parts, 6);
    put_legend(p, parts, 6);
    html(p->h, "</div>");
}

/* Writes what the picture shows, in words. */
static void write_words(struct page *p, const struct ribbon *r)
{
    int64_t most, all = 0, counts[REASONS];
    const char *between = ": ";

    for (size_t i = 0; i < REASONS; i++)
        all += counts[i] = wasted(r, &reasons[i], &most);
    html(p->h, "<p class=\"said\">%n started", all_starts(r));
    if (all > 0)
        html(p->h, ", %n slots were wasted", all);
    else if (counts_wasted(r))
        html(p->h, ", no slot was wasted");
    for (size_t i = 0; i < REASONS; i++)
        if (counts[i] > 0) {
            html(p->h, counts[i] < all ? "%r%r, %n" : "%r%r", between, reasons[i].words, counts[i]);
            between = "; ";
        }
    html(p->h, ".</p>");
}

static void put_key_word(struct page *p, const char *class, const char *words)
{
    html(p->h, "<span><i class=\"key %r\"></i>%r</span> ", class, words);
}

static void write_key(struct page *p, const struct ribbon *r)
{
    html(p->h, "<p class=\"legend\">");
    put_key_word(p, "k-start", "starts, by half seconds");
    if (set_in_bin(r) > 0)
        put_key_word(p, "k-set", "its rate");
    put_key_word(p, "k-next", "starts to come");
    if (first_unreported(r) < BINS)
        put_key_word(p, "k-unreported", "not reported by the workers yet");
    html(p->h, "</p>");
}

static void write_next(struct page *p, const struct ribbon *r)
{
    html(p->h, "<details class=\"nexts\" id=\"nexts\"><summary>The next ");
    html(p->h, json_array_size(r->next) == 1 ? "start" : "%d starts", (int)json_array_size(r->next));
    html(p->h, "</summary>");
    put_table(p, "", "Type|Key|Job|#Start");
    for (size_t i = 0; i < json_array_size(r->next); i++) {
        const json_t *job = json_array_get(r->next, i);

        html(p->h, "<tr>");
        put_doc_link(p, "type", "types", job, "type");
        put_doc_secret(p, "key", job, "key");
        put_doc_job(p, job, "");
        put_cell(p, "start", false);
        put_start(p, answer_int(job, "start"), "when a job ends");
        html(p->h, "</td></tr>");
    }
    put_table_end(p);
    html(p->h, "<p class=\"pale\">In the order of turns, by this limit and the gates of keys. Another limit "
               "may hold "
               "some for longer.</p></details>");
}

static void write_drawing(struct page *p, const struct ribbon *r, const json_t *changes)
{
    html(p->h, "<div class=\"ribbon\">");
    write_starts(p, r);
    for (size_t i = 0; r->limit->readable && i < r->limit->set.count; i++)
        if (is_rate(&r->limit->set.at[i]))
            write_slots(p, r, i);
    for (size_t i = 0; i < REASONS; i++)
        write_wasted(p, r, &reasons[i]);
    write_change_marks(p, r, changes);
    html(p->h, "<div class=\"lane axis\"><span></span><span class=\"scale\"><span>60 s "
               "ago</span><span>now</span><span>in 15 s</span>"
               "</span></div></div>");
}

void write_ribbon(struct page *p, const struct limits *limits, const struct limit *limit,
                  const json_t *changes, const json_t *next)
{
    const struct history_call call = {.name = limit->name, .of_limit = true, .slots = 10};
    struct ribbon r = {.limit = limit, .now_us = limits->now_us, .next = next};
    json_t *history = NULL;

    if (history_ask(p->w, -1, &call, &history) < 0)
        history = NULL;
    r.history = history;
    r.now_us = answer_int_or(history, "now", r.now_us);
    read_starts(&r);
    html(p->h, "<section><h2>The last minute</h2>");
    write_drawing(p, &r, changes);
    write_key(p, &r);
    write_words(p, &r);
    write_used(p, &r);
    if (json_array_size(next) > 0)
        write_next(p, &r);
    html(p->h, "</section>");
    json_decref(history);
}

#include "serve/page/ribbon.h"

#include <stdio.h>
#include <string.h>

#include "queue/inspect/history.h"
#include "serve/page/parts.h"

#define PAST_US 60000000
#define AHEAD_US 15000000
#define WIDTH 1500 /* of a lane, in units of 50 ms */
#define UNIT_US ((PAST_US + AHEAD_US) / WIDTH)
#define BIN_US 500000 /* starts are counted in bars of so long, as wide as ten units */
#define BINS ((int)(PAST_US / BIN_US))
#define HEIGHT 40
#define TICKS_FROM_US 400000 /* slots that are closer are a band */
#define NEXT_MOST 20

struct ribbon {
    const struct limit *limit;
    int64_t now_us;
    int64_t bins[BINS]; /* starts, the oldest first */
    int64_t next_us[NEXT_MOST];
    int next_count;
    const json_t *history; /* NULL: nothing was recorded */
};

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

    json_array_foreach(json_object_get(r->history, "starts_now"), i, start)
    {
        int64_t bin = (answer_int_at(start, 0) - (r->now_us - PAST_US)) / BIN_US;

        if (answer_int_at(start, 0) >= r->now_us - PAST_US && bin < BINS)
            r->bins[bin] += answer_int_at(start, 1);
    }
}

/* When the n-th start from now is, as far as all rules for all keys go. */
static int64_t nth_start(const struct limit *limit, int64_t n)
{
    int64_t latest_us = limit_looked_at(limit);

    for (size_t i = 0; i < limit->set.count; i++)
        if (!*limit->set.at[i].by) {
            int64_t at_us = limit_nth_start(limit, i, n);

            latest_us = at_us > latest_us ? at_us : latest_us;
        }
    return latest_us;
}

static void read_next(struct ribbon *r, int64_t backlog)
{
    for (int n = 0; n < NEXT_MOST && n < backlog && r->limit->readable; n++) {
        int64_t at_us = nth_start(r->limit, n + 1);

        if (at_us == GATE_NEVER)
            return;
        r->next_us[r->next_count++] = at_us;
    }
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
    int64_t most = most_in_bin(r);

    begin_lane(p, "starts");
    for (int i = 0; i < BINS; i++) {
        int height = (int)(r->bins[i] * (HEIGHT - 4) / most), wide = BIN_US / UNIT_US;

        if (r->bins[i])
            html(p->h, "<rect class=\"start\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>", i * wide,
                 HEIGHT - height, wide - 2, height);
    }
    for (int i = 0; i < r->next_count; i++)
        put_mark(p, r, "next", r->next_us[i]);
    end_lane(p, r);
}

static bool is_even(const struct rule *rule)
{
    return rule->algorithm == ALGORITHM_GCRA || rule->algorithm == ALGORITHM_TOKEN_BUCKET;
}

/* The slots of a rule: one each T, on the grid of the one that comes next. */
static void write_slots(struct page *p, const struct ribbon *r, size_t i)
{
    const struct rule *rule = &r->limit->set.at[i];
    int64_t t_us = rule->count > 0 ? rule->period_us / rule->count : 0,
            next_us = limit_nth_start(r->limit, i, 1), at_us = next_us;
    char text[RULE_TEXT_SIZE];

    rule_format(rule, text);
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

static void write_change_marks(struct page *p, const struct ribbon *r, const json_t *changes)
{
    int shown = 0;

    begin_lane(p, "changes");
    for (size_t i = 0; i < json_array_size(changes); i++) {
        const char *text = json_string_value(json_array_get(changes, i));
        json_t *change = text ? answer_parse(text, strlen(text)) : NULL;
        int64_t at_us = (int64_t)(json_number_value(json_object_get(change, "at")) * 1e6);

        if (change_names(answer_text(change, "what"), r->limit->name) && is_shown(r, at_us)) {
            put_mark(p, r, "change", at_us);
            shown++;
        }
        json_decref(change);
        if (at_us < r->now_us - PAST_US)
            break;
    }
    end_lane(p, r);
}

/* ---- Words */

static void write_used(struct page *p, const struct ribbon *r)
{
    struct history_sum sum = history_sum(r->history);
    const struct part parts[] = {{"done", sum.granted, "granted"},
                                 {"waiting", sum.no_job, "wasted: no job waited"},
                                 {"held", sum.no_executor, "wasted: no executor was free"},
                                 {"parked", sum.held, "wasted: something else held the job"},
                                 {"scheduled", sum.late, "wasted: jobs in flight, or late ones"},
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

/* The type whose jobs come next, where it is the only one that waits. */
static const struct limit_type *only_type(const struct limits *limits, const char *name)
{
    const struct limit_type *only = NULL;
    size_t count;
    const struct hold *holds = limits_holds(limits, name, &count);

    for (size_t i = 0; i < count; i++)
        if (holds[i].type->waiting + holds[i].type->parked > 0) {
            if (only)
                return NULL;
            only = holds[i].type;
        }
    return only;
}

static void write_next(struct page *p, const struct ribbon *r, const struct limit_type *only)
{
    html(p->h, "<details class=\"nexts\"><summary>The next %d starts%r", r->next_count, only ? ", of " : "");
    if (only)
        html(p->h, "<bdi>%s</bdi>", only->name);
    html(p->h, "</summary><ol>");
    for (int i = 0; i < r->next_count; i++) {
        html(p->h, "<li>");
        put_time(p, r->next_us[i], "");
        html(p->h, "</li>");
    }
    html(p->h, "</ol></details>");
}

static void write_drawing(struct page *p, const struct ribbon *r, const json_t *changes)
{
    html(p->h, "<div class=\"ribbon\">");
    write_starts(p, r);
    for (size_t i = 0; r->limit->readable && i < r->limit->set.count; i++)
        if (!*r->limit->set.at[i].by && r->limit->set.at[i].algorithm != ALGORITHM_CONCURRENCY)
            write_slots(p, r, i);
    write_change_marks(p, r, changes);
    html(p->h, "<div class=\"lane axis\"><span></span><span class=\"scale\"><span>60 s "
               "ago</span><span>now</span><span>in 15 s</span>"
               "</span></div></div>");
}

void write_ribbon(struct page *p, const struct limits *limits, const struct limit *limit,
                  const json_t *changes)
{
    const struct history_call call = {.name = limit->name, .of_limit = true, .slots = 10};
    struct ribbon r = {.limit = limit, .now_us = limits->now_us};
    json_t *history = NULL;

    if (history_ask(p->w, -1, &call, &history) < 0)
        history = NULL;
    r.history = history;
    read_starts(&r);
    read_next(&r, limits_backlog(limits, limit->name));
    html(p->h, "<section><h2>The last minute <small>starts (bars) against the slots of each rule (ticks), "
               "what comes "
               "(thin), changes of its rules</small></h2>");
    write_drawing(p, &r, changes);
    write_used(p, &r);
    if (r.next_count)
        write_next(p, &r, only_type(limits, limit->name));
    html(p->h, "</section>");
    json_decref(history);
}

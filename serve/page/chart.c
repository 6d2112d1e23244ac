#include "serve/page/pages.h"

#include <string.h>

#include "queue/history/history.h"
#include "serve/page/parts.h"

#define TALL 100 /* the height of a drawing, in its own units */
#define WIDE 10  /* of a slot */
#define BUCKETS 33
#define SLOTS_LEAST 24
#define LINE_FAR 3 /* a line so many times above the columns would make them flat */

static const char *const outcomes[] = {"done", "retried", "dead", "cancelled", "throttled"};
#define OUTCOMES (sizeof outcomes / sizeof *outcomes)
static const char *const outcome_classes[] = {"done", "scheduled", "dead", "cancelled", "throttled"};

/* Returns the place of a slot, from 0 at the left edge; below 0: it is older. */
static int place_of(const json_t *history, const json_t *slot, int slots)
{
    int64_t step_us = answer_int_or(history, "step", 60000000), last = answer_int(history, "now") / step_us;

    return slots - 1 - (int)(last - answer_int(slot, "at") / step_us);
}

static int64_t most_of(const int64_t *values, int count, double least)
{
    int64_t most = (int64_t)(least + 0.5);

    for (int i = 0; i < count; i++)
        most = values[i] > most ? values[i] : most;
    return most > 0 ? most : 1;
}

static double per_slot(const json_t *history, double a_second)
{
    return a_second * (double)answer_int_or(history, "step", 60000000) / 1e6;
}

static void put_most(struct page *p, double most, int64_t top, int slots)
{
    if (most > 0)
        html(p->h, "<path class=\"most\" d=\"M0 %dH%d\"/>", TALL - (int)(most / (double)top * (TALL - 4)),
             slots * WIDE);
}

/* ---- The small line */

void put_spark(struct page *p, const json_t *history, int slots, double most)
{
    int64_t values[HISTORY_MINUTES] = {0}, top;
    json_t *slot;
    size_t i;

    slots = slots > HISTORY_MINUTES ? HISTORY_MINUTES : slots;
    json_array_foreach(json_object_get(history, "slots"), i, slot) {
        int at = place_of(history, slot, slots);

        if (at >= 0 && at < slots)
            values[at] = answer_int(slot, "starts");
    }
    top = most_of(values, slots - 1, per_slot(history, most));
    html(p->h,
         "<svg class=\"spark\" viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" aria-hidden=\"true\">"
         "<path class=\"area\" d=\"M0 %d",
         (slots - 2) * WIDE, TALL, TALL);
    for (int n = 0; n < slots - 1; n++)
        html(p->h, "L%d %d", n * WIDE, TALL - (int)((double)values[n] / (double)top * (TALL - 4)));
    html(p->h, "V%dZ\"/><path class=\"line\" d=\"", TALL);
    for (int n = 0; n < slots - 1; n++)
        html(p->h, "%r%d %d", n ? "L" : "M", n * WIDE,
             TALL - (int)((double)values[n] / (double)top * (TALL - 4)));
    html(p->h, "\"/>");
    put_most(p, per_slot(history, most), top, slots);
    html(p->h, "</svg>");
}

/* ---- Outcomes */

static void put_column(struct page *p, const json_t *slot, int at, int64_t top)
{
    int y = TALL;

    for (size_t i = 0; i < OUTCOMES; i++) {
        int64_t n = answer_int(slot, outcomes[i]);
        int height = n > 0 ? 1 + (int)((double)n / (double)top * (TALL - 4)) : 0;

        y -= height;
        if (height)
            html(p->h, "<rect class=\"s-%r\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>",
                 outcome_classes[i], at * WIDE + 1, y, WIDE - 2, height);
    }
}

static int64_t ends_of(const json_t *slot)
{
    int64_t sum = 0;

    for (size_t i = 0; i < OUTCOMES; i++)
        sum += answer_int(slot, outcomes[i]);
    return sum;
}

/* From the oldest slot that has something on, but not too few. */
static int slots_shown(const json_t *history, int most)
{
    const json_t *oldest = json_array_get(json_object_get(history, "slots"), 0);
    int shown = most - place_of(history, oldest, most);

    return shown > most ? most : shown < SLOTS_LEAST ? SLOTS_LEAST : shown;
}

void put_outcomes(struct page *p, const json_t *history, int most_slots, double most)
{
    int slots = slots_shown(history, most_slots);
    struct part parts[OUTCOMES];
    int64_t top = 1, set = (int64_t)(per_slot(history, most) + 0.5);
    json_t *slot;
    size_t i;

    for (i = 0; i < OUTCOMES; i++)
        parts[i] = (struct part){outcome_classes[i], 0, outcomes[i]};
    json_array_foreach(json_object_get(history, "slots"), i, slot) {
        top = ends_of(slot) > top ? ends_of(slot) : top;
        for (size_t k = 0; k < OUTCOMES; k++)
            parts[k].count += answer_int(slot, outcomes[k]);
    }
    if (set > LINE_FAR * top)
        most = 0;
    else if (set > top)
        top = set;
    html(p->h,
         "<div class=\"plot\"><span class=\"top\">%n</span><svg viewBox=\"0 0 %d %d\" "
         "preserveAspectRatio=\"none\" "
         "aria-hidden=\"true\">",
         top, slots * WIDE, TALL);
    json_array_foreach(json_object_get(history, "slots"), i, slot)
        if (place_of(history, slot, slots) >= 0)
            put_column(p, slot, place_of(history, slot, slots), top);
    put_most(p, per_slot(history, most), top, slots);
    html(p->h, "</svg><span class=\"scale\"><span>");
    put_span(p, slots * answer_int_or(history, "step", 60000000));
    html(p->h, " ago</span><span></span><span>now</span></span></div>");
    put_legend(p, parts, OUTCOMES);
    if (most > 0)
        html(p->h,
             "<span class=\"legend\"><span><i class=\"key k-set\"></i>what its limit allows</span></span>");
}

/* Slots of several histories with the ends of all; of other members nothing. */
static json_t *sum_slots(json_t *const *histories, size_t count, int slots)
{
    int64_t sums[HISTORY_HOURS][OUTCOMES] = {{0}}, newest_us = 0, step_us = 3600000000;
    json_t *list = json_array(), *slot;
    size_t k;

    for (size_t i = 0; i < count; i++) {
        newest_us = histories[i] ? answer_int(histories[i], "now") : newest_us;
        json_array_foreach(json_object_get(histories[i], "slots"), k, slot) {
            int at = place_of(histories[i], slot, slots);

            for (size_t n = 0; at >= 0 && at < slots && n < OUTCOMES; n++)
                sums[at][n] += answer_int(slot, outcomes[n]);
        }
    }
    for (int at = 0; at < slots; at++) {
        json_int_t at_us = (newest_us / step_us - (slots - 1 - at)) * step_us;

        slot = json_pack("{s:I}", "at", at_us);
        for (size_t n = 0; n < OUTCOMES; n++)
            json_object_set_new(slot, outcomes[n], json_integer(sums[at][n]));
        if (ends_of(slot) > 0 || json_array_size(list) > 0)
            json_array_append(list, slot);
        json_decref(slot);
    }
    return json_pack("{s:I, s:I, s:o}", "now", (json_int_t)newest_us, "step", (json_int_t)step_us, "slots",
                     list);
}

/* ---- Histograms */

struct histogram {
    int64_t counts[BUCKETS]; /* by the power of two of its upper bound in ms */
    int64_t all;
};

static void add_bins(struct histogram *sum, const json_t *bins)
{
    json_t *bin;
    size_t i;

    json_array_foreach(bins, i, bin) {
        int64_t upper = answer_int_at(bin, 0), n = answer_int_at(bin, 1);
        int power = 0;

        while (power < BUCKETS - 1 && INT64_C(1) << power < upper)
            power++;
        sum->counts[power] += n;
        sum->all += n;
    }
}

/* Of all that held, when held is NULL. */
static struct histogram sum_of(const json_t *history, const char *member, const char *held)
{
    struct histogram sum = {.all = 0};
    json_t *slot, *bins;
    const char *name;
    size_t i;

    json_array_foreach(json_object_get(history, "slots"), i, slot) {
        json_t *of = json_object_get(slot, member);

        if (json_is_array(of)) {
            add_bins(&sum, of);
            continue;
        }
        json_object_foreach(of, name, bins) {
            if (!held || strcmp(name, held) == 0)
                add_bins(&sum, bins);
        }
    }
    return sum;
}

/* The upper bound of the bucket in which that part of all is, us. */
static int64_t quantile(const struct histogram *h, double part)
{
    int64_t wanted = (int64_t)((double)h->all * part), seen = 0;

    for (int i = 0; i < BUCKETS; i++) {
        seen += h->counts[i];
        if (seen > wanted)
            return (INT64_C(1) << i) * 1000;
    }
    return 0;
}

static void put_bucket(struct page *p, const struct histogram *h, int i, int64_t top)
{
    html(p->h, "<tr><th scope=\"row\">&le; ");
    put_span(p, (INT64_C(1) << i) * 1000);
    html(p->h,
         "</th><td><svg class=\"pace\" viewBox=\"0 0 100 8\" preserveAspectRatio=\"none\" "
         "aria-hidden=\"true\">"
         "<rect class=\"kept\" width=\"%d\" height=\"8\"/></svg></td><td class=\"n\">%n</td></tr>",
         h->counts[i] ? 1 + (int)((double)h->counts[i] / (double)top * 99) : 0, h->counts[i]);
}

void put_histogram(struct page *p, const json_t *history, const char *member)
{
    struct histogram h = sum_of(history, member, NULL);
    int first = 0, last = BUCKETS - 1;

    if (h.all == 0) {
        html(p->h, "<p class=\"pale\">Nothing was recorded.</p>");
        return;
    }
    while (h.counts[first] == 0)
        first++;
    while (h.counts[last] == 0)
        last--;
    html(p->h, "<p class=\"lead\">half within ");
    put_span(p, quantile(&h, 0.5));
    html(p->h, ", 99 of 100 within ");
    put_span(p, quantile(&h, 0.99));
    html(p->h, "</p><table class=\"hist\"><tbody>");
    for (int i = first; i <= last; i++)
        put_bucket(p, &h, i, most_of(h.counts, BUCKETS, 1));
    html(p->h, "</tbody></table>");
}

/* ---- A day */

/* Writes how many jobs of several histories started, and within what time nearly all of them did. */
static void put_starts_of_all(struct page *p, json_t *const *histories, size_t count)
{
    struct histogram all = {.all = 0};
    int64_t starts = 0;
    json_t *slot;
    size_t k;

    for (size_t i = 0; i < count; i++) {
        struct histogram waits = sum_of(histories[i], "wait", NULL);

        all.all += waits.all;
        for (size_t n = 0; n < BUCKETS; n++)
            all.counts[n] += waits.counts[n];
        json_array_foreach(json_object_get(histories[i], "slots"), k, slot)
            starts += answer_int(slot, "starts");
    }
    html(p->h, "<p class=\"pale\">%n starts", starts);
    if (all.all > 0) {
        html(p->h, "; 99 of 100 had waited at most ");
        put_span(p, quantile(&all, 0.99));
    }
    html(p->h, "</p>");
}

void put_outcomes_of_all(struct page *p, json_t *const *histories, size_t count, int most_slots)
{
    json_t *sum = sum_slots(histories, count, most_slots);

    if (json_array_size(json_object_get(sum, "slots")) > 0) {
        html(p->h, "<section><h2>Ends <small>by hour</small></h2>");
        put_outcomes(p, sum, most_slots, 0);
        put_starts_of_all(p, histories, count);
        html(p->h, "</section>");
    }
    json_decref(sum);
}

/* ---- What they waited for */

void put_wait_split(struct page *p, const json_t *history)
{
    static const struct {
        const char *name, *class, *label;
    } holders[] = {{"rate", "rate", "waited for a rate"},
                   {"key", "key", "for the rate of their key"},
                   {"concurrency", "parked", "for others to end"},
                   {"pause", "held", "for the end of a pause"},
                   {"executor", "waiting", "for an executor"}};
    struct part parts[5];

    if (sum_of(history, "wait", NULL).all == 0) {
        html(p->h, "<p class=\"pale\">Not known: jobs that say when they were enqueued are needed.</p>");
        return;
    }
    for (size_t i = 0; i < 5; i++) {
        struct histogram h = sum_of(history, "wait", holders[i].name);

        parts[i] = (struct part){holders[i].class, h.all, holders[i].label};
    }
    put_bar(p, parts, 5);
    put_legend(p, parts, 5);
}

#include "serve/page/pages.h"

#include <string.h>

#include "queue/limits/rate.h"
#include "serve/page/parts.h"

#define TYPES_MOST 20    /* in the table: those with the most jobs would all start last */
#define STEPS_MOST 60000 /* starts that are gone through for one page, about 30 ms: see forecast.c */

/* Parts of a rate, in percent, that the slider offers. */
static const int shares[] = {10,  20,  30,  40,  50,  60,  70,  80,   90,
                             100, 110, 125, 150, 200, 300, 500, 1000, 2000};
#define SHARES ((int)(sizeof shares / sizeof *shares))

/* The types that a limit holds and whose jobs wait. */
struct held {
    const struct type_status *at[TYPES_MOST];
    size_t count;
    int64_t more; /* that are not shown */
};

static void find_held(const struct limits *limits, const char *name, struct held *held)
{
    size_t count;
    const struct hold *holds = limits_holds(limits, name, &count);

    *held = (struct held){.count = 0};
    for (size_t i = 0; i < count; i++)
        if (type_backlog(holds[i].type) == 0)
            continue;
        else if (held->count < TYPES_MOST)
            held->at[held->count++] = holds[i].type;
        else
            held->more++;
}

static int64_t last_start(struct page *p, const struct limits *limits, const struct type_status *type,
                          const struct limit *instead)
{
    struct forecast last;
    struct error ignored;

    (void)p;
    if (forecast_type(limits, type, instead, &last, &ignored) < 0 || last.last_us == GATE_NEVER)
        return 0;
    return last.last_us;
}

/* ---- The rules that the query asks about */

/* "": none. *after is to be freed when it returns true. */
static bool read_asked(struct page *p, const struct limit *limit, char rules[RULE_SET_TEXT_SIZE],
                       struct limit *after)
{
    char dropped[RULE_PATH_SIZE];
    struct rule_set kept;

    if (!query_value(p->r->query, "rules", rules, RULE_SET_TEXT_SIZE) || !*rules)
        return false;
    if (rate_set(p->w, limit->name, rules, true, &kept, dropped, NULL) < 0) {
        html(p->h, "<p class=\"note wrong\" role=\"alert\"><b>Not a rule:</b> %s</p>", p->w->error.text);
        return false;
    }
    if (*dropped)
        html(p->h,
             "<p class=\"note warning\"><b>One gate for all jobs:</b> the rules were for each "
             "<bdi class=\"mono\">%s</bdi>; write <span class=\"mono\">,by=%s</span> to keep them apart.</p>",
             dropped, dropped);
    return limit_change(limit, limit->name, &kept, limit->now_us, after, p->e) == 0;
}

/* ---- The slider's stops */

/* Returns the rule whose rate the slider moves: the first one for all keys, else the first. */
static size_t moved_rule(const struct limit *limit)
{
    for (size_t i = 0; i < limit->set.count; i++)
        if (limit->set.at[i].algorithm != ALGORITHM_CONCURRENCY && !*limit->set.at[i].by)
            return i;
    return 0;
}

static void scale(struct rule *rule, int share)
{
    bool whole = rule->burst == rule->count;
    int64_t count = rule->count * share / 100;

    rule->count = count < 1 ? 1 : count > 1000000000 ? 1000000000 : count;
    rule->burst = whole ? rule->count : rule->burst;
}

/* Writes a stop, unless its rate is that of the one before. */
static bool write_stop(struct page *p, const struct limits *limits, const struct limit *limit,
                       const struct held *held, int share, int64_t *last_count)
{
    struct rule_set kept = limit->set;
    struct rule *rule = &kept.at[moved_rule(limit)];
    char text[RULE_SET_TEXT_SIZE];
    struct limit after;

    scale(rule, share);
    if (rule->count == *last_count ||
        limit_change(limit, limit->name, &kept, limit->now_us, &after, p->e) < 0)
        return false;
    rule_set_format(&kept, text);
    html(p->h, "%r{&quot;rules&quot;:&quot;%s&quot;,&quot;ends&quot;:[", *last_count ? "," : "", text);
    for (size_t i = 0; i < held->count; i++)
        html(p->h, "%r%i", i ? "," : "", last_start(p, limits, held->at[i], &after) / 1000);
    html(p->h, "]}");
    *last_count = rule->count;
    limit_free(&after);
    return true;
}

/* Returns how many shares may be forecast, where several gates decide start by start. */
static int64_t steps_of(const struct held *held)
{
    int64_t jobs = 0;

    for (size_t i = 0; i < held->count; i++)
        jobs += type_backlog(held->at[i]);
    return jobs;
}

static void write_slider(struct page *p, const struct limits *limits, const struct limit *limit,
                         const struct held *held)
{
    int64_t steps = steps_of(held), last_count = 0;
    int each = steps * SHARES > STEPS_MOST ? 3 : 1, stops = 0, middle = 0;

    html(p->h, "<div class=\"needs-script slider\" data-stops=\"[");
    for (int i = 0; i < SHARES; i += each) {
        bool there = write_stop(p, limits, limit, held, shares[i], &last_count);

        middle = shares[i] <= 100 ? stops + there - 1 : middle;
        stops += there;
    }
    html(p->h,
         "]\"><label>Move the rate <input type=\"range\" min=\"0\" max=\"%d\" value=\"%d\" "
         "aria-describedby=\"moved\">"
         "</label><output id=\"moved\" class=\"mono\"></output></div>",
         stops - 1, middle < 0 ? 0 : middle);
}

/* ---- The forms and the table */

static void write_forms(struct page *p, const struct limit *limit, const char *rules, bool asked)
{
    char now[RULE_SET_TEXT_SIZE] = "";

    if (limit->readable)
        rule_set_format(&limit->set, now);
    html(p->h,
         "<form id=\"change\" class=\"buttons\" action=\"/limits/%u\"><label class=\"grow\">Rules "
         "<input type=\"text\" name=\"rules\" value=\"%s\" class=\"mono\" spellcheck=\"false\" "
         "autocomplete=\"off\">"
         "</label><button>Preview</button>",
         limit->name, *rules ? rules : now);
    if (p->r->actions) {
        html(p->h, "<button class=\"main\" formmethod=\"post\" formaction=\"/api/rates/%u\">Apply</button>",
             limit->name);
        html(p->h, "<input type=\"hidden\" name=\"back\" value=\"/limits/%s\">", limit->name);
    }
    html(p->h, "</form>");
    if (asked)
        html(p->h,
             "<p class=\"note\"><b>Nothing is changed yet.</b> Below: when the last job would start with "
             "<span class=\"mono\">%s</span>.</p>",
             rules);
}

static void write_held(struct page *p, const struct limits *limits, const struct held *held,
                       const struct limit *after)
{
    put_table(p, "", "Type|#Waiting|#Parked|#Last start now|#It would be");
    for (size_t i = 0; i < held->count; i++) {
        html(p->h, "<tr><th scope=\"row\">");
        put_link(p, "types", held->at[i]->name);
        html(p->h, "</th>");
        put_count_cell(p, "waiting", held->at[i]->waiting);
        put_count_cell(p, "parked", held->at[i]->parked);
        put_time_cell(p, "last start now", last_start(p, limits, held->at[i], NULL));
        html(p->h, "<td class=\"n\" id=\"end-%d\" data-label=\"it would be\">", (int)i);
        put_start(p, after ? last_start(p, limits, held->at[i], after) : 0, after ? "not known" : "-");
        html(p->h, "</td></tr>");
    }
    if (held->count == 0)
        put_none(p, "No job that it holds waits.");
    put_table_end(p);
    if (held->more)
        html(p->h, "<p class=\"pale\">%n types more.</p>", held->more);
}

void write_change_form(struct page *p, const struct limits *limits, const struct limit *limit)
{
    char rules[RULE_SET_TEXT_SIZE] = "";
    struct limit after;
    struct held held;
    bool asked;

    find_held(limits, limit->name, &held);
    html(p->h,
         "<section class=\"change\"><h2>Another rate <small>and when its last jobs would start</small></h2>");
    asked = read_asked(p, limit, rules, &after);
    if (limit->readable)
        write_slider(p, limits, limit, &held);
    write_forms(p, limit, rules, asked);
    html(p->h, "</section>");
    write_held(p, limits, &held, asked ? &after : NULL);
    if (asked)
        limit_free(&after);
}

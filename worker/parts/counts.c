#include "worker/parts/counts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIMITS_MOST 1000 /* of a partition */
#define HOLDS_MOST 16    /* limits of a type, which has no more rules */
#define REASONS_MOST 8   /* of throttled jobs, kept for a limit */
#define TENTHS 128       /* of a second: longer than the time between two writes */
#define SECONDS 64       /* longer than the time of which claims say what was lost */
/* One call sends so many bytes, and a limit or type more: 3 ms of Redis. Limits take half of them at most. */
#define BYTES_MOST 16000
#define WORD_BYTES 16 /* a word takes as long as so many bytes more */
#define TENTH_US INT64_C(100000)
#define SECOND_US INT64_C(1000000)

struct reason {
    char text[RECORD_REASON_MOST + 4]; /* a character that begins within the part that is kept is whole */
    int64_t count;
};

struct limit_counts {
    char name[129];
    bool some;
    int64_t granted;         /* below 0: as many were recorded that came back later */
    int64_t back[BACKS];     /* slots that were given back */
    int64_t lost[LOST_WHYS]; /* thousandths; a write takes whole slots and leaves the rest */
    int64_t late;            /* thousandths of slots that came back too late, and are not lost yet */
    struct reason reasons[REASONS_MOST];
    struct {
        int64_t tenth, count;
    } starts[TENTHS]; /* by tenth mod TENTHS */
    struct {
        int64_t second, slots[LOST_WHYS];
    } lost_at[SECONDS]; /* by second mod SECONDS: the whole slots of `lost` */
};

struct type_counts {
    bool some;
    int64_t starts, ends[END_KINDS], run[RECORD_BUCKETS], wait[CAUSES][RECORD_BUCKETS];
    int64_t run_us, wait_us[CAUSES]; /* a write takes whole milliseconds and leaves the rest */
    struct limit_counts *limits[HOLDS_MOST];
    int limit_count;
    char *held_by; /* the limits as they were answered last */
    size_t held_by_len;
};

static void free_type(struct type_counts *t)
{
    if (t)
        free(t->held_by);
    free(t);
}

/* Makes room for a type of that number. false: out of memory, or it has none. */
static bool has_room(struct counts *c, int type)
{
    struct type_counts **types = c->types;

    if (type >= c->type_count && (types = reallocarray(types, (size_t)type + 1, sizeof *types))) {
        c->types = types;
        while (c->type_count <= type)
            types[c->type_count++] = NULL;
    }
    return type >= 0 && types;
}

void counts_renumber(struct counts *c, const int *numbers)
{
    struct counts before = *c;

    c->types = NULL;
    c->type_count = c->next_type = 0;
    for (int i = 0; i < before.type_count; i++)
        if (before.types[i] && has_room(c, numbers[i]))
            c->types[numbers[i]] = before.types[i];
        else
            free_type(before.types[i]);
    free(before.types);
}

void counts_free(struct counts *c)
{
    for (int i = 0; i < c->type_count; i++)
        free_type(c->types[i]);
    for (int i = 0; i < c->limit_count; i++)
        free(c->limits[i]);
    free(c->types);
    free(c->limits);
    *c = (struct counts){0};
}

static struct type_counts *type_of(struct counts *c, int type)
{
    if (!has_room(c, type))
        return NULL;
    if (!c->types[type])
        c->types[type] = calloc(1, sizeof **c->types);
    return c->types[type];
}

/* ---- Limits */

static struct limit_counts *add_limit(struct counts *c, struct span name)
{
    struct limit_counts **limits, *limit;

    if (c->limit_count == LIMITS_MOST || name.len >= sizeof limit->name)
        return NULL;
    limits = realloc(c->limits, (size_t)(c->limit_count + 1) * sizeof *limits);
    if (limits)
        c->limits = limits;
    limit = limits ? calloc(1, sizeof *limit) : NULL;
    if (!limit)
        return NULL;
    memcpy(limit->name, name.at, name.len);
    c->limits[c->limit_count++] = limit;
    return limit;
}

static struct limit_counts *find_limit(struct counts *c, struct span name)
{
    for (int i = 0; i < c->limit_count; i++)
        if (span_is(span_str(c->limits[i]->name), name))
            return c->limits[i];
    return add_limit(c, name);
}

void counts_hold(struct counts *c, int type, struct span limits)
{
    struct type_counts *t = type_of(c, type);
    struct limit_counts *limit;
    char *copy;

    if (!t || span_is((struct span){t->held_by, t->held_by_len}, limits))
        return;
    copy = malloc(limits.len + 1);
    if (!copy)
        return;
    memcpy(copy, limits.at, limits.len);
    free(t->held_by);
    t->held_by = copy;
    t->held_by_len = limits.len;
    t->limit_count = 0;
    while (limits.len > 0 && t->limit_count < HOLDS_MOST) {
        struct span one = span_cut(&limits, '|');

        if ((limit = find_limit(c, span_cut(&one, '='))))
            t->limits[t->limit_count++] = limit;
    }
}

static void count_at_limit(struct limit_counts *limit, int64_t tenth, int64_t slots)
{
    int place = (int)(tenth % TENTHS);

    limit->some = true;
    limit->granted += slots;
    if (limit->starts[place].tenth != tenth)
        limit->starts[place].count = 0;
    limit->starts[place].tenth = tenth;
    limit->starts[place].count++;
}

static void count_reason(struct limit_counts *limit, const char *reason)
{
    struct reason *r = limit->reasons, *last = r + REASONS_MOST - 1;
    char text[sizeof r->text];

    snprintf(text, sizeof text, "%s", reason ? reason : "");
    while (r < last && r->count > 0 && strcmp(r->text, text) != 0)
        r++;
    strcpy(r->text, r == last ? "other" : text);
    r->count++;
    limit->some = true;
}

/* ---- Counting */

void counts_start(struct counts *c, int type, const struct count_start *start)
{
    struct type_counts *t = type_of(c, type);

    if (!t)
        return;
    t->some = c->some = true;
    t->starts++;
    if (start->wait_us >= 0) {
        t->wait[start->cause][record_bucket_of(start->wait_us)]++;
        t->wait_us[start->cause] += start->wait_us;
    }
    for (int i = 0; start->slots > 0 && i < t->limit_count; i++)
        count_at_limit(t->limits[i], start->at_us / TENTH_US, start->slots);
}

static void add_lost_at(struct limit_counts *limit, enum count_lost why, int64_t second, int64_t slots)
{
    int place = (int)(second % SECONDS);

    if (limit->lost_at[place].second != second)
        memset(limit->lost_at[place].slots, 0, sizeof limit->lost_at[place].slots);
    limit->lost_at[place].second = second;
    limit->lost_at[place].slots[why] += slots;
}

/* Spreads lost slots evenly over the seconds in which they were lost. */
static void spread(struct limit_counts *limit, enum count_lost why, int64_t slots,
                   const struct count_loss *loss)
{
    int64_t last = loss->till_us / SECOND_US, count = last - loss->from_us / SECOND_US + 1;

    if (loss->from_us < 0 || loss->till_us < 0)
        return;
    count = count < 1 ? 1 : count > SECONDS ? SECONDS : count;
    for (int64_t i = 0; i < count; i++) {
        int64_t here = slots * (i + 1) / count - slots * i / count;

        if (here > 0)
            add_lost_at(limit, why, last - count + 1 + i, here);
    }
}

static void add_lost(struct counts *c, struct limit_counts *limit, enum count_lost why, int64_t thousandths,
                     const struct count_loss *loss)
{
    int64_t before = limit->lost[why] / 1000;

    limit->lost[why] += thousandths;
    spread(limit, why, limit->lost[why] / 1000 - before, loss);
    if (limit->lost[why] >= 1000)
        limit->some = c->some = true;
}

void counts_lost(struct counts *c, struct span name, enum count_lost why, const struct count_loss *loss)
{
    struct limit_counts *limit = find_limit(c, name);
    int64_t late = 0;

    if (!limit)
        return;
    if (why == LOST_NO_EXECUTOR)
        late = limit->late < loss->thousandths ? limit->late : loss->thousandths;
    limit->late -= late;
    add_lost(c, limit, LOST_LATE, late, loss);
    add_lost(c, limit, why, loss->thousandths - late, loss);
}

void counts_back(struct counts *c, int type, enum record_back why, int64_t slots, bool counted)
{
    struct type_counts *t = type_of(c, type);

    for (int i = 0; t && i < t->limit_count; i++) {
        struct limit_counts *limit = t->limits[i];

        limit->back[why] += slots;
        limit->granted -= counted ? slots : 0;
        limit->late += why == BACK_LATE ? 1000 * slots : 0;
        limit->some = c->some = true;
    }
}

void counts_end(struct counts *c, int type, enum task_end end, int64_t run_us, const char *reason)
{
    struct type_counts *t = type_of(c, type);

    if (!t)
        return;
    t->some = c->some = true;
    t->ends[end]++;
    if (run_us >= 0) {
        t->run[record_bucket_of(run_us)]++;
        t->run_us += run_us;
    }
    for (int i = 0; end == END_THROTTLED && i < t->limit_count; i++)
        count_reason(t->limits[i], reason);
}

/* ---- Writing */

static void write_type(struct type_counts *t, const char *name, struct args *a)
{
    static const char codes[END_KINDS] = {
        [END_DONE] = 'd', [END_RETRY] = 'r', [END_DEAD] = 'x', [END_CANCELLED] = 'c', [END_THROTTLED] = 't'};
    static const char causes[] = {[CAUSE_EXECUTOR] = 'E',
                                  [CAUSE_RATE] = 'A',
                                  [CAUSE_KEY] = 'K',
                                  [CAUSE_CONCURRENCY] = 'C',
                                  [CAUSE_PAUSE] = 'P'};

    record_row(a, RECORD_TYPE, span_str(name));
    record_spent(a, 'R', &t->run_us);
    for (int cause = 0; cause < CAUSES; cause++)
        record_spent(a, causes[cause], &t->wait_us[cause]);
    record_count(a, 's', t->starts);
    for (int i = 0; i < END_KINDS; i++)
        record_count(a, codes[i], t->ends[i]);
    for (int i = 0; i < RECORD_BUCKETS; i++)
        record_bucket(a, 'R', i, t->run[i]);
    for (int cause = 0; cause < CAUSES; cause++)
        for (int i = 0; i < RECORD_BUCKETS; i++)
            record_bucket(a, causes[cause], i, t->wait[cause][i]);
    t->some = false;
    t->starts = 0;
    memset(t->ends, 0, sizeof t->ends);
    memset(t->run, 0, sizeof t->run);
    memset(t->wait, 0, sizeof t->wait);
}

static const char whys[] = {
    [LOST_NO_JOB] = 'n', [LOST_NO_EXECUTOR] = 'e', [LOST_HELD] = 'h', [LOST_LATE] = 'l'};

static const char backs[] = {
    [BACK_NOT_BEGUN] = 'u', [BACK_LATE] = 'v', [BACK_NO_HANDLER] = 'f', [BACK_WRONG_JOB] = 'w'};

static void write_sums(struct limit_counts *limit, struct args *a)
{
    record_row(a, RECORD_LIMIT, span_str(limit->name));
    if (limit->granted > 0)
        record_count(a, 'g', limit->granted);
    for (int i = 0; i < BACKS; i++)
        record_count(a, backs[i], limit->back[i]);
    memset(limit->back, 0, sizeof limit->back);
    for (int i = 0; i < LOST_WHYS; i++) {
        record_count(a, whys[i], limit->lost[i] / 1000);
        limit->lost[i] %= 1000;
    }
    for (int i = 0; i < REASONS_MOST; i++)
        if (limit->reasons[i].count > 0)
            record_reason(a, limit->reasons[i].text, limit->reasons[i].count);
    memset(limit->reasons, 0, sizeof limit->reasons);
}

static void write_seconds(struct limit_counts *limit, struct args *a)
{
    record_row(a, RECORD_STARTS, span_str(limit->name));
    for (int i = 0; i < TENTHS; i++)
        if (limit->starts[i].count > 0)
            record_start(a, limit->starts[i].tenth, limit->starts[i].count);
    for (int i = 0; i < SECONDS; i++)
        for (int why = 0; why < LOST_WHYS; why++)
            record_lost(a, whys[why], limit->lost_at[i].second, limit->lost_at[i].slots[why]);
    memset(limit->starts, 0, sizeof limit->starts);
    memset(limit->lost_at, 0, sizeof limit->lost_at);
}

static bool has_lost(const struct limit_counts *limit)
{
    for (int i = 0; i < LOST_WHYS; i++)
        if (limit->lost[i] >= 1000)
            return true;
    return false;
}

static void write_limit(struct limit_counts *limit, struct args *a)
{
    bool seconds = limit->granted > 0 || has_lost(limit);

    write_sums(limit, a);
    if (seconds)
        write_seconds(limit, a);
    limit->granted = limit->granted < 0 ? limit->granted : 0;
    limit->late = 0;
    limit->some = false;
}

static size_t size_of(const struct args *a)
{
    return a->len + WORD_BYTES * a->count;
}

static void write_limits(struct counts *c, struct args *a)
{
    int first = c->next_limit;

    for (int i = 0; i < c->limit_count; i++) {
        int at = (first + i) % c->limit_count;

        if (!c->limits[at]->some)
            continue;
        if (size_of(a) > BYTES_MOST / 2) {
            c->next_limit = at;
            c->some = true;
            return;
        }
        write_limit(c->limits[at], a);
    }
}

static void write_types(struct counts *c, const char *const *names, struct args *a)
{
    int first = c->next_type;

    for (int i = 0; i < c->type_count; i++) {
        int at = (first + i) % c->type_count;

        if (!c->types[at] || !c->types[at]->some)
            continue;
        if (size_of(a) > BYTES_MOST) {
            c->next_type = at;
            c->some = true;
            return;
        }
        write_type(c->types[at], names[at], a);
    }
}

void counts_write(struct counts *c, const char *const *names, struct args *a)
{
    c->some = false;
    write_limits(c, a);
    write_types(c, names, a);
}

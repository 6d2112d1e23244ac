/* weekly_summary: makes one week of card transactions of many businesses, and the jobs that summarise them.
 *
 *   weekly_summary OUTDIR [--businesses 2000] [--seed 1] [--week 2026-W47]
 *
 * writes
 *   OUTDIR/transactions/<business>.ndjson   {"at":..,"merchant":..,"amount_cents":..}, by time; a refund is
 *                                           negative
 *   OUTDIR/jobs.ndjson                      one job a business, for: weir enqueue --from OUTDIR/jobs.ndjson
 *   OUTDIR/mail/                            empty: where weekly_summary_handler.so puts the summaries
 *
 * The same seed makes the same files. Businesses differ in size by a log-normal factor; each buys at some
 * merchants of its own; a merchant's amounts are log-normal around what is usual for its kind, and its kind
 * says on which weekdays and at what hours it is used. A few in a hundred purchases come back as refunds. */
#define _DEFAULT_SOURCE /* POSIX and M_PI, under -std=c11 too */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define REFUND_SHARE 0.03
#define FEWEST_MERCHANTS 4
#define MOST_MERCHANTS 9
#define MOST_TRANSACTIONS 600
#define DAY_S 86400

struct merchant {
    const char *name;
    double median_cents, spread;
    double weekday[7]; /* how often, from Monday; 1 is usual */
    int first_hour, last_hour;
};

#define OFFICE_DAYS                                                                                          \
    {                                                                                                        \
        1, 1.1, 1.1, 1.1, 0.9, 0.05, 0.02                                                                    \
    }
#define EVERY_DAY                                                                                            \
    {                                                                                                        \
        1, 1, 1, 1, 1.1, 0.9, 0.7                                                                            \
    }
#define WEEKENDS                                                                                             \
    {                                                                                                        \
        0.6, 0.6, 0.7, 0.9, 1.4, 1.6, 0.8                                                                    \
    }
#define MONDAYS                                                                                              \
    {                                                                                                        \
        3, 0.2, 0.1, 0.1, 0.1, 0.01, 0.01                                                                    \
    }

static const struct merchant merchants[] = {
    {"Alder Coffee", 780, 0.45, OFFICE_DAYS, 7, 16},
    {"Beacon Hosting", 14900, 0.9, EVERY_DAY, 0, 23},
    {"Bright Print & Sign", 8600, 0.8, OFFICE_DAYS, 9, 17},
    {"Cobalt Cloud", 42000, 1.1, EVERY_DAY, 0, 23},
    {"Corner Deli", 1650, 0.5, OFFICE_DAYS, 11, 14},
    {"Cygnet Airlines", 31500, 0.6, EVERY_DAY, 6, 22},
    {"Delta Parcel", 2450, 0.7, OFFICE_DAYS, 8, 18},
    {"Elm Street Garage", 18800, 0.8, OFFICE_DAYS, 8, 17},
    {"Fern Office Supply", 5400, 0.9, OFFICE_DAYS, 8, 18},
    {"Granite Tools", 9700, 0.8, EVERY_DAY, 7, 19},
    {"Harbour Hotel", 17900, 0.4, WEEKENDS, 8, 22},
    {"Ink & Paper Co.", 3900, 0.6, OFFICE_DAYS, 9, 17},
    {"Juniper Flowers", 4500, 0.4, WEEKENDS, 8, 18},
    {"Kestrel Telecom", 6900, 0.5, MONDAYS, 2, 5},
    {"Lantern Software", 9900, 0.7, MONDAYS, 0, 6},
    {"Maple Market", 4200, 0.7, EVERY_DAY, 7, 21},
    {"North Rail", 5800, 0.6, OFFICE_DAYS, 5, 21},
    {"Osprey Fuel", 6700, 0.35, EVERY_DAY, 5, 22},
    {"Pepper & Thyme", 6200, 0.6, WEEKENDS, 11, 22},
    {"Quay Taxi", 2100, 0.5, WEEKENDS, 6, 23},
    {"Redwood Timber", 26500, 0.9, OFFICE_DAYS, 7, 15},
    {"Saffron Catering", 24000, 0.7, OFFICE_DAYS, 8, 13},
    {"Tern Advertising", 12500, 1.2, EVERY_DAY, 0, 23},
    {"Umber Cleaning", 15500, 0.3, MONDAYS, 6, 10},
};
#define MERCHANT_COUNT ((int)(sizeof merchants / sizeof *merchants))

static const char *const first_words[] = {"Amber",   "Birch",  "Copper", "Dune", "Ember", "Falcon",
                                          "Glacier", "Hazel",  "Iris",   "Jade", "Koi",   "Linden",
                                          "Meadow",  "Nimbus", "Orchid", "Pine"};
static const char *const second_words[] = {"Bakery",    "Design", "Dental",   "Electric", "Films",
                                           "Fitness",   "Foods",  "Garden",   "Labs",     "Legal",
                                           "Logistics", "Motors", "Plumbing", "Studio"};
#define PICK(random, words) words[random_below(random, (int)(sizeof(words) / sizeof *(words)))]

struct options {
    const char *folder;
    long businesses, seed;
    const char *week;
    time_t monday; /* 00:00 UTC */
};

struct transaction {
    time_t at;
    const struct merchant *merchant;
    int64_t cents;
};

struct business {
    char id[24], name[64];
    const struct merchant *merchants[MOST_MERCHANTS];
    int merchant_count;
    double size; /* 1 is usual */
};

struct totals {
    int64_t spent_cents, refunded_cents;
    int transactions;
};

/* ---- Chance: splitmix64, so that every platform draws the same */

struct random {
    uint64_t state;
};

static uint64_t random_bits(struct random *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static double random_unit(struct random *r)
{
    return (double)(random_bits(r) >> 11) * 0x1p-53;
}

static int random_below(struct random *r, int n)
{
    return (int)(random_unit(r) * n);
}

static double random_normal(struct random *r)
{
    double radius = sqrt(-2 * log(1 - random_unit(r)));

    return radius * cos(2 * M_PI * random_unit(r));
}

static int random_weekday(struct random *r, const double weights[7])
{
    double sum = 0, at;
    int day = 0;

    for (int i = 0; i < 7; i++)
        sum += weights[i];
    at = random_unit(r) * sum;
    while (day < 6 && (at -= weights[day]) >= 0)
        day++;
    return day;
}

/* ---- A business and its week */

static void make_business(struct random *r, long number, struct business *b)
{
    const char *first = PICK(r, first_words);
    const char *second = PICK(r, second_words);

    snprintf(b->id, sizeof b->id, "b%06ld", number);
    snprintf(b->name, sizeof b->name, "%s %s", first, second);
    b->size = exp(0.6 * random_normal(r));
    b->merchant_count = FEWEST_MERCHANTS + random_below(r, MOST_MERCHANTS - FEWEST_MERCHANTS + 1);
    for (int i = 0; i < b->merchant_count; i++) {
        bool taken = true;

        while (taken) {
            b->merchants[i] = &merchants[random_below(r, MERCHANT_COUNT)];
            taken = false;
            for (int j = 0; j < i; j++)
                taken |= b->merchants[j] == b->merchants[i];
        }
    }
}

static struct transaction make_purchase(struct random *r, const struct options *o, const struct business *b)
{
    const struct merchant *m = b->merchants[random_below(r, b->merchant_count)];
    int day = random_weekday(r, m->weekday);
    int hours = m->last_hour - m->first_hour + 1;
    int second = m->first_hour * 3600 + random_below(r, hours * 3600);
    double cents = m->median_cents * sqrt(b->size) * exp(m->spread * random_normal(r));

    return (struct transaction){o->monday + day * DAY_S + second, m, cents < 1 ? 1 : llround(cents)};
}

/* Some time later in the week, if there is any left; of some purchases only a part comes back. */
static struct transaction make_refund(struct random *r, const struct options *o,
                                      const struct transaction *bought)
{
    time_t left = o->monday + 7 * DAY_S - bought->at;
    int64_t part = random_below(r, 3) == 0 ? (bought->cents + 1) / 2 : bought->cents;

    return (struct transaction){bought->at + random_below(r, (int)left), bought->merchant, -part};
}

static int by_time(const void *a, const void *b)
{
    const struct transaction *x = a, *y = b;

    return (x->at > y->at) - (x->at < y->at);
}

static int make_week(struct random *r, const struct options *o, const struct business *b,
                     struct transaction *out)
{
    int purchases = 4 + (int)(36 * b->size * exp(0.3 * random_normal(r))), count = 0;

    if (purchases > MOST_TRANSACTIONS / 2)
        purchases = MOST_TRANSACTIONS / 2;
    for (int i = 0; i < purchases; i++) {
        out[count] = make_purchase(r, o, b);
        count++;
        if (random_unit(r) < REFUND_SHARE) {
            out[count] = make_refund(r, o, &out[count - 1]);
            count++;
        }
    }
    qsort(out, (size_t)count, sizeof *out, by_time);
    return count;
}

static struct totals add_up(const struct transaction *t, int count)
{
    struct totals sum = {.transactions = count};

    for (int i = 0; i < count; i++)
        *(t[i].cents < 0 ? &sum.refunded_cents : &sum.spent_cents) += llabs(t[i].cents);
    return sum;
}

/* ---- Files */

static bool write_transactions(const struct options *o, const struct business *b, const struct transaction *t,
                               int count)
{
    char path[4096];
    FILE *file;

    snprintf(path, sizeof path, "%s/transactions/%s.ndjson", o->folder, b->id);
    file = fopen(path, "w");
    if (!file)
        return false;
    for (int i = 0; i < count; i++) {
        char at[32];

        strftime(at, sizeof at, "%Y-%m-%dT%H:%M:%SZ", gmtime(&t[i].at));
        fprintf(file, "{\"at\":\"%s\",\"merchant\":\"%s\",\"amount_cents\":%lld}\n", at, t[i].merchant->name,
                (long long)t[i].cents);
    }
    return fclose(file) == 0;
}

static void write_job(FILE *jobs, const struct options *o, const struct business *b,
                      const struct totals *last_week)
{
    fprintf(jobs,
            "{\"type\":\"weekly_summary\",\"args\":{\"business_id\":\"%s\",\"name\":\"%s\",\"week\":\"%s\","
            "\"last_week\":{\"spent_cents\":%lld,\"refunded_cents\":%lld,\"transactions\":%d}}}\n",
            b->id, b->name, o->week, (long long)last_week->spent_cents, (long long)last_week->refunded_cents,
            last_week->transactions);
}

static bool make_folders(const struct options *o)
{
    static const char *const folders[] = {"", "/transactions", "/mail"};

    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char path[4096];

        snprintf(path, sizeof path, "%s%s", o->folder, folders[i]);
        if (mkdir(path, 0777) < 0 && errno != EEXIST)
            return false;
    }
    return true;
}

static bool make_all(const struct options *o)
{
    struct transaction week[MOST_TRANSACTIONS];
    char path[4096];
    FILE *jobs;
    bool good = true;

    snprintf(path, sizeof path, "%s/jobs.ndjson", o->folder);
    if (!make_folders(o) || !(jobs = fopen(path, "w")))
        return false;
    for (long i = 0; good && i < o->businesses; i++) {
        struct random r = {(uint64_t)o->seed << 32 ^ (uint64_t)i};
        struct business b;
        struct totals last_week;

        make_business(&r, i, &b);
        last_week = add_up(week, make_week(&r, o, &b, week));
        good = write_transactions(o, &b, week, make_week(&r, o, &b, week));
        write_job(jobs, o, &b, &last_week);
    }
    return (fclose(jobs) == 0) && good;
}

/* ---- Options */

/* Turns "2026-W47" into its Monday: week 1 is the one with January 4th in it. */
static bool parse_week(const char *text, time_t *monday)
{
    int year, week, end = 0;
    struct tm fourth = {.tm_mday = 4};
    time_t at;

    if (sscanf(text, "%4d-W%2d%n", &year, &week, &end) != 2 || text[end] || week < 1 || week > 53 ||
        year < 1970)
        return false;
    fourth.tm_year = year - 1900;
    at = timegm(&fourth);
    *monday = at + ((week - 1) * 7 - (fourth.tm_wday + 6) % 7) * DAY_S;
    return true;
}

static bool parse_number(const char *text, long least, long most, long *number)
{
    char *end;

    *number = strtol(text, &end, 10);
    return end != text && !*end && *number >= least && *number <= most;
}

static bool parse_options(int argc, char **argv, struct options *o)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        bool good;

        if (strncmp(argv[i], "--", 2) != 0) {
            good = !o->folder;
            o->folder = argv[i];
        } else {
            if (strcmp(argv[i], "--businesses") == 0)
                good = parse_number(value, 1, 999999, &o->businesses);
            else if (strcmp(argv[i], "--seed") == 0)
                good = parse_number(value, 0, INT32_MAX, &o->seed);
            else
                good = strcmp(argv[i], "--week") == 0 && *(o->week = value);
            i++;
        }
        if (!good)
            return false;
    }
    return o->folder && parse_week(o->week, &o->monday);
}

int main(int argc, char **argv)
{
    struct options o = {.businesses = 2000, .seed = 1, .week = "2026-W47"};

    if (!parse_options(argc, argv, &o)) {
        fprintf(stderr, "usage: weekly_summary OUTDIR [--businesses 2000] [--seed 1] [--week 2026-W47]\n");
        return 64;
    }
    if (!make_all(&o)) {
        fprintf(stderr, "weekly_summary: %s: %s\n", o.folder, strerror(errno));
        return 70;
    }
    return 0;
}

/* The figures: one table says what is asked of each, so that rows and verdicts cannot differ. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"

enum better {
    NOTHING, /* is asked of it */
    HIGHER,  /* at least */
    LOWER,   /* at most */
    KEPT,    /* a rate: at least, and never above 1 */
};

static const struct {
    const char *name, *unit;
    int decimals;
    enum better better;
    double required, aim;
    const char *base; /* the ceiling that it is compared with */
} specs[FIGURES] = {
#define FREE(figure, text, unit, decimals, base) {text, unit, decimals, NOTHING, 0, 0, base},
#define ASKED(figure, ...) {__VA_ARGS__},
#include "bench/figures.h"
};

#define KEPT_MOST 1.0005 /* 1.000 when rounded as it is asked for */

/* ---- Verdicts */

static bool reaches(enum better better, double value, double bound)
{
    if (better == KEPT)
        return value >= bound && value <= KEPT_MOST;
    return better == HIGHER ? value >= bound : value <= bound;
}

static const char *verdict(enum figure f, double value)
{
    if (specs[f].better == NOTHING)
        return "";
    if (!reaches(specs[f].better, value, specs[f].required))
        return "NO";
    return reaches(specs[f].better, value, specs[f].aim) ? "aim" : "yes";
}

/* ---- The table */

/* 1234567.8 as "1,234,568". */
static void print_number(char *out, size_t size, double value, int decimals)
{
    char digits[40];
    int len = snprintf(digits, sizeof digits, "%.*f", decimals, value);
    int whole = (int)strcspn(digits, ".");
    size_t at = 0;

    for (int i = 0; i < len && at + 2 < size; i++) {
        if (i > 0 && i < whole && (whole - i) % 3 == 0 && digits[i - 1] != '-')
            out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = '\0';
}

static void print_bounds(enum figure f, char required[40], char aim[40])
{
    required[0] = aim[0] = '\0';
    if (specs[f].better == NOTHING)
        return;
    print_number(required, 40, specs[f].required, specs[f].decimals);
    print_number(aim, 40, specs[f].aim, specs[f].decimals);
}

static void print_row(enum figure f, const struct result *r)
{
    char required[40], aim[40], value[40], ratio[64] = "";

    print_bounds(f, required, aim);
    print_number(value, sizeof value, r->value, specs[f].decimals);
    if (r->base > 0)
        snprintf(ratio, sizeof ratio, "%.2f of %s", r->value / r->base, specs[f].base);
    printf("%-50s %9s %9s %9s %-5s %-4s %-22s %s\n", specs[f].name, required, aim, value, specs[f].unit,
           verdict(f, r->value), ratio, r->note);
    fflush(stdout);
}

static double load_now(void)
{
    double load = 0;

    return getloadavg(&load, 1) == 1 ? load : 0;
}

void report_begin(void)
{
    printf("%ld processors, load %.2f, redis %s on a unix socket, nothing on disk but where AOF is named, %s "
           "sizes\n\n",
           sysconf(_SC_NPROCESSORS_ONLN), load_now(), bench.redis_version, bench.quick ? "quick" : "full");
    printf("%-50s %9s %9s %9s %-5s %-4s %-22s %s\n", "", "required", "aim", "measured", "", "met?", "ratio",
           "");
    fflush(stdout);
}

void report(enum figure figure, double value, double base, const char *note, ...)
{
    struct result *r = &bench.results[figure];
    va_list rest;

    *r = (struct result){.known = true, .value = value, .base = base};
    va_start(rest, note);
    vsnprintf(r->note, sizeof r->note, note, rest);
    va_end(rest);
    print_row(figure, r);
}

void report_end(void)
{
    int asked = 0, met = 0;

    for (enum figure f = 0; f < FIGURES; f++)
        if (bench.results[f].known && specs[f].better != NOTHING) {
            asked++;
            met += reaches(specs[f].better, bench.results[f].value, specs[f].required);
        }
    printf("\n%d of %d as required; load %.2f at the end\n", met, asked, load_now());
}

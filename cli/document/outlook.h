/* When the jobs of a bulk start, at the rates of now. */
#pragma once

#include "cli/document/json.h"
#include "producer/bulk.h"
#include "queue/status/forecast.h"

#define PACE_SIZE 72

/* An outlook foretells a type's jobs of this bulk. */
struct outlook {
    char type[129];
    uint64_t count;
    struct keyless keyless;
    bool limited;
    unsigned because;          /* what may make it later: enum forecast_because */
    double rate;               /* starts a second, by the strictest rule; 0: no rate holds all of them */
    char pace[PACE_SIZE];      /* the same, in the unit of that rule */
    int64_t first_us, last_us; /* GATE_NEVER: it cannot be told */
};

/* One for each type of which jobs were taken; *outlooks is the caller's to free, also after a failure. */
WEIR_CHECKED int outlook_read(struct weir *w, struct weir_bulk *bulk, struct outlook **outlooks, size_t *n);
/* " at the earliest (no worker takes them)"; "" when because is 0. */
#define EARLIEST_SIZE 80
const char *earliest(unsigned because, char out[EARLIEST_SIZE]);
json_t *outlook_json(const struct outlook *o);
void outlook_print(const struct outlook *o);
/* Sorts limited types first, of these the types with the most jobs. */
void outlook_sort(struct outlook *outlooks, size_t n);
/* Prints the rest in one line: "980 types more: 2,940 jobs: the first starts in ...". */
void outlook_print_rest(const struct outlook *outlooks, size_t n);
/* True when most jobs of a type have no key, so that its limit is hardly meant so. */
bool keyless_most(const struct keyless *k);
/* "<type>: 498 of 500 jobs have nothing at args.id, ..." */
void keyless_print(FILE *to, const char *type, const struct keyless *k);

/* Lines of Prometheus's text format. */
#pragma once

#include <stdbool.h>

#include "core/client/client.h"
#include "queue/job/job.h"
#include "view/json.h"

struct metrics {
    struct text *out;
    struct error *e;
    bool failed; /* out of memory, or Redis; *e says why */
};

void metrics_add(struct metrics *m, const char *text);
/* What stands before its rows. */
void metrics_family(struct metrics *m, const char *name, const char *kind, const char *help);
/* Writes name="value", with what the format escapes. What is no printable UTF-8 becomes \xNN: Prometheus refuses all for one such byte. */
void metrics_label(struct metrics *m, const char *name, const char *value, bool first);
void metrics_value(struct metrics *m, double number);
/* Writes a row, with the labels that are not NULL. */
void metrics_row(struct metrics *m, const char *metric, const char *name, const char *of, const char *other,
                 const char *which, double number);
/* Writes a family of one row without labels. */
void metrics_alone(struct metrics *m, const char *name, const char *kind, const char *help, double number);
/* list: of [upper bound in ms, n]. All buckets from 1 ms to 12 days: Prometheus wants the same ones each time. */
void metrics_histogram(struct metrics *m, const char *metric, const char *type, const char *cause,
                       const json_t *list, double sum_s);

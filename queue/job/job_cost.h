/* A cost as JSON has it: a number of plain slots, or an object of numbers by name, {"plain":3,"tokens":900}. */
#pragma once

#include "queue/job/job.h"
#include "throttle/cost_words.h"

#define COST_JSON_SIZE (COST_TEXT_SIZE + 32) /* quotes and braces too */

/* Reads a value that was checked. WEIR_EINPUT: what is wrong with it. */
WEIR_CHECKED int cost_read_json(struct span value, enum cost_kind kind, struct job_cost *cost,
                                struct error *e);
/* Writes it, names in order of their bytes; "" when nothing is said. */
void cost_write_json(const struct job_cost *cost, char out[COST_JSON_SIZE]);

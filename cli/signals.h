/* Signals: what each of them does to a worker, in one table. */
#pragma once

#include "weir.h"

/* Sets the signals of every command, at its start: nothing stays blocked that the caller had blocked, and whoever starts a
 * process learns how it ends. Other signals that are ignored stay so. */
void signals_fresh(void);
/* For a command that ends in order: the first TERM, INT or HUP calls handler, the second one ends the process. What is ignored stays so. */
void signals_catch(void (*handler)(int number));
/* The table holds, for this worker. */
void signals_begin(struct weir_worker *worker);
/* From now on HUP has it read its handlers anew (worker/worker.h), unless HUP is ignored. */
void signals_reload(void);
/* The worker has ended: signals that would have stopped it do nothing more. */
void signals_end(void);

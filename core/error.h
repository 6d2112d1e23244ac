/* An error is a status of weir.h and one line for a person: what was wrong, where, what to do. */
#pragma once

#include "weir.h"

struct error {
    int status; /* 0 or an enum weir_status */
    char text[480];
};

/* Fills *e and returns status, so that a function can end with "return error_set(...)". */
int error_set(struct error *e, int status, const char *fmt, ...) WEIR_PRINTF(3, 4);

/* Sets the error of what has no memory left to do: "status: out of memory; free some and try again", WEIR_EINTERNAL. */
int error_no_memory(struct error *e, const char *what);

/* Tells the analyzer of make lint which status is returned. */
#ifdef __clang_analyzer__
#define error_set(e, status_, ...) ((error_set)((e), (status_), __VA_ARGS__), (e)->status = (status_))
#define error_no_memory(e, what) ((error_no_memory)((e), (what)), (e)->status = WEIR_EINTERNAL)
#endif

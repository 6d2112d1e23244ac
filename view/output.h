/* The one way to print. Words may be those of others and hold any bytes: names of broken keys, a handler's
 * reason, what Redis says. In the word of a %s each byte that is not of a printable character is \xNN: no
 * escape sequence reaches a terminal, and no word begins a line of its own. The rest of fmt is printed as it
 * stands. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

/* For jansson. */
#define OUTPUT_JSON_FLAGS (JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(16))

/* Print as printf, fprintf and vfprintf do, with %s, %c, %% and what prints numbers. The width of a word counts
 * characters. */
void output(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void output_to(FILE *to, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void output_list(FILE *to, const char *fmt, va_list values) __attribute__((format(printf, 2, 0)));

void output_blanks(FILE *to, int n);

/* Counts the characters that a %s prints of such a word. */
int output_columns(const char *word, size_t len);

/* Prints a piece of JSON as one line to a FILE: newlines between tokens become blanks, and control characters in
 * strings (DEL, C1) escapes, which say the same. For jansson's json_dump_callback. */
int output_json(const char *text, size_t len, void *file);

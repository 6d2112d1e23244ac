/* Colour for what is wrong: on a terminal, unless NO_COLOR is set or --color says otherwise. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

enum tone { TONE_PLAIN, TONE_WRONG, TONE_WARNING, TONE_GOOD };

/* --color: auto, always or never; false: none of these. Holds for the whole process. */
bool color_set(const char *when);
/* True when there is colour on that stream. */
bool color_is_on(FILE *to);
/* Between the two, what is printed has that tone. They print nothing where there is no colour. */
void tone_begin(FILE *to, enum tone tone);
void tone_end(FILE *to, enum tone tone);
/* Does output_to in that tone. */
void output_toned(FILE *to, enum tone tone, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

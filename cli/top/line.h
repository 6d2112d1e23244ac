/* A line that is typed: UTF-8, changed at its end. */
#pragma once

#include <stddef.h>

/* Adds a character, or takes the last one or all away; other keys (keys.h) and what has no room change nothing. */
void line_key(char *line, size_t size, int key);

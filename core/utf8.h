/* What may be shown as it is of text that can be any bytes. */
#pragma once

#include <stddef.h>

/* The bytes of the printable UTF-8 character with which text, of at least one byte, begins; 0: it begins with
 * none: a control character (C0, DEL, C1), or no UTF-8. */
size_t utf8_printable(const char *text, size_t len);

/* Writes the first character of such a text to piece, NUL-terminated: as it stands where it is printable,
 * else its first byte as \xNN. Returns how many bytes of text that was. */
#define UTF8_PIECE 5
size_t utf8_escaped(const char *text, size_t len, char piece[UTF8_PIECE]);

/* Keys of limits that somebody has paused, as status, report, rate show and rate keys tell them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct json_t; /* jansson */

/* Rows of queue/state/key_pauses.lua, by limit and key: an array. */
struct json_t *paused_keys_document(const struct json_t *rows);
/* "customer 42 is paused until it is resumed", of a row of that array. */
void paused_key_text(const struct json_t *row, int64_t now_us, char *out, size_t size);
/* "weir rate resume mail/42", as a shell takes it; "": its name has what no line of a shell can show. */
void paused_key_resume(const struct json_t *row, char *out, size_t size);

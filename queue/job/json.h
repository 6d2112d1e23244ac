/* JSON as text: checked and looked into in one pass, never decoded.
 *
 * The checker agrees with jansson (RFC 8259, UTF-8, no \u0000, integers in 64 bits, finite reals) at about a
 * nanosecond a byte; jansson needs fifty times that, more than a worker has for a whole job. Two differences:
 * at most JSON_DEPTH levels, and duplicate names are refused in the outermost object only.
 *
 * What programs of others answer is read with lax set: of a text with a single wrong character the rest is
 * to be had all the same.
 *
 * Each function reads from at, which lies in [begin, end], and returns where it stopped; NULL means that
 * fault says what is wrong at fault_at. */
#pragma once

#include "queue/job/job.h"

#define JSON_DEPTH 512

struct json {
    const char *begin, *end;
    const char *fault, *fault_at;
    int status; /* of the fault: WEIR_EINPUT, or WEIR_EINTERNAL when out of memory */
    bool lax;   /* strings of any bytes and escapes, numbers of any size, names that come twice, any depth */
};

void json_begin(struct json *j, const char *text, size_t len);
const char *json_space(const struct json *j, const char *at);
/* Reads one value of at most depth levels. */
const char *json_value(struct json *j, const char *at, int depth);
/* Reads white space up to the end, and nothing else. */
const char *json_end(struct json *j, const char *at);
/* Makes a JSON text one line: newlines stand between tokens only, as inside of strings JSON has none. */
void json_one_line(char *text, size_t len);
/* Fills *e from the fault: "what: <fault> at byte n". Returns its status. */
int json_error(const struct json *j, const char *what, struct error *e);

struct json_member {
    const char *begin; /* the opening quote of its name; its text goes on to the end of value */
    struct span name;  /* decoded */
    struct span value; /* as it stands, quotes included */
};

#define JSON_MEMBERS_FEW 24
struct json_members {
    struct json_member *at;
    size_t count, capacity;
    char *decoded; /* names that had escapes */
    size_t decoded_len;
    struct json_member few[JSON_MEMBERS_FEW];
};

/* Reads the members of the object that begins at `at`; at NULL those before the fault. Refuses a name that comes
 * twice, unless j is lax. */
const char *json_members(struct json *j, const char *at, struct json_members *m);
void json_members_free(struct json_members *m);
/* Returns the value of the last member of that name; at NULL: there is none. */
struct span json_member(const struct json_members *m, const char *name);
/* Finds the value, as it stands, of the member of that name of text, an object that was checked; at NULL: it has
 * none. */
struct span json_find(const char *text, size_t len, const char *name);

/* Decodes a string, given as it stands, with a NUL behind it: as many whole characters as fit into size
 * bytes, '?' for what is none (half a surrogate pair, an unknown escape, a NUL, invalid UTF-8). Returns its
 * length. */
size_t json_text(struct span string, char *out, size_t size);

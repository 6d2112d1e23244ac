#include "queue/job/json.h"

#include <endian.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "core/number.h"
#include "queue/job/json_number.h"

void json_begin(struct json *j, const char *text, size_t len)
{
    *j = (struct json){.begin = text, .end = text + len, .status = WEIR_EINPUT};
}

static const char *fault(struct json *j, const char *at, const char *what)
{
    j->fault = what;
    j->fault_at = at;
    return NULL;
}

int json_error(const struct json *j, const char *what, struct error *e)
{
    if (j->status == WEIR_EINTERNAL)
        return error_no_memory(e, what);
    return error_set(e, j->status, "%s: %s at byte %td", what, j->fault, j->fault_at - j->begin + 1);
}

static const char *skip_space(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
        at++;
    return at;
}

/* Skips white space, of which there is mostly none. */
static inline const char *space(const struct json *j, const char *at)
{
    return at < j->end && (unsigned char)*at > ' ' ? at : skip_space(at, j->end);
}

const char *json_space(const struct json *j, const char *at)
{
    return space(j, at);
}

const char *json_end(struct json *j, const char *at)
{
    at = space(j, at);
    return at == j->end ? at : fault(j, at, "something follows the JSON value");
}

/* ---- Strings */

#define EACH_BYTE(c) (UINT64_C(0x0101010101010101) * (c))

/* Skips bytes that mean themselves, eight at a time: no quote, no backslash, not below 0x20, not above 0x7f.
 * The lowest marked byte of hit is exact, those above it need not be. */
static const char *skip_plain(const char *at, const char *end)
{
    while (end - at >= 8) {
        uint64_t word, hit;

        memcpy(&word, at, sizeof word);
        word = le64toh(word);
        hit = (word ^ EACH_BYTE('"')) - EACH_BYTE(1);
        hit |= (word ^ EACH_BYTE('\\')) - EACH_BYTE(1);
        hit |= (word - EACH_BYTE(0x20)) | word;
        hit &= EACH_BYTE(0x80);
        if (hit)
            return at + __builtin_ctzll(hit) / 8;
        at += 8;
    }
    while (at < end && (unsigned char)*at >= 0x20 && (unsigned char)*at < 0x80 && *at != '"' && *at != '\\')
        at++;
    return at;
}

/* Reads a character of two to four bytes: shortest form, no surrogate, at most U+10FFFF. */
static const char *utf8_character(struct json *j, const char *at)
{
    const unsigned char *c = (const unsigned char *)at;
    int more = *c >= 0xf0 ? 3 : *c >= 0xe0 ? 2 : 1;
    unsigned char least = *c == 0xe0 ? 0xa0 : *c == 0xf0 ? 0x90 : 0x80;
    unsigned char most = *c == 0xed ? 0x9f : *c == 0xf4 ? 0x8f : 0xbf;

    if (*c < 0xc2 || *c > 0xf4 || j->end - at <= more || c[1] < least || c[1] > most)
        return fault(j, at, "invalid UTF-8");
    for (int i = 2; i <= more; i++)
        if ((c[i] & 0xc0) != 0x80)
            return fault(j, at, "invalid UTF-8");
    return at + more + 1;
}

/* Reads the code of "\uXXXX" at at; -1: there is none. */
static int hex_code(const struct json *j, const char *at)
{
    int code = 0;

    if (j->end - at < 6 || at[0] != '\\' || at[1] != 'u')
        return -1;
    for (int i = 2; i < 6; i++) {
        int digit = hex_value(at[i]);

        if (digit < 0)
            return -1;
        code = code << 4 | digit;
    }
    return code;
}

/* Finds the character for which the escape at `at` stands, and where the escape ends. */
static const char *escape(struct json *j, const char *at, unsigned *character)
{
    static const char plain[] = "\"\\/bfnrt", stands_for[] = "\"\\/\b\f\n\r\t";
    const char *found;
    int code, low;

    if (j->end - at < 2)
        return fault(j, at, "the string does not end");
    found = at[1] != '\0' ? strchr(plain, at[1]) : NULL;
    if (found) {
        *character = (unsigned char)stands_for[found - plain];
        return at + 2;
    }
    code = hex_code(j, at);
    if (code < 0)
        return fault(j, at, "an unknown escape");
    if (code == 0)
        return fault(j, at, "\\u0000 is not supported");
    *character = (unsigned)code;
    if (code < 0xd800 || code > 0xdfff)
        return at + 6;
    low = hex_code(j, at + 6);
    if (code > 0xdbff || low < 0xdc00 || low > 0xdfff)
        return fault(j, at, "half a surrogate pair");
    *character = 0x10000 + ((unsigned)(code - 0xd800) << 10) + (unsigned)(low - 0xdc00);
    return at + 12;
}

/* Reads a string from behind its opening quote. */
static const char *string(struct json *j, const char *at)
{
    unsigned ignored;

    while (at) {
        at = skip_plain(at, j->end);
        if (at == j->end)
            return fault(j, at, "the string does not end");
        if (*at == '"')
            return at + 1;
        if (j->lax)
            at += *at == '\\' && j->end - at > 1 ? 2 : 1;
        else if (*at == '\\')
            at = escape(j, at, &ignored);
        else if ((unsigned char)*at < 0x20)
            return fault(j, at, "a control character in a string");
        else
            at = utf8_character(j, at);
    }
    return NULL;
}

/* ---- Numbers */

static const char *skip_digits(const struct json *j, const char *at)
{
    while (at < j->end && *at >= '0' && *at <= '9')
        at++;
    return at;
}

/* digits: without sign and leading zeros. */
static bool fits_int64(const char *digits, size_t len, bool negative)
{
    if (len != 19)
        return len < 19;
    return memcmp(digits, negative ? "9223372036854775808" : "9223372036854775807", 19) <= 0;
}

/* Reads the fraction and exponent of a real whose integer part ends at `at`. */
static const char *real(struct json *j, const char *begin, const char *at)
{
    const char *digits;
    bool exponent;

    if (*at == '.') {
        digits = at + 1;
        at = skip_digits(j, digits);
        if (at == digits)
            return fault(j, at, "a digit is missing");
    }
    exponent = at < j->end && (*at == 'e' || *at == 'E');
    if (exponent) {
        at++;
        digits = at + (at < j->end && (*at == '+' || *at == '-'));
        at = skip_digits(j, digits);
        if (at == digits)
            return fault(j, at, "a digit is missing");
    }
    if (!j->lax && (exponent || at - begin > DBL_MAX_10_EXP) &&
        json_real_overflows((struct span){begin, (size_t)(at - begin)}))
        return fault(j, begin, "a number too large for a double");
    return at;
}

static const char *number(struct json *j, const char *begin)
{
    bool negative = *begin == '-';
    const char *digits = begin + negative, *at = skip_digits(j, digits);

    if (at == digits)
        return fault(j, at, "a digit is missing");
    if (*digits == '0' && at - digits > 1)
        return fault(j, digits, "a number with a leading zero");
    if (at < j->end && (*at == '.' || *at == 'e' || *at == 'E'))
        return real(j, begin, at);
    if (!j->lax && !fits_int64(digits, (size_t)(at - digits), negative))
        return fault(j, begin, "an integer that does not fit 64 bits");
    return at;
}

/* ---- Values */

bool json_has_mark(const char *text, size_t len)
{
    return len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0;
}

static const char *no_value(struct json *j, const char *at)
{
    return fault(j, at,
                 json_has_mark(at, (size_t)(j->end - at)) ? "a byte order mark (BOM) stands here"
                                                          : "no value begins");
}

static const char *word(struct json *j, const char *at, const char *text, size_t len)
{
    if ((size_t)(j->end - at) < len || memcmp(at, text, len) != 0)
        return no_value(j, at);
    return at + len;
}

/* Reads a name and its colon; returns where the value begins. *name includes the quotes. */
static const char *member_name(struct json *j, const char *at, struct span *name)
{
    if (at == j->end || *at != '"')
        return fault(j, at, "a member's name is missing");
    name->at = at;
    at = string(j, at + 1);
    if (!at)
        return NULL;
    name->len = (size_t)(at - name->at);
    at = space(j, at);
    if (at == j->end || *at != ':')
        return fault(j, at, "a colon is missing");
    return space(j, at + 1);
}

/* Reads what is behind a member or element: the next one follows, or (*done) the end. */
static const char *separator(struct json *j, const char *at, char closing, bool *done)
{
    at = space(j, at);
    if (at < j->end && *at == ',')
        return space(j, at + 1);
    *done = true;
    if (at < j->end && *at == closing)
        return at + 1;
    return fault(j, at, closing == '}' ? "a comma or } is missing" : "a comma or ] is missing");
}

/* True when a closing bracket follows the opening one. */
static bool is_empty(const struct json *j, const char **at, char closing)
{
    *at = space(j, *at);
    if (*at == j->end || **at != closing)
        return false;
    ++*at;
    return true;
}

static const char *object(struct json *j, const char *at, int depth)
{
    bool done = is_empty(j, &at, '}');
    struct span name;

    while (at && !done) {
        at = member_name(j, at, &name);
        if (at)
            at = json_value(j, at, depth);
        if (at)
            at = separator(j, at, '}', &done);
    }
    return at;
}

static const char *array(struct json *j, const char *at, int depth)
{
    bool done = is_empty(j, &at, ']');

    while (at && !done) {
        at = json_value(j, at, depth);
        if (at)
            at = separator(j, at, ']', &done);
    }
    return at;
}

/* Passes over a value, in which brackets of both kinds only have to close. */
static const char *pass_over(struct json *j, const char *at)
{
    size_t open = 0;

    do {
        if (at == j->end)
            return fault(j, at, "the text ends too early");
        open += *at == '{' || *at == '[';
        open -= *at == '}' || *at == ']';
        at = *at == '"' ? string(j, at + 1) : at + 1;
    } while (at && open > 0);
    return at;
}

const char *json_value(struct json *j, const char *at, int depth)
{
    if (at == j->end)
        return fault(j, at, "the text ends too early");
    switch (*at) {
    case '"':
        return string(j, at + 1);
    case '{':
    case '[':
        if (depth < 1)
            return j->lax ? pass_over(j, at) : fault(j, at, "nested too deep");
        return *at == '{' ? object(j, at + 1, depth - 1) : array(j, at + 1, depth - 1);
    case 't':
        return word(j, at, "true", 4);
    case 'f':
        return word(j, at, "false", 5);
    case 'n':
        return word(j, at, "null", 4);
    case '-':
        return number(j, at);
    default:
        return *at >= '0' && *at <= '9' ? number(j, at) : no_value(j, at);
    }
}

/* ---- Members */

static char *utf8_write(char *out, unsigned character)
{
    if (character < 0x80) {
        *out++ = (char)character;
        return out;
    }
    if (character < 0x800) {
        *out++ = (char)(0xc0 | character >> 6);
    } else {
        if (character < 0x10000) {
            *out++ = (char)(0xe0 | character >> 12);
        } else {
            *out++ = (char)(0xf0 | character >> 18);
            *out++ = (char)(0x80 | (character >> 12 & 0x3f));
        }
        *out++ = (char)(0x80 | (character >> 6 & 0x3f));
    }
    *out++ = (char)(0x80 | (character & 0x3f));
    return out;
}

/* Decodes the character of a string that begins at `at`, and finds where it ends. */
static const char *read_character(struct json *j, const char *at, char room[4], struct span *decoded)
{
    unsigned code;
    const char *end;

    if (*at == '\\') {
        if ((end = escape(j, at, &code))) {
            *decoded = (struct span){room, (size_t)(utf8_write(room, code) - room)};
            return end;
        }
        end = at + (hex_code(j, at) < 0 ? 2 : 6);
    } else {
        end = (unsigned char)*at < 0x80 ? at + 1 : utf8_character(j, at);
        if (end && *at != '\0') {
            *decoded = (struct span){at, (size_t)(end - at)};
            return end;
        }
        end = at + 1;
    }
    *decoded = (struct span){"?", 1};
    return end;
}

size_t json_text(struct span string, char *out, size_t size)
{
    struct json j;
    struct span decoded;
    char room[4];
    size_t len = 0;

    json_begin(&j, string.at + 1, string.len - 2);
    for (const char *at = j.begin; at < j.end;) {
        at = read_character(&j, at, room, &decoded);
        if (len + decoded.len >= size)
            break;
        memcpy(out + len, decoded.at, decoded.len);
        len += decoded.len;
    }
    out[len] = '\0';
    return len;
}

/* Decodes the escapes of a name, given as it stands, into m->decoded, which holds all names that the rest of
 * the text can have. */
static bool decode_name(struct json *j, struct json_members *m, struct span *name)
{
    char *begin;

    if (!m->decoded)
        m->decoded = malloc((size_t)(j->end - name->at));
    if (!m->decoded) {
        j->status = WEIR_EINTERNAL;
        return false;
    }
    begin = m->decoded + m->decoded_len;
    *name = (struct span){begin, json_text(*name, begin, name->len)};
    m->decoded_len += name->len + 1;
    return true;
}

static struct json_member *new_member(struct json *j, struct json_members *m)
{
    struct json_member *grown;

    if (m->count < m->capacity)
        return &m->at[m->count++];
    grown = realloc(m->at == m->few ? NULL : m->at, 2 * m->capacity * sizeof *grown);
    if (!grown) {
        j->status = WEIR_EINTERNAL;
        return NULL;
    }
    if (m->at == m->few)
        memcpy(grown, m->few, m->count * sizeof *grown);
    m->at = grown;
    m->capacity *= 2;
    return &m->at[m->count++];
}

static const char *member(struct json *j, const char *at, struct json_members *m)
{
    struct span name;
    const char *value = member_name(j, at, &name), *end;
    struct json_member *added;

    end = value ? json_value(j, value, JSON_DEPTH - 1) : NULL;
    if (!end)
        return NULL;
    if (!memchr(name.at, '\\', name.len))
        name = (struct span){name.at + 1, name.len - 2};
    else if (!decode_name(j, m, &name))
        return fault(j, at, "out of memory");
    added = new_member(j, m);
    if (!added)
        return fault(j, at, "out of memory");
    *added = (struct json_member){at, name, {value, (size_t)(end - value)}};
    return end;
}

static int compare_names(const void *one, const void *other)
{
    const struct json_member *a = *(struct json_member *const *)one, *b = *(struct json_member *const *)other;

    if (a->name.len != b->name.len)
        return a->name.len < b->name.len ? -1 : 1;
    return memcmp(a->name.at, b->name.at, a->name.len);
}

/* Finds the second of two members of one name, or NULL; by sorting, as what a stranger sends may have many
 * members. */
static const struct json_member *find_twin_sorted(struct json *j, const struct json_members *m)
{
    const struct json_member **sorted = malloc(m->count * sizeof *sorted), *twin = NULL;

    if (!sorted) {
        j->status = WEIR_EINTERNAL;
        return &m->at[0];
    }
    for (size_t i = 0; i < m->count; i++)
        sorted[i] = &m->at[i];
    qsort(sorted, m->count, sizeof *sorted, compare_names);
    for (size_t i = 1; i < m->count && !twin; i++)
        if (compare_names(&sorted[i - 1], &sorted[i]) == 0)
            twin = sorted[i - 1] > sorted[i] ? sorted[i - 1] : sorted[i];
    free(sorted);
    return twin;
}

static const struct json_member *find_twin(struct json *j, const struct json_members *m)
{
    if (m->count > JSON_MEMBERS_FEW)
        return find_twin_sorted(j, m);
    for (size_t i = 1; i < m->count; i++)
        for (size_t k = 0; k < i; k++)
            if (span_is(m->at[i].name, m->at[k].name))
                return &m->at[i];
    return NULL;
}

const char *json_members(struct json *j, const char *at, struct json_members *m)
{
    bool done;
    const struct json_member *twin;

    m->at = m->few;
    m->count = 0;
    m->capacity = JSON_MEMBERS_FEW;
    m->decoded = NULL;
    m->decoded_len = 0;
    at++;
    done = is_empty(j, &at, '}');
    while (at && !done) {
        at = member(j, at, m);
        if (at)
            at = separator(j, at, '}', &done);
    }
    if (!at || j->lax)
        return at;
    twin = find_twin(j, m);
    return twin ? fault(j, twin->begin, "a member comes twice") : at;
}

void json_members_free(struct json_members *m)
{
    if (m->at != m->few)
        free(m->at);
    free(m->decoded);
}

struct span json_member(const struct json_members *m, const char *name)
{
    struct span value = {NULL, 0};

    for (size_t i = 0; i < m->count; i++)
        if (span_is(m->at[i].name, span_str(name)))
            value = m->at[i].value;
    return value;
}

struct span json_find(const char *text, size_t len, const char *name)
{
    struct span value = {NULL, 0};
    struct json_members m;
    struct json j;

    if (!memmem(text, len, name, strlen(name)))
        return value;
    json_begin(&j, text, len);
    if (json_members(&j, space(&j, text), &m))
        value = json_member(&m, name);
    json_members_free(&m);
    return value;
}

void json_one_line(char *text, size_t len)
{
    for (char *at = text; (at = memchr(at, '\n', len - (size_t)(at - text)));)
        *at = ' ';
    for (char *at = text; (at = memchr(at, '\r', len - (size_t)(at - text)));)
        *at = ' ';
}

int json_check(const char *text, size_t len, struct error *e)
{
    struct json j;
    struct json_members members;
    const char *at;

    json_begin(&j, text, len);
    at = space(&j, text);
    if (at < j.end && *at == '{') {
        at = json_members(&j, at, &members);
        json_members_free(&members);
    } else {
        at = json_value(&j, at, JSON_DEPTH);
    }
    if (!at || !json_end(&j, at))
        return json_error(&j, "not JSON", e);
    return 0;
}

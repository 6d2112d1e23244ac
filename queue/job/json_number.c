#include "queue/job/json_number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A real is 0.<digits from first> * 10^magnitude. */
struct real {
    const char *first, *end; /* its digits, with the point among them; first == end: zero */
    long magnitude;
};

/* An exponent is clipped to more than any body has bytes, so that it decides as the true one. */
#define EXPONENT_MOST 100000000L

static void real_read(struct span number, struct real *r)
{
    const char *end = number.at + number.len, *at = number.at + (*number.at == '-'), *point;
    long exponent = 0;

    r->end = at;
    while (r->end < end && *r->end != 'e' && *r->end != 'E')
        r->end++;
    if (r->end < end) {
        const char *digit = r->end + 1 + (r->end[1] == '-' || r->end[1] == '+');

        for (; digit < end; digit++)
            exponent = exponent < EXPONENT_MOST ? exponent * 10 + (*digit - '0') : EXPONENT_MOST;
        exponent = r->end[1] == '-' ? -exponent : exponent;
    }
    point = memchr(at, '.', (size_t)(r->end - at));
    point = point ? point : r->end;
    for (r->first = at; r->first < r->end && (*r->first == '0' || *r->first == '.');)
        r->first++;
    r->magnitude = exponent + (long)(point - r->first) + (r->first > point);
}

bool json_real_overflows(struct span number)
{
    /* 2^1024 - 2^970, of whose 309 digits these decide. */
    static const char infinite[] = "1797693134862315807937289714053034150799";
    struct real r;
    const char *digit = infinite;

    real_read(number, &r);
    if (r.first == r.end || r.magnitude != 309)
        return r.first != r.end && r.magnitude > 309;
    for (const char *at = r.first; at < r.end && *digit; at++) {
        if (*at == '.')
            continue;
        if (*at != *digit)
            return *at > *digit;
        digit++;
    }
    return *digit == '\0';
}

bool json_read_integer(struct span value, int64_t least, int64_t most, int64_t *out)
{
    char text[24];
    char *end;

    if (value.len >= sizeof text)
        return false;
    memcpy(text, value.at, value.len);
    text[value.len] = '\0';
    *out = strtoll(text, &end, 10);
    return end != text && *end == '\0' && *out >= least && *out <= most;
}

bool json_read_seconds(struct span value, int64_t most_us, int64_t *us)
{
    struct real r;
    long double mantissa = 0, scaled;
    long digits = 0, shift;

    if (*value.at < '0' || *value.at > '9')
        return false;
    real_read(value, &r);
    for (const char *at = r.first; at < r.end && digits < 18; at++) {
        if (*at == '.')
            continue;
        mantissa = mantissa * 10 + (*at - '0');
        digits++;
    }
    if (digits == 0 || r.magnitude > 18)
        return false;
    shift = r.magnitude - digits + 6;
    scaled =
        ceill(shift < 0 ? mantissa / powl(10, (long double)-shift) : mantissa * powl(10, (long double)shift));
    if (scaled > (long double)most_us)
        return false;
    *us = scaled < 1 ? 1 : (int64_t)scaled;
    return true;
}

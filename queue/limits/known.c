#include "queue/limits/known.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/client/reply.h"
#include "core/script/script.h"

#define RECORDS_MOST 1000 /* that a worker keeps, */
#define BYTES_MOST ((size_t)256 * 1024)
#define TYPES_MOST 1000 /* in one request; an answer says how many are done */

void known_limits_ask_anew(struct known_limits *known)
{
    args_free(&known->pages.records);
    known->pages = (struct known_pages){.asked = 0};
}

void known_limits_free(struct known_limits *known)
{
    known_limits_ask_anew(known);
    args_free(&known->records);
    *known = (struct known_limits){0};
}

void known_limits_are_written(struct known_limits *known)
{
    known->newest[0] = '\0';
}

/* A revision is a time in microseconds, so at most 16 digits. */
static int64_t revision_of(struct span text)
{
    char digits[24];

    snprintf(digits, sizeof digits, "%.*s", (int)text.len, text.at);
    return strtoll(digits, NULL, 10);
}

bool known_limits_are_older(const struct known_limits *known, struct span newest)
{
    return !*known->newest || newest.len == 0 || revision_of(newest) > strtoll(known->newest, NULL, 10);
}

bool known_limits_asks_more(const struct known_limits *known)
{
    return *known->pages.newest != '\0';
}

static size_t room(size_t most, size_t used)
{
    return used < most ? most - used : 0;
}

void rate_known_request(struct args *a, const char *prefix, int64_t now_us, struct known_limits *known,
                        const char *birth, struct names types)
{
    struct known_pages *pages = &known->pages;
    size_t count = (size_t)types.count, left;

    if (!known_limits_asks_more(known))
        known_limits_ask_anew(known);
    left = room(count, pages->types);
    pages->asked = left < TYPES_MOST ? left : TYPES_MOST;
    script_begin(a, "rate_known", prefix, now_us);
    args_add(a, known->newest);
    args_add(a, birth);
    args_add_int(a, (int64_t)room(RECORDS_MOST, pages->records.count));
    args_add_int(a, (int64_t)room(BYTES_MOST, pages->records.len));
    args_add_int(a, (int64_t)(left - pages->asked));
    for (size_t i = pages->types; i < pages->types + pages->asked; i++)
        args_add(a, types.at[i]);
}

/* The elements from `first` on are texts. */
static int check_texts(const struct redisReply *reply, size_t first, const char *script, struct error *e)
{
    for (size_t i = first; i < reply->elements; i++)
        if (reply->element[i]->type != REDIS_REPLY_STRING)
            return reply_unexpected(script, e);
    return 0;
}

enum { KNOWN_NEWEST, KNOWN_LEFT_OUT, KNOWN_DONE, KNOWN_MORE, KNOWN_RECORDS };

static bool has_more(const struct redisReply *reply)
{
    return reply_int(reply->element[KNOWN_MORE], -1) == 1;
}

/* A page that says something: each that is not the last has done more than the one before. */
static int check_page(const struct redisReply *reply, const struct known_pages *pages, struct error *e)
{
    bool whole = reply->elements > KNOWN_MORE;
    int64_t done = whole ? reply_int(reply->element[KNOWN_DONE], -1) : -1;
    int64_t more = whole ? reply_int(reply->element[KNOWN_MORE], -1) : -1;

    if (done < more || more < 0 || more > 1 || (size_t)done > pages->asked)
        return reply_unexpected("rate_known", e);
    return check_texts(reply, KNOWN_RECORDS, "rate_known", e);
}

/* True when it was on one of the pages before. A limit is told on each page that has a type of it. */
static bool is_told(const struct args *records, size_t before, const struct redisReply *record)
{
    for (size_t i = 0, begin = 0; i < before; begin = records->ends[i++])
        if (records->ends[i] - begin == record->len &&
            memcmp(records->bytes + begin, record->str, record->len) == 0)
            return true;
    return false;
}

static int add_page(const struct redisReply *reply, struct known_pages *pages, struct error *e)
{
    size_t before = pages->records.count;

    for (size_t i = KNOWN_RECORDS; i < reply->elements; i++)
        if (!is_told(&pages->records, before, reply->element[i]))
            args_add_bytes(&pages->records, reply->element[i]->str, reply->element[i]->len);
    if (pages->records.failed)
        return error_no_memory(e, "rate_known");
    pages->left_out += reply_int(reply->element[KNOWN_LEFT_OUT], 0);
    pages->types += (size_t)reply_int(reply->element[KNOWN_DONE], 0);
    if (!*pages->newest)
        strcpy(pages->newest, reply->element[KNOWN_NEWEST]->str);
    return 0;
}

/* Takes the pages, as that was the last one. What was changed meanwhile has a newer revision than the first page: the next question learns
 * it. */
static void take_pages(struct known_limits *known)
{
    struct known_pages *pages = &known->pages;

    args_free(&known->records);
    known->records = pages->records;
    known->left_out = pages->left_out;
    strcpy(known->newest, pages->newest);
    *pages = (struct known_pages){.asked = 0};
}

/* Revisions only grow: Redis has lost what the first page was read of. */
static bool is_lost(const struct known_pages *pages, const char *newest)
{
    return *pages->newest && strtoll(newest, NULL, 10) < strtoll(pages->newest, NULL, 10);
}

static int read_known(const struct redisReply *reply, struct known_limits *known, struct error *e)
{
    const struct redisReply *newest;
    int rc = reply_array(reply, 1, "rate_known", e);

    if (rc != 0)
        return rc;
    newest = reply->element[KNOWN_NEWEST];
    if (newest->type != REDIS_REPLY_STRING || newest->len >= sizeof known->newest)
        return reply_unexpected("rate_known", e);
    if (reply->elements == 1 || is_lost(&known->pages, newest->str)) {
        known_limits_ask_anew(known);
        return 0;
    }
    rc = check_page(reply, &known->pages, e);
    if (rc == 0)
        rc = add_page(reply, &known->pages, e);
    if (rc == 0 && !has_more(reply))
        take_pages(known);
    return rc;
}

int rate_known_reply(const struct redisReply *reply, struct known_limits *known, struct error *e)
{
    int rc = read_known(reply, known, e);

    if (rc != 0)
        known_limits_ask_anew(known);
    return rc;
}

void known_limits_begin_again(struct known_limits *known)
{
    known->again = 0;
    strcpy(known->cursor, "0");
    known->revision[0] = '\0';
}

bool known_limits_has_more(const struct known_limits *known)
{
    return known->again < known->records.count;
}

#define AGAIN_MOST 30     /* records of one request: each limit is some 20 commands */
#define AGAIN_BYTES 16384 /* and the one that passes that, as a record may have many lines */

/* Finds the record behind those of the next request. */
static size_t again_end(const struct known_limits *known)
{
    const size_t *ends = known->records.ends;
    size_t at = known->again, begin = at ? ends[at - 1] : 0;

    while (at < known->records.count && at - known->again < AGAIN_MOST &&
           (at == known->again || ends[at - 1] - begin < AGAIN_BYTES))
        at++;
    return at;
}

void rate_again_request(struct args *a, const char *prefix, int64_t now_us, const char *by,
                        const struct known_limits *known)
{
    const struct args *records = &known->records;

    script_begin(a, "rate_again", prefix, now_us);
    args_add(a, by);
    args_add(a, known->cursor);
    args_add(a, known->revision);
    for (size_t i = known->again, end = again_end(known); i < end; i++) {
        size_t begin = i ? records->ends[i - 1] : 0;

        args_add_bytes(a, records->bytes + begin, records->ends[i] - begin);
    }
}

int rate_again_reply(const struct redisReply *reply, struct known_limits *known, char *written, size_t size,
                     struct error *e)
{
    int rc = reply_array(reply, 2, "rate_again", e);
    size_t len = 0;

    if (rc == 0)
        rc = check_texts(reply, 0, "rate_again", e);
    *written = '\0';
    if (rc != 0)
        return rc;
    if (reply->element[0]->len >= sizeof known->cursor || reply->element[1]->len >= sizeof known->revision)
        return reply_unexpected("rate_again", e);
    strcpy(known->cursor, reply->element[0]->str);
    strcpy(known->revision, reply->element[1]->str);
    if (strcmp(known->cursor, "0") == 0)
        known->again = again_end(known);
    for (size_t i = 2; i < reply->elements && len < size; i++)
        len += (size_t)snprintf(written + len, size - len, "%s%s", i > 2 ? ", " : "", reply->element[i]->str);
    return 0;
}

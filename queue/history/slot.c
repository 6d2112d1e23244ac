#include "queue/history/slot.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "queue/turn/record.h"

#define REASON_SIZE 256
#define DIGITS_MOST 16 /* of a count: it stays below 2^53 */

/* Counts by their letter; slots of a limit that were wasted or given back stand in an object of their own. */
static const struct {
    char letter;
    const char *name, *in;
} counts[] = {
    {'s', "starts", NULL},
    {'d', "done", NULL},
    {'r', "retried", NULL},
    {'x', "dead", NULL},
    {'c', "cancelled", NULL},
    {'t', "throttled", NULL},
    {'g', "granted", NULL},
    {'n', "no_job", "wasted"},
    {'e', "no_executor", "wasted"},
    {'h', "held", "wasted"},
    {'l', "late", "wasted"},
    {'u', "not_begun", "given_back"},
    {'v', "late", "given_back"},
    {'f', "no_handler", "given_back"},
    {'w', "wrong_job", "given_back"},
};
static const struct {
    char letter;
    const char *name;
} histograms[] = {
    {'R', "run"}, {'A', "rate"}, {'K', "key"}, {'C', "concurrency"}, {'P', "pause"}, {'E', "executor"},
};
#define COUNT(list) (sizeof(list) / sizeof *(list))
#define RUN 0 /* the others are waits */

/* What is being read; a histogram is put into the row at the end, in the order of its buckets. */
struct reading {
    json_t *row;
    int64_t buckets[COUNT(histograms)][RECORD_BUCKETS];
};

/* ---- Words */

/* Takes the next word, without the blanks before it; empty: that was all. */
static struct span next_word(struct span *left)
{
    struct span word;

    while (left->len > 0 && isspace((unsigned char)*left->at))
        *left = (struct span){left->at + 1, left->len - 1};
    word = (struct span){left->at, 0};
    while (word.len < left->len && !isspace((unsigned char)word.at[word.len]))
        word.len++;
    *left = (struct span){left->at + word.len, left->len - word.len};
    return word;
}

/* Takes the digits from the end of a word; 0: there are none, or too many. */
static int64_t take_count(struct span *word)
{
    int64_t n = 0, unit = 1;
    int digits = 0;

    for (; word->len > 0 && isdigit((unsigned char)word->at[word->len - 1]); word->len--, digits++) {
        if (digits < DIGITS_MOST) {
            n += unit * (word->at[word->len - 1] - '0');
            unit *= 10;
        }
    }
    return digits <= DIGITS_MOST ? n : 0;
}

/* ---- Counts */

/* Of an object in the row, which is made when it is needed. */
static void put_in(struct reading *r, const char *member, const char *name, int64_t n)
{
    json_t *inner = json_object_get(r->row, member);

    if (!inner)
        json_object_set_new(r->row, member, inner = json_object());
    if (!json_object_get(inner, name))
        json_object_set_new(inner, name, json_integer(n));
}

static int histogram_of(char letter)
{
    for (size_t i = 0; i < COUNT(histograms); i++)
        if (histograms[i].letter == letter)
            return (int)i;
    return -1;
}

/* Returns the bucket of a letter, a to z, A to F; -1: none. */
static int bucket_of(char letter)
{
    int bucket = letter >= 'a' && letter <= 'z' ? letter - 'a' : letter >= 'A' ? letter - 'A' + 26 : -1;

    return bucket < RECORD_BUCKETS ? bucket : -1;
}

/* Puts a count of a letter and a bucket, or "+" for the milliseconds of all. */
static void put_timed(struct reading *r, const char code[2], int64_t n)
{
    int histogram = histogram_of(code[0]), bucket = bucket_of(code[1]);

    if (histogram >= 0 && code[1] == '+')
        put_in(r, "spent", histograms[histogram].name, n);
    else if (histogram >= 0 && bucket >= 0 && r->buckets[histogram][bucket] == 0)
        r->buckets[histogram][bucket] = n;
}

static void put_count(struct reading *r, char letter, int64_t n)
{
    for (size_t i = 0; i < COUNT(counts); i++)
        if (counts[i].letter == letter && counts[i].in)
            put_in(r, counts[i].in, counts[i].name, n);
        else if (counts[i].letter == letter && !json_object_get(r->row, counts[i].name))
            json_object_set_new(r->row, counts[i].name, json_integer(n));
}

static int hex(char c)
{
    return isdigit((unsigned char)c)    ? c - '0'
           : isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10
                                        : -1;
}

/* Puts ":", the reason, "=": what is no letter and no digit stands as %XX. */
static void put_reason(struct reading *r, struct span code, int64_t n)
{
    char reason[REASON_SIZE];
    size_t len = 0;

    for (size_t i = 1; i + 1 < code.len && len + 1 < sizeof reason; i++) {
        int high = code.at[i] == '%' && i + 3 < code.len ? hex(code.at[i + 1]) : -1;
        int low = high >= 0 ? hex(code.at[i + 2]) : -1;

        reason[len++] = low >= 0 ? (char)(16 * high + low) : code.at[i];
        i += low >= 0 ? 2 : 0;
    }
    reason[len] = '\0';
    put_in(r, "throttled", reason, n);
}

static void put(struct reading *r, struct span code, int64_t n)
{
    if (code.len > 1 && *code.at == ':')
        put_reason(r, code, n);
    else if (code.len == 2)
        put_timed(r, code.at, n);
    else if (code.len == 1)
        put_count(r, *code.at, n);
}

/* ---- Histograms */

static json_t *histogram(const int64_t buckets[RECORD_BUCKETS])
{
    json_t *list = NULL;

    for (int i = 0; i < RECORD_BUCKETS; i++) {
        if (buckets[i] == 0)
            continue;
        if (!list)
            list = json_array();
        json_array_append_new(list, json_pack("[I, I]", (json_int_t)1 << i, (json_int_t)buckets[i]));
    }
    return list;
}

static void put_histograms(struct reading *r)
{
    json_t *wait = json_object();

    for (size_t i = 0; i < COUNT(histograms); i++) {
        json_t *list = histogram(r->buckets[i]);

        if (list)
            json_object_set_new(i == RUN ? r->row : wait, histograms[i].name, list);
    }
    if (json_object_size(wait) > 0)
        json_object_set(r->row, "wait", wait);
    json_decref(wait);
}

json_t *slot_read(struct span text, int64_t number)
{
    struct reading r = {.row = json_object()};
    char begin[32];
    size_t len = (size_t)snprintf(begin, sizeof begin, "%" PRId64 " ", number);

    if (!r.row || text.len < len || memcmp(text.at, begin, len) != 0)
        return r.row;
    text = (struct span){text.at + len, text.len - len};
    for (struct span word; (word = next_word(&text)).len > 0;) {
        int64_t n = take_count(&word);

        if (n > 0)
            put(&r, word, n);
    }
    put_histograms(&r);
    return r.row;
}

#include "queue/turn/record.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/client/reply.h"
#include "core/script/script.h"
#include "core/utf8.h"

void record_request(struct args *a, const char *prefix, int64_t now_us)
{
    script_begin(a, "record", prefix, now_us);
}

void record_row(struct args *a, enum record_what what, struct span name)
{
    static const char *const words[] = {[RECORD_TYPE] = "t", [RECORD_LIMIT] = "l", [RECORD_STARTS] = "s"};

    args_add(a, words[what]);
    args_add_bytes(a, name.at, name.len);
    args_add(a, "");
}

static void add_count(struct args *a, const char *code, int64_t count)
{
    char word[3 * RECORD_REASON_MOST + 32];
    int len = snprintf(word, sizeof word, " %s%" PRId64, code, count);

    args_extend(a, word, (size_t)len);
}

void record_count(struct args *a, char code, int64_t count)
{
    if (count != 0)
        add_count(a, (char[]){code, 0}, count);
}

void record_bucket(struct args *a, char code, int bucket, int64_t count)
{
    if (count != 0)
        add_count(a, (char[]){code, (char)(bucket < 26 ? 'a' + bucket : 'A' + bucket - 26), 0}, count);
}

void record_spent(struct args *a, char code, int64_t *us)
{
    if (*us < 1000)
        return;
    add_count(a, (char[]){code, '+', 0}, *us / 1000);
    *us %= 1000;
}

void record_start(struct args *a, int64_t tenth, int64_t count)
{
    char code[32];

    snprintf(code, sizeof code, "%" PRId64 "=", tenth);
    add_count(a, code, count);
}

void record_lost(struct args *a, char code, int64_t second, int64_t count)
{
    char word[32];

    if (count == 0)
        return;
    snprintf(word, sizeof word, "%c%" PRId64 "=", toupper((unsigned char)code), second);
    add_count(a, word, count);
}

/* Writes a character of n bytes, escaped unless it is a letter or a digit. */
static size_t put_escaped(char *to, const char *text, size_t n)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t len = 0;

    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];

        if (c < 0x80 && isalnum(c)) {
            to[len++] = (char)c;
        } else {
            to[len++] = '%';
            to[len++] = digits[c >> 4];
            to[len++] = digits[c & 15];
        }
    }
    return len;
}

void record_reason(struct args *a, const char *reason, int64_t count)
{
    char word[3 * RECORD_REASON_MOST + 3] = ":";
    size_t len = 1, size = strlen(reason), at = 0, n;

    for (; at < size && at < RECORD_REASON_MOST; at += n ? n : 1) {
        n = utf8_printable(reason + at, size - at);
        if (at + n > RECORD_REASON_MOST)
            break;
        len += put_escaped(word + len, n ? reason + at : "?", n ? n : 1);
    }
    word[len++] = '=';
    word[len] = 0;
    add_count(a, word, count);
}

enum record_cause record_cause_of(char letter)
{
    switch (letter) {
    case 'A':
        return CAUSE_RATE;
    case 'K':
        return CAUSE_KEY;
    case 'C':
        return CAUSE_CONCURRENCY;
    case 'P':
        return CAUSE_PAUSE;
    default:
        return CAUSE_EXECUTOR;
    }
}

int record_bucket_of(int64_t us)
{
    uint64_t ms = us > 1 ? (uint64_t)(us - 1) / 1000 : 0; /* those that are full */
    int bucket = ms ? 64 - __builtin_clzll(ms) : 0;

    return bucket < RECORD_BUCKETS - 1 ? bucket : RECORD_BUCKETS - 1;
}

int record_reply(const struct redisReply *reply, struct span *wrong, struct error *e)
{
    int rc = reply_array(reply, 0, "record", e);

    *wrong = (struct span){"", 0};
    if (rc == 0 && reply->elements > 0 && reply->element[0]->type == REDIS_REPLY_STRING)
        *wrong = (struct span){reply->element[0]->str, reply->element[0]->len};
    return rc;
}

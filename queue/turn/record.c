#include "queue/turn/record.h"

#include <ctype.h>
#include <string.h>

#include "core/client/reply.h"
#include "core/script/script.h"

#define RECORD_REASON_MOST                                                                                   \
    24 /* characters of a reason that are kept: escaped they are three times as many at most */

void record_request(struct args *a, const char *prefix, int64_t now_us)
{
    script_begin(a, "record", prefix, now_us);
}

void record_row(struct args *a, enum record_what what, struct span name)
{
    static const char *const words[] = {[RECORD_TYPE] = "t", [RECORD_LIMIT] = "l", [RECORD_STARTS] = "s"};

    args_add(a, words[what]);
    args_add_bytes(a, name.at, name.len);
}

void record_count(struct args *a, char code, int64_t count)
{
    if (count == 0)
        return;
    args_add_bytes(a, &code, 1);
    args_add_int(a, count);
}

void record_bucket(struct args *a, char code, int bucket, int64_t count)
{
    char word[] = {code, (char)(bucket < 26 ? 'a' + bucket : 'A' + bucket - 26)};

    if (count == 0)
        return;
    args_add_bytes(a, word, sizeof word);
    args_add_int(a, count);
}

void record_spent(struct args *a, char code, int64_t *us)
{
    const char word[] = {code, '+'};

    if (*us < 1000)
        return;
    args_add_bytes(a, word, sizeof word);
    args_add_int(a, *us / 1000);
    *us %= 1000;
}

void record_start(struct args *a, int64_t tenth, int64_t count)
{
    args_add_int(a, tenth);
    args_add_int(a, count);
}

void record_reason(struct args *a, const char *reason, int64_t count)
{
    static const char digits[] = "0123456789ABCDEF";
    char word[3 * RECORD_REASON_MOST + 2] = ":";
    size_t len = 1;

    for (size_t i = 0; i < RECORD_REASON_MOST && reason[i]; i++) {
        unsigned char c = (unsigned char)reason[i];

        if (c < 0x80 && isalnum(c)) {
            word[len++] = (char)c;
        } else {
            word[len++] = '%';
            word[len++] = digits[c >> 4];
            word[len++] = digits[c & 15];
        }
    }
    word[len++] = '=';
    args_add_bytes(a, word, len);
    args_add_int(a, count);
}

void record_end_row(struct args *a)
{
    args_add(a, "");
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
    int bucket = 0;

    while (bucket < RECORD_BUCKETS - 1 && us > (INT64_C(1000) << bucket))
        bucket++;
    return bucket;
}

int record_reply(const struct redisReply *reply, struct span *wrong, struct error *e)
{
    int rc = reply_array(reply, 0, "record", e);

    *wrong = (struct span){"", 0};
    if (rc == 0 && reply->elements > 0 && reply->element[0]->type == REDIS_REPLY_STRING)
        *wrong = (struct span){reply->element[0]->str, reply->element[0]->len};
    return rc;
}

#include "tests/fuzz/fake_redis.h"

#include "core/redis/redis.h"
#include "tests/fuzz/fuzz.h"

#define DEPTH_MOST 6
#define ELEMENTS_MOST 4096
#define WINDOW 64 /* answers under way */

static fake_answer *answer_of;
static struct redisReply *under_way[WINDOW];
static size_t first, count;

void fake_redis(fake_answer *answer)
{
    while (count > 0) {
        freeReplyObject(under_way[first++ % WINDOW]);
        count--;
    }
    answer_of = answer;
}

struct span fake_word(const struct args *asked, size_t i)
{
    size_t begin = i > 0 ? asked->ends[i - 1] : 0;

    return i < asked->count ? (struct span){asked->bytes + begin, asked->ends[i] - begin}
                            : (struct span){"", 0};
}

/* ---- In place of core/redis/redis.c */

static int judge(struct redisReply *answer, struct redisReply **reply, struct error *e)
{
    int status = 0;

    *reply = NULL;
    if (!answer)
        return error_set(e, WEIR_EREFUSED, "no more answers");
    if (answer->type == REDIS_REPLY_ERROR) {
        status = redis_fault_error(e, answer->str);
        freeReplyObject(answer);
    } else {
        *reply = answer;
    }
    return status;
}

int __wrap_redis_call(struct redis *r, const struct args *a, struct redisReply **reply, bool *sent,
                      struct error *e);
int __wrap_redis_append(struct redis *r, const struct args *a, struct error *e);
int __wrap_redis_flush(struct redis *r, struct error *e);
int __wrap_redis_result(struct redis *r, struct redisReply **reply, struct error *e);
int __wrap_redis_load_scripts(struct redis *r, struct error *e);

int __wrap_redis_call(struct redis *r, const struct args *a, struct redisReply **reply, bool *sent,
                      struct error *e)
{
    (void)r;
    if (sent)
        *sent = true;
    return judge(answer_of(a), reply, e);
}

int __wrap_redis_append(struct redis *r, const struct args *a, struct error *e)
{
    (void)r, (void)e;
    must_hold(count < WINDOW);
    under_way[(first + count++) % WINDOW] = answer_of(a);
    return 0;
}

int __wrap_redis_flush(struct redis *r, struct error *e)
{
    (void)r, (void)e;
    return 0;
}

int __wrap_redis_result(struct redis *r, struct redisReply **reply, struct error *e)
{
    (void)r;
    must_hold(count > 0);
    count--;
    return judge(under_way[first++ % WINDOW], reply, e);
}

int __wrap_redis_load_scripts(struct redis *r, struct error *e)
{
    (void)r, (void)e;
    return 0;
}

/* ---- Answers from text */

static struct redisReply *new_reply(int type)
{
    struct redisReply *r = calloc(1, sizeof *r);

    must_hold(r != NULL);
    r->type = type;
    return r;
}

static struct redisReply *new_text(int type, const char *text, size_t len)
{
    struct redisReply *r = new_reply(type);

    r->str = fuzz_text((const uint8_t *)text, len);
    r->len = len;
    for (size_t i = 0; i < len; i++)
        if (r->str[i] == '\x01')
            r->str[i] = '\n';
    return r;
}

/* A line, without its newline; *at goes behind it. */
static struct span next_line(const char **at, const char *end)
{
    const char *newline = memchr(*at, '\n', (size_t)(end - *at));
    struct span line = {*at, (size_t)((newline ? newline : end) - *at)};

    *at = newline ? newline + 1 : end;
    return line;
}

static struct redisReply *read_one(const char **at, const char *end, int depth);

static struct redisReply *read_array(const char **at, const char *end, int depth)
{
    struct redisReply *r = new_reply(REDIS_REPLY_ARRAY);

    r->element = calloc(ELEMENTS_MOST, sizeof(struct redisReply *));
    must_hold(r->element != NULL);
    while (*at < end && r->elements < ELEMENTS_MOST) {
        if (**at == ']') {
            next_line(at, end);
            break;
        }
        r->element[r->elements++] = read_one(at, end, depth + 1);
    }
    return r;
}

static struct redisReply *read_one(const char **at, const char *end, int depth)
{
    struct span line = next_line(at, end);
    struct redisReply *r;
    char number[24];

    if (line.len == 0)
        return new_text(REDIS_REPLY_STRING, "", 0);
    switch (*line.at) {
    case '[':
        return depth < DEPTH_MOST ? read_array(at, end, depth) : new_reply(REDIS_REPLY_NIL);
    case '~':
        return new_reply(REDIS_REPLY_NIL);
    case '-':
        return new_text(REDIS_REPLY_ERROR, line.at + 1, line.len - 1);
    case ':':
        r = new_reply(REDIS_REPLY_INTEGER);
        snprintf(number, sizeof number, "%.*s", (int)(line.len - 1 < 23 ? line.len - 1 : 23), line.at + 1);
        r->integer = strtoll(number, NULL, 10);
        return r;
    case '\'':
        return new_text(REDIS_REPLY_STRING, line.at + 1, line.len - 1);
    default:
        return new_text(REDIS_REPLY_STRING, line.at, line.len);
    }
}

struct redisReply *fake_read(const char **at, const char *end)
{
    return *at < end ? read_one(at, end, 0) : NULL;
}

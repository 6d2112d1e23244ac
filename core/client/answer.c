#include "core/client/answer.h"

#include <stdlib.h>

#include "core/client/reply.h"
#include "core/script/script.h"

/* ---- Bytes that are not UTF-8. Jansson refuses them. So each byte above 127 is read as the character of that
 * number, and becomes a byte again in the document. */

static bool is_narrowed(json_t *value);

static bool narrow_string(json_t *string)
{
    const unsigned char *from = (const unsigned char *)json_string_value(string);
    size_t size = json_string_length(string), len = 0;
    char *bytes = malloc(size + 1);
    bool done;

    for (size_t i = 0; bytes && i < size; i++) {
        bool wide = from[i] >= 0x80 && i + 1 < size;

        bytes[len++] = (char)(wide ? from[i] << 6 | (from[i + 1] & 0x3f) : from[i]);
        i += wide;
    }
    done = bytes && json_string_setn_nocheck(string, bytes, len) == 0;
    free(bytes);
    return done;
}

/* Names of members stay as they are: ours are ASCII. */
static bool narrow_members(json_t *object)
{
    const char *name;
    json_t *value;

    json_object_foreach(object, name, value)
        if (!is_narrowed(value))
            return false;
    return true;
}

static bool is_narrowed(json_t *value)
{
    bool done = true;

    if (json_is_string(value))
        return narrow_string(value);
    if (json_is_object(value))
        return narrow_members(value);
    for (size_t i = 0; done && i < json_array_size(value); i++)
        done = is_narrowed(json_array_get(value, i));
    return done;
}

static json_t *parse_bytes(const char *text, size_t len)
{
    unsigned char *wide = malloc(2 * len + 1), *to = wide;
    json_t *document;

    for (size_t i = 0; wide && i < len; i++) {
        unsigned char byte = (unsigned char)text[i];

        if (byte >= 0x80)
            *to++ = 0xc0 | byte >> 6;
        *to++ = byte >= 0x80 ? 0x80 | (byte & 0x3f) : byte;
    }
    document = wide ? json_loadb((char *)wide, (size_t)(to - wide), JSON_ALLOW_NUL, NULL) : NULL;
    free(wide);
    if (document && !is_narrowed(document)) {
        json_decref(document);
        return NULL;
    }
    return document;
}

/* ---- Reading */

json_t *answer_parse(const char *text, size_t len)
{
    json_t *document = json_loadb(text, len, JSON_ALLOW_NUL, NULL);

    return document ? document : parse_bytes(text, len);
}

/* Returns the strings that stand behind the document in a reply. */
static json_t *raw_of(const struct redisReply *r)
{
    json_t *raw = json_array();

    for (size_t i = 1; i < r->elements; i++) {
        const struct redisReply *bytes = r->element[i];
        bool is_string = bytes->type == REDIS_REPLY_STRING;

        json_array_append_new(raw,
                              json_stringn_nocheck(is_string ? bytes->str : "", is_string ? bytes->len : 0));
    }
    return raw;
}

int answer_read(const struct redisReply *r, const char *script, json_t **answer, struct error *e)
{
    bool has_raw = r && r->type == REDIS_REPLY_ARRAY && r->elements > 0;
    const struct redisReply *text = has_raw ? r->element[0] : r;

    *answer = NULL;
    if (r && r->type == REDIS_REPLY_ERROR)
        return redis_fault_error(e, r->str);
    if (text && text->type == REDIS_REPLY_STRING)
        *answer = answer_parse(text->str, text->len);
    if (has_raw)
        json_object_set_new(*answer, "raw", raw_of(r));
    if (json_is_object(*answer))
        return 0;
    json_decref(*answer);
    *answer = NULL;
    return reply_unexpected(script, e);
}

static int64_t number_of(const json_t *value, int64_t fallback)
{
    const char *text = json_string_value(value);
    long long number = json_integer_value(value);
    char *end = NULL;

    if (text)
        number = strtoll(text, &end, 10);
    if (text ? end == text || *end != '\0' : !json_is_integer(value))
        return fallback;
    return number <= REPLY_INT_MOST && number >= -REPLY_INT_MOST ? number : fallback;
}

int64_t answer_int_or(const json_t *object, const char *member, int64_t fallback)
{
    return number_of(json_object_get(object, member), fallback);
}

int64_t answer_int_at(const json_t *array, size_t i)
{
    return number_of(json_array_get(array, i), 0);
}

int64_t answer_int(const json_t *object, const char *member)
{
    return answer_int_or(object, member, 0);
}

const char *answer_text(const json_t *object, const char *member)
{
    const char *text = json_string_value(json_object_get(object, member));

    return text ? text : "";
}

/* Of a call that was answered. */
static int read_reply(struct weir *w, const char *script, const struct redisReply *reply, json_t **answer,
                      struct error *e)
{
    int status = answer_read(reply, script, answer, e);

    if (status == 0)
        client_counted(w, answer_int(*answer, "partitions"));
    return status;
}

int client_ask(struct weir *w, const char *script, struct args *a, json_t **answer)
{
    struct redisReply *reply = NULL;
    int status;

    *answer = NULL;
    status = client_call(w, a, &reply, NULL);
    if (status == 0)
        status = read_reply(w, script, reply, answer, &w->error);
    freeReplyObject(reply);
    args_free(a);
    return status;
}

int client_ask_words(struct weir *w, int64_t now_us, const char *script, const char *const *words,
                     json_t **answer)
{
    struct args a = {0};

    script_begin(&a, script, w->prefix, now_us);
    for (; *words; words++)
        args_add(&a, *words);
    return client_ask(w, script, &a, answer);
}

bool client_ask_ahead(struct weir *w, struct args *a)
{
    bool sent = !w->setup.status && redis_append(w->redis, a, &w->error) == 0 &&
                redis_flush(w->redis, &w->error) == 0;

    args_free(a);
    return sent;
}

bool client_take_ahead(struct weir *w, const char *script, json_t **answer)
{
    struct redisReply *reply;
    bool taken;

    *answer = NULL;
    taken = redis_result(w->redis, &reply, &w->error) == 0 &&
            read_reply(w, script, reply, answer, &w->error) == 0;
    freeReplyObject(reply);
    return taken;
}

void client_ask_each(struct weir *w, const char *script, struct args *calls, size_t count, json_t **answers)
{
    bool sent = !w->setup.status;

    for (size_t i = 0; i < count; i++) {
        sent = sent && redis_append(w->redis, &calls[i], &w->error) == 0;
        args_free(&calls[i]);
        answers[i] = NULL;
    }
    for (size_t i = 0; i < count && sent; i++)
        sent = client_take_ahead(w, script, &answers[i]) || !client_is_silent(w);
}

bool client_is_silent(const struct weir *w)
{
    return !w->setup.status && redis_is_silent(w->redis);
}

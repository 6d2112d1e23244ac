/* What weir serve reads besides takes: addresses, fields, one job, lines of jobs. Redis takes all that is sent. */
#include "producer/bulk.h"
#include "serve/fields.h"
#include "serve/post_jobs.h"
#include "serve/resource.h"
#include "tests/fuzz/fake_redis.h"
#include "tests/fuzz/fuzz.h"
#include "weir.h"

static struct redisReply *take_all(const struct args *asked)
{
    static const char fits[] = "[\nkey\nlimit\n]\n", taken[] = "[\nok\n1\n]\n", none[] = "[\n~\n~\n]\n",
                      one[] = "[\nnew\nid\n]\n", sealed[] = "[\nsealed\n1\n0\n]\n";
    struct span name = fake_word(asked, 1);
    const char *at = memmem(name.at, name.len, "_fits", 5)          ? fits
                     : memmem(name.at, name.len, "_append", 7)      ? taken
                     : memmem(name.at, name.len, "_enqueue", 8)     ? one
                     : memmem(name.at, name.len, "_batch_seal", 11) ? sealed
                                                                    : none;

    return fake_read(&at, at + strlen(at));
}

static void read_address(const char *text)
{
    char name[RESOURCE_NAME_SIZE];
    const struct resource *tables[] = {document_resources, action_resources};

    for (size_t i = 0; i < 2; i++) {
        memset(name, 0, sizeof name);
        if (resource_find(tables[i], text, name))
            must_hold(memchr(name, '\0', sizeof name) != NULL);
    }
}

static void check_fields(json_t *fields)
{
    const char *name;
    json_t *value;

    must_hold(!fields || json_object_size(fields) <= FIELDS_MOST);
    json_object_foreach(fields, name, value) {
        must_hold(json_is_string(value));
        must_hold(strlen(json_string_value(value)) == json_string_length(value));
    }
    json_decref(fields);
}

static void take_jobs(struct span body, uint8_t how)
{
    struct weir *w = weir_new("/nowhere", NULL);
    json_t *fields = json_object(), *doc;
    int status;

    must_hold(w != NULL);
    fake_redis(take_all);
    if (how & 2)
        json_object_set_new(fields, "type", json_string("t"));
    if (how & 4)
        json_object_set_new(fields, "skip_invalid", json_string("true"));
    if (how & 8)
        json_object_set_new(fields, "batch", json_string("b"));
    status = how & 1 ? post_jobs_lines(w, fields, body, &doc) : post_jobs_one(w, body, &doc);
    must_hold(status != 0 || doc);
    json_decref(doc);
    json_decref(fields);
    weir_free(w);
}

int fuzz_api(const uint8_t *data, size_t size)
{
    struct span body = {(const char *)data + 1, size - 1};
    char *text;

    if (size < 1)
        return 0;
    text = fuzz_text(data + 1, size - 1);
    read_address(text);
    check_fields(fields_of_form(body.at, body.len));
    check_fields(fields_of_json(body.at, body.len));
    take_jobs(body, data[0]);
    free(text);
    return 0;
}

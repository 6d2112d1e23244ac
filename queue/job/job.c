#include "queue/job/job.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/job/job_cost.h"
#include "queue/job/json.h"
#include "queue/job/json_number.h"
#include "throttle/rule.h"

#define QUOTED_MOST 60 /* bytes of a wrong value that a message repeats */
#define TIMEOUT_MOST_US (INT64_C(3652) * 24 * 3600 * 1000000) /* ten years */

bool name_is_valid(const char *name, size_t len)
{
    static const bool allowed[256] = {
        ['-'] = true,         ['.'] = true,         ['_'] = true,
        ['0' ... '9'] = true, ['A' ... 'Z'] = true, ['a' ... 'z'] = true,
    };

    if (len < 1 || len > 128)
        return false;
    for (size_t i = 0; i < len; i++)
        if (!allowed[(unsigned char)name[i]])
            return false;
    return true;
}

bool word_is_valid(const char *word, size_t len)
{
    return len > 1 && word[len - 1] == '*' ? name_is_valid(word, len - 1)
                                           : name_is_valid(word, len) || (len == 1 && *word == '*');
}

bool pattern_is(const char *word)
{
    size_t len = strlen(word);

    return len > 0 && word[len - 1] == '*';
}

bool pattern_serves(const char *word, struct span name)
{
    size_t len = strlen(word);

    if (pattern_is(word))
        return name.len >= len - 1 && memcmp(name.at, word, len - 1) == 0;
    return name.len == len && memcmp(name.at, word, len) == 0;
}

/* ---- Reading */

/* Members that Weir knows stand with what they must hold and where the view keeps it. A reader says whether a value is
 * right. */
struct known {
    const char *name;
    size_t len;
    bool (*read)(struct span value, void *into);
    size_t into;
    const char *must_be;
};

static bool read_name(struct span value, void *into)
{
    struct span *name = into;

    if (value.len < 2 || *value.at != '"' || !name_is_valid(value.at + 1, value.len - 2))
        return false;
    *name = (struct span){value.at + 1, value.len - 2};
    return true;
}

static bool read_any(struct span value, void *into)
{
    *(struct span *)into = value;
    return true;
}

/* Reads a member that others may use for something else, which stays what it is. */
static bool read_text(struct span value, void *into)
{
    if (value.len > 2 && *value.at == '"' && !memchr(value.at, '\\', value.len))
        *(struct span *)into = (struct span){value.at + 1, value.len - 2};
    return true;
}

static bool read_attempts(struct span value, void *into)
{
    int64_t attempts;

    if (!json_read_integer(value, 1, JOB_ATTEMPTS_MOST, &attempts))
        return false;
    *(int *)into = (int)attempts;
    return true;
}

static bool read_cost(struct span value, void *into)
{
    struct job_view *view = into;

    if (*value.at == '{')
        view->costs = value;
    return *value.at == '{' || json_read_integer(value, 1, JOB_COST_MOST, &view->cost);
}

static bool read_timeout(struct span value, void *into)
{
    return json_read_seconds(value, TIMEOUT_MOST_US, into);
}

#define KNOWN(name_, member_, read_, must_be_)                                                               \
    {                                                                                                        \
        .name = name_, .len = sizeof name_ - 1, .read = read_, .into = offsetof(struct job_view, member_),   \
        .must_be = must_be_                                                                                  \
    }
#define A_NAME "a string of 1 to 128 of A-Z a-z 0-9 _ . -"

#define FRONT_KNOWN 4 /* the first ones: those that put_front writes */
static const struct known known[] = {
    KNOWN("id", id, read_name, A_NAME),
    KNOWN("type", type, read_name, A_NAME),
    KNOWN("key", key, read_name, A_NAME),
    {.name = "cost",
     .len = strlen("cost"),
     .read = read_cost,
     .must_be = "a whole number from 1 to 1000000000"},
    KNOWN("args", args, read_any, "any value"),
    KNOWN("queue", queue, read_name, A_NAME),
    KNOWN("max_attempts", max_attempts, read_attempts, "a whole number from 1 to 1000000"),
    KNOWN("traceparent", traceparent, read_text, "any value"),
    KNOWN("meta", meta, read_any, "any value"),
    KNOWN("batch", batch, read_any, "any value"),
    KNOWN("timeout", timeout_us, read_timeout, "a number of seconds above 0, at most ten years"),
};

static const struct known *known_named(struct span name)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].len == name.len && memcmp(known[i].name, name.at, name.len) == 0)
            return &known[i];
    return NULL;
}

static int quoted_len(struct span value)
{
    return value.len < QUOTED_MOST ? (int)value.len : QUOTED_MOST;
}

/* Keeps what a cost by name says: an object of plain slots alone is their number. */
static int view_costs(struct job_view *view, struct error *e)
{
    struct job_cost cost;
    struct error why;

    if (cost_read_json(view->costs, COST_TAKEN, &cost, &why) < 0)
        return error_set(e, why.status, "wrong job: its cost: %s", why.text);
    if (cost.plain != COST_UNSAID)
        view->cost = cost.plain;
    if (cost.count == 0)
        view->costs = (struct span){NULL, 0};
    return 0;
}

static int view_members(const struct json_members *m, struct job_view *view, struct error *e)
{
    *view = (struct job_view){.max_attempts = JOB_MAX_ATTEMPTS};
    for (size_t i = 0; i < m->count; i++) {
        const struct known *k = known_named(m->at[i].name);

        if (k && !k->read(m->at[i].value, (char *)view + k->into))
            return error_set(e, WEIR_EINPUT, "wrong job: \"%s\" must be %s, not %.*s", k->name, k->must_be,
                             quoted_len(m->at[i].value), m->at[i].value.at);
    }
    if (!view->type.at)
        return error_set(e, WEIR_EINPUT, "wrong job: \"type\" is missing");
    return view->costs.at ? view_costs(view, e) : 0;
}

void job_cost_of(const struct job_view *view, struct job_cost *cost)
{
    struct error ignored;

    if (!view->costs.at || cost_read_json(view->costs, COST_TAKEN, cost, &ignored) < 0)
        *cost = cost_of(view->cost ? view->cost : COST_UNSAID);
}

static int too_long(size_t len, struct error *e)
{
    return error_set(e, WEIR_EINPUT,
                     "the job has %zu bytes: at most %d are allowed; keep large data elsewhere and "
                     "enqueue where it is",
                     len, JOB_BODY_MAX);
}

/* Reads the members of a body. *members is to be freed whatever the result. */
static int job_scan(const char *body, size_t len, struct json_members *members, struct job_view *view,
                    struct error *e)
{
    struct json j;
    const char *at;

    json_begin(&j, body, len);
    members->at = members->few;
    members->decoded = NULL;
    if (len > JOB_BODY_MAX)
        return too_long(len, e);
    at = json_space(&j, body);
    if (json_has_mark(body, len))
        return error_set(e, WEIR_EINPUT, "begins with a byte order mark (BOM); save it without one");
    if (at == j.end || *at != '{')
        return error_set(e, WEIR_EINPUT, "not a JSON object: a job begins with {");
    at = json_members(&j, at, members);
    if (!at || !json_end(&j, at))
        return json_error(&j, "not JSON", e);
    return view_members(members, view, e);
}

int job_read(const char *body, size_t len, struct job_view *view, struct error *e)
{
    struct json_members members;
    int status = job_scan(body, len, &members, view, e);

    json_members_free(&members);
    return status;
}

/* ---- Keys */

#define NESTED_MOST 1024 /* as queue/job/job_text.lua has it */

/* True for a value that tells jobs apart: not null, nor an object or array that is too long. */
static bool is_key(struct span value)
{
    return value.len > 0 && *value.at != 'n' && (!strchr("{[", *value.at) || value.len <= NESTED_MOST);
}

bool job_is_keyless(struct span body, const char *path)
{
    struct span value = body;
    char name[RULE_PATH_SIZE];

    for (size_t len; *path; path += len + (path[len] == '.')) {
        len = strcspn(path, ".");
        snprintf(name, sizeof name, "%.*s", (int)len, path);
        if (value.len == 0 || *value.at != '{')
            return true;
        value = json_find(value.at, value.len, name);
    }
    return !is_key(value);
}

/* ---- Text */

void text_free(struct text *t)
{
    free(t->at);
    *t = (struct text){0};
}

static bool text_reserve(struct text *t, size_t more)
{
    size_t capacity = t->capacity ? t->capacity : 4096;
    char *grown;

    if (t->capacity - t->len >= more)
        return true;
    while (capacity - t->len < more)
        capacity *= 2;
    grown = realloc(t->at, capacity);
    if (!grown)
        return false;
    t->at = grown;
    t->capacity = capacity;
    return true;
}

/* Writes into room that was reserved. */
static struct span text_put(struct text *t, const char *bytes, size_t len)
{
    char *at = t->at + t->len;

    assert(bytes);
    memcpy(at, bytes, len);
    t->len += len;
    return (struct span){at, len};
}

int text_add(struct text *t, const char *bytes, size_t len, struct error *e)
{
    if (!text_reserve(t, len))
        return error_set(e, WEIR_EINTERNAL, "out of memory");
    if (len > 0)
        text_put(t, bytes, len);
    return 0;
}

#define PUT(t, literal) text_put(t, literal, sizeof literal - 1)

/* ---- Writing */

/* The longest front: what stands around id, type, key and cost, three names and a cost. */
#define FRONT_MOST (sizeof "{\"id\":\"\",\"type\":\"\",\"key\":\"\",\"cost\":" + 3 * 128 + COST_JSON_SIZE)

static void put_cost(struct text *out, struct job_view *view, const struct job_cost *cost)
{
    char json[COST_JSON_SIZE];
    struct span put;

    cost_write_json(cost, json);
    PUT(out, ",\"cost\":");
    put = text_put(out, json, strlen(json));
    view->costs = cost->count > 0 ? put : (struct span){NULL, 0};
}

/* Puts {"id":"...","type":"...","key":"...","cost":n into reserved room; view's id, type and key are where they come from, and then where
 * they are. An id that is missing is made. */
static void put_front(struct text *out, struct job_view *view, const struct job_cost *cost)
{
    char made[17];

    if (!view->id.at) {
        job_make_id(made);
        view->id = (struct span){made, 16};
    }
    PUT(out, "{\"id\":\"");
    view->id = text_put(out, view->id.at, view->id.len);
    PUT(out, "\",\"type\":\"");
    view->type = text_put(out, view->type.at, view->type.len);
    if (view->key.at) {
        PUT(out, "\",\"key\":\"");
        view->key = text_put(out, view->key.at, view->key.len);
    }
    PUT(out, "\"");
    if (cost_is_said(cost))
        put_cost(out, view, cost);
}

/* Takes the body that began at begin back when it has become too long. */
static int end_body(struct text *out, size_t begin, struct error *e)
{
    size_t len;

    PUT(out, "}");
    len = out->len - begin;
    if (len <= JOB_BODY_MAX)
        return 0;
    out->len = begin;
    return too_long(len, e);
}

static int spec_name(const char *what, const char *name, struct span *out, struct error *e)
{
    if (!name)
        return 0;
    *out = span_str(name);
    if (name_is_valid(out->at, out->len))
        return 0;
    return error_set(e, WEIR_EINPUT, "wrong job: its %s must be 1 to 128 of A-Z a-z 0-9 _ . -, not '%.*s'",
                     what, quoted_len(*out), out->at);
}

/* Reads one JSON text without the white space around it. wrong: "wrong args, not JSON" or the like. */
static int read_json(const char *args, size_t len, const char *wrong, struct span *out, struct error *e)
{
    struct json j;
    const char *end;

    if (len > JOB_BODY_MAX)
        return too_long(len, e);
    json_begin(&j, args, len);
    out->at = json_space(&j, args);
    end = json_value(&j, out->at, JSON_DEPTH - 1);
    if (!end || !json_end(&j, end))
        return json_error(&j, wrong, e);
    out->len = (size_t)(end - out->at);
    return 0;
}

static int read_args(const char *args, size_t len, struct span *out, struct error *e)
{
    return read_json(args, len, "wrong args, not JSON", out, e);
}

/* Checks VERSION-TRACE-SPAN-FLAGS of W3C's trace context. */
static bool is_traceparent(const char *text)
{
    static const char form[] = "xx-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-xxxxxxxxxxxxxxxx-xx";

    if (strlen(text) != sizeof form - 1)
        return false;
    for (size_t i = 0; i < sizeof form - 1; i++)
        if (form[i] == 'x' ? !strchr("0123456789abcdef", text[i]) : text[i] != form[i])
            return false;
    return strncmp(text, "ff", 2) != 0 && strspn(text + 3, "0") < 32 && strspn(text + 36, "0") < 16;
}

/* Reads the members that are for whoever runs the job. */
static int view_context(const struct weir_job_spec *spec, struct job_view *view, struct error *e)
{
    if (spec->traceparent && !is_traceparent(spec->traceparent))
        return error_set(e, WEIR_EINPUT,
                         "wrong job: its traceparent must be VERSION-TRACE-SPAN-FLAGS in lower-case hex, not "
                         "'%.60s'; write it as in "
                         "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                         spec->traceparent);
    if (spec->traceparent)
        view->traceparent = span_str(spec->traceparent);
    return spec->meta ? read_json(spec->meta, strlen(spec->meta), "wrong meta, not JSON", &view->meta, e) : 0;
}

/* Reads what a spec says of the cost, as a number or by name. */
static int spec_cost(const struct weir_job_spec *spec, struct job_view *view, struct job_cost *cost,
                     struct error *e)
{
    struct error why;

    *cost = cost_of(spec->cost ? spec->cost : COST_UNSAID);
    if (spec->cost < 0 || spec->cost > JOB_COST_MOST)
        return error_set(e, WEIR_EINPUT, "wrong job: its cost must be 1 to %d, not %lld", JOB_COST_MOST,
                         (long long)spec->cost);
    if (spec->costs && spec->cost)
        return error_set(e, WEIR_EINPUT, "wrong job: cost and costs; give one of them");
    if (spec->costs && cost_read(spec->costs, COST_TAKEN, cost, &why) < 0)
        return error_set(e, why.status, "wrong job: its cost: %s", why.text);
    view->cost = cost->plain != COST_UNSAID ? cost->plain : 0;
    return 0;
}

static int view_spec(const struct weir_job_spec *spec, struct job_view *view, struct job_cost *cost,
                     struct error *e)
{
    int status = 0;

    *view = (struct job_view){.max_attempts = spec->max_attempts ? spec->max_attempts : JOB_MAX_ATTEMPTS};
    if (!spec->type)
        return error_set(e, WEIR_EINPUT, "wrong job: its type is missing");
    if (spec->max_attempts < 0 || spec->max_attempts > JOB_ATTEMPTS_MOST)
        return error_set(e, WEIR_EINPUT, "wrong job: max_attempts must be 1 to %d, not %d", JOB_ATTEMPTS_MOST,
                         spec->max_attempts);
    if ((status = spec_cost(spec, view, cost, e)) != 0)
        return status;
    if (!(spec->timeout_s >= 0 && spec->timeout_s * 1e6 <= (double)TIMEOUT_MOST_US))
        return error_set(e, WEIR_EINPUT, "wrong job: its timeout must be above 0 s and at most ten years");
    view->timeout_us = (int64_t)(spec->timeout_s * 1e6 + 0.999);
    if ((status = spec_name("type", spec->type, &view->type, e)) != 0 ||
        (status = spec_name("id", spec->id, &view->id, e)) != 0 ||
        (status = spec_name("key", spec->key, &view->key, e)) != 0 ||
        (status = spec_name("queue", spec->queue, &view->queue, e)) != 0)
        return status;
    if ((status = view_context(spec, view, e)) != 0)
        return status;
    return spec->args ? read_args(spec->args, strlen(spec->args), &view->args, e) : 0;
}

/* Writes max_attempts and timeout. Numbers are text of our own: printf's point depends on the locale. */
static void put_options(struct text *out, const struct weir_job_spec *spec, int64_t timeout_us)
{
    char number[64];

    if (spec->max_attempts)
        text_put(out, number, (size_t)sprintf(number, ",\"max_attempts\":%d", spec->max_attempts));
    if (timeout_us)
        text_put(out, number,
                 (size_t)sprintf(number, ",\"timeout\":%lld.%06lld", (long long)(timeout_us / 1000000),
                                 (long long)(timeout_us % 1000000)));
}

static void put_context(struct text *out, struct job_view *v)
{
    if (v->traceparent.at) {
        PUT(out, ",\"traceparent\":\"");
        v->traceparent = text_put(out, v->traceparent.at, v->traceparent.len);
        PUT(out, "\"");
    }
    if (v->meta.at) {
        PUT(out, ",\"meta\":");
        v->meta = text_put(out, v->meta.at, v->meta.len);
    }
}

/* Writes the whole body from a view of what goes into it. */
static int put_body(struct text *out, const struct weir_job_spec *spec, struct job_view *v,
                    const struct job_cost *cost, struct error *e)
{
    size_t begin = out->len;

    if (!text_reserve(out, FRONT_MOST + v->traceparent.len + v->meta.len + v->args.len + 256))
        return error_set(e, WEIR_EINTERNAL, "out of memory");
    put_front(out, v, cost);
    put_context(out, v);
    if (v->args.at) {
        PUT(out, ",\"args\":");
        v->args = text_put(out, v->args.at, v->args.len);
    }
    put_options(out, spec, v->timeout_us);
    return end_body(out, begin, e);
}

int job_write(struct text *out, const struct weir_job_spec *spec, struct job_view *view, struct error *e)
{
    struct job_cost cost;
    struct job_view v;
    int status = view_spec(spec, &v, &cost, e);

    if (!status)
        status = put_body(out, spec, &v, &cost, e);
    if (!status && view)
        *view = v;
    return status;
}

int job_wrap(struct text *out, const char *type, const char *line, size_t len, struct job_view *view,
             struct error *e)
{
    struct weir_job_spec spec = {.type = type};
    struct job_cost cost;
    struct job_view v;
    int status = view_spec(&spec, &v, &cost, e);

    if (!status)
        status = read_args(line, len, &v.args, e);
    if (!status)
        status = put_body(out, &spec, &v, &cost, e);
    if (!status && view)
        *view = v;
    return status;
}

/* Moves a span with the bytes into which it points, as members that stand together are copied together. */
static void move_span(struct span *s, const char *from, const char *to, const char *moved)
{
    if (s->at >= from && s->at < to)
        s->at = moved + (s->at - from);
}

static void put_run(struct text *out, const struct json_member *first, const struct json_member *last,
                    struct job_view *view)
{
    const char *end = last->value.at + last->value.len;
    struct span moved;

    PUT(out, ",");
    moved = text_put(out, first->begin, (size_t)(end - first->begin));
    move_span(&view->args, first->begin, end, moved.at);
    move_span(&view->queue, first->begin, end, moved.at);
    move_span(&view->batch, first->begin, end, moved.at);
    move_span(&view->meta, first->begin, end, moved.at);
    move_span(&view->traceparent, first->begin, end, moved.at);
}

#define ALONE "enqueue such jobs one by one"
#define SINGLE(name_, instead_)                                                                              \
    {                                                                                                        \
        .name = {name_, sizeof name_ - 1}, .instead = instead_                                               \
    }

/* Only a flag of weir enqueue or struct weir_job_spec can say these of a job, and no line. */
static const struct single {
    struct span name;
    const char *instead;
} singles[] = {
    SINGLE("at", ALONE),
    SINGLE("in", ALONE),
    SINGLE("at_s", ALONE),
    SINGLE("delay_s", ALONE),
    SINGLE("unique", ALONE),
    SINGLE("timeout_s", "write \"timeout\", in seconds"),
    SINGLE("max-attempts", "write \"max_attempts\""),
};

static int check_single(const struct json_members *m, struct error *e)
{
    for (size_t i = 0; i < m->count; i++)
        for (const struct single *s = singles; s < singles + sizeof singles / sizeof *singles; s++)
            if (span_is(m->at[i].name, s->name))
                return error_set(e, WEIR_EINPUT, "wrong job: \"%s\" in a line would be ignored; %s",
                                 s->name.at, s->instead);
    return 0;
}

static bool is_front(const struct json_member *m)
{
    const struct known *k = known_named(m->name);

    return k && k < known + FRONT_KNOWN;
}

int job_rewrite(struct text *out, const char *line, size_t len, struct job_view *view, struct error *e)
{
    struct json_members members;
    struct job_view v = {0};
    struct job_cost cost;
    size_t begin = out->len;
    int status = job_scan(line, len, &members, &v, e);

    if (!status)
        status = check_single(&members, e);
    if (!status && !text_reserve(out, FRONT_MOST + len + 128))
        status = error_set(e, WEIR_EINTERNAL, "out of memory");
    if (status)
        goto out;
    job_cost_of(&v, &cost);
    put_front(out, &v, &cost);
    for (size_t i = 0, run = 0; i < members.count; i++) {
        if (is_front(&members.at[i]))
            run = i + 1;
        else if (i + 1 == members.count || is_front(&members.at[i + 1]))
            put_run(out, &members.at[run], &members.at[i], &v);
    }
    status = end_body(out, begin, e);
    if (!status && view)
        *view = v;
out:
    json_members_free(&members);
    return status;
}

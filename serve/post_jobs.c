#include "serve/post_jobs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/duration.h"
#include "producer/bulk.h"
#include "producer/enqueue.h"
#include "queue/job/job_cost.h"
#include "queue/job/json.h"
#include "queue/job/json_number.h"
#include "serve/fields.h"
#include "view/text.h"

#define ERRORS_MOST 100 /* wrong lines that are named; more are only counted */

/* ---- One job */

/* A job's members, as texts that end with a NUL. */
struct given {
    struct weir_job_spec spec;
    struct error why;           /* why a cost by name was not taken */
    char costs[COST_TEXT_SIZE]; /* one of the texts */
    char *texts;                /* all others, one behind the other */
    size_t len;
};

/* Keeps a copy of a text behind the others. */
static char *keep(struct given *g, struct span text)
{
    char *at = g->texts + g->len;

    memcpy(at, text.at, text.len);
    at[text.len] = '\0';
    g->len += text.len + 1;
    return at;
}

static bool take_json(struct given *g, struct span value, void *into)
{
    *(const char **)into = keep(g, value);
    return true;
}

static bool take_text(struct given *g, struct span value, void *into)
{
    char *text = g->texts + g->len;

    if (*value.at != '"')
        return false;
    g->len += json_text(value, text, value.len + 1) + 1;
    *(const char **)into = text;
    return true;
}

/* Takes a number, or an object of numbers by name, which job_write checks. */
static bool take_cost(struct given *g, struct span value, void *into)
{
    struct weir_job_spec *spec = into;
    struct job_cost cost;

    if (*value.at != '{')
        return json_read_integer(value, 1, JOB_COST_MOST, &spec->cost);
    if (cost_read_json(value, COST_TAKEN, &cost, &g->why) < 0)
        return false;
    cost_print(&cost, g->costs);
    spec->costs = g->costs;
    return true;
}

static bool take_attempts(struct given *g, struct span value, void *into)
{
    int64_t n;

    (void)g;
    if (!json_read_integer(value, 1, 1000000, &n))
        return false;
    *(int *)into = (int)n;
    return true;
}

/* Takes a number of seconds. */
static bool take_seconds(struct given *g, struct span value, void *into)
{
    int64_t us;

    (void)g;
    if (!json_read_seconds(value, INT64_C(4102444800) * 1000000, &us))
        return false;
    *(double *)into = (double)us / 1e6;
    return true;
}

/* Takes a number of seconds, or "10m". */
static bool take_span(struct given *g, struct span value, void *into)
{
    const char *text;
    struct error why;
    int64_t us;

    if (*value.at != '"')
        return take_seconds(g, value, into);
    if (!take_text(g, value, &text) || duration_parse(text, &us, &why) < 0)
        return false;
    *(double *)into = (double)us / 1e6;
    return true;
}

/* Takes a number of seconds since 1970, or "2026-11-21T09:00:00+01:00". */
static bool take_moment(struct given *g, struct span value, void *into)
{
    const char *text;
    int64_t us;

    if (*value.at != '"')
        return take_seconds(g, value, into);
    if (!take_text(g, value, &text) || !moment_read(text, &us) || us <= 0)
        return false;
    *(double *)into = (double)us / 1e6;
    return true;
}

#define TAKEN(its_name, its_member, its_take, its_kind)                                                      \
    {                                                                                                        \
        .name = its_name, .take = its_take, .at = offsetof(struct weir_job_spec, its_member),                \
        .must_be = its_kind                                                                                  \
    }
#define SECONDS "a number of seconds above 0"

static const struct taken {
    const char *name;
    bool (*take)(struct given *g, struct span value, void *into);
    size_t at;
    const char *must_be;
} taken[] = {
    TAKEN("type", type, take_text, "a string"),
    TAKEN("args", args, take_json, "any value"),
    TAKEN("queue", queue, take_text, "a string"),
    TAKEN("id", id, take_text, "a string"),
    TAKEN("key", key, take_text, "a string"),
    {.name = "cost", .take = take_cost, .must_be = "a whole number from 1 to 1000000000"},
    TAKEN("max_attempts", max_attempts, take_attempts, "a whole number from 1 to 1000000"),
    TAKEN("timeout", timeout_s, take_span, SECONDS ", or a time such as \"10m\""),
    TAKEN("in", delay_s, take_span, SECONDS ", or a time such as \"10m\""),
    TAKEN("at", at_s, take_moment,
          SECONDS ", since 1970 (not milliseconds), or a time such as \"2026-11-21T09:00:00+01:00\""),
    TAKEN("unique", unique, take_text, "a string"),
    TAKEN("batch", batch, take_text, "a string"),
    TAKEN("traceparent", traceparent, take_text, "a string"),
    TAKEN("meta", meta, take_json, "any value"),
};

static int take_member(struct given *g, const struct json_member *m, struct error *e)
{
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        const struct taken *t = &taken[i];

        if (!span_is(m->name, span_str(t->name)))
            continue;
        if (t->take(g, m->value, (char *)&g->spec + t->at))
            return 0;
        if (g->why.status)
            return error_set(e, g->why.status, "wrong job: its %s: %s", t->name, g->why.text);
        return error_set(e, WEIR_EINPUT, "wrong job: \"%s\" must be %s", t->name, t->must_be);
    }
    return error_set(e, WEIR_EINPUT, "wrong job: \"%.*s\" is not a member of a job; put it into args or meta",
                     m->name.len < 60 ? (int)m->name.len : 60, m->name.at);
}

static int read_members(struct given *g, struct span body, struct error *e)
{
    struct json_members members = {.at = NULL};
    struct json j;
    const char *at;
    int status = 0;

    members.at = members.few;
    json_begin(&j, body.at, body.len);
    at = json_space(&j, body.at);
    if (at == j.end || *at != '{')
        return error_set(e, WEIR_EINPUT, "not a JSON object: a job begins with {");
    at = json_members(&j, at, &members);
    if (!at || !json_end(&j, at))
        status = json_error(&j, "not JSON", e);
    for (size_t i = 0; status == 0 && i < members.count; i++)
        status = take_member(g, &members.at[i], e);
    json_members_free(&members);
    return status;
}

int post_jobs_one(struct weir *w, struct span body, json_t **doc)
{
    struct given g = {
        .texts =
            malloc(2 * body.len + 64)}; /* each text has its quotes' room for its NUL, a value its comma's */
    enum enqueue_result result;
    char id[WEIR_ID_SIZE];
    int status =
        g.texts ? read_members(&g, body, &w->error) : error_set(&w->error, WEIR_EINTERNAL, "out of memory");

    *doc = NULL;
    if (status == 0)
        status = enqueue_job(w, &g.spec, id, &result);
    free(g.texts);
    if (status != 0)
        return status;
    *doc = json_pack("{s:s, s:b}", "id", id, "new", result == ENQUEUE_NEW);
    if (result == ENQUEUE_HELD)
        json_object_set_new(*doc, "locked", json_true());
    return 0;
}

/* ---- Lines */

struct lines {
    const char *type, *queue;
    struct span rest; /* of the body */
    uint64_t number;  /* of the line that was given last */
    uint64_t blank, invalid;
    json_t *errors;
    struct text scratch;
};

static bool next_line(struct lines *l, struct span *line)
{
    const char *end;

    if (l->rest.len == 0)
        return false;
    end = memchr(l->rest.at, '\n', l->rest.len);
    *line = (struct span){l->rest.at, end ? (size_t)(end - l->rest.at) : l->rest.len};
    l->rest.at += line->len + (end != NULL);
    l->rest.len -= line->len + (end != NULL);
    l->number++;
    return true;
}

static bool is_blank(struct span line)
{
    size_t at = 0;

    while (at < line.len && strchr(" \t\r", line.at[at]) && line.at[at])
        at++;
    return at == line.len;
}

static void note_error(struct lines *l, const char *why)
{
    l->invalid++;
    if (json_array_size(l->errors) < ERRORS_MOST)
        json_array_append_new(
            l->errors, json_pack("{s:I, s:o}", "line", (json_int_t)l->number, "error", text_word(why)));
}

/* As the bulk will check it. */
static int check_line(struct lines *l, struct span line, struct error *e)
{
    l->scratch.len = 0;
    return l->type ? job_wrap(&l->scratch, l->type, line.at, line.len, NULL, e)
                   : job_rewrite(&l->scratch, line.at, line.len, NULL, e);
}

/* WEIR_EINPUT: some are wrong, and all of them are named. */
static int check_lines(struct lines *l, struct span body, struct error *e)
{
    struct span line;

    l->rest = body;
    while (next_line(l, &line)) {
        int status = is_blank(line) ? 0 : check_line(l, line, e);

        l->blank += is_blank(line);
        if (status == WEIR_EINPUT)
            note_error(l, e->text);
        else if (status != 0)
            return status;
    }
    if (l->number == l->blank)
        return error_set(e, WEIR_EINPUT, "no job in it; send one in each line");
    if (l->invalid > 0)
        return error_set(
            e, WEIR_EINPUT,
            "%" PRIu64
            " wrong line%s, and nothing was sent; mend %s, or leave such lines out with skip_invalid=true",
            l->invalid, l->invalid == 1 ? "" : "s", l->invalid == 1 ? "it" : "them");
    return 0;
}

static int send_line(struct weir *w, struct weir_bulk *bulk, struct lines *l, struct span line)
{
    struct error ignored;
    int status;

    if (is_blank(line) || (l->invalid > 0 && check_line(l, line, &ignored) < 0))
        return weir_bulk_skip_line(bulk, line.at, line.len);
    status = weir_bulk_add_line(bulk, l->type, l->queue, line.at, line.len);
    if (status == WEIR_EINPUT && !bulk_has_failed(bulk)) { /* what the check could not know */
        struct error why = w->error;

        note_error(l, why.text);
        return error_set(&w->error, WEIR_EINPUT,
                         "line %" PRIu64 ": %.300s; the lines before it are sent, none after it", l->number,
                         why.text);
    }
    return status;
}

static int send_lines(struct weir *w, const json_t *fields, struct lines *l, struct span body,
                      struct weir_bulk_counts *counts)
{
    const char *then = field_text(fields, "then");
    struct weir_bulk *bulk = NULL;
    struct span line;
    int status = weir_bulk_open(w, field_text(fields, "batch"), &bulk), sent;

    if (status == 0 && then)
        status = bulk_then(bulk, l->queue, then);
    l->rest = body;
    l->number = 0;
    while (status == 0 && next_line(l, &line))
        status = send_line(w, bulk, l, line);
    if (bulk && !bulk_has_failed(bulk)) {
        struct error why = w->error;

        sent = status ? bulk_flush(bulk) : bulk_end(bulk);
        if (status && !sent)
            w->error = why;
        status = status ? status : sent;
    }
    if (bulk)
        weir_bulk_count(bulk, counts);
    weir_bulk_abandon(bulk);
    return status;
}

static int check_fields(const json_t *fields, bool *skip, struct error *e)
{
    const char *queue;

    if (fields_check(fields, "type queue batch then skip_invalid", e) < 0 ||
        field_name(fields, "queue", &queue, e) < 0 || field_flag(fields, "skip_invalid", skip, e) < 0)
        return e->status;
    if (field_text(fields, "then") && !field_text(fields, "batch"))
        return error_set(e, WEIR_EINPUT, "then: follows a batch; give the jobs a batch");
    return 0;
}

int post_jobs_lines(struct weir *w, const json_t *fields, struct span body, json_t **doc)
{
    bool skip = false;
    struct lines l = {.type = field_text(fields, "type"), .queue = field_text(fields, "queue")};
    struct weir_bulk_counts counts = {0};
    int status = check_fields(fields, &skip, &w->error);

    *doc = NULL;
    if (status != 0)
        return status;
    l.errors = json_array();
    status = check_lines(&l, body, &w->error);
    counts.lines = l.number;
    if (status == 0 || (status == WEIR_EINPUT && skip && l.invalid + l.blank < l.number))
        status = send_lines(w, fields, &l, body, &counts);
    *doc = json_pack("{s:I, s:I, s:I, s:I, s:I, s:o}", "lines", (json_int_t)counts.lines, "resumed",
                     (json_int_t)counts.resumed, "accepted", (json_int_t)counts.accepted, "invalid",
                     (json_int_t)l.invalid, "blank", (json_int_t)l.blank, "errors", l.errors);
    text_free(&l.scratch);
    return status;
}

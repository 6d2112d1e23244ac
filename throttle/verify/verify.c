#include "throttle/verify/verify.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "throttle/verify/verify_input.h"

#define COST_MOST 1000000000
#define SPAN_MOST_US 1000000000 /* how far ahead, and how long a slot is good: more than ever happens */

int verify_init(struct verify *v, struct error *e)
{
    *v = (struct verify){
        .input = calloc(1, sizeof *v->input),
        .backs = {{"no_handler", 0}, {"wrong_job", 0}, {"late", 0}, {"not_begun", 0}, {"other", 0}}};
    return v->input ? input_init(v->input, e) : verify_out_of_memory(e);
}

void verify_free(struct verify *v)
{
    if (v->input)
        input_free(v->input);
    free(v->input);
    free(v->types);
    free(v->rules);
    *v = (struct verify){0};
}

/* When a worker's leases were over. */
struct lapse {
    uint32_t writer;
    int64_t us;
};

/* A file that is being read. */
struct reading {
    struct verify_input *input;
    struct verify_back *backs;
    uint32_t file;
    size_t line;
    struct map running; /* of a job with limits and its writer: the latest start, from 1 */
    struct map writers; /* of what its lines say: a worker that writes to this file, from 1 */
    int64_t *last_us;   /* of each writer: when it wrote last */
    size_t writer_count, writer_capacity;
    struct lapse *lapses;
    size_t lapse_count, lapse_capacity;
    uint32_t writer; /* of this line */
    size_t first;    /* the file's first start */
    uint64_t lost;   /* lines that are missing */
    bool torn_first; /* the file begins within a line */
};

/* ---- Workers: several may write to one file */

/* Who writes as that from now on is another one than before. */
static int begin_writer(struct reading *r, const char *by, struct error *e)
{
    uint32_t *value = map_at(&r->writers, text_hash(0, by));

    if (!value || input_grow(&r->last_us, r->writer_count, &r->writer_capacity, sizeof *r->last_us, e) < 0)
        return verify_out_of_memory(e);
    r->last_us[r->writer_count++] = 0;
    *value = (uint32_t)r->writer_count;
    r->writer = *value - 1;
    return 0;
}

static int find_writer(struct reading *r, const char *by, struct error *e)
{
    const uint32_t *value = map_find(&r->writers, text_hash(0, by));

    if (!value)
        return begin_writer(r, by, e);
    r->writer = *value - 1;
    return 0;
}

static void note_time(struct reading *r, int64_t us)
{
    if (us > r->last_us[r->writer])
        r->last_us[r->writer] = us;
}

static uint64_t running_key(const struct reading *r, uint64_t job)
{
    return job + (r->writer + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

static int compare_lapses(const void *a, const void *b)
{
    const struct lapse *x = a, *y = b;

    if (x->writer != y->writer)
        return x->writer < y->writer ? -1 : 1;
    return (x->us > y->us) - (x->us < y->us);
}

/* The first time from the start on at which its worker's leases were over; INT64_MAX: none. */
static int64_t lapse_after(const struct reading *r, const struct start *s)
{
    const struct lapse wanted = {s->writer, s->start_us};
    size_t from = 0, to = r->lapse_count;

    while (from < to) {
        size_t middle = from + (to - from) / 2;

        if (compare_lapses(&r->lapses[middle], &wanted) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from < r->lapse_count && r->lapses[from].writer == s->writer ? r->lapses[from].us : INT64_MAX;
}

/* What has no end, ended when its worker wrote for the last time; all that it ran, when its leases lapsed. */
static void end_workers(struct reading *r)
{
    if (r->lapse_count > 0)
        qsort(r->lapses, r->lapse_count, sizeof *r->lapses, compare_lapses);
    for (size_t i = r->first; i < r->input->count; i++) {
        struct start *s = &r->input->starts[i];
        int64_t lapsed_us = lapse_after(r, s);

        if (!s->ended)
            s->end_us = r->last_us[s->writer] > s->start_us ? r->last_us[s->writer] : s->start_us;
        if (lapsed_us < s->end_us)
            s->end_us = lapsed_us;
    }
}

/* ---- Lines */

#define REST_MOST (64 * 1024) /* more than any line has */
#define MEMBERS_MAX 16

struct member {
    const char *name, *text; /* text NULL: it is no string */
    int64_t number;
    bool is_number; /* a whole one */
};

/* The members of one line. */
struct line {
    struct member at[MEMBERS_MAX];
    size_t count;
    json_t *json; /* what they point into, when it is not the line itself */
};

static const struct member *find_member(const struct line *line, const char *name)
{
    for (size_t i = 0; i < line->count; i++)
        if (strcmp(line->at[i].name, name) == 0)
            return &line->at[i];
    return NULL;
}

/* Scans plain text in quotes; *end is the closing quote. NULL: it is not so plain. */
static char *scan_text(char *at, char **end)
{
    if (*at++ != '"')
        return NULL;
    for (*end = at; **end >= ' ' && **end <= '~' && **end != '"'; ++*end)
        if (**end == '\\')
            return NULL;
    return **end == '"' ? at : NULL;
}

/* The digits of a number that surely fits. NULL: it is not so plain. */
static char *scan_number(char *at, int64_t *number)
{
    char *begin = at;

    for (*number = 0; *at >= '0' && *at <= '9' && at - begin < 18; at++)
        *number = *number * 10 + (*at - '0');
    return at == begin || (*begin == '0' && at - begin > 1) || (*at >= '0' && *at <= '9') ? NULL : at;
}

/* Reads a line as workers write it: no blanks, no escapes, nothing but texts and whole numbers. false: it is
 * another, and as it was. Ten times as fast as jansson, which two million lines are worth. */
static bool scan_line(char *at, struct line *line)
{
    char *ends[2 * MEMBERS_MAX];
    size_t end_count = 0;

    for (char mark = '{'; *at == mark; mark = ',') {
        struct member *m = &line->at[line->count];

        if (line->count == MEMBERS_MAX)
            return false;
        *m = (struct member){0};
        if (!(m->name = scan_text(at + 1, &ends[end_count])))
            return false;
        at = ends[end_count++] + 1;
        if (*at++ != ':')
            return false;
        if ((m->text = scan_text(at, &ends[end_count])))
            at = ends[end_count++] + 1;
        else if ((at = scan_number(at, &m->number)))
            m->is_number = true;
        else
            return false;
        line->count++;
    }
    if (line->count == 0 || strcmp(at, "}\n") != 0)
        return false;
    for (size_t i = 0; i < end_count; i++)
        *ends[i] = '\0';
    for (size_t i = 1; i < line->count; i++)
        if (find_member(line, line->at[i].name) != &line->at[i]) {
            for (size_t j = 0; j < end_count; j++)
                *ends[j] = '"';
            return false;
        }
    return true;
}

/* Reads any line. WEIR_EINPUT: *torn, it is no JSON at all, or no object. */
static int parse_line(const char *text, size_t len, struct line *line, bool *torn, struct error *e)
{
    static const char *const names[] = {"slot",   "start", "type",   "id",     "key",  "cost",
                                        "limits", "end",   "spent",  "opened", "lost", "by",
                                        "ahead",  "good",  "lapsed", "back",   "why"};
    json_error_t why;

    line->count = 0;
    line->json = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
    *torn = !line->json;
    if (!line->json)
        return error_set(e, WEIR_EINPUT, "not JSON (%s)", why.text);
    if (!json_is_object(line->json))
        return error_set(e, WEIR_EINPUT, "not a JSON object");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const json_t *value = json_object_get(line->json, names[i]);

        if (value)
            line->at[line->count++] = (struct member){.name = names[i],
                                                      .text = json_string_value(value),
                                                      .number = json_integer_value(value),
                                                      .is_number = json_is_integer(value)};
    }
    return 0;
}

/* ---- Members */

/* Reads a member that is a whole number from least to most. */
static bool read_number(const struct line *line, const char *name, int64_t least, int64_t most, int64_t *n)
{
    const struct member *m = find_member(line, name);

    *n = m ? m->number : 0;
    return m && m->is_number && *n >= least && *n <= most;
}

/* Reads a time so small that no sum of times overflows. */
static bool read_time(const struct line *line, const char *name, int64_t *us)
{
    return read_number(line, name, 0, (INT64_C(1) << 53) - 1, us);
}

/* Reads a member that may be absent; then it is "". NULL: it is no string. */
static const char *read_text(const struct line *line, const char *name)
{
    const struct member *m = find_member(line, name);

    return m ? m->text : "";
}

/* Reads type and id, which every line but `opened` has. *job is 0 without an id. */
static int read_job(const struct line *line, const char **type, uint64_t *job, struct error *e)
{
    const struct member *type_member = find_member(line, "type");
    const char *id = read_text(line, "id");

    *type = type_member ? type_member->text : NULL;
    if (!*type || !id)
        return error_set(e, WEIR_EINPUT, "type is missing, or type or id is not a string");
    *job = *id ? text_hash(text_hash(0, *type), id) : 0;
    return limit_name_check("type", *type, e);
}

/* Reads a span that may be absent. */
static int read_span(const struct line *line, const char *name, int32_t *us, struct error *e)
{
    int64_t number;

    if (!find_member(line, name))
        return 0;
    if (!read_number(line, name, 0, SPAN_MOST_US, &number))
        return error_set(e, WEIR_EINPUT, "%s must be a time from 0 to %d microseconds", name, SPAN_MOST_US);
    *us = (int32_t)number;
    return 0;
}

static int read_limits_member(struct reading *r, const struct line *line, struct start *s, struct error *e)
{
    const char *limits = read_text(line, "limits");
    int64_t slot_us;

    if (!limits)
        return error_set(e, WEIR_EINPUT, "limits must be a string");
    if (input_limits(r->input, limits, &s->limits, e) < 0)
        return e->status;
    s->at_us = s->start_us;
    if (!s->limits)
        return 0;
    if (!read_time(line, "slot", &slot_us) || slot_us == 0)
        return error_set(e, WEIR_EINPUT, "slot must be a time in microseconds");
    s->at_us = slot_us;
    return read_span(line, "ahead", &s->ahead_us, e) < 0 ? e->status
                                                         : read_span(line, "good", &s->good_us, e);
}

static int read_cost_and_key(struct reading *r, const struct line *line, struct start *s, struct error *e)
{
    const char *key = read_text(line, "key");
    int64_t cost = 1;

    if (find_member(line, "cost") && !read_number(line, "cost", 1, COST_MOST, &cost))
        return error_set(e, WEIR_EINPUT, "cost must be a whole number from 1 to %d", COST_MOST);
    if (!key)
        return error_set(e, WEIR_EINPUT, "key must be a string");
    if (*key && limit_name_check("key", key, e) < 0)
        return e->status;
    s->cost = (int32_t)cost;
    return input_text(r->input, key, &s->key, e);
}

static int read_start(struct reading *r, const struct line *line, struct error *e)
{
    struct start s = {.file = r->file,
                      .line = r->line,
                      .writer = r->writer,
                      .spent = -1,
                      .ahead_us = -1,
                      .good_us = VERIFY_GOOD_US};
    struct verify_input *input = r->input;
    const char *type;
    uint32_t *running;

    if (read_job(line, &type, &s.job, e) < 0)
        return e->status;
    if (!read_time(line, "start", &s.start_us))
        return error_set(e, WEIR_EINPUT, "start must be a time in microseconds");
    if (read_limits_member(r, line, &s, e) < 0 || read_cost_and_key(r, line, &s, e) < 0 ||
        input_text(input, type, &s.type, e) < 0 ||
        input_grow(&input->starts, input->count, &input->capacity, sizeof *input->starts, e) < 0)
        return e->status;
    if (input->count == UINT32_MAX)
        return error_set(e, WEIR_EINPUT, "more than %u starts", UINT32_MAX);
    input->starts[input->count++] = s;
    note_time(r, s.start_us);
    if (!s.job || !s.limits)
        return 0;
    running = map_at(&r->running, running_key(r, s.job));
    if (!running)
        return verify_out_of_memory(e);
    *running = (uint32_t)input->count;
    return 0;
}

/* Finds the start to which a line of an end, or of what was spent, belongs; NULL: it is not in this file. */
static int find_start(struct reading *r, const struct line *line, struct start **start, uint64_t *job,
                      struct error *e)
{
    const char *type;
    uint32_t *running;

    if (read_job(line, &type, job, e) < 0)
        return e->status;
    running = map_find(&r->running, running_key(r, *job));
    *start = running ? &r->input->starts[*running - 1] : NULL;
    return 0;
}

static int read_end(struct reading *r, const struct line *line, struct error *e)
{
    struct start *s = NULL;
    uint64_t job;
    int64_t end_us;

    if (find_start(r, line, &s, &job, e) < 0)
        return e->status;
    if (!read_time(line, "end", &end_us))
        return error_set(e, WEIR_EINPUT, "end must be a time in microseconds");
    if (s && end_us < s->start_us - VERIFY_CLOCKS_US)
        return error_set(e, WEIR_EINPUT, "end is before the job's start in line %" PRIu64, s->line);
    note_time(r, end_us);
    if (s && !s->ended) {
        s->end_us = end_us > s->start_us ? end_us : s->start_us; /* a clock may have been set back a little */
        s->ended = true;
    }
    return 0;
}

static int read_spent(struct reading *r, const struct line *line, struct error *e)
{
    struct start *s = NULL;
    uint64_t job;
    int64_t spent;

    if (find_start(r, line, &s, &job, e) < 0)
        return e->status;
    if (!read_number(line, "spent", 0, COST_MOST, &spent))
        return error_set(e, WEIR_EINPUT, "spent must be a whole number from 0 to %d", COST_MOST);
    if (s)
        s->spent = spent;
    return 0;
}

static int read_back(struct reading *r, const struct line *line, struct error *e)
{
    const char *why = read_text(line, "why");
    struct verify_back *back = r->backs;
    struct start *s = NULL;
    int64_t back_us, slot_us, cost;
    uint64_t job;

    if (find_start(r, line, &s, &job, e) < 0)
        return e->status;
    if (!read_time(line, "back", &back_us) || !read_time(line, "slot", &slot_us) ||
        !read_number(line, "cost", 1, COST_MOST, &cost) || !why)
        return error_set(e, WEIR_EINPUT, "back wants two times in microseconds, a cost and a reason");
    note_time(r, back_us);
    if (job && s && s->at_us == slot_us && !s->ended)
        s->back = true;
    while (back < r->backs + VERIFY_BACKS - 1 && strcmp(back->why, why) != 0)
        back++;
    back->slots += (uint64_t)cost;
    return 0;
}

/* Drops starts whose handler was not called. */
static void drop_back(struct reading *r)
{
    struct verify_input *input = r->input;
    size_t kept = r->first;

    for (size_t i = r->first; i < input->count; i++)
        if (!input->starts[i].back)
            input->starts[kept++] = input->starts[i];
    input->count = kept;
}

static int read_opened(struct reading *r, const struct line *line, struct error *e)
{
    int64_t opened_us;

    if (!read_time(line, "opened", &opened_us))
        return error_set(e, WEIR_EINPUT, "opened must be a time in microseconds");
    return begin_writer(r, read_text(line, "by"), e);
}

static int read_lapsed(struct reading *r, const struct line *line, struct error *e)
{
    struct lapse lapse = {.writer = r->writer};

    if (!read_time(line, "lapsed", &lapse.us))
        return error_set(e, WEIR_EINPUT, "lapsed must be a time in microseconds");
    if (input_grow(&r->lapses, r->lapse_count, &r->lapse_capacity, sizeof *r->lapses, e) < 0)
        return e->status;
    r->lapses[r->lapse_count++] = lapse;
    return 0;
}

/* Reads how many lines were lost: the ends of what runs may be among them. */
static int read_lost(struct reading *r, const struct line *line, struct error *e)
{
    int64_t lost;

    if (!read_number(line, "lost", 1, INT64_C(1) << 53, &lost))
        return error_set(e, WEIR_EINPUT, "lost must be a number of lines");
    r->lost += (uint64_t)lost;
    map_clear(&r->writers);
    return 0;
}

static int read_members(struct reading *r, const struct line *line, struct error *e)
{
    static const struct {
        const char *member;
        int (*read)(struct reading *r, const struct line *line, struct error *e);
    } kinds[] = {{"start", read_start},   {"end", read_end},   {"spent", read_spent}, {"opened", read_opened},
                 {"lapsed", read_lapsed}, {"lost", read_lost}, {"back", read_back}};

    if (!read_text(line, "by"))
        return error_set(e, WEIR_EINPUT, "by must be a string");
    if (find_writer(r, read_text(line, "by"), e) < 0)
        return e->status;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (find_member(line, kinds[i].member))
            return kinds[i].read(r, line, e);
    return error_set(e, WEIR_EINPUT, "neither start nor end, spent, back, opened, lapsed or lost is there");
}

/* Reads one line; *torn: it is no JSON at all. */
static int read_line(struct reading *r, char *text, size_t len, bool *torn, struct error *e)
{
    struct line line = {.count = 0};
    int status = 0;

    *torn = false;
    if (!scan_line(text, &line))
        status = parse_line(text, len, &line, torn, e);
    if (status == 0)
        status = read_members(r, &line, e);
    json_decref(line.json);
    return status;
}

/* Checks that the file begins with an object: all else is no trace, and is not read, however long the line is. */
static int check_begin(FILE *f, struct error *e)
{
    int c = getc(f);

    if (c != EOF)
        ungetc(c, f);
    if (c == EOF || c == '{')
        return 0;
    return error_set(e, WEIR_EINPUT,
                     c == 0xef ? "begins with a byte order mark (BOM); save it without one"
                               : "not a JSON object");
}

static bool line_follows(FILE *f)
{
    int c = getc(f);

    ungetc(c, f);
    return c == '{';
}

/* Passes over the rest of a line with which a file begins that was cut. false: it is none; what was read is gone. */
static bool pass_rest(FILE *f)
{
    int c, len = 0;

    while ((c = getc(f)) >= ' ' && c <= '~' && len < REST_MOST)
        len++;
    return c == '\n' && line_follows(f);
}

static int read_lines(struct reading *r, FILE *f, const char *path, size_t *torn_line, struct error *e)
{
    struct error why;
    size_t capacity = 0;
    char *text = NULL;
    ssize_t len = 0;
    bool torn;
    int status = 0;

    for (r->line = 1; status == 0; r->line++) {
        torn = false;
        status = check_begin(f, &why);
        if (status < 0 && r->line == 1 && pass_rest(f)) {
            r->torn_first = true;
            status = 0;
            continue;
        }
        if (status == 0 && (len = getline(&text, &capacity, f)) <= 0)
            break;
        if (status == 0)
            status = read_line(r, text, (size_t)len, &torn, &why);
        if (status < 0 && torn && text[len - 1] != '\n') {
            *torn_line = r->line;
            status = 0;
        } else if (status < 0 && torn && r->line == 1 && line_follows(f)) {
            r->torn_first = true;
            status = 0;
        } else if (status == WEIR_EINPUT) {
            error_set(e, status, "%.200s:%zu: %.200s; is it a trace of weir worker --trace?", path, r->line,
                      why.text);
        } else if (status < 0) {
            *e = why;
        }
    }
    free(text);
    if (status == 0 && ferror(f))
        return error_set(e, WEIR_EINPUT, "%.200s: cannot be read: %s; give a trace file", path,
                         strerror(errno));
    return status;
}

int verify_read(struct verify *v, const char *path, size_t *torn_line, struct error *e)
{
    struct reading r = {.input = v->input, .backs = v->backs, .first = v->input->count};
    FILE *f = fopen(path, "r");
    int status;

    *torn_line = 0;
    if (!f)
        return error_set(e, WEIR_EINPUT, "%.200s: cannot be opened: %s; give a trace file", path,
                         strerror(errno));
    status = input_text(v->input, path, &r.file, e);
    if (status == 0)
        status = read_lines(&r, f, path, torn_line, e);
    end_workers(&r);
    drop_back(&r);
    v->lost += r.lost;
    v->torn_first = r.torn_first;
    map_free(&r.running);
    map_free(&r.writers);
    free(r.lapses);
    free(r.last_us);
    fclose(f);
    return status;
}

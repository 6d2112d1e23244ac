#include "queue/inspect/job_search.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/duration.h"
#include "core/likely.h"
#include "queue/job/job.h"
#include "throttle/key.h"

#define FIELDS "type queue key batch schedule id state worker enqueued died due reason args.PATH"
#define PATH_MOST 128
#define TEXT_MOST 1500

static const char *const states[] = {"waiting", "parked",   "held", "aside",    "running", "scheduled",
                                     "retry",   "retrying", "dead", "finished", NULL};

/* ---- Keeping terms */

static int keep_bytes(struct job_search *s, const char *bytes, size_t len, size_t *at, struct error *e)
{
    if (len >= JOB_SEARCH_SIZE - s->len)
        return error_set(e, WEIR_EINPUT, "search: longer than %d characters; leave terms out", TEXT_MOST);
    *at = s->len;
    memcpy(s->text + s->len, bytes, len);
    s->text[s->len + len] = '\0';
    s->len += len + 1;
    return 0;
}

static int keep(struct job_search *s, const char *field, const char *value, struct error *e)
{
    int status;

    if (s->count == JOB_TERMS_MOST)
        return error_set(e, WEIR_EINPUT, "search: more than %d terms; leave some out", JOB_TERMS_MOST);
    status = keep_bytes(s, field, strlen(field), &s->terms[s->count].field, e);
    if (status == 0)
        status = keep_bytes(s, value, strlen(value), &s->terms[s->count].value, e);
    if (status == 0)
        s->count++;
    return status;
}

const char *job_search_value(const struct job_search *s, const char *field)
{
    for (size_t i = 0; i < s->count; i++)
        if (strcmp(s->text + s->terms[i].field, field) == 0)
            return s->text + s->terms[i].value;
    return NULL;
}

bool job_search_has(const struct job_search *s, const char *field, const char *value)
{
    for (size_t i = 0; i < s->count; i++)
        if (strcmp(s->text + s->terms[i].field, field) == 0 &&
            strcmp(s->text + s->terms[i].value, value) == 0)
            return true;
    return false;
}

void job_search_args(const struct job_search *s, struct args *a)
{
    args_add_int(a, (int64_t)s->count + (s->able != NULL));
    if (s->able) {
        args_add(a, "able");
        args_add(a, s->able);
    }
    for (size_t i = 0; i < s->count; i++) {
        args_add(a, s->text + s->terms[i].field);
        args_add(a, s->text + s->terms[i].value);
    }
}

/* ---- Fields */

static int add_name(struct job_search *s, const char *field, const char *value, struct error *e)
{
    if (!name_is_valid(value, strlen(value)))
        return error_set(e, WEIR_EINPUT,
                         "search %s:%.60s: not a valid name; it has 1 to 128 of A-Z a-z 0-9 _ . -", field,
                         value);
    return keep(s, field, value, e);
}

/* Beside it the lane's key that stands for it. */
static int add_key(struct job_search *s, const char *field, const char *value, struct error *e)
{
    char made[LIMIT_NAME_SIZE];
    int status = keep(s, field, value, e);

    key_make(value, strlen(value), made);
    return status < 0 ? status : keep(s, "made", made, e);
}

static int add_state(struct job_search *s, const char *word, struct error *e)
{
    const char *likely = likely_word(word, states);

    for (size_t i = 0; states[i]; i++)
        if (strcmp(states[i], word) == 0)
            return keep(s, "state", strcmp(word, "retrying") == 0 ? "retry" : word, e);
    if (likely)
        return error_set(e, WEIR_EINPUT, "search state:%.40s: no such state; did you mean state:%s?", word,
                         likely);
    return error_set(e, WEIR_EINPUT,
                     "search state:%.40s: no such state; there are waiting, parked, held, aside, "
                     "running, scheduled, retry, dead and finished",
                     word);
}

static int add_states(struct job_search *s, const char *field, const char *value, struct error *e)
{
    char word[32];
    int status = 0;

    (void)field;
    for (const char *at = value; status == 0 && at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        snprintf(word, sizeof word, "%.*s", (int)strcspn(at, ","), at);
        status = add_state(s, word, e);
    }
    return status;
}

/* Keeps "died<" and the microseconds. */
static int keep_time(struct job_search *s, const char *field, char sign, int64_t span_us, const char *value,
                     struct error *e)
{
    char name[16], us[24];

    snprintf(name, sizeof name, "%s%c", field, sign);
    if (job_search_value(s, name))
        return error_set(e, WEIR_EINPUT, "search %s:%.40s: such a term is there already; leave one out",
                         field, value);
    snprintf(us, sizeof us, "%" PRId64, span_us);
    return keep(s, name, us, e);
}

/* Within a day: at most as long ago as it began, and at least as long as it ended. Of due the times are those to come. */
static int add_day(struct job_search *s, const char *field, const char *value, const struct day *day,
                   int64_t now_us, struct error *e)
{
    bool due = strcmp(field, "due") == 0;
    int64_t far_us = due ? day->end_us - now_us : now_us - day->begin_us,
            near_us = due ? day->begin_us - now_us : now_us - day->end_us;
    int status;

    if (far_us <= 0)
        return error_set(e, WEIR_EINPUT, "search %s:%.40s: that day %s", field, value,
                         due ? "is over" : "is yet to come");
    status = keep_time(s, field, '<', far_us, value, e);
    return status < 0 || near_us <= 0 ? status : keep_time(s, field, '>', near_us, value, e);
}

/* Reads ">1h", "<1h", and "1h" as ">1h"; >= and <= as > and <; behind a sign a day stands for its beginning; or a day as a whole. */
static int add_time(struct job_search *s, const char *field, const char *value, struct error *e)
{
    const char *span = value + (*value == '<' || *value == '>');
    int64_t span_us, now_us = clock_wall_us();
    struct error why;
    struct day day;

    if (day_read(value, now_us, &day))
        return add_day(s, field, value, &day, now_us, e);
    span += span > value && *span == '=';
    if (ago_parse(span, strcmp(field, "due") == 0 ? -1 : 1, now_us, &span_us, &why) < 0)
        return error_set(e, WEIR_EINPUT, "search %s:%.40s: %.300s", field, value, why.text);
    return keep_time(s, field, *value == '<' ? '<' : '>', span_us, value, e);
}

static const struct field {
    const char *name;
    int (*add)(struct job_search *s, const char *field, const char *value, struct error *e);
    bool again; /* it may be given more than once */
} fields[] = {
    {"worker", add_name, false},   {"type", add_name, false},  {"queue", add_name, false},
    {"schedule", add_name, false}, {"batch", add_name, false}, {"id", add_name, false},
    {"key", add_key, false},       {"reason", keep, false},    {"enqueued", add_time, true},
    {"died", add_time, true},      {"due", add_time, true},    {"state", add_states, true},
};
#define FIELD_COUNT (sizeof fields / sizeof *fields)

/* True for args.NAME, args.NAME.NAME and so on. */
static bool is_args_path(const char *field)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    const char *at = field + 4;

    if (strncmp(field, "args.", 5) != 0 || strlen(field) > PATH_MOST)
        return false;
    while (*at == '.') {
        size_t len = strspn(at + 1, letters);

        if (len == 0)
            return false;
        at += 1 + len;
    }
    return *at == '\0';
}

static int unknown_field(const char *field, struct error *e)
{
    const char *names[FIELD_COUNT + 1] = {NULL}, *likely;

    for (size_t i = 0; i < FIELD_COUNT; i++)
        names[i] = fields[i].name;
    likely = likely_word(field, names);
    if (likely)
        return error_set(e, WEIR_EINPUT, "search %.60s: no such field; did you mean %s:?", field, likely);
    return error_set(e, WEIR_EINPUT, "search %.60s: no such field; there are " FIELDS, field);
}

int job_search_add(struct job_search *s, const char *field, const char *value, struct error *e)
{
    const struct field *known = NULL;

    for (size_t i = 0; i < FIELD_COUNT; i++)
        if (strcmp(fields[i].name, field) == 0)
            known = &fields[i];
    if (!known && !is_args_path(field))
        return unknown_field(field, e);
    if (known && !*value)
        return error_set(e, WEIR_EINPUT, "search %s: its value is missing; write %s:VALUE", field, field);
    if ((!known || !known->again) && job_search_value(s, field))
        return error_set(e, WEIR_EINPUT, "search %.60s: given twice; leave one out", field);
    return known ? known->add(s, field, value, e) : keep(s, field, value, e);
}

/* ---- Text */

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* What stands in quotes from *at on, which is moved behind them. */
static int read_quoted(const char **at, char value[JOB_SEARCH_SIZE], struct error *e)
{
    const char *from = *at + 1;
    size_t len = 0;

    while (*from && *from != '"' && len < JOB_SEARCH_SIZE - 1) {
        from += *from == '\\' && (from[1] == '"' || from[1] == '\\');
        value[len++] = *from++;
    }
    value[len] = '\0';
    if (*from != '"' || (from[1] && !is_blank(from[1])))
        return error_set(e, WEIR_EINPUT,
                         "search %.40s: the quotes do not end, or no blank stands behind them; inside, write "
                         "\\\" for a quote",
                         *at);
    *at = from + 1;
    return 0;
}

static int read_value(const char **at, char value[JOB_SEARCH_SIZE], struct error *e)
{
    size_t len = 0;

    if (**at == '"')
        return read_quoted(at, value, e);
    for (; **at && !is_blank(**at) && len < JOB_SEARCH_SIZE - 1; (*at)++)
        value[len++] = **at;
    value[len] = '\0';
    return 0;
}

/* Reads one term; a word alone is the id of a job. */
static int read_term(struct job_search *s, const char **at, struct error *e)
{
    size_t len = strcspn(*at, ": \t\n\v\f\r");
    char field[PATH_MOST + 2], value[JOB_SEARCH_SIZE];
    int status;

    if ((*at)[len] != ':')
        len = 0;
    snprintf(field, sizeof field, "%.*s", len > 0 ? (int)len : 2, len > 0 ? *at : "id");
    *at += len > 0 ? len + 1 : 0;
    status = read_value(at, value, e);
    return status < 0 ? status : job_search_add(s, field, value, e);
}

int job_search_read(struct job_search *s, const char *text, struct error *e)
{
    int status = 0;

    if (strlen(text) > TEXT_MOST)
        return error_set(e, WEIR_EINPUT, "search: longer than %d characters; leave terms out", TEXT_MOST);
    while (status == 0) {
        while (is_blank(*text))
            text++;
        if (!*text)
            break;
        status = read_term(s, &text, e);
    }
    return status;
}

#include "cli/apply/sections.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"
#include "core/duration.h"
#include "queue/limits/export.h"
#include "queue/limits/limits.h"
#include "throttle/key.h"
#include "throttle/rule.h"
#include "view/text.h"

#define WORDS_MOST 17 /* limits of a type, or rules of a limit, and one too many */
#define VALUE_SIZE 4096
#define KEY_BEFORE " -- " /* between rules or a reason and their key, each of which may have blanks */

bool section_is(const char *section, const char *kind)
{
    return strncmp(section, kind, strlen(kind)) == 0 && section[strlen(kind)] == ' ';
}

const char *section_title(const char *section)
{
    return strchr(section, ' ') + 1;
}

/* A line is read as a flag is, to see that it can be; its text is what counts. */
static union {
    const char *text;
    long long n;
    int64_t us;
} scratch;

#define PAUSE                                                                                                \
    {                                                                                                        \
        "pause", 0, FLAG_TEXT, "WHEN [REASON]", "endless, or until 2026-12-01T10:00:00Z; no", &scratch       \
    }

const struct section_kind section_kinds[] = {
    {"limit",
     {{"rules", 0, FLAG_TEXT, "RULE...", "as weir rate set takes them", &scratch},
      {"weight", 0, FLAG_REPEATED, "N KEY", "a line for each key that has one", NULL},
      PAUSE,
      {"key-rules", 0, FLAG_REPEATED, "WHEN ...", "endless 50/s -- KEY, or TIME,closed 5/s -- KEY", NULL},
      {"pause-key", 0, FLAG_REPEATED, "WHEN ...", "endless KEY, or endless REASON -- KEY; a line each",
       NULL}}},
    {"type",
     {{"use", 0, FLAG_TEXT, "LIMIT...", "all that hold it besides that of its own name", &scratch},
      {"cost", 0, FLAG_COST, "N", "slots that a job takes, tokens=N too", &scratch},
      PAUSE}},
    {"queue", {PAUSE}},
    {"schedule",
     {{"when", 0, FLAG_TEXT, "WHEN", "as weir schedule add takes it", &scratch},
      {"type", 0, FLAG_TEXT, "TYPE", "of its jobs", &scratch},
      {"args", 0, FLAG_TEXT, "JSON", "of its jobs", &scratch},
      {"tz", 0, FLAG_TEXT, "ZONE", "default UTC", &scratch},
      {"missed", 0, FLAG_TEXT, "POLICY", "once, skip or all; default once", &scratch},
      {"queue", 0, FLAG_TEXT, "QUEUE", "default \"default\"", &scratch},
      {"key", 0, FLAG_TEXT, "K", "of its jobs", &scratch},
      {"cost", 0, FLAG_COST, "N", "of its jobs, tokens=N too", &scratch},
      {"max-attempts", 0, FLAG_INT, "N", "of its jobs", &scratch},
      {"timeout", 0, FLAG_DURATION, "DUR", "of its jobs", &scratch},
      PAUSE}},
    {.name = NULL}};

/* ---- Normal forms */

/* Writes "endless", "2026-12-01T10:00:00Z"; a time is cut to its second. */
static const char *format_until(int64_t us, char out[32])
{
    time_t s = (time_t)(us / 1000000);
    struct tm parts;

    if (us >= PAUSED_ENDLESS_US || !gmtime_r(&s, &parts))
        return strcpy(out, "endless");
    strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return out;
}

bool section_read_pause(const char *value, int64_t now_us, int64_t *for_us, const char **rest)
{
    size_t len = strcspn(value, " ");
    struct tm parts = {0};
    char word[32];
    const char *end;

    snprintf(word, sizeof word, "%.*s", len < 32 ? (int)len : 31, value);
    *rest = value + len + strspn(value + len, " ");
    *for_us = strcmp(word, "endless") == 0 ? RATE_ENDLESS : RATE_RESUME;
    if (*for_us == RATE_ENDLESS || strcmp(word, "no") == 0)
        return true;
    end = strptime(word, "%Y-%m-%dT%H:%M:%SZ", &parts);
    if (!end || *end)
        return false;
    *for_us = (int64_t)timegm(&parts) * 1000000 - now_us;
    *for_us = *for_us > 0 ? *for_us : RATE_RESUME;
    return true;
}

const char *section_paused_key(const char *rest, size_t *reason_len)
{
    const char *mark = strncmp(rest, &KEY_BEFORE[1], 3) == 0 ? rest - 1 : strstr(rest, KEY_BEFORE);

    *reason_len = mark > rest ? (size_t)(mark - rest) : 0;
    return mark ? mark + strlen(KEY_BEFORE) : rest;
}

int section_read_key_rules(char *value, int64_t now_us, struct key_change *change, struct error *e)
{
    char *end = strchr(value, ' '), *key = strstr(value, KEY_BEFORE), *closed = strstr(value, ",closed ");
    const char *rest;

    *change = (struct key_change){.revision = -1, .closes = closed && closed + strlen(",closed") == end};
    if (change->closes)
        *closed = '\0';
    if (!end || !key || key <= end || !key[strlen(KEY_BEFORE)] || strncmp(value, "no ", 3) == 0 ||
        !section_read_pause(value, now_us, &change->for_us, &rest))
        return error_set(e, WEIR_EINPUT,
                         "%.60s: not rules of a key; write endless 50/s -- acme, or a time such as "
                         "2026-12-01T10:00:00Z for endless",
                         value);
    if (change->closes && change->for_us == RATE_ENDLESS)
        return error_set(e, WEIR_EINPUT, "endless,closed: closed after no time at all; write a time");
    *end = *key = '\0';
    change->rules = end + 1;
    change->key = key + strlen(KEY_BEFORE);
    return 0;
}

const char *section_key(const char *name, const char *entry)
{
    size_t ignored;

    if (strcmp(name, "key-rules") == 0)
        return strstr(entry, KEY_BEFORE) + strlen(KEY_BEFORE);
    entry = section_title(entry);
    return strcmp(name, "pause-key") == 0 ? section_paused_key(entry, &ignored) : entry;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Splits at blanks, in place; how many words there are, WORDS_MOST at most. */
static size_t split(char *text, const char *words[WORDS_MOST])
{
    size_t count = 0;

    for (char *word; (word = strsep(&text, " \t"));)
        if (*word && count < WORDS_MOST)
            words[count++] = word;
    return count;
}

static int normal_rules(const char *text, char out[VALUE_SIZE], struct error *e)
{
    const char *words[WORDS_MOST];
    struct rule_set set;
    char copy[VALUE_SIZE];

    snprintf(copy, sizeof copy, "%s", text);
    if (rule_set_parse(words, split(copy, words), &set, e) < 0)
        return e->status;
    rule_set_format(&set, out);
    return 0;
}

/* Puts the limits of a type in one order, each once. */
static int normal_use(const char *text, char out[VALUE_SIZE], struct error *e)
{
    const char *words[WORDS_MOST];
    char copy[VALUE_SIZE], *end = out;
    size_t count;

    snprintf(copy, sizeof copy, "%s", text);
    count = split(copy, words);
    if (count > RATE_USES_MOST)
        return error_set(e, WEIR_EINPUT, "more than %d limits; name fewer", RATE_USES_MOST);
    qsort(words, count, sizeof *words, by_text);
    *end = '\0';
    for (size_t i = 0; i < count; i++) {
        if (limit_name_check("limit", words[i], e) < 0)
            return e->status;
        if (i == 0 || strcmp(words[i], words[i - 1]) != 0)
            end += sprintf(end, "%s%s", i ? " " : "", words[i]);
    }
    return 0;
}

/* The key as gates have it. */
static int normal_weight(const char *text, char out[VALUE_SIZE], struct error *e)
{
    char *key, made[LIMIT_NAME_SIZE];
    long n = strtol(text, &key, 10);

    if (key == text || *key != ' ' || n < 1 || n > RATE_WEIGHT_MOST)
        return error_set(e, WEIR_EINPUT, "%.60s: not a weight from 1 to %d and a key; write 3 acme", text,
                         RATE_WEIGHT_MOST);
    key += strspn(key, " ");
    if (key_is_made(key, strlen(key)))
        snprintf(made, sizeof made, "%s", key);
    else
        key_make(key, strlen(key), made);
    snprintf(out, VALUE_SIZE, "%ld %s", n, made);
    return 0;
}

static int normal_pause(const char *text, char out[VALUE_SIZE], struct error *e)
{
    const char *rest;
    int64_t for_us;

    if (!section_read_pause(text, 0, &for_us, &rest))
        return error_set(e, WEIR_EINPUT,
                         "%.60s: not a pause; write endless, no, or a time such as 2026-12-01T10:00:00Z",
                         text);
    snprintf(out, VALUE_SIZE, "%.*s%s%s", (int)strcspn(text, " "), text, *rest ? " " : "", rest);
    return 0;
}

/* A key that could be taken for a reason and a key stands behind a mark of its own. */
static void write_key_pause(char out[VALUE_SIZE], struct span when, struct span reason, const char *key)
{
    bool marked = strstr(key, KEY_BEFORE) || strncmp(key, &KEY_BEFORE[1], 3) == 0;

    snprintf(out, VALUE_SIZE, "%.*s %.*s%s%s", (int)when.len, when.at, (int)reason.len, reason.at,
             reason.len ? KEY_BEFORE
             : marked   ? &KEY_BEFORE[1]
                        : "",
             key);
}

static int normal_key_pause(const char *text, char out[VALUE_SIZE], struct error *e)
{
    struct span when = {text, strcspn(text, " ")},
                reason = {text + when.len + strspn(text + when.len, " "), 0};
    const char *key = section_paused_key(reason.at, &reason.len);

    if (!*key)
        return error_set(e, WEIR_EINPUT, "%.60s: its key is missing; write %.60s acme", text, text);
    if (normal_pause(text, out, e) < 0)
        return e->status;
    write_key_pause(out, when, reason, key);
    return 0;
}

static int normal_key_rules(const char *text, char out[VALUE_SIZE], struct error *e)
{
    char copy[VALUE_SIZE], rules[VALUE_SIZE];
    struct key_change change;

    snprintf(copy, sizeof copy, "%s", text);
    if (section_read_key_rules(copy, 0, &change, e) < 0 || normal_rules(change.rules, rules, e) < 0)
        return e->status;
    if (strstr(rules, ",by="))
        return error_set(e, WEIR_EINPUT, "%.60s: they go by the path of the limit; leave by= out", rules);
    if (snprintf(out, VALUE_SIZE, "%.*s %s" KEY_BEFORE "%s", (int)strcspn(text, " "), text, rules,
                 change.key) >= VALUE_SIZE)
        return error_set(e, WEIR_EINPUT, "longer than %d bytes; write less", VALUE_SIZE - 1);
    return 0;
}

static int normal_cost(const char *text, char out[VALUE_SIZE], struct error *e)
{
    struct job_cost cost;
    struct error why;

    if (cost_read(text, COST_TAKEN, &cost, &why) < 0)
        return error_set(e, why.status, "%.60s: %s", text, why.text);
    cost_print(&cost, out);
    return 0;
}

/* Of attempts, which a job's check bounds further. */
static int normal_count(const char *text, char out[VALUE_SIZE], struct error *e)
{
    long long n = strtoll(text, NULL, 10);

    if (n < 1 || n > JOB_COST_MOST)
        return error_set(e, WEIR_EINPUT, "%.60s: must be 1 to %d", text, JOB_COST_MOST);
    snprintf(out, VALUE_SIZE, "%lld", n);
    return 0;
}

static const struct normal {
    const char *name;
    int (*make)(const char *text, char out[VALUE_SIZE], struct error *e);
} normals[] = {{"rules", normal_rules},         {"use", normal_use},
               {"weight", normal_weight},       {"pause", normal_pause},
               {"pause-key", normal_key_pause}, {"cost", normal_cost},
               {"key-rules", normal_key_rules}, {"max-attempts", normal_count}};

static int make_normal(const char *name, const char *text, char out[VALUE_SIZE], struct error *e)
{
    if (strlen(text) >= VALUE_SIZE)
        return error_set(e, WEIR_EINPUT, "%s: longer than %d bytes; write less", name, VALUE_SIZE - 1);
    for (size_t i = 0; i < sizeof normals / sizeof *normals; i++)
        if (strcmp(normals[i].name, name) == 0)
            return normals[i].make(text, out, e);
    strcpy(out, text);
    return 0;
}

/* ---- Schedules */

static void put_text(json_t *section, const char *name, struct span text)
{
    if (text.at)
        json_object_set_new(section, name, text_json(text));
}

static void put_number(json_t *section, const char *name, int64_t n)
{
    char text[32];

    if (n > 0)
        json_object_set_new(section, name, json_string((sprintf(text, "%" PRId64, n), text)));
}

static void put_schedule(json_t *section, const struct schedule *s)
{
    char timeout[32], text[COST_TEXT_SIZE];
    struct job_cost cost;

    json_object_set_new(section, "when", json_string(s->when));
    put_text(section, "type", s->view.type);
    put_text(section, "args", s->view.args);
    json_object_set_new(section, "tz", json_string(s->zone_name));
    json_object_set_new(section, "missed", json_string(missed_name(s->missed)));
    json_object_set_new(section, "queue", json_string(s->queue));
    put_text(section, "key", s->view.key);
    job_cost_of(&s->view, &cost);
    cost_print(&cost, text);
    if (*text)
        json_object_set_new(section, "cost", json_string(text));
    if (s->view.max_attempts != JOB_MAX_ATTEMPTS)
        put_number(section, "max-attempts", s->view.max_attempts);
    if (s->view.timeout_us) {
        duration_format(s->view.timeout_us, timeout);
        json_object_set_new(section, "timeout", json_string(timeout));
    }
}

static long long number_of(const json_t *section, const char *name)
{
    return strtoll(json_text_of(section, name), NULL, 10);
}

int section_schedule(const char *name, const json_t *section, struct schedule *s, struct error *e)
{
    const char *timeout = json_string_value(json_object_get(section, "timeout")),
               *when = json_text_of(section, "when");
    const char *missed = json_string_value(json_object_get(section, "missed"));
    struct weir_job_spec job = {.type = json_text_of(section, "type"),
                                .args = json_string_value(json_object_get(section, "args")),
                                .queue = json_string_value(json_object_get(section, "queue")),
                                .key = json_string_value(json_object_get(section, "key")),
                                .costs = json_string_value(json_object_get(section, "cost")),
                                .max_attempts = (int)number_of(section, "max-attempts")};
    enum weir_missed policy = WEIR_MISSED_ONCE;
    int64_t timeout_us;
    char *text;
    int status;

    *s = (struct schedule){0};
    if (missed && !missed_read(missed, &policy))
        return error_set(e, WEIR_EINPUT, "missed %.60s: must be once, skip or all", missed);
    if (timeout && duration_parse(timeout, &timeout_us, e) < 0)
        return e->status;
    job.timeout_s = timeout ? (double)timeout_us / 1e6 : 0;
    status = schedule_make(name, when, json_string_value(json_object_get(section, "tz")), policy, &job, s,
                           &text, e);
    free(text);
    return status;
}

/* ---- Of a file */

/* Checks that no entry of a list "3 acme", "2 other" has the key of another text. */
static int check_key(const json_t *list, const char *name, const char *text, struct error *e)
{
    const char *key = section_key(name, text);
    const json_t *entry;
    size_t i;

    json_array_foreach((json_t *)list, i, entry)
        if (strcmp(section_key(name, json_string_value(entry)), key) == 0)
            return error_set(e, WEIR_EINPUT, "key %.100s stands in this section twice; leave one out", key);
    return 0;
}

/* Adds a value in its normal form. */
static int read_setting(struct cli *cli, const struct flag *flags, const struct setting *s, json_t *section)
{
    char text[VALUE_SIZE], place[CONFIG_PLACE_SIZE];
    json_t *list = json_object_get(section, s->name), *value = NULL;
    struct error why;
    int status = make_normal(s->name, s->value, text, &why);

    if (status == 0 && json_is_array(list))
        status = check_key(list, s->name, text, &why);
    if (status == 0 && !(value = json_string(text)))
        status = error_set(&why, WEIR_EINPUT, "it is not UTF-8; save the file as UTF-8");
    if (status < 0)
        return error_set(&cli->error, WEIR_ECONFIG, "%.300s: %s: %s", config_place(s, place), s->name,
                         why.text);
    while (strcmp(flags->name, s->name) != 0)
        flags++;
    if (flags->kind != FLAG_REPEATED)
        return json_object_set_new(section, s->name, value);
    if (!list)
        json_object_set_new(section, s->name, list = json_array());
    return json_array_append_new(list, value);
}

static int read_titled(struct cli *cli, const struct flag *flags, const struct setting *first,
                       json_t *section)
{
    int status = cli_read_section(cli, flags, first->section, first->title, NULL);

    for (size_t i = 0; status == 0 && i < cli->config.count; i++) {
        const struct setting *s = &cli->config.at[i];

        if (strcmp(s->section, first->section) == 0 && strcmp(s->title, first->title) == 0)
            status = read_setting(cli, flags, s, section);
    }
    return status;
}

/* A schedule in its normal form, made once to see that it is one; its pause stays. */
static int read_schedule(struct cli *cli, const struct setting *first, json_t *section)
{
    char place[CONFIG_PLACE_SIZE];
    struct schedule s;
    struct error why;
    int status = section_schedule(first->title, section, &s, &why);

    if (status == 0 && schedule_next(&s, clock_wall_us()) == CRON_NEVER)
        status =
            error_set(&why, WEIR_EINPUT,
                      "when '%.60s': never occurs before the year 2100; write a day that exists", s.when);
    if (status < 0)
        error_set(&cli->error, status = WEIR_ECONFIG, "%.300s: [schedule %.100s]: %s",
                  config_place(first, place), first->title, why.text);
    else
        put_schedule(section, &s);
    schedule_free(&s);
    return status;
}

int sections_of_file(struct cli *cli, json_t **state)
{
    int status = 0;

    *state = json_object();
    for (const struct section_kind *k = section_kinds; status == 0 && k->name; k++) {
        const struct setting *first;
        size_t at = 0;

        while (status == 0 && (first = config_next_title(&cli->config, k->name, &at))) {
            json_t *section = json_object();
            char name[200];

            snprintf(name, sizeof name, "%s %.150s", k->name, first->title);
            json_object_set_new(*state, name, section);
            status = read_titled(cli, k->flags, first, section);
            if (status == 0 && strcmp(k->name, "schedule") == 0)
                status = read_schedule(cli, first, section);
        }
    }
    if (status < 0) {
        json_decref(*state);
        *state = NULL;
    }
    return status;
}

/* ---- Of Redis */

static void put_pause(json_t *section, const json_t *pause)
{
    const char *reason = answer_text(pause, "reason");
    char until[32], text[VALUE_SIZE];

    if (!json_is_object(pause))
        return;
    snprintf(text, sizeof text, "%s%s%s", format_until(answer_int(pause, "until"), until), *reason ? " " : "",
             reason);
    json_object_set_new(section, "pause", text_word(text));
}

/* Appends that of the key at keys[i]. A mark within its reason is written as another. */
static void put_key_pause(json_t *list, const json_t *keys, size_t i)
{
    char *key = text_of(text_bytes(json_array_get(keys, i))),
         *reason = text_of(text_bytes(json_array_get(keys, i + 2))), text[VALUE_SIZE], until[32];
    const char *when = format_until(answer_int_at(keys, i + 1), until);

    for (char *mark = reason; mark && (mark = strstr(mark, "--")); mark++)
        mark[1] = ' ';
    write_key_pause(text, (struct span){when, strlen(when)},
                    (struct span){reason, reason ? strlen(reason) : 0}, key ? key : "");
    json_array_append_new(list, text_word(text));
    free(reason);
    free(key);
}

static int put_limit(struct cli *cli, const json_t *row, json_t *section)
{
    const json_t *weights = json_object_get(row, "weights"), *keys = json_object_get(row, "keys");
    char text[RULE_SET_TEXT_SIZE];
    json_t *list;
    struct rule_set set;
    struct error why;

    if (rule_set_read(answer_text(row, "rules"), &set, &why) < 0)
        return error_set(&cli->error, WEIR_ECONFIG, "limit %.128s: %s", answer_text(row, "name"), why.text);
    rule_set_format(&set, text);
    json_object_set_new(section, "rules", json_string(text));
    json_object_set_new(section, "weight", list = json_array());
    for (size_t i = 0; i + 1 < json_array_size(weights); i += 2)
        json_array_append_new(list, json_sprintf("%s %s", json_string_value(json_array_get(weights, i + 1)),
                                                 json_string_value(json_array_get(weights, i))));
    json_object_set_new(section, "pause-key", list = json_array());
    for (size_t i = 0; i + 2 < json_array_size(keys); i += 3)
        put_key_pause(list, keys, i);
    return 0;
}

/* Puts the rules of keys that hold now: what is over is left out. */
static int put_key_rules(struct cli *cli, struct weir *w, const char *limit, json_t *section)
{
    json_t *rows, *row, *list = json_array();
    char text[RULE_SET_TEXT_SIZE], until[32];
    int64_t now_us, count;
    struct rule_set set;
    struct error ignored;
    const char *name;

    json_object_set_new(section, "key-rules", list);
    if (key_rules_read(w, limit, NULL, &rows, &now_us, &count) < 0)
        return cli_failed(cli, w);
    json_object_foreach(rows, name, row) {
        int64_t until_us = answer_int(row, "until");
        struct span shown = text_bytes(json_object_get(row, json_object_get(row, "shown") ? "shown" : "key"));
        char *key = text_of(shown);

        if (!json_is_true(json_object_get(row, "is_over")) &&
            rule_set_read(answer_text(row, "rules"), &set, &ignored) == 0) {
            rule_set_format(&set, text);
            json_array_append_new(list,
                                  json_sprintf("%s%s %s" KEY_BEFORE "%s",
                                               format_until(until_us ? until_us : INT64_MAX, until),
                                               json_is_true(json_object_get(row, "closes")) ? ",closed" : "",
                                               text, key ? key : ""));
        }
        free(key);
    }
    json_decref(rows);
    return 0;
}

static void put_type(const json_t *row, json_t *section)
{
    const json_t *use = json_object_get(row, "use");
    char text[VALUE_SIZE] = "", normal[VALUE_SIZE];
    struct job_cost cost;
    struct error ignored;
    size_t len = 0;

    for (size_t i = 0; i < json_array_size(use) && len < sizeof text; i++)
        len +=
            (size_t)snprintf(text + len, sizeof text - len, "%s ", json_string_value(json_array_get(use, i)));
    if (len > 0 && normal_use(text, normal, &ignored) == 0)
        json_object_set_new(section, "use", json_string(normal));
    if (!cost_parse(answer_text(row, "cost"), &cost))
        cost = cost_of(answer_int(row, "cost"));
    cost_print(&cost, text);
    json_object_set_new(section, "cost", json_string(text));
}

static int add_schedule(struct schedule_row *row, void *arg)
{
    json_t *section = json_object();
    char name[SCHEDULE_NAME_MOST + 16];

    if (row->status == WEIR_ECONFIG)
        return 0; /* weir schedule list says what is wrong with it */
    put_schedule(section, &row->s);
    put_pause(section, row->s.pause);
    snprintf(name, sizeof name, "schedule %s", row->name);
    json_object_set_new(arg, name, section);
    return 0;
}

int sections_of_redis(struct cli *cli, struct weir *w, json_t **state, int64_t *now_us)
{
    json_t *rows;
    int status = rate_export(w, &rows, now_us);

    *state = json_object();
    if (status < 0)
        status = cli_failed(cli, w);
    for (size_t i = 0; status == 0 && i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const char *kind = answer_text(row, "kind");
        json_t *section = json_object();
        char name[200];

        snprintf(name, sizeof name, "%s %.128s", kind, answer_text(row, "name"));
        json_object_set_new(*state, name, section);
        put_pause(section, json_object_get(row, "pause"));
        if (strcmp(kind, "limit") == 0)
            status = put_limit(cli, row, section);
        if (status == 0 && json_is_true(json_object_get(row, "own")))
            status = put_key_rules(cli, w, answer_text(row, "name"), section);
        if (strcmp(kind, "type") == 0)
            put_type(row, section);
    }
    json_decref(rows);
    if (status == 0 && schedule_each(w, add_schedule, *state) < 0)
        status = cli_failed(cli, w);
    if (status < 0) {
        json_decref(*state);
        *state = NULL;
    }
    return status;
}

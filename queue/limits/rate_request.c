#include "queue/limits/rate_request.h"

#include <ctype.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/script/script.h"
#include "queue/limits/key_rules.h"
#include "throttle/key.h"

#define WHAT_SIZE (RULE_SET_TEXT_SIZE + 2 * LIMIT_NAME_SIZE + 64)

/* The log is JSON: what is not ASCII stays out of it. */
static bool is_printable(const char *text)
{
    while (isprint((unsigned char)*text))
        text++;
    return !*text;
}

static _Thread_local char behalf[64]; /* who asks this process; "": its own user acts */

void requests_on_behalf(const char *name)
{
    snprintf(behalf, sizeof behalf, "%s", name);
}

void rate_by(char by[RATE_BY_SIZE])
{
    char host[256] = "";
    struct passwd entry, *found = NULL;
    char buffer[4096];

    gethostname(host, sizeof host - 1);
    (void)getpwuid_r(getuid(), &entry, buffer, sizeof buffer, &found);
    if (*behalf)
        snprintf(by, RATE_BY_SIZE, "%s@%s", behalf, host);
    else if (found)
        snprintf(by, RATE_BY_SIZE, "%.60s@%s", found->pw_name, host);
    else
        snprintf(by, RATE_BY_SIZE, "%u@%s", (unsigned)getuid(), host);
    if (!is_printable(by))
        strcpy(by, "unknown");
}

static void add_by(struct args *a)
{
    char by[RATE_BY_SIZE];

    rate_by(by);
    args_add(a, by);
}

void rate_set_request(struct args *a, const char *prefix, int64_t now_us, const char *name,
                      const struct rule_set *rules, unsigned how)
{
    char text[RULE_SET_TEXT_SIZE] = "", what[WHAT_SIZE];

    script_begin(a, "rate_set", prefix, now_us);
    args_add(a, name);
    if (rules)
        rule_set_write(rules, text);
    args_add(a, text);
    args_add_int(a, how);
    if (rules)
        rule_set_format(rules, text);
    snprintf(what, sizeof what, "%s %s%s%s", rules ? "set" : "remove", name, rules ? " " : "", text);
    args_add(a, what);
    add_by(a);
}

void rate_use_request(struct args *a, const char *prefix, int64_t now_us, const char *type, bool use,
                      const char *const *limits, size_t count, const struct job_cost *cost)
{
    char what[WHAT_SIZE + RATE_USES_MOST * LIMIT_NAME_SIZE + COST_TEXT_SIZE], text[COST_TEXT_SIZE] = "";
    size_t len;

    if (cost)
        cost_write(cost, text);
    script_begin(a, "rate_use", prefix, now_us);
    args_add(a, type);
    args_add(a, use ? "use" : "unuse");
    args_add(a, text);
    len = (size_t)snprintf(what, sizeof what, "%s %s", use ? "use" : "unuse", type);
    for (size_t i = 0; i < count && len < sizeof what; i++)
        len += (size_t)snprintf(what + len, sizeof what - len, " %s", limits[i]);
    if (cost && len < sizeof what) {
        cost_print(cost, text);
        snprintf(what + len, sizeof what - len, " --cost %s", text);
    }
    args_add(a, what);
    add_by(a);
    for (size_t i = 0; i < count; i++)
        args_add(a, limits[i]);
}

void rate_weigh_request(struct args *a, const char *prefix, int64_t now_us, const char *limit,
                        const char *key, const char *made, int64_t weight)
{
    char what[WHAT_SIZE];

    script_begin(a, "rate_weight", prefix, now_us);
    args_add(a, limit);
    args_add(a, made);
    args_add_int(a, weight);
    snprintf(what, sizeof what, "weight %s %.200s %" PRId64, limit, is_printable(key) ? key : made, weight);
    args_add(a, what);
    add_by(a);
}

static void add_time(struct args *a, int64_t for_us)
{
    if (for_us == RATE_ENDLESS)
        args_add(a, "");
    else
        args_add_int(a, for_us);
}

#define SECOND INT64_C(1000000)

/* Rounds up how long it is until a time that a file names, to a unit of which it has two: "3h". What has no fraction of a millisecond was given as it is. */
static int64_t rounded(int64_t us)
{
    static const int64_t units[] = {60 * SECOND, 3600 * SECOND, 24 * 3600 * SECOND};
    int64_t unit = SECOND;

    if (us % 1000 == 0)
        return us;
    for (size_t i = 0; i < sizeof units / sizeof *units && units[i] <= us / 2; i++)
        unit = units[i];
    return (us + unit - 1) / unit * unit;
}

/* Adds its reason, "pause mail 10m: INC-123", and by whom. */
static void add_pausing(struct args *a, const char *kind, const char *name, const struct pausing *how)
{
    bool says = how->for_us && how->reason && is_printable(how->reason);
    char what[WHAT_SIZE], span[32] = "";

    if (how->for_us > 0)
        duration_format(rounded(how->for_us), span);
    snprintf(what, sizeof what, "%s %s%s%s%s%s%s", how->for_us ? "pause" : "resume", kind, name,
             *span ? " " : "", span, says ? ": " : "", says ? how->reason : "");
    args_add(a, what);
    add_by(a);
}

static const char *reason_of(const struct pausing *how)
{
    return how->reason ? how->reason : "";
}

void rate_pause_request(struct args *a, const char *prefix, int64_t now_us, const char *limit,
                        const struct pausing *how)
{
    script_begin(a, "rate_pause", prefix, now_us);
    args_add(a, limit);
    add_time(a, how->for_us);
    args_add(a, reason_of(how));
    add_pausing(a, "", limit, how);
}

void pause_request(struct args *a, const char *script, const char *prefix, int64_t now_us, const char *kind,
                   const char *name, const struct pausing *how)
{
    script_begin(a, script, prefix, now_us);
    args_add(a, name);
    add_time(a, how->for_us);
    args_add(a, reason_of(how));
    args_add_int(a, how->create);
    if (kind) {
        add_pausing(a, kind, name, how);
        return;
    }
    args_add(a, "");
    args_add(a, "");
}

void type_remove_request(struct args *a, const char *prefix, int64_t now_us, const char *type)
{
    char what[WHAT_SIZE];

    script_begin(a, "type_remove", prefix, now_us);
    args_add(a, type);
    snprintf(what, sizeof what, "remove type %s", type);
    args_add(a, what);
    add_by(a);
}

/* Bytes of a key that is kept beside its hash. */
#define PAUSED_TEXT_MOST 100 /* TEXT_MOST of queue/state/key_pauses.lua */
#define OWN_TEXT_MOST 1024   /* that of throttle/key_rules.lua */

/* True when a key that is hashed may be kept as it is. */
static bool is_kept(const char *key, size_t most)
{
    size_t len = strlen(key);

    for (size_t i = 0; i < len; i++)
        if (iscntrl((unsigned char)key[i]))
            return false;
    return len <= most;
}

void rate_pause_key_request(struct args *a, const char *prefix, int64_t now_us, const char *limit,
                            const char *key, const struct pausing *how)
{
    char name[WHAT_SIZE], made[KEY_NAMED_SIZE];

    key_name(key, made);
    script_begin(a, "rate_pause_key", prefix, now_us);
    args_add(a, limit);
    args_add(a, made);
    args_add(a, strcmp(made, key) != 0 && is_kept(key, PAUSED_TEXT_MOST) ? key : "");
    add_time(a, how->for_us);
    args_add(a, reason_of(how));
    snprintf(name, sizeof name, "%s/%.200s", limit, is_printable(key) ? key : made);
    add_pausing(a, "", name, how);
}

/* Adds what the log says: "set mail/42 50/s for 7d, then closed". */
static void add_key_change(struct args *a, const struct key_change *change, const char *made,
                           const struct rule_set *rules)
{
    char text[RULE_SET_TEXT_SIZE] = "", span[32] = "", what[WHAT_SIZE];
    bool ends = rules && change->for_us != RATE_ENDLESS;

    if (rules)
        rule_set_format(rules, text);
    if (ends)
        duration_format(change->for_us, span);
    snprintf(what, sizeof what, "%s %s/%.200s%s%s%s%s%s", rules ? "set" : "remove", change->limit,
             is_printable(change->key) ? change->key : made, rules ? " " : "", text, ends ? " for " : "",
             span, ends && change->closes ? ", then closed" : "");
    args_add(a, what);
    add_by(a);
}

void rate_set_key_request(struct args *a, const char *prefix, int64_t now_us, const struct key_change *change,
                          const struct rule_set *rules)
{
    char text[RULE_SET_TEXT_SIZE] = "", made[KEY_NAMED_SIZE];

    key_name(change->key, made);
    script_begin(a, "rate_set_key", prefix, now_us);
    args_add(a, change->limit);
    args_add(a, made);
    args_add(a, strcmp(made, change->key) != 0 && is_kept(change->key, OWN_TEXT_MOST) ? change->key : "");
    if (rules)
        rule_set_write(rules, text);
    args_add(a, text);
    add_time(a, rules ? change->for_us : RATE_ENDLESS);
    args_add(a, rules && change->closes ? "closed" : "own");
    if (change->revision >= 0)
        args_add_int(a, change->revision);
    else
        args_add(a, "");
    args_add_int(a, change->dry);
    add_key_change(a, change, made, rules);
}

void rate_apply_request(struct args *a, const char *prefix, int64_t now_us, const char *queue,
                        const char *cursor, const char *type, const char *limit, bool resume)
{
    script_begin(a, "rate_apply", prefix, now_us);
    args_add(a, queue);
    args_add(a, cursor);
    args_add(a, type ? type : "");
    args_add_int(a, resume);
    if (limit)
        args_add(a, limit);
}

void note_request(struct args *a, const char *prefix, char *what)
{
    for (char *at = what; *at; at++)
        *at = isprint((unsigned char)*at) ? *at : '?';
    script_begin(a, "note", prefix, -1);
    args_add(a, what);
    add_by(a);
}

#include "queue/status/status_type.h"

#include <stdlib.h>
#include <string.h>

#include "core/client/reply.h"
#include "core/number.h"
#include "queue/job/job.h"

const struct jobs_count jobs_counts[] = {
#define AT(member) offsetof(struct type_status, member)
    {"waiting", JOBS_NOW, AT(waiting)},     {"parked", JOBS_NOW, AT(parked)},
    {"held", JOBS_NOW, AT(held)},           {"running", JOBS_NOW, AT(running)},
    {"scheduled", JOBS_NOW, AT(scheduled)}, {"dead_kept", JOBS_NOW, AT(dead_kept)},
    {"done", JOBS_ENDED, AT(done)},         {"retried", JOBS_ENDED, AT(retried)},
    {"dead", JOBS_ENDED, AT(dead)},         {"cancelled", JOBS_ENDED, AT(cancelled)},
    {"aside", JOBS_NOW, AT(aside)},         {"reaped", JOBS_LOST, AT(reaped)},
    {"stale", JOBS_LOST, AT(stale)},        {.name = NULL},
#undef AT
};

int64_t type_number(const struct type_status *type, size_t at)
{
    int64_t n;

    memcpy(&n, (const char *)type + at, sizeof n);
    return n;
}

/* Counters of `stats:`, in the order in which they are most often there. */
enum counter {
    ENQUEUED,
    PULLED,
    PARKED,
    SERVED,
    DONE,
    MARK_US,
    MARK,
    LAST_US,
    LAST,
    RETRIED,
    DEAD,
    CANCELLED,
    SCHEDULED,
    RETURNED,
    BACK,
    DROPPED,
    SET_ASIDE,
    UNSTARTED,
    REAPED,
    STALE,
    REVIVED,
    REMOVED,
    FORGOTTEN,
    COUNTERS
};
static const char *const names[COUNTERS] = {
    [ENQUEUED] = "enqueued",   [PULLED] = "pulled",       [PARKED] = "parked",
    [SERVED] = "served",       [DONE] = "done",           [MARK_US] = "mark_us",
    [MARK] = "mark",           [LAST_US] = "last_us",     [LAST] = "last",
    [RETRIED] = "retried",     [DEAD] = "dead",           [CANCELLED] = "cancelled",
    [SCHEDULED] = "scheduled", [RETURNED] = "returned",   [BACK] = "back",
    [DROPPED] = "dropped",     [SET_ASIDE] = "set_aside", [UNSTARTED] = "unstarted",
    [REAPED] = "reaped",       [STALE] = "stale",         [REVIVED] = "revived",
    [REMOVED] = "removed",     [FORGOTTEN] = "forgotten",
};

/* Cuts the next word of a row, up to its blank; what is behind the last one is empty. */
static struct span next_word(const char **at, const char *end)
{
    struct span word = {*at, 0};

    while (*at + word.len < end && word.at[word.len] != ' ')
        word.len++;
    *at += word.len + (word.at + word.len < end);
    return word;
}

/* 0: it is no whole number, or beyond 2^53. */
static int64_t number(struct span word)
{
    bool minus = word.len > 0 && *word.at == '-';
    int64_t n = 0;

    if (word.len == minus || word.len > 17)
        return 0;
    for (size_t i = minus; i < word.len; i++) {
        if (word.at[i] < '0' || word.at[i] > '9')
            return 0;
        n = n * 10 + (word.at[i] - '0');
    }
    return n > REPLY_INT_MOST ? 0 : minus ? -n : n;
}

static void copy(char *out, size_t size, struct span text)
{
    size_t len = text.len < size ? text.len : size - 1;

    memcpy(out, text.at, len);
    out[len] = '\0';
}

/* Fields and values in turn; begins to look for a field behind the one before, as they mostly come in that order. */
static void read_counters(const char *at, const char *end, int64_t counts[COUNTERS])
{
    size_t next = 0;

    while (at < end) {
        struct span field = next_word(&at, end), value = next_word(&at, end);

        for (size_t i = 0; i < COUNTERS; i++, next = next + 1 < COUNTERS ? next + 1 : 0)
            if (strncmp(names[next], field.at, field.len) == 0 && names[next][field.len] == '\0') {
                counts[next] = number(value);
                break;
            }
    }
}

/* Starts a second since the mark before last, which is one to two seconds old while the type runs. */
static double rate_now(const int64_t counts[COUNTERS], int64_t now_us)
{
    bool lively =
        now_us - counts[MARK_US] < 2000000 && counts[LAST_US] > 0 && now_us - counts[LAST_US] < 10000000;
    int64_t since_us = counts[lively ? LAST_US : MARK_US], before = counts[lively ? LAST : MARK];
    int64_t started = counts[PULLED] + counts[SERVED] - counts[UNSTARTED];

    if (counts[MARK_US] == 0 || now_us <= since_us)
        return 0;
    return (double)positive(started - before) / ((double)(now_us - since_us) / 1e6);
}

static void use_counters(struct type_status *t, const int64_t counts[COUNTERS], int64_t now_us)
{
    t->done = counts[DONE];
    t->retried = counts[RETRIED];
    t->dead = counts[DEAD];
    t->dead_kept = positive(counts[DEAD] - counts[REVIVED] - counts[REMOVED] - counts[FORGOTTEN]);
    t->cancelled = counts[CANCELLED];
    t->reaped = counts[REAPED];
    t->stale = counts[STALE];
    t->scheduled = positive(counts[SCHEDULED]);
    t->waiting = positive(counts[ENQUEUED] - counts[PULLED] - counts[PARKED] - counts[DROPPED]);
    t->running = positive(counts[PULLED] + counts[SERVED] - t->done - t->retried - t->dead - counts[BACK]);
    t->parked = positive(counts[PARKED] + counts[RETURNED] - counts[SERVED]);
    t->aside = positive(counts[SET_ASIDE]);
    t->rate_now = rate_now(counts, now_us);
}

/* false: out of memory. */
static bool read_keyless(struct type_status *t, const char *at, const char *end)
{
    int64_t jobs = number(next_word(&at, end));

    if (jobs <= 0)
        return true;
    t->keyless = malloc(sizeof *t->keyless);
    if (!t->keyless)
        return false;
    t->keyless->jobs = jobs;
    t->keyless->of = number(next_word(&at, end));
    copy(t->keyless->limit, sizeof t->keyless->limit, next_word(&at, end));
    copy(t->keyless->path, sizeof t->keyless->path, next_word(&at, end));
    return true;
}

/* What stands behind the counters: status.lua says what. false: out of memory. */
static bool read_rest(struct type_status *t, const char *at, const char *end)
{
    struct span use, flags;

    copy(t->name, sizeof t->name, next_word(&at, end));
    flags = next_word(&at, end);
    t->own_costs = memchr(flags.at, 'o', flags.len);
    t->in_pause = memchr(flags.at, 'p', flags.len);
    t->cost = number(next_word(&at, end));
    t->cost = t->cost > 1 ? t->cost : 1;
    use = next_word(&at, end);
    if (use.len > 0 && *use.at != '-' && !(t->use = strndup(use.at, use.len)))
        return false;
    return read_keyless(t, at, end);
}

bool status_type_read(struct type_status *t, struct span row, int64_t now_us)
{
    int64_t counts[COUNTERS] = {0};
    const char *end = row.at + row.len, *rest = row.len > 0 ? memrchr(row.at, '\n', row.len) : NULL;

    *t = (struct type_status){.next_start_us = -1, .finish_us = -1};
    if (!rest || end - rest < 2)
        return true;
    read_counters(row.at, rest, counts);
    use_counters(t, counts, now_us);
    return read_rest(t, rest + 2, end);
}

void status_type_free(struct type_status *t)
{
    json_decref(t->pause);
    json_decref(t->waits_for);
    free(t->use);
    free(t->keyless);
}

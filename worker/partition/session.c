/* What the worker is to Redis: its id and its lease, and what it knows of the data there. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"
#include "core/log/log.h"
#include "worker/partition/inside.h"

#define OTHER_REASON_US 5000000

/* ---- The connection and the rights on it */

/* Logs a reason other than the one that was logged last: at once when time alone cannot mend it, else when
 * it has stayed for a while. */
static void log_other_reason(struct session *s, const struct error *why)
{
    int64_t now_us = clock_mono_us();

    if (strcmp(s->down_why, why->text) == 0 ||
        (why->status == WEIR_EUNREACHABLE && now_us < s->down_logged_us + OTHER_REASON_US))
        return;
    log_line(LOG_LEVEL_WARN, "%s; still connecting again", why->text);
    strcpy(s->down_why, why->text);
    s->down_logged_us = now_us;
}

/* True when another partition is down, for that reason (NULL: for any). */
static bool is_other_down(const struct partition *p, const char *why)
{
    for (int i = 0; i < p->worker->partition_count; i++) {
        const struct session *other = &p->worker->partitions[i]->session;

        if (other != &p->session && other->down_since_us && (!why || strcmp(other->down_why, why) == 0))
            return true;
    }
    return false;
}

void session_lost(struct partition *p, const struct error *why)
{
    struct session *s = &p->session;

    if (s->down_since_us) {
        log_other_reason(s, why);
        return;
    }
    if (!is_other_down(p, why->text))
        log_line(LOG_LEVEL_WARN, "%s; running jobs go on, connecting again until it answers", why->text);
    s->down_since_us = s->down_logged_us = clock_mono_us();
    strcpy(s->down_why, why->text);
}

void session_is_back(struct partition *p)
{
    if (p->session.down_since_us && !is_other_down(p, NULL))
        log_line(LOG_LEVEL_INFO, "Redis is back after %.1f s",
                 (double)(clock_mono_us() - p->session.down_since_us) / 1e6);
    p->session.down_since_us = 0;
}

void session_permit(struct partition *p, bool permitted)
{
    p->session.permitted = permitted;
}

/* ---- The lease */

void session_unregister(struct partition *p)
{
    p->session.registered = false;
}

void session_is_registering(struct partition *p)
{
    p->session.lapsed = false;
}

void session_is_renewing(struct partition *p)
{
    p->session.beat_us = clock_boot_us();
}

/* Joins as many types and patterns as fit. */
static size_t join_types(const struct handlers *handlers, char *text, size_t size)
{
    size_t len = 0;

    for (int i = 0; i < handlers->word_count; i++) {
        size_t more = strlen(handlers->words[i]->type) + (i > 0);

        if (len + more > size)
            break;
        if (i > 0)
            text[len++] = ',';
        memcpy(text + len, handlers->words[i]->type, more - (i > 0));
        len += more - (i > 0);
    }
    return len;
}

/* Logs the first line of a worker, once it may take jobs. */
static void log_start(const struct partition *p)
{
    const struct worker *w = p->worker;
    char redis[REDIS_NAME_SIZE], types[256], executors[24];
    size_t types_len = join_types(w->handlers, types, sizeof types);

    redis_address_format(&w->options.address, redis, sizeof redis);
    snprintf(executors, sizeof executors, "%d", w->options.executors);
    log_fields(LOG_LEVEL_INFO,
               (const struct log_field[]){{"worker", p->session.id, strlen(p->session.id), false},
                                          {"version", WEIR_VERSION, strlen(WEIR_VERSION), false},
                                          {"redis", redis, strlen(redis), false},
                                          {"namespace", p->prefix, strcspn(p->prefix, ":"), false},
                                          {"executors", executors, strlen(executors), true},
                                          {"types", types, types_len, false}},
               6, "started");
}

void session_registered(struct partition *p, const char *id, struct span types_digest, int64_t now)
{
    bool first = !*p->session.id;

    snprintf(p->session.id, sizeof p->session.id, "%s", id);
    snprintf(p->session.types_digest, sizeof p->session.types_digest, "%.*s", (int)types_digest.len,
             types_digest.at);
    p->session.registered = !p->session.lapsed;
    p->session.dropped &= p->session.lapsed;
    session_renewed(p);
    plan_beat_at(&p->mind, now + plan_beat_wait(&p->mind));
    if (first && p->number == 0)
        log_start(p);
}

void session_renewed(struct partition *p)
{
    if (p->session.registered)
        atomic_store(&p->conditions.lease_end_us, p->session.beat_us + p->worker->options.lease_us);
}

int64_t session_lapse(struct partition *p)
{
    p->session.registered = false;
    p->session.lapsed = p->session.dropped = true;
    return atomic_exchange(&p->conditions.lease_end_us, 0);
}

/* ---- Redis's data */

void session_seen(struct partition *p, int64_t mark_us)
{
    if (mark_us > p->session.seen_us)
        p->session.seen_us = mark_us;
}

static const char *time_of(int64_t us, char text[40])
{
    time_t s = (time_t)(us / 1000000);
    struct tm tm;
    size_t len;

    gmtime_r(&s, &tm);
    len = strftime(text, 40, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(text + len, 40 - len, ".%03dZ", (int)(us / 1000 % 1000));
    return text;
}

bool session_hear_back(struct partition *p, const struct went_back *back)
{
    char from[40], to[40];

    if (back->at_us == p->session.back_us)
        return false;
    p->session.back_us = back->at_us;
    if (back->at_us)
        log_line(
            LOG_LEVEL_WARN,
            "Redis went back: what it wrote from %s to %s at least (%.3f s) is lost: jobs that came then are "
            "gone, those that ended then run again, and slots of then are granted again",
            time_of(back->from_us, from), time_of(back->to_us, to),
            (double)(back->to_us - back->from_us) / 1e6);
    return true;
}

static bool is_other_birth(const struct session *s, struct span birth)
{
    return *s->birth && !span_is(span_str(s->birth), birth);
}

/* Hears what Redis has lost. What was lost before the first answer is for others to log. */
bool session_hear_data(struct partition *p, const struct adopt *adopt)
{
    struct session *s = &p->session;
    bool lost = is_other_birth(s, adopt->birth);

    snprintf(s->birth, sizeof s->birth, "%.*s", (int)adopt->birth.len, adopt->birth.at);
    if (!*s->id || lost) {
        s->back_us = adopt->back.at_us;
        s->seen_us = adopt->now_us;
    }
    session_seen(p, adopt->now_us);
    session_hear_back(p, &adopt->back);
    return lost;
}

bool session_is_hopeless(struct partition *p, const struct error *why)
{
    struct error e = *why;

    if (turn_is_of_another_format(why))
        e.status = WEIR_ECONFIG;
    else if (p->session.id[0] || (why->status != WEIR_EREFUSED && why->status != WEIR_ECONFIG))
        return false;
    if (p->number > 0) { /* jobs of other partitions may run already */
        worker_fail_and_stop(p->worker, &e);
        return true;
    }
    worker_fail(p->worker, &e);
    worker_end_loop(p->worker);
    return true;
}

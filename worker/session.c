#include "worker/session.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"
#include "core/log/log.h"
#include "worker/worker.h"

#define OTHER_REASON_US 5000000

/* ---- The connection and the rights on it */

/* Another reason than the one that was logged last: at once when it is none that time alone may mend, else when
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

void worker_connection_lost(struct weir_worker *w, const struct error *why)
{
    struct session *s = &w->session;

    if (s->down_since_us) {
        log_other_reason(s, why);
        return;
    }
    log_line(LOG_LEVEL_WARN, "%s; running jobs go on, connecting again until it answers", why->text);
    s->down_since_us = s->down_logged_us = clock_mono_us();
    strcpy(s->down_why, why->text);
}

void worker_connection_is_back(struct weir_worker *w)
{
    if (w->session.down_since_us)
        log_line(LOG_LEVEL_INFO, "Redis is back after %.1f s",
                 (double)(clock_mono_us() - w->session.down_since_us) / 1e6);
    w->session.down_since_us = 0;
}

void worker_check_rights(struct weir_worker *w)
{
    w->session.permitted = false;
}

void worker_has_rights(struct weir_worker *w)
{
    w->session.permitted = true;
}

void worker_lose_rights(struct weir_worker *w)
{
    w->session.permitted = w->session.registered = false;
}

/* ---- The lease */

void worker_unregister(struct weir_worker *w)
{
    w->session.registered = false;
}

void worker_is_registering(struct weir_worker *w)
{
    w->session.lapsed = false;
}

void worker_is_renewing(struct weir_worker *w)
{
    w->session.beat_us = clock_boot_us();
}

void worker_registered(struct weir_worker *w, const char *id, int64_t now)
{
    snprintf(w->session.id, sizeof w->session.id, "%s", id);
    w->session.registered = !w->session.lapsed;
    worker_renewed(w);
    worker_beat_at(w, now + w->options.lease_us / 4);
}

void worker_renewed(struct weir_worker *w)
{
    if (w->session.registered)
        atomic_store(&w->conditions.lease_end_us, w->session.beat_us + w->options.lease_us);
}

int64_t worker_lapse(struct weir_worker *w)
{
    w->session.registered = false;
    w->session.lapsed = true;
    return atomic_exchange(&w->conditions.lease_end_us, 0);
}

void worker_beat_at(struct weir_worker *w, int64_t at_us)
{
    w->session.next_beat_us = at_us;
}

/* ---- Redis's data */

void worker_seen(struct weir_worker *w, int64_t mark_us)
{
    if (mark_us > w->session.seen_us)
        w->session.seen_us = mark_us;
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

bool worker_hear_back(struct weir_worker *w, const struct went_back *back)
{
    char from[40], to[40];

    if (back->at_us == w->session.back_us)
        return false;
    w->session.back_us = back->at_us;
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
    return *s->birth && !(strlen(s->birth) == birth.len && memcmp(s->birth, birth.at, birth.len) == 0);
}

/* What was lost before the first answer was others': nothing is logged of it. */
bool worker_hear_data(struct weir_worker *w, const struct adopt *adopt)
{
    struct session *s = &w->session;
    bool lost = is_other_birth(s, adopt->birth);

    snprintf(s->birth, sizeof s->birth, "%.*s", (int)adopt->birth.len, adopt->birth.at);
    if (!*s->id || lost) {
        s->back_us = adopt->back.at_us;
        s->seen_us = adopt->now_us;
    }
    worker_seen(w, adopt->now_us);
    worker_hear_back(w, &adopt->back);
    return lost;
}

bool worker_is_hopeless(struct weir_worker *w, const struct error *why)
{
    struct error e = *why;

    if (turn_is_of_another_format(why))
        e.status = WEIR_ECONFIG;
    else if (w->session.id[0] || (why->status != WEIR_EREFUSED && why->status != WEIR_ECONFIG))
        return false;
    worker_fail(w, &e);
    worker_end_loop(w);
    return true;
}

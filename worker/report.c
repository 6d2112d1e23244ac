#include "worker/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/log/log.h"
#include "core/notify.h"
#include "worker/worker.h"

#define REPORT_US 900000 /* is shorter than the slow tick, so that each of those reports */

/* Finds a partition whose Redis is away; NULL: there is none. */
static const struct partition *find_down(const struct worker *w)
{
    for (int i = 0; i < w->partition_count; i++)
        if (w->partitions[i]->session.down_since_us)
            return w->partitions[i];
    return NULL;
}

static uint64_t count_turns(const struct worker *w)
{
    uint64_t turns = 0;

    for (int i = 0; i < w->partition_count; i++)
        turns += w->partitions[i]->turns;
    return turns;
}

/* ---- A line a minute in the log */

#define MINUTE_US 60000000
#define MINUTE_SIZE 1500 /* of the line; more types are only counted */

/* Adds what has ended of a type, "mail 1200 done, 3 retried", and forgets it. Returns whether anything had. */
static bool add_type(struct handler *handler, char line[MINUTE_SIZE])
{
    static const char *const words[END_KINDS] = {[END_DONE] = "done",
                                                 [END_RETRY] = "retried",
                                                 [END_DEAD] = "dead",
                                                 [END_THROTTLED] = "throttled",
                                                 [END_CANCELLED] = "cancelled"};
    char text[300];
    size_t len = 0, used = strlen(line);

    for (int i = 0; i < END_KINDS; i++) {
        if (handler->ended[i] > 0 && words[i])
            len += (size_t)snprintf(text + len, sizeof text - len, "%s %" PRId64 " %s",
                                    len ? "," : handler->type, handler->ended[i], words[i]);
        handler->ended[i] = 0;
    }
    if (len > 0 && used + len + 2 < MINUTE_SIZE - 40)
        sprintf(line + used, "%s%s", used ? "; " : "", text);
    return len > 0;
}

void worker_log_minute(struct weir_worker *w)
{
    int64_t minute = clock_wall_us() / MINUTE_US;
    char line[MINUTE_SIZE] = "";
    int types = 0;

    if (minute == w->report.minute)
        return;
    w->report.minute = minute;
    for (int i = 0; i < w->common.handlers->count; i++)
        types += add_type(w->common.handlers->at[i], line);
    if (types > 0)
        log_line(LOG_LEVEL_INFO, "in the last minute, %d type%s: %s", types, types == 1 ? "" : "s", line);
}

void worker_report(struct weir_worker *w)
{
    const struct worker *c = &w->common;
    const struct partition *down = find_down(c);
    int64_t now_us = clock_mono_us();
    uint64_t turns = count_turns(c);
    char lines[sizeof down->session.down_why + 200];
    int len;

    if (!notify_is_open() || now_us < w->report.next_us)
        return;
    len = snprintf(lines, sizeof lines, "%s%s%sSTATUS=", *c->partitions[0]->session.id ? "READY=1\n" : "",
                   c->stop.since_us ? "STOPPING=1\n" : "",
                   down || turns != w->report.turns ? "WATCHDOG=1\n" : "");
    if (down)
        snprintf(lines + len, sizeof lines - (size_t)len, "%s", down->session.down_why);
    else
        snprintf(lines + len, sizeof lines - (size_t)len, "%s%d of %d executors busy, %" PRIu64 " jobs ended",
                 c->stop.since_us                ? "stopping: "
                 : atomic_load(&c->ending.quiet) ? "takes no more jobs: "
                                                 : "",
                 pool_load(c->pool).running, c->options.executors, c->ended);
    notify_send(lines);
    w->report.next_us = now_us + REPORT_US;
    w->report.turns = turns;
}

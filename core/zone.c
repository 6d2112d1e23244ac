#include "core/zone.h"

#include <glib.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define AHEAD_S (7 * 86400) /* how far zone_period looks */
#define DATABASE "/usr/share/zoneinfo"
#define NAME_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_/+-"

struct zone {
    GTimeZone *tz;
};

static void zone_path(const char *name, char *path, size_t size)
{
    const char *folder = getenv("TZDIR");

    snprintf(path, size, "%.400s/%s", folder && *folder ? folder : DATABASE, name);
}

/* GLib also reads "UTC+3" and the like as POSIX does, which is three hours west: only what the database has
 * is taken. It has files that are no zones, such as leapseconds, at which GLib complains on standard error. */
static bool is_in_database(const char *name)
{
    char path[512], magic[4];
    FILE *file;
    bool is_zone;

    if (strlen(name) > 64 || name[0] == '/' || strspn(name, NAME_CHARS) != strlen(name))
        return false;
    zone_path(name, path, sizeof path);
    file = fopen(path, "rb");
    if (!file)
        return false;
    is_zone = fread(magic, sizeof magic, 1, file) == 1 && memcmp(magic, "TZif", sizeof magic) == 0;
    fclose(file);
    return is_zone;
}

int zone_open(const char *name, struct zone **zone, struct error *e)
{
    GTimeZone *tz = NULL;

    if (strcmp(name, "UTC") == 0 || is_in_database(name))
        tz = g_time_zone_new_identifier(name);
    if (!tz)
        return error_set(
            e, WEIR_EINPUT,
            "time zone '%.60s': this machine's tz database has none of that name; write one such "
            "as Europe/Berlin, or UTC, and see that tzdata is installed",
            name);
    if (!(*zone = malloc(sizeof **zone))) {
        g_time_zone_unref(tz);
        return error_no_memory(e, "time zone");
    }
    (*zone)->tz = tz;
    return 0;
}

void zone_free(struct zone *zone)
{
    if (zone)
        g_time_zone_unref(zone->tz);
    free(zone);
}

static int interval_at(const struct zone *zone, int64_t at_s)
{
    return g_time_zone_find_interval(zone->tz, G_TIME_TYPE_UNIVERSAL, at_s);
}

int64_t zone_period(const struct zone *zone, int64_t at_s, int *offset_s)
{
    int interval = interval_at(zone, at_s);
    int64_t inside_s = at_s, until_s = at_s + AHEAD_S;

    *offset_s = g_time_zone_get_offset(zone->tz, interval);
    if (interval_at(zone, until_s) == interval)
        return until_s;
    while (until_s - inside_s > 1) {
        int64_t middle_s = inside_s + (until_s - inside_s) / 2;

        if (interval_at(zone, middle_s) == interval)
            inside_s = middle_s;
        else
            until_s = middle_s;
    }
    return until_s;
}

void zone_format(const struct zone *zone, int64_t at_s, char out[40])
{
    int offset_s, minutes;
    char local[32] = "";
    time_t wall;
    struct tm t;

    zone_period(zone, at_s, &offset_s);
    wall = at_s + offset_s;
    minutes = abs(offset_s) / 60;
    if (gmtime_r(&wall, &t))
        strftime(local, sizeof local, "%Y-%m-%dT%H:%M:%S", &t);
    snprintf(out, 40, "%s%c%02d:%02d", local, offset_s < 0 ? '-' : '+', minutes / 60 % 100, minutes % 60);
}

/* Returns the last line of a file of the database, behind the last byte that may be no text; NULL: it has none. */
static const char *footer(const char *name, char *bytes, size_t size)
{
    char path[512], *end, *begin;
    FILE *file;
    size_t len;

    zone_path(name, path, sizeof path);
    file = fopen(path, "rb");
    if (!file)
        return NULL;
    len = fread(bytes, 1, size - 1, file);
    fclose(file);
    bytes[len] = '\0';
    end = len > 0 && bytes[len - 1] == '\n' ? bytes + len - 1 : NULL;
    begin = end ? memrchr(bytes, '\n', (size_t)(end - bytes)) : NULL;
    if (!begin)
        return NULL;
    *end = '\0';
    return begin + 1;
}

int zone_yearly(const char *name, char out[ZONE_YEARLY_SIZE], struct error *e)
{
    char bytes[16384];
    const char *text = "UTC0";
    struct zone *zone;

    if (zone_open(name, &zone, e) < 0)
        return e->status;
    zone_free(zone);
    if (strcmp(name, "UTC") != 0)
        text = footer(name, bytes, sizeof bytes);
    if (!text || !*text || strlen(text) >= ZONE_YEARLY_SIZE)
        return error_set(e, WEIR_EINPUT,
                         "time zone '%s': its file does not say how its clocks change year by year; take a "
                         "zone with the same time",
                         name);
    strcpy(out, text);
    return 0;
}

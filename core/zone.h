/* Time zones of the tz database: how far local time is from UTC, and for how long. The one place that knows
 * where that comes from: GLib, because the C library's own zone belongs to the whole process and handlers run
 * on threads. */
#pragma once

#include <stdint.h>

#include "core/error.h"

struct zone;

/* name: such as "Europe/Berlin"; "UTC" needs no database. WEIR_EINPUT: there is no such zone here. */
WEIR_CHECKED int zone_open(const char *name, struct zone **zone, struct error *e);
void zone_free(struct zone *zone);
/* Finds what is added to UTC at that time (seconds since 1970) for local time, in seconds. Returns until when, at least, that is so. */
int64_t zone_period(const struct zone *zone, int64_t at_s, int *offset_s);
/* Writes a time by RFC 3339 in that zone: "2026-11-23T09:00:00+01:00". */
void zone_format(const struct zone *zone, int64_t at_s, char out[40]);

#define ZONE_YEARLY_SIZE 80
/* Reads how the clocks of a zone change year by year, as TZ of POSIX says it: "PST8PDT,M3.2.0,M11.1.0". WEIR_EINPUT: there is no such
 * zone here, or its file does not say. Source: RFC 8536, 3.3. */
WEIR_CHECKED int zone_yearly(const char *name, char out[ZONE_YEARLY_SIZE], struct error *e);

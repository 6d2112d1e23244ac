/* The local clocks of a zone, as a rule keeps them: what is added to UTC, and the days of the year on which that changes. A rule that is
 * kept so needs no tz database where it is used. */
#pragma once

#include "core/error.h"
#include "throttle/algorithm/state.h"

/* Reads those of a zone of this machine's tz database, such as "Europe/Berlin". WEIR_EINPUT: there is no such zone, or within the next ten
 * years its clocks change otherwise than on the same day of each year. */
WEIR_CHECKED int zone_rule_find(const char *name, struct zone_rule *zone, struct error *e);
/* Write and read the stored form: "57600", "57600/61200/3/2/0/612000/11/1/0/612000". Offsets are stored with a day added, and times of day
 * with a week: none is below 0. zone_rule_read moves *at; false: it is none. */
void zone_rule_write(const struct zone_rule *zone, char *out, size_t size);
bool zone_rule_read(const char **at, struct zone_rule *zone);
bool zone_rule_equal(const struct zone_rule *a, const struct zone_rule *b);

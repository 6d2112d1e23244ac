/* What weir apply and weir export are about: limits, types, queues and schedules, as sections of weir.conf. The same sections are read from a
 * file and from Redis, each value in its one normal form, so that equal texts mean the same.
 *
 *   {"limit mail": {"rules": "100/1m", "weight": ["3 acme"], "pause-key": ["endless abuse -- acme"], "key-rules": ["endless 50/1s -- acme"], "pause": "2026-12-01T10:00:00Z stocktaking"},
 *    "type mail": {"use": "b c", "cost": "2"}, "queue default": {"pause": "endless"}, "schedule tidy": {"when": "every 15m", ...}} */
#pragma once

#include "cli/cli.h"
#include "queue/limits/key_rules.h"
#include "queue/limits/rate_request.h"
#include "queue/schedule/schedule.h"
#include "view/json.h"

/* The kinds of sections, each with its names, ended by a NULL name; the last kind has a NULL name. */
#define SECTION_FLAGS 12
struct section_kind {
    const char *name;
    struct flag flags[SECTION_FLAGS];
};
extern const struct section_kind section_kinds[];

/* True when "limit mail" is a section of that kind; "mail", its title. */
bool section_is(const char *section, const char *kind);
const char *section_title(const char *section);
/* Reads the parts of a value "WHEN REST"; false: it is no pause. for_us may be RATE_ENDLESS, or RATE_RESUME for "no" and for what is over. */
bool section_read_pause(const char *value, int64_t now_us, int64_t *for_us, const char **rest);
/* Finds the key in the rest of the pause of a key, "KEY" or "[REASON ]-- KEY". *reason_len: how many bytes its reason has. */
const char *section_paused_key(const char *rest, size_t *reason_len);
/* Parts a value "WHEN[,closed] RULE... -- KEY", in place; *change points into it. for_us is RATE_RESUME for what is over. */
WEIR_CHECKED int section_read_key_rules(char *value, int64_t now_us, struct key_change *change,
                                        struct error *e);
/* Returns the key of an entry of the list of that name. */
const char *section_key(const char *name, const char *entry);
/* Makes the schedule of a section; freed by schedule_free. */
WEIR_CHECKED int section_schedule(const char *name, const json_t *section, struct schedule *s,
                                  struct error *e);
/* *sections: the caller's, NULL after a failure. Of a file: of cli->config; *now_us: Redis's time. */
WEIR_CHECKED int sections_of_file(struct cli *cli, json_t **sections);
WEIR_CHECKED int sections_of_redis(struct cli *cli, struct weir *w, json_t **sections, int64_t *now_us);

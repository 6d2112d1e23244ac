/* weir rate: what its parts share. */
#ifndef CLI_RATE_H
#define CLI_RATE_H

#include "cli/json.h"
#include "queue/limits.h"

/* What was given besides the flags that all commands take. */
struct rate_flags {
    bool dry_run;
    long long cost; /* 0: not given */
};

/* cli/rate_show.c: argv[0] is the action's name. */
int rate_run_list(struct cli *cli, struct weir *w, const struct rate_flags *flags, char **argv);
int rate_run_show(struct cli *cli, struct weir *w, const struct rate_flags *flags, char **argv);
int rate_run_log(struct cli *cli, struct weir *w, const struct rate_flags *flags, char **argv);
/* "10/s,burst=1; at most 10 in any 1s", of one rule. */
void rate_print_rule(const struct rule *rule);
/* What a rule is, without its state. */
json_t *rate_rule_json(const struct rule *rule);
json_t *rate_rules_json(const struct rule_set *set);
/* "now", or a time and how long it is until then, or that it hangs on what ends. */
void rate_format_when(int64_t now_us, int64_t us, char out[96]);
/* Seconds; null when it is unknown. */
json_t *rate_time_json(int64_t us);

/* cli/rate_dry.c: what rate set would do to what waits. kept: the rules as they would be kept. */
int rate_print_dry(struct cli *cli, struct weir *w, const char *name, const struct rule_set *kept);

#endif

/* weir rate: what its parts share. */
#ifndef CLI_COMMAND_RATE_H
#define CLI_COMMAND_RATE_H

#include "cli/json.h"
#include "queue/limits/limits.h"

/* What was given besides the flags that all commands take. */
struct rate_flags {
    bool dry_run, yes;
    long long cost; /* 0: not given */
};

/* The words from argv on, joined by blanks; the caller's to free. NULL: out of memory. */
char *rate_join(char **argv);
/* WEIR_EINTERNAL, and says so. */
int rate_no_memory(struct cli *cli);
/* cli/command/rate_show.c: argv[0] is the action's name. */
int rate_run_list(struct cli *cli, struct weir *w, const struct rate_flags *flags, char **argv);
int rate_run_show(struct cli *cli, struct weir *w, const struct rate_flags *flags, char **argv);
int rate_run_log(struct cli *cli, struct weir *w, const struct rate_flags *flags, char **argv);
/* "10/s,burst=1; at most 10 in any 1s", of one rule. */
void rate_print_rule(const struct rule *rule);
/* What a rule is, without its state. */
json_t *rate_rule_json(const struct rule *rule);
json_t *rate_rules_json(const struct rule_set *set);
/* What rate use and unuse say; argv: the action, the type, the limits, NULL. */
json_t *rate_use_json(char **argv);
/* "now", or a time and how long it is until then, or that it hangs on what ends. */
void rate_format_when(int64_t now_us, int64_t us, char out[96]);

/* cli/command/rate_release.c: rate remove and rate unuse, which let go what waits there. */
int rate_run_remove(struct cli *cli, struct weir *w, const struct rate_flags *flags, char **argv);
int rate_run_unuse(struct cli *cli, struct weir *w, const struct rate_flags *flags, char **argv);

/* cli/command/rate_dry.c: what rate set would do to what waits. kept: the rules as they would be kept. */
int rate_print_dry(struct cli *cli, struct weir *w, const char *name, const struct rate_kept *kept);

#endif

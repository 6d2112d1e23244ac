/* weir rate: what its parts share. */
#pragma once

#include "cli/document/json.h"
#include "queue/limits/rate_request.h"
#include "view/limits.h"

/* What was given besides the flags that all commands take. */
struct rate_flags {
    bool dry_run, yes, verbose, keys, drop_keys;
    const char *otherwise; /* --else */
    long long revision;
    const char *cost; /* NULL: not given */
    long long top;
};
extern struct rate_flags rate_given;

/* cli/rate/rate_words.c. The words from argv on, joined by blanks; the caller's to free. NULL: out of memory. */
char *rate_join(char **argv);
/* Has a type use limits, or no longer, as the operands and --cost say, and prints that. */
WEIR_CHECKED int rate_change_use(struct cli *cli, struct weir *w, bool use);
/* Says that the new rules, the first of which is rule, tell jobs apart no more by what the old ones did; "": says nothing. */
void rate_print_dropped(const char *name, const char *dropped, const char *rule);
/* Says how many keys lose rules of their own; 0: says nothing. */
void rate_print_lost(const char *name, int64_t lost);

/* cli/rate/rate_show.c */
int rate_run_list(struct cli *cli, struct weir *w);
int rate_run_show(struct cli *cli, struct weir *w);
/* Prints what people have done, all of it or what concerns limits and types. */
WEIR_CHECKED int rate_print_log(struct cli *cli, struct weir *w, bool all);
int rate_run_log(struct cli *cli, struct weir *w);
/* Puts "at most 10 in any 1s for each key", of a rule's document. */
void rate_put_most(FILE *to, const json_t *rule);
/* Writes "now", "in 8m 2s (20:14:05)", or, of GATE_NEVER, "when others end". */
void rate_format_when(int64_t now_us, int64_t us, char out[96]);
/* "in 8m 2s (20:14:05) at the earliest (others may come first)"; at null: it has no time. */
void rate_put_end(FILE *to, const json_t *at, const json_t *because, int64_t now_us);

/* cli/rate/rate_keys.c */
int rate_run_keys(struct cli *cli, struct weir *w);

/* cli/rate/rate_key.c: of one key, any text. */
int rate_set_key(struct cli *cli, struct weir *w, const char *limit, const char *key);
int rate_remove_key(struct cli *cli, struct weir *w, const char *limit, const char *key);
int rate_show_key(struct cli *cli, struct weir *w, const char *limit, const char *key);
int rate_list_keys(struct cli *cli, struct weir *w, const char *limit);

/* cli/rate/rate_release.c: rate remove and rate unuse, which let go what waits there. */
int rate_run_remove(struct cli *cli, struct weir *w);
int rate_run_unuse(struct cli *cli, struct weir *w);

/* cli/rate/rate_dry.c: what rate set would do to what waits. kept: the rules as they would be kept. */
int rate_print_dry(struct cli *cli, struct weir *w, const char *name, const struct rule_set *kept,
                   const char *dropped, int64_t lost);

/* What the model (sim.c) gives to the check of a claim (sim_claims.c), and to nobody else. */
#pragma once

#include "tests/invariants.h"
#include "tests/sim.h"

#define NO_KEY SIM_KEYS /* of a type that goes by none */

void sim_list_insert(struct sim_list *list, int at, int n);
int sim_key_named(const char *text, size_t len);
int sim_limit_named(const char *name, size_t len);
/* The key under which a job is parked or starts now. */
int sim_key_of(int n);
/* All rules of a type: another number where they are others. */
uint64_t sim_rules_of(int type);
int64_t sim_later(int64_t a_us, int64_t b_us);
/* When a job starts at the latest, for all that these gates do; INT64_MAX: nobody knows. parked: it stands in
 * its lane, whose own holds do not keep it. */
enum sim_gates { GLOBAL_GATES = 1, KEY_GATES = 2, ALL_GATES = 3 };
int64_t sim_job_opens(int n, int key, bool parked, enum sim_gates gates);
/* The slot of a job that was granted now, from every gate or from none. */
void sim_check_slot(const struct claim_call *call, int n, const struct token *token);

struct span sim_text(const struct redisReply *r);
bool sim_is_text(struct span span, const char *text);
/* All that Redis has, traced when that is asked for; then what the model has must be there. */
struct snapshot *sim_read_all(void);
void sim_compare(struct snapshot *all);

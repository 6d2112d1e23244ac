/* What the files of the model (sim.c, sim_gates.c, sim_compare.c) and the check of a claim (sim_claims.c) call of each other, and nobody else. */
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

/* ---- sim_gates.c, for sim_compare.c */

void sim_gate_follow(struct sim_gate *gate, const struct sim_rule *rule);
struct sim_gate *sim_gate_named(struct span name);
bool sim_is_slow(const struct sim_rule *rule);
void sim_shadow(struct sim_gate *gate, int64_t until_us, const char *node);
int64_t sim_slowest_us(const struct naive_rule *rule);
const char *sim_value_key(int value, char out[16]);

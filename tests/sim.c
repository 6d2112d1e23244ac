/* The model: jobs and lanes. sim_gates.c has their limits and gates, sim_compare.c what Redis must have; sim_claims.c checks what a claim answers. */
#include "tests/sim_model.h"

#include "tests/test.h"

struct sim sim;
struct sim_job sim_jobs[SIM_JOBS];
struct sim_id sim_ids[SIM_IDS];
struct sim_totals sim_totals;
const char *const sim_queue_names[] = {"high", "mid", "low", "high!", "mid!", "low!"};
const char *const sim_type_names[] = {"t0", "t1", "t2", "t3", "t4", "t5"};
const char *const sim_limit_names[] = {"t0", "t1", "t2", "t3", "t4", "t5", "s0", "s1", "s2", "s3"};
const char *const sim_paths[] = {"args.k", "args.deep.id", "key"};

/* What may stand at a path, and the key that it makes. Those behind the special ones: names. */
static const struct {
    const char *json, *key;
} values[] = {
    {"", "-"},
    {"null", "-"},
    {"[1]", "h.f629ae44b7b3dcfed444d363e626edf411ec69a8"},
    {"{\"a\":1}", "h.9f89c740ceb46d7418c924a78ac57941d5e96520"},
    {"1.5", "1.5"},
    {"42", "42"},
    {"true", "true"},
    {"\"a b/ü\"", "h.d103516d31165a1ffeda9f8f045b95cf266ec082"},
    {"\"\"", "h.da39a3ee5e6b4b0d3255bfef95601890afd80709"},
    {"\"-\"", "h.3bc15c8aae3e4124dd409035f32ea2fd6835efc9"},
};
enum { SPECIAL = sizeof values / sizeof *values };

void sim_fail(const char *fmt, ...)
{
    char text[1500];
    va_list rest;

    va_start(rest, fmt);
    vsnprintf(text, sizeof text, fmt, rest);
    va_end(rest);
    fail_msg("WEIR_SEED=%llu: step %d: %s", (unsigned long long)sim.seed, sim.step, text);
    abort();
}

void sim_must(int rc, const char *what)
{
    sim_fail_if(rc != 0, "%s: %s", what, turns.error.text);
}

int64_t sim_pick(int64_t low, int64_t high)
{
    return random_in(&sim.random, low, high);
}

bool sim_chance(int one_in)
{
    return sim_pick(1, one_in) == 1;
}

int64_t sim_one_of(const int64_t *list, int count)
{
    return list[sim_pick(0, count - 1)];
}

/* ---- Lists */

void sim_list_insert(struct sim_list *list, int at, int n)
{
    if (list->count == list->capacity) {
        list->capacity = list->capacity ? 2 * list->capacity : 16;
        list->at = realloc(list->at, (size_t)list->capacity * sizeof *list->at);
    }
    memmove(list->at + at + 1, list->at + at, (size_t)(list->count - at) * sizeof *list->at);
    list->at[at] = n;
    list->count++;
}

void sim_list_remove(struct sim_list *list, int at, int count)
{
    if (count == 0)
        return;
    list->count -= count;
    memmove(list->at + at, list->at + at + count, (size_t)(list->count - at) * sizeof *list->at);
}

void sim_list_add(struct sim_list *list, int n)
{
    sim_list_insert(list, list->count, n);
}

int sim_list_find(const struct sim_list *list, int n)
{
    for (int i = 0; i < list->count; i++)
        if (list->at[i] == n)
            return i;
    return -1;
}

/* ---- Jobs */

static const char *value_json(int value, char out[16])
{
    if (value < SPECIAL)
        return values[value].json;
    snprintf(out, 16, "\"k%d\"", value - SPECIAL);
    return out;
}

int sim_key_named(const char *text, size_t len)
{
    for (int key = 0; key < SIM_KEYS; key++)
        if (strlen(sim_key_text(key)) == len && memcmp(sim_key_text(key), text, len) == 0)
            return key;
    return len == 0 ? NO_KEY : -1;
}

const char *sim_value_key(int value, char out[16])
{
    if (value < SPECIAL)
        return values[value].key;
    snprintf(out, 16, "k%d", value - SPECIAL);
    return out;
}

const char *sim_key_text(int key)
{
    static char text[16];
    static const char *const special[] = {"-",
                                          "42",
                                          "true",
                                          "1.5",
                                          "h.f629ae44b7b3dcfed444d363e626edf411ec69a8",
                                          "h.9f89c740ceb46d7418c924a78ac57941d5e96520",
                                          "h.d103516d31165a1ffeda9f8f045b95cf266ec082",
                                          "h.da39a3ee5e6b4b0d3255bfef95601890afd80709",
                                          "h.3bc15c8aae3e4124dd409035f32ea2fd6835efc9"};
    const int count = sizeof special / sizeof *special;

    if (key == NO_KEY)
        return "";
    if (key < count)
        return special[key];
    snprintf(text, sizeof text, "k%d", key - count);
    return text;
}

static int random_value(int path)
{
    if (!sim_chance(8))
        return (int)sim_pick(SPECIAL, SPECIAL + sim.key_count - 1);
    return path == 2 ? 0 : (int)sim_pick(0, SPECIAL - 1); /* what stands in "key" is a name */
}

int sim_new_job(int queue, int type, int64_t cost)
{
    int n = sim.job_count++;

    sim_jobs[n] = (struct sim_job){
        .queue = queue, .type = type, .cost = cost, .place = SIM_DONE, .batch = -1, .lock = -1};
    for (int path = 0; path < SIM_PATHS; path++)
        sim_jobs[n].values[path] = random_value(path);
    return n;
}

void sim_body(int n, char *out, size_t size)
{
    const struct sim_job *job = &sim_jobs[n];
    char texts[SIM_PATHS][16], cost[40] = "", key[40] = "", k[80] = "", deep[80] = "";
    const char *json[SIM_PATHS], *type = sim_type_names[job->type];

    for (int path = 0; path < SIM_PATHS; path++)
        json[path] = value_json(job->values[path], texts[path]);
    if (job->cost > 0)
        snprintf(cost, sizeof cost, ",\"cost\":%lld", (long long)job->cost);
    if (*json[2])
        snprintf(key, sizeof key, ",\"key\":%s", json[2]);
    if (*json[0])
        snprintf(k, sizeof k, ",\"k\":%s", json[0]);
    if (*json[1])
        snprintf(deep, sizeof deep, ",\"deep\":{\"x\":[],\"id\":%s}", json[1]);
    if (n % 4 || job->in_order)
        snprintf(out, size, "{\"id\":\"j%d\",\"type\":\"%s\"%s%s,\"args\":{\"to\":[1,2]%s%s}}", n, type, key,
                 cost, k, deep);
    else
        snprintf(out, size, " { \"args\" : {\"a\":\"}\"%s%s}, \"id\" : \"j%d\" %s, \"type\" :\"%s\"%s} ", k,
                 deep, n, key, type, cost);
}

int sim_line_of(int n)
{
    return sim_jobs[n].queue + (sim_jobs[n].together ? SIM_QUEUES : 0);
}

bool sim_has_line(int line)
{
    return line % SIM_QUEUES < sim.queue_count;
}

bool sim_interrupt(int n, int with, int most)
{
    struct sim_job *job = &sim_jobs[n];

    if (with == 0 || job->together == 1 || job->interrupted == 0)
        job->interrupted++;
    if (job->interrupted < most) {
        if (with > 0)
            job->together = ((job->together && job->together < with ? job->together : with) + 1) / 2;
        return false;
    }
    sim_end_job(n, SIM_DEAD);
    return true;
}

struct sim_list *sim_lane_of(int n)
{
    return &sim.lanes[sim_line_of(n)][sim_jobs[n].type][sim_jobs[n].key];
}

void sim_to_queue(int n)
{
    struct sim_list *queue = &sim.queues[sim_jobs[n].queue];

    sim_jobs[n].place = SIM_WAITING;
    sim_jobs[n].back_us = 0;
    sim_list_insert(queue, queue->count, n);
}

void sim_return(const int *list, int count)
{
    for (int i = count - 1; i >= 0; i--) {
        sim_jobs[list[i]].place = SIM_WAITING;
        sim_jobs[list[i]].back_us = 0;
        sim_list_insert(sim_lane_of(list[i]), 0, list[i]);
    }
}

/* As its token says: "turn.index@slot". */
static void comes_back(struct sim_job *job)
{
    const char *at = strchr(job->token, '@'), *index = strchr(job->token, '.') + 1;

    job->place = SIM_WAITING;
    job->back_us = at && at < strchr(job->token, '/') ? atoll(at + 1) : 0;
    job->back_index = index[0] * 128 + index[1];
}

static bool was_taken_before(int a, int b)
{
    const struct sim_job *x = &sim_jobs[a], *y = &sim_jobs[b];

    if (x->back_us == 0 || y->back_us == 0)
        return false;
    return x->back_us < y->back_us || (x->back_us == y->back_us && x->back_index < y->back_index);
}

static void merge_back(struct sim_list *lane, const int *entries, int count)
{
    int merged[SIM_JOBS], n = 0, first = 0, i = 0;

    while (first < lane->count && first < 64 && was_taken_before(lane->at[first], entries[count - 1]))
        first++;
    for (int k = 0; k < first; k++) {
        while (was_taken_before(entries[i], lane->at[k]))
            merged[n++] = entries[i++];
        merged[n++] = lane->at[k];
    }
    while (i < count)
        merged[n++] = entries[i++];
    sim_list_remove(lane, 0, first);
    while (n > 0)
        sim_list_insert(lane, 0, merged[--n]);
}

void sim_come_back(const int *list, int count)
{
    bool done[SIM_JOBS] = {false};
    int entries[SIM_JOBS];

    for (int i = 0; i < count; i++)
        comes_back(&sim_jobs[list[i]]);
    for (int i = 0; i < count; i++) {
        struct sim_list *lane = sim_lane_of(list[i]);
        int n = 0;

        for (int k = i; k < count && !done[i]; k++)
            if (!done[k] && sim_lane_of(list[k]) == lane) {
                entries[n++] = list[k];
                done[k] = k > i;
            }
        if (n > 0)
            merge_back(lane, entries, n);
    }
}

void sim_return_behind(int n)
{
    struct sim_list *lane = sim_lane_of(n);

    comes_back(&sim_jobs[n]);
    sim_list_insert(lane, lane->count, n);
}

void sim_to_head(int n)
{
    sim_jobs[n].place = SIM_WAITING;
    sim_jobs[n].back_us = 0;
    sim_list_insert(&sim.queues[sim_jobs[n].queue], 0, n);
}

/* By turn and index of their tokens. */
static int token_order(const void *a, const void *b)
{
    const char *x = sim_jobs[*(const int *)a].token, *y = sim_jobs[*(const int *)b].token;
    long long turn_x = atoll(x), turn_y = atoll(y);

    return turn_x != turn_y ? (turn_x < turn_y ? -1 : 1) : memcmp(strchr(x, '.'), strchr(y, '.'), 3);
}

int sim_leases(int owner, int list[SIM_JOBS])
{
    int count = 0;

    for (int n = 0; n < sim.job_count; n++)
        if (sim_jobs[n].place == SIM_LEASED && sim_jobs[n].owner == owner)
            list[count++] = n;
    qsort(list, (size_t)count, sizeof *list, token_order);
    return count;
}

struct span sim_token(int n)
{
    return (struct span){sim_jobs[n].token, strlen(sim_jobs[n].token)};
}

int64_t sim_cost(int n)
{
    return sim_jobs[n].cost > 0 ? sim_jobs[n].cost : sim.types[sim_jobs[n].type].cost;
}

/* ---- Worlds */

void sim_begin(uint64_t seed)
{
    sim_end();
    turns_flush(NULL);
    sim = (struct sim){.seed = seed, .random = seed, .models_gates = true, .later_us = -1};
    for (int i = 0; i < SIM_LIMITS; i++)
        sim_limit_is(i, "");
    for (int t = 0; t < SIM_TYPES; t++)
        sim.types[t] = (struct sim_type){.name = sim_type_names[t], .cost = 1};
    sim_life_begin();
}

static void free_lists(struct sim_list *lists, int count)
{
    for (int i = 0; i < count; i++) {
        free(lists[i].at);
        lists[i] = (struct sim_list){0};
    }
}

void sim_end(void)
{
    struct sim_gate **gates = &sim.gates[0][0][0];

    for (size_t i = 0; i < sizeof sim.gates / sizeof *gates; i++)
        if (gates[i]) {
            naive_free(&gates[i]->naive);
            free(gates[i]);
            gates[i] = NULL;
        }
    snapshot_free(sim.all);
    sim.all = NULL;
    sim_life_end();
    free_lists(sim.queues, SIM_QUEUES);
    free_lists(&sim.lanes[0][0][0], SIM_LINES * SIM_TYPES * (SIM_KEYS + 1));
}

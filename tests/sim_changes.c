#include "tests/sim_changes.h"

#include "queue/limits/rate_request.h"

#define SECOND_US INT64_C(1000000)

long long changes_count;

static int path; /* of the keyed rules of this world */

static void random_rule(char *out, size_t size, bool keyed)
{
    int64_t period_us = SIM_ONE_OF(10000, SECOND_US, SECOND_US, 1500000, 60 * SECOND_US);
    int64_t count = SIM_ONE_OF(1, 2, 3, 7, 10, 30, 100, 1000), burst = SIM_ONE_OF(1, 1, 2, 5, 20);
    const char *of = sim_chance(4) ? ",of=jobs" : "";
    char adapt[32] = "", by[32] = "";

    if (keyed)
        snprintf(by, sizeof by, ",by=%s", sim_paths[path]);
    if (sim_chance(10))
        snprintf(adapt, sizeof adapt, ",adapt=%d..%d", (int)SIM_ONE_OF(100, 500), (int)SIM_ONE_OF(900, 1000));
    switch (sim_pick(0, 7)) {
    case 0:
        snprintf(out, size, "token-bucket:%lld/%lld/%lld%s%s%s", (long long)count, (long long)period_us,
                 (long long)burst, of, by, adapt);
        return;
    case 1:
        snprintf(out, size, "fixed-window:%lld/%lld/%lld%s%s%s", (long long)SIM_ONE_OF(1, 2, 5, 20),
                 (long long)period_us, (long long)(sim_chance(2) ? 0 : sim_pick(0, period_us - 1)), of, by,
                 adapt);
        return;
    case 2:
        snprintf(out, size, "sliding-log:%lld/%lld%s%s%s", (long long)SIM_ONE_OF(1, 2, 5, 20),
                 (long long)period_us, of, by, adapt);
        return;
    case 3:
        snprintf(out, size, "sliding-window:%lld/%lld%s%s%s", (long long)SIM_ONE_OF(1, 4, 10, 50),
                 (long long)period_us, of, by, adapt);
        return;
    case 4:
    case 5:
        snprintf(out, size, "concurrency:%lld%s", (long long)SIM_ONE_OF(1, 2, 5), by);
        return;
    default:
        snprintf(out, size, "gcra:%lld/%lld/%lld%s%s%s", (long long)count, (long long)period_us,
                 (long long)burst, of, by, adapt);
    }
}

/* The limit as it is set now, and as it was before that, as text. */
static char limit_texts[SIM_LIMITS][8 * 120], limit_before[SIM_LIMITS][8 * 120];

static void apply_limit(int limit, const char *text)
{
    int before;

    changes_count++;
    if (turns_rate(sim_limit_names[limit], text) != 0) {
        if (strncmp(turns.error.text, "type ", 5) != 0 && strstr(turns.error.text, "used by") == NULL)
            sim_fail("rate set %s %s: %s", sim_limit_names[limit], text, turns.error.text);
        return; /* refused: a cost that would not fit, too many rules, or it is used */
    }
    if (strcmp(turns.rules, text) != 0)
        sim_fail("limit %s is kept as %s, not %s", sim_limit_names[limit], turns.rules, text);
    memcpy(limit_before[limit], limit_texts[limit], sizeof limit_texts[limit]);
    snprintf(limit_texts[limit], sizeof limit_texts[limit], "%s", text);
    before = sim.limits[limit].path;
    sim_limit_is(limit, text);
    if (!*text)
        sim.limits[limit].pause_until_us = 0; /* a pause goes with its limit */
    server_do(&turns.server, "HDEL", PREFIX "revisions",
              textf("places/%s", sim_limit_names[limit])); /* new rules take the first free places */
    if (sim.limits[limit].path != before)                  /* that of a key with the path of its keys */
        memset(sim.limits[limit].key_until_us, 0, sizeof sim.limits[limit].key_until_us);
}

static void new_limit(int limit, bool keyed)
{
    char text[8 * 120] = "";
    int rules = sim_chance(3) ? (int)sim_pick(2, 4) : 1;

    for (int i = 0; i < rules; i++) {
        size_t len = strlen(text);

        if (len > 0)
            text[len++] = ' ';
        random_rule(text + len, sizeof text - len, keyed && sim_chance(2));
    }
    apply_limit(limit, text);
}

/* Another rule in the place of the last, one more, one less, or the rule that was there before: the others keep their places. */
static void change_limit(int limit)
{
    char text[8 * 120], *last;
    bool keyed = sim.limits[limit].path >= 0;

    if (!sim.limits[limit].set) {
        new_limit(limit, sim_chance(2));
        return;
    }
    snprintf(text, sizeof text, "%s", limit_texts[limit]);
    last = strrchr(text, ' ');
    switch (sim_pick(0, 7)) {
    case 0:
        text[0] = '\0';
        break;
    case 1:
        if (last) {
            *last = '\0';
            break;
        }
        /* fall through */
    case 2:
    case 3:
        if (sim.limits[limit].count < 4) {
            strcat(text, " ");
            last = text + strlen(text);
            random_rule(last, sizeof text - (size_t)(last - text), keyed);
        }
        break;
    case 4:
    case 5:
        if (!last && *limit_before[limit] && !strchr(limit_before[limit], ' ')) {
            memcpy(text, limit_before[limit], sizeof text);
            break;
        }
        /* fall through */
    default:
        last = last ? last + 1 : text;
        keyed = strstr(last, ",by=") != NULL;
        random_rule(last, sizeof text - (size_t)(last - text), keyed);
    }
    apply_limit(limit, text);
}

static void use_limit(int type, int limit, bool use)
{
    struct sim_type *t = &sim.types[type];
    int rc = turns_use(t->name, use ? "use" : "unuse", "", &sim_limit_names[limit], 1), at = 0;

    changes_count++;
    while (at < t->use_count && t->uses[at] != limit)
        at++;
    if (rc != 0) {
        if (use ? strncmp(turns.error.text, "type ", 5) != 0 && sim.limits[limit].set : at < t->use_count)
            sim_fail("rate use: %s", turns.error.text);
        return;
    }
    if (use && at == t->use_count) {
        t->uses[t->use_count++] = limit;
    } else if (!use) {
        memmove(t->uses + at, t->uses + at + 1, (size_t)(t->use_count - at - 1) * sizeof *t->uses);
        t->use_count--;
    }
}

static void use_some(void)
{
    if (sim.limit_count > 0)
        use_limit((int)sim_pick(0, sim.type_count - 1),
                  (int)sim_pick(SIM_TYPES, SIM_TYPES + sim.limit_count - 1), !sim_chance(3));
}

static void set_cost(void)
{
    struct sim_type *t = &sim.types[sim_pick(0, sim.type_count - 1)];
    int64_t cost = sim_pick(1, 3);
    const char *limits[SIM_LIMITS];

    for (int i = 0; i < t->use_count; i++)
        limits[i] = sim_limit_names[t->uses[i]];
    if (turns_use(t->name, "use", textf("%d", (int)cost), limits, (size_t)t->use_count) == 0)
        t->cost = cost;
    else if (cost <= sim_cost_most((int)(t - sim.types)))
        sim_fail("rate use --cost: %s", turns.error.text);
}

static void pause_limit(void)
{
    int limit = (int)(sim_chance(2) ? sim_pick(0, sim.type_count - 1)
                                    : sim_pick(SIM_TYPES, SIM_TYPES + sim.limit_count));
    int64_t for_us = sim_chance(3) ? 0 : sim_pick(1, 5 * SECOND_US);

    if (limit >= SIM_LIMITS || !sim.limits[limit].set)
        return;
    sim_must(turns_pause(sim_limit_names[limit], for_us), "pause");
    sim.limits[limit].pause_until_us = for_us ? turns.now_us + for_us : 0;
    changes_count++;
}

static void pause_key(void)
{
    int limit = (int)sim_pick(0, SIM_LIMITS - 1), key = (int)sim_pick(0, SIM_KEYS - 1);
    int64_t for_us = sim_chance(3) ? 0 : sim_pick(1, 5 * SECOND_US);

    if (!sim.limits[limit].set || sim.limits[limit].path < 0)
        return;
    sim_must(turns_pause_key(sim_limit_names[limit], sim_key_text(key), for_us), "pause of a key");
    sim.limits[limit].key_until_us[key] = for_us ? turns.now_us + for_us : 0;
    changes_count++;
}

static struct sim_type *any_type(void)
{
    return &sim.types[sim_pick(0, sim.type_count - 1)];
}

void changes_pause_type(struct sim_type *t, int64_t for_us)
{
    sim_must(turns_pausing("type_pause", t->name, for_us), "pause of a type");
    t->pause_until_us = for_us == RATE_ENDLESS ? ENDLESS_US : for_us ? turns.now_us + for_us : 0;
    changes_count++;
}

static void weigh(void)
{
    int limit = (int)sim_pick(0, SIM_LIMITS - 1);

    if (sim.limits[limit].set && sim.limits[limit].path >= 0)
        sim_must(turns_weight(sim_limit_names[limit], sim_key_text((int)sim_pick(0, SIM_KEYS - 1)),
                              (int)sim_pick(1, 4)),
                 "weight");
}

void changes_make(void)
{
    int limit =
        (int)(sim_chance(2) || sim.limit_count == 0 ? sim_pick(0, sim.type_count - 1)
                                                    : sim_pick(SIM_TYPES, SIM_TYPES + sim.limit_count - 1));

    switch (sim_pick(0, 10)) {
    case 10:
        changes_pause_type(any_type(), sim_chance(2)   ? RATE_RESUME
                                       : sim_chance(4) ? RATE_ENDLESS
                                                       : sim_pick(1, 5 * SECOND_US));
        break;
    case 0:
    case 1:
        pause_limit();
        break;
    case 9:
        pause_key();
        break;
    case 2:
        weigh();
        break;
    case 3:
        set_cost();
        break;
    case 4:
    case 5:
        use_some();
        break;
    default:
        change_limit(limit);
    }
}

void changes_begin(void)
{
    path = (int)sim_pick(0, SIM_PATHS - 1);
}

void changes_make_limits(void)
{
    for (int i = 0; i < SIM_LIMITS; i++)
        limit_texts[i][0] = limit_before[i][0] = '\0';
    for (int i = 0; i < sim.limit_count; i++)
        new_limit(SIM_TYPES + i, sim_chance(2));
    for (int t = 0; t < sim.type_count; t++) {
        if (!sim_chance(3))
            new_limit(t, sim_chance(2));
        for (int i = 0; i < sim.limit_count; i++)
            if (sim_chance(2))
                use_limit(t, SIM_TYPES + i, true);
    }
}

void changes_end_limits(void)
{
    for (int t = 0; t < sim.type_count; t++)
        while (sim.types[t].use_count > 0)
            use_limit(t, sim.types[t].uses[0], false);
    for (int i = 0; i < SIM_LIMITS; i++)
        if (sim.limits[i].set)
            apply_limit(i, "");
}

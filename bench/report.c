/* The figures: one table says what is asked of each, so that rows, JSON and verdicts cannot differ. */
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"

enum better {
    FREE,   /* nothing is asked of it */
    HIGHER, /* at least */
    LOWER,  /* at most */
    KEPT,   /* a rate: at least, and never above 1 */
};

static const struct {
    const char *name, *unit;
    int decimals;
    enum better better;
    double required, aim;
    const char *base; /* the ceiling that it is compared with */
} specs[FIGURES] = {
    [CEILING_PUSH] = {"ceiling: raw pipelined RPUSH of 120 bytes", "/s", 0, FREE, 0, 0, NULL},
    [CEILING_PUSH_MANY] = {"ceiling: the same, 500 values a command", "/s", 0, FREE, 0, 0, NULL},
    [CEILING_LUA] = {"ceiling: minimal Lua claim and settle of 100", "/s", 0, FREE, 0, 0, NULL},
    [CEILING_TURN] = {"ceiling: claim.lua and settle.lua, 100 a turn", "/s", 0, FREE, 0, 0, "minimal Lua"},
    [CEILING_TURN_LIMITED] = {"ceiling: the same with a limit", "/s", 0, FREE, 0, 0, "minimal Lua"},
    [CEILING_WAKE_P50] = {"ceiling: bare LPUSH to BLMOVE, p50", "ms", 3, FREE, 0, 0, NULL},
    [CEILING_WAKE_P99] = {"ceiling: bare LPUSH to BLMOVE, p99", "ms", 3, FREE, 0, 0, NULL},
    [CEILING_MEMORY] = {"ceiling: memory of the bare args", "bytes", 1, FREE, 0, 0, NULL},
    [CEILING_EVALSHA] = {"ceiling: CPU of a bare EVALSHA at 100/s", "us", 1, FREE, 0, 0, NULL},
    [CEILING_COMMANDS] = {"  20 commands in a script, in bare EVALSHAs", "x", 2, FREE, 0, 0, NULL},
    [CEILING_ASLEEP] = {"ceiling: who sleeps meanwhile wakes late, p99.9", "ms", 3, FREE, 0, 0, NULL},
    [BULK_RATE] = {"bulk enqueue, libweir", "/s", 0, HIGHER, 300e3, 500e3, "raw RPUSH"},
    [LINES_RATE] = {"bulk enqueue, weir enqueue --from", "/s", 0, HIGHER, 200e3, 400e3, "raw RPUSH"},
    [RUN_RATE] = {"run no-op jobs", "/s", 0, HIGHER, 200e3, 300e3, "claim+settle"},
    [LIMITED_RATE] = {"run no-op jobs, limit never reached", "/s", 0, HIGHER, 120e3, 200e3, "claim+settle"},
    [AOF_RATE] = {"run no-op jobs, AOF everysec", "/s", 0, FREE, 0, 0, "claim+settle"},
    [LATENCY_P50] = {"enqueue to start, p50", "ms", 3, LOWER, 0.4, 0.2, "LPUSH-BLMOVE"},
    [LATENCY_P99] = {"enqueue to start, p99", "ms", 3, LOWER, 1.0, 0.4, "LPUSH-BLMOVE"},
    [SPARSE_FLOOR_50] = {"ceiling: the floor at 50/s, Redis CPU a job", "us", 0, FREE, 0, 0, NULL},
    [SPARSE_CPU_50] = {"jobs that come one by one, 50/s: Redis CPU a job", "us", 0, FREE, 0, 0, "the floor"},
    [SPARSE_P50_50] = {"  enqueue to start, p50", "ms", 3, FREE, 0, 0, "LPUSH-BLMOVE"},
    [SPARSE_P99_50] = {"  enqueue to start, p99", "ms", 3, FREE, 0, 0, "LPUSH-BLMOVE"},
    [SPARSE_FLOOR_200] = {"ceiling: the floor at 200/s, Redis CPU a job", "us", 0, FREE, 0, 0, NULL},
    [SPARSE_CPU_200] = {"jobs that come one by one, 200/s: Redis CPU a job", "us", 0, FREE, 0, 0,
                        "the floor"},
    [SPARSE_P50_200] = {"  enqueue to start, p50", "ms", 3, FREE, 0, 0, "LPUSH-BLMOVE"},
    [SPARSE_P99_200] = {"  enqueue to start, p99", "ms", 3, FREE, 0, 0, "LPUSH-BLMOVE"},
    [SPARSE_FLOOR_1000] = {"ceiling: the floor at 1,000/s, Redis CPU a job", "us", 0, FREE, 0, 0, NULL},
    [SPARSE_CPU_1000] = {"jobs that come one by one, 1,000/s: Redis CPU a job", "us", 0, FREE, 0, 0,
                         "the floor"},
    [SPARSE_P50_1000] = {"  enqueue to start, p50", "ms", 3, FREE, 0, 0, "LPUSH-BLMOVE"},
    [SPARSE_P99_1000] = {"  enqueue to start, p99", "ms", 3, FREE, 0, 0, "LPUSH-BLMOVE"},
    [MEMORY_JOB] = {"memory of a waiting job, 118 bytes of args", "bytes", 1, LOWER, 200, 185, "bare args"},
    [NET_BULK] = {"bytes on the link a job of 120 bytes, in bulk", "bytes", 0, FREE, 0, 0, NULL},
    [NET_CALL] = {"  enqueued one by one", "bytes", 0, FREE, 0, 0, NULL},
    [NET_RUN] = {"  run, no-op jobs without a limit", "bytes", 0, FREE, 0, 0, NULL},
    [NET_PACE_1000] = {"  run at 1,000/s, burst 1", "bytes", 0, FREE, 0, 0, NULL},
    [NET_PACE_100] = {"  run at 100/s, burst 10", "bytes", 0, FREE, 0, 0, NULL},
    [MEMORY_TYPE] = {"memory of a type", "bytes", 0, FREE, 0, 0, NULL},
    [PACE_KEPT] = {"100/s burst 10, backlog 20,000: rate kept", "", 4, KEPT, 0.999, 0.999, NULL},
    [PACE_SECOND] = {"  most slots in any second", "", 0, LOWER, 110, 110, NULL},
    [PACE_TENTH] = {"  most slots in any 100 ms", "", 0, LOWER, 20, 20, NULL},
    [PACE_SECOND_CLOCK] = {"  most starts in any second by handlers' clocks", "", 0, FREE, 0, 0, NULL},
    [PACE_TENTH_CLOCK] = {"  most starts in any 100 ms by handlers' clocks", "", 0, FREE, 0, 0, NULL},
    [PACE_LATE] = {"  start behind its slot, p99.9", "ms", 3, LOWER, 2, 2, "a sleep"},
    [PACE_COMMANDS] = {"  Redis commands per job run", "", 2, LOWER, 6, 6, NULL},
    [PACE_CPU] = {"  Redis CPU per job run, in bare EVALSHAs", "x", 2, LOWER, 3, 2.5, NULL},
    [MILLION_COMMANDS] = {"backlog 1,000,000: commands, in those of 20,000", "x", 3, LOWER, 1.1, 1.1, NULL},
    [MILLION_CPU] = {"backlog 1,000,000: CPU, in that of 20,000", "x", 3, LOWER, 1.1, 1.1, NULL},
    [FAST_KEPT_1000] = {"1,000/s burst 1: rate kept", "", 4, KEPT, 0.998, 0.9995, NULL},
    [FAST_GAP_1000] = {"  smallest gap between slots, in T", "", 3, HIGHER, 1, 1, NULL},
    [FAST_KEPT_5000] = {"5,000/s burst 1: rate kept", "", 4, KEPT, 0.998, 0.9995, NULL},
    [FAST_GAP_5000] = {"  smallest gap between slots, in T", "", 3, HIGHER, 1, 1, NULL},
    [FLOOD_KEPT] = {"20,000/s, backlog 1,000,000: rate kept", "", 4, KEPT, 0.999, 0.999, NULL},
    [FLOOD_CPU] = {"  Redis CPU per job run", "us", 2, LOWER, 10, 5, NULL},
    [FLOOD_KEPT_BURST_1] = {"20,000/s burst 1: rate kept", "", 4, FREE, 0, 0, NULL},
    [FLOOD_CPU_BURST_1] = {"  Redis CPU per job run", "us", 2, FREE, 0, 0, NULL},
    [BEHIND_ALL] = {"1,000 unlimited behind 200,000 throttled: all done", "s", 3, LOWER, 1.0, 0.4, NULL},
    [GROWTH_FREE] = {"100 types, unlimited: Redis CPU per job run", "us", 1, FREE, 0, 0, NULL},
    [GROWTH_FREE_MANY] = {"  10,000 types, in that of 100", "x", 2, LOWER, 1.5, 1.2, NULL},
    [GROWTH_LIMITED] = {"100 types with limits: Redis CPU per job run", "us", 1, FREE, 0, 0, NULL},
    [GROWTH_LIMITED_MANY] = {"  10,000 types, in that of 100", "x", 2, LOWER, 1.5, 1.2, NULL},
    [KEYS_CPU_10] = {"100/s, 10 keys wait: Redis CPU per job run", "us", 1, FREE, 0, 0, NULL},
    [KEYS_CPU_1000] = {"  1,000 keys, in that of 10", "x", 2, LOWER, 1.3, 1.3, NULL},
    [KEYS_CPU_100000] = {"  100,000 keys, in that of 10", "x", 2, LOWER, 1.3, 1.3, NULL},
    [KEYS_CPU_1000000] = {"  1,000,000 keys, in that of 10", "x", 2, LOWER, 1.3, 1.3, NULL},
    [KEYS_FLOOD_CPU] = {"100,000 keys wait, 100 executors: CPU per job run", "us", 2, LOWER, 15, 15, NULL},
    [KEYS_OPEN_WORST] = {"100,000 keys open at once: worst claim", "ms", 2, LOWER, 5, 5, NULL},
    [KEYS_OPEN_CPU] = {"  Redis CPU per job run", "us", 2, FREE, 0, 0, NULL},
    [KEYS_MEMORY] = {"memory of a job alone in its lane, over its body", "bytes", 1, LOWER, 350, 350, NULL},
    [KEYS_MEMORY_ASLEEP] = {"  with the state of the gate of its key", "bytes", 1, FREE, 0, 0, NULL},
    [CEILING_ONE] = {"ceiling: a function of four commands, pipelined", "/s", 0, FREE, 0, 0, NULL},
    [CEILING_MANY] = {"ceiling: GET and SET of 1,000 keys in a function", "/s", 0, FREE, 0, 0, NULL},
    [TAKE_PIPELINED] = {"take, pipelined", "/s", 0, HIGHER, 100e3, 100e3, "the four alone"},
    [TAKE_MANY_OF_ONE] = {"  of one key", "/s", 0, FREE, 0, 0, NULL},
    [TAKE_MANY] = {"weir_take_many, 1,000 keys", "/s", 0, HIGHER, 200e3, 200e3, "GET and SET"},
    [TAKE_DENIED] = {"weir_take of a key that was just denied", "/s", 0, HIGHER, 2e6, 2e6, NULL},
    [PROTOCOL_ENQUEUE] = {"enqueue by the protocol: Redis CPU, in weir_enqueue's", "x", 2, LOWER, 1.15, 1.15,
                          NULL},
    [PROTOCOL_TAKE] = {"take by the protocol: Redis CPU, in weir_take's", "x", 2, LOWER, 1.15, 1.15, NULL},
    [PROTOCOL_BULK] = {"bulk by the protocol, 1,000 lines: a second of Redis", "/s", 0, HIGHER, 300e3, 300e3,
                       NULL},
    [ENQUEUE_CALL] = {"weir_enqueue, one after the other", "/s", 0, FREE, 0, 0, NULL},
    [ENQUEUE_CALL_UNIQUE] = {"  with a unique key", "/s", 0, FREE, 0, 0, "plain"},
    [ENQUEUE_CALL_LATER] = {"  scheduled", "/s", 0, FREE, 0, 0, "plain"},
    [PIPE_ALONE] = {"the same Python program, fed with lines by cat", "/s", 0, FREE, 0, 0, NULL},
    [PIPE_RATE] = {"--pipe, one Python child, 100 in flight", "/s", 0, HIGHER, 10e3, 15e3, "fed by cat"},
    [EXEC_ALONE] = {"posix_spawn and wait, /bin/true", "/s", 0, FREE, 0, 0, NULL},
    [EXEC_RATE] = {"--exec /bin/true, one executor", "/s", 0, FREE, 0, 0, "posix_spawn"},
    [EXEC_RATIO] = {"  in bare posix_spawns", "x", 2, HIGHER, 0.6, 0.8, NULL},
    [TLS_RUN_PLAIN] = {"run no-op jobs, over TCP", "/s", 0, FREE, 0, 0, NULL},
    [TLS_RUN] = {"  by TLS", "/s", 0, FREE, 0, 0, "plain TCP"},
    [TLS_CONNECT_PLAIN] = {"connect and PING, over TCP", "/s", 0, FREE, 0, 0, NULL},
    [TLS_CONNECT] = {"  by TLS, RSA of 2048 bits", "/s", 0, FREE, 0, 0, "plain TCP"},
    [FAR_RUN_0] = {"run no-op jobs over a link of 0 ms", "/s", 0, FREE, 0, 0, NULL},
    [FAR_RUN_1] = {"  1 ms of round trip", "/s", 0, FREE, 0, 0, "0 ms"},
    [FAR_RATIO_1] = {"    in that of 0", "x", 2, HIGHER, 0.9, 0.95, NULL},
    [FAR_RUN_2] = {"  2 ms", "/s", 0, FREE, 0, 0, "0 ms"},
    [FAR_RUN_10] = {"  10 ms", "/s", 0, FREE, 0, 0, "0 ms"},
    [FAR_KEPT] = {"5,000/s burst 1 over 10 ms: rate kept", "", 4, KEPT, 0.995, 0.999, NULL},
    [IDLE_CPU_16] = {"16 idle workers: Redis CPU", "%", 2, LOWER, 1, 0.5, NULL},
    [IDLE_CPU_64] = {"  64", "%", 2, LOWER, 1, 0.5, NULL},
    [IDLE_CLAIMS_16] = {"16 workers beside a limit of 100/s: claims a job", "", 2, LOWER, 1.5, 0.5, NULL},
    [IDLE_CLAIMS_64] = {"  64", "", 2, LOWER, 1.5, 0.5, NULL},
    [IDLE_LONE_16] = {"16 workers, 100 lone jobs a second: claims a job", "", 2, LOWER, 1.5, 1.2, NULL},
    [IDLE_LONE_64] = {"  64", "", 2, LOWER, 1.5, 1.2, NULL},
    [LOOK_STATUS] = {"10,000 types, 1,000,000 jobs: weir status", "ms", 0, LOWER, 200, 200, NULL},
    [LOOK_STATUS_JSON] = {"  weir status --json", "ms", 0, LOWER, 200, 200, NULL},
    [LOOK_REPORT] = {"  weir report", "ms", 0, LOWER, 200, 200, NULL},
    [LOOK_TOP] = {"  weir top, to its first rows", "ms", 0, LOWER, 200, 200, NULL},
    [LOOK_OVERVIEW] = {"  the overview, cold", "ms", 0, LOWER, 200, 200, NULL},
    [LOOK_TYPE] = {"  /types/NAME", "ms", 0, LOWER, 200, 200, NULL},
    [LOOK_LIMITS] = {"  /limits", "ms", 0, LOWER, 200, 200, NULL},
    [LOOK_LIMIT] = {"  /limits/NAME", "ms", 0, LOWER, 200, 200, NULL},
    [LOOK_KEYS] = {"  /keys/NAME", "ms", 0, LOWER, 200, 200, NULL},
    [LOOK_JOBS] = {"  /jobs?q=type:NAME", "ms", 0, LOWER, 200, 200, NULL},
    [LOOK_JOB_LINK] = {"  /jobs/ID, by a link from a list", "ms", 0, LOWER, 200, 200, NULL},
    [LOOK_JOB_RECORD] = {"  /jobs/ID of a job that has ended", "ms", 0, LOWER, 200, 200, NULL},
    [LOOK_JOB_ABSENT] = {"  /jobs/ID, where there is none", "ms", 0, LOWER, 200, 200, NULL},
    [LOOK_WORKERS] = {"  /workers", "ms", 0, LOWER, 200, 200, NULL},
    [LOOK_DEAD] = {"  /dead", "ms", 0, LOWER, 200, 200, NULL},
    [LOOK_REDIS] = {"  /redis", "ms", 0, LOWER, 200, 200, NULL},
    [LOOK_API_STATUS] = {"  /api/status", "ms", 0, LOWER, 200, 200, NULL},
    [LOOK_API_REPORT] = {"  /api/report", "ms", 0, LOWER, 200, 200, NULL},
    [LOOK_METRICS] = {"  /metrics", "ms", 0, LOWER, 200, 200, NULL},
    [LOOK_WATCH] = {"  watching: Redis CPU", "%", 2, LOWER, 2, 1, NULL},
    [ASYNC_MEMORY] = {"asynchronous C, 10,000 jobs in flight: memory", "MB", 0, LOWER, 100, 50, NULL},
};

#define KEPT_MOST 1.0005 /* 1.000 when rounded as it is asked for */

/* ---- Verdicts */

static bool reaches(enum better better, double value, double bound)
{
    if (better == KEPT)
        return value >= bound && value <= KEPT_MOST;
    return better == HIGHER ? value >= bound : value <= bound;
}

static const char *verdict(enum figure f, double value)
{
    if (specs[f].better == FREE)
        return "";
    if (!reaches(specs[f].better, value, specs[f].required))
        return "NO";
    return reaches(specs[f].better, value, specs[f].aim) ? "aim" : "yes";
}

/* ---- The table */

/* 1234567.8 as "1,234,568". */
static void print_number(char *out, size_t size, double value, int decimals)
{
    char digits[40];
    int len = snprintf(digits, sizeof digits, "%.*f", decimals, value);
    int whole = (int)strcspn(digits, ".");
    size_t at = 0;

    for (int i = 0; i < len && at + 2 < size; i++) {
        if (i > 0 && i < whole && (whole - i) % 3 == 0 && digits[i - 1] != '-')
            out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = '\0';
}

static void print_bounds(enum figure f, char required[40], char aim[40])
{
    required[0] = aim[0] = '\0';
    if (specs[f].better == FREE)
        return;
    print_number(required, 40, specs[f].required, specs[f].decimals);
    print_number(aim, 40, specs[f].aim, specs[f].decimals);
}

static void print_row(enum figure f, const struct result *r)
{
    char required[40], aim[40], value[40], ratio[64] = "";

    print_bounds(f, required, aim);
    print_number(value, sizeof value, r->value, specs[f].decimals);
    if (r->base > 0)
        snprintf(ratio, sizeof ratio, "%.2f of %s", r->value / r->base, specs[f].base);
    printf("%-50s %9s %9s %9s %-5s %-4s %-22s %s\n", specs[f].name, required, aim, value, specs[f].unit,
           verdict(f, r->value), ratio, r->note);
    fflush(stdout);
}

static double load_now(void)
{
    double load = 0;

    return getloadavg(&load, 1) == 1 ? load : 0;
}

void report_begin(void)
{
    if (bench.json)
        return;
    printf("%ld processors, load %.2f, redis %s on a unix socket, nothing on disk but where AOF is named, %s "
           "sizes\n\n",
           sysconf(_SC_NPROCESSORS_ONLN), load_now(), bench.redis_version, bench.quick ? "quick" : "full");
    printf("%-50s %9s %9s %9s %-5s %-4s %-22s %s\n", "", "required", "aim", "measured", "", "met?", "ratio",
           "");
    fflush(stdout);
}

void report(enum figure figure, double value, double base, const char *note, ...)
{
    struct result *r = &bench.results[figure];
    va_list rest;

    *r = (struct result){.known = true, .value = value, .base = base};
    va_start(rest, note);
    vsnprintf(r->note, sizeof r->note, note, rest);
    va_end(rest);
    if (!bench.json)
        print_row(figure, r);
}

/* ---- JSON */

static json_t *figure_json(enum figure f, const struct result *r)
{
    static const char *const betters[] = {
        [FREE] = "none", [HIGHER] = "higher", [LOWER] = "lower", [KEPT] = "kept"};
    json_t *row =
        json_pack("{s:s, s:s, s:s, s:f, s:s}", "name", specs[f].name + strspn(specs[f].name, " "), "unit",
                  specs[f].unit, "better", betters[specs[f].better], "measured", r->value, "note", r->note);

    if (specs[f].better != FREE) {
        json_object_set_new(row, "required", json_real(specs[f].required));
        json_object_set_new(row, "aim", json_real(specs[f].aim));
        json_object_set_new(row, "met", json_string(verdict(f, r->value)));
    }
    if (r->base > 0) {
        json_object_set_new(row, "base", json_pack("{s:s, s:f}", "name", specs[f].base, "measured", r->base));
        json_object_set_new(row, "ratio", json_real(r->value / r->base));
    }
    return row;
}

static void print_json(void)
{
    json_t *figures = json_array();
    json_t *all = json_pack("{s:b, s:{s:I, s:f, s:s}, s:o}", "quick", bench.quick, "machine", "processors",
                            (json_int_t)sysconf(_SC_NPROCESSORS_ONLN), "load", load_now(), "redis",
                            bench.redis_version, "figures", figures);

    for (enum figure f = 0; f < FIGURES; f++)
        if (bench.results[f].known)
            json_array_append_new(figures, figure_json(f, &bench.results[f]));
    json_dumpf(all, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
    putchar('\n');
    json_decref(all);
}

void report_end(void)
{
    int asked = 0, met = 0;

    if (bench.json) {
        print_json();
        return;
    }
    for (enum figure f = 0; f < FIGURES; f++)
        if (bench.results[f].known && specs[f].better != FREE) {
            asked++;
            met += reaches(specs[f].better, bench.results[f].value, specs[f].required);
        }
    printf("\n%d of %d as required; load %.2f at the end\n", met, asked, load_now());
}

/* What many idle workers cost. */
#include "bench/bench.h"
#include "bench/crew.h"

#define SETTLED_S                                                                                            \
    10.0 /* until workers that began together have sent a heartbeat, which tells them how many they are */

static void run_idle(int workers, enum figure cpu)
{
    struct crew_plan plan = {
        .url = bench.server.url,
        .workers = workers,
        .executors = EXECUTORS,
        .types = {{.name = "lone", .handler = noop_handler}, {.name = "mail", .handler = noop_handler}}};
    double seconds = bench.quick ? 4 : 10;
    int64_t before_ns;
    struct crew crew;

    prepare(&bench.server, "mail", "100/s,burst=10", 0);
    crew_start(&crew, &plan);
    bench_rest(SETTLED_S);
    before_ns = server_cpu(&bench.server);
    bench_rest(seconds);
    report(cpu, (double)(server_cpu(&bench.server) - before_ns) / 1e7 / seconds, 0, "%s", "");
    crew_stop(&crew);
}

void bench_idle(void)
{
    run_idle(16, IDLE_CPU_16);
    run_idle(64, IDLE_CPU_64);
}

#include "core/zone.h"
#include "queue/schedule/cron.h"
#include "tests/fuzz/fuzz.h"

#define OCCURRENCES 20

static const char *const zones[] = {"UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe",
                                    "Africa/Casablanca"};
#define ZONES (sizeof zones / sizeof *zones)

static struct zone *zone_at(size_t i)
{
    static struct zone *open[ZONES];
    struct error e;

    if (!open[i])
        must_hold(zone_open(zones[i], &open[i], &e) == 0);
    return open[i];
}

/* The first byte chooses the zone, the second the year to begin with; then the text. */
int fuzz_cron(const uint8_t *data, size_t size)
{
    struct cron cron;
    struct error e;
    int64_t at;
    char *text;

    if (size < 2)
        return 0;
    text = fuzz_text(data + 2, size - 2);
    at = ((int64_t)data[1] - 10) * 366 * 86400;
    if (cron_parse(text, &cron, &e) == 0)
        for (int i = 0; i < OCCURRENCES && at != CRON_NEVER; i++) {
            int64_t next = cron_next(&cron, zone_at(data[0] % ZONES), at);
            char time[40];

            must_hold(next > at || next == CRON_NEVER);
            if (next != CRON_NEVER)
                zone_format(zone_at(data[0] % ZONES), next, time);
            at = next;
        }
    free(text);
    return 0;
}

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/lines.h"
#include "producer/bulk.h"
#include "tests/fuzz/fake_redis.h"
#include "tests/fuzz/fuzz.h"
#include "weir.h"

/* Redis takes all; each body that it is sent is a job. */
static struct redisReply *take_all(const struct args *asked)
{
    static const char fits[] = "[\nkey\nlimit\n]\n", taken[] = "[\nok\n1\n]\n", none[] = "[\n~\n~\n]\n",
                      sealed[] = "[\nsealed\n1\n0\n]\n";
    struct span name = fake_word(asked, 1);
    const char *at = memmem(name.at, name.len, "_fits", 5)          ? fits
                     : memmem(name.at, name.len, "_append", 7)      ? taken
                     : memmem(name.at, name.len, "_batch_seal", 11) ? sealed
                                                                    : none;

    for (size_t i = 0; i < asked->count && at == taken; i++) {
        struct span word = fake_word(asked, i);
        struct job_view view;
        struct error e;

        if (word.len > 7 && memcmp(word.at, "{\"id\":\"", 7) == 0)
            must_hold(job_read(word.at, word.len, &view, &e) == 0);
    }
    return fake_read(&at, at + strlen(at));
}

/* The first byte says how the lines are meant: as jobs or args, and whether the bulk has a name. */
static void send_lines(struct weir *w, uint8_t how, struct lines *lines)
{
    struct weir_bulk_counts counts;
    struct weir_bulk *bulk;
    struct span line;
    struct error e;

    must_hold(weir_bulk_open(w, how & 1 ? "batch" : NULL, &bulk) == 0);
    if (how & 4)
        bulk_count_keyless(bulk);
    while (lines_next(lines, &line, &e) == LINES_ONE)
        if (weir_bulk_add_line(bulk, how & 2 ? "t" : NULL, NULL, line.at, line.len) != 0)
            must_hold(!bulk_has_failed(bulk) && weir_bulk_skip_line(bulk, line.at, line.len) == 0);
    must_hold(weir_bulk_close(bulk, &counts) == 0);
    must_hold(counts.lines == lines->number && counts.accepted <= counts.lines);
}

int fuzz_ndjson(const uint8_t *data, size_t size)
{
    static const volatile sig_atomic_t stop;
    struct weir *w = weir_new("/nowhere", NULL);
    struct lines lines;
    struct error e;
    char path[32];
    int fd = memfd_create("lines", MFD_CLOEXEC);

    must_hold(w && fd >= 0);
    if (size > 0 && write(fd, data + 1, size - 1) == (ssize_t)(size - 1)) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        fake_redis(take_all);
        must_hold(lines_open(&lines, path, &stop, &e) == 0);
        send_lines(w, data[0], &lines);
        lines_close(&lines);
    }
    close(fd);
    weir_free(w);
    return 0;
}

/* weir enqueue --from: lines of a file into a bulk, a progress bar, and what became of it. */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command/enqueue.h"
#include "cli/document/json.h"
#include "cli/document/outlook.h"
#include "cli/lines.h"
#include "cli/print/bar.h"
#include "cli/print/terminal.h"
#include "cli/signals.h"
#include "core/clock.h"
#include "producer/bulk.h"
#include "queue/batch/batch.h"

#define SHOW_EVERY_US 100000
#define REPORTED_MOST 20 /* wrong lines that are named, and types; more are only counted */
#define JSON_MOST 1000   /* types */
#define LOOK_EVERY 256   /* lines between looks at the clock */

static volatile sig_atomic_t stopped;

struct run {
    struct cli *cli;
    const struct enqueue_flags *flags;
    struct weir *w;
    struct weir_bulk *bulk;
    struct lines lines;
    struct weir_bulk_counts counts;
    uint64_t blank, invalid; /* lines without a job */
    int64_t begun_us, shown_us;
    bool bar;
};

/* ---- Numbers for people */

static double seconds_since(int64_t begun_us)
{
    return (double)(clock_mono_us() - begun_us + 1) / 1e6;
}

/* ---- Progress */

static void clear_bar(const struct run *r)
{
    if (r->bar && r->shown_us)
        bar_clear();
}

static void show_bar(struct run *r)
{
    const struct lines *l = &r->lines;
    char lines[32], rate[32];
    int64_t now_us = clock_mono_us();
    double part = -1;

    if (!r->bar || now_us - r->shown_us < SHOW_EVERY_US)
        return;
    r->shown_us = now_us;
    if (l->size_bytes)
        part = l->bytes < l->size_bytes ? (double)l->bytes / (double)l->size_bytes : 1;
    bar_show(part, BAR_LEFT_UNKNOWN, "%s lines  %s/s", grouped(l->number, lines),
             grouped((uint64_t)((double)l->number / seconds_since(r->begun_us)), rate));
}

/* ---- Lines */

static bool is_blank(struct span line)
{
    size_t at = 0;

    while (at < line.len && (line.at[at] == ' ' || line.at[at] == '\t' || line.at[at] == '\r'))
        at++;
    return at == line.len;
}

static int skip_line(struct run *r, struct span line, uint64_t *count)
{
    ++*count;
    return weir_bulk_skip_line(r->bulk, line.at, line.len) ? cli_failed(r->cli, r->w) : 0;
}

static void report_line(struct run *r, const char *why)
{
    if (r->invalid > REPORTED_MOST)
        return;
    clear_bar(r);
    if (r->invalid == REPORTED_MOST)
        fputs("weir: further wrong lines are left out and only counted\n", stderr);
    else
        output_to(stderr, "weir: %s:%" PRIu64 ": %s; left out\n", r->lines.name, r->lines.number, why);
}

/* The line was refused: reported and left out, or the end. */
static int refused_line(struct run *r, struct span line)
{
    const char *why = weir_message(r->w);

    if (!r->flags->skip_invalid)
        return error_set(&r->cli->error, WEIR_EINPUT,
                         "%.200s:%" PRIu64
                         ": %.150s; the lines before it are sent, none after it; mend it, or leave "
                         "such lines out with --skip-invalid",
                         r->lines.name, r->lines.number, why);
    report_line(r, why);
    return skip_line(r, line, &r->invalid);
}

static int take_line(struct run *r, struct span line)
{
    int status;

    if (is_blank(line))
        return skip_line(r, line, &r->blank);
    status = weir_bulk_add_line(r->bulk, r->flags->type, r->flags->queue, line.at, line.len);
    if (status == WEIR_EINPUT && !bulk_has_failed(r->bulk))
        return refused_line(r, line);
    return status ? cli_failed(r->cli, r->w) : 0;
}

/* True when there were wrong lines and no job at all. Then nothing is sent, so that the mended file is no other input of its batch. */
static bool is_all_wrong(struct run *r)
{
    weir_bulk_count(r->bulk, &r->counts);
    return r->invalid > 0 && r->counts.lines == r->invalid + r->blank;
}

static int flush(struct run *r)
{
    if (is_all_wrong(r))
        return 0;
    return bulk_flush(r->bulk) ? cli_failed(r->cli, r->w) : 0;
}

static int take_lines(struct run *r)
{
    enum lines_result result = LINES_ONE;
    struct span line;
    int status = 0;

    while (!status && result != LINES_END && !stopped) {
        result = lines_next(&r->lines, &line, &r->cli->error);
        if (result == LINES_ONE)
            status = take_line(r, line);
        else if (result == LINES_IDLE)
            status = flush(r);
        else if (result == LINES_FAILED)
            status = r->cli->error.status;
        if (r->bar && r->lines.number % LOOK_EVERY == 0)
            show_bar(r);
    }
    return status;
}

/* ---- What became of it */

static int print_json(struct run *r, double seconds, const struct outlook *outlooks, size_t n)
{
    json_t *types = json_object();
    size_t shown = n < JSON_MOST ? n : JSON_MOST;

    for (size_t i = 0; i < shown; i++)
        json_object_set_new(types, outlooks[i].type, outlook_json(&outlooks[i]));
    return json_print(r->cli, json_pack("{s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:I, s:o}", "lines",
                                        (json_int_t)r->counts.lines, "resumed", (json_int_t)r->counts.resumed,
                                        "accepted", (json_int_t)r->counts.accepted, "invalid",
                                        (json_int_t)r->invalid, "blank", (json_int_t)r->blank, "seconds",
                                        seconds, "rate", (double)r->counts.accepted / seconds, "more_types",
                                        (json_int_t)(n - shown), "types", types));
}

static bool is_paused(struct run *r)
{
    struct batch b = {.pause = NULL};
    bool paused = r->flags->batch && batch_read(r->w, r->flags->batch, &b) == 0 && b.phase == BATCH_PAUSED;

    batch_free(&b);
    return paused;
}

/* paused: the batch is. */
static void print_starts(const struct run *r, bool paused, const struct outlook *outlooks, size_t n)
{
    if (paused && r->counts.accepted)
        output("batch %s is paused: they wait for weir batch resume %s\n", r->flags->batch, r->flags->batch);
    for (size_t i = 0; !paused && i < n && i < REPORTED_MOST; i++)
        outlook_print(&outlooks[i]);
    if (!paused && n > REPORTED_MOST)
        outlook_print_rest(outlooks + REPORTED_MOST, n - REPORTED_MOST);
}

static void print_text(const struct run *r, double seconds)
{
    char text[PHRASE_SIZE], rate[32];

    output("%s in %.2f s, %s/s", counted((int64_t)r->counts.accepted, "job", text), seconds,
           grouped((uint64_t)((double)r->counts.accepted / seconds), rate));
    if (r->counts.resumed)
        output("; %s sent by an earlier run%s", counted((int64_t)r->counts.resumed, "line", text),
               r->counts.resumed == r->counts.lines ? ", so all was there" : "");
    if (r->invalid)
        output("; %s left out", counted((int64_t)r->invalid, "wrong line", text));
    if (r->blank)
        output("; %s", counted((int64_t)r->blank, "blank line", text));
    putchar('\n');
}

/* The types of which most jobs have no key. */
static void warn_keyless(const struct outlook *outlooks, size_t n)
{
    size_t warned = 0;
    char types[PHRASE_SIZE];

    for (size_t i = 0; i < n; i++)
        if (keyless_most(&outlooks[i].keyless) && ++warned <= REPORTED_MOST) {
            fputs("weir: ", stderr);
            keyless_print(stderr, outlooks[i].type, &outlooks[i].keyless);
        }
    if (warned > REPORTED_MOST)
        output_to(stderr, "weir: so it is with %s more\n",
                  counted((int64_t)(warned - REPORTED_MOST), "type", types));
}

/* The jobs are in: what cannot be foretold is no failure. */
static int report(struct run *r, double seconds)
{
    struct outlook *outlooks = NULL;
    bool paused = is_paused(r);
    size_t n = 0;
    int status = 0;

    if (r->counts.accepted && outlook_read(r->w, r->bulk, &outlooks, &n)) {
        output_to(stderr, "weir: when they start cannot be told: %s\n", weir_message(r->w));
        n = 0;
    }
    if (n > REPORTED_MOST)
        outlook_sort(outlooks, n);
    for (size_t i = 0; paused && i < n; i++)
        outlooks[i].first_us = outlooks[i].last_us = GATE_NEVER;
    if (r->cli->json) {
        status = print_json(r, seconds, outlooks, n);
    } else {
        print_text(r, seconds);
        print_starts(r, paused, outlooks, n);
    }
    warn_keyless(outlooks, n);
    free(outlooks);
    return status;
}

static int interrupted(struct run *r)
{
    return error_set(&r->cli->error, WEIR_ENOTNOW,
                     "%.200s: interrupted; the %" PRIu64 " lines up to here are sent", r->lines.name,
                     r->lines.number);
}

static int all_wrong(struct run *r)
{
    return error_set(&r->cli->error, WEIR_EINPUT,
                     "%.200s: no job in it: each of its %" PRIu64 " lines is wrong; nothing was sent",
                     r->lines.name, r->invalid);
}

/* What can go on later says how. */
static int add_advice(struct run *r, int status)
{
    struct error *e = &r->cli->error, why = *e;

    if (status == WEIR_EINPUT)
        return status;
    if (r->flags->batch)
        return error_set(e, status, "%.350s; run it again: batch %.60s continues where it stopped", why.text,
                         r->flags->batch);
    return error_set(e, status, "%.350s; with --batch it could be run again", why.text);
}

/* ---- The command */

static void on_signal(int number)
{
    (void)number;
    stopped = 1;
}

/* Whatever ended the lines, those that were taken are sent. */
static int send_rest(struct run *r, int status)
{
    int sent;

    if (bulk_has_failed(r->bulk) || is_all_wrong(r))
        return status;
    sent = status || stopped ? bulk_flush(r->bulk) : bulk_end(r->bulk);
    return sent ? cli_failed(r->cli, r->w) : status;
}

static int run_bulk(struct run *r)
{
    int status = send_rest(r, take_lines(r));
    double seconds = seconds_since(r->begun_us);
    bool nothing; /* to be said: its error says it all */

    clear_bar(r);
    weir_bulk_count(r->bulk, &r->counts);
    nothing = r->counts.accepted + r->counts.resumed == 0 && !r->cli->json;
    if (!bulk_has_failed(r->bulk) && !(status && nothing)) {
        int reported = report(r, seconds);

        status = status ? status : reported;
    }
    if (!status && stopped)
        status = interrupted(r);
    if (!status && is_all_wrong(r))
        status = all_wrong(r);
    return status ? add_advice(r, status) : 0;
}

int enqueue_bulk(struct cli *cli, struct weir *w, const struct enqueue_flags *f)
{
    struct run r = {
        .cli = cli, .flags = f, .w = w, .begun_us = clock_mono_us(), .bar = cli_is_terminal(stderr)};
    int status = lines_open(&r.lines, f->from, &stopped, &cli->error);

    if (status)
        return status;
    if (weir_bulk_open(w, f->batch, &r.bulk) || (f->then && bulk_then(r.bulk, f->queue, f->then))) {
        status = cli_failed(cli, w);
    } else {
        signals_catch(on_signal);
        bulk_count_keyless(r.bulk);
        status = run_bulk(&r);
    }
    weir_bulk_abandon(r.bulk);
    lines_close(&r.lines);
    return status;
}

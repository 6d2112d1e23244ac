/* weir take: a slot for a caller of any kind. */
#include <inttypes.h>
#include <math.h>

#include "cli/cli.h"
#include "cli/json.h"
#include "core/clock.h"
#include "throttle/rule.h"

static int run_take(struct cli *cli, int argc, char **argv);

const struct command command_take = {
    .name = "take",
    .usage = "NAME [FLAGS]\nNAME/KEY --rule RULE [FLAGS]",
    .summary = "Takes a slot of a limit: exit 0 allowed, 75 denied, 65 when it can never fit.",
    .text = "For callers of any kind: a script that calls the provider whose limit the jobs are held to as "
            "well.\n"
            "With --rule no limit needs to be set: the gate is made on demand, one for each NAME and KEY.\n"
            "\n"
            "  weir take mail && sendmail ...\n"
            "  weir take --wait=30s mail\n"
            "  weir take login/alice --rule 5/1m --json\n",
    .run = run_take,
};

struct take_flags {
    const char *rule;
    long long cost;
    bool peek;
    const char *wait;    /* NULL: do not wait */
    int64_t wait_max_us; /* INT64_MAX: as long as it takes */
};

static int check_flags(struct cli *cli, struct take_flags *f, int operands)
{
    struct error why;

    if (operands != 1)
        return error_set(&cli->error, WEIR_EUSAGE,
                         "take: needs one NAME or NAME/KEY; weir help take has examples");
    if (f->cost < 1)
        return error_set(&cli->error, WEIR_EUSAGE, "take --cost %lld: below 1; give how many slots to take",
                         f->cost);
    if (f->peek && f->wait)
        return error_set(&cli->error, WEIR_EUSAGE,
                         "take --peek --wait: a peek takes nothing to wait for; leave one out");
    f->wait_max_us = INT64_MAX;
    if (f->wait && *f->wait && duration_parse(f->wait, &f->wait_max_us, &why) < 0)
        return error_set(&cli->error, WEIR_EUSAGE, "take --wait: %s", why.text);
    return 0;
}

static int64_t rounded_up_us(double seconds)
{
    return (int64_t)ceil(seconds * 1e6);
}

/* Takes; with --wait again when the gate opens, unless that is later than the wait may last. */
static int take_or_wait(struct weir *w, const char *target, const struct take_flags *f,
                        struct weir_take *take)
{
    int64_t begun_us = clock_mono_us();

    for (;;) {
        int status = weir_take(w, target, f->rule, f->cost, f->peek ? WEIR_TAKE_PEEK : 0, take);
        int64_t again_us = clock_mono_us() + rounded_up_us(take->retry_after_s);

        if (status < 0 || take->allowed || take->never || !f->wait || again_us - begun_us > f->wait_max_us)
            return status;
        clock_sleep_until(again_us);
    }
}

static int print_take_json(struct cli *cli, const struct weir_take *t)
{
    json_t *doc = json_pack("{s:b,s:I,s:I,s:o,s:o}", "allowed", t->allowed, "limit", (json_int_t)t->limit,
                            "remaining", (json_int_t)t->remaining, "retry_after",
                            t->retry_after_s < 0 ? json_integer(-1) : json_real(t->retry_after_s),
                            "reset_after", json_real(t->reset_after_s));

    if (doc && t->never)
        json_object_set_new(doc, "never", json_true());
    return json_print(cli, doc);
}

static void print_take(const char *target, const struct take_flags *f, const struct weir_take *t)
{
    char again[32];

    printf("%s: %s%s; %" PRId64 " of %" PRId64 " slots left", target, t->allowed ? "allowed" : "denied",
           f->peek && t->allowed ? ", nothing taken" : "", t->remaining, t->limit);
    if (!t->allowed) {
        duration_format((rounded_up_us(t->retry_after_s) + 999) / 1000 * 1000, again);
        printf("; %s in %s", f->cost > 1 ? "enough" : "one", again);
    }
    putchar('\n');
}

static int print_outcome(struct cli *cli, const char *target, const struct take_flags *f,
                         const struct weir_take *t)
{
    int status = 0;

    if (cli->json)
        status = print_take_json(cli, t);
    else if (!t->never)
        print_take(target, f, t);
    if (status < 0)
        return status;
    if (t->never)
        return error_set(&cli->error, WEIR_EINPUT, "take %s: cost %lld can never fit; the burst is %" PRId64,
                         target, f->cost, t->limit);
    return t->allowed ? 0 : WEIR_ENOTNOW;
}

static int run_take(struct cli *cli, int argc, char **argv)
{
    struct take_flags f = {.cost = 1};
    const struct flag flags[] = {
        {"rule", 0, FLAG_TEXT, "RULE", "a rule of one's own, as for weir rate set", &f.rule},
        {"cost", 0, FLAG_INT, "N", "how many slots, all or none; 1", &f.cost},
        {"peek", 0, FLAG_BOOL, NULL, "look, take nothing", &f.peek},
        {"wait", 0, FLAG_OPTIONAL_TEXT, "MAX", "wait for the slot; denied at once when it opens after MAX",
         &f.wait},
        {.name = NULL},
    };
    struct weir_take take = {0};
    struct weir *w;
    int operands, status;

    if (cli_parse(cli, flags, argc, argv, &operands) < 0 || check_flags(cli, &f, operands) < 0)
        return cli->error.status;
    w = cli_client(cli);
    if (!w)
        return cli->error.status;
    status = take_or_wait(w, argv[0], &f, &take);
    if (status < 0)
        status = cli_failed(cli, w);
    else
        status = print_outcome(cli, argv[0], &f, &take);
    weir_free(w);
    return status;
}

/* weir.conf: which lines are read, what is said of those that are wrong, and who wins. */
#include "cli/config.h"

#include <inttypes.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/proxy.h"
#include "tests/random.h"
#include "tests/stage.h"

static char folder[64];

static int begin(void **state)
{
    folder_make(folder);
    return 0;
}

static int end(void **state)
{
    folder_remove(folder);
    return 0;
}

/* ---- Wrong lines */

static const struct wrong {
    const char *command, *text, *says;
} wrong[] = {
    {"config", "x\n", "w.conf:1: x: not NAME = VALUE; write that, or # before a comment"},
    {"config", "# a\n\n  = 3\n", "w.conf:3: = 3: not NAME = VALUE"},
    {"config", "redis =  \n", "w.conf:1: redis: its value is empty"},
    {"config", "[wrker]\n", "w.conf:1: [wrker]: unknown section; did you mean [worker]?"},
    {"config", "[nothing like it]\n", "unknown section; there are [worker], [handler TYPE], [serve]"},
    {"config", "[worker\n", "w.conf:1: [worker: the ] is missing"},
    {"config", "[]\n", "w.conf:1: []: unknown section"},
    {"config", "[worker mail]\n", "w.conf:1: [worker]: it takes no name"},
    {"config", "[handler]\n", "w.conf:1: [handler]: a name is missing; write [handler TYPE]"},
    {"config", "[handler a b]\n", "w.conf:1: [handler a b]: not a name"},
    {"config", "reddis = x\n",
     "w.conf:1: reddis: unknown name before the first section; did you mean redis?"},
    {"config", "json = yes\n", "w.conf:1: json: unknown name"},
    {"config", "[worker]\nexecuters = 3\n",
     "w.conf:2: executers: unknown name in [worker]; did you mean executors?"},
    {"config", "[worker]\nexec = a=b\n", "w.conf:2: exec: unknown name in [worker]"},
    {"config", "[worker]\nyes = yes\n", "w.conf:2: yes: unknown name in [worker]"},
    {"config", "[worker]\ngrace = 5s\ngrace = 6s\n", "w.conf:3: grace: stands in line 2 too"},
    {"config", "[worker]\n\nexecutors = 0\n", "w.conf:3: executors = 0: out of range; give 1 to 65536"},
    {"worker", "[worker]\n\nexecutors = ten\n",
     "w.conf:3: executors = ten: not a whole number; write executors = 10"},
    {"worker", "[worker]\ngrace = 5\n", "w.conf:2: grace: duration '5': the unit is missing"},
    {"worker", "[worker]\nunknown = bury\n", "w.conf:2: unknown = bury: unknown word; give hold or dead"},
    {"worker", "[worker]\nin-flight = 2\n[handler a]\nexec = true\n",
     "w.conf:2: in-flight: only --pipe has it"},
    {"worker", "[worker]\nlog-level = loud\n", "w.conf:2: log-level = loud: unknown word"},
    {"worker", "[handler mail]\ntimeout = 3s\n",
     "w.conf:2: [handler mail] has no handler; give exec, pipe or http"},
    {"worker", "[handler mail]\nexec = true\ntimeout = 3x\n", "w.conf:3: timeout: duration '3x'"},
    {"worker", "[handler mail]\nexec = true\nbackoff = 3s\n", "w.conf:3: backoff = 3s: not FIRST..MOST"},
    {"worker", "[handler mail]\nexec = true\nqueues = a\n",
     "w.conf:3: queues: unknown name in [handler mail]"},
    {"worker", "[handler a]\nexec = true\n[handler b,a]\nexec = true\n",
     "w.conf:4: [handler b,a]: type a has a handler in line 2; leave one out"},
    {"worker", "[handler a]\nexec = true\n[handler b]\nexec = ./none\n",
     "w.conf:4: handler b: ./none: no such program"},
    {"worker", "[worker]\ndrain = no\ndrain-max = 5s\n[handler a]\nexec = true\n",
     "w.conf:3: drain-max: says how long --drain may take"},
    {"config", "[worker]\nqueues = x y\n", "w.conf:2: worker: 'x y' is not a valid queue"},
    {"worker", "[worker]\nqueues = x y\n[handler a]\nexec = true\n", "w.conf:2: worker: 'x y' is not"},
    {"config", "[worker]\nqueues = a=0\n", "w.conf:2: worker: queue a has the weight '0'"},
    {"config", "[worker]\nqueues = a=2,b*\n", "w.conf:2: worker: weights are for"},
    {"config", "[worker]\nlease = 1ms\n", "w.conf:2: worker: a lease of 0.001 s"},
    {"config", "[worker]\npause-most = 9999d\n", "w.conf:2: worker: a longest pause"},
    {"config", "[worker]\nexecutors = 2000\n[handler a]\nexec = true\n", "w.conf:2: worker: 2000 executors"},
    {"config", "[handler a,b]\nexec = ./none\nbackoff = 2h..1s\n",
     "w.conf:2: worker: type a,b: a backoff of"},
    {"config", "[handler a]\nhttp = x\n", "w.conf:2: handler a: 'x' is not a URL"},
    {"config", "[handler a,]\nexec = true\n", "w.conf:1: [handler a,]: not a name"},
    {"serve", "[serve]\nallow-actions = on\n", "w.conf:2: allow-actions = on: must be yes or no"},
    {"serve", "[serve]\non-error = on\n", "w.conf:2: on-error = on: unknown word; give allow, deny or error"},
    {"config", "[serve]\nlisten = a\nlisten = b\n", "w.conf:3: listen: stands in line 2 too"},
    {"status", "namespace = a/b\n", "w.conf:1: namespace 'a/b': not a name"},
    {"status", "redis = http://x\n", "w.conf:1 'http://x': it begins with none of these forms"},
    {"status", "color = blue\n", "w.conf:1: color = blue: must be auto, always or never"},
};

TEST(test_wrong_lines)
{
    struct outcome o;

    for (size_t i = 0; i < COUNT(wrong); i++) {
        write_text(folder, "w.conf", wrong[i].text);
        run_in(&o, folder, built("weir"), wrong[i].command, "--config", "w.conf", NULL);
        if (o.code != 78 || !strstr(o.err, wrong[i].says) || strchr(o.err, '\n') != o.err + strlen(o.err) - 1)
            fail_msg("%s with %s: exit %d: %s(not: %s)", wrong[i].command, wrong[i].text, o.code, o.err,
                     wrong[i].says);
    }
    write_text(folder, "w.conf", "redis = redis://127.0.0.1:1\n"); /* nothing is wrong with it */
    run_in(&o, folder, built("weir"), "status", "--config", "w.conf", NULL);
    assert_int_equal(o.code, 69);
    assert_non_null(strstr(o.err, "(w.conf:1)"));
    run_in(&o, folder, built("weir"), "status", "--config", "none.conf", NULL);
    assert_int_equal(o.code, 78);
    assert_non_null(strstr(o.err, "none.conf: No such file or directory; see to it, or name another\n"));
    run_in(&o, folder, built("weir"), "status", "--config", ".", NULL);
    assert_int_equal(o.code, 78);
    run_in(&o, folder, built("weir"), "help", "rate", "--config", "none.conf", NULL); /* whatever it says */
    assert_int_equal(o.code, 0);
}

/* ---- Who wins */

static const char *value_of(const struct config *c, const char *section, const char *title, const char *name)
{
    const char *value = NULL;

    for (size_t i = 0; i < c->count; i++)
        if (strcmp(c->at[i].section, section) == 0 && strcmp(c->at[i].title, title) == 0 &&
            strcmp(c->at[i].name, name) == 0) {
            assert_null(value);
            value = c->at[i].value;
        }
    return value;
}

static void read_as(struct config *c, size_t i, const char *text)
{
    struct error e;

    c->files[i].path = strdup(i ? "user" : "system");
    c->files[i].text = strdup(text);
    if (config_read(c, i, c->files[i].text, strlen(text), &e) != 0)
        fail_msg("%s", e.text);
}

TEST(test_files_merge)
{
    struct config c = {.at = NULL};
    size_t at = 0;

    read_as(&c, 0,
            "redis=a\r\nnamespace = n # 1\n;no\n[worker]\nexecutors=1\n load = x\nload=y\n"
            "[handler mail]\nexec=a ; b\ntimeout=3s\n[handler sms]\nexec=\"s\"\n");
    read_as(&c, 1, "redis = b\n[worker]\nload=z\n[handler mail]\npipe=p=q");
    assert_string_equal(value_of(&c, "", "", "redis"), "b");
    assert_string_equal(value_of(&c, "", "", "namespace"), "n # 1");
    assert_string_equal(value_of(&c, "worker", "", "executors"), "1");
    assert_string_equal(value_of(&c, "worker", "", "load"), "z");
    assert_string_equal(value_of(&c, "handler", "mail", "pipe"), "p=q");
    assert_null(value_of(&c, "handler", "mail", "exec"));
    assert_null(value_of(&c, "handler", "mail", "timeout"));
    assert_string_equal(value_of(&c, "handler", "sms", "exec"), "\"s\"");
    assert_string_equal(config_next_title(&c, "handler", &at)->title, "sms");
    assert_string_equal(config_next_title(&c, "handler", &at)->title, "mail");
    assert_null(config_next_title(&c, "handler", &at));
    config_free(&c);
}

/* The row of weir config for a name, as "value from". */
static const char *row_of(const struct outcome *o, const char *name)
{
    const char *at = strstr(o->out, textf("\"name\":\"%s\"", name)), *value, *from;

    assert_non_null(at);
    value = strstr(at, "\"value\":") + 8;
    from = strstr(at, "\"said_by\":\"") + 11;
    return textf("%.*s %.*s", (int)strcspn(value, ",}"), value, (int)strcspn(from, "\""), from);
}

TEST(test_who_wins)
{
    struct outcome o;

    assert_int_equal(mkdir(textf("%s/weir", folder), 0700), 0);
    write_text(
        folder, "weir/weir.conf",
        "redis = unix:///user\nnamespace = of_user\npassword-file = secret\n[worker]\nexecutors = 3\n");
    write_text(folder, "other.conf", "namespace = of_other\n");
    setenv("XDG_CONFIG_HOME", folder, 1);
    unsetenv("WEIR_CONFIG");
    run_in(&o, folder, built("weir"), "config", "--json", NULL);
    assert_string_equal(row_of(&o, "redis"), textf("\"unix:///user\" %s/weir/weir.conf:1", folder));
    assert_string_equal(row_of(&o, "executors"), textf("\"3\" %s/weir/weir.conf:5", folder));
    assert_string_equal(row_of(&o, "password-file"), textf("\"secret\" %s/weir/weir.conf:3", folder));
    assert_string_equal(row_of(&o, "lease"), "\"30s\" default");
    setenv("WEIR_NAMESPACE", "of_environment", 1);
    setenv("REDIS_URL", "unix:///environment", 1);
    run_in(&o, folder, built("weir"), "config", "--json", NULL);
    assert_string_equal(row_of(&o, "namespace"), "\"of_environment\" $WEIR_NAMESPACE");
    assert_string_equal(row_of(&o, "redis"), "\"unix:///environment\" $REDIS_URL");
    assert_string_equal(row_of(&o, "password-file"), "null default"); /* that of another address */
    run_in(&o, folder, built("weir"), "config", "--json", "--namespace", "of_flag", "--redis",
           "unix://u:hush@/flag", NULL);
    assert_string_equal(row_of(&o, "namespace"), "\"of_flag\" the command line");
    assert_string_equal(row_of(&o, "redis"), "\"unix://***@/flag\" the command line");
    unsetenv("WEIR_NAMESPACE");
    unsetenv("REDIS_URL");
    setenv("WEIR_CONFIG", "other.conf", 1);
    run_in(&o, folder, built("weir"), "config", "--json", NULL);
    assert_string_equal(row_of(&o, "namespace"), "\"of_other\" other.conf:1");
    assert_string_equal(row_of(&o, "executors"), "\"10\" default");
    run_in(&o, folder, built("weir"), "config", "--json", "--config", "weir/weir.conf", NULL);
    assert_string_equal(row_of(&o, "namespace"), "\"of_user\" weir/weir.conf:2");
    unsetenv("XDG_CONFIG_HOME");
    write_text(folder, "own.conf", "[handler a]\nexec = false\nbackoff = 1s..1s\n[worker]\ndrain = no\n");
    run_in(&o, folder, built("weir"), "worker", "--config", "own.conf", "--backoff", "a=9s..1s", NULL);
    assert_non_null(strstr(o.err, "a backoff of 9 s that is 1 s at most")); /* the flag, not the file */
    setenv("WEIR_CONFIG", "/dev/null", 1);
}

TEST(test_password_that_all_can_read)
{
    const char *path = textf("%s/p.conf", folder);
    struct outcome o;

    write_text(folder, "p.conf", "\nredis = unix://:hush@/nowhere\n");
    for (int open = 0; open < 2; open++) {
        assert_int_equal(chmod(path, open ? 0644 : 0640), 0);
        run_in(&o, folder, built("weir"), "status", "--config", "p.conf", NULL);
        assert_int_equal(o.code, 69);
        assert_int_equal(!!strstr(o.err, "weir: p.conf:2: everybody can read the password; chmod o-r p.conf"),
                         open);
        assert_null(strstr(o.err, "hush"));
        run_in(&o, folder, built("weir"), "config", "--config", "p.conf", NULL);
        assert_null(strstr(o.out, "hush"));
    }
}

/* ---- A worker */

TEST(test_handlers_of_a_file)
{
    struct server s;
    struct outcome o;

    server_start(&s, false);
    write_text(folder, "weir.conf",
               textf("redis = %s\nnamespace = filed\n[worker]\nqueues = q\n[handler mail,sms]\n"
                     "exec = sh -c 'echo $WEIR_JOB_TYPE >>ran; sleep $0' 0\ntimeout = 1m\n"
                     "[handler slow]\nexec = sleep 60\ntimeout = 100ms\n[handler *]\nkeep = 1h\n",
                     s.socket));
    run_in(&o, folder, built("weir"), "enqueue", "mail", "-q", "q", "--config", "weir.conf", NULL);
    assert_int_equal(o.code, 0);
    run_in(&o, folder, built("weir"), "enqueue", "slow", "-q", "q", "--id", "s", "--max-attempts", "1",
           "--config", "weir.conf", NULL);
    assert_int_equal(o.code, 0);
    run_in(&o, folder, built("weir"), "worker", "--drain", "--config", "weir.conf", NULL);
    if (o.code != 0)
        fail_msg("exit %d: %s", o.code, o.err);
    await_text(folder, "ran", "mail\n");
    run_in(&o, folder, built("weir"), "job", "show", "s", "--config", "weir.conf", NULL);
    assert_non_null(strstr(o.out, "dead"));
    run_in(&o, folder, built("weir"), "enqueue", "other", "-q", "q", "--config", "weir.conf", NULL);
    run_in(&o, folder, built("weir"), "worker", "--exec", "other=touch other", "--drain", "--config",
           "weir.conf", NULL); /* a handler by a flag: the file's are not used, but its queue is */
    if (o.code != 0)
        fail_msg("exit %d: %s", o.code, o.err);
    await_text(folder, "other", "");
    assert_null(strstr(o.err, "mail"));
    server_stop(&s);
}

/* ---- HUP */

static const char *ns; /* of the commands */

static const char *run_on(const struct server *s, struct outcome *o, const char *line)
{
    program_weir(o, folder, s->url, ns, line);
    if (o->code != 0)
        fail_msg("weir %s: exit %d: %s", line, o->code, o->err);
    return o->out;
}

static pid_t start_reloading(const struct server *s, const char *handlers)
{
    const char *const words[] = {built("weir"), "worker",  "-c",   "8", "--config",
                                 "hup.conf",    "--redis", s->url, NULL};

    signal(SIGHUP, SIG_DFL); /* under nohup it is ignored, and a worker leaves it so */
    write_text(folder, "hup.conf", handlers);
    return program_start(folder, "worker", words);
}

static void hup(pid_t worker, const char *handlers, const char *logged)
{
    write_text(folder, "hup.conf", handlers);
    kill(worker, SIGHUP);
    if (logged)
        await_text(folder, "worker.err", logged);
}

TEST(test_handlers_are_read_anew)
{
    const char *loads = textf("[worker]\nload = %s\n", built("examples/weekly_summary_handler.so"));
    struct server s;
    struct outcome o;
    pid_t worker;

    server_start(&s, false);
    worker = start_reloading(&s, textf("%s[handler goes]\nexec = sh -c 'echo >begun; until [ -e go ]; do "
                                       "sleep 0.01; done; echo >ended'\n"
                                       "[handler stays]\nexec = sh -c 'echo one >>said'\n",
                                       loads));
    run_on(&s, &o, "enqueue goes --id g1");
    run_on(&s, &o, "enqueue stays");
    await_text(folder, "begun", "\n");
    await_text(folder, "said", "one\n");
    hup(worker,
        textf("%s[handler stays]\nexec = sh -c 'echo two >>said'\n[handler comes]\nexec = touch "
              "came\ntimeout = 9s\n",
              loads),
        "handlers and options are read anew");
    run_on(&s, &o, "enqueue comes");
    run_on(&s, &o, "enqueue stays");
    run_on(&s, &o, "enqueue goes --id g2");
    run_on(&s, &o, "enqueue receipt --id r");
    await_text(folder, "came", "");
    await_text(folder, "said", "one\ntwo\n");
    await_log(folder, "receipt r: dead: args: not a business_id"); /* a function stays */
    write_text(folder, "go", "");
    await_text(folder, "ended", "\n"); /* what ran when its handler went has ended, */
    hup(worker, "[handler stays]\nexec = ./none\n",
        "what holds stays: hup.conf:2: handler stays: ./none: no such program");
    hup(worker, "[handler stays\n", "what holds stays: hup.conf:1: [handler stays: the ] is missing");
    hup(worker, "", "what holds stays: worker: no handlers");
    hup(worker, "[handler receipt]\nexec = true\n", "type receipt is that of a loaded function");
    assert_int_equal(remove(textf("%s/hup.conf", folder)), 0);
    assert_int_equal(mkfifo(textf("%s/hup.conf", folder), 0600), 0);
    kill(worker, SIGHUP);
    await_text(folder, "worker.err", "hup.conf: a FIFO or a device");
    assert_int_equal(remove(textf("%s/hup.conf", folder)), 0);
    hup(worker, "[worker]\nqueues = x\n[handler comes]\npipe = cat\n",
        "queues is another, which counts when");
    run_on(&s, &o, "job show g2"); /* and what came later waits for a worker that has one */
    assert_non_null(strstr(o.out, "held"));
    assert_null(strstr(o.out, "interrupted"));
    kill(worker, SIGTERM);
    assert_int_equal(program_end(worker), 0);
    server_stop(&s);
}

#define HUP_JOBS 600 /* of each of two types */
#define HUPS 40

static int count_lines(const char *name)
{
    static char text[1 << 20];
    int lines = 0;

    if (read_text(folder, name, text, sizeof text))
        for (const char *at = text; (at = strchr(at, '\n')); at++)
            lines++;
    return lines;
}

/* Handlers change all the time while jobs run: each runs once, and none is counted as interrupted. */
TEST(test_no_job_is_lost_by_hup)
{
    const char *text =
        "[handler e]\nexec = sh -c 'echo $WEIR_JOB_ID >>ran; : %d'\n[handler p]\npipe = sh ./pipe.sh %d\n";
    struct server s;
    struct outcome o;
    int64_t until_us = clock_mono_us() + 120000000;
    pid_t worker;

    server_start(&s, false);
    write_text(folder, "pipe.sh",
               "while read -r l; do i=${l#*\\\"id\\\":\\\"}; i=${i%%\\\"*}; echo $i >>ran\n"
               "echo \"{\\\"id\\\":\\\"$i\\\",\\\"status\\\":\\\"done\\\"}\"; done\n");
    unlink(textf("%s/ran", folder));
    worker = start_reloading(&s, textf("[handler e]\nexec = true\n[handler p]\npipe = cat\n"));
    await_text(folder, "worker.err", "started");
    hup(worker, textf(text, 0, 0), "read anew");
    write_text(folder, "jobs", "");
    run_in(
        &o, folder, "/bin/sh", "-c",
        textf(
            "seq %d | \"$0\" enqueue --from - e --redis %s && seq %d | \"$0\" enqueue --from - p --redis %s",
            HUP_JOBS, s.url, HUP_JOBS, s.url),
        built("weir"), NULL);
    assert_int_equal(o.code, 0);
    for (int i = 1; count_lines("ran") < 2 * HUP_JOBS && clock_mono_us() < until_us; i++) {
        if (i <= HUPS)
            hup(worker, textf(text, i, i), NULL);
        clock_sleep_until(clock_mono_us() + 50000);
    }
    run_in(&o, folder, "/bin/sh", "-c",
           "sort ran | uniq -c | awk '{ n[$1]++ } END { for (i in n) print i, n[i] }'", NULL);
    assert_string_equal(o.out, textf("1 %d\n", 2 * HUP_JOBS));
    kill(worker, SIGTERM);
    assert_int_equal(program_end(worker), 0);
    run_on(&s, &o, "status --json");
    assert_non_null(strstr(o.out, textf("\"done\":%d", HUP_JOBS)));
    server_stop(&s);
}

/* ---- Another Redis */

/* What is exported from one Redis and applied to another is the same there; a pause for a time ends at its second. */
TEST(test_moving_to_another_redis)
{
    struct server from, to;
    struct outcome o, there;

    server_start(&from, false);
    server_start(&to, false);
    for (int partitions = 1; partitions <= 4; partitions += 3) {
        const char *const lines[] = {
            textf("init --partitions %d", partitions),
            "rate set a.x 10/s,by=key 100/1d,algorithm=fixed-window,by=key",
            "rate set a.y concurrency=3",
            "rate set b 3/1m,burst=1,adapt=0.5..1",
            "rate use a.mail a.x a.y --cost 2",
            "rate weight a.x one~two 7",
            "rate pause a.x/one~two",
            "rate pause b 2h",
            "type pause c --create --reason because",
            "queue pause q --create --for 1h",
            "schedule add tidy every~15m b {\"keep\":[100]} --tz Europe/Berlin --timeout 3s --key k",
            "schedule pause tidy",
            NULL};

        ns = textf("n%d", partitions);
        run_on(&to, &o, lines[0]);
        for (size_t i = 0; lines[i]; i++)
            run_on(&from, &o, lines[i]);
        write_text(folder, "moved.conf", run_on(&from, &o, "export"));
        assert_non_null(strstr(o.out, "pause-key = endless one two"));
        run_on(&to, &there, "apply moved.conf");
        assert_string_equal(run_on(&to, &there, "export"), o.out);
        run_on(&to, &there, "apply moved.conf --prune --dry-run");
        assert_string_equal(there.err, "nothing to change\n");
        run_on(&from, &there, "apply moved.conf --prune");
        assert_string_equal(there.err, "nothing to change\n");
    }
    ns = NULL;
    server_stop(&from);
    server_stop(&to);
}

/* Wherever the link is cut, the error says how to go on, and a second run makes what is left. */
TEST(test_apply_that_is_cut_off)
{
    int told = 0, code = 69;
    struct server s;
    struct outcome o;
    struct proxy *p;

    server_start(&s, false);
    p = proxy_start(&s);
    write_text(folder, "cut.conf",
               "[limit l]\nrules = 9/s\n[limit k]\nrules = 1/s\n[type t]\nuse = l k\n[queue q]\npause = "
               "endless\n");
    for (unsigned n = 1; code != 0; n++) {
        ns = textf("cut%u", n);
        proxy_cut_before(p, PROXY_REQUESTS, n);
        code = program_weir(&o, folder, proxy_url(p), ns, "apply cut.conf");
        assert_true(code == 0 || code == 69);
        told += strstr(o.err, "; what is changed stays, and a second run makes what is left\n") != NULL;
        run_on(&s, &o, "apply cut.conf");
        run_on(&s, &o, "apply cut.conf");
        assert_string_equal(o.err, "nothing to change\n");
    }
    assert_true(told >= 4); /* two limits, a type, a queue */
    ns = NULL;
    proxy_stop(p);
    server_stop(&s);
}

/* Texts that are allowed in between alone are not asked for: what holds in the end is checked, and steps lead there. */
TEST(test_apply_checks_the_end)
{
    struct server s;
    struct outcome o;

    server_start(&s, false);
    write_text(folder, "a.conf",
               "[limit l]\nrules = 9/s,burst=9\n[limit k]\nrules = 1/s,by=key,burst=9\n"
               "[type t]\nuse = l k\ncost = 9\n[type u]\nuse = l\n");
    run_on(&s, &o, "apply a.conf");
    write_text(folder, "b.conf",
               "[limit l]\nrules = 2/s,burst=2\n[limit m]\nrules = 1/s,by=args.a,burst=2\n"
               "[type t]\nuse = m\ncost = 2\n");
    run_on(&s, &o, "apply b.conf --prune"); /* a smaller burst, another path, and less of both */
    run_on(&s, &o, "export");
    assert_string_equal(o.out, "[limit l]\nrules = 2/1s\n\n[limit m]\nrules = 1/1s,burst=2,by=args.a\n\n"
                               "[type t]\nuse = m\ncost = 2\n\n");
    write_text(folder, "c.conf", "[limit l]\nrules = 9/s\n[limit m]\nrules = 1/s,by=args.a\n");
    program_weir(&o, folder, s.url, NULL, "apply c.conf"); /* t still costs 2 */
    assert_int_equal(o.code, 65);
    write_text(
        folder, "d.conf",
        "[limit m]\nrules = 1/s,by=args.b,burst=2\n[limit t]\nrules = 2/s,by=args.a\n[type t]\nuse = m\n");
    program_weir(&o, folder, s.url, NULL, "apply d.conf"); /* in the end they would not go together */
    assert_int_equal(o.code, 65);
    assert_non_null(strstr(o.err, "the keyed rules of a type have one path"));
    run_on(&s, &o, "apply b.conf --prune --dry-run"); /* nothing was changed by half */
    assert_string_equal(o.err, "nothing to change\n");
    write_text(folder, "e.conf",
               "[limit x]\nrules = 1/s,by=args.a 2/m 3/h 4/d 5/w 6/w 7/w\n[limit y]\nrules = 1/s,by=args.a\n"
               "[limit z]\nrules = 1/s 2/s 3/s 4/s 5/s 6/s 7/s 8/s\n[type v]\nuse = x y z\n");
    run_on(&s, &o, "apply e.conf"); /* 16 rules, and then 16 others */
    write_text(
        folder, "e.conf",
        "[limit y]\nrules = 1/s,by=args.a 2/m 3/h 4/d 5/w 6/w 7/w\n[limit x]\nrules = 1/s,by=args.a\n");
    run_on(&s, &o, "apply e.conf");
    write_text(folder, "e.conf", "[limit x]\nrules = 1/s,by=args.b\n[limit y]\nrules = 1/s,by=args.b\n");
    program_weir(&o, folder, s.url, NULL, "apply e.conf");
    assert_int_equal(o.code, 65);
    assert_non_null(strstr(o.err, "type v: two of its limits would go by another path at once"));
    program_weir(&o, folder, s.url, NULL, "apply e.conf --dry-run");
    assert_int_equal(o.code, 65);
    server_stop(&s);
}

/* ---- Any bytes */

TEST(test_any_bytes)
{
    static const char *const pieces[] = {
        "[worker]", "[handler ", "]",  "\n", "=", " ", "\t",           "#", ";", "[",
        "redis",    "exec",      "\r", "a",  ",", "*", "\n[limit x]\n"};

    uint64_t seed = random_seed(), random = seed;

    for (int world = 0; world < 20000; world++) {
        char text[512], *copy;
        struct config c = {.at = NULL};
        struct error e = {.text = ""};
        size_t len = 0, most = (size_t)random_in(&random, 0, 400);
        int status;

        while (len < most) {
            const char *piece = pieces[random_in(&random, 0, (int64_t)COUNT(pieces) - 1)];

            if (random_in(&random, 0, 7) == 0)
                text[len++] = (char)random_in(&random, 0, 255);
            else
                len += (size_t)sprintf(text + len, "%s", piece);
        }
        copy = malloc(len + 1); /* exact, so that a sanitizer sees what goes beyond */
        memcpy(copy, text, len);
        c.files[0].path = strdup("f");
        c.files[0].text = copy;
        status = config_read(&c, 0, copy, len, &e);
        if (status != 0 && (status != WEIR_ECONFIG || strncmp(e.text, "f:", 2) != 0))
            fail_msg("WEIR_SEED=%" PRIu64 ": %d: %s", seed, status, e.text);
        for (size_t i = 0; i < c.count; i++)
            assert_true(*c.at[i].name && *c.at[i].value && c.at[i].line > 0);
        config_free(&c);
    }
}

TESTS(begin, end)

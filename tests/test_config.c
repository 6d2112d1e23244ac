/* weir.conf: files that merge, any bytes, and an apply that is cut off. Its lines: transcripts/config.txt, config_wins.txt, wrong_conf.txt
 * and apply*.txt; its handlers: sessions/config.txt. */
#include "cli/config.h"

#include <inttypes.h>
#include <string.h>

#include "tests/program.h"
#include "tests/proxy.h"
#include "tests/random.h"
#include "tests/server.h"
#include "tests/test.h"

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
    char all[1000] = "";
    size_t at = 0;

    read_as(&c, 0,
            "redis=a\r\nnamespace = n # 1\n;no\n[worker]\nexecutors=1\n load = x\nload=y\n"
            "[handler mail]\nexec=a ; b\ntimeout=3s\n[handler sms]\nexec=\"s\"\n");
    read_as(&c, 1, "redis = b\n[worker]\nload=z\n[handler mail]\npipe=p=q");
    for (size_t i = 0; i < c.count; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "[%s %s] %s: %s\n", c.at[i].section,
                 c.at[i].title, c.at[i].name, c.at[i].value);
    assert_string_equal(all, "[ ] namespace: n # 1\n[worker ] executors: 1\n[handler sms] exec: \"s\"\n"
                             "[ ] redis: b\n[worker ] load: z\n[handler mail] pipe: p=q\n");
    assert_string_equal(config_next_title(&c, "handler", &at)->title, "sms");
    assert_string_equal(config_next_title(&c, "handler", &at)->title, "mail");
    assert_null(config_next_title(&c, "handler", &at));
    config_free(&c);
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
    write_text(s.folder, "cut.conf",
               "[limit l]\nrules = 9/s\n[limit k]\nrules = 1/s\n[type t]\nuse = l k\n[queue q]\npause = "
               "endless\n");
    for (unsigned n = 1; code != 0; n++) {
        const char *ns = textf("cut%u", n);

        proxy_cut_before(p, PROXY_REQUESTS, n);
        code = program_weir(&o, s.folder, proxy_url(p), ns, "apply cut.conf");
        assert_true(code == 0 || code == 69);
        told += strstr(o.err, "; what is changed stays, and a second run makes what is left\n") != NULL;
        assert_int_equal(program_weir(&o, s.folder, s.url, ns, "apply cut.conf"), 0);
        assert_int_equal(program_weir(&o, s.folder, s.url, ns, "apply cut.conf"), 0);
        assert_string_equal(o.err, "nothing to change\n");
    }
    assert_true(told >= 4); /* two limits, a type, a queue */
    proxy_stop(p);
    server_stop(&s);
}

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

TESTS(NULL, NULL)

/* Unique jobs: the scripts in tests/plays/unique.txt; here the command. */
#include "tests/play.h"
#include "tests/scene.h"
#include "tests/stage_group.h"

static struct outcome o;

#define weir(...) run_in(&o, NULL, built("weir"), __VA_ARGS__, "--redis", stage.server.url, NULL)

/* The job was removed by hand: its lock is found by the answer, and freed. */
TEST_WITH(test_lost_job, stage_start, stage_stop)
{
    char id[40];

    weir("enqueue", "t", "--unique", "lost", "--queue", "gone");
    snprintf(id, sizeof id, "%.*s", (int)strcspn(o.out, "\n"), o.out);
    assert_int_equal(stage_number(&stage, "DEL", stage_key(&stage, "queue:gone")), 1);
    weir("enqueue", "t", "--unique", "lost");
    assert_non_null(strstr(o.err, id));
    weir("job", "show", id);
    assert_int_equal(o.code, 66);
    weir("job", "cancel", id, "--unique", "lost");
    assert_int_equal(o.code, 0);
    weir("enqueue", "t", "--unique", "lost", "--json");
    assert_non_null(strstr(o.out, "\"new\":true}"));
}

/* Many ask at once: one job is enqueued each time. */
TEST_WITH(test_many_at_once, stage_start, stage_stop)
{
    run_in(
        &o, NULL, "/bin/sh", "-c",
        textf(
            "for i in 1 2 3 4 5 6 7 8; do %s enqueue once --queue once --unique once --redis %s & done; wait",
            built("weir"), stage.server.url),
        NULL);
    assert_int_equal(o.code, 0);
    assert_int_equal(stage_number(&stage, "LLEN", stage_key(&stage, "queue:once")), 1);
    for (char *at = o.out; *at; at = strchr(at, '\n') + 1)
        assert_memory_equal(at, o.out, strcspn(o.out, "\n"));
}

PLAY("unique")

STAGE_TESTS(turns_start, turns_stop)

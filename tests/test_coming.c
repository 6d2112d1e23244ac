/* coming: which jobs a limit lets start next: tests/plays/coming.txt; here how much one look reads. */
#include "tests/play.h"
#include "tests/scene_client.h"

#include "core/client/client.h"
#include "queue/status/coming.h"
#include "queue/status/status.h"

static json_t *next; /* the last one */

static int stop_all(void **state)
{
    json_decref(next);
    return scene_stop_client(state);
}

static void look(const char *limit, int most)
{
    struct limits limits = {0};

    json_decref(next);
    if (status_limits(w, turns.now_us, &limits) < 0 ||
        coming_ask(w, turns.now_us, &limits, limits_find(&limits, limit), most, &next) < 0)
        fail_msg("%s", weir_message(w));
    limits_free(&limits);
}

static const char *said(size_t i, const char *member)
{
    return answer_text(json_array_get(next, i), member);
}

/* A lane of large bodies is not read as a whole. */
SCENE_TEST(test_large_bodies)
{
    static char body[400000];
    size_t len;

    start("w");
    must(turns_rate("t", CLOSED_RULE));
    enqueue("default", "t", "first");
    assert_int_equal(claim("w", 1, 0), 1);
    for (int i = 0; i < 4; i++) {
        len = (size_t)snprintf(body, sizeof body, "{\"id\":\"big%d\",\"type\":\"t\",\"args\":\"", i);
        memset(body + len, 'x', sizeof body - len);
        memcpy(body + sizeof body - 3, "\"}", 3);
        push("default", body);
    }
    claim("w", 9, 0);
    look("t", 9);
    assert_in_range(json_array_size(next), 1, 2);
    assert_string_equal(said(0, "id"), "big0");
}

/* 100 queues with jobs of other types before those that are wanted, lanes of 20 types in each, sleeping gates. */
SCENE_TEST(test_whatever_waits_a_look_is_short)
{
    const char *words[21] = {"50"};
    char types[20][24];
    int64_t before;

    redis_do(
        "EVAL",
        "local P = ARGV[1]\n"
        "for t = 1, 20 do redis.call('HSET', P .. 'types', 't' .. t, '') end\n"
        "for q = 1, 100 do\n"
        "  redis.call('SADD', P .. 'queues', 'q' .. q)\n"
        "  for i = 1, 60 do redis.call('RPUSH', P .. 'queue:q' .. q, '{\"id\":\"o\",\"type\":\"o\"}') end\n"
        "  for t = 1, 20 do\n"
        "    for key = 1, 9 do redis.call('ZADD', P .. 'ring:q' .. q .. '/t' .. t, key, key) end\n"
        "    redis.call('ZADD', P .. 'sleep:q' .. q, 9, 't' .. t .. '#0/k')\n"
        "  end\n"
        "end\n",
        "0", PREFIX);
    for (int i = 0; i < 20; i++) {
        snprintf(types[i], sizeof types[i], "t%d", i + 1);
        words[i + 1] = types[i];
    }
    before = count_commands();
    must(turns_ask("coming", words, COUNT(words)));
    assert_in_range(count_commands() - before, 1, 900);
}

PLAY("coming")

TESTS(scene_start_client, stop_all)

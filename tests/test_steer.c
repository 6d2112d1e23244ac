/* Limits are changed and a batch is halted where something waits in very many queues: each call is short, what the first one writes holds from then on,
 * and heartbeats finish what nobody else does. Judged by what Redis counts, not by time. */
#include <fnmatch.h>
#include <inttypes.h>

#include "tests/scene.h"

/* Runs a script's text over the keys of this namespace: what would take many calls to build. */
#define build(text) free(redis_text("EVAL", "local P = ARGV[1]\n" text "return 0", "0", PREFIX))
#define STR_(x) #x
#define STR(x) STR_(x)

#define WAITS 1000
#define IN_PAGES 5 /* calls, at least */

/* In each queue t waits at a gate of the limit shared and u at its own, a lane sleeps, and a group of workers of its own serves it. */
static void wait_in_many_queues(void)
{
    build("redis.call('HSET', P .. 'limits', 'shared', 'gcra:5/1000000/5', 'u', 'gcra:5/1000000/5')\n"
          "redis.call('HSET', P .. 'types', 't', 'use=shared', 'u', '')\n"
          "redis.call('HSET', P .. 'batch:b', 'total', '3', 'types', '* 3')\n"
          "for i = 1, " STR(
              WAITS) " do\n"
                     "  local q = 'q' .. i\n"
                     "  redis.call('SADD', P .. 'queues', q)\n"
                     "  redis.call('ZADD', P .. 'ring:' .. q .. '/t', 1, '')\n"
                     "  redis.call('ZADD', P .. 'wait:' .. q .. '/shared#0', 1, 't')\n"
                     "  redis.call('ZADD', P .. 'wake:' .. q, 9e15, 'shared#0', 9e15, 'u#0')\n"
                     "  redis.call('ZADD', P .. 'sleep:' .. q, 9e15, 'x#0/k')\n"
                     "  redis.call('HSET', P .. 'duty', 'g' .. i, 'w' .. i .. ' 8000000000000000 ' .. q)\n"
                     "end\n");
}

/* Queues in which that gate is due. */
static int64_t count_due_at(const char *gate)
{
    return redis_number(
        "EVAL",
        "local n = 0\n"
        "for i = 1, " STR(WAITS) " do\n"
                                 "  local at = redis.call('ZSCORE', ARGV[1] .. 'wake:q' .. i, ARGV[2])\n"
                                 "  if at and tonumber(at) < 8e15 then n = n + 1 end\n"
                                 "end\n"
                                 "return n",
        "0", PREFIX, gate);
}

static const struct order {
    const char *script, *words[8];
    size_t count;
    const char *key, *field, *holds; /* what the first call has written */
    const char *gate;                /* that becomes due in all queues */
    int64_t others;                  /* queues in which the gate of another limit does */
} orders[] = {
    {"rate_pause", {"shared", "60000000", "pause", "me"}, 4, "limits", "shared", "* pause:*", "shared#0", 0},
    {"rate_set",
     {"shared", "gcra:7/1000000/7", "0", "set", "me"},
     5,
     "limits",
     "shared",
     "gcra:7/*",
     "shared#0",
     0},
    {"rate_use", {"t", "unuse", "", "unuse", "me", "shared"}, 6, "types", "t", "", "-", 0},
    {"batch_halt", {"b", "pause", "0"}, 3, "halted", "b/b", "paused *", "shared#0", WAITS},
};

/* The first call: what it writes holds from then on. */
static void order_first(const struct order *o)
{
    char key[64], *holds;

    must(turns_ask(o->script, o->words, o->count));
    snprintf(key, sizeof key, PREFIX "%s", o->key);
    holds = redis_text("HGET", key, o->field);
    if (fnmatch(o->holds, holds, 0) != 0)
        fail_msg("%s: %s %s is %s", o->script, o->key, o->field, holds);
    free(holds);
}

/* Queues are woken, types leave gates, and lanes that sleep are named, some a call. */
static void test_a_change_is_made_in_short_calls(void **state)
{
    for (const struct order *o = orders; o < orders + COUNT(orders); o++) {
        int64_t before, now, most = 0, asleep = 0;
        int calls = 0, rc = 0;

        scene_begin(state);
        wait_in_many_queues();
        before = count_commands();
        order_first(o);
        do {
            asleep += (int64_t)json_array_size(json_object_get(turns.answer, "asleep"));
            now = count_commands();
            most = now - before > most ? now - before : most;
            before = now;
            calls++;
        } while (calls < 100 && turns_ask_rest(&rc) && rc == 0);
        must(rc);
        print_message("%s: %d calls, %" PRId64 " commands\n", o->script, calls, most);
        assert_in_range(calls, IN_PAGES, 20);
        assert_in_range(most, 1, 3500);
        assert_in_range(asleep, WAITS, WAITS + WAITS / 2);
        assert_int_equal(count_due_at(o->gate), WAITS);
        assert_int_equal(count_due_at("u#0"), o->others);
        assert_int_equal(redis_number("EXISTS", PREFIX "opened", PREFIX "at:shared#*", PREFIX "at:*"), 0);
    }
}

/* Who made the change died after its first call: heartbeats wake the other queues. */
static void test_heartbeats_finish_a_change(void **state)
{
    for (const struct order *o = orders; o < orders + COUNT(orders); o++) {
        int64_t taken, workers;

        scene_begin(state);
        start("w");
        wait_in_many_queues();
        order_first(o);
        assert_int_equal(redis_number("EXISTS", PREFIX "opened"), 1);
        for (int i = 0; i < 20 && redis_number("EXISTS", PREFIX "opened"); i++)
            must(turns_reap("w", &taken, &workers));
        assert_int_equal(redis_number("EXISTS", PREFIX "opened", PREFIX "at:shared#*", PREFIX "at:*"), 0);
        if (strcmp(o->gate, "-") != 0)
            assert_int_equal(count_due_at(o->gate), WAITS);
        else /* where t waits behind others, its turn comes with them */
            assert_int_equal(count_due_at("shared#0") + count_due_at("-"), WAITS);
    }
}

/* It goes with all that share its limit: types are gone through once, however many go. */
static void test_a_limit_moves_from_among_very_many_types(void **state)
{
    static const char *const words[] = {"m", "1", "move", "me"};
    int64_t before, after;

    (void)state;
    build("redis.call('HSET', P .. 'about', 'partitions', '2')\n"
          "redis.call('HSET', P .. 'homes', 'm', '0')\n"
          "redis.call('HSET', P .. 'limits', 'm', 'gcra:5/1000000/5')\n"
          "for i = 1, " STR(WAITS) " do redis.call('SADD', P .. 'queues', 'q' .. i) end\n"
                                   "for i = 1, 5000 do redis.call('HSET', P .. 'types', 't' .. i, i <= 100 "
                                   "and 'use=m' or 'use=o' .. i) end\n");
    before = count_commands();
    must(turns_ask("rate_move", words, COUNT(words)));
    after = count_commands();
    print_message("rate_move: %" PRId64 " commands\n", after - before);
    assert_int_equal(json_array_size(json_object_get(turns.answer, "moved")), 101);
    assert_in_range(after - before, 1, 3500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_a_change_is_made_in_short_calls, scene_begin),
        cmocka_unit_test_setup(test_heartbeats_finish_a_change, scene_begin),
        cmocka_unit_test_setup(test_a_limit_moves_from_among_very_many_types, scene_begin),
    };

    return cmocka_run_group_tests(tests, turns_start, turns_stop);
}

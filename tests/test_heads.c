/* Heads of entries in queues, where anybody may push: tests/plays/heads.txt; here stamps as they are written and read. */
#include "tests/play.h"
#include "tests/scene.h"

/* Before 2020 nothing is known, beyond 3413 the last moment. */
SCENE_TEST(test_a_stamp_says_a_time)
{
    static const struct {
        int64_t at_us, read_us;
    } times[] = {
        {BEGIN_US, BEGIN_US},
        {BEGIN_US + 19999, BEGIN_US + 10000},
        {0, 0},
        {INT64_C(1577836800000000), 0},
        {INT64_C(1577836800010000), INT64_C(1577836800010000)},
        {INT64_C(4102444799990000), INT64_C(4102444799990000)}, /* 2099-12-31 */
        {INT64_MAX, INT64_C(45558301911030000)},
    };
    char digits[STAMP_LEN + 1], head[STAMP_HEAD_LEN + 1];

    for (size_t i = 0; i < COUNT(times); i++) {
        stamp_write(times[i].at_us, digits);
        stamp_head(times[i].at_us, head);
        assert_int_equal(stamp_read(span_str(digits)), times[i].read_us);
        assert_int_equal(entry_enqueued_us(span_str(textf("%s{}", head))), times[i].read_us);
    }
    assert_int_equal(stamp_read(span_str("-JDOAw")), 0);
    assert_int_equal(stamp_read(span_str("-JDOAw!")), 0);
    assert_int_equal(entry_enqueued_us(span_str("{}")), 0);
    assert_int_equal(entry_enqueued_us(span_str("@1,0,0,bx,t-JDOAw-;{}")), BEGIN_US);
    assert_int_equal(entry_enqueued_us(span_str("@1")), 0);
}

PLAY("heads")

TESTS(turns_start, turns_stop)

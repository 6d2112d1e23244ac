/* Answers that requests of weir serve share (serve/shared.c): who gets which, from a thread of the test's own. */
#include "tests/test.h"
#include <ev.h>

#include "serve/shared.h"

/* ---- A thread that does what it is given when the test says so */

static struct work *given[16];
static size_t given_count;
static bool full;

bool redis_thread_give(struct redis_thread *thread, struct work *work)
{
    (void)thread;
    if (!full)
        given[given_count++] = work;
    return !full;
}

void work_item_free(struct work_item *item)
{
    if (item)
        text_free(&item->text);
    free(item);
}

/* The i-th work is done: it says what there is now. */
static void finish(size_t i, const char *text)
{
    struct work_item *item = (struct work_item *)given[i];
    struct error e;

    item->status = 200;
    item->type = "text/plain";
    assert_int_equal(text_add(&item->text, text, strlen(text), &e), 0);
    given[i]->done(given[i]);
}

/* ---- Who waits */

struct client {
    struct waiter waiter; /* the first member */
    struct answer *answer;
    bool dropped;
};

static struct ev_loop *loop;
static struct shared *shared;
static struct redis_thread *threads[THREAD_COUNT];

static void on_answer(struct waiter *waiter, const struct work_item *item, struct answer *answer)
{
    struct client *c = (struct client *)waiter;

    c->dropped = !item;
    c->answer = item ? answer_hold(answer) : NULL;
}

static bool ask(struct client *c, const char *key)
{
    struct work_item *item = calloc(1, sizeof *item);

    *c = (struct client){.waiter.on_answer = on_answer};
    item->kind = WORK_PAGE;
    return shared_ask(shared, THREAD_LOOK, key, item, &c->waiter);
}

static int begin(void **state)
{
    given_count = 0;
    full = false;
    loop = ev_loop_new(0);
    shared = shared_new(loop, threads);
    return shared ? 0 : -1;
}

static int end(void **state)
{
    shared_free(shared);
    ev_loop_destroy(loop);
    return 0;
}

TEST_WITH(equal_questions_share_an_answer, begin, end)
{
    struct client a, b, c, other;

    assert_true(ask(&a, "/"));
    assert_true(ask(&b, "/"));
    assert_true(ask(&other, "/jobs"));
    assert_int_equal(given_count, 2);
    finish(0, "one");
    assert_true(ask(&c, "/")); /* it is there */
    assert_int_equal(given_count, 2);
    assert_non_null(a.answer);
    assert_ptr_equal(a.answer, b.answer);
    assert_ptr_equal(a.answer, c.answer);
    assert_null(other.answer);
    finish(1, "two");
    assert_ptr_not_equal(other.answer, a.answer);
    answer_release(a.answer), answer_release(b.answer), answer_release(c.answer),
        answer_release(other.answer);
}

/* What was begun before an action does not show it: neither an answer that is there, nor one on its way. */
TEST_WITH(an_action_ends_what_was_begun_before, begin, end)
{
    struct client a, b, c, d;

    assert_true(ask(&a, "/"));
    finish(0, "before");
    assert_true(ask(&b, "/jobs"));
    shared_drop(shared);
    assert_true(ask(&c, "/"));
    assert_true(ask(&d, "/jobs"));
    assert_int_equal(given_count, 4);
    finish(1, "before");
    assert_non_null(b.answer); /* who asked before it gets what was asked */
    assert_null(d.answer);
    finish(2, "after");
    finish(3, "after");
    assert_ptr_not_equal(a.answer, c.answer);
    assert_ptr_not_equal(b.answer, d.answer);
    answer_release(a.answer), answer_release(b.answer), answer_release(c.answer), answer_release(d.answer);
}

/* A thread is told once after each action that its pages are old. */
TEST_WITH(pages_are_read_again_after_an_action, begin, end)
{
    struct client a, b, c;

    assert_true(ask(&a, "/a"));
    shared_drop(shared);
    assert_true(ask(&b, "/b"));
    assert_true(ask(&c, "/c"));
    assert_false(((struct work_item *)given[0])->drop_pages);
    assert_true(((struct work_item *)given[1])->drop_pages);
    assert_false(((struct work_item *)given[2])->drop_pages);
    for (size_t i = 0; i < 3; i++)
        finish(i, "");
    answer_release(a.answer), answer_release(b.answer), answer_release(c.answer);
}

TEST_WITH(what_is_asked_without_a_key_is_for_one, begin, end)
{
    struct client a, b;

    assert_true(ask(&a, NULL));
    assert_true(ask(&b, NULL));
    assert_int_equal(given_count, 2);
    finish(0, "");
    finish(1, "");
    assert_ptr_not_equal(a.answer, b.answer);
    answer_release(a.answer), answer_release(b.answer);
}

TEST_WITH(a_thread_that_closes_answers_nobody_else, begin, end)
{
    struct client a, b;

    assert_true(ask(&a, "/"));
    given[0]->dropped = true;
    given[0]->done(given[0]);
    assert_true(a.dropped);
    assert_true(ask(&b, "/"));
    assert_int_equal(given_count, 2);
    finish(1, "");
    answer_release(b.answer);
}

TEST_WITH(who_comes_too_late_is_refused, begin, end)
{
    struct client a;

    full = true;
    assert_false(ask(&a, "/jobs"));
    assert_null(a.answer);
}

TESTS(NULL, NULL)
